"""Private copies: the same bits with one worker, no delta lost with many, everything there when parked."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sparse

import hogwild
from hogwild.arrays import Table
from hogwild.executor.backends.compiled import CompiledThreads
from hogwild.executor.merging import Brake, Copies, Pace
from hogwild.executor.sharing import CommonArray, WeightStore, merge_pace, private_rows, round_to_pages, whole_pages
from hogwild.executor.tuning import Try, pick
from hogwild.kernels.loop.merge import merge_mixed_rows, merge_rows, show_rows, thrown_back
from hogwild.kernels.loop.span import Span
from hogwild.machine import cores
from problems.tasks import Cells, count_program, touches

ROWS = 3000  # three pages of one-cell rows


def _events(sharing: str, threads: int, visits: int = 60_000, **options: object):
    program = count_program(ROWS)
    samples = touches(visits, ROWS)
    executor = hogwild.AsyncExecutor(threads=threads, sharing=sharing, **options)
    return program, samples, executor, executor.run(program, samples, lr=1.0, epochs=2)


@pytest.mark.parametrize("sharing", ["hot", "replica"])
@pytest.mark.parametrize("threads", [2, 4])
def test_merging_loses_no_delta(sharing: str, threads: int) -> None:
    """Integers in float cells: one lost addition would show. Under `hot` only the private rows are touched."""
    program, samples, _, events = _events(sharing, threads, merge_every=64, hot_rows=ROWS - 1)
    list(events)
    np.testing.assert_array_equal(program.weights.values[:, 0], 2 * np.bincount(samples.rows, minlength=ROWS))


@pytest.mark.parametrize("sharing", ["hot", "replica"])
def test_when_parked_the_common_weights_hold_all_unmerged_deltas(sharing: str) -> None:
    program, samples, executor, events = _events(sharing, 3, visits=200_000, merge_every=10_000_000, hot_rows=ROWS)
    parked = 0
    for event in events:
        if event.kind in ("started", "progress"):
            executor.park()
        if event.kind == "parked":
            parked += 1
            assert program.weights.values.sum() == event.samples
    assert parked >= 1
    np.testing.assert_array_equal(program.weights.values[:, 0], 2 * np.bincount(samples.rows, minlength=ROWS))


def test_hot_rows_are_private_and_the_rest_is_common() -> None:
    table = Table(rows=4096, cells=1, kind="ranked")
    sharing = WeightStore("hot", Cells(np.zeros((4096, 1), np.float32)), {"values": table}, {"values": 1024}, workers=2)
    common = sharing.weights
    first, second = (copies.weights.values for copies in sharing.copies)
    first[0] = 5
    first[4000] = 7
    assert second[0] == 0
    assert common.values[0] == 0
    assert second[4000] == 7
    assert common.values[4000] == 7
    sharing.collect()
    assert common.values[0] == 5
    sharing.copies[1].merge_all()
    assert second[0] == 5


def test_a_view_copies_only_its_private_beginning() -> None:
    common = CommonArray(np.arange(5000, dtype=np.float32))
    view = common.view(1024)
    np.testing.assert_array_equal(view, common.array)
    view[:] = -1
    np.testing.assert_array_equal(common.array[:1024], np.arange(1024))
    np.testing.assert_array_equal(common.array[1024:], -1)


@pytest.mark.parametrize(("rows", "cells", "expected"), [(1, 1, 1024), (1025, 1, 2048), (3, 4, 256), (10, 3, 1024)])
def test_private_rows_end_with_a_page(rows: int, cells: int, expected: int) -> None:
    page = round_to_pages(1)
    assert whole_pages(rows, [cells]) * cells * 4 % page == 0
    if page == 4096:
        assert whole_pages(rows, [cells]) == expected


def test_ranked_arrays_have_the_same_number_of_private_rows() -> None:
    """`Step.private` is one number: a row below it is private in each array, a row beyond it in none."""
    tables = {"wide": Table(1 << 20, 7, "ranked"), "thin": Table(1 << 20, 1, "ranked"), "short": Table(5, 1, "ranked")}
    for hot_rows in (0, 10, 3000):
        rows = private_rows("hot", tables, workers=2, hot_rows=hot_rows)
        assert rows["wide"] == rows["thin"] >= hot_rows
        assert rows["short"] == 5
        for name in ("wide", "thin"):
            assert rows[name] * tables[name].cells * 4 % round_to_pages(1) == 0


def test_a_model_of_dense_arrays_is_told_that_they_are_private() -> None:
    weights = Cells(np.zeros((6, 1), np.float32))
    tables = {"values": Table(6, 1, "dense")}
    for name, expected in (("all", 0), ("hot", 6), ("replica", 6)):
        sharing = WeightStore(name, weights, tables, private_rows(name, tables, 2), workers=2)
        assert sharing.copies[0].private == expected


def test_scalars_are_private_with_two_workers_only() -> None:
    tables = {"table": Table(10, 1, "ranked"), "bias": Table(1, 1, "scalar"), "layer": Table(4, 4, "dense")}
    assert private_rows("all", tables, workers=1) == {}
    assert private_rows("all", tables, workers=2) == {"bias": 1}
    assert private_rows("replica", tables, workers=2) == {"table": 10, "bias": 1, "layer": 4}
    assert private_rows("hot", tables, workers=2) == {"table": 10, "bias": 1, "layer": 4}


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_merge_rows_equals_its_twin(size: int) -> None:
    random = np.random.default_rng(size)
    base = random.normal(size=size).astype(np.float32)
    mine, master = base.copy(), base.copy()
    mine[random.random(size) < 0.5] += 1
    master[random.random(size) < 0.5] -= 0.25
    expected = np.where(master == base, mine, master + (mine - base))
    merge_rows(master, mine, base)
    for array in (master, mine, base):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("size", [1, 64, 200])
def test_rows_that_do_not_add_up_equal_their_twin(size: int) -> None:
    random = np.random.default_rng(size)
    base = random.normal(size=size).astype(np.float32)
    mine, master = base.copy(), random.normal(size=size).astype(np.float32)
    mine[random.random(size) < 0.5] += 1
    apart, whole = [array.copy() for array in (master, mine, base)], [array.copy() for array in (master, mine, base)]
    show_rows(*apart)
    merge_mixed_rows(*whole, np.array([False]))
    for one, other in zip(apart, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_how_far_a_copy_goes_is_seen_by_what_it_takes_back(share: float) -> None:
    """Copies that go a share of the way to a common optimum at each stretch; the cell between the weights is memory."""
    optimum = np.array([3.0, -2.0, 0.5], np.float32)
    weights = np.array([0, 9, 0, 9, 0, 9], np.float32)  # two cells a row, the second one no weight
    master, mine, base = weights.copy(), weights.copy(), weights.copy()
    last = np.zeros((2, 3), np.float32)
    for turn in range(2):
        mine[::2] += share * (optimum - mine[::2]) + (0.01 if share == 0 else 0)
        mine[1::2] += 100
        master[::2] += [1, 0.5, -0.25]  # of others
        part, whole = thrown_back(master, mine, base, (2, 1), last)
        merge_rows(master, mine, base)
        if turn == 0:
            assert (part, whole) == (0, 0)
    assert part / whole == pytest.approx(share, abs=1e-3)


def test_the_brake_holds_copies_that_overshoot_and_lets_others_go() -> None:
    def stretch(share: float, brake: Brake, turns: int) -> None:
        table = {"values": Table(1, 1, "dense")}
        sharing = WeightStore("replica", Cells(np.zeros((1, 1), np.float32)), table, {"values": 1}, workers=2)
        copies, common = sharing.copies[0], sharing.weights.values
        mine = copies.weights.values
        copies.brake = brake
        for _ in range(turns):
            mine += share * (5 - mine)
            common += 0.5  # of another worker
            copies.merge_some(min(1000, brake.most), 0)

    brake = Brake(workers=2)
    stretch(0.2, brake, 10)
    assert brake.most > 10**9  # twice 0.2 of the way is no overshoot
    stretch(0.8, brake, 10)
    assert brake.most < 100
    held = brake.most
    stretch(0.1, brake, 20)
    assert brake.most > held


def test_cells_that_are_not_additive_stay_with_their_worker() -> None:
    base = np.array([1, 10, 2, 20], np.float32)
    mine = np.array([2, 11, 2, 20], np.float32)
    master = np.array([1.5, 30, 2.5, 40], np.float32)
    merge_mixed_rows(master, mine, base, np.array([True, False]))
    np.testing.assert_array_equal(mine, [2.5, 11, 2.5, 20])
    np.testing.assert_array_equal(master[[0, 2]], [2.5, 2.5])
    assert master[1] == 11
    assert master[3] == 40  # not touched by this worker: what another one wrote stays


@pytest.mark.parametrize(
    ("optimizer", "options", "lr"), [("ftrl", {"l1": 0.1, "l2": 0.1}, 0.1), ("adam", {"l2": 1e-4}, 0.01)]
)
def test_private_copies_learn_what_one_worker_learns(optimizer: str, options: dict[str, float], lr: float) -> None:
    """Memory that does not fit the merged weights would make a worker learn twice what others have learned."""
    random = np.random.default_rng(0)
    matrix = sparse.random(6000, 200, 0.05, format="csr", random_state=0, dtype=np.float32)
    feed = hogwild.feed_of(matrix, (matrix @ random.normal(size=200) > 0).astype(int))

    def weights(mode: str, threads: int) -> np.ndarray:
        program = hogwild.Linear(optimizer=optimizer, **options)
        executor = hogwild.AsyncExecutor(threads=threads, mode=mode, sharing="replica", merge_every=50)
        list(executor.run(program, feed, lr=lr, epochs=4))
        return program.arrays()["weight"]

    alone, together = weights("serial", 1), weights("hogwild", 4)
    # Learning twice would double the norm, and what is not a sum, but was added up, would make it grow without end.
    assert np.linalg.norm(together) == pytest.approx(np.linalg.norm(alone), rel=0.3)
    assert np.corrcoef(alone, together)[0, 1] > 0.97


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 2e-3), (2e-4, 0.0)])
@pytest.mark.parametrize("threads", [1, 4])
def test_penalties_of_private_rows_are_paid_in_full_and_once(threads: int, l1: float, l2: float) -> None:
    """Samples that weigh nothing: only the penalty moves weights. Most rows pay a whole epoch at once, at its end."""
    matrix = sparse.random(4000, 500, 0.002, format="csr", random_state=0, dtype=np.float32)
    feed = hogwild.feed_of(matrix, np.arange(4000) % 2, sample_weight=np.zeros(4000))
    program = hogwild.Linear(optimizer="sgd", l1=l1, l2=l2, classes=[0, 1], features=500)
    program.restore({"weight": np.linspace(-1, 1, 500).astype(np.float32), "bias": np.zeros(1, np.float32)})
    executor = hogwild.AsyncExecutor(threads=threads, sharing="replica")
    list(executor.run(program, feed, lr=0.5, schedule="constant", epochs=2))
    before, elapsed = np.linspace(-1, 1, 500), 0.5 * 4000 * 2
    after = before * np.exp(-l2 * elapsed) if l2 else np.sign(before) * np.maximum(np.abs(before) - l1 * elapsed, 0)
    np.testing.assert_allclose(program.arrays()["weight"], after, rtol=1e-3, atol=1e-5)


def test_what_a_rule_remembers_survives_the_workers_who_never_saw_it() -> None:
    """One worker makes all visits; the others, who know nothing of the row, are collected after it."""
    table = Table(1, 2, "ranked", additive=(True, False))
    sharing = WeightStore("replica", Cells(np.zeros((1, 2), np.float32)), {"values": table}, {"values": 1}, workers=3)
    sharing.copies[0].weights.values[0] = 3, 7
    sharing.collect()
    sharing.collect()
    assert sharing.weights.values.tolist() == [[3, 7]]


def test_the_trial_takes_the_fastest_that_learns() -> None:
    tries = {"all": Try(1.0, 0.500), "hot": Try(0.7, 0.502), "replica": Try(0.5, 0.51)}
    assert pick(tries) == "hot"
    assert pick({**tries, "replica": Try(0.5, 0.49)}) == "replica"
    assert pick({name: Try(1.0, float("inf")) for name in tries}) == "all"


def test_private_copies_must_pay() -> None:
    """Slower, or hardly faster: one copy, also where the others seem to have learnt more in so short a time."""
    assert pick({"all": Try(1.0, 0.60), "hot": Try(1.5, 0.55), "replica": Try(0.98, 0.55)}) == "all"
    assert pick({"all": Try(1.0, 0.60), "hot": Try(0.9, 0.55), "replica": Try(0.98, 0.55)}) == "hot"
    assert pick({"all": Try(1.0, -0.60), "hot": Try(0.9, -0.59), "replica": Try(0.9, float("nan"))}) == "all"


@pytest.mark.parametrize("kind", ["ranked", "dense", "scalar"])
@pytest.mark.parametrize("rows", [1, 5, 4096, 4097, 70_000])
def test_tiers_hold_every_private_row_once(kind: str, rows: int) -> None:
    tables = {"values": Table(rows, 1, kind)}
    sharing = WeightStore("replica", Cells(np.zeros((rows, 1), np.float32)), tables, {"values": rows}, workers=2)
    parts = [part for tier in sharing.copies[1].tiers for part in tier.parts]
    cells = np.concatenate([np.arange(part.slice.start, part.slice.stop) for part in parts])
    np.testing.assert_array_equal(np.sort(cells), np.arange(rows))


def test_auto_says_what_it_chose() -> None:
    _, _, _, events = _events("auto", 2)
    started = next(events)
    assert started.sharing in ("all", "hot", "replica")
    assert any(note.startswith(f"sharing {started.sharing}") for note in started.notes)
    events.close()


def test_auto_keeps_one_copy_when_workers_wait_for_cores() -> None:
    _, _, _, events = _events("auto", cores() + 1)
    started = next(events)
    assert started.sharing == "all"
    assert "sharing all: there are more workers than cores." in started.notes
    events.close()


def _pace(workers: int, visits: int, liked: int = 200, asked: int = 0) -> Pace:
    config, program = SimpleNamespace(merge_every=asked), SimpleNamespace(merge_every=liked)
    return merge_pace(SimpleNamespace(config=config, program=program, visits=visits), workers)


@pytest.mark.parametrize(("workers", "visits", "most"), [(2, 10_000, 200), (4, 10**5, 22), (2, 1600, 20), (2, 320, 1)])
def test_private_rows_merge_sooner_with_more_workers_and_in_short_epochs(workers: int, visits: int, most: int) -> None:
    assert _pace(workers, visits).visits(10**9) == most
    assert not _pace(workers, visits).timed


def test_copies_begin_close_together() -> None:
    """What a worker has not merged yet is a small share of what all have learnt, from the first visit on."""
    for workers in (2, 4, 10):
        pace = _pace(workers, 10**9, liked=0)
        assert pace.visits(0) == 1
        for done in (100, 10_000, 1_000_000):
            assert workers * pace.visits(done) <= max(workers, done / 8)
        assert pace.visits(10**9) > 10**5


@pytest.mark.parametrize("there", [1, 2, 3])
@pytest.mark.parametrize("sharing", ["hot", "replica"])
def test_there_are_as_many_private_copies_as_cores(monkeypatch: pytest.MonkeyPatch, sharing: str, there: int) -> None:
    """Ten threads take turns with them, each copy with one thread at a time, and no difference is lost."""
    monkeypatch.setattr("hogwild.executor.sharing.cores", lambda: there)
    lock, inside, seen = threading.Lock(), set(), set()

    def run(self: CompiledThreads, worker: int, span: Span) -> float:
        with lock:
            seen.add((worker, len(inside), worker in inside))
            inside.add(worker)
        time.sleep(0)
        loss = one_span(self, worker, span)
        with lock:
            inside.discard(worker)
        return loss

    one_span = CompiledThreads.run
    monkeypatch.setattr(CompiledThreads, "run", run)
    program, samples, executor, events = _events(sharing, 10, hot_rows=ROWS)
    workers = "1 worker" if there == 1 else f"{there} workers"
    assert f"10 threads take turns as {workers}, one a core: see --sharing." in next(events).notes
    crew, plan = executor._course.crew, executor._course.plan
    assert (len(crew.store.copies), crew.store.pace) == (there, merge_pace(plan, there))
    list(events)
    assert len(crew.threads) == 10
    assert max(worker for worker, _, _ in seen) < there
    assert max(others for _, others, _ in seen) < there
    assert not any(taken for _, _, taken in seen)
    np.testing.assert_array_equal(program.weights.values[:, 0], 2 * np.bincount(samples.rows, minlength=ROWS))


def test_threads_beyond_the_workers_end_with_the_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who wait for their turn too: or the run would never end."""
    monkeypatch.setattr("hogwild.executor.sharing.cores", lambda: 2)
    _, _, executor, events = _events("replica", 10)
    next(events)
    crew = executor._course.crew
    monkeypatch.setattr(crew.backend, "run", lambda worker, span: float("nan"))
    with pytest.raises(hogwild.WorkerError, match="the loss became nan"):
        list(events)
    assert len(crew.threads) == 10
    assert not any(thread.is_alive() for thread in crew.threads)


