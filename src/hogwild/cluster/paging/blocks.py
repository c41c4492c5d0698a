"""Blocks of a text between two exchanges, and the rows that each needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Ids
from hogwild.executor.delta import RowIds


class Block(NamedTuple):
    """A block of an epoch: its number in it, and where its words begin and end, with those that are seen from it."""

    epoch: int
    number: int
    first: int
    last: int


class Need(NamedTuple):
    """Rows of the words of a block, rising; and negatives to draw from, as often as they were drawn."""

    words: RowIds
    negatives: RowIds

    @property
    def rows(self) -> RowIds:
        """All of them, rising."""
        return np.union1d(self.words, self.negatives)

    def tables(self) -> dict[str, RowIds]:
        """The rows of each table: words are seen from themselves and from others, negatives only from others."""
        return {"inputs": self.words, "outputs": self.rows}


def need_of(ids: Ids, noise: tuple[Any, Ids], pool: int, seed: tuple[int, ...]) -> Need:
    """What some ids of a text need. noise: chances and aliases (`alias_table`) of which `pool` negatives are drawn."""
    words = np.unique(ids).astype(np.int64)
    return Need(words[words >= 0], draw_pool(*noise, pool, seed))


def draw_pool(chance: Any, alias: Ids, pool: int, seed: tuple[int, ...]) -> RowIds:
    """So many random words, as `draw_word` draws them."""
    random = np.random.default_rng(seed)
    column = random.integers(len(chance), size=pool)
    stays = random.integers(1 << 32, size=pool) < chance[column]
    return np.where(stays, column, alias[column]).astype(np.int64)
