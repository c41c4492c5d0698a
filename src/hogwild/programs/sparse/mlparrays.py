"""Weights of embeddings with dense layers: made, cut into rows for sharing, and named for saving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Table
from hogwild.errors import ModelError, brief
from hogwild.kernels.nn.dense import layer_cells
from hogwild.kernels.nn.sparse_mlp import MlpTask, MlpWeights, MlpWeights1, MlpWeights2
from hogwild.kernels.optim.rules import SLOTS, Adam
from hogwild.programs.sparse.rowtable import put_together, take_apart
from hogwild.programs.sparse.tablespace import make_table

if TYPE_CHECKING:
    from hogwild.programs.sparse.sparse_mlp import SparseMLP

Arrays = dict[str, npt.NDArray[Any]]
REMEDY = "use a smaller --dim, fewer features (--hash-bits), or sgd."
_KINDS = (MlpWeights, MlpWeights1, MlpWeights2)


def layer_rows(task: MlpTask) -> int:
    """Rows of `width` cells that hold the dense layers."""
    return -(-task.cells // task.width)


def layer_tables(program: SparseMLP) -> dict[str, Table]:
    """How the dense layers, and what the update rule remembers of them, are shared."""
    task = program.task
    rows = layer_rows(task)
    tables = {"layers": Table(rows, task.width, "dense")}
    for name, (_, summed), more in zip(("first", "second"), SLOTS[type(task.rule)], (0, 1), strict=False):
        tables[name] = Table(rows + more, task.width, "dense", (summed,) * task.width)
    return tables


def new_weights(program: SparseMLP, rows: int, seed: int) -> Any:
    """A table of zeros, and dense layers of random numbers: He's for relu, Glorot's for tanh."""
    task = program.task
    whole = layer_rows(task) * task.width
    layers = np.zeros(whole, np.float32)
    random = np.random.default_rng(np.random.SeedSequence((seed, 4242)))
    at = 0
    for before, after in zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True):
        total = before if program.config.activation == "relu" else (before + after) / 2
        spread = np.sqrt((2 if program.config.activation == "relu" else 1) / max(total, 1))
        layers[at : at + before * after] = random.standard_normal(before * after, np.float32) * np.float32(spread)
        at += before * after + after
    slots = [np.zeros(whole + task.width * more, np.float32) for more in range(len(SLOTS[type(task.rule)]))]
    return _KINDS[len(slots)](make_table(rows, program.cells, REMEDY), layers, *slots)


def named_arrays(program: SparseMLP, weights: Any, state: bool) -> Arrays:
    """Arrays by name; the table is in the features' own order."""
    task = program.task
    dim = program.config.dim
    parts = take_apart(weights.table, program._rule, program._penalty, program.width)
    table = parts.pop("").reshape(-1, program.width)
    found: Arrays = {"embedding": np.ascontiguousarray(table[:, :dim])}
    if program.config.wide:
        found["wide"] = np.ascontiguousarray(table[:, dim:])
    at = 0
    for layer, (before, after) in enumerate(zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True), 1):
        end = at + before * after
        found[f"layer_{layer}_weight"] = weights.layers[at:end].reshape(before, after).copy()
        found[f"layer_{layer}_bias"] = weights.layers[end : end + after].copy()
        at = end + after
    if state:
        found.update({f"table_{name}": part for name, part in parts.items()})
        for name, array in zip(("first", "second"), weights[2:], strict=False):
            found[f"layers_{name}"] = array[: task.cells].copy()
        if isinstance(program._rule, Adam):
            found["layers_count"] = weights.second[-1:].copy()
    return found


def restored(program: SparseMLP, arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[Any, int]:
    """Weights from named arrays, and the number of features."""
    if program.classes is None or program.slots is None:
        raise ModelError("the options of the model do not say its classes and slots; it cannot be used.")
    task = program.task
    left = dict(arrays)
    shapes = _shapes(program, task)
    for name in shapes:
        if name not in left:
            raise ModelError(f"the model has no array {name!r}.")
    rows = len(left["embedding"])
    if rows != program.features or rows < 1:
        raise ModelError(f"the options say {program.features} features, but embedding has {rows} rows.")
    for name, shape in shapes.items():
        array = left[name]
        if array.shape != shape or array.dtype != np.float32 or not np.isfinite(array).all():
            raise ModelError(f"array {name} is {array.dtype} {array.shape}, not {shape} finite float32.")
    main = [left.pop("embedding")] + ([left.pop("wide")] if program.config.wide else [])
    parts = {"": np.concatenate(main, axis=1).reshape((rows, -1) if program.width > 1 else (rows,))}
    parts.update({name[6:]: left.pop(name) for name in list(left) if name.startswith("table_")})
    table = put_together(parts, program._rule, program._penalty, program.width, rows)
    weights = _layers_from(program, task, table, left)
    if left:
        raise ModelError(f"a model of this kind has no array {brief(min(left))}.")
    return weights, rows


def _shapes(program: SparseMLP, task: MlpTask) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedding": (program.features, program.config.dim)}
    if program.config.wide:
        shapes["wide"] = (program.features, program.outputs)
    for layer, (before, after) in enumerate(zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True), 1):
        shapes[f"layer_{layer}_weight"] = (before, after)
        shapes[f"layer_{layer}_bias"] = (after,)
    return shapes


def _layers_from(program: SparseMLP, task: MlpTask, table: Floats, left: Arrays) -> Any:
    whole = layer_rows(task) * task.width
    layers = np.zeros(whole, np.float32)
    at = 0
    for layer in range(1, len(task.sizes)):
        for name in (f"layer_{layer}_weight", f"layer_{layer}_bias"):
            array = left.pop(name).reshape(-1)
            layers[at : at + len(array)] = array
            at += len(array)
    assert at == layer_cells(task.sizes)
    count = len(SLOTS[type(task.rule)])
    slots = [np.zeros(whole + task.width * more, np.float32) for more in range(count)]
    for name, slot in zip(("layers_first", "layers_second"), slots, strict=False):
        if name in left:
            slot[: task.cells] = _finite(left.pop(name), name, task.cells)
    if isinstance(program._rule, Adam) and "layers_count" in left:
        slots[1][-1:] = _finite(left.pop("layers_count"), "layers_count", 1)
    return _KINDS[count](table, layers, *slots)


def _finite(array: npt.NDArray[Any], name: str, size: int) -> Floats:
    if array.shape != (size,) or array.dtype != np.float32 or not np.isfinite(array).all():
        raise ModelError(f"array {name} is {array.dtype} {array.shape}, not ({size},) finite float32.")
    return array
