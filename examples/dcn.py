"""Clicks by DCN-v2 in plain PyTorch: crosses of features by matrices, dense layers above them.

From the shell: hogwild train module dcn:make_program train.txt --valid test.txt --output model
Run it: python examples/dcn.py train.txt test.txt (hogwild make-dataset clicks makes such files)
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn

import hogwild
from hogwild.pytorch import DataFacts, TorchProgram


class DCN(nn.Module):
    """Wang et al., 2021, stacked: x[l + 1] = x[0] * (W x[l] + b) + x[l], then dense layers."""

    def __init__(self, facts: DataFacts, dim: int = 8, crosses: int = 2, hidden: int = 64) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(facts.features, dim, mode="sum", sparse=True)
        nn.init.normal_(self.table.weight, 0.0, 0.05)
        inputs = len(facts.slots) * dim + len(facts.dense)
        self.crosses = nn.ModuleList(nn.Linear(inputs, inputs) for _ in range(crosses))
        self.deep = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, ids: Tensor, offsets: Tensor, dense: Tensor) -> Tensor:
        """A bag for each slot of each sample: (samples x slots) of them."""
        first = torch.cat([self.table(ids, offsets).view(len(dense), -1), dense], 1)
        crossed = first
        for layer in self.crosses:
            crossed = first * layer(crossed) + crossed
        return self.deep(crossed).flatten()


def make_program() -> TorchProgram:
    """`DCN` itself is the factory: it is given what is known of the data."""
    return TorchProgram(DCN, nn.BCEWithLogitsLoss(), "adam", batch=128, lr=0.005, slots=True)


def main(train: str, test: str) -> None:
    """Train on one file, measure on another."""
    config = hogwild.FeedConfig(layout="slots")
    feed = hogwild.open_feed([train], config)
    valid = hogwild.open_feed([test], config, schema=feed.schema)
    program = hogwild.train(make_program(), feed, valid=valid, threads=2, epochs=3)
    print(program.evaluate(valid))


if __name__ == "__main__":
    main(*sys.argv[1:3])
