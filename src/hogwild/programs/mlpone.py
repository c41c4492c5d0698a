"""One row at a time through embeddings and dense layers, for serving."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Room, ValuedSlotRows, make_scratch
from hogwild.errors import InputError
from hogwild.kernels.dense import batch_floats
from hogwild.kernels.jit import entry
from hogwild.kernels.sparse_mlp import MlpTask, score_batches

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
        self._call = entry(score_batches, task, self._row, of, self._scratch, self._scores, 0)

    def _make_room(self, entries: int) -> None:
        one = np.ones(1, np.float32)
        self._row = ValuedSlotRows(
            np.zeros(2, np.int64), np.zeros(entries, np.int32), np.zeros(entries, np.uint16),
            np.zeros((1, self._numbers), np.float32), one, one, np.ones(entries, np.float32),
        )  # fmt: skip

    def __call__(self, ids: Any, values: Any, slots: Any, dense: Any) -> Floats:
        """The scores of a row; features that are not known are left out."""
        own = np.asarray(ids, np.int64).reshape(-1)
        given = np.ones(len(own), np.float32) if values is None else np.asarray(values, np.float32)
        places = np.zeros(len(own), np.int64) if slots is None else np.asarray(slots, np.int64)
        numbers = np.zeros(0, np.float32) if dense is None else np.asarray(dense, np.float32)
        self._check(own, given, places, numbers)
        if len(own) and int(own.max()) >= self._features:
            known = own < self._features
            own, given, places = own[known], given[known], places[known]
        count = len(own)
        with self._lock:
            if count > len(self._row.ids):
                self._make_room(2 * count)
            row = self._row
            row.offsets[1] = count
            row.ids[:count], row.values[:count], row.slots[:count] = own, given, places
            row.dense[0] = numbers
            self._call(self._task, row, self.of, self._scratch, self._scores, 0)
            scores: Floats = self._scores[0].copy()
            return scores

    def _check(self, own: Any, given: Any, places: Any, numbers: npt.NDArray[Any]) -> None:
        if given.shape != own.shape or places.shape != own.shape or numbers.shape != (self._numbers,):
            raise InputError(
                f"one row has ids with as many values and slots, and {self._numbers} dense numbers; here are "
                f"{len(own)} ids, {given.size} values, {places.size} slots and {numbers.size} numbers."
            )
        if len(own) and own.min() < 0:
            raise InputError(f"feature {int(own.min())} does not exist; features are numbered from 0.")
        if len(own) and not 0 <= int(places.min()) <= int(places.max()) < max(1, self._slots):
            raise InputError(f"a slot lies outside 0 … {self._slots - 1}; the model's `slots` has their order.")
        if len(places) > 1 and (np.diff(places) < 0).any():
            raise InputError("the slots of a row are not in rising order; sort its features by slot.")
        if not (np.isfinite(given).all() and np.isfinite(numbers).all()):
            raise InputError("a value of the row is not a finite number.")
