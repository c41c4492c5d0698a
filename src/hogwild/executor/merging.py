"""How workers with private copies merge: what changed is added to the common copy, so often that copies never drift.

Each worker keeps, for its private cells, a base (their value at the last merge); merging adds mine - base to the common
copy, under the lock of a slice, and takes over what others have added. No difference is lost: each is added exactly
once, by the worker that made it. How long a worker may go on alone is its `Pace`, and where copies overshoot, its
`Brake`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.kernels.loop.merge import merge_mixed_rows, merge_rows, show_rows, thrown_back

TIER_ROWS = 4096  # ranks below this are merged at every turn, below 4 times this at every fourth, and so on
DENSE_TURNS = 4  # turns in which a dense array comes round, at the most
DENSE_CELLS = 1 << 14  # of a dense array that are merged at once, at least: they take microseconds
_WATCHED = 512  # leading weights of an array by which one tells whether copies overshoot: those of the hottest rows
_SLOWER, _FASTER, _SAFE = 0.7, 1.1, 1.5  # the next stretch, where copies overshoot, do not, and by no means
_MEMORY = 0.8  # of what was seen before, at each turn


@dataclass
class Slice:
    """A part of a weight array that is merged at once. additive: see `Table`; shape: cells of a row, and how many of
    these are weights; lock: held by whoever merges it; merges: how often that was done."""

    master: Floats
    additive: Any
    shape: tuple[int, int]
    lock: threading.Lock
    start: int
    stop: int
    merges: int = 0

    def __post_init__(self) -> None:
        self.adds = bool(self.additive.all()), bool(self.additive.any())  # all of its cells, some of them

    def part(self, own: Floats) -> Part:
        """The part of a worker whose own array, flat, this is."""
        mine = own[self.start : self.stop]
        cells, width = self.shape
        watched = 0 if self.start else min(_WATCHED, len(mine) // cells * width)
        return Part(self, mine, mine.copy(), np.zeros((2, watched), np.float32))


@dataclass
class Part:
    """One worker's copy of a slice, and its value at the last merge. last: see `thrown_back`; seen: merges of the
    slice up to then."""

    slice: Slice
    mine: Floats
    base: Floats
    last: Floats
    seen: int = 0

    def merge(self) -> None:
        """Add what changed to the common copy, and take over what others added. The lock is held."""
        where = self.slice
        where.merges += 1
        self.seen = where.merges
        every, some = where.adds
        if every:
            merge_rows(where.master, self.mine, self.base)
        elif some:
            merge_mixed_rows(where.master, self.mine, self.base, where.additive)
        else:
            show_rows(where.master, self.mine, self.base)

    def refresh(self) -> None:
        """Take over the common copy as it is."""
        # Cells that are not additive too: what was paid at the end of the epoch belongs to the last value of all.
        self.mine[:] = self.base[:] = self.slice.master


class Tier:
    """Parts that come round in turn: one is merged at each turn of the worker."""

    def __init__(self, parts: list[Part], start: float) -> None:
        self.parts = parts
        # Each worker begins at a point of its own, so that they seldom meet at a slice.
        self._next = int(start * len(parts))

    def catch_up(self) -> None:
        """Take over what others have added, if they did so twice since this worker's last turn: it was long ago.

        Only to what is merged at every turn: rows that are not as hot are known late as it is.
        """
        part = self.parts[0]
        if len(self.parts) == 1 and part.slice.merges > part.seen + 1:
            with part.slice.lock:
                part.merge()

    def merge_next(self, brake: Brake) -> None:
        """Merge the next part."""
        part = self.parts[self._next]
        # Whoever finds the slice taken waits for microseconds. To leave it for the next turn would gain these, but a
        # worker that finds it taken again and again would drift away without limit.
        with part.slice.lock:
            if part.last.size:
                brake.look(part)
            part.merge()
        self._next = (self._next + 1) % len(self.parts)


class Pace(NamedTuple):
    """How far a worker with private copies may go alone, in visits.

    most: at any time; lead: all visits so far, divided by this, are a limit too (0: no such limit). Early steps are
    long and go the same way in every copy, so that their sum would go too far: copies begin close together, and what
    others have not seen stays a small share of what has been learnt. timed: a worker merges after every span, which
    lasts a millisecond, if not sooner.
    """

    most: int = 1 << 40
    lead: int = 0
    timed: bool = True

    def visits(self, done: int) -> int:
        """Visits that a worker may make until it merges, when so many have been made by all."""
        return max(1, min(self.most, done // self.lead)) if self.lead else self.most


ALONE = Pace()  # of one worker, or where nothing is private


class Brake:
    """Makes a worker merge sooner where copies overshoot.

    Where a copy comes close to its optimum between two merges, every copy goes the whole way there, and the sum of what
    k of them went is k times the way: whatever the data's size. It shows in the next stretch, in which each copy takes
    back what the others added (`thrown_back`). A copy that covers the share A of a way needs k A <= 1.
    """

    def __init__(self, workers: int) -> None:
        self.most = 1 << 40  # visits between two merges
        self._workers = workers
        self._part = self._whole = 0.0

    def look(self, part: Part) -> None:
        """Before a part is merged; its lock is held."""
        seen, whole = thrown_back(part.slice.master, part.mine, part.base, part.slice.shape, part.last)
        self._part += seen
        self._whole += whole

    def adjust(self, visits: int) -> None:
        """After a turn, so many visits after the last one."""
        if self._whole > 0.0:
            if self._workers * self._part > self._whole:
                self.most = max(1, int(_SLOWER * visits))
            elif self.most < 1 << 40:
                clearly = 2 * self._workers * self._part < self._whole
                self.most = int((_SAFE if clearly else _FASTER) * self.most) + 1
        self._part *= _MEMORY
        self._whole *= _MEMORY


class Copies:
    """The private copies of one worker, and what is still to be merged.

    The rows of a ranked array are merged the more often the hotter they are: ranks below 4,096 at every turn, each
    four times as many after that a quarter as often, so that each tier costs the same and merging everything is
    never at the price of the hot rows.
    """

    def __init__(self, weights: Any, private: int, tiers: list[Tier], brake: Brake, pace: Pace) -> None:
        self.weights = weights
        self.private = private
        self.tiers = tiers
        self.brake = brake
        self.ahead = 0  # visits since the last turn
        self.stretch = self.most(pace, 0)  # from there to the next, at the most

    def most(self, pace: Pace, done: int) -> int:
        """Visits from one turn to the next, at the most, when so many have been made by all."""
        return min(pace.visits(done), self.brake.most) if pace.lead else pace.most

    def catch_up(self) -> None:
        """Before a span that begins a stretch: others may have merged since the last turn, if that was long ago."""
        if self.ahead == 0:
            for tier in self.tiers:
                tier.catch_up()

    def merge_some(self, visits: int, due: int) -> None:
        """After a span: take a turn, if so many visits have been made since the last one."""
        self.ahead += visits
        if self.ahead >= due:
            for tier in self.tiers:
                tier.merge_next(self.brake)
            self.brake.adjust(self.ahead)
            self.ahead = 0

    def merge_all(self) -> None:
        """Add all that this worker has changed; the workers are parked."""
        for tier in self.tiers:
            for part in tier.parts:
                part.merge()

    def refresh(self) -> None:
        """Take over the common copy as it is; the workers are parked and everything is merged."""
        for tier in self.tiers:
            for part in tier.parts:
                part.refresh()


def tiers_of(flat: Floats, table: Table, rows: int) -> list[list[Slice]]:
    """The private rows of an array as tiers of slices; each tier has one slice merged a turn."""
    if rows == 0:
        return []
    if table.kind != "ranked":
        turns = max(1, min(DENSE_TURNS, rows * table.cells // DENSE_CELLS))
        return [_cut(flat, table, 0, rows, turns)]
    tiers = [_cut(flat, table, 0, min(rows, TIER_ROWS), 1)]
    first, turns = TIER_ROWS, 4
    while first < rows:
        tiers.append(_cut(flat, table, first, min(rows, 4 * first), turns))
        first, turns = 4 * first, 4 * turns
    return tiers


def _cut(flat: Floats, table: Table, first: int, last: int, pieces: int) -> list[Slice]:
    additive = table.mask()
    shape = table.cells, table.cells if table.width is None else table.width
    rows = [int(row) * table.cells for row in np.linspace(first, last, min(pieces, last - first) + 1)]
    return [Slice(flat[a:b], additive, shape, threading.Lock(), a, b) for a, b in pairwise(rows)]
