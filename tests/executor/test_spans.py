"""Spans: every position once, the same spans for all in lockstep, gates that stop everybody."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from hogwild.errors import WorkerError
from hogwild.executor.spans import Claims


def _work(claims: Claims, worker: int, seen: list[tuple[int, int, int]], lock: threading.Lock) -> None:
    while (claim := claims.claim(worker)) is not None:
        with lock:
            seen.append((worker, claim.start, claim.stop))
        claims.done(claim.stop - claim.start, 1e-5)


def _run(workers: int, visits: int, lockstep: int = 0, start: int = 0) -> list[tuple[int, int, int]]:
    claims = Claims(workers, lockstep)
    seen: list[tuple[int, int, int]] = []
    lock = threading.Lock()
    threads = [threading.Thread(target=_work, args=(claims, w, seen, lock)) for w in range(workers)]
    for thread in threads:
        thread.start()
    claims.open_epoch(0, visits, start)
    while claims.wait(0.1) != "epoch":
        pass
    claims.finish()
    for thread in threads:
        thread.join()
    return seen


@pytest.mark.parametrize(("workers", "visits", "start"), [(1, 1, 0), (1, 1000, 0), (3, 10_007, 0), (4, 50_000, 777)])
def test_every_position_is_claimed_exactly_once(workers: int, visits: int, start: int) -> None:
    spans = sorted((a, b) for _, a, b in _run(workers, visits, start=start))
    assert spans[0][0] == start
    assert spans[-1][1] == visits
    assert all(before[1] == after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize(("workers", "visits", "round_"), [(2, 5, 2), (3, 1001, 12), (10, 40_000, 10)])
def test_in_lockstep_all_workers_get_the_same_whole_rounds(workers: int, visits: int, round_: int) -> None:
    seen = _run(workers, visits, lockstep=round_)
    each = [[(a, b) for w, a, b in seen if w == worker] for worker in range(workers)]
    assert all(spans == each[0] for spans in each)
    assert each[0][0][0] == 0
    assert each[0][-1][1] == visits
    assert all((b - a) % round_ == 0 for a, b in each[0][:-1])


def test_a_closed_gate_parks_everybody_in_lockstep_at_the_same_place() -> None:
    claims = Claims(2, lockstep=2)
    claims.open_epoch(0, 100_000)
    first = claims.claim(0)
    assert first is not None
    claims.gates.add("park")
    assert claims.wait(0.01) == "running"  # worker 0 is in a span that worker 1 has not seen
    claims.done(2, 1.0)
    assert claims.wait(0.01) == "running"  # worker 1 must still catch up
    second = claims.claim(1)
    assert second is not None
    assert (second.start, second.stop) == (first.start, first.stop)
    claims.done(2, 1.0)
    assert claims.wait(0.01) == "parked"
    claims.open_gate("park")
    assert claims.wait(0.01) == "parked"  # until the main thread has done what it wanted to
    claims.release()
    assert claims.wait(0.01) == "running"


def test_when_a_run_is_over_those_who_are_behind_in_lockstep_catch_up() -> None:
    claims = Claims(2, lockstep=2)
    claims.open_epoch(0, 100_000)
    first = claims.claim(0)
    claims.finish()
    assert claims.claim(1) == first  # worker 0 waits for it inside of compiled code
    assert claims.claim(0) is None
    assert claims.claim(1) is None


def test_after_an_error_nobody_gets_a_span() -> None:
    claims = Claims(2, lockstep=2)
    claims.open_epoch(0, 100_000)
    claims.claim(0)
    claims.fail(WorkerError("planted", 0, 0, (0, 2)))
    assert claims.wait(0.01) == "failed"
    assert claims.claim(1) is None


def test_a_gate_can_be_closed_by_who_holds_the_lock() -> None:
    """As a signal handler does that interrupts the main thread anywhere."""
    claims = Claims(1)
    claims.open_epoch(0, 100)
    with claims._lock:
        claims.gates.add("stop")
        claims.open_gate("pause")
    assert claims.wait(0.01) == "parked"


def test_spans_shrink_towards_the_end_so_that_workers_end_together() -> None:
    """Within a third of a millisecond: a tail of ever smaller spans would cost more than it gains."""
    claims = Claims(2)
    claims.open_epoch(0, 100_000)
    sizes = []
    for _ in range(2000):
        claim = claims.claim(0)
        assert claim is not None
        sizes.append(claim.stop - claim.start)
        claims.done(sizes[-1], sizes[-1] * 1e-8)
        if claim.stop == 100_000:
            break
    assert max(sizes) <= 100_000 // 3
    assert sizes[-1] * 1e-8 <= 0.0003
    assert min(sizes[1:-1]) * 1e-8 > 0.00015


@pytest.mark.parametrize("pace", [100.0, 1e5])
def test_spans_are_of_whole_groups(pace: float) -> None:
    """Where workers make visits together, a span ends where a group does, whatever it takes: one worker repeats."""
    claims = Claims(2, group=12)
    claims.open_epoch(0, 1000)
    ends = [0]
    while ends[-1] < 1000:
        claim = claims.claim(0)
        assert claim is not None
        assert claim.start == ends[-1]
        claims.done(claim.stop - claim.start, (claim.stop - claim.start) / pace)
        ends.append(claim.stop)
    assert all(end % 12 == 0 for end in ends[:-1])
    assert ends[-1] == 1000


def test_a_limit_cuts_groups() -> None:
    """Private copies may be merged sooner than a group has been made."""
    claims = Claims(2, group=12)
    claims.open_epoch(0, 1000)
    claim = claims.claim(0, most=5)
    assert claim is not None
    assert claim.stop == 5
