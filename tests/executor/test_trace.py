"""Gradient errors: a planted interleaving whose answer is known, and modes that must show none."""

from __future__ import annotations

import numpy as np
import pytest

import hogwild
from hogwild.arrays import Table, make_scratch
from hogwild.executor.trace import Trace, add_up
from hogwild.kernels.compiler.jit import fresh
from hogwild.kernels.loop.trace import begin_writing, bucket_of, count_gradient, end_writing
from problems.tasks import Cells, Interleave, Touches, count_program, touches


def _interleaved(rows: list[int]) -> tuple[dict, dict]:
    task = Interleave(np.ones(16, np.int64), np.zeros(16, np.int64))
    program = hogwild.CustomProgram(task, lambda: Cells(np.zeros((4, 1), np.float32)), room=hogwild.Room(1))
    samples = Touches(np.array(rows, np.int32), np.ones(2, np.float32))
    executor = hogwild.AsyncExecutor(threads=2, sharing="all", trace=True, shuffle=False)
    run = executor.run(program, samples, lr=1.0, epochs=1)
    next(run)
    task.flags[:] = 0  # nobody waited while the visits were rehearsed
    # The second visit says when it is applied: the flag that lets the first one go on.
    probe = executor._course.trace.probes[0]
    assert probe.every > 1
    for event in run:
        if event.kind == "progress" and probe.clock[0] >= 1:
            task.flags[1] = 1
        if event.kind == "epoch":
            by_delay = sorted((w for w in event.trace if w["gradients"]), key=lambda w: w["delay"]["max"])
            return by_delay[0], by_delay[-1]
    raise AssertionError("the epoch did not end")


def test_a_planted_read_overwrite_is_counted_and_sized() -> None:
    """Visit 0 reads row 2 (value 0), visit 1 adds 1 to it, then visit 0 is applied: late by one, wrong by one half."""
    early, late = _interleaved([2, 2])
    assert (early["gradients"], early["errors"], early["delay"]["max"]) == (1, 0, 0)
    assert (late["gradients"], late["errors"], late["read_overwrites"], late["write_overwrites"]) == (1, 1, 1, 0)
    assert late["delay"] == {"mean": 1.0, "p50": 1, "p99": 1, "max": 1, "counts": {1: 1}}
    assert add_up((early, late))["delay"] == {"mean": 0.5, "p50": 0, "p99": 1, "max": 1, "counts": {0: 1, 1: 1}}
    assert late["wrong"]["samples"] == 1
    assert late["wrong"]["max"] == pytest.approx(0.5)  # used 0 + 1 where the gradient is 1 + 1


def test_the_same_delay_on_another_row_is_no_error() -> None:
    _, late = _interleaved([2, 3])
    assert (late["errors"], late["delay"]["max"]) == (0, 1)
    assert late["wrong"]["max"] == 0.0


def _probes(workers: int, private: int = 0):
    trace = Trace({"values": Table(8, 1, "ranked")}, hogwild.Room(4), every=1_000_000)
    trace.mark_private({"values": private})
    weights = Cells(np.zeros((8, 1), np.float32))
    return trace, [trace.add_worker(weights) for _ in range(workers)]


def test_a_planted_write_overwrite_is_counted_for_both_workers() -> None:
    """Both begin to write row 5 before either has ended."""
    begin = fresh(lambda probe, scratch: begin_writing(probe, scratch))  # noqa: PLW0108
    end = fresh(lambda probe, scratch, clash: count_gradient(probe, False, end_writing(probe, scratch) or clash))
    for private, expected in ((0, 1), (8, 0)):
        trace, (one, two) = _probes(2, private)
        scratches = [make_scratch(hogwild.Room(4), np.uint64(1)) for _ in range(2)]
        for scratch in scratches:
            scratch.rows[:2] = 5, 6
            scratch.count[0] = 2
        clashes = [begin(one, scratches[0]), begin(two, scratches[1])]
        end(one, scratches[0], clashes[0])
        end(two, scratches[1], clashes[1])
        first, second = trace.take()
        assert (first["write_overwrites"], second["write_overwrites"]) == (expected, expected)
        assert first["read_overwrites"] == 0
        assert first["errors"] == expected


