"""Models on disk: a directory with `config.json`, `weights.safetensors` and vocabularies as UTF-8 text.

`config.json` names the program and its options, the labels, and what reads further files into the same ids; sealed.py
says how the files vouch for each other, directory.py how a model is replaced in one step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from hogwild.config import FeedConfig, SmallConfig
from hogwild.config.options import convert, options_of
from hogwild.errors import ConfigError, HogwildError, ModelError, SaveError, brief, shorten
from hogwild.feeds.tables.schema import check_schema
from hogwild.programs.program import Metrics, Program
from hogwild.programs.saving.cells import CELLS, narrow, widen
from hogwild.programs.saving.sealed import (
    SMALL_VERSION,
    Sealed,
    check_sealed_output,
    map_sealed,
    read_sealed,
    remove_sealed,
    write_sealed,
)
from hogwild.programs.saving.tensors import Arrays

PROGRAMS = {
    "bilstm": "hogwild.programs.taggers.bilstm:BiLSTM",
    "crf": "hogwild.programs.taggers.crf:CRF",
    "doc2vec": "hogwild.programs.words.doc2vec:Doc2Vec",
    "fm": "hogwild.programs.sparse.fm:FactorizationMachine",
    "linear": "hogwild.programs.sparse.linear:Linear",
    "matrix-factorization": "hogwild.programs.recommender.program:MatrixFactorization",
    "text_classifier": "hogwild.programs.sparse.text_classifier:TextClassifier",
    "sparse_mlp": "hogwild.programs.sparse.sparse_mlp:SparseMLP",
    "word2vec": "hogwild.programs.words.word2vec:Word2Vec",
}
"""Where the class of each program is; a model names its program, never a module, so that loading imports only these."""

MODULE = "module"
"""The program whose code is the user's."""

