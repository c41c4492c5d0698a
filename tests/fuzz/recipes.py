"""Changes to models and checkpoints as JSON, applied behind the seal: sizes and checksums are made anew.

A recipe is a list: `["of", seed]`, then changes: `["set", place, value]` and `["drop", place]` for places in
config.json, `["array", file, name, how, number]` for arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from hogwild.programs.saving.sealed import Sealed, read_sealed, write_sealed

_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 1000, 2**31 - 1, 2**31, -(2**31), 2**40, 10**12, 2**62, 2**63 - 1, 2**63,
    -(2**63), 2**64 - 1, 0.5, -0.5, 1e30, 1e308, -1e308, 5e-324, float("inf"), float("nan"), "", "x", "1", "-1",
    "nan", "\0", "\ud800", "²", "a b", "a\nb", "x" * 100_000, [], [0], [-1], ["a"], ["a", "a"], [None], [[]],
    [1, "a", None], ["x" * 5000] * 20, list(range(50)), {}, {"a": 1}, {"": None}, {"name": "a"}, "auto", "sgd", "adam",
    "ftrl", "squared", "logistic", "hinge", "bpr", "words", "numbers", "hash", "yes", "no", "svmlight", "table",
    "balanced", "tanh",
)  # fmt: skip
_HOW = ("dtype", "flat", "axis", "fewer", "more", "none", "cell", "all", "drop", "twin", "swap")
_DTYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "|u1", "<u8")
_CELLS = (0, 1, -1, 2, 100, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1, 1e30, 1e308, np.nan, np.inf, -np.inf)


def open_seed(path: Path, kind: str) -> Sealed:
    """A valid directory, without what the seal itself says."""
    sealed = read_sealed(path, kind)
    config = {key: value for key, value in sealed.config.items() if key not in ("format", "version", "files")}
    return Sealed(config, sealed.arrays)


def seed_of(recipe: bytes) -> str:
    """What is changed."""
    return str(json.loads(recipe)[0][1])


def make_recipe(name: str, seed: Sealed, random: Random) -> bytes:
    """One to three changes."""
    places = list(_places(seed.config, []))
    arrays = [(file, name) for file, group in seed.arrays.items() for name in group]
    changes: list[Any] = [["of", name]]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if arrays and random.random() < 0.35:
            file, name = random.choice(arrays)
            changes.append(["array", file, name, random.choice(_HOW), random.randrange(1 << 20)])
        else:
            changes.append(_change(seed.config, random.choice(places), random))
    return json.dumps(changes).encode()


def apply_recipe(recipe: bytes, seed: Sealed, path: Path, kind: str) -> None:
    """Write the changed directory."""
    config, arrays = deepcopy(seed.config), {file: dict(group) for file, group in seed.arrays.items()}
    for what, *rest in json.loads(recipe)[1:]:
        if what == "array":
            file, name, how, number = rest
            if name in arrays[file]:
                _change_array(arrays[file], name, how, number)
            continue
        place, *value = rest
        try:
            parent: Any = config
            for key in place[:-1]:
                parent = parent[key]
            if what == "drop":
                del parent[place[-1]]
            else:
                parent[place[-1]] = value[0]
        except (LookupError, TypeError):
            pass  # an earlier change took the place away
    write_sealed(path, kind, config, arrays)


def _places(value: Any, place: list[Any]) -> Iterator[list[Any]]:
    """All places in config.json; of long lists the first few and the last."""
    if place:
        yield place
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], [*place, key])
    elif isinstance(value, list):
        for number in {*range(min(4, len(value))), len(value) - 1} - {-1}:
            yield from _places(value[number], [*place, number])


def _change(config: Any, place: list[Any], random: Random) -> list[Any]:
    value = config
    for key in place:
        value = value[key]
    if random.random() < 0.1:
        return ["drop", place]
    if isinstance(value, dict) and random.random() < 0.3:
        return ["set", [*place, "colour"], random.choice(_ODD)]
    if random.random() < 0.5:
        return ["set", place, random.choice(_ODD)]
    if isinstance(value, list) and value:
        others = (
            [*value, value[0]], value[1:], value[:-1], value[::-1], [*value, None], value * 2, [value],
            ["new", *value[1:]],
        )  # fmt: skip
        return ["set", place, random.choice(others)]
    if isinstance(value, bool) or value is None:
        return ["set", place, random.choice(_ODD)]
    if isinstance(value, int | float):
        return ["set", place, random.choice((value + 1, value - 1, -value, value * 2, value / 2, str(value), [value]))]
    if isinstance(value, str):
        others = (value + "x", value[:-1], value.upper(), value * 2000, [value], {value: 1})
        return ["set", place, random.choice(others)]
    return ["set", place, random.choice(_ODD)]


def _change_array(arrays: dict[str, Any], name: str, how: str, number: int) -> None:
    array = np.array(arrays[name])
    with np.errstate(all="ignore"):
        if how == "dtype":
            array = array.astype(_DTYPES[number % len(_DTYPES)])
        elif how == "flat":
            array = array.reshape(-1)
        elif how == "axis":
            array = array[..., None] if number % 2 else array[None]
        elif how == "fewer":
            array = array[: len(array) // 2] if array.ndim else array
        elif how == "more":
            array = np.concatenate([array, array[: 1 + number % 3]]) if array.ndim else array
        elif how == "none":
            array = array[:0] if array.ndim else array
        elif how == "cell" and array.size:
            _put(array.reshape(-1)[number % array.size :][:1], number)
        elif how == "all":
            _put(array, number)
        elif how == "drop":
            del arrays[name]
            return
        elif how == "twin":
            arrays[f"{name}_x"] = array
        elif how == "swap" and array.ndim:
            array = array[::-1]
    arrays[name] = np.ascontiguousarray(array)


def _put(cells: Any, number: int) -> None:
    value = _CELLS[number % len(_CELLS)]
    cells[...] = np.array(value, np.float64 if isinstance(value, float) else np.int64).astype(cells.dtype)
