"""A parameter actor that holds a part of the rows, for nodes that have only those they need."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.cluster.paging.blocks import Block, Need
from hogwild.cluster.wire.combining import combine
from hogwild.cluster.wire.packing import Form, Packet, Rows, pack, unpack
from hogwild.cluster.wire.rounds import LONGEST, NEVER, Round
from hogwild.cluster.wire.values import rows_of, values_of
from hogwild.config.cluster import ClusterConfig
from hogwild.errors import ClusterError
from hogwild.executor.delta import RowIds

_LENT = 4  # blocks of a node that it may have asked for and not brought back


class Shelf:
    """Rows r with r % shards == shard of every table. Where nodes meet in rounds, their changes are combined when all
    have come; where they do not, with what others have changed in the same rows since they were lent."""

    def __init__(self, shard: int, config: ClusterConfig) -> None:
        self._shard, self._config = shard, config
        self._change = threading.Condition()
        self._aborted = ""

    def load(self, tables: Mapping[str, Table], count: int, attempt: int) -> None:
        """Begin anew, for so many nodes, with rows of zeros: `put` brings the others."""
        self._tables, self._count, self._attempt = dict(tables), count, attempt
        step = self._config.shards
        self._rows: dict[str, Floats] = {}  # what was there before goes first
        self._rows = {
            name: np.zeros((len(range(self._shard, table.rows, step)), table.cells), np.float32)
            for name, table in tables.items()
        }
        self._brought: dict[Round, dict[int, list[Rows]]] = {}
        self._lent: dict[int, dict[Block, list[tuple[str, RowIds, Floats]]]] = {rank: {} for rank in range(count)}
        self._known = [NEVER] * count  # the last round of each node's that the rows have in them
        self._aborted = ""

    # -- whole tables, piece by piece -------------------------------------------------------------------------------

    def put(self, table: str, first: int, cells: Floats) -> None:
        """Some of its rows, from the first-th of them on."""
        self._rows[table][first : first + len(cells)] = cells

    def get(self, table: str, first: int, last: int) -> Floats:
        """Some of its rows."""
        return self._rows[table][first:last]

    # -- nodes ------------------------------------------------------------------------------------------------------

    def lend(
        self, rank: int, block: Block, after: Round | None, words: RowIds, negatives: RowIds
    ) -> tuple[Packet, Round]:
        """Its rows of what a block needs, and the last round of the node's that they have in them; once the round
        `after` is over or, where nobody waits for others, this node itself has come to it."""
        with self._change:
            if after is not None:
                self._wait_for(after, rank)
            lent, form, known = [], self._form, self._known[rank]
            for name, numbers in Need(words, negatives).tables().items():
                own = numbers[numbers % self._config.shards == self._shard]
                lent.append((name, own, self._rows[name][own // self._config.shards]))
            if self._config.asynchronous:
                blocks = self._lent[rank]
                # Copies: these change when the node brings something, perhaps before the others are packed.
                blocks[block] = [(name, own, cells.copy()) for name, own, cells in lent]
                for old in sorted(blocks)[:-_LENT]:
                    del blocks[old]
        rows = [rows_of(name, own, cells, self._tables[name], form) for name, own, cells in lent if len(own)]
        return pack(rows, self._tables, form), known

    @property
    def _form(self) -> Form:
        """Of rows that are lent; their changes, which are smaller, may take 4 bits a cell."""
        return "int8" if self._config.deltas == "int4" else self._config.deltas

    def _wait_for(self, here: Round, rank: int) -> None:
        until, alone = time.monotonic() + LONGEST, self._config.asynchronous
        while self._known[rank] < here:
            if self._aborted:
                raise ClusterError(self._aborted)
            if not self._change.wait(max(0.0, until - time.monotonic())) and time.monotonic() >= until:
                there, all_nodes = self._brought.get(here, {}), [rank] if alone else range(self._count)
                missing = ", ".join(str(other) for other in all_nodes if other not in there)
                raise ClusterError(f"node {rank} waited {LONGEST:.0f} s for node {missing} at {here}.")

    def push(self, rank: int, here: Round, block: Block, packet: Packet) -> None:
        """What a node changed in a block; brought twice it counts once."""
        here.check(self._attempt)
        changes = unpack(packet, self._tables)
        with self._change:
            if self._known[rank] >= here:
                return
            if self._config.asynchronous:
                self._add_to_others(rank, block, changes)
                self._known[rank] = here
                self._change.notify_all()
                return
            brought = self._brought.setdefault(here, {})
            brought.setdefault(rank, changes)
            if len(brought) == self._count:
                many = [brought[member] for member in range(self._count)]
                for rows in combine(many, self._tables, self._config.combine, "float32"):
                    self._add(rows)
                self._known = [here] * self._count
                del self._brought[here]
                self._change.notify_all()

    def _add(self, rows: Rows) -> None:
        self._rows[rows.table][rows.numbers // self._config.shards] += values_of(rows, self._tables[rows.table])

    def _add_to_others(self, rank: int, block: Block, changes: list[Rows]) -> None:
        """What this node changed, and what others did since it borrowed the rows, as one change."""
        blocks = self._lent[rank]
        lent = {name: (numbers, cells) for name, numbers, cells in blocks[block]} if changes else {}
        for mine in changes:
            table, place = self._tables[mine.table], mine.numbers // self._config.shards
            numbers, before = lent[mine.table]
            others = self._rows[mine.table][place] - before[np.searchsorted(numbers, mine.numbers)]
            theirs = rows_of(mine.table, mine.numbers, others, table, "float32")
            (whole,) = combine([[theirs], [mine]], {mine.table: table}, self._config.combine, "float32")
            self._rows[mine.table][place] += values_of(whole, table) - others
            own = values_of(mine, table)
            for borrowed in blocks.values():  # where the node begins with these: its own change is nobody else's
                for name, numbers, cells in borrowed:
                    if name == mine.table:
                        _, one, two = np.intersect1d(numbers, mine.numbers, True, return_indices=True)
                        cells[one] += own[two]

    # -- as all processes of a run ----------------------------------------------------------------------------------

    def echo(self, packet: Packet) -> Packet:
        """As it came: a node measures its link."""
        return packet

    def abort(self, why: str) -> None:
        """Nobody waits any more."""
        with self._change:
            self._aborted = why
            self._change.notify_all()

    def pid(self) -> int:
        """Of its process."""
        return os.getpid()