KIND = "model"
WEIGHTS = "weights.safetensors"
STRAY = (HogwildError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What a program may raise when options or arrays that somebody else wrote do not fit it."""


@dataclass(frozen=True)
class Model:
    """A trained program, and what it takes to read further samples for it.

    schema, feed_config: give both to `open_feed`, so that the same words get the same ids; feed_config is None for a
    model that was trained on arrays.
    metrics: as measured when it was saved, by name.
    """

    program: Program
    schema: dict[str, Any] = field(default_factory=dict)
    feed_config: FeedConfig | None = None
    labels: tuple[str, ...] = ()
    metrics: Metrics = field(default_factory=dict)


def save_model(
    path: str | PathLike[str],
    program: Program,
    *,
    feed_schema: Mapping[str, Any] | None = None,
    feed_config: FeedConfig | None = None,
    labels: Sequence[str] = (),
    metrics: Metrics | None = None,
    small: SmallConfig | None = None,
) -> None:
    """Save a model as the directory `path`, in one step: a reader sees the old model or the new one.

    feed_schema, feed_config: what turns further data into its features; those of the program by default.
    small: with fewer bits, or without some rows, for use: `SmallConfig(int8=True, pruned=0.5)`.

    Raises SaveError, with what stood at `path` untouched, when it cannot be written or is not a model of ours.

    Examples
    --------
    >>> save_model("spam-filter", program, labels=("ham", "spam"))      # doctest: +SKIP
    >>> load_model("spam-filter").labels                                # doctest: +SKIP
    ('ham', 'spam')
    """
    if not hasattr(program, "arrays"):
        raise ConfigError(f"{program!r} is no program; write save_model(path, program).")
    numbers = {name: value if math.isfinite(value) else None for name, value in (metrics or {}).items()}
    reading = feed_config or program.feed_config
    options, arrays = saved_parts(program, state=False) if small is None else program.compact(small.pruned)
    config: dict[str, Any] = {
        "program": program.name,
        "options": options,
        "labels": list(labels),
        "metrics": numbers,
        "feed": _feed_options(reading) if reading else None,
        "schema": dict(feed_schema or program.schema or {}),
    }
    if program.means:
        config["means"] = list(program.means)
    if small is None:
        write_sealed(Path(path), KIND, config, {WEIGHTS: arrays})
        return
    arrays, done = narrow(arrays, small.cells)
    config["small"] = {"cells": small.cells, "pruned": small.pruned, "arrays": done}
    write_sealed(Path(path), KIND, config, {WEIGHTS: arrays}, SMALL_VERSION)


def metrics_of(path: str | PathLike[str]) -> Metrics:
    """The metrics in a model, which is not loaded: its program may be a user's own."""
    return _metrics(read_sealed(Path(path), KIND).config, str(Path(path) / "config.json"))


def program_in(path: str | PathLike[str]) -> str:
    """The name of the program of a model, which is not loaded."""
    try:
        config = map_sealed(Path(path), KIND).config
    except FileNotFoundError:
        raise _missing(Path(path)) from None
    return str(_typed(config, "program", str, str(Path(path) / "config.json")))


def arrays_in(path: str | PathLike[str]) -> Arrays:
    """The arrays of a model, of which nothing is made: its code may be a user's."""
    sealed = read_sealed(Path(path), KIND)
    return widened(sealed.config, arrays_of(sealed, WEIGHTS, Path(path)), f"{Path(path) / WEIGHTS}")


def _missing(path: Path) -> ModelError:
    return ModelError(f"{path}: there is no such model; give the output directory of a finished training.")


def check_model_output(path: str | PathLike[str]) -> None:
    """Raise SaveError before a long training for what would keep `save_model` from saving after it."""
    check_sealed_output(Path(path), KIND)


def remove_model(path: str | PathLike[str]) -> None:
    """Remove a model that `save_model` saved; raises SaveError, with the model untouched, if it is none of ours."""
    remove_sealed(Path(path), KIND)


def load_model(path: str | PathLike[str], program: Program | None = None) -> Model:
    """Load the model in the directory `path`; executes nothing that stands in it.

    program: the user's own program, without weights, where the model is not of a program of this package.
    Raises ModelError, with the file and what to do, for whatever is missing, damaged, hostile or of another kind.
    """
    path = Path(path)
    try:
        sealed = read_sealed(path, KIND)
    except FileNotFoundError:
        raise _missing(path) from None
    config = sealed.config
    where = str(path / "config.json")
    name = _typed(config, "program", str, where)
    options = _typed(config, "options", dict, where)
    if program is None:
        program = _make(name, options, where)
    elif program.name != name:
        raise ModelError(f"{where}: is a model of the program {brief(name)}, not of {program.name!r}.")
    program.recall(options)
    arrays = widened(config, arrays_of(sealed, WEIGHTS, path), f"{path / WEIGHTS}")
    program.small = made_small(config, where)
    restore(program, arrays, f"{path / WEIGHTS}")
    program.schema, program.feed_config = _schema(config, where), _feed_config(config.get("feed"), where)
    program.means = _means(config, where)
    return Model(
        program=program,
        schema=program.schema,
        feed_config=program.feed_config,
        labels=_labels(config, where),
        metrics=_metrics(config, where),
    )


# -- parts that checkpoints share -------------------------------------------------------------------------------


def saved_parts(program: Program, state: bool) -> tuple[dict[str, Any], Arrays]:
    """Options and arrays of a program."""
    try:
        return (program.options(), program.arrays(state)) if state else program.saved()
    except NotImplementedError as error:
        raise SaveError(f"cannot save: {error}; give it options(), arrays() and restore().") from None


def arrays_of(sealed: Sealed, name: str, path: Path) -> Arrays:
    """The arrays in one file."""
    if name not in sealed.arrays:
        raise ModelError(f"{path / 'config.json'}: lists no {name}; copy the directory again from where it was made.")
    return sealed.arrays[name]


def widened(config: Mapping[str, Any], arrays: Arrays, where: str) -> Arrays:
    """The arrays of a model as float32, those of a small one too. where: the file that holds them."""
    return widen(arrays, config["small"].get("arrays"), where) if isinstance(config.get("small"), dict) else arrays


def made_small(config: Mapping[str, Any], where: str) -> str:
    """How a model was made smaller, in a word or two; "" for one that was not."""
    small = config.get("small")
    if small is None:
        return ""
    if not isinstance(small, dict) or small.get("cells") not in CELLS or type(small.get("pruned")) not in (int, float):
        raise ModelError(f"{where}: 'small' does not say how the model was made small; copy the directory again.")
    return ", ".join([small["cells"], *["pruned"] * (small["pruned"] != 0)])


def restore(program: Program, arrays: Arrays, where: str) -> None:
    """Give a program its arrays; what it refuses is an error of the file."""
    try:
        program.restore(arrays)
    except STRAY as error:
        raise ModelError(f"{where}: does not fit the program {program.name!r}: {shorten(error)}") from error


# -- parts of config.json ---------------------------------------------------------------------------------------


def _make(name: str, options: dict[str, Any], where: str) -> Program:
    """A program without weights."""
    if name == MODULE:
        raise ModelError(
            f"{where}: this is a PyTorch module made by {brief(options.get('made_by'))}, whose code no model holds; "
            "give --program, the function that makes its program (package.module:function); in Python the program "
            "itself, load_model(path, program)."
        )
    if name not in PROGRAMS:
        raise ModelError(
            f"{where}: the program {brief(name)} is not one of {', '.join(sorted(PROGRAMS))}; "
            "upgrade hogwild, or give load_model the program."
        )
    module, _, cls = PROGRAMS[name].partition(":")
    make = getattr(import_module(module), cls)
    try:
        program = make(**make.earlier(options))
    except STRAY as error:
        raise ModelError(f"{where}: these options make no {name!r} program: {shorten(error)}") from error
    assert isinstance(program, Program)
    return program


def _typed(config: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    if not isinstance(config.get(key), kind):
        raise ModelError(f"{where}: {key!r} is missing or of the wrong kind; copy the directory again.")
    return config[key]


def _schema(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    schema: dict[str, Any] = _typed(config, "schema", dict, where)
    try:
        check_schema(schema)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    return schema


def _means(config: Mapping[str, Any], where: str) -> list[float]:
    means = config.get("means", [])
    if not isinstance(means, list) or not all(type(mean) in (int, float) and math.isfinite(mean) for mean in means):
        raise ModelError(f"{where}: 'means' are not finite numbers; copy the directory again.")
    return [float(mean) for mean in means]


def _labels(config: Mapping[str, Any], where: str) -> tuple[str, ...]:
    labels = _typed(config, "labels", list, where)
    if not all(isinstance(label, str) for label in labels):
        raise ModelError(f"{where}: a label is not a text; copy the directory again.")
    return tuple(labels)


def _metrics(config: Mapping[str, Any], where: str) -> Metrics:
    metrics = _typed(config, "metrics", dict, where)
    if not all(value is None or type(value) in (int, float) for value in metrics.values()):
        raise ModelError(f"{where}: a metric is not a number; copy the directory again.")
    return {name: math.nan if value is None else float(value) for name, value in metrics.items()}


def _feed_options(config: FeedConfig) -> dict[str, Any]:
    # A shell command must not travel in a model, to be run by whoever predicts with it.
    return {name: value for name, value in asdict(config).items() if name not in ("pipe", "cache")}


def _feed_config(values: Any, where: str) -> FeedConfig | None:
    if values is None:
        return None
    known = options_of(FeedConfig)
    if not isinstance(values, dict) or "pipe" in values or not set(values) <= set(known):
        raise ModelError(f"{where}: 'feed' holds what no model of ours does; do not trust it, or upgrade hogwild.")
    try:
        given = {name: value for name, value in values.items() if value is not None or not known[name].optional}
        return FeedConfig(**{name: convert(known[name], value, f"feed.{name}") for name, value in given.items()})
    except STRAY as error:
        raise ModelError(f"{where}: {shorten(error)}") from error
