"""Ticks of phases: they go where they belong, at a constant rate, and cost nothing when nobody asks."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.arrays import PAD, PHASE_TICKS, TICK, Room, make_scratch
from hogwild.kernels.compiler.clock import DENSE, LOOKUP, UPDATE, Timed, Untimed, mark, start, ticks
from hogwild.kernels.compiler.jit import fresh

compiled = pytest.mark.skipif(OFF, reason="there is no compiled code to look at")


@fresh
def work(timer: Any, scratch: Any, visits: int) -> float:
    total = 0.0
    for _ in range(visits):
        start(timer, scratch)
        for i in range(400):
            total += (i + total) % 7.0
        mark(timer, scratch, LOOKUP)
        for i in range(4000):
            total += (i + total) % 7.0
        mark(timer, scratch, DENSE)
        for i in range(40):
            total += (i + total) % 7.0
        mark(timer, scratch, UPDATE)
        for i in range(400):
            total += (i + total) % 7.0
    return total


def test_ticks_go_to_the_phase_that_ends_and_have_a_rate() -> None:
    scratch = make_scratch(Room(1), np.uint64(1))
    work(Timed(), scratch, 1)
    scratch.count[:] = 0
    before, began = ticks(), time.perf_counter()
    work(Timed(), scratch, 200)
    seconds, passed = time.perf_counter() - began, ticks() - before
    lookup, dense, update = scratch.count[PHASE_TICKS : PHASE_TICKS + 3]
    assert dense > lookup > update > 0
    assert 0.5 * passed < lookup + dense + update < passed  # the work after the last mark belongs to none
    assert before < scratch.count[TICK] < ticks()
    assert 1e7 < passed / seconds < 1e10
    assert not scratch.count[:TICK].any()
    assert not scratch.count[PHASE_TICKS + 3 : PAD].any()


def test_untimed_leaves_no_trace() -> None:
    scratch = make_scratch(Room(1), np.uint64(1))
    work(Untimed(), scratch, 1)
    assert not scratch.count.any()


@compiled
def test_untimed_code_holds_no_clock() -> None:
    scratch = make_scratch(Room(1), np.uint64(1))
    codes = {}
    for timer in (Timed(), Untimed()):
        work(timer, scratch, 1)
        codes[type(timer)] = next(
            code for types, code in work.inspect_llvm().items() if types[0].instance_class is type(timer)
        )
    assert "readcyclecounter" in codes[Timed] or "cntvct" in codes[Timed]
    assert "readcyclecounter" not in codes[Untimed]
    assert "cntvct" not in codes[Untimed]
