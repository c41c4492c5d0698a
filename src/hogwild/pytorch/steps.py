"""The rules that we have as compiled code: one pass over float32 cells that all workers share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.optim.tensors import AdagradStep, AdamStep, MomentumStep, RMSpropStep, SgdStep, step_rows
from hogwild.pytorch.rules import SGD, Adagrad, Adam, AdamW, RMSprop, Rule

_ONE_ROW = np.zeros(1, np.int64)
_NOTHING = np.zeros((0, 0), np.float32)


class CompiledSteps:
    """Steps of a rule of ours; a rule of a user's makes its own."""

    def __init__(self, rule: Rule) -> None:
        self._make, self._constants = _STEPS[type(rule)], rule.constants
        none = _NOTHING.copy()
        self._code = entry(step_rows, self._make(rule.constants, 0.0, 1), none, none, none, _ONE_ROW, none)

    def step(self, values: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> None:
        """Step all cells of flat tensors."""
        whole = (1, len(values))
        slots = tuple(slot.view(whole) for slot in memory)
        self._run(values.view(whole), _ONE_ROW, grad.view(whole), slots, rate, step)

    def step_rows(
        self, values: Tensor, rows: Tensor, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int
    ) -> None:  # fmt: skip
        """Step some rows, each of which stands once: the others are not touched, and nothing of them fades."""
        table = (len(values), -1)
        slots = tuple(slot.view(table) for slot in memory)
        self._run(values.view(table), rows.numpy(), grad.view(len(rows), -1), slots, rate, step)

    def _run(self, values: Tensor, rows: Any, grad: Tensor, memory: tuple[Tensor, ...], rate: float, step: int) -> None:
        slots = [slot.numpy() for slot in memory] + [_NOTHING] * (2 - len(memory))
        self._code(self._make(self._constants, rate, step), values.numpy(), *slots, rows, grad.numpy())


def steps_of(rule: Rule) -> Rule | CompiledSteps:
    """Who makes the steps of a rule where tensors are contiguous and of float32."""
    return CompiledSteps(rule) if type(rule) in _STEPS else rule


def _sgd(constants: dict[str, float], rate: float, step: int) -> Any:
    if constants["momentum"] > 0:
        return MomentumStep(*_rounded(rate, constants["weight_decay"], constants["momentum"]))
    return SgdStep(*_rounded(rate, constants["weight_decay"]))


def _adagrad(constants: dict[str, float], rate: float, step: int) -> AdagradStep:
    return AdagradStep(*_rounded(rate, constants["weight_decay"], constants["eps"]))


def _rmsprop(constants: dict[str, float], rate: float, step: int) -> RMSpropStep:
    alpha = constants["alpha"]
    return RMSpropStep(*_rounded(rate, constants["weight_decay"], alpha, 1 - alpha, constants["eps"]))


def _adam(constants: dict[str, float], rate: float, step: int) -> AdamStep:
    return _adam_step(constants, rate, step, constants["weight_decay"], 0.0)


def _adamw(constants: dict[str, float], rate: float, step: int) -> AdamStep:
    return _adam_step(constants, rate, step, 0.0, rate * constants["weight_decay"])


def _adam_step(constants: dict[str, float], rate: float, step: int, decay: float, fade: float) -> AdamStep:
    one, two = constants["beta1"], constants["beta2"]
    unbiased = rate / (1 - one**step), 1 / math.sqrt(1 - two**step)
    return AdamStep(*_rounded(unbiased[0], decay, fade, 1 - one, two, 1 - two, unbiased[1], constants["eps"]))


def _rounded(*numbers: float) -> map[np.float32]:
    return map(np.float32, numbers)


_STEPS: dict[type[Rule], Callable[[dict[str, float], float, int], Any]] = {
    SGD: _sgd, Adagrad: _adagrad, Adam: _adam, AdamW: _adamw, RMSprop: _rmsprop,
}  # fmt: skip
