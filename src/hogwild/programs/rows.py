"""What programs have in common whose weights are tables of rows: penalties that a row pays late."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from hogwild.arrays import Floats, Step
from hogwild.errors import ConfigError
from hogwild.kernels.optim.penalties import stamps
from hogwild.kernels.optim.rules import row_cells, settle, settle_copy
from hogwild.programs.program import CompiledProgram


class RowProgram(CompiledProgram):
    """A program whose rows of weights stand with what an update rule and a penalty remember of them."""

    _rule: Any
    _penalty: Any

    @abstractmethod
    def penalized(self, weights: Any) -> Sequence[tuple[Floats, int]]:
        """The tables whose rows pay penalties, and how many weights a row of each has."""

    def trained(self) -> Any:
        """The weights; ConfigError if there are none."""
        if self.weights is None:
            raise ConfigError("this model has no weights yet; train it, or load one.")
        return self.weights

    def settle(self, elapsed: float) -> bool:
        """Pay lazy penalties."""
        return self.pay(self.weights, elapsed)

    def pay(self, weights: Any, elapsed: float) -> bool:
        """Pay the lazy penalties of these weights; False if there are none."""
        if not stamps(self._penalty):
            return False
        for table, width in self.penalized(weights):
            settle(self._rule, self._penalty, table, width, np.float32(elapsed))
        return True

    def settle_copy(self, weights: Any, step: Step) -> None:
        """Pay the lazy penalties of the rows that one worker pays for."""
        if stamps(self._penalty):
            for table, width in self.penalized(weights):
                settle_copy(self._rule, self._penalty, table, width, step)

    def move_clock(self, before: float, now: float) -> None:
        """Stamps move with the clock, so that every row owes what it owed."""
        if stamps(self._penalty):
            for table, width in self.penalized(self.trained()):
                cells = row_cells(self._rule, self._penalty, width)
                table[cells - 1 :: cells] += np.float32(now - before)

    def renew(self) -> None:
        """Before a run that does not go on from the middle of another: pay what a stopped run still owes."""
        self.settle(self.owing())

    def owing(self) -> float:
        """The latest stamp: up to then every row would have been paid, had all been touched."""
        if not stamps(self._penalty):
            return 0.0
        tables = [(t, row_cells(self._rule, self._penalty, width)) for t, width in self.penalized(self.trained())]
        return max(float(table[cells - 1 :: cells].max(initial=0.0)) for table, cells in tables)

    def paid_weights(self) -> Any:
        """The weights as they stand, penalties paid: the very ones if nothing is owed, else a copy of those tables."""
        weights, owing = self.trained(), self.owing()
        if owing > 0:
            own = {id(table) for table, _ in self.penalized(weights)}
            weights = type(weights)(*(array.copy() if id(array) in own else array for array in weights))
            self.pay(weights, owing)
        return weights
