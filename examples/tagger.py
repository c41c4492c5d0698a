"""A Bi-LSTM tagger in plain PyTorch, from a dataset and a collate function of one's own.

Run it: python examples/tagger.py
"""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

import hogwild
from hogwild.pytorch import TorchProgram

WORDS, TAGS, NO_TAG = 30, 3, -100  # a word is a number; CrossEntropyLoss leaves -100 out


class Tagger(nn.Module):
    """Embeddings, an LSTM in both directions, and a score for each tag."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.Embedding(WORDS + 1, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 32, batch_first=True, bidirectional=True)
        self.output = nn.Linear(64, TAGS)

    def forward(self, words: Tensor) -> Tensor:
        """(sentences, tags, words), as the loss takes it."""
        return self.output(self.lstm(self.words(words))[0]).transpose(1, 2)


def collate(sentences: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Sentences of one length, filled up."""
    words, tags = zip(*sentences, strict=True)
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=NO_TAG)


def make_sentences(count: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """A word has the tag 1 if a greater one follows, 2 if a greater one comes before, else 0."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        words = [draw.randint(1, WORDS) for _ in range(draw.randint(2, 12))]
        after, before = [*words[1:], 0], [0, *words[:-1]]
        tags = [1 if b > a else 2 if c > a else 0 for a, b, c in zip(words, after, before, strict=True)]
        found.append((torch.tensor(words), torch.tensor(tags)))
    return found


if __name__ == "__main__":
    train, test = (DataLoader(make_sentences(n, seed=n), 16, collate_fn=collate) for n in (3000, 300))  # type: ignore[arg-type]
    program = TorchProgram(Tagger, nn.CrossEntropyLoss(), "adam", lr=0.01)
    hogwild.train(program, train, valid=test, threads=2, epochs=4)
    print(program.evaluate(test))
