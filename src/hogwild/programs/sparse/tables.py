"""What programs with one row of weights a feature have in common: penalties paid late, and rows in a feed's order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hogwild.arrays import Floats, Ids, Step
from hogwild.errors import ConfigError
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import row_cells, settle, settle_copy
from hogwild.programs.sparse.rowtable import grown, natural, ranked
from hogwild.programs.sparse.supervised import Supervised


class Tabled(Supervised):
    """A supervised program whose first weights are `table`, one row a feature with the update rule's memory.

    Attributes
    ----------
    order : feature of each row of `table` while it is in the order of a feed; None for the features' own order.
    features : rows of the table.
    """

    order: Ids | None = None
    features: int
    _rule: Any
    _penalty: Any

    @property
    @abstractmethod
    def width(self) -> int:
        """Weights of a row."""

    @property
    def cells(self) -> int:
        """Cells of a row: weights, and what the update rule and the penalty remember."""
        return row_cells(self._rule, self._penalty, self.width)

    def settle(self, elapsed: float) -> bool:
        """Pay lazy penalties."""
        if isinstance(self._penalty, Free):
            return False
        settle(self._rule, self._penalty, self.weights.table, self.width, np.float32(elapsed))
        return True

    def settle_copy(self, weights: Any, step: Step) -> None:
        """Pay the lazy penalties of the rows that one worker pays for."""
        if not isinstance(self._penalty, Free):
            settle_copy(self._rule, self._penalty, weights.table, self.width, step)

    def renew(self) -> None:
        """Before a run that does not go on from the middle of another: pay what a stopped run still owes."""
        self.settle(self.owing())

    def owing(self) -> float:
        """The latest stamp: up to then every row would have been paid, had all been touched."""
        if isinstance(self._penalty, Free):
            return 0.0
        return float(self.weights.table[self.cells - 1 :: self.cells].max(initial=0.0))

    def finish(self, feed: Feed) -> None:
        """Weights in the features' own order again, in memory of their own."""
        if self.weights is not None:
            table, *others = self.weights
            own = table.copy() if self.order is None else natural(table, self.cells, self.order)
            self.weights, self.order = type(self.weights)(own, *(array.copy() for array in others)), None

    def trained(self) -> Any:
        """The weights; ConfigError if there are none."""
        if self.weights is None:
            raise ConfigError("this model has no weights yet; train it, or load one.")
        return self.weights

    def paid(self) -> Floats:
        """The table as it stands, penalties paid: the very one if nothing is owed."""
        table: Floats = self.trained().table
        owing = self.owing()
        if owing > 0:
            table = table.copy()
            settle(self._rule, self._penalty, table, self.width, np.float32(owing))
        return table

    def plain(self, original: Ids | None, features: int) -> Floats:
        """(features, width): the weights alone, penalties paid, in an order of ids; unknown features weigh nothing."""
        weight = np.ascontiguousarray(self.paid().reshape(-1, self.cells)[:, : self.width]).reshape(-1)
        if original is None or original is not self.order:
            weight = grown(natural(weight, self.width, self.order), self.width, features)
            weight = ranked(weight[: features * self.width], self.width, original)
        return weight.reshape(-1, self.width)


def in_parts(rows: int, threads: int, work: Callable[[int, int], None], step: int = 1) -> None:
    """Do `work(first row, end)` on as many parts of the rows as there are threads, all at once.

    step: parts begin at multiples of it. Where rows are worked on in batches of this size, a row is then in the same
    batch whatever the number of threads: BLAS may round otherwise in a batch of another size.
    """
    ends = (np.linspace(0, -(-rows // step), max(1, threads) + 1).astype(int) * step).clip(max=rows).tolist()
    if threads <= 1:
        work(0, rows)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))
