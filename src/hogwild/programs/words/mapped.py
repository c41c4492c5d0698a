"""The vectors in the directory of a model: mapped, so that opening takes milliseconds and processes share memory.

Those of a small model are widened, which takes memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.config import Word2VecConfig
from hogwild.errors import HogwildError, ModelError, brief
from hogwild.programs.saving.sealed import CONFIG, Mapped, map_sealed
from hogwild.programs.saving.tensors import Arrays
from hogwild.programs.store import KIND, WEIGHTS, widened
from hogwild.programs.words.subwords import Parts, Spelling

PROGRAM, DOCUMENTS = "word2vec", "doc2vec"
Kind = Literal["words", "documents"]
Counts = npt.NDArray[np.int64]


class Opened(NamedTuple):
    """What reads the words of a model, its matrix, mapped, how often each word occurred, and what words are made of."""

    read: Callable[[], Sequence[str]]
    matrix: Floats
    counts: Counts | None
    parts: Parts | None = None


def open_vectors(path: Path, verify: bool = False, kind: Kind = "words") -> Opened:
    """The vectors of a model, of its words or of its documents; raises ModelError for what does not fit."""
    mapped = _map(path, verify)
    where = path / CONFIG
    program = mapped.config.get("program")
    if program not in ((DOCUMENTS,) if kind == "documents" else (PROGRAM, DOCUMENTS)):
        what = "vectors of documents" if kind == "documents" else "word vectors"
        more = "; export it as .onnx or .safetensors" if program == "text_classifier" else "; give another"
        raise ModelError(f"{where}: a model of the program {brief(program)} has no {what}{more}.")
    arrays = widened(mapped.config, mapped.arrays.get(WEIGHTS, {}), f"{path / WEIGHTS}")
    if kind == "documents":
        return _documents(mapped, arrays, path)
    matrix = arrays.get("vectors")
    if matrix is None and program == DOCUMENTS and "documents" in arrays:
        raise ModelError(f"{path}: DBOW learnt vectors of documents alone; train with --words to have word vectors.")
    if matrix is None or matrix.dtype != np.dtype("<f4") or matrix.ndim != 2 or 0 in matrix.shape:
        raise ModelError(f"{path / WEIGHTS}: holds no matrix `vectors` of float32; copy the directory again.")
    counts = arrays.get("counts")
    if counts is not None and (counts.dtype != np.dtype("<i8") or counts.shape != matrix.shape[:1]):
        raise ModelError(f"{path / WEIGHTS}: its `counts` are no int64 for each word; copy the directory again.")
    name = "words" if program == PROGRAM else "vocabulary"
    return Opened(_words(mapped, where, name), matrix, counts, _parts(mapped.config.get("options"), arrays, path))


def _documents(mapped: Mapped, arrays: Arrays, path: Path) -> Opened:
    """The vectors of documents, by their tags or numbers."""
    matrix = arrays.get("documents")
    if matrix is None or matrix.dtype != np.dtype("<f4") or matrix.ndim != 2 or 0 in matrix.shape:
        raise ModelError(f"{path / WEIGHTS}: holds no matrix `documents` of float32; copy the directory again.")
    options = mapped.config.get("options")
    if isinstance(options, dict) and type(options.get("tags")) is int:
        size = len(matrix)
        return Opened(lambda: tuple(map(str, range(size))), matrix, None)
    return Opened(_words(mapped, path / CONFIG, "tags"), matrix, None)


def _parts(options: Any, arrays: Arrays, path: Path) -> Parts | None:
    """What words with subwords are made of; None where words are one whole."""
    if not isinstance(options, dict) or not options.get("subwords"):
        return None
    known = {item.name for item in fields(Word2VecConfig)}
    try:
        config = Word2VecConfig(**{name: value for name, value in options.items() if name in known})
    except HogwildError as error:
        raise ModelError(f"{path / CONFIG}: {error}") from None
    rows = len(arrays["vectors"])
    tables = {}
    for name, count in (("inputs", rows), ("grams", config.buckets), ("outputs", rows)):
        table = arrays.get(name)
        if table is None and name == "outputs":  # of a small model
            continue
        if table is None or table.dtype != np.dtype("<f4") or table.shape != (count, arrays["vectors"].shape[1]):
            raise ModelError(f"{path / WEIGHTS}: its `{name}` do not fit its vectors; copy the directory again.")
        tables[name] = table
    return Parts(Spelling(*config.letters, config.buckets), **tables, training=vars(config))


def _map(path: Path, verify: bool) -> Mapped:
    try:
        return map_sealed(path, KIND, verify)
    except FileNotFoundError:
        raise ModelError(
            f"{path}: there is no such model; give the output directory of a finished training, or a file of vectors."
        ) from None


def _words(mapped: Mapped, where: Path, name: str = "words") -> Callable[[], Sequence[str]]:
    """The words, or tags: in a file of their own, or in the configuration where they are few."""
    if ("options", name) in mapped.lists:
        return mapped.lists["options", name]
    options = mapped.config.get("options")
    words = options.get(name) if isinstance(options, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{where}: lists no {name}; copy the directory again from where it was made.")
    return lambda: words


def holds_words(path: Path) -> bool:
    """Whether there are word vectors at the path: a file of them, or a model of words that can be opened."""
    try:
        return path.is_file() or _map(path, verify=False).config.get("program") == PROGRAM
    except ModelError:
        return False
