"""Pausing, stopping, closing and going on: at any moment, in every mode, with all that was begun done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import hogwild
from hogwild.errors import ConfigError
from hogwild.executor.sharing import WeightStore
from hogwild.executor.state import Position, RunState
from problems.tasks import Cells, Count, Touches, count_program, touches


def test_pause_holds_all_workers_and_resume_lets_them_go() -> None:
    program, samples = count_program(5), touches(300_000, 5)
    executor = hogwild.AsyncExecutor(threads=2, sharing="all")
    counts = []
    for event in executor.run(program, samples, lr=1.0, epochs=30):
        if event.kind == "started":
            executor.pause()
        if event.kind == "progress" and len(counts) < 3:
            counts.append(event.samples)
            if len(counts) == 3:
                executor.resume()
    assert counts[1] == counts[2]
    assert event.kind == "finished"
    assert event.samples == 30 * 300_000


@pytest.mark.parametrize("mode", ["hogwild", "round-robin"])
def test_stop_ends_at_the_next_span_with_all_that_was_done(mode: str) -> None:
    program, samples = count_program(5), touches(200_000, 5)
    executor = hogwild.AsyncExecutor(threads=2, mode=mode, sharing="replica")
    for event in executor.run(program, samples, lr=1.0, epochs=10_000):
        if event.kind in ("progress", "epoch"):
            executor.stop()
    assert event.reason == "stopped"
    assert 0 < event.samples < 10_000 * 200_000
    assert program.weights.values.sum() == pytest.approx(event.samples, rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["locked", "round-robin", "minibatch"])
def test_a_run_in_turns_can_be_closed_at_any_moment(mode: str) -> None:
    for _ in range(40):
        program, samples = count_program(5), touches(20_000, 5)
        executor = hogwild.AsyncExecutor(threads=3, mode=mode)
        run = executor.run(program, samples, lr=1.0, epochs=50)
        next(run)
        next(run)
        run.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("hogwild-")]
        epoch, visits = executor.state().position
        assert program.weights.values.sum() == 20_000 * epoch + visits  # what was begun was ended


def test_nobody_runs_while_copies_are_collected_even_if_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    program, samples = count_program(500), touches(100_000, 500)
    executor = hogwild.AsyncExecutor(threads=2, sharing="replica")
    collect, seen = WeightStore.collect, []

    def resumed_meanwhile(sharing: WeightStore) -> None:
        executor.resume()
        assert executor._course is not None
        before = executor._course.samples
        time.sleep(0.02)
        seen.append(executor._course.samples - before)
        collect(sharing)

    monkeypatch.setattr(WeightStore, "collect", resumed_meanwhile)
    executor.pause()
    paused_at = -1
    for event in executor.run(program, samples, lr=1.0, epochs=3):
        if event.samples > paused_at:
            paused_at = event.samples
            executor.pause()
    assert len(seen) > 3
    assert set(seen) == {0}
    np.testing.assert_array_equal(program.weights.values[:, 0], 3 * np.bincount(samples.rows, minlength=500))


def test_while_paused_the_clock_stands_however_slow_the_reader_is() -> None:
    executor = hogwild.AsyncExecutor(threads=2, sharing="all")
    executor.pause()
    seconds = []
    for event in executor.run(count_program(5), touches(100, 5), lr=1.0, epochs=1):
        if event.kind == "progress" and len(seconds) < 4:
            time.sleep(0.05)
            seconds.append(event.seconds)
            if len(seconds) == 4:
                executor.resume()
    assert len(seconds) == 4
    assert len(set(seconds)) == 1


def test_an_executor_runs_one_thing_at_a_time() -> None:
    executor = hogwild.AsyncExecutor(threads=1)
    first = executor.run(count_program(5), touches(100, 5), lr=1.0)
    next(first)
    with pytest.raises(ConfigError, match="in the middle of a run"):
        next(executor.run(count_program(5), touches(100, 5), lr=1.0))
    first.close()
    assert list(executor.run(count_program(5), touches(100, 5), lr=1.0, epochs=2))[-1].samples == 200


def test_runs_that_overlap_restore_blas_threads_whatever_ends_first() -> None:
    def threads() -> dict[str, int]:
        return {library["filepath"]: library["num_threads"] for library in threadpool_info()}

    before = threads()
    runs = [hogwild.AsyncExecutor(threads=1).run(count_program(5), touches(100, 5), lr=1.0) for _ in "ab"]
    for run in runs:
        next(run)
    assert set(threads().values()) <= {1}
    for run in runs:
        run.close()
    after = threads()
    assert {path: after[path] for path in before} == before
    assert 1 not in set(after.values()) - set(before.values())


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_after_a_run_the_weights_are_in_the_arrays_that_startup_made(sharing: str) -> None:
    """Not in memory that workers have mapped: a child process would write into that of its parent."""
    made = Cells(np.zeros((5000, 1), np.float32))
    program = hogwild.CustomProgram(Count(), lambda: made, room=hogwild.Room(1), tables={
        "values": hogwild.Table(5000, 1, "ranked")})  # fmt: skip
    executor = hogwild.AsyncExecutor(threads=2, sharing=sharing, hot_rows=1024)
    apart = Touches(np.arange(3000, dtype=np.int32), np.ones(3000, np.float32))  # in one copy, too, no update is lost
    list(executor.run(program, apart, epochs=2, lr=1.0))
    assert program.weights is made
    assert (made.values[:, 0] == 2.0 * (np.arange(5000) < 3000)).all()


def test_a_position_inside_a_round_is_refused() -> None:
    state = RunState(Position(0, 5), np.zeros(0, np.uint64), 1, "all", 1.0)
    executor = hogwild.AsyncExecutor(threads=2, mode="round-robin")
    with pytest.raises(ConfigError, match="inside a round"):
        next(executor.run(count_program(5), touches(100, 5), lr=1.0, start=state))


def test_a_generator_that_is_closed_leaves_no_threads_and_whole_weights() -> None:
    program, samples = count_program(5), touches(50_000, 5)
    run = hogwild.AsyncExecutor(threads=3, sharing="replica").run(program, samples, lr=1.0, epochs=200)
    for event in run:
        if event.kind == "epoch":
            break
    run.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hogwild-")]
    done = program.weights.values.sum()
    assert done >= 50_000
    time.sleep(0.02)
    assert program.weights.values.sum() == done


def test_ctrl_c_ends_a_python_run_at_the_next_span() -> None:
    script = """
        import numpy as np, hogwild, sys
        matrix = np.random.default_rng(0).normal(size=(20000, 50)).astype(np.float32)
        feed = hogwild.feed_of(matrix, np.arange(20000) % 2)
        try:
            for event in hogwild.AsyncExecutor(threads=2).run(hogwild.Linear(), feed, epochs=100000, lr=0.1):
                if event.kind == "epoch" and event.epoch == 1:
                    print("ready", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.wait(timeout=120) == 0  # python takes its time to end where cores are busy
