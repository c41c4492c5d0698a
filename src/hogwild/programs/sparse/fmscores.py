"""Scores of factorization machines: of a feed, and of one row at a time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, aligned_floats
from hogwild.errors import InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.optim.losses import Squared
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import Sgd
from hogwild.kernels.sparse.fm import Fields, FMTask, FMWeights, ValuedSlotEntries, score_one, score_rows
from hogwild.kernels.sparse.samples import Entries
from hogwild.programs.sparse.fmarrays import FMLayout
from hogwild.programs.sparse.tables import in_parts

_ENTRIES = 256  # of a row for which there is room from the beginning


def _plain_task(task: FMTask) -> FMTask:
    """The task for rows with nothing behind their weights: one compiled form for all update rules."""
    return task._replace(loss=Squared(), rule=Sgd(), factor_rule=Sgd(), penalty=Free())


def _layout(task: FMTask) -> FMLayout:
    fields = task.fields.count if isinstance(task.fields, Fields) else 1
    return FMLayout(Sgd(), Free(), fields, len(task.lanes))


def score_feed(task: FMTask, feed: Feed, plain: Floats, bias: Floats, threads: int) -> Floats:
    """One score a row, by (features, width) weights in the order of the feed."""
    scores = np.empty(len(feed), np.float32)
    weights, room = FMWeights(plain.reshape(-1), bias[:1].copy()), _layout(task).floats(feed.longest)

    def work(first: int, end: int) -> None:
        score_rows(_plain_task(task), feed.samples, weights, aligned_floats(room), scores[first:end], first)

    in_parts(len(feed), threads, work)
    return scores


class OneRow:
    """Scores one row at a time by (features, width) weights in the features' own order. Threads take turns."""

    def __init__(self, of: Any, task: FMTask, plain: Floats) -> None:
        self.of = of
        self._features, self._fields = len(plain), _layout(task).fields if isinstance(task.fields, Fields) else 0
        self._task = _plain_task(task)
        self._weights = FMWeights(plain.reshape(-1), of.bias[:1].copy())
        self._lock = threading.Lock()
        self._make_room(_ENTRIES)
        self._call = entry(score_one, self._task, self._entries(0), self._weights, self._floats)

    def _make_room(self, entries: int) -> None:
        self._floats = aligned_floats(_layout(self._task).floats(entries))
        self._ids, self._values = np.zeros(entries, np.int32), np.ones(entries, np.float32)
        self._slots = np.zeros(entries, np.uint16)

    def _entries(self, count: int) -> Any:
        if self._fields:
            return ValuedSlotEntries(self._ids[:count], self._slots[:count], self._values[:count])
        return Entries(self._ids[:count], self._values[:count])

    def __call__(self, ids: npt.ArrayLike, values: npt.ArrayLike | None, slots: npt.ArrayLike | None) -> float:
        """The score of a row; features that are not known are left out."""
        own = np.asarray(ids, np.int64).reshape(-1)
        count = len(own)
        numbers = np.ones(count, np.float32) if values is None else np.asarray(values, np.float32)
        fields = np.zeros(count, np.int64) if slots is None else np.asarray(slots, np.int64)
        if bool(self._fields) != (slots is not None) or numbers.shape != own.shape or fields.shape != own.shape:
            what = "ids, values and slots" if self._fields else "ids and values, and no slots"
            raise InputError(f"one row of this machine has {what}, as many of each; see predict_one.")
        if count and own.min() < 0:
            raise InputError(f"feature {int(own.min())} does not exist; features are numbered from 0.")
        if count and own.max() >= self._features:
            known = own < self._features
            own, numbers, fields = own[known], numbers[known], fields[known]
            count = len(own)
        if count and self._fields and not 0 <= int(fields.min()) <= int(fields.max()) < self._fields:
            raise InputError(f"a slot lies outside 0 … {self._fields - 1}; the model's `slots` has their order.")
        with self._lock:
            if count > len(self._ids):
                self._make_room(2 * count)
            self._ids[:count], self._values[:count], self._slots[:count] = own, numbers, fields
            return float(self._call(self._task, self._entries(count), self._weights, self._floats))
