"""Gradient errors: a planted interleaving whose answer is known, and modes that must show none."""

from __future__ import annotations

import numpy as np
import pytest

import hogwild
from executor.staged import EXPECTED, MOMENTS, Staged, kinds
from hogwild.arrays import Table
from hogwild.executor.trace import LOOK_EVERY, add_up
from hogwild.kernels.loop.trace import bucket_of
from problems.tasks import GO, MIDDLE, Cells, Count, Interleave, Touches, Twice, count_program, touches


def _interleaved(rows: list[int]) -> tuple[dict, dict]:
    """Visit 0 has read its row; then others are made; then it is applied. Entries of the others, and of it."""
    task = Interleave(np.ones(24, np.int64), np.zeros(16, np.int64))
    program = hogwild.CustomProgram(task, lambda: Cells(np.zeros((4, 1), np.float32)), room=hogwild.Room(1))
    samples = Touches(np.array(rows, np.int32), np.ones(len(rows), np.float32))
    executor = hogwild.AsyncExecutor(threads=2, sharing="all", trace=True, shuffle=False)
    run = executor.run(program, samples, lr=1.0, epochs=1)
    next(run)
    task.flags[:] = 0  # nobody waited while the visits were rehearsed
    probe = executor._course.trace.probes[0]
    assert probe.every > 1
    for event in run:
        if event.kind == "progress" and probe.made.sum() >= min(len(rows), MIDDLE) - 1:
            task.flags[GO] = 1  # lets visit 0 go on
        if event.kind == "epoch":
            by_delay = sorted((w for w in event.trace if w["gradients"]), key=lambda w: w["delay"]["max"])
            return by_delay[0], by_delay[-1]
    raise AssertionError("the epoch did not end")


def test_a_planted_read_overwrite_is_counted_and_sized() -> None:
    """Visit 0 reads row 2 (value 0), visit 1 adds 1 to it, then visit 0 is applied: late by one, wrong by one half."""
    early, late = _interleaved([2, 2])
    assert (early["gradients"], kinds(early), early["delay"]["max"]) == (1, (0, 0, 0, 0), 0)
    assert (late["gradients"], kinds(late)) == (1, (1, 0, 1, 0))
    assert late["delay"] == {"mean": 1.0, "p50": 1, "p99": 1, "max": 1, "counts": {1: 1}}
    assert add_up((early, late))["delay"] == {"mean": 0.5, "p50": 0, "p99": 1, "max": 1, "counts": {0: 1, 1: 1}}
    assert late["wrong"]["samples"] == 1
    assert late["wrong"]["max"] == pytest.approx(0.5)  # used 0 + 1 where the gradient is 1 + 1


def test_the_same_delay_on_another_row_is_a_delay_and_no_error() -> None:
    _, late = _interleaved([2, 3])
    assert (kinds(late), late["delay"]["max"]) == ((0, 0, 0, 1), 1)
    assert late["wrong"]["max"] == 0.0


def test_visits_that_nobody_looks_at_delay_others_too() -> None:
    """The other worker makes 100 visits, of which it looks at two, and stands in the middle of a span."""
    _, late = _interleaved([2] + [3] * 200)
    assert late["delay"]["max"] >= MIDDLE - 1
    assert kinds(late) == (0, 0, 0, 1)


def _staged(rows: list[int]) -> Staged:
    weights = Cells(np.arange(8, dtype=np.float32).reshape(8, 1))
    samples = Touches(np.array(rows, np.int32), np.ones(len(rows), np.float32))
    return Staged(Count(), samples, weights, {"values": Table(8, 1, "ranked")}, hogwild.Room(4))


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_write_of_another_worker_is_depends_on_its_moment(moment: str) -> None:
    """A row that is read while it changes, one that is written while it changes, or a gradient that is merely late."""
    staged = _staged([5, 6])

    def write() -> None:
        staged.weights.values[5] += 7

    entry = staged.visit(0, moment, write)
    assert kinds(entry) == EXPECTED[moment]
    assert (entry["looked_at"], entry["gradients"]) == (1, 1)
    assert entry["error_rate"] == EXPECTED[moment][2]
    # The same on a row that this visit has nothing to do with: late at the most.
    entry = staged.visit(1, moment, write)
    assert kinds(entry) == (0, 0, 0, int(moment in ("reading", "waiting")))
    assert staged.weights.values[:, 0].tolist() == [0, 1, 2, 3, 4, 5 + 14 + 1, 6 + 1, 7]


def test_a_visit_that_nobody_disturbs_has_no_error_whatever_it_lists() -> None:
    """Rows that stand twice in the list are written twice, by one worker."""
    weights, samples = Cells(np.zeros((8, 1), np.float32)), touches(3, 8)
    staged = Staged(Twice(), samples, weights, {"values": Table(8, 1, "ranked")}, hogwild.Room(2))
    assert kinds(staged.visit(1, "never", lambda: None)) == (0, 0, 0, 0)
    assert weights.values.sum() == 2


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
        assert kinds(total) == (0, 0, 0, 0)
        assert total["delay"]["max"] == 0
        assert total["wrong"]["samples"] == total["looked_at"] >= 4000 // LOOK_EVERY
        assert total["wrong"]["mean"] == 0.0


def test_round_robin_shows_the_delay_that_it_has() -> None:
    """In a round of k all read before anyone writes: the j-th of a round is late by j, and nothing else."""
    program = count_program(1)
    executor = hogwild.AsyncExecutor(threads=3, mode="round-robin", trace=True)
    ends = [e for e in executor.run(program, touches(300, 1), lr=1.0, epochs=1) if e.kind == "epoch"]
    assert [w["delay"]["max"] for w in ends[0].trace] == [0, 1, 2]
    assert [(w["gradients"], w["looked_at"], kinds(w)) for w in ends[0].trace] == [
        (100, 2, (0, 0, 0, 0)), (100, 2, (0, 0, 0, 2)), (100, 2, (0, 0, 0, 2)),
    ]  # fmt: skip


def test_hogwild_on_one_row_shows_errors_and_counts_every_gradient() -> None:
    """Where workers share a core, one may have done an epoch before the others begin: then there are none in it."""
    program = count_program(1)
    executor = hogwild.AsyncExecutor(threads=4, trace=True, sharing="all")
    found = 0
    for event in executor.run(program, touches(100_000, 1), lr=1.0, epochs=10_000):
        if event.kind == "epoch":
            total = add_up(event.trace)
            assert total["gradients"] == 100_000
            assert total["errors"] + total["delayed"] <= total["looked_at"] < 100_000 // 32
            assert total["errors"] <= total["read_overwrites"] + total["write_overwrites"]
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

    def copies(probe: str) -> int:
        found = [
            code.count("@llvm.memcpy") for signature, code in run_fresh_span.inspect_llvm().items()
            if f"{probe}(" in str(signature) and "FreeMode" in str(signature) and "Count" in str(signature)
        ]  # fmt: skip
        assert found
        return sum(found)

    assert copies("Untraced") == 0
    assert copies(" Traced") > 0
