"""Scores of a block of visits, of which each node has a part: summed by owners of rows of them, the same for all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.cluster.strategies.average import Average
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.rounds import Round
from hogwild.errors import ClusterError

CELLS = 64  # scores that are rounded together


class Scores(NamedTuple):
    """Scores as rows of a table, the last one filled up with zeros."""

    scores: Floats


def table_of(most: int) -> dict[str, Table]:
    """For so many scores at the most."""
    return {"scores": Table(-(-most // CELLS), CELLS, "ranked")}


class Columns(Average):
    """All-reduce of scores: row r of them is summed by node r % n. A node trains block by block, and calls `send_out`
    and `bring_in` itself."""

    levels = False

    def exchange(self, here: Round, leading: int | None) -> None:
        """Nothing: nodes have no changes of rows in common."""

    def send_out(self, here: Round, scores: Floats) -> list[Any]:
        """Let the scores of a block go; returns what `bring_in` needs."""
        rows, ledger = self._open(len(scores))
        rows.reshape(-1)[: len(scores)] = scores
        taken = ledger.take(self.me.form(here), self.owners, every=True)
        return [self.send(owner, here, part, None) for owner, part in enumerate(taken)]

    def bring_in(self, here: Round, awaited: list[Any], size: int) -> Floats:
        """The sums over all nodes; waits for them."""
        rows, ledger = self._open(size)
        count = 0
        for each in awaited:
            for came in (changes := self.collect(each)):
                count += len(came.numbers) if int(came.numbers[-1]) < len(rows) else 0
            ledger.settle(changes)
        if count != len(rows):
            raise ClusterError(
                f"nodes disagree on the scores of {here}: {count} rows came for {len(rows)}. All need the same text."
            )
        return rows.reshape(-1)[:size]

    def _open(self, size: int) -> tuple[Floats, Ledger]:
        """Rows of zeros, and a ledger that knows them as such."""
        rows = np.zeros((-(-size // CELLS), CELLS), np.float32)
        return rows, Ledger(Scores(rows), self.me.tables)
