"""The weights of a factorization as named arrays: taken apart for saving, checked and put together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import ModelError
from hogwild.kernels.sparse.factorization import FactorWeights
from hogwild.programs.recommender.ranking import Seen
from hogwild.programs.saving.tensors import Arrays, no_others, required
from hogwild.programs.sparse.tables import put_together, take_apart

_LARGE = float(np.finfo(np.float32).max)
_SIDES = ("user", "item")
PLAIN = ("user_vectors", "user_biases", "item_vectors", "item_biases", "seen", "seen_offsets", "range", "unit")


def pack_state(weights: FactorWeights, rule: Any, penalty: Any, width: int) -> dict[str, npt.NDArray[Any]]:
    """What the update rule and the penalty remember of users and of items, by name."""
    found = {}
    for side, table in zip(_SIDES, weights, strict=True):
        parts = take_apart(table, rule, penalty, width)
        found.update({f"{side}s_{name}": part for name, part in parts.items() if name})
    return found


def range_of(arrays: Arrays) -> tuple[float, float, float]:
    """Mean, lowest and highest rating of training."""
    mean, lowest, highest = (float(value) for value in required(arrays, "range", (3,), np.float64))
    if lowest > highest or max(abs(mean), abs(lowest), abs(highest)) > _LARGE:
        raise ModelError("array range is no mean, lowest and highest rating; copy the model again.")
    return mean, lowest, highest


def unit_of(arrays: Arrays) -> float:
    """The unit that ratings are learnt in: a power of 4, so that nothing is rounded; 1 if the model tells none."""
    unit = float(required(arrays, "unit", (1,), np.float64)[0]) if "unit" in arrays else 1.0
    if not (1e-30 < unit < 1e30 and math.frexp(unit)[0] == 0.5 and math.frexp(unit)[1] % 2):
        raise ModelError("array unit is no power of 4; copy the model again.")
    return unit


def choose_unit(ratings: Floats) -> float:
    """The power of 4 that is nearest to the standard deviation of ratings; 1 where all are alike."""
    spread = float(ratings.std(dtype=np.float64))
    return 4.0 ** round(math.log(spread, 4)) if 1e-15 < spread < 1e15 else 1.0


def seen_of(arrays: Arrays, users: int, items: int) -> Seen:
    """The items of each user; compiled code will trust them."""
    offsets = required(arrays, "seen_offsets", (users + 1,), np.int64)
    seen = required(arrays, "seen", (int(offsets[-1]),), np.int32)
    sound = offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())
    if len(seen) and sound:
        rises = np.diff(seen.astype(np.int64)) > 0
        rises[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(seen))] - 1] = True
        sound = int(seen.min()) >= 0 and int(seen.max()) < items and bool(rises.all())
    if not sound:
        raise ModelError("the items that users have seen do not fit together; copy the model again.")
    return Seen(np.array(offsets), np.array(seen))


def unpack(
    arrays: Arrays, sizes: tuple[int, int], rule: Any, penalty: Any, shape: tuple[int, bool, float]
) -> FactorWeights:
    """Weights for so many users and items of `shape` (dim, whether there are biases, the unit of ratings)."""
    dim, bias, unit = shape
    tables, used = [], set(PLAIN)
    for side, rows in zip(_SIDES, sizes, strict=True):
        vectors = required(arrays, f"{side}_vectors", (rows, dim))
        biases = required(arrays, f"{side}_biases", (rows,))
        if unit != 1:
            vectors, biases = vectors / np.float32(math.sqrt(unit)), biases / np.float32(unit)
        whole = np.concatenate([vectors, biases[:, None]], axis=1) if bias else np.asarray(vectors)
        names = {name[len(side) + 2 :]: name for name in arrays if name.startswith(f"{side}s_")}
        used.update(names.values())
        width = dim + bias
        parts = {"": whole if width > 1 else whole[:, 0], **{part: arrays[name] for part, name in names.items()}}
        tables.append(put_together(parts, rule, penalty, width, rows))
    no_others(arrays, used, "a recommender")
    return FactorWeights(*tables)
