"""Rows of weights in a flat array: brought into an order of features and back, grown, taken apart for saving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids
from hogwild.errors import InputError, ModelError
from hogwild.kernels.optim.rules import cell_names, row_cells

Arrays = dict[str, npt.NDArray[Any]]


def ranked(table: Floats, cells: int, order: Ids | None) -> Floats:
    """Rows in the order of ranks: row r becomes that of feature order[r]."""
    return table if order is None else np.ascontiguousarray(table.reshape(-1, cells)[order]).reshape(-1)


def natural(table: Floats, cells: int, order: Ids | None) -> Floats:
    """The inverse of `ranked`: rows in the features' own order."""
    if order is None:
        return table
    rows = table.reshape(-1, cells)
    back = np.empty_like(rows)
    back[order] = rows
    return back.reshape(-1)


def whole_order(original: Ids | None, features: int, rows: int) -> Ids | None:
    """The order of a feed with `features` features, extended to a table of `rows` rows."""
    if original is None:
        return None
    if len(original) != features:
        raise InputError(f"the order of ids has {len(original)} entries for {features} features; the data is damaged.")
    if rows == features:
        return original
    return np.concatenate([original, np.arange(features, rows, dtype=np.int32)])


def grown(table: Floats, cells: int, rows: int) -> Floats:
    """The table with rows of zeros added up to `rows`."""
    missing = rows * cells - len(table)
    return table if missing <= 0 else np.concatenate([table, np.zeros(missing, np.float32)])


def take_apart(table: Floats, rule: Any, penalty: Any, width: int) -> Arrays:
    """Named arrays of a table: "" the weights, then what the update rule and the penalty remember, by name.

    Weights and slots are (rows,) or (rows, width), counts and stamps (rows,).
    """
    rows = table.reshape(-1, row_cells(rule, penalty, width))
    parts: Arrays = {}
    at = 0
    for name in ("", *cell_names(rule, penalty)):
        size = 1 if name in ("count", "stamp") else width
        part = rows[:, at : at + size]
        parts[name] = np.ascontiguousarray(part[:, 0] if size == 1 else part)
        at += size
    return parts


def put_together(parts: Mapping[str, npt.NDArray[Any]], rule: Any, penalty: Any, width: int, rows: int) -> Floats:
    """The inverse of `take_apart`; parts other than the weights may be missing all together, and are then zero."""
    table = np.zeros((rows, row_cells(rule, penalty, width)), np.float32)
    names = cell_names(rule, penalty)
    if len(parts) > 1 and set(parts) != {"", *names}:
        there = ", ".join(sorted(set(parts) - {""}))
        raise ModelError(f"this update rule remembers {', '.join(names) or 'nothing'}, but the arrays hold {there}.")
    at = 0
    for name in ("", *names):
        size = 1 if name in ("count", "stamp") else width
        if name in parts:
            part = parts[name]
            fits = part.shape in _shapes(rows, size)
            if not fits or part.dtype != np.float32 or not np.isfinite(part).all():
                shape = f"{rows} x {size}" if size > 1 else f"{rows}"
                raise ModelError(f"array {name or 'weight'} is {part.dtype} {part.shape}, not {shape} finite float32.")
            table[:, at : at + size] = part.reshape(rows, size)
        at += size
    return table.reshape(-1)


def _shapes(rows: int, size: int) -> list[tuple[int, ...]]:
    """A single row, and a single cell a row, are stored without that axis."""
    shapes: list[tuple[int, ...]] = [(rows, size)] if size > 1 else [(rows,)]
    return [*shapes, (size,)] if rows == 1 else shapes
