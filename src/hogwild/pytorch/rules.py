"""Optimisers over memory that all workers share and write without locks: what a step is, for all cells or some rows.

They are ours because those of PyTorch keep their state to themselves: each worker would have its own, and none the
right number of steps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from hogwild.config.options import nearest
from hogwild.errors import ConfigError, brief
from hogwild.pytorch.bags import rows_and_sums, sparse_rows

_AT_ONCE = 1 << 16  # cells of a dense step: what is read several times stays in the cache


class Rule(ABC):
    """An optimiser. One of your own has `slots`, `constants` and `move`, and is given as `optimizer=MyRule()`.

    Parameters
    ----------
    constants : those that differ from the usual ones, by name.

    Examples
    --------
    >>> Adam(beta1=0.8).constants["beta1"]
    0.8
    """

    slots: ClassVar[int] = 0
    """Numbers that it remembers for each cell; all begin as 0."""
    rate: ClassVar[float] = 0.01
    """Learning rate where the user gives none."""
    usual: ClassVar[Mapping[str, float]] = {"weight_decay": 0.0}
    """Its constants and their values."""

    def __init__(self, **constants: float) -> None:
        for name, value in constants.items():
            if name not in self.usual:
                known = ", ".join(self.usual)
                raise ConfigError(
                    f"{type(self).__name__.lower()} has no constant {brief(name)}{nearest(name, self.usual)}; it has "
                    f"{known}."
                )
            if not 0 <= float(value) < math.inf:
                raise ConfigError(f"the constant {name} is {brief(value)}; it must be a number that is not negative.")
        self.constants = {**self.usual, **{name: float(value) for name, value in constants.items()}}

    @abstractmethod
    def move(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        """By how much cells are lowered, with what is remembered of them brought up to date, in place.

        step: how often the parameter has been stepped with this one, by all workers. `grad` may be overwritten.
        """

    def step(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> None:
        """Step all cells of flat tensors.

        What is remembered is brought up to date in copies: a move that is divided by what another worker writes
        meanwhile, such as a square of its own past, would have no bound.
        """
        size = _AT_ONCE if values.is_cpu else max(1, len(values))
        for begin in range(0, len(values), size):
            part = slice(begin, begin + size)
            cells, slots = values[part], tuple(slot[part].clone() for slot in memory)  # RACE(stale read): docs/races.md
            cells.sub_(self.move(cells, grad[part], slots, rate, step))  # RACE(lost update): docs/races.md
            for slot, new in zip(memory, slots, strict=True):
                slot[part].copy_(new)  # RACE(lost update): docs/races.md

    def step_rows(
        self, values: Tensor, rows: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int
    ) -> None:  # fmt: skip
        """Step some rows, each of which stands once: the others are not touched, and nothing of them fades."""
        slots = tuple(slot.index_select(0, rows) for slot in memory)  # RACE(stale read): docs/races.md
        cells = values.index_select(0, rows) if self.reads_values else grad
        move = sparse_rows(rows, self.move(cells, grad, slots, rate, step), values.shape)
        values.add_(move, alpha=-1)  # RACE(lost update): docs/races.md
        for slot, new in zip(memory, slots, strict=True):
            _put(slot, rows, new)

    @property
    def reads_values(self) -> bool:
        """Whether a move depends on the cells that it moves; if not, `move` is given anything in their place."""
        return True

    def decayed(self, values: Tensor, grad: Tensor) -> Tensor:
        """The gradient with that of a penalty on the weights."""
        decay = self.constants["weight_decay"]
        return grad.add(values, alpha=decay) if decay else grad


class _Known(Rule):
    """A rule of ours: cells are read for their decay only."""

    @property
    def reads_values(self) -> bool:
        """If they decay."""
        return self.constants["weight_decay"] > 0


class SGD(_Known):
    """Steps along the gradient, with or without momentum; as `torch.optim.SGD`."""

    usual = {"momentum": 0.0, "weight_decay": 0.0}  # noqa: RUF012

    def __init__(self, **constants: float) -> None:
        super().__init__(**constants)
        self.slots = int(self.constants["momentum"] > 0)  # type: ignore[misc]

    def move(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        """Its step."""
        grad = self.decayed(values, grad)
        if memory:
            grad = memory[0].mul_(self.constants["momentum"]).add_(grad)
        return grad * rate


class Adagrad(_Known):
    """Steps divided by the root of all squares so far; as `torch.optim.Adagrad`."""

    slots = 1
    usual = {"eps": 1e-10, "weight_decay": 0.0}  # noqa: RUF012

    def move(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        """Its step."""
        grad = self.decayed(values, grad)
        squares = memory[0].addcmul_(grad, grad)
        return grad.mul(rate).div_(squares.sqrt().add_(self.constants["eps"]))


class Adam(_Known):
    """Moving means of gradients and squares, free of the bias of their beginning; as `torch.optim.Adam`."""

    slots = 2
    rate = 0.001
    usual = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}  # noqa: RUF012

    def move(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        """Its step."""
        return self._averaged(self.decayed(values, grad), memory, rate, step)

    def _averaged(self, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        one, two = self.constants["beta1"], self.constants["beta2"]
        mean = memory[0].lerp_(grad, 1 - one)
        square = memory[1].mul_(two).addcmul_(grad, grad, value=1 - two)
        below = square.sqrt().mul_(1 / math.sqrt(1 - two**step)).add_(self.constants["eps"])
        return torch.div(mean, below, out=below).mul_(rate / (1 - one**step))


class AdamW(Adam):
    """Adam whose weights fade by themselves, apart from the gradient; as `torch.optim.AdamW`."""

    usual = {**Adam.usual, "weight_decay": 0.01}  # noqa: RUF012

    def move(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        """Its step."""
        move = self._averaged(grad, memory, rate, step)
        decay = rate * self.constants["weight_decay"]
        return move.add_(values, alpha=decay) if decay else move


class RMSprop(_Known):
    """Steps divided by the root of a moving mean of squares; as `torch.optim.RMSprop`."""

    slots = 1
    usual = {"alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0}  # noqa: RUF012

    def move(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> Tensor:
        """Its step."""
        grad = self.decayed(values, grad)
        alpha = self.constants["alpha"]
        square = memory[0].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        return grad.mul(rate).div_(square.sqrt().add_(self.constants["eps"]))


def sum_rows(grad: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of a sparse gradient, each once and in order, with the sums of what stands there for each."""
    numbers, cells = grad._indices()[0], grad._values()
    if grad.is_coalesced() or cells.dtype is not torch.float32 or grad.device.type != "cpu" or grad.sparse_dim() > 1:
        whole = grad.coalesce()
        return whole._indices()[0], whole._values()
    if bool((numbers[1:] > numbers[:-1]).all()):  # as of our bags: autograd forgets that they are in order
        return numbers, cells
    rows, sums = rows_and_sums(numbers.numpy(), cells.reshape(len(numbers), -1))
    return rows, sums.view(-1, *cells.shape[1:])


