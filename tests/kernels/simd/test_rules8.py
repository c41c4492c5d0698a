"""Update rules on eight weights at once: the same as one weight at a time, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.optim.penalties import Penalty, flow, pace
from hogwild.kernels.optim.rules import RULES, Adagrad, Ftrl, Momentum, slots_of, update
from hogwild.kernels.simd import rules8
from hogwild.kernels.simd.rules8 import EIGHT, fade_eight, fixes_of, move_apart_eight, move_eight

WIDTH = 11  # slots do not lie at whole vectors
STEPS = 5
DRAG = np.float32(0.3)
COUNT = 5 * WIDTH  # where the single weights have their count
ODD = {
    "momentum": Momentum(np.float32(0.7)),
    "adagrad": Adagrad(np.float32(0.3)),
    "ftrl": Ftrl(np.float32(0.5), np.float32(0.2), np.float32(0.4)),
}


@kernel
def run_both(rule, eight, ones, grads, rates, due):  # one compilation a rule
    """Move the cells 2 to 9 of a row by vectors and one by one, once by a difference and themselves too, then fade
    them both ways; returns nothing."""
    for step in range(len(rates)):
        count = np.float32(step + 1)
        move_eight(rule, (), eight, 2, WIDTH, grads, EIGHT * step, rates[step], fixes_of(rule, count))
        for k in range(EIGHT):
            update(rule, ones, 2 + k, WIDTH, grads[EIGHT * step + k], rates[step], count)
    count, rate = np.float32(len(rates) + 1), rates[0]
    apart = np.float32(0.8)
    move_apart_eight(rule, (DRAG,), eight, 2, WIDTH, grads, (EIGHT, 2 * EIGHT), apart, rate, fixes_of(rule, count))
    for k in range(EIGHT):
        gradient = apart * (grads[EIGHT + k] - grads[2 * EIGHT + k]) + DRAG * ones[2 + k]
        update(rule, ones, 2 + k, WIDTH, gradient, rate, count)
    ones[COUNT] = count
    last = (1 + slots_of(rule)) * WIDTH
    fade_eight(rule, eight, 2, WIDTH, due * np.float32(0.3), fixes_of(rule, count), np.float32(2), eight, last)
    for k in range(EIGHT):
        speed = pace(rule, ones, 2 + k, WIDTH, COUNT)
        ones[last + k] = np.float32(2) * flow(Penalty(np.float32(0), np.float32(0.3)), ones[2 + k], due * speed)


@pytest.mark.parametrize("name", RULES)
def test_eight_weights_move_as_one_does(name):
    random = np.random.default_rng(5)
    rule = ODD.get(name, RULES[name]())
    eight = np.zeros(COUNT + 1, np.float32)
    eight[:WIDTH] = random.normal(0, 1, WIDTH)
    ones, before = eight.copy(), eight.copy()
    grads = random.normal(0, 0.5, EIGHT * STEPS).astype(np.float32)
    grads[3] = grads[EIGHT + 3] = 0  # a weight that rests at first
    run_both(rule, eight, ones, grads, np.linspace(0.5, 0.1, STEPS).astype(np.float32), np.float32(0.7))
    ones[COUNT] = 0
    np.testing.assert_allclose(eight, ones, rtol=3e-6, atol=1e-6)
    np.testing.assert_array_equal(eight[[0, 1, 10]], before[[0, 1, 10]])
    assert (eight[2:10] != before[2:10]).all()


def test_a_weight_that_was_never_touched_does_not_fade_with_adagrad_and_adam():
    table = np.ones(40, np.float32)
    table[8:] = 0
    zero, one = np.float32(0), np.float32(1)
    for rule in (RULES["adagrad"](), RULES["adam"]()):
        rules8._fade_eight(rule, table, 0, 8, np.float32(5), (zero, zero), one, table, 32)
        np.testing.assert_array_equal(table[32:], 1)


def test_the_inner_run_is_interpreted():
    assert (rules8.move_eight is rules8._move_eight) == OFF
