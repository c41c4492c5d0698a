"""Scores of one text at a time, for serving: all room is made beforehand, and one compiled call does the work."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.ids.tokens import make_bags
from hogwild.kernels.sparse.text_classifier import mean_of_text

_LENGTH = 1 << 14  # bytes of a text for which there is room from the beginning


class OneText:
    """From a text to the mean of its rows of `table` (features, width). Threads may share it: they take turns."""

    def __init__(self, hashing: Hashing, table: Floats, counted: bool) -> None:
        self._recipe, self._table, self._counted = hashing.recipe(), table, bool(counted)
        self._bounds, self._mean = np.zeros((1, 2), np.int64), np.zeros(table.shape[1], np.float32)
        self._lock = threading.Lock()
        self._make_room(_LENGTH)
        self._call = entry(mean_of_text, *self._arguments(np.frombuffer(b"a", np.uint8)))

    def _make_room(self, length: int) -> None:
        self._length, self._bags = length, make_bags(1, length, self._recipe.ngrams)

    def _arguments(self, data: Any) -> tuple[Any, ...]:
        return data, self._bounds, self._recipe, self._bags, self._table, self._counted, self._mean

    def mean(self, text: str) -> Floats:
        """The mean of the rows of a text."""
        try:
            data = np.frombuffer(text.encode(), np.uint8)
        except UnicodeEncodeError as error:
            raise InputError(f"the text is not Unicode at character {error.start + 1}; clean it first.") from None
        except AttributeError:
            raise InputError(f"one text is asked for, not {type(text).__name__}; predict takes a feed.") from None
        with self._lock, np.errstate(over="ignore"):
            if len(data) > self._length:
                self._make_room(2 * len(data))
            self._call(*self._arguments(data))
            return self._mean.copy()
