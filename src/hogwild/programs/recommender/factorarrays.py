"""The weights of a factorization as named arrays: taken apart for saving and predicting, checked and put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import ModelError, brief
from hogwild.kernels.sparse.factorization import FactorWeights
from hogwild.programs.recommender.ranking import Factors, Seen
from hogwild.programs.sparse.rowtable import put_together, take_apart

Arrays = Mapping[str, npt.NDArray[Any]]

_LARGE = float(np.finfo(np.float32).max)
_SIDES = ("user", "item")
_PLAIN = ("user_vectors", "user_biases", "item_vectors", "item_biases", "seen", "seen_offsets", "range")


def owing(weights: FactorWeights, cells: int) -> float:
    """The latest stamp: up to then every row would have paid, had all been touched."""
    return max(float(table[cells - 1 :: cells].max(initial=0.0)) for table in weights)


def factors_of(weights: FactorWeights, cells: int, dim: int, bias: bool, mean: float) -> Factors:
    """Vectors and biases; zeros where no biases are learnt."""
    parts: list[Any] = []
    for table in weights:
        rows = table.reshape(-1, cells)
        parts.append(np.ascontiguousarray(rows[:, :dim]))
        parts.append(rows[:, dim].copy() if bias else np.zeros(len(rows), np.float32))
    return Factors(parts[0], parts[1], parts[2], parts[3], mean)


def pack(factors: Factors, seen: Seen) -> dict[str, npt.NDArray[Any]]:
    """Named arrays."""
    return {**dict(zip(_PLAIN[:4], factors[:4], strict=True)), "seen": seen.items, "seen_offsets": seen.offsets}


def pack_state(weights: FactorWeights, rule: Any, penalty: Any, width: int) -> dict[str, npt.NDArray[Any]]:
    """What the update rule and the penalty remember of users and of items, by name."""
    found = {}
    for side, table in zip(_SIDES, weights, strict=True):
        parts = take_apart(table, rule, penalty, width)
        found.update({f"{side}s_{name}": part for name, part in parts.items() if name})
    return found


def range_of(arrays: Arrays) -> tuple[float, float, float]:
    """Mean, lowest and highest rating of training."""
    _require(arrays, "range", np.float64, (3,))
    mean, lowest, highest = (float(value) for value in arrays["range"])
    if lowest > highest or max(abs(mean), abs(lowest), abs(highest)) > _LARGE:
        raise ModelError("array range is no mean, lowest and highest rating; copy the model again.")
    return mean, lowest, highest


def seen_of(arrays: Arrays, users: int, items: int) -> Seen:
    """The items of each user; compiled code will trust them."""
    _require(arrays, "seen_offsets", np.int64, (users + 1,))
    offsets = arrays["seen_offsets"]
    _require(arrays, "seen", np.int32, (int(offsets[-1]),))
    seen = arrays["seen"]
    sound = offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())
    if len(seen) and sound:
        rises = np.diff(seen.astype(np.int64)) > 0
        rises[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(seen))] - 1] = True
        sound = int(seen.min()) >= 0 and int(seen.max()) < items and bool(rises.all())
    if not sound:
        raise ModelError("the items that users have seen do not fit together; copy the model again.")
    return Seen(np.array(offsets), np.array(seen))


def unpack(
    arrays: Arrays, sizes: tuple[int, int], rule: Any, penalty: Any, shape: tuple[int, bool]
) -> FactorWeights:
    """Weights for so many users and items of `shape` (dim, and whether there are biases)."""
    dim, bias = shape
    tables, used = [], set(_PLAIN)
    for side, rows in zip(_SIDES, sizes, strict=True):
        _require(arrays, f"{side}_vectors", np.float32, (rows, dim))
        _require(arrays, f"{side}_biases", np.float32, (rows,))
        vectors, biases = arrays[f"{side}_vectors"], arrays[f"{side}_biases"]
        whole = np.concatenate([vectors, biases[:, None]], axis=1) if bias else np.asarray(vectors)
        names = {name[len(side) + 2 :]: name for name in arrays if name.startswith(f"{side}s_")}
        used.update(names.values())
        width = dim + bias
        parts = {"": whole if width > 1 else whole[:, 0], **{part: arrays[name] for part, name in names.items()}}
        tables.append(put_together(parts, rule, penalty, width, rows))
    if unknown := set(arrays) - used:
        raise ModelError(f"a recommender has no array {brief(min(unknown))}.")
    return FactorWeights(*tables)


def _require(arrays: Arrays, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    found = arrays.get(name)
    if found is None:
        raise ModelError(f"array {name} is missing; there are {', '.join(arrays) or 'none'}.")
    if found.dtype != dtype or found.shape != shape:
        raise ModelError(f"array {name} is {found.dtype} {found.shape}, not {np.dtype(dtype)} {shape}.")
    if not np.isfinite(found).all():
        raise ModelError(f"array {name} holds numbers that are not finite; copy the model again.")
