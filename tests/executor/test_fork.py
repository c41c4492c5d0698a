"""A fork while other threads train: the child can train, and has nothing to do with the runs of its parent."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from hogwild import machine
from hogwild.errors import ConfigError
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.train import train
from hogwild.feeds.memory import feed_of
from hogwild.programs.sparse.linear import Linear

SECONDS = 60  # after which a child that hangs is ended


def in_child(work: Callable[[], bool]) -> bool:
    """Whether a child of a fork finds `work` true; False too if it hangs."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        right = False
        try:
            right = work()
        finally:
            os._exit(0 if right else 1)
    return os.waitpid(pid, 0)[1] == 0


def make_feed() -> Any:
    random_state = np.random.default_rng(0)
    X = random_state.normal(size=(400, 8))
    return feed_of(X, X[:, 0] > 0)


def weights_of(feed: Any) -> Any:
    program = train(Linear(), feed, epochs=2, lr=0.1, threads=1, mode="serial", quiet=True)
    return program.weights.table.copy()


def refused(work: Callable[[], Any], reason: str) -> bool:
    try:
        work()
    except ConfigError as error:
        return reason in str(error) and "\n" not in str(error)
    return False


def test_a_fork_waits_for_the_compiler() -> None:
    """The child found the lock taken by a thread that it did not have, and waited for ever."""
    compiling, seen = threading.Event(), []

    def compile_slowly() -> None:
        with global_compiler_lock:
            compiling.set()
            time.sleep(0.3)
            seen.append("compiled")

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    compiling.wait()
    assert in_child(lambda: seen == ["compiled"] and nb.njit(lambda x: x + 1)(1) == 2)
    thread.join()
    with global_compiler_lock:  # whoever forks inside the compiler does not wait for itself
        assert in_child(lambda: nb.njit(lambda x: x + 2)(1) == 3)
    assert nb.njit(lambda x: x + 3)(1) == 4


def test_a_fork_waits_while_blas_is_asked() -> None:
    asked, asking = threading.Event(), threading.Event()

    def ask() -> None:
        with machine._lock:
            asking.set()
            asked.wait()

    thread = threading.Thread(target=ask)
    thread.start()
    asking.wait()
    threading.Timer(0.2, asked.set).start()
    feed = make_feed()
    assert in_child(lambda: len(weights_of(feed)) > 0)
    thread.join()


def test_children_train_whenever_they_are_forked() -> None:
    feed, done, draw = make_feed(), threading.Event(), random.Random(3)
    expected = weights_of(feed)

    def keep_training() -> None:
        while not done.is_set():
            train(Linear(), feed, epochs=3, threads=2, quiet=True)
            nb.njit(lambda x: x * 2)(len(feed))

    thread = threading.Thread(target=keep_training)
    thread.start()
    try:
        for _ in range(int(os.environ.get("HOGWILD_FORKS", "8"))):
            time.sleep(draw.uniform(0, 0.05))
            assert in_child(lambda: bool((weights_of(feed) == expected).all()))
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("moment", ["started", "progress", "parked", "epoch"])
def test_a_child_does_not_go_on_with_the_run_of_its_parent(moment: str) -> None:
    feed, program = make_feed(), Linear()
    executor = AsyncExecutor(threads=2, sharing="hot", lr=0.1, epochs=20)
    events = executor.run(program, feed)
    if moment != "progress":
        while next(events).kind != moment:
            if moment == "parked":
                executor.park()
    else:
        next(events)
        next(events)

    def go_on() -> bool:
        alone = refused(lambda: list(events), f"belongs to process {os.getppid()}")
        program.weights.table[:] = 7  # no longer the memory of the parent's workers
        return alone and len(weights_of(feed)) > 0

    assert in_child(go_on)
    assert list(events)[-1].reason == "done"
    assert not (program.weights.table == 7).any()


def test_an_executor_that_runs_in_another_thread_is_refused_in_a_child() -> None:
    feed, executor = make_feed(), AsyncExecutor(threads=1, lr=0.1, epochs=1)
    events = executor.run(Linear(), feed)
    next(events)

    def try_all() -> bool:
        reason = f"belongs to process {os.getppid()}"
        return refused(lambda: next(executor.run(Linear(), feed)), reason) and refused(executor.state, reason)

    assert in_child(try_all)
    assert list(events)[-1].reason == "done"
    assert in_child(lambda: list(executor.run(Linear(), feed))[-1].reason == "done")
