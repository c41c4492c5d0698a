"""Clicks by DeepFM in plain PyTorch: pairs of categories by factors, dense layers beside them.

From the shell: hogwild train module deepfm:make_program train.txt --valid test.txt --output model
Run it: python examples/deepfm.py train.txt test.txt (hogwild make-dataset clicks makes such files)
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn

import hogwild
from hogwild.pytorch import DataFacts, TorchProgram


class DeepFM(nn.Module):
    """Guo et al., 2017: a linear part, a factorization machine and dense layers over the same embeddings."""

    def __init__(self, facts: DataFacts, dim: int = 8, hidden: int = 64) -> None:
        super().__init__()
        self.slots, self.dim = len(facts.slots), dim
        self.linear = nn.EmbeddingBag(facts.features, 1, mode="sum", sparse=True)
        self.factors = nn.EmbeddingBag(facts.features, dim, mode="sum", sparse=True)
        nn.init.zeros_(self.linear.weight)
        nn.init.normal_(self.factors.weight, 0.0, 0.05)
        inputs = self.slots * dim + len(facts.dense)
        self.deep = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, ids: Tensor, offsets: Tensor, dense: Tensor) -> Tensor:
        """A bag for each slot of each sample: (samples x slots) of them."""
        vectors = self.factors(ids, offsets).view(-1, self.slots, self.dim)
        pairs = (vectors.sum(1).square() - vectors.square().sum(1)).sum(1) / 2
        linear = self.linear(ids, offsets).view(-1, self.slots).sum(1)
        deep = self.deep(torch.cat([vectors.flatten(1), dense], 1)).flatten()
        return linear + pairs + deep


def make_program() -> TorchProgram:
    """`DeepFM` itself is the factory: it is given what is known of the data."""
    return TorchProgram(DeepFM, nn.BCEWithLogitsLoss(), "adagrad", batch=128, lr=0.05, slots=True)


def main(train: str, test: str) -> None:
    """Train on one file, measure on another."""
    config = hogwild.FeedConfig(layout="slots")
    feed = hogwild.open_feed([train], config)
    valid = hogwild.open_feed([test], config, schema=feed.schema)
    program = hogwild.train(make_program(), feed, valid=valid, threads=2, epochs=2)
    print(program.evaluate(valid))


if __name__ == "__main__":
    main(*sys.argv[1:3])