def _put(slot: Tensor, rows: Tensor, new: Tensor) -> None:
    """Write rows; on the processor NumPy is quicker."""
    if slot.is_cpu:
        slot.numpy()[rows.numpy()] = new.numpy()  # RACE(lost update): docs/races.md
    else:
        slot.index_copy_(0, rows, new)  # RACE(lost update): docs/races.md


RULES: dict[str, type[Rule]] = {"sgd": SGD, "adagrad": Adagrad, "adam": Adam, "adamw": AdamW, "rmsprop": RMSprop}
"""Rules by the names that users give."""


def rule_of(optimizer: str | Rule, constants: Mapping[str, float] | None) -> Rule:
    """The rule of this name, or the user's own."""
    if isinstance(optimizer, Rule):
        if constants:
            raise ConfigError("constants are for an optimizer by name; give them to your own rule.")
        return optimizer
    if not isinstance(optimizer, str) or optimizer not in RULES:
        close = nearest(optimizer, RULES) if isinstance(optimizer, str) else ""
        raise ConfigError(
            f"there is no optimizer {brief(optimizer)} here{close}; there are {', '.join(RULES)}. For one of your own, "
            "whose state all workers share, give an instance of a subclass of hogwild.pytorch.Rule."
        )
    return RULES[optimizer](**(constants or {}))