@pytest.mark.parametrize(
    ("mode", "threads", "batch"), [("serial", 1, 0), ("locked", 3, 0), ("minibatch", 3, 0), ("minibatch", 3, 7)]
)
def test_modes_that_exclude_errors_show_none(mode: str, threads: int, batch: int) -> None:
    """In a batch all gradients are computed, then all are written at once: none is late."""
    program = count_program(3)
    executor = hogwild.AsyncExecutor(threads=threads, mode=mode, batch=batch, trace=True)
    ends = [e for e in executor.run(program, touches(4000, 3), lr=1.0, epochs=2) if e.kind == "epoch"]
    assert len(ends) == 2
    for end in ends:
        total = add_up(end.trace)
        assert total["gradients"] == 4000
        assert total["errors"] == total["read_overwrites"] == total["write_overwrites"] == 0
        assert total["delay"]["max"] == 0
        assert total["wrong"]["samples"] >= 4000 // 64
        assert total["wrong"]["mean"] == 0.0


def test_round_robin_shows_the_delay_that_it_has() -> None:
    """In a round of k all read before anyone writes: the j-th of a round is late by j."""
    program = count_program(1)
    executor = hogwild.AsyncExecutor(threads=3, mode="round-robin", trace=True)
    ends = [e for e in executor.run(program, touches(300, 1), lr=1.0, epochs=1) if e.kind == "epoch"]
    assert [w["delay"]["max"] for w in ends[0].trace] == [0, 1, 2]
    assert [w["errors"] for w in ends[0].trace] == [0, 100, 100]


def test_hogwild_on_one_row_shows_errors_and_counts_every_gradient() -> None:
    """Where workers share a core, one may have done an epoch before the others begin: then there are none in it."""
    program = count_program(1)
    executor = hogwild.AsyncExecutor(threads=4, trace=True, sharing="all")
    found = 0
    for event in executor.run(program, touches(100_000, 1), lr=1.0, epochs=10_000):
        if event.kind == "epoch":
            total = add_up(event.trace)
            assert total["gradients"] == 100_000
            assert total["errors"] <= min(100_000, total["read_overwrites"] + total["write_overwrites"])
            found += total["errors"]
            if found:
                executor.stop()
    assert found > 0


@pytest.mark.parametrize("delay", [0, 1, 255, 256, 300, 511, 512, 10_000, 10**9])
def test_delay_buckets_are_exact_or_within_a_thirtieth(delay: int) -> None:
    from hogwild.executor.trace import _delay_counts
    from hogwild.kernels.loop.trace import BUCKETS

    counts = np.zeros(BUCKETS, np.int64)
    counts[bucket_of(delay)] = 1
    ((found, times),) = _delay_counts(counts).items()
    assert times == 1
    assert found == pytest.approx(delay, rel=1 / 30, abs=0.1)


def test_without_trace_there_is_none_of_it_in_the_compiled_code() -> None:
    from hogwild.kernels.loop.span import run_fresh_span

    for trace in (False, True):
        executor = hogwild.AsyncExecutor(threads=1, mode="serial", trace=trace)
        list(executor.run(count_program(3), touches(10, 3), lr=1.0, epochs=1))

    def exchanges(probe: str) -> int:
        found = [
            code.count("atomicrmw xchg") for signature, code in run_fresh_span.inspect_llvm().items()
            if f"{probe}(" in str(signature) and "FreeMode" in str(signature) and "Count" in str(signature)
        ]  # fmt: skip
        assert found
        return sum(found)

    assert exchanges("Untraced") == 0
    assert exchanges(" Traced") > 0
