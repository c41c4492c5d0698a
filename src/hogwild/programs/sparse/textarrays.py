"""The arrays of a text classifier as they are saved: without the cells that only fill cache lines, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import ModelError, brief
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import cell_names
from hogwild.kernels.sparse.text_classifier import TextWeights
from hogwild.programs.sparse.rowtable import put_together, take_apart

if TYPE_CHECKING:
    from hogwild.programs.sparse.text_classifier import TextClassifier

Arrays = dict[str, npt.NDArray[Any]]
_ONE_A_ROW = ("count", "stamp")


def split_arrays(program: TextClassifier, weights: TextWeights, state: bool) -> Arrays:
    """embedding, output and bias by name; with `state` what the update rule remembers of each, after its name."""
    task, width, dim = program.task, program.width, program.dim
    found: Arrays = {}
    for name, part in take_apart(weights.table, task.rule, task.penalty, width).items():
        if state or not name:
            found[_named("embedding", name)] = part if name in _ONE_A_ROW else np.ascontiguousarray(part[:, :dim])
    for name, part in take_apart(weights.outputs, task.rule, Free(), width + 1).items():
        if name in _ONE_A_ROW and state:
            found[_named("output", name)] = part
        elif state or not name:
            found[_named("output", name)] = np.ascontiguousarray(part[:, :dim])
            found[_named("bias", name)] = np.ascontiguousarray(part[:, width])
    return found


def join_arrays(program: TextClassifier, arrays: Mapping[str, npt.NDArray[Any]]) -> TextWeights:
    """The inverse of `split_arrays`, checked; without state, the update rule remembers nothing."""
    if program.classes is None:
        raise ModelError("the options of the model do not say its classes; it cannot be used.")
    if missing := [name for name in ("embedding", "output", "bias") if name not in arrays]:
        raise ModelError(f"a text classifier has the array {missing[0]}; these are {', '.join(arrays) or 'none'}.")
    task, width, dim, outputs = program.task, program.width, program.dim, program.outputs
    rows = len(arrays["embedding"]) if arrays["embedding"].ndim else 0
    if program.features and rows != program.features:
        raise ModelError(f"the options say {program.features} features, but embedding has {rows} rows.")
    saved = [name for name in cell_names(task.rule, task.penalty) if _named("embedding", name) in arrays]
    used: set[str] = set()

    def take(owner: str, name: str, shape: tuple[int, ...]) -> Floats:
        known = _named(owner, name)
        used.add(known)
        found = arrays.get(known)
        if found is None or found.shape != shape or found.dtype != np.float32:
            what = "missing" if found is None else f"{found.dtype} {found.shape}"
            raise ModelError(f"array {known} is {what}, not float32 of shape {shape}.")
        return found

    table: Arrays = {}
    for name in ("", *saved):
        plain = name in _ONE_A_ROW
        part = take("embedding", name, (rows,) if plain else (rows, dim))
        table[name] = part if plain else _padded(part, width)
    layer: Arrays = {}
    for name in ("", *(name for name in saved if name != "stamp")):
        if name in _ONE_A_ROW:
            layer[name] = take("output", name, (outputs,))
        else:
            layer[name] = _padded(take("output", name, (outputs, dim)), width + 1)
            layer[name][:, width] = take("bias", name, (outputs,))
    if unknown := set(arrays) - used:
        raise ModelError(f"a text classifier of these options has no array {brief(min(unknown))}.")
    return TextWeights(
        put_together(table, task.rule, task.penalty, width, rows),
        put_together(layer, task.rule, Free(), width + 1, outputs),
    )


def _padded(part: Floats, width: int) -> Floats:
    """With zeros up to so many columns."""
    wide = np.zeros((len(part), width), np.float32)
    wide[:, : part.shape[1]] = part
    return wide


def _named(owner: str, part: str) -> str:
    return f"{owner}_{part}" if part else owner