def test_whoever_sets_the_pace_by_hand_has_a_copy_for_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.executor.sharing.cores", lambda: 1)
    _, _, executor, events = _events("replica", 3, merge_every=50)
    next(events)
    assert len(executor._course.crew.store.copies) == 3
    events.close()


def test_nobody_waits_for_a_core_where_nothing_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.executor.sharing.cores", lambda: 1)
    _, _, executor, events = _events("all", 5)
    assert next(events).notes == ()
    assert len(executor._course.crew.store.copies) == 5
    events.close()


def test_memory_is_asked_for_the_copies_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("hogwild.executor.sharing.cores", lambda: 2)
    monkeypatch.setattr("hogwild.executor.sharing.check_memory", lambda needed, *_: asked.append(needed))
    _, _, _, events = _events("replica", 10)
    next(events)
    events.close()
    assert asked == [2 * 2 * 4 * ROWS]  # two workers, copy and base


def test_each_stretch_begins_with_what_all_have_added() -> None:
    """Six workers: each adds 1 to its own copy of one cell, in turns; none sees less than was merged."""
    tables = {"values": Table(1, 1, "scalar")}
    store = WeightStore("replica", Cells(np.zeros((1, 1), np.float32)), tables, {"values": 1}, 6, Pace(lead=1))
    lock, merged, late = threading.Lock(), 0, 0

    def work(copies: Copies) -> None:
        nonlocal merged, late
        for _ in range(200):
            before = merged
            copies.catch_up()
            behind = float(copies.weights.values[0, 0]) < before - 1  # one merge is as late as a span of another's
            copies.weights.values[0, 0] += 1
            time.sleep(0)
            copies.merge_some(1, 1)
            with lock:
                merged += 1
                late += behind

    threads = [threading.Thread(target=work, args=(copies,)) for copies in store.copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert late == 0
    store.collect()
    assert store.weights.values[0, 0] == 1200


def test_a_pace_that_the_user_asks_for_is_kept_from_the_beginning() -> None:
    assert _pace(4, 1000, asked=5000).visits(0) == 5000
    assert _pace(1, 1000).visits(0) > 10**9
