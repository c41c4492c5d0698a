"""Steps of optimisers as PyTorch defines them, over flat cells or over some rows of a table, in one pass.

Weights, what a rule remembers of them and gradients are arrays of their own, as tensors are; rules.py has those of
our own tables, where they lie side by side.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, open_kernel
from hogwild.kernels.compiler.prefetch import prefetch

AHEAD = 4  # rows that are asked for before their turn
LINE = 16  # cells (float32) of a line of the cache


class SgdStep(NamedTuple):
    """g += decay w; w -= rate g."""

    rate: np.float32
    decay: np.float32


class MomentumStep(NamedTuple):
    """g += decay w; v = keep v + g; w -= rate v."""

    rate: np.float32
    decay: np.float32
    keep: np.float32


class AdagradStep(NamedTuple):
    """g += decay w; s += g^2; w -= rate g / (sqrt(s) + eps)."""

    rate: np.float32
    decay: np.float32
    eps: np.float32


class RMSpropStep(NamedTuple):
    """g += decay w; s = keep s + take g^2; w -= rate g / (sqrt(s) + eps)."""

    rate: np.float32
    decay: np.float32
    keep: np.float32
    take: np.float32
    eps: np.float32


class AdamStep(NamedTuple):
    """g += decay w; m += first_take (g - m); s = second_keep s + second_take g^2; w -= fade w + rate m / (fix sqrt(s) +
    eps).

    rate and fix hold what frees m and s of the bias of their beginning; fade is the decay of AdamW.
    """

    rate: np.float32
    decay: np.float32
    fade: np.float32
    first_take: np.float32
    second_keep: np.float32
    second_take: np.float32
    fix: np.float32
    eps: np.float32


@choice
def stepped(rule: Any, weight: Any, first: Any, second: Any, gradient: Any) -> Any:
    """A weight and what is remembered of it, after a step against the gradient."""


@stepped.of(SgdStep)
def _sgd(rule: Any, weight: Any, first: Any, second: Any, gradient: Any) -> Any:
    return weight - rule.rate * (gradient + rule.decay * weight), first, second


@stepped.of(MomentumStep)
def _momentum(rule: Any, weight: Any, first: Any, second: Any, gradient: Any) -> Any:
    speed = rule.keep * first + (gradient + rule.decay * weight)
    return weight - rule.rate * speed, speed, second


@stepped.of(AdagradStep)
def _adagrad(rule: Any, weight: Any, first: Any, second: Any, gradient: Any) -> Any:
    gradient = gradient + rule.decay * weight
    total = first + gradient * gradient
    return weight - rule.rate * gradient / (np.float32(math.sqrt(total)) + rule.eps), total, second


@stepped.of(RMSpropStep)
def _rmsprop(rule: Any, weight: Any, first: Any, second: Any, gradient: Any) -> Any:
    gradient = gradient + rule.decay * weight
    square = rule.keep * first + rule.take * gradient * gradient
    return weight - rule.rate * gradient / (np.float32(math.sqrt(square)) + rule.eps), square, second


@stepped.of(AdamStep)
def _adam(rule: Any, weight: Any, first: Any, second: Any, gradient: Any) -> Any:
    gradient = gradient + rule.decay * weight
    mean = first + rule.first_take * (gradient - first)
    square = rule.second_keep * second + rule.second_take * gradient * gradient
    move = rule.rate * mean / (rule.fix * np.float32(math.sqrt(square)) + rule.eps)
    return weight - rule.fade * weight - move, mean, square


@choice
def step_row(rule: Any, values: Any, row: int, first: Any, second: Any, gradient: Any, at: int) -> None:
    """Step a row of a table by a row of gradients; first, second: no cells where the rule remembers none."""


@step_row.of(SgdStep)
def _row_alone(rule: Any, values: Any, row: int, first: Any, second: Any, gradient: Any, at: int) -> None:
    none = np.float32(0)
    for k in range(gradient.shape[1]):
        weight = stepped(rule, values[row, k], none, none, gradient[at, k])[0]  # RACE(stale read): docs/races.md
        values[row, k] = weight  # RACE(lost update): docs/races.md


@step_row.of(MomentumStep, AdagradStep, RMSpropStep)
def _row_one(rule: Any, values: Any, row: int, first: Any, second: Any, gradient: Any, at: int) -> None:
    none = np.float32(0)
    for k in range(gradient.shape[1]):
        found = stepped(rule, values[row, k], first[row, k], none, gradient[at, k])  # RACE(stale read): docs/races.md
        values[row, k] = found[0]  # RACE(lost update): docs/races.md
        first[row, k] = found[1]  # RACE(lost update): docs/races.md


@step_row.of(AdamStep)
def _row_two(rule: Any, values: Any, row: int, first: Any, second: Any, gradient: Any, at: int) -> None:
    for k in range(gradient.shape[1]):
        one, two = first[row, k], second[row, k]  # RACE(stale read): docs/races.md
        found = stepped(rule, values[row, k], one, two, gradient[at, k])  # RACE(stale read): docs/races.md
        values[row, k] = found[0]  # RACE(lost update): docs/races.md
        first[row, k] = found[1]  # RACE(lost update): docs/races.md
        second[row, k] = found[2]  # RACE(lost update): docs/races.md


@open_kernel
def step_rows(rule: Any, values: Any, first: Any, second: Any, rows: Any, gradient: Any) -> None:
    """Step some rows of a table, each of which stands once; gradient: a row for each of them.

    Cells that are all stepped are a table of one row.
    """
    width = gradient.shape[1]
    for k in range(len(rows)):
        if k + AHEAD < len(rows):
            for line in range(0, width, LINE):
                prefetch(values, rows[k + AHEAD] * width + line)
                prefetch(first, rows[k + AHEAD] * width + line)
                prefetch(second, rows[k + AHEAD] * width + line)
        step_row(rule, values, rows[k], first, second, gradient, k)
