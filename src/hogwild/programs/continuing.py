"""Going on from a trained model with more data: what it knows by name keeps its weights, what is new begins fresh.

One way for all programs. A program says what the rows and columns of its arrays are called (`Program.axes`); a fresh
one is started up on the data, in which everything that either knows has a place, and then has the numbers of the old
one wherever both have the same names. What update rules remember is not among them, and begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, brief
from hogwild.programs.program import Pair, Program
from hogwild.programs.store import Model, load_model

Places = npt.NDArray[np.intp]

FIXED = frozenset((
    "loss", "dim", "hidden", "activation", "lookup_activation", "combiner", "wide", "bias", "field_aware", "counts",
    "rich_edges", "rich_edge_pairs", "word_dim", "feature_dim", "layers", "recurrence", "output_layer", "letters",
    "letter_dim", "letter_filters", "cbow", "subwords",
))  # fmt: skip
"""Options that say what the weights of a model are: another one has no use for them."""
_FOUND = ("features", "classes", "users", "items", "tags", "names", "alphabet", "words", "pruned", "start_vectors")


def model_of(start: str | PathLike[str] | Program | Model) -> Program:
    """The trained program that is meant: of a directory, of a loaded model, or itself."""
    if isinstance(start, str | PathLike):
        start = load_model(start)
    program = start.program if isinstance(start, Model) else start
    if not isinstance(program, Program) or program.weights is None:
        raise ConfigError(f"start is {brief(start)}; give the directory of a model, or a program that was trained.")
    return program


def fitting_options(old: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a program that goes on from this one: its own, but for what is given; ConfigError where that
    does not fit its weights."""
    theirs = {name: value for name, value in old.options().items() if name not in _FOUND}
    for name, value in given.items():
        known = theirs.get(name, getattr(getattr(old, "config", None), name, value))
        asked = list(value) if isinstance(value, tuple) else value
        if name in FIXED and asked != "auto" and asked != known:
            raise ConfigError(
                f"{name} is {brief(value)}, and {brief(known)} in the model to start from; leave it out, or train "
                "a new model."
            )
    if given.get("optimizer", theirs.get("optimizer")) != theirs.get("optimizer"):
        theirs.pop("constants", None)  # they are the other rule's
    return {**theirs, **{name: value for name, value in given.items() if name not in FIXED}}


def options_given(program: Program) -> dict[str, Any]:
    """The options of a program that are not the usual ones."""
    config = getattr(program, "config", None)
    usual = vars(type(config)()) if config is not None else {}
    return {name: value for name, value in vars(config).items() if value != usual[name]} if config is not None else {}


def become(program: Program, old: Program) -> None:
    """Give a program without weights the options that a trained one of its kind has, but for those that are its own."""
    if type(program) is not type(old):
        raise ConfigError(
            f"the model to start from is of the program {old.name!r}, and {program.name!r} is to be trained; use "
            f"{type(old).__name__}."
        )
    if program.weights is not None:
        raise ConfigError("this program has weights, so it goes on from them; leave start out, or give a new program.")
    program.__init__(**fitting_options(old, options_given(program)))  # type: ignore[misc]  # the same object


def begin(program: Program, start: Any, data: Any, seed: int) -> tuple[Any, list[str]]:
    """Let a program without weights go on from a model with more data; returns the feed of it, and notes."""
    old = model_of(start)
    become(program, old)
    program.feed_config = first_reading(old.feed_config, old.schema) if old.feed_config else None
    feed = program.feed_from(data)
    feed = join(program, old, feed, None if feed is data else lambda like: program.feed_from(data, like))
    return feed, begin_from(program, old, feed, seed)


def first_reading(config: FeedConfig, schema: Mapping[str, Any] | None) -> FeedConfig:
    """How data is read in which there may be new categories: each column as the one that the model knows."""
    if not schema or schema.get("format") != "table":
        return config
    kinds: dict[str, Any] = {name: tuple(schema[name]) for name in ("numeric", "categorical")}
    return replace(config, label=schema["label"] if schema["header"] else config.label, **kinds)


def join(program: Program, old: Program, feed: Any, reopen: Callable[[Any], Any] | None = None) -> Any:
    """A feed of more data with all that the old model knows besides. reopen: reads the data once more, like a feed that
    it is given; None: there is nothing to read again."""
    program.feed_config, program.means = old.feed_config, old.means
    return program.joined(feed, old, reopen)


def begin_from(program: Program, old: Program, feed: Any, seed: int) -> list[str]:
    """Start a program up on such a feed, with the weights of the old one where both have the same names; returns what
    the user should know, a sentence each."""
    program.small = old.small
    program.expect(old, feed)
    if program.weights is not None:
        return []
    program.startup(feed, seed)
    program.finish(feed)
    notes, fresh = [], {name: array.copy() for name, array in program.arrays().items()}
    past, mine, theirs = old.arrays(), program.axes(), old.axes()
    counts: dict[str, tuple[int, int]] = {}
    for name, axes in mine.items():
        # Of a model with one output the axis of outputs may be left out.
        array, whole = (each.reshape((*each.shape, 1)[: len(axes)]) for each in (past[name], fresh[name]))
        places: list[tuple[Places, Places]] = []
        for side, (new, known) in enumerate(zip(axes, theirs[name], strict=True)):
            if isinstance(known, Pair) and not isinstance(new, Pair):
                array, known = _unfolded(array, side, known.half), known.names
            places.append(_matched(new, known, array.shape[side], whole.shape[side], name))
            if side == 0 and name in program.counted:
                counts[program.counted[name]] = len(places[0][0]), len(new)
        whole[np.ix_(*(at for at, _ in places))] = array[np.ix_(*(at for _, at in places))]
    program.restore(fresh)
    program.take_rest(old)
    for what, (kept, total) in counts.items():
        notes.append(f"{kept:,} of {total:,} {what} have their weights from the model; {total - kept:,} are new.")
    return notes


def _unfolded(array: Any, side: int, half: float) -> Any:
    """One output, the score of the second class, as one for each of the two."""
    return np.concatenate([-half * array, half * array], axis=side)


def _matched(new: Any, known: Any, before: int, now: int, array: str) -> tuple[Places, Places]:
    """Places along an axis of the new array, and those of the same names in the old one."""
    if new is None or isinstance(new, Pair):
        if before != now:
            raise ConfigError(
                f"the array {array} of the model to start from is {before} wide, and would be {now} here; its options "
                "or its columns are others."
            )
        return np.arange(now), np.arange(now)
    if isinstance(new, range) and isinstance(known, range):
        both = np.arange(min(len(new), len(known)))
        return both, both
    places = {name: place for place, name in enumerate(known)}
    pairs = [(place, places[name]) for place, name in enumerate(new) if name in places]
    found = np.array(pairs, np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]
