"""The weights of a CRF as plain arrays: taken out of the tables that workers share, put back, averaged, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import ModelError, brief
from hogwild.kernels.crf.task import ChainWeights
from hogwild.kernels.simd.rows8 import LANES
from hogwild.programs.taggers.richpairs import RichPairs

Arrays = Mapping[str, npt.NDArray[Any]]
Shapes = tuple[tuple[int, int], ...]
_TABLES = ("nodes_table", "edges_table", "rich_table")
_MEANS = ("nodes_mean", "edges_mean", "rich_mean")


class Plain(NamedTuple):
    """nodes: (features, tags); edges: (tags, tags); rich: (pairs,)."""

    nodes: Floats
    edges: Floats
    rich: Floats


@dataclass(frozen=True)
class Mean:
    """A mean of weights at the ends of epochs, of which the k-th counts k times."""

    weights: Plain
    epochs: int


def take_in(mean: Mean | None, now: Plain) -> Mean:
    """The mean with one more epoch in it: (k - 1) / (k + 1) of the old one and 2 / (k + 1) of the new weights."""
    if mean is None:
        return Mean(now, 1)
    epochs = mean.epochs + 1
    share = np.float32(2 / (epochs + 1))
    return Mean(Plain(*(old + share * (new - old) for old, new in zip(mean.weights, now, strict=True))), epochs)


def plain(weights: ChainWeights, shapes: Shapes, tags: int, pairs: RichPairs, factor: np.float32) -> Plain:
    """Weights without what update rules remember and what fills rows up, times a factor."""
    nodes, edges, rich = (table.reshape(shape) for table, shape in zip(weights, shapes, strict=True))
    return Plain(nodes[:, :tags] * factor, edges[:, :tags] * factor, rich[:, :LANES].reshape(-1)[pairs.slots] * factor)


def put(found: Plain, weights: ChainWeights, shapes: Shapes, pairs: RichPairs) -> None:
    """The inverse of `plain`."""
    nodes, edges, rich = (table.reshape(shape) for table, shape in zip(weights, shapes, strict=True))
    tags = found.edges.shape[0]
    nodes[:, :tags], edges[:, :tags] = found.nodes, found.edges
    slots = pairs.slots
    rich[slots // LANES, slots % LANES] = found.rich


def pack(found: Plain, pairs: RichPairs) -> dict[str, npt.NDArray[Any]]:
    """Arrays to save."""
    return {**found._asdict(), "rich_starts": pairs.starts, "rich_pairs": pairs.pairs}


def unpack(arrays: Arrays, features: int, tags: int) -> tuple[Plain, RichPairs]:
    """The inverse of `pack`; checks names, kinds and shapes."""
    known = {*Plain._fields, "rich_starts", "rich_pairs", *_TABLES, *_MEANS, "clock", "mean_epochs"}
    if missing := {*Plain._fields, "rich_starts", "rich_pairs"} - set(arrays):
        raise ModelError(f"a CRF has the array {min(missing)!r}, which is not there.")
    if unknown := set(arrays) - known:
        raise ModelError(f"a CRF has no array {brief(min(unknown))}.")
    starts, numbers = arrays["rich_starts"], arrays["rich_pairs"]
    if starts.dtype != np.int64 or starts.ndim != 1 or numbers.dtype != np.int32 or numbers.ndim != 1:
        raise ModelError("rich_starts and rich_pairs must be lists of int64 and int32.")
    pairs = RichPairs(np.array(starts), np.array(numbers), tags).check(features)
    found = Plain(*(_checked(arrays, name, shape) for name, shape in zip(
        Plain._fields, ((features, tags), (tags, tags), (len(numbers),)), strict=True
    )))  # fmt: skip
    return found, pairs


def pack_state(weights: ChainWeights, clock: npt.NDArray[np.float64], mean: Mean | None) -> dict[str, npt.NDArray[Any]]:
    """What a run needs to go on."""
    found: dict[str, npt.NDArray[Any]] = {"clock": clock, **dict(zip(_TABLES, weights, strict=True))}
    if mean is not None:
        found.update(zip(_MEANS, mean.weights, strict=True))
        found["mean_epochs"] = np.array([mean.epochs], np.int64)
    return found


def tables_of(arrays: Arrays, shapes: Shapes) -> ChainWeights | None:
    """The tables of a run that goes on; None for a plain model."""
    if not set(_TABLES) & set(arrays):
        return None
    sizes = ((rows * cells,) for rows, cells in shapes)
    return ChainWeights(*(np.array(_checked(arrays, name, size)) for name, size in zip(_TABLES, sizes, strict=True)))


def clock_of(arrays: Arrays) -> npt.NDArray[np.float64]:
    """Time of the epoch, and sentences of the text."""
    clock = arrays.get("clock")
    sound = clock is not None and clock.shape == (2,) and clock.dtype == np.float64 and bool(np.isfinite(clock).all())
    if clock is None or not sound or clock[0] < 0 or clock[1] < 1 or clock[1] % 1:
        raise ModelError("the array clock must be two float64: a time from 0 on, and a number of sentences.")
    return clock


def mean_of(arrays: Arrays, like: Plain) -> Mean | None:
    """The mean of a run that goes on."""
    if not {*_MEANS, "mean_epochs"} & set(arrays):
        return None
    epochs = arrays.get("mean_epochs")
    if epochs is None or epochs.shape != (1,) or epochs.dtype != np.int64 or not epochs[0] >= 1:
        raise ModelError("the array mean_epochs must be one int64 of at least 1.")
    parts = (np.array(_checked(arrays, name, old.shape)) for name, old in zip(_MEANS, like, strict=True))
    return Mean(Plain(*parts), int(epochs[0]))


def _checked(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Floats:
    found = arrays.get(name)
    if found is None or found.dtype != np.float32 or found.shape != shape or not np.isfinite(found).all():
        what = "missing" if found is None else f"{found.dtype} {found.shape}"
        raise ModelError(f"array {name} is {what}, not {shape} finite float32.")
    return found
