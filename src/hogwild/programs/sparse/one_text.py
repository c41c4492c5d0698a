"""Scores of one text at a time, for serving: all room is made beforehand, and one compiled call does the work."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.ids.tokens import make_bags
from hogwild.kernels.sparse.one_text import TextTable, score_text

_LENGTH = 1 << 14  # bytes of a text for which there is room from the beginning


class OneText:
    """From a text to its scores by a table. Threads may share it: they take turns."""

    def __init__(self, hashing: Hashing, table: TextTable) -> None:
        self._recipe, self._table = hashing.recipe(), table
        self._scores = np.zeros(len(table.bias), np.float32)
        self._lock = threading.Lock()
        self._make_room(_LENGTH)
        data = np.frombuffer(b"a", np.uint8)
        self._call = entry(score_text, data, self._recipe, self._bags, self._table, self._scores)

    def _make_room(self, length: int) -> None:
        self._length, self._bags = length, make_bags(1, length, self._recipe)

    def __call__(self, text: str) -> Floats:
        """The scores of a text."""
        try:
            data = np.frombuffer(text.encode(), np.uint8)
        except UnicodeEncodeError as error:
            raise InputError(f"the text is not Unicode at character {error.start + 1}; clean it first.") from None
        except AttributeError:
            raise InputError(f"one text is asked for, not {type(text).__name__}; predict takes a feed.") from None
        with self._lock:
            if len(data) > self._length:
                self._make_room(2 * len(data))
            self._call(data, self._recipe, self._bags, self._table, self._scores)
            return self._scores.copy()


def only_text(schema: Mapping[str, Any]) -> bool:
    """Whether the features are n-grams of one text column, and nothing else."""
    others = schema.get("numeric") or schema.get("categorical") or schema.get("multi")
    return bool(schema.get("text")) and not others and "hashing" in schema
