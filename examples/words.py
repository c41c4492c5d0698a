"""Word vectors in plain PyTorch: skip-gram with negative samples, whose module returns its loss itself.

`hogwild train word2vec` does the same by compiled code, many times as fast; this is how a model of one's own begins.
Run it: python examples/words.py
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, logsigmoid

import hogwild
from hogwild.pytorch import TorchProgram

WORDS, DIM, WINDOW, NEGATIVES = 60, 16, 3, 5


class SkipGram(nn.Module):
    """Mikolov et al., 2013: words that stand near each other score high, words drawn at random low."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.inputs = nn.Embedding(WORDS, DIM, sparse=True)
        self.outputs = nn.Embedding(WORDS, DIM, sparse=True)
        nn.init.uniform_(self.inputs.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.outputs.weight)

    def forward(self, words: Tensor, near: Tensor) -> Tensor:
        """The mean loss of pairs of words."""
        given = self.inputs(words)[:, :, None]
        drawn = torch.randint(WORDS, (len(words), NEGATIVES))
        right = (self.outputs(near)[:, None] @ given).flatten()
        wrong = (self.outputs(drawn) @ given).squeeze(2)
        return -(logsigmoid(right) + logsigmoid(-wrong).sum(1)).mean()


def make_pairs(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pairs of near words of a text of three topics, which have twenty words each."""
    draw = np.random.default_rng(seed)
    topics = np.repeat(draw.integers(3, size=count // 20), 20)
    text = torch.from_numpy(20 * topics + draw.integers(20, size=len(topics)))
    pairs = [(text[:-shift], text[shift:]) for shift in range(1, WINDOW + 1)]
    return torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs])


if __name__ == "__main__":
    program = TorchProgram(SkipGram, None, "adagrad", batch=256, lr=0.5)
    hogwild.train(program, make_pairs(20_000, seed=1), threads=2, epochs=3)
    table = program.state_dict()["inputs.weight"]
    like = cosine_similarity(table[:, None], table[None], dim=2)
    same = torch.block_diag(*[torch.ones(20, 20)] * 3).bool()
    print({"loss": program.evaluate(make_pairs(2000, seed=2))["loss"], "same": float(like[same].mean()),
           "other": float(like[~same].mean())})  # fmt: skip
