"""One row at a time through embeddings and dense layers, for serving."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from hogwild.arrays import Floats, Room, ValuedSlotRows, make_scratch
from hogwild.errors import InputError
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.nn.dense import batch_floats
from hogwild.kernels.nn.sparse_mlp import NO_FEATURE, NO_SLOT, NOT_FINITE, UNSORTED, MlpTask, score_batches, take_row

_ENTRIES = 256  # of a row for which there is room from the beginning


class OneRow:
    """Scores one row by weights in the features' own order, in arrays that are made once. Threads take turns."""

    def __init__(self, of: Any, task: MlpTask, features: int, shape: tuple[int, int]) -> None:
        self.of = of
        self._task, self._features = task, features
        self._slots, self._numbers = shape
        self._lock = threading.Lock()
        self._scratch = make_scratch(Room(1, 1, batch_floats(task.sizes, 1), 1), np.uint64(0))
        self._scores = np.zeros((1, int(task.sizes[-1])), np.float32)
        self._make_room(_ENTRIES)
        none = np.zeros(0, np.float32), np.zeros(0, np.int64)
        self._take = entry(take_row, none[1], none[0], none[1], none[0], 0, 0, self._row)
        self._call = entry(score_batches, task, self._row, of, self._scratch, self._scores, 0)

    def _make_room(self, entries: int) -> None:
        one = np.ones(1, np.float32)
        self._row = ValuedSlotRows(
            np.zeros(2, np.int64), np.zeros(entries, np.int32), np.zeros(entries, np.uint16),
            np.zeros((1, self._numbers), np.float32), one, one, np.ones(entries, np.float32),
        )  # fmt: skip

    def __call__(self, ids: Any, values: Any, slots: Any, dense: Any) -> Floats:
        """The scores of a row; features that are not known are left out."""
        own = np.ascontiguousarray(ids, np.int64).reshape(-1)
        count = len(own)
        given = np.ones(count, np.float32) if values is None else np.ascontiguousarray(values, np.float32)
        places = np.zeros(count, np.int64) if slots is None else np.ascontiguousarray(slots, np.int64)
        numbers = np.zeros(0, np.float32) if dense is None else np.ascontiguousarray(dense, np.float32)
        if given.shape != own.shape or places.shape != own.shape or numbers.shape != (self._numbers,):
            raise InputError(
                f"one row has ids with as many values and slots, and {self._numbers} dense numbers; here are "
                f"{len(own)} ids, {given.size} values, {places.size} slots and {numbers.size} numbers."
            )
        with self._lock:
            if count > len(self._row.ids):
                self._make_room(2 * count)
            found = self._take(own, given, places, numbers, self._features, max(1, self._slots), self._row)
            if found < 0:
                raise InputError(self._explained(found, own))
            self._call(self._task, self._row, self.of, self._scratch, self._scores, 0)
            scores: Floats = self._scores[0].copy()
            return scores

    def _explained(self, code: int, own: Any) -> str:
        return {
            NO_FEATURE: f"feature {int(own.min())} does not exist; features are numbered from 0.",
            NO_SLOT: f"a slot lies outside 0 … {self._slots - 1}; the model's `slots` has their order.",
            UNSORTED: "the slots of a row are not in rising order; sort its features by slot.",
            NOT_FINITE: "a value of the row is not a finite number.",
        }[code]
