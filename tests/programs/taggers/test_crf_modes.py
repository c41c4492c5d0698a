"""CRFs through the executor: modes, sharings, gradient errors, averages, runs that stop and go on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hogwild
from compiling import LATER, OFF, cases, compiled_in_full
from hogwild.executor.run import AsyncExecutor
from hogwild.kernels.loop.order import shuffled
from hogwild.kernels.loop.schedule import make_schedule
from hogwild.programs.store import load_model, save_model
from hogwild.programs.taggers.crf import CRF
from problems.crf import SOME, make_crf, make_feed, model_of
from reference import crf as twin
from reference import linear as reference

LENGTHS = (1, 7, 4, 2, 5, 3, 1, 6, 2, 4, 3)
LR = 0.2


def run(program: CRF, feed: Any, mode: str = "serial", threads: int = 1, epochs: int = 2, **options: Any) -> list[Any]:
    """All events of a run."""
    executor = AsyncExecutor(threads=threads, mode=mode, **{"lr": LR, **options})
    return list(executor.run(program, feed, epochs=epochs))


def bits(program: CRF) -> dict[str, bytes]:
    """All that a run has changed, to the last bit."""
    return {name: array.tobytes() for name, array in program.arrays(state=True).items()}


def equal(program: CRF, slow: twin.CRFTwin, tolerance: float = 1e-3) -> None:
    """The weights of a program are those of the twin."""
    found, exact = model_of(program), slow.model()
    np.testing.assert_allclose(found.nodes, exact.nodes, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.edges, exact.edges, rtol=tolerance, atol=tolerance)
    for one, other in zip(found.rich, exact.rich, strict=True):
        assert list(one) == list(other)
        np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=tolerance, atol=tolerance)


def order_of(feed: Any, epochs: int, seed: int = 1) -> list[int]:
    """The order in which a run visits the sentences."""
    return [int(k) for epoch in range(epochs) for k in shuffled(len(feed), seed, epoch).blocks]


# -- five modes -----------------------------------------------------------------------------------------------------


def test_serial_equals_the_twin_and_itself() -> None:
    feed = make_feed(40, lengths=LENGTHS)
    program, again = CRF(l2=2.0, **SOME), CRF(l2=2.0, **SOME)
    events = run(program, feed)
    run(again, feed)
    assert bits(program) == bits(again)
    slow = twin.CRFTwin(model_of(make_crf(feed, None, **SOME)), program.task.rule, 0.0, 2.0 / len(feed))
    schedule = make_schedule("linear", LR, len(feed), 2)
    order, chains = order_of(feed, 2), twin.chains_of(feed.samples)
    losses = [slow.run(chains, schedule, order[k : k + 11], k) / 11 for k in (0, 11)]
    assert [event.loss for event in events if event.kind == "epoch"] == pytest.approx(losses, rel=1e-5)
    equal(program, slow)
    assert program.evaluate(feed)["loss"] < losses[0]


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_one_worker_is_serial(sharing: str) -> None:
    feed = make_feed(41, lengths=LENGTHS)
    serial, free = CRF(**SOME), CRF(**SOME)
    run(serial, feed)
    run(free, feed, "hogwild", 1, sharing=sharing)
    assert bits(serial) == bits(free)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_round_robin_equals_the_twin_and_itself(workers: int) -> None:
    feed = make_feed(42, lengths=LENGTHS)
    program, again = CRF(l2=0.0, **SOME), CRF(l2=0.0, **SOME)
    run(program, feed, "round-robin", workers, epochs=1)
    run(again, feed, "round-robin", workers, epochs=1)
    assert bits(program) == bits(again)
    slow = twin.CRFTwin(model_of(make_crf(feed, None, **SOME)), program.task.rule)
    chains = twin.chains_of(feed.samples)
    slow.run_rounds(chains, make_schedule("linear", LR, len(feed), 1), order_of(feed, 1), workers)
    equal(program, slow)


@compiled_in_full
@pytest.mark.parametrize(
    ("rule", "workers", "batch"), [("sgd", 1, 0), ("sgd", 2, 3), ("sgd", 1, 100), ("adagrad", 3, 0)]
)
def test_minibatches_equal_the_twin(rule: str, workers: int, batch: int) -> None:
    feed = make_feed(43, lengths=LENGTHS)
    program = CRF(rule, l2=2.0, **SOME)
    events = run(program, feed, "minibatch", workers, epochs=1, batch=batch)
    slow = twin.CRFTwin(model_of(make_crf(feed, None, **SOME)), program.task.rule, 0.0, 2.0 / len(feed))
    schedule = make_schedule("linear", LR, len(feed), 1)
    chains = twin.chains_of(feed.samples)
    loss = slow.run_batches(chains, schedule, order_of(feed, 1), min(batch or workers, len(feed)))
    assert events[-1].loss == pytest.approx(loss / len(feed), rel=1e-4)
    equal(program, slow, 5e-3)


@compiled_in_full
def test_one_at_a_time_learns_as_well_as_one_alone() -> None:
    feed = make_feed(44, lengths=LENGTHS)
    serial, locked = CRF(**SOME), CRF(**SOME)
    run(serial, feed)
    run(locked, feed, "locked", 1)
    for name, array in serial.arrays().items():
        np.testing.assert_allclose(locked.arrays()[name], array, atol=1e-5)
    crowd = CRF(**SOME)
    run(crowd, feed, "locked", 4)
    assert crowd.evaluate(feed)["loss"] == pytest.approx(serial.evaluate(feed)["loss"], rel=0.05)


def learnable(sentences: int, seed: int = 0) -> Any:
    """Many sentences whose tags are nearly told by their features."""
    random = np.random.default_rng(seed)
    return make_feed(seed, 4, lengths=random.integers(1, 8, sentences), features=25)


@pytest.mark.skipif(OFF, reason="many visits")
@pytest.mark.parametrize(
    ("sharing", "threads"), [("all", 2), ("all", 10), ("hot", 2), ("hot", 3), ("replica", 2), ("replica", 3)]
)
def test_many_workers_learn_as_well_as_one(sharing: str, threads: int) -> None:
    """Private copies add up what each worker has learnt alone: ten of them, of so few features, go too far."""
    feed = learnable(600)
    serial = CRF(l2=1.0, **SOME)
    run(serial, feed, epochs=6, lr=0.05)
    aim = serial.evaluate(feed)["loss"]
    crowd = CRF(l2=1.0, **SOME)
    events = run(crowd, feed, "hogwild", threads, epochs=6, lr=0.05, sharing=sharing, merge_every=5)
    assert events[-1].samples == 6 * len(feed)
    start = make_crf(feed, None, **SOME).evaluate(feed)["loss"]
    assert crowd.evaluate(feed)["loss"] - aim < 0.15 * (start - aim)
    assert start - aim > 0.3 * start


@compiled_in_full
@pytest.mark.parametrize("penalty", [{"l2": 3.0}, {"l1": 0.5}, {"l1": 0.2, "l2": 3.0}])
@pytest.mark.parametrize(("sharing", "threads"), [("all", 1), ("all", 3), ("hot", 1), ("hot", 3), ("replica", 3)])
def test_every_weight_pays_its_penalty_once_whoever_visits_what(penalty: Any, sharing: str, threads: int) -> None:
    """With one tag there is no gradient: weights of 1 are left with nothing but what penalties take."""
    if sharing == "all" and threads > 1 and "l1" in penalty:
        pytest.skip("two that pay for a row at once may pay once or twice: docs/races.md")
    feed = make_feed(55, 1, lengths=LENGTHS * 2)
    program = make_crf(feed, None, **{"l2": 0.0, **penalty})
    program.restore({n: np.ones_like(a) if a.dtype == np.float32 else a for n, a in program.arrays().items()})
    run(program, feed, "hogwild", threads, sharing=sharing, schedule="constant", merge_every=3)
    l1, l2 = (penalty.get(name, 0.0) / len(feed) for name in ("l1", "l2"))
    left = reference.shrink(1.0, l1, l2, 2 * len(feed) * LR, parts=200)
    assert 0.1 < left < 0.9
    for name in ("nodes", "edges"):
        np.testing.assert_allclose(program.arrays()[name], left, rtol=1e-3, err_msg=name)


# -- gradient errors ------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 10] if OFF else [1, 2, 4, 10])
def test_errors_are_counted_and_sized(threads: int) -> None:
    feed = make_feed(45, 4, lengths=[15] * 20 if OFF else [40] * 200, features=25)
    program = CRF(**SOME)
    epochs = 2 if OFF else 30
    ends = [e for e in run(program, feed, "hogwild", threads, epochs, trace=True) if e.kind == "epoch"]
    assert len(ends) == epochs
    for end in ends:
        assert len(end.trace) == threads
        assert sum(worker["gradients"] for worker in end.trace) == len(feed)
        for worker in end.trace:
            assert 0 <= worker["errors"] + worker["delayed"] <= worker["looked_at"] <= worker["gradients"]
            assert worker["errors"] <= worker["read_overwrites"] + worker["write_overwrites"]
            wrong = worker["wrong"]
            assert 0 <= wrong["p50"] <= wrong["p99"] <= wrong["max"] < np.inf
            assert (wrong["samples"] > 0) == (worker["gradients"] > 0)
    errors = sum(worker["errors"] for end in ends for worker in end.trace)
    if threads == 1:
        assert errors == 0
        assert all(worker["wrong"]["max"] == 0 == worker["delay"]["max"] for end in ends for worker in end.trace)


@compiled_in_full
@pytest.mark.parametrize("pieces", [0, 2])
def test_a_planted_error_has_the_size_that_the_twin_says(pieces: int) -> None:
    """In a round of two, the second gradient is of weights that the first one has changed before it is applied."""
    feed = make_feed(46, lengths=(4, 5))
    options = {"l2": 0.0, "structure_regularization": pieces, **SOME}
    program = make_crf(feed, 46, **options)
    before = model_of(program)
    events = run(program, feed, "round-robin", 2, epochs=1, trace=True, shuffle=False)
    [end] = [event for event in events if event.kind == "epoch"]
    first, second = end.trace
    assert (first["gradients"], first["errors"], first["wrong"]["max"]) == (1, 0, 0.0)
    assert (second["gradients"], second["errors"], second["delayed"]) == (1, 0, 1)
    assert second["delay"]["max"] == 1
    if pieces:  # the second gradient, on the snapshot, is cut as the first: or it would be off by far more
        assert 0 < second["wrong"]["max"] < 1
        return
    chains = twin.chains_of(feed.samples)
    slow = twin.CRFTwin(before, program.task.rule)
    slow.visit(chains[0], LR, 0.0)
    used = np.array([g for _, g in twin.touches_of(before, chains[1])])
    true = np.array([g for _, g in twin.touches_of(slow.model(), chains[1])])
    size = np.sqrt(((used - true) ** 2).sum() / (true**2).sum())
    assert second["wrong"]["max"] == pytest.approx(size, rel=1e-3)
    assert size > 0.01


@compiled_in_full
@pytest.mark.parametrize(("mode", "threads"), [("serial", 1), ("locked", 3), ("minibatch", 3)])
def test_modes_that_exclude_errors_show_none(mode: str, threads: int) -> None:
    feed = make_feed(47, lengths=LENGTHS * 3)
    program = CRF(**SOME)
    for event in run(program, feed, mode, threads, trace=True):
        if event.kind == "epoch":
            assert sum(worker["gradients"] for worker in event.trace) == len(feed)
            for worker in event.trace:
                assert worker["errors"] == worker["read_overwrites"] == worker["write_overwrites"] == 0
                assert worker["wrong"]["max"] == 0


# -- averages -------------------------------------------------------------------------------------------------------


def test_the_mean_is_of_the_ends_of_epochs_the_later_ones_counting_more() -> None:
    feed = make_feed(48, lengths=LENGTHS)
    program = CRF(average=True, **SOME)
    kept = []
    for event in AsyncExecutor(mode="serial", lr=LR).run(program, feed, epochs=4):
        if event.kind == "epoch":
            kept.append({name: read() for name, read in program.watchable().items()})
            seen = program.evaluate(feed)["loss"]
    arrays = program.arrays()
    shares = np.arange(1, 5) / 10
    for name in ("nodes", "edges", "rich"):
        exact = sum(share * epoch[name].astype(np.float64) for share, epoch in zip(shares, kept, strict=True))
        np.testing.assert_allclose(arrays[name], exact, atol=1e-6)
        assert not np.allclose(arrays[name], kept[-1][name], atol=1e-4)
    twin_loss = [twin.loss_of(twin.model_of(arrays), chain) for chain in twin.chains_of(feed.samples)]
    assert seen == pytest.approx(np.mean(twin_loss), rel=1e-5)  # what predicts is the mean, while it trains too
    plain = CRF(**SOME)
    run(plain, feed, epochs=4)
    for name, table in zip(plain.weights._fields, plain.weights, strict=True):
        np.testing.assert_array_equal(table, getattr(program.weights, name))  # and training goes on without it


def test_a_new_run_has_a_mean_of_its_own() -> None:
    feed = make_feed(49, lengths=LENGTHS)
    program = CRF(average=True, **SOME)
    run(program, feed, epochs=3)
    run(program, feed, epochs=1)
    np.testing.assert_array_equal(program.arrays()["nodes"], program.watchable()["nodes"]())


@pytest.mark.parametrize("average", [False, True])
def test_the_best_epoch_is_what_training_returns(average: bool) -> None:
    """With a rate that is far too large later epochs are worse."""
    feed, valid = make_feed(50, lengths=LENGTHS), make_feed(51, lengths=LENGTHS)
    program = CRF(average=average, l2=0.0, **SOME)
    executor = AsyncExecutor(mode="serial", lr=3.0, epochs=5)
    events = executor.run(make_crf(feed, None, average=average, **SOME), feed, valid=valid)
    losses = [event.metrics["loss"] for event in events if event.kind == "epoch"]
    assert min(losses) < losses[-1]
    hogwild.train(program, feed, valid=valid, mode="serial", lr=3.0, epochs=5, quiet=True)
    assert program.evaluate(valid)["loss"] == min(losses)


# -- runs that stop and go on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"l2": 2.0, "average": True, "structure_regularization": 2},
        {"l2": 2.0, "structure_regularization": 2, "structure_regularization_form": "samples"},
        pytest.param({"optimizer": "adam", "l1": 0.1, "average": True}, marks=LATER),
        pytest.param({"optimizer": "ftrl"}, marks=LATER),
    ],
)
def test_a_run_gone_on_with_equals_one_uninterrupted(options: dict[str, Any]) -> None:
    feed = make_feed(52, lengths=LENGTHS)
    pace = {"epochs": 3, "seed": 7, "lr": LR}
    whole = CRF(**SOME, **options)
    list(AsyncExecutor(mode="serial").run(whole, feed, **pace))
    executor, program = AsyncExecutor(mode="serial"), CRF(**SOME, **options)
    saved = {}
    for event in executor.run(program, feed, exchange_every=whole.visits(feed) + 6, **pace):
        if event.kind == "exchange" and event.epoch == 1:
            saved = {
                "options": json.dumps(program.options()),
                "arrays": {name: array.copy() for name, array in program.arrays(state=True).items()},
                "state": executor.state(),
            }
    assert bits(program) == bits(whole)  # it stood still and went on
    assert saved["state"].position == (1, 6)
    resumed = CRF(**json.loads(saved["options"]))
    resumed.restore(saved["arrays"])
    list(AsyncExecutor(mode="serial").run(resumed, feed, start=saved["state"], **pace))
    assert bits(resumed) == bits(whole)
    assert {n: a.tobytes() for n, a in resumed.arrays().items()} == {n: a.tobytes() for n, a in whole.arrays().items()}


def test_a_clock_that_moves_inside_an_epoch_leaves_the_model_as_it_is() -> None:
    feed, executor, program = make_feed(52, lengths=LENGTHS), AsyncExecutor(mode="serial"), CRF(l2=5.0, **SOME)
    events = executor.run(program, feed, exchange_every=6, epochs=3, seed=7, lr=LR)
    next(event for event in events if event.kind == "exchange")
    events.close()  # type: ignore[attr-defined]
    before, tables, clock = program.arrays(), program.weights.nodes.copy(), program._elapsed
    assert clock > 0
    program.move_clock(clock, 1.5 * clock)
    assert not np.array_equal(program.weights.nodes, tables)
    for name, array in program.arrays().items():
        np.testing.assert_allclose(array, before[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("options", cases([{"l2": 5.0}, {"l1": 0.3, "l2": 1.0}], [{"l2": 5.0}]))
def test_a_model_in_the_middle_of_an_epoch_is_what_serial_training_has_by_then(
    options: dict[str, Any], tmp_path: Any
) -> None:
    """Penalties that are still to be paid are in what is saved and in what predicts, and are paid once."""
    feed = make_feed(53, lengths=LENGTHS)
    program, executor = make_crf(feed, 53, **SOME, **options), AsyncExecutor(mode="serial", lr=LR)
    l1, l2 = options.get("l1", 0.0) / len(feed), options["l2"] / len(feed)
    slow = twin.CRFTwin(model_of(program), program.task.rule, l1, l2)
    for event in executor.run(program, feed, epochs=1, exchange_every=6):
        if event.kind == "exchange":
            save_model(tmp_path / "model", program)
            losses, visits = program.evaluate(feed)["loss"], executor.state().position.visits
            executor.stop()
    assert visits == 6 < len(feed)
    slow.run(twin.chains_of(feed.samples), make_schedule("linear", LR, len(feed), 1), order_of(feed, 1)[:visits])
    loaded = load_model(tmp_path / "model").program
    equal(loaded, slow)
    assert loaded.evaluate(feed)["loss"] == pytest.approx(losses, rel=1e-6)
    equal(program, slow)
    run(program, feed, epochs=1, seed=2)  # a new run, on weights that owe nothing
    chains, schedule = twin.chains_of(feed.samples), make_schedule("linear", LR, len(feed), 1)
    slow.run(chains, schedule, order_of(feed, 1, seed=2))
    equal(program, slow)


def test_debts_of_a_stopped_run_are_paid_as_they_were_made() -> None:
    """A run on another text has other penalties a visit; what is owed belongs to the text before."""
    feed, short = make_feed(54, lengths=LENGTHS), make_feed(54, lengths=LENGTHS[:3])
    program, executor = make_crf(feed, 54, l2=30.0, **SOME), AsyncExecutor(mode="serial", lr=LR)
    for event in executor.run(program, feed, epochs=1, exchange_every=9):
        if event.kind == "exchange":
            executor.stop()
    assert event.reason == "stopped"
    before = program.arrays()
    for event in AsyncExecutor(mode="serial", lr=1e-9).run(program, short, epochs=1):
        if event.kind == "finished":
            break
    for name, array in program.arrays().items():
        np.testing.assert_allclose(array, before[name], rtol=1e-4, atol=1e-6, err_msg=name)
