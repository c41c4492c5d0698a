"""Small models: cells of 16 or 8 bits in place of 32, and rows of zeros left out; all is widened again when loaded.

An array `name` of float32 becomes `name` of fewer bits; with 8 bits `name.scale`, what the cells of a group are
multiplied by; and where rows are left out `name.kept`, a bit for each row. `config.json` says of each such array what
was done. A file can ask for no more than a few thousand times its own size: one row of 1024 is kept at least.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats
from hogwild.errors import ConfigError, ModelError, SaveError, brief
from hogwild.machine import check_memory
from hogwild.programs.saving.tensors import Arrays, damaged

Mask = npt.NDArray[np.bool_]

_LEAST = 64  # cells: shorter arrays stay as they are
_OWN_SCALE = 16  # cells of a row that has a scale for itself; narrower ones share one
_SHARED = 64  # cells that share a scale
_SPARSEST = 1024  # rows of which one is kept
_STEPS = 127  # of 8 bits, from 0 to the largest cell of a group
_LARGEST = {"float32": math.inf, "float16": 65504.0, "int8": 1e30}
_DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}
CELLS = tuple(_DTYPES)
"""What cells may be."""


# -- made smaller -----------------------------------------------------------------------------------------------------


def narrow(arrays: Arrays, cells: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays with cells of this kind, and what was done to each that has changed.

    Biases, short arrays, whole numbers and cells that the kind cannot hold stay as they are.
    """
    made: dict[str, npt.NDArray[Any]] = {}
    done: dict[str, Any] = {}
    for name, array in arrays.items():
        parts: dict[str, npt.NDArray[Any]] = {"": array}
        entry: dict[str, Any] = {}
        if array.dtype == np.float32 and array.size >= _LEAST and not name.endswith(("bias", "biases")):
            parts, entry = _narrowed(array, cells)
        if entry:
            done[name] = entry
        for part, found in parts.items():
            if name + part in made or (part and name + part in arrays):
                raise SaveError(f"there is an array {brief(name + part)} already; a small model needs the name.")
            made[name + part] = found
    return made, done


