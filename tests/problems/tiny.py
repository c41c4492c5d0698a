"""The smallest program that can be saved: a matrix, a vector, and the update rule's memory of the matrix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hogwild.programs.program import Program
from hogwild.programs.store import load_model, save_model


class TinyWeights(NamedTuple):
    matrix: Any
    bias: Any


class Tiny(Program):
    name = "tiny"

    def __init__(self, rows: int = 3, width: int = 2, value: float | None = None) -> None:
        self.rows, self.width = rows, width
        self.memory = np.zeros((rows, width), np.float32)
        if value is not None:
            self.fill(value)

    def fill(self, value: float) -> Tiny:
        """All weights and all memory have this value."""
        self.weights = TinyWeights(np.full((self.rows, self.width), value, np.float32), np.full(1, value, np.float32))
        self.memory = np.full((self.rows, self.width), value, np.float32)
        return self

    def startup(self, feed: Any, seed: int) -> None:
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        return {"rows": self.rows, "width": self.width}

    def arrays(self, state: bool = False) -> dict[str, Any]:
        found = self.weights._asdict()
        return {**found, "memory": self.memory} if state else found

    def restore(self, arrays: Mapping[str, Any]) -> None:
        if not {"matrix", "bias"} <= set(arrays) or arrays["matrix"].shape != (self.rows, self.width):
            raise ValueError("arrays do not fit")
        self.weights = TinyWeights(np.array(arrays["matrix"]), np.array(arrays["bias"]))
        if "memory" in arrays:
            self.memory = np.array(arrays["memory"])


def value_of(program: Tiny) -> float:
    """The one value of all weights; fails where they are a mixture."""
    values = np.unique(np.concatenate([program.weights.matrix.ravel(), program.weights.bias]))
    assert len(values) == 1, values
    return float(values[0])


def save(path: Path, value: float = 1.0, **about: Any) -> Path:
    """Save a program of one value."""
    save_model(path, Tiny(value=value), **about)
    return path


def value_at(path: Path) -> float:
    """The one value of a saved program."""
    model = load_model(path)
    assert isinstance(model.program, Tiny)
    return value_of(model.program)
