"""Rows of factorization machines: how they are made up, what they begin with, and the arrays they are saved as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids
from hogwild.errors import ModelError, brief
from hogwild.kernels.optim.init import draw_rows
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import row_cells
from hogwild.kernels.simd.rules8 import EIGHT
from hogwild.programs.sparse.rowtable import put_together, take_apart
from hogwild.programs.sparse.tablespace import make_table

Arrays = dict[str, npt.NDArray[Any]]
_REMEDY = "use fewer factors (--dim), fewer features (--hash-bits), or sgd, which remembers nothing."


class FMLayout(NamedTuple):
    """Update rule and penalty, fields (1 for a plain machine), factors of a feature for each field."""

    rule: Any
    penalty: Any
    fields: int
    dim: int

    @property
    def width(self) -> int:
        """Weights in a row: one, and the factors."""
        return 1 + self.fields * self.dim

    @property
    def cells(self) -> int:
        """Cells of a row: the weights, and what is remembered of them."""
        return row_cells(self.rule, self.penalty, self.width)

    def floats(self, longest: int) -> int:
        """Numbers that a visit to a sample of so many features works with: see kernels/sparse/fm.py."""
        return (self.fields + longest) * -(-self.fields * self.dim // EIGHT) * EIGHT

    def split(self, name: str, part: npt.NDArray[Any]) -> Arrays:
        """(rows, width) numbers as those of weights and those of factors."""
        rows = part.reshape(-1, self.width)
        end = f"_{name}" if name else ""
        found = {f"weight{end}": rows[:, 0].copy()}
        if self.dim:
            shape = (len(rows), self.fields, self.dim) if self.fields > 1 else (len(rows), self.dim)
            found[f"factors{end}"] = rows[:, 1:].reshape(shape).copy()
        return found


def new_table(rows: int, cells: int) -> Floats:
    """Zeros; ConfigError, before anything is allocated, where they need more memory than there is."""
    return make_table(rows, cells, _REMEDY)


def start_factors(table: Floats, layout: FMLayout, order: Ids | None, known: int, seed: int, scale: float) -> None:
    """Random factors, of standard deviation `scale`, for features from `known` on; they depend on seed and feature."""
    rows = len(table) // layout.cells
    if known >= rows or not layout.dim:
        return
    features = np.zeros(0, np.int32) if order is None else order
    spread = np.float32(scale * 3**0.5)  # of the uniform distribution
    draw_rows(table, layout.cells, layout.width, features, np.array([known, rows]), np.uint64(seed), spread)
    weights = table.reshape(-1, layout.cells)[:, 0]
    weights[slice(known, None) if order is None else order >= known] = 0


def save_arrays(layout: FMLayout, table: Floats, bias: Floats) -> Arrays:
    """Named arrays of rows in the features' own order, with all that is remembered of them."""
    found: Arrays = {}
    for name, part in take_apart(table, layout.rule, layout.penalty, layout.width).items():
        found.update({f"weight_{name}": part} if name in ("count", "stamp") else layout.split(name, part))
    for name, part in take_apart(bias, layout.rule, Free(), 1).items():
        found[f"bias_{name}" if name else "bias"] = part.reshape(-1)
    return found


def load_arrays(layout: FMLayout, arrays: Mapping[str, npt.NDArray[Any]], features: int) -> tuple[Floats, Floats]:
    """The inverse of `save_arrays`; what is remembered may be missing all together, and is then zero."""
    needed = ["weight", "bias", *["factors"] * bool(layout.dim)]
    if missing := [name for name in needed if name not in arrays]:
        raise ModelError(f"a factorization machine has the arrays {', '.join(needed)}; {missing[0]} is missing.")
    rows = len(arrays["weight"]) if arrays["weight"].ndim == 1 else 0
    if rows < 1 or (features and rows != features):
        raise ModelError(f"the options say {features} features, but weight is {arrays['weight'].shape}.")
    left = dict(arrays)
    owner = "factors_" if layout.dim else "weight_"
    slots = [key[len(owner) :] for key in arrays if key.startswith(owner)]
    names = ["", *(name for name in slots if name not in ("count", "stamp"))]
    parts = {name: _joined(layout, left, name, rows) for name in names}
    parts.update({key[7:]: left.pop(key) for key in list(left) if key.startswith("weight_")})
    biases = {key[5:]: left.pop(key) for key in list(left) if key == "bias" or key.startswith("bias_")}
    if left:
        raise ModelError(f"a factorization machine has no array {brief(min(left))}.")
    table = put_together(parts, layout.rule, layout.penalty, layout.width, rows)
    return table, put_together(biases, layout.rule, Free(), 1, 1)


def _joined(layout: FMLayout, left: Arrays, name: str, rows: int) -> npt.NDArray[Any]:
    """Weights and factors of one name as (rows, width)."""
    end = f"_{name}" if name else ""
    weight = left.pop(f"weight{end}", np.zeros(0, np.float32))
    if not layout.dim:
        return weight
    factors = left.pop(f"factors{end}")
    shape = (rows, layout.fields, layout.dim) if layout.fields > 1 else (rows, layout.dim)
    if weight.shape != (rows,) or factors.shape != shape or factors.dtype != np.float32 or weight.dtype != np.float32:
        raise ModelError(f"weight{end} is {weight.shape}, factors{end} {factors.shape}, not float32 of {rows} rows.")
    return np.concatenate([weight[:, None], factors.reshape(rows, -1)], axis=1)