def _narrowed(array: npt.NDArray[Any], cells: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """An array in parts, by the end of their names; and what config.json says of it, nothing where it is as it was."""
    kept = _kept(array, _DTYPES[cells].itemsize)
    parts: dict[str, npt.NDArray[Any]] = {}
    entry: dict[str, Any] = {}
    if kept is not None:
        parts[".kept"], entry["rows"] = np.packbits(kept, bitorder="little"), len(array)
        array = array[kept]
    if cells != "float32" and float(np.abs(array).max()) <= _LARGEST[cells]:
        entry["dtype"] = cells
        if cells == "int8":
            width = array.size // len(array)
            group = entry["group"] = width if width >= _OWN_SCALE else _SHARED
            array, parts[".scale"] = _rounded(array, group)
        else:
            array = array.astype(np.float16)
    return {"": array, **parts}, {"dtype": "float32", **entry} if entry else {}


def _kept(array: npt.NDArray[Any], itemsize: int) -> Mask | None:
    """Which rows are stored, if that is smaller: those that are not all zeros, and one of 1024 at least."""
    rows = len(array)
    kept: Mask = np.asarray(array.reshape(rows, -1).any(axis=1))
    lacking = -(-rows // _SPARSEST) - int(np.count_nonzero(kept))
    if lacking > 0:
        kept[np.flatnonzero(~kept)[:lacking]] = True
    saved = (rows - int(np.count_nonzero(kept))) * (array.size // rows) * itemsize
    return kept if saved > -(-rows // 8) else None


def _rounded(array: Floats, group: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Whole numbers from -127 to 127, and for each group of cells what they are multiplied by."""
    flat = array.reshape(-1)
    largest = np.maximum.reduceat(np.abs(flat), np.arange(0, flat.size, group))
    scales = (largest / _STEPS).astype(np.float32)
    steps = np.repeat(np.where(scales > 0, scales, np.float32(1)), group)[: flat.size]
    return np.clip(np.rint(flat / steps), -_STEPS, _STEPS).astype(np.int8).reshape(array.shape), scales


def lightest(weights: npt.NDArray[Any], pruned: float, what: str) -> npt.NDArray[np.int64]:
    """Which of those that weigh something weigh least: a share of them, or so many.

    what: what they are, for the error where too many are to go.

    >>> lightest(np.array([3.0, 0.0, 1.0, 2.0, 4.0]), 0.5, "features").tolist()
    [2, 3]
    """
    there = np.flatnonzero(weights)
    count = left_out(len(there), pruned, f"{what} that weigh something")
    return np.sort(there[np.argsort(weights[there], kind="stable")[:count]])


def left_out(there: int, pruned: float, what: str) -> int:
    """How many are left out of so many. Raises ConfigError where none would stay."""
    count = round(pruned * there) if pruned < 1 else int(pruned)
    if count >= there:
        raise ConfigError(
            f"pruned is {pruned:g}, and the model has {there:,} {what}; leave out fewer."
        )
    return count


# -- widened again ----------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """How an array is widened, after every check. kept: None for all rows; scales: None for cells that have none."""

    stored: npt.NDArray[Any]
    rows: int
    kept: Mask | None
    scales: Floats | None
    group: int

    @property
    def size(self) -> int:
        """Cells of the wide array."""
        return self.rows * math.prod(self.stored.shape[1:])


def widen(arrays: Arrays, done: Any, where: str) -> dict[str, npt.NDArray[Any]]:
    """The inverse of `narrow`: float32 again. `where` begins the error message; nothing is allocated before all is
    checked."""
    if not isinstance(done, dict):
        raise damaged(where, "says nothing of its small arrays")
    left = dict(arrays)
    plans = {name: _plan(left, name, entry, where) for name, entry in done.items()}
    try:
        needed = CELL * sum(plan.size for plan in plans.values())
        check_memory(needed, f"{where}: its arrays need", "it takes a larger machine.")
    except ConfigError as error:
        raise ModelError(str(error)) from None
    return {**left, **{name: _widened(plan) for name, plan in plans.items()}}


def _plan(left: dict[str, npt.NDArray[Any]], name: str, entry: Any, where: str) -> _Plan:
    """Take the parts of an array out of what is left, and check them."""
    stored = left.pop(name, None)
    told = isinstance(entry, dict) and {"dtype"} <= set(entry) <= {"dtype", "rows", "group"}
    if stored is None or not stored.ndim or not told:
        raise damaged(where, f"the small array {brief(name)} is missing, or nobody says what it is")
    cells = entry["dtype"]
    if not isinstance(cells, str) or cells not in _DTYPES or stored.dtype != _DTYPES[cells] or not stored.size:
        raise damaged(where, f"the small array {brief(name)} is not of {brief(cells)}")
    scales, group = None, entry.get("group", 0)
    if (cells == "int8") != ("group" in entry) or type(group) is not int or not 0 <= group <= max(_SHARED, stored.size):
        raise damaged(where, f"the groups of {brief(name)} cannot be")
    if cells == "int8":
        scales = left.pop(f"{name}.scale", None)
        fits = scales is not None and scales.dtype == np.dtype("<f4") and group > 0
        if scales is None or not fits or scales.shape != (-(-stored.size // group),):
            raise damaged(where, f"the scales of {brief(name)} do not fit it")
        if not ((scales >= 0) & (scales <= np.finfo(np.float32).max / (_STEPS + 1))).all():
            raise damaged(where, f"a scale of {brief(name)} is no finite number from 0 on")
    elif not np.isfinite(stored).all():
        raise damaged(where, f"the small array {brief(name)} holds numbers that are not finite")
    rows, kept = len(stored), None
    if "rows" in entry:
        rows, bits = entry["rows"], left.pop(f"{name}.kept", None)
        fits = type(rows) is int and len(stored) <= rows <= _SPARSEST * len(stored)
        if not fits or bits is None or bits.dtype != np.uint8 or bits.shape != (-(-rows // 8),):
            raise damaged(where, f"the rows that are kept of {brief(name)} do not fit it")
        whole = np.unpackbits(bits, bitorder="little").view(np.bool_)
        if np.count_nonzero(whole) != len(stored) or whole[rows:].any():
            raise damaged(where, f"the rows that are kept of {brief(name)} are not as many as it has")
        kept = whole[:rows]
    return _Plan(stored, rows, kept, scales, group)


def _widened(plan: _Plan) -> Floats:
    cells = plan.stored.astype(np.float32)
    if plan.scales is not None:
        flat, whole = cells.reshape(-1), cells.size // plan.group * plan.group
        flat[:whole].reshape(-1, plan.group)[...] *= plan.scales[: whole // plan.group, None]
        flat[whole:] *= plan.scales[-1]
    if plan.kept is None:
        return cells
    wide = np.zeros((plan.rows, *cells.shape[1:]), np.float32)
    wide[plan.kept] = cells
    return wide
