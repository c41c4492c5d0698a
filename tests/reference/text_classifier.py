"""Slow, obvious twin of text classifiers: float64, one line of mathematics at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference.linear import Weight, entries, loss_of, move, pace, rate, shrink, slopes_of, time_of


class TextTwin:
    """A text classifier trained one visit at a time; the penalty is paid by every weight at every visit."""

    def __init__(self, task: Any, embedding: Any, output: Any, bias: Any) -> None:
        self.task = task
        self.rows = [[Weight(float(v)) for v in row] for row in embedding]
        self.layer = [[Weight(float(v)) for v in (*row, b)] for row, b in zip(output, bias, strict=True)]

    def embedding(self) -> np.ndarray:
        """(features, dim)."""
        return np.array([[w.value for w in row] for row in self.rows])

    def outputs(self) -> np.ndarray:
        """(outputs, dim + 1), biases last."""
        return np.array([[w.value for w in row] for row in self.layer])

    def shares(self, samples: Any, row: int) -> list[tuple[int, float]]:
        """(feature, share in the mean) of one text; by the root where the task has a unit."""
        found = entries(samples, row)
        total = sum(abs(value) for _, value in found)
        unit = float(self.task.unit)
        total = (unit * total) ** 0.5 if unit else total
        return [(feature, value / total if total else 0.0) for feature, value in found]

    def mean(self, samples: Any, row: int) -> np.ndarray:
        """The mean of the rows of a text."""
        table = self.embedding()
        return sum((share * table[feature] for feature, share in self.shares(samples, row)), np.zeros(table.shape[1]))

    def scores(self, samples: Any, row: int) -> np.ndarray:
        """Scores of one text."""
        return self.outputs() @ np.append(self.mean(samples, row), 1.0)

    def gradient(self, samples: Any, row: int) -> tuple[float, list[tuple[int, np.ndarray]], np.ndarray]:
        """The loss of one text, its gradient in each of its rows and in the layer above."""
        mean, layer, table = self.mean(samples, row), self.outputs(), self.embedding()
        scores, importance = layer @ np.append(mean, 1.0), float(samples.importance[row])
        pulls = importance * slopes_of("Logistic", scores, float(samples.targets[row]))
        decay = importance * float(self.task.decay)
        along = pulls @ layer[:, :-1]
        rows = [(k, share * along + decay * table[k]) for k, share in self.shares(samples, row)]
        loss = importance * loss_of("Logistic", scores, float(samples.targets[row]))
        return loss, rows, np.outer(pulls, np.append(mean, 1.0))

    def apply(self, rows: list[tuple[int, np.ndarray]], layer: np.ndarray, learning_rate: float) -> None:
        """One step against a gradient."""
        for k, gradient in rows:
            for weight, g in zip(self.rows[k], gradient, strict=True):
                move(self.task.rule, weight, float(g), learning_rate)
        for weights, gradient in zip(self.layer, layer, strict=True):
            for weight, g in zip(weights, gradient, strict=True):
                move(self.task.rule, weight, float(g), learning_rate, bias=True)

    def pay(self, time: float) -> None:
        """The penalty of all rows."""
        if type(self.task.penalty).__name__ == "Penalty":
            for weights in self.rows:
                for weight in weights:
                    due = time * pace(self.task.rule, weight)
                    weight.value = shrink(weight.value, 0.0, float(self.task.penalty.l2), due)

    def run(self, samples: Any, schedule: Any, order: Any, batch: int = 1) -> float:
        """Visit texts in an order, by batches of summed gradients; the sum of losses."""
        total = 0.0
        for first in range(0, len(order), batch):
            sums: dict[int, np.ndarray] = {}
            named: list[tuple[int, np.ndarray]] = []
            layer = np.zeros_like(self.outputs())
            positions = range(first, min(first + batch, len(order)))
            for position in positions:
                loss, rows, above = self.gradient(samples, int(order[position]))
                total += loss
                layer += above
                named += rows
            for k, gradient in named:
                sums[k] = sums.get(k, 0.0) + gradient
            self.apply(named if batch == 1 else list(sums.items()), layer, rate(schedule, positions[-1]))
            for position in positions:
                self.pay(time_of(schedule, position))
        return total
