"""Sentiment of texts in plain PyTorch: a bag of embeddings, trained by two processes without locks.

From the shell: hogwild train module sentiment:make_program reviews.tsv --hash-bits 16 --output model
Run it: python examples/sentiment.py
"""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

import hogwild
from hogwild.pytorch import DataFacts, TorchProgram

GOOD, BAD = ["fine", "moving", "bright", "witty"], ["dull", "flat", "noisy", "stale"]
PLAIN = ["the", "film", "plot", "cast", "scene", "music", "story", "and", "but", "with", "of", "it", "was"]


class Sentiment(nn.Module):
    """The mean of the embeddings of all words, and a linear layer."""

    def __init__(self, words: int, classes: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(words, 16, mode="sum", sparse=True)
        self.output = nn.Linear(16, classes)

    def forward(self, ids: Tensor, offsets: Tensor, values: Tensor) -> Tensor:
        """ids, offsets, values: as a feed of texts gives them."""
        return self.output(self.words(ids, offsets, values))


def make_module(facts: DataFacts) -> nn.Module:
    """Made once here, and once in each worker."""
    torch.manual_seed(1)
    return Sentiment(facts.features, len(facts.labels))


def make_program() -> TorchProgram:
    """The module, its loss, its optimizer."""
    return TorchProgram(make_module, nn.CrossEntropyLoss(), "adagrad", batch=32, lr=0.1)


def make_reviews(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts with a few words that tell, and labels."""
    draw = random.Random(seed)
    labels = [draw.choice(["bad", "good"]) for _ in range(count)]
    telling = {"good": GOOD, "bad": BAD}
    return [" ".join(draw.choices(PLAIN, k=12) + draw.choices(telling[label], k=2)) for label in labels], labels


if __name__ == "__main__":
    config = hogwild.FeedConfig(hash_bits=12)
    train = hogwild.feed_of(*make_reviews(4000, seed=1), config=config)
    test = hogwild.feed_of(*make_reviews(500, seed=2), config=config, schema=train.schema)
    program = hogwild.train(make_program(), train, valid=test, threads=2, epochs=2)
    print(program.evaluate(test))
