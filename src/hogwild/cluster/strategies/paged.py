"""Parameter actors hold the tables; a node borrows the rows of its next block, and brings back what it changed in them.

The rows of a block are announced by the node's fetcher, and on their way while the block before it is trained. They
may lack what that block changes: it is added when they are laid out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats
from hogwild.cluster.paging.blocks import Block, Need
from hogwild.cluster.paging.words import PagedWords
from hogwild.cluster.strategies.strategy import Member, Strategy
from hogwild.cluster.wire.link import Pending
from hogwild.cluster.wire.packing import Rows, unpack
from hogwild.cluster.wire.rounds import NEVER, Round
from hogwild.cluster.wire.values import part_of, values_of
from hogwild.executor.delta import RowIds

Cells = dict[str, tuple[RowIds, Floats]]
"""Of each table the numbers of rows, and what they hold."""


class Pages(NamedTuple):
    """What a node trains on in blocks. visits: of its epoch; every: of a block; fetcher: which announces rows."""

    program: PagedWords
    fetcher: Any
    visits: int
    every: int
    seed: int

    def block(self, epoch: int, number: int) -> Block | None:
        """The block after so many exchanges of an epoch; None after the last one."""
        before = epoch * self.visits
        first, last = (
            max(0, min(self.visits, (before // self.every + n) * self.every - before)) for n in (number, number + 1)
        )
        return self.program.block(epoch, number, (first, last)) if first < last else None


class Asked(NamedTuple):
    """Rows of a block that are under way."""

    block: Block
    need: Pending
    rows: list[Pending]


class Paged(Strategy):
    """All nodes meet at the parameter actors at every exchange."""

    def __init__(self, me: Member) -> None:
        super().__init__(me)
        assert me.pages is not None
        self._pages = me.pages
        self._ledger = me.open_ledger()
        self._block: Block | None = None
        self._start: Cells = {}  # the rows at hand, as they were
        self._ahead: Asked | None = None

    def begin(self, here: Round) -> None:
        """The block after an exchange, at the parameter actors' own values: all have brought everything."""
        block = self._pages.block(here.epoch, here.number)
        if block is not None and block != self._block:
            self._turn_to(self._ask(block, None), NEVER)
        self._look_ahead(here, None)

    def exchange(self, here: Round, leading: int | None) -> None:
        """Bring what changed; then the rows of the next block, unless all stand still."""
        sent = self._bring(here)
        if not here.whole:
            block = self._pages.block(here.epoch, here.number)
            ahead, self._ahead = self._ahead, None
            if block is not None and (ahead is None or ahead.block != block):
                ahead = self._ask(block, here)
            if block is not None and ahead is not None:
                self._turn_to(ahead, here)
            self._look_ahead(here, here)
        self._settle(sent)

    def _bring(self, here: Round) -> list[Pending]:
        assert self._block is not None
        me, at_hand = self.me, self._pages.program.rows
        (taken,) = self._ledger.take(me.form(here), leading=len(at_hand))
        mine = [rows._replace(numbers=at_hand[rows.numbers]) for rows in taken]
        sent = []
        for shard in range(me.config.shards):
            own = [self._of_shard(rows, shard) for rows in mine]
            packet = me.pack([rows for rows in own if len(rows.numbers)], here)
            sent.append(me.link.bring(shard, here, self._block, packet))
        return sent

    def _of_shard(self, rows: Rows, shard: int) -> Rows:
        places = np.flatnonzero(rows.numbers % self.me.config.shards == shard)
        return part_of(rows, places, self.me.tables[rows.table])

    def _settle(self, sent: list[Pending]) -> None:
        while sent:
            sent.pop().answer()

    def _look_ahead(self, here: Round, after: Round | None) -> None:
        """Ask for the rows of the block after the one that comes now."""
        block = self._pages.block(here.epoch, here.number + 1)
        if self.me.config.max_delay and block is not None and (self._ahead is None or self._ahead.block != block):
            self._ahead = self._ask(block, after)

    def _ask(self, block: Block, after: Round | None) -> Asked:
        config, link = self.me.config, self.me.link
        seed = self._pages.seed, self.me.rank, block.epoch, block.number
        need = self._pages.fetcher.announce.options(num_returns=2).remote(block, self._pages.program.pool, seed)
        rows = [link.borrow(shard, block, after, need) for shard in range(config.shards)]
        return Asked(block, Pending(need, "the fetcher's announcement", link.traffic), rows)

    def _turn_to(self, asked: Asked, here: Round) -> None:
        """The block's rows are laid out. here: what was brought last."""
        program, cells = self._pages.program, self._received(asked, here)
        program.turn_to(asked.block, Need(*asked.need.answer()), cells)
        count = len(program.rows)
        self._block = asked.block
        self._start = {name: getattr(program.weights, name)[:count].copy() for name in cells}
        self._ledger.rebase(count)

    def _received(self, asked: Asked, here: Round) -> Cells:
        """The cells of the rows of each table, from all parameter actors, with all that was changed here."""
        parts: dict[str, list[tuple[RowIds, Floats]]] = {
            name: [(np.zeros(0, np.int64), np.zeros((0, table.cells), np.float32))]
            for name, table in self.me.tables.items()
        }
        for pending in asked.rows:
            packet, known = pending.rows()
            for rows in unpack(packet, self.me.tables):
                values = values_of(rows, self.me.tables[rows.table])
                if known < here:
                    self._add_own(rows, values)
                parts[rows.table].append((rows.numbers, values))
        numbers = {name: np.concatenate([each[0] for each in found]) for name, found in parts.items()}
        return {name: (numbers[name], np.concatenate([each[1] for each in found])) for name, found in parts.items()}

    def _add_own(self, rows: Rows, values: Floats) -> None:
        """What was changed in the block before: these rows were lent without it."""
        program, name = self._pages.program, rows.table
        _, new, old = np.intersect1d(rows.numbers, program.rows, assume_unique=True, return_indices=True)
        values[new] += getattr(program.weights, name)[old] - self._start[name][old]


class AsynchronousPaged(Paged):
    """Nobody waits for other nodes."""

    in_step = False
