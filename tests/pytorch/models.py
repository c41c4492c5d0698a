"""Modules, datasets and losses for tests, where other processes can import them."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from hogwild.pytorch import DataFacts, TorchProgram

FEATURES = 30


class Bags(nn.Module):
    """A bag of features, dense layers above it."""

    def __init__(self, features: int = FEATURES, sparse: bool = True) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(features, 4, mode="sum", sparse=sparse)
        self.output = nn.Linear(4, 1)

    def forward(self, ids: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """A score a bag."""
        return self.output(torch.tanh(self.bag(ids, offsets, values))).flatten()


class Tied(nn.Module):
    """One matrix in two places, and a second view of a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.row = nn.Parameter(self.first.weight.detach()[1])

    def forward(self, x: Tensor) -> Tensor:
        """Twice through the same."""
        return (self.second(self.first(x)) * self.row).sum(1)


class Normed(nn.Module):
    """Batch norm, dropout, and a buffer that is made anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.output = nn.Linear(3, 1)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """Counts in train mode."""
        if self.training:
            self.seen = self.seen + 1
        return self.output(self.drop(self.norm(x))).flatten()


class OwnLoss(nn.Module):
    """Returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The squared error."""
        return ((self.layer(x).flatten() - y) ** 2).mean()


class Dying(nn.Module):
    """Fails in some way once it has seen a batch that begins with a large number."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        """Well, or not at all."""
        if self.training and float(x.max()) > 100:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "exit":
                os._exit(3)
            raise ArithmeticError("the sum is off")
        return self.layer(x).flatten()


class Squares(Dataset[Any]):
    """A map-style dataset."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        x = torch.tensor([number / self.count, 1.0, 0.0])
        return x, x[0] ** 2


class Stream(IterableDataset[Any]):
    """An iterable one."""

    def __iter__(self) -> Any:
        return (Squares(20)[number] for number in range(20))


def points(count: int = 120, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A line through noise."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, generator=random)
    return x, x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(count, generator=random)


def bags(count: int = 90, seed: int = 0) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Batches of bags of features: ids, offsets, targets."""
    random = torch.Generator().manual_seed(seed)
    truth = torch.randn(FEATURES, generator=torch.Generator().manual_seed(5))
    found = []
    for _ in range(count):
        ids = torch.randint(0, FEATURES, (12,), generator=random)
        found.append((ids, torch.arange(0, 12, 3), (truth[ids].view(4, 3).sum(1) > 0).float()))
    return found


def first_of(batch: list[Any]) -> Any:
    """A batch that is one item."""
    return batch[0]


def make_line() -> nn.Module:
    """The simplest module."""
    return nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))


def make_bags(facts: DataFacts) -> nn.Module:
    """Bags of as many features as the data has."""
    return Bags(facts.features)


def make_program() -> TorchProgram:
    """For the command line."""
    return TorchProgram(make_bags, nn.BCEWithLogitsLoss(), "adagrad", batch=16, lr=0.1)


def make_nothing() -> int:
    """No program."""
    return 3


class RowLoss(nn.Module):
    """A loss with a tensor of its own."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Squared errors, weighed."""
        return (self.weight * (output - target) ** 2).mean()
