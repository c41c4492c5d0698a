"""When nodes exchange, and which rows: the interval before anything is measured, and the tiers of ranked rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_UNITS = ((2, 200_000), (4, 50_000), (1 << 30, 20_000))  # of a node between exchanges, by nodes: as quality allows
PARTS = 48  # of a node's epoch between exchanges, at the least: a short text allows for less
_TIMES = 8  # in a run, about, that a row which changes is exchanged at the least


def usual_interval(visits: Sequence[int], units: float, step: int = 1) -> int:
    """Visits of a node between two exchanges, a multiple of `step`. visits: of each node in an epoch; units: of all.

    >>> usual_interval([10_000_000] * 2, 2e7), usual_interval([480, 480], 960)
    (200000, 10)
    """
    wanted = next(wanted for nodes, wanted in _UNITS if len(visits) <= nodes)
    each = units / max(1, sum(visits))
    return max(1, min(round(wanted / each), min(visits) // PARTS) // step) * step


class Tiers(NamedTuple):
    """The most frequent rows are exchanged every time, the next as many every second time, twice as many every fourth.

    rows: of the first tier, 0 where there are none; turns: exchanges after which all rows have had one.
    """

    rows: int
    turns: int

    @classmethod
    def of(cls, rows: int, exchanges: int) -> Tiers:
        """For a run of so many exchanges: turns double, but every row is exchanged some times, however short it is."""
        return cls(rows, 1 << max(0, round(math.log2(max(1, exchanges) / _TIMES))))

    def leading(self, number: int) -> int | None:
        """Rows that exchange `number` of an epoch has, from 1 on; None: all.

        >>> [Tiers(1024, 8).leading(number) for number in range(1, 9)]
        [1024, 2048, 1024, 4096, 1024, 2048, 1024, None]
        """
        turn = number & -number
        return None if self.rows == 0 or turn >= self.turns else self.rows * turn
