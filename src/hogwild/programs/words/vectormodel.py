"""The vectors in the directory of a model: mapped, so that opening takes milliseconds and processes share memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import ModelError, brief
from hogwild.programs.saving.sealed import CONFIG, Mapped, map_sealed
from hogwild.programs.store import KIND, WEIGHTS

PROGRAM = "word2vec"


class MappedVectors(NamedTuple):
    """The matrix of a model, and what reads its words."""

    words: Callable[[], Sequence[str]]
    matrix: Floats


def program_of(path: Path) -> str:
    """The name of the program that the model in a directory is of."""
    name = _map(path, verify=False).config.get("program")
    return name if isinstance(name, str) else ""


def open_vectors(path: Path, verify: bool = False) -> MappedVectors:
    """Map the vectors of a model of words; raises ModelError for whatever is missing or does not fit."""
    mapped = _map(path, verify)
    where = path / CONFIG
    program = mapped.config.get("program")
    if program != PROGRAM:
        raise ModelError(f"{where}: a model of the program {brief(program)} has no word vectors; give another.")
    matrix = mapped.arrays.get(WEIGHTS, {}).get("vectors")
    if matrix is None or matrix.dtype != np.dtype("<f4") or matrix.ndim != 2 or 0 in matrix.shape:
        raise ModelError(f"{path / WEIGHTS}: holds no matrix `vectors` of float32; copy the directory again.")
    return MappedVectors(_words(mapped, where), matrix)


def _map(path: Path, verify: bool) -> Mapped:
    try:
        return map_sealed(path, KIND, verify)
    except FileNotFoundError:
        raise ModelError(
            f"{path}: there is no such model; give the output directory of a finished training, or a file of vectors."
        ) from None


def _words(mapped: Mapped, where: Path) -> Callable[[], Sequence[str]]:
    """The words: in a file of their own, or in the configuration where they are few."""
    if ("options", "words") in mapped.lists:
        return mapped.lists["options", "words"]
    options = mapped.config.get("options")
    words = options.get("words") if isinstance(options, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ModelError(f"{where}: lists no words; copy the directory again from where it was made.")
    return lambda: words


def holds_words(path: Path) -> bool:
    """Whether there are word vectors at the path: a file of them, or a model of words that can be opened."""
    try:
        return path.is_file() or program_of(path) == PROGRAM
    except ModelError:
        return False
