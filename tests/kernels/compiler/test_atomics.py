"""Atomics: no addition is lost, one thread wins an exchange, waiting ends when the cell or the stop flag says so."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.atomics import call_up, exchange, exchange_flag, fetch_add, load, store, wait_for
from hogwild.kernels.compiler.jit import kernel
from places import ROOT

TIMES = 20 if OFF else 100_000


@kernel
def add_many(cells, times):
    for _ in range(times):
        fetch_add(cells, 0, 1)


@kernel
def take_once(cells):
    return exchange(cells, 0, 1) == 0


@kernel
def touch_all(cells):
    store(cells, 1, 5)
    return load(cells, 1), exchange(cells, 1, 6), fetch_add(cells, 1, 4), load(cells, 1)


@kernel
def add_under_ticket_lock(turns, stop, total, times):
    for _ in range(times):
        ticket = fetch_add(turns, 3, 1)
        if not wait_for(turns, 0, ticket, stop):
            return
        total[0] += 1
        store(turns, 0, ticket + 1)
        call_up(turns, 0)


def together(threads, work):
    crew = [threading.Thread(target=work) for _ in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_no_addition_is_lost():
    cells = np.zeros(2, np.int64)
    together(4, lambda: add_many(cells, TIMES))
    assert cells.tolist() == [4 * TIMES, 0]


def test_one_thread_wins():
    cells, won = np.zeros(1, np.int64), []
    together(4, lambda: won.append(bool(take_once(cells))))
    assert sorted(won) == [False, False, False, True]


def test_each_returns_what_was_there():
    assert tuple(touch_all(np.zeros(2, np.int64))) == (5, 5, 6, 10)


@pytest.mark.parametrize("crowded", [0, 1 << 40], ids=["yielding", "sleeping"])
def test_ten_threads_take_turns(crowded):
    turns, stop, total = np.zeros(4, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    turns[2] = crowded  # so many waits are sleep
    together(10, lambda: add_under_ticket_lock(turns, stop, total, TIMES // 20))
    assert total[0] == turns[0] == turns[3] == 10 * (TIMES // 20)
    assert turns[1] == 0  # nobody sleeps any more


@pytest.mark.parametrize("crowded", [0, 1 << 40], ids=["yielding", "sleeping"])
def test_who_waits_goes_on_also_if_nobody_calls_up(crowded):
    cells, stop, left = np.array([0, 0, crowded]), np.zeros(1, np.int64), []
    waiting = threading.Thread(target=lambda: left.append(bool(wait_for(cells, 0, 1, stop))))
    waiting.start()
    cells[0] = 1
    waiting.join(timeout=60)
    assert left == [True]


def test_a_stop_flag_ends_all_waiting():
    cells, stop, left = np.array([0, 0, 1 << 40]), np.zeros(1, np.int64), []
    crew = [threading.Thread(target=lambda: left.append(bool(wait_for(cells, 0, 1, stop)))) for _ in range(2)]
    for thread in crew:
        thread.start()
    assert left == []
    assert exchange_flag(stop) == 0
    assert exchange_flag(stop) == 1
    for thread in crew:
        thread.join(timeout=60)
    assert left == [False, False]


@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_all_modes_run_without_the_compiler_in_many_threads(tmp_path):
    root = ROOT
    code = (
        "import hogwild; from problems.tasks import count_program, touches\n"
        "for mode in ('hogwild', 'locked', 'round-robin', 'minibatch'):\n"
        "    program = count_program(3)\n"
        "    executor = hogwild.AsyncExecutor(threads=3, mode=mode, sharing='replica', trace=True)\n"
        "    list(executor.run(program, touches(200, 3), lr=1.0, epochs=2))\n"
        "    assert program.weights.values.sum() == 400, (mode, program.weights.values)\n"
    )
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths, "HOGWILD_CACHE": str(tmp_path)}
    for arguments in (["-c", code], ["-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]):
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=root, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
