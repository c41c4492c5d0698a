"""The executor: events, exact work, errors that surface, pausing and stopping, the ladder of lock-free tests."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sparse

import hogwild
from hogwild.errors import ConfigError, DivergedError, ModelError, WorkerError
from hogwild.executor.plan import check_tables
from hogwild.kernels.loop.schedule import make_schedule, rate_after
from problems.tasks import Cells, Count, Touches, Wrong, count_program, fail_program, touches


def problem(rows: int = 600, features: int = 80, seed: int = 0) -> hogwild.Feed:
    random = np.random.default_rng(seed)
    matrix = sparse.random(rows, features, 0.1, format="csr", random_state=seed, dtype=np.float32)
    truth = random.normal(size=features)
    return hogwild.feed_of(matrix, (matrix @ truth + 0.1 * random.normal(size=rows) > 0).astype(int))


@pytest.fixture(scope="module")
def feed() -> hogwild.Feed:
    return problem()


def events(program: object, samples: object, threads: int = 2, mode: str = "hogwild", **options: object) -> list:
    return list(hogwild.AsyncExecutor(threads=threads, mode=mode).run(program, samples, **{"lr": 0.5, **options}))


# -- events ---------------------------------------------------------------------------------------------------------


def test_events_come_in_order_and_add_up(feed: hogwild.Feed) -> None:
    seen = events(hogwild.Linear(), feed, epochs=3, valid=feed)
    kinds = [event.kind for event in seen if event.kind != "progress"]
    assert kinds == ["started", "epoch", "epoch", "epoch", "finished"]
    ends = [event for event in seen if event.kind == "epoch"]
    assert [event.samples for event in ends] == [600, 1200, 1800]
    assert [event.epoch for event in ends] == [1, 2, 3]
    assert ends[2].loss < ends[0].loss
    assert ends[2].metrics["accuracy"] > 0.8
    assert seen[-1].units == 3 * feed.nonzeros
    assert seen[-1].units_per_second == pytest.approx(seen[-1].samples_per_second * feed.nonzeros / 600)


def test_nothing_happens_before_the_first_event_is_asked_for(feed: hogwild.Feed) -> None:
    program = hogwild.Linear()
    run = hogwild.AsyncExecutor(threads=1).run(program, feed)
    assert program.weights is None
    run.close()


# -- the ladder -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_one_worker_gives_the_same_bits_in_every_mode_and_sharing(optimizer: str, feed: hogwild.Feed) -> None:
    def weights(mode: str, sharing: str) -> bytes:
        program = hogwild.Linear(optimizer=optimizer)
        executor = hogwild.AsyncExecutor(threads=1, mode=mode, sharing=sharing, merge_every=50)
        list(executor.run(program, feed, lr=0.5, epochs=3))
        return program.arrays(state=True)["weight"].tobytes()

    expected = weights("serial", "auto")
    assert weights("serial", "auto") == expected
    for sharing in ("all", "hot", "replica"):
        assert weights("hogwild", sharing) == expected
    assert weights("locked", "auto") != bytes(len(expected))
    np.testing.assert_allclose(
        np.frombuffer(weights("locked", "auto"), np.float32), np.frombuffer(expected, np.float32), atol=1e-5
    )


@pytest.mark.parametrize("threads", [2, 3])
def test_round_robin_repeats_bit_for_bit(threads: int, feed: hogwild.Feed) -> None:
    results = set()
    for _ in range(3):
        program = hogwild.Linear(optimizer="sgd")
        events(program, feed, threads=threads, mode="round-robin", epochs=2)
        results.add(program.weights.table.tobytes())
    assert len(results) == 1


def test_minibatch_equals_the_summed_gradient_of_the_slow_twin(feed: hogwild.Feed) -> None:
    """Gradients of all visits of a batch at the same weights, added up, one step: in float64, one row at a time."""
    batch, rate = 7, 0.3
    program = hogwild.Linear(optimizer="sgd")
    list(hogwild.AsyncExecutor(threads=3, mode="minibatch", batch=batch, shuffle=False).run(
        program, feed, lr=rate, schedule="constant", epochs=2))  # fmt: skip
    samples, original = feed.samples, feed.original
    weight, bias = np.zeros(feed.features), 0.0
    for _ in range(2):
        for first in range(0, len(feed), batch):
            total, total_bias = np.zeros(feed.features), 0.0
            for row in range(first, min(first + batch, len(feed))):
                entries = slice(samples.offsets[row], samples.offsets[row + 1])
                ids, values = original[samples.ids[entries]], samples.values[entries].astype(np.float64)
                target = 1.0 if samples.targets[row] == 1 else -1.0
                score = bias + values @ weight[ids]
                pull = -target / (1 + np.exp(target * score))
                np.add.at(total, ids, pull * values)
                total_bias += pull
            weight -= rate * total
            bias -= rate * total_bias
    np.testing.assert_allclose(program.arrays()["weight"], weight, atol=2e-4)
    np.testing.assert_allclose(program.arrays()["bias"], [bias], atol=2e-4)


def test_workers_on_disjoint_features_equal_one_worker_exactly() -> None:
    """No bias, sgd: no two samples share a feature, so the order and the overlap of visits do not matter."""
    matrix = sparse.csr_matrix((np.ones(3000, np.float32), (np.repeat(np.arange(1000), 3), np.arange(3000))))
    feed = hogwild.feed_of(matrix, np.arange(1000) % 2)
    results = []
    for threads in (1, 4):
        program = hogwild.Linear(optimizer="sgd", bias=False)
        list(hogwild.AsyncExecutor(threads=threads, sharing="all").run(
            program, feed, lr=0.5, schedule="constant", epochs=4))  # fmt: skip
        results.append(program.weights.table.tobytes())
    assert results[0] == results[1]


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_with_all_features_shared_the_loss_stays_within_a_band(sharing: str) -> None:
    """Dense rows: every visit writes every weight. Over five seeds the loss is that of one worker within 5 %."""
    random = np.random.default_rng(3)
    matrix = random.normal(size=(800, 10)).astype(np.float32)
    feed = hogwild.feed_of(matrix, (matrix @ random.normal(size=10) + random.normal(size=800) > 0).astype(int))

    def loss(threads: int, seed: int, mode: str) -> float:
        program = hogwild.Linear()
        events(program, feed, threads=threads, mode=mode, sharing=sharing, seed=seed, epochs=10, lr=0.3)
        return program.evaluate(feed)["loss"]

    serial = np.mean([loss(1, seed, "serial") for seed in range(1, 6)])
    shared = np.mean([loss(3, seed, "hogwild") for seed in range(1, 6)])
    assert shared == pytest.approx(serial, rel=0.05)


def test_a_simulated_delay_slows_convergence_as_round_robin_does(feed: hogwild.Feed) -> None:
    """Round-robin of k workers is SGD with delays 0 … k-1, deterministic: a plain simulator gives the same weights."""
    k, rate = 3, 0.2
    program = hogwild.Linear(optimizer="sgd", bias=False)
    list(hogwild.AsyncExecutor(threads=k, mode="round-robin", shuffle=False).run(
        program, feed, lr=rate, schedule="constant", epochs=2))  # fmt: skip
    samples = feed.samples
    weight = np.zeros(feed.features)
    for _ in range(2):
        for first in range(0, len(feed), k):
            frozen = weight.copy()  # all of a round read before any of it writes
            for row in range(first, min(first + k, len(feed))):
                entries = slice(samples.offsets[row], samples.offsets[row + 1])
                ids, values = samples.ids[entries], samples.values[entries].astype(np.float64)
                target = 1.0 if samples.targets[row] == 1 else -1.0
                pull = -target / (1 + np.exp(target * (values @ frozen[ids])))
                np.subtract.at(weight, ids, rate * pull * values)
    found = program.arrays()["weight"][feed.original]
    np.testing.assert_allclose(found, weight, atol=2e-4)


# -- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hogwild", "locked", "round-robin", "minibatch"])
def test_the_first_error_stops_all_and_names_worker_and_span(mode: str) -> None:
    with pytest.raises(WorkerError, match=r"worker \d, epoch 1, samples \d+-\d+: ValueError: planted") as caught:
        events(fail_program(at=3000), touches(5000, 4), threads=3, mode=mode, shuffle=False, epochs=2)
    assert caught.value.span[0] <= 3000 < caught.value.span[1]
    assert isinstance(caught.value.__cause__, ValueError)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hogwild-")]


def test_a_loss_that_is_not_finite_stops_the_run_and_says_where() -> None:
    with pytest.raises(WorkerError, match=r"became inf in samples .*learning rate 0\.5, largest weight 1") as caught:
        events(fail_program(at=70, infinite=True), touches(100, 4), schedule="constant", shuffle=False, epochs=1)
    assert isinstance(caught.value.__cause__, DivergedError)


def test_batches_are_told_as_their_samples() -> None:
    feed = hogwild.feed_of(np.full((1000, 2), 1e3, np.float32), np.linspace(-1, 1, 1000))
    program = hogwild.SparseMLP(hidden=(4,), dim=2, batch_size=100, loss="squared", optimizer="sgd")
    with pytest.raises(WorkerError, match=r"in samples \d+-\d+00 of") as caught:
        events(program, feed, lr=1e30, epochs=5, mode="serial", threads=1)
    assert caught.value.span[1] <= 10


def test_a_rate_that_is_far_too_large_is_reported_as_divergence() -> None:
    feed = hogwild.feed_of(np.full((50, 2), 100.0, np.float32), np.linspace(-1, 1, 50))
    with pytest.raises(WorkerError, match="smaller --lr"):
        events(hogwild.Linear(loss="squared", optimizer="sgd"), feed, lr=10.0, epochs=20)


def test_a_trial_of_sharings_leaves_divergence_to_the_run() -> None:
    feed = hogwild.feed_of(np.full((2000, 2), 100.0, np.float32), np.linspace(-1, 1, 2000))
    with pytest.raises(WorkerError, match="smaller --lr"):
        events(hogwild.Linear(loss="squared", optimizer="sgd"), feed, lr=10.0, sharing="auto")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (hogwild.Table(3, 1), r"3 rows of 1 cells, but the array has 4 cells"),
        (hogwild.Table(4, 1, additive=(True, False)), "2 entries for 1 cells"),
    ],
)
def test_a_table_that_does_not_cover_its_array_is_refused(table: hogwild.Table, message: str) -> None:
    program = hogwild.CustomProgram(
        Count(), lambda: Cells(np.ones((4, 1), np.float32)), room=hogwild.Room(1), tables={"values": table}
    )
    with pytest.raises(ConfigError, match=message):
        events(program, touches(10, 4))


def test_a_table_without_an_array_is_refused() -> None:
    program = hogwild.CustomProgram(
        Count(), lambda: Cells(np.ones((4, 1), np.float32)), room=hogwild.Room(1), tables={"rows": hogwild.Table(4, 1)}
    )
    with pytest.raises(ConfigError, match="tables are there for values, rows, weights for values"):
        events(program, touches(10, 4))


def test_copies_that_no_memory_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.machine.memory", lambda: 60)
    assert events(count_program(4), touches(10, 4), sharing="all", epochs=1)[-1].samples == 10
    with pytest.raises(ConfigError, match="use --sharing all"):
        events(count_program(4), touches(10, 4), sharing="replica", epochs=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"epochs": 0}, "epochs"), ({"lr": 0.0}, "lr"), ({"lr": float("nan")}, "lr"), ({"patience": 2}, "validation")],
)
def test_options_that_cannot_work_are_refused_at_the_door(options: dict, message: str, feed: hogwild.Feed) -> None:
    with pytest.raises(ConfigError, match=message):
        events(hogwild.Linear(), feed, **options)


def test_a_task_that_cannot_be_compiled_is_one_sentence_with_a_place() -> None:
    program = hogwild.CustomProgram(Wrong(), lambda: Cells(np.ones((4, 1), np.float32)), room=hogwild.Room(1))
    with pytest.raises(ConfigError, match=r"Wrong cannot be compiled: Unknown attribute 'colour' .*tasks\.py, line \d"):
        events(program, touches(10, 4), lr=None)


def test_a_task_without_functions_is_refused() -> None:
    class Bare(NamedTuple):
        """Nothing is registered for it."""

    with pytest.raises(ConfigError, match=r"Bare has no gradient; register one with @hogwild\.gradient_of"):
        hogwild.CustomProgram(Bare(), lambda: Cells(np.ones((4, 1), np.float32)))


def test_more_workers_than_samples_work(feed: hogwild.Feed) -> None:
    small = hogwild.feed_of(np.eye(3, dtype=np.float32), [0, 1, 0])
    seen = events(hogwild.Linear(), small, threads=8, epochs=4)
    assert seen[-1].samples == 12
    assert "8 workers for 3 samples" in seen[0].notes[0]


# -- early stopping, saving -------------------------------------------------------------------------------------------


def test_early_stopping_watches_the_validation_loss_and_train_keeps_the_best() -> None:
    """Labels of pure noise: the validation loss rises from the first epochs on."""
    random = np.random.default_rng(5)
    noise = [hogwild.feed_of(random.normal(size=(60, 40)).astype(np.float32), random.integers(0, 2, 60)) for _ in "ab"]
    executor = hogwild.AsyncExecutor(threads=1, mode="serial")
    program = hogwild.Linear()
    seen = list(executor.run(program, noise[0], valid=noise[1], lr=0.3, epochs=50, patience=3, best_by="loss"))
    losses = [event.metrics["loss"] for event in seen if event.kind == "epoch"]
    best = int(np.argmin(losses))
    assert seen[-1].reason == "early"
    assert len(losses) == best + 1 + 3
    assert [event.is_best for event in seen if event.kind == "epoch"][best]
    kept = hogwild.train(hogwild.Linear(), noise[0], valid=noise[1], lr=0.3, epochs=50, patience=3, threads=1,
                         best_by="loss", mode="serial", quiet=True)  # fmt: skip
    assert kept.evaluate(noise[1])["loss"] == pytest.approx(losses[best], rel=1e-6)


def test_serial_reports_the_very_same_losses_twice(feed: hogwild.Feed) -> None:
    runs = [events(hogwild.Linear(), feed, mode="serial", epochs=3) for _ in "ab"]
    first, second = ([event.loss for event in run if event.kind == "epoch"] for run in runs)
    assert first == second


def test_a_run_that_had_no_patience_left_does_not_go_on() -> None:
    random = np.random.default_rng(5)
    noise = [hogwild.feed_of(random.normal(size=(60, 40)).astype(np.float32), random.integers(0, 2, 60)) for _ in "ab"]
    executor = hogwild.AsyncExecutor(threads=1, mode="serial")
    program = hogwild.Linear()
    options = {"valid": noise[1], "lr": 0.3, "epochs": 50, "patience": 2}
    first = list(executor.run(program, noise[0], **options))[-1]
    again = list(executor.run(program, noise[0], start=executor.state(), **options))[-1]
    assert (again.reason, again.samples) == ("early", first.samples)


def test_a_users_program_is_saved_and_restored() -> None:
    program = count_program(4)
    events(program, touches(20, 4), epochs=1)
    other = count_program(4)
    other.restore(program.arrays())
    np.testing.assert_array_equal(other.weights.values, program.weights.values)
    with pytest.raises(ModelError, match="values"):
        other.restore({"values": np.zeros((5, 1), np.float32)})


def test_what_is_watched_is_shown_at_the_end_too(feed: hogwild.Feed, capsys: pytest.CaptureFixture) -> None:
    hogwild.train(hogwild.Linear(), feed, epochs=2, lr=0.5, threads=1, watch=["norm(weights)"])
    said = capsys.readouterr().err
    assert said.count("norm(weights) = ") == 1
    assert "epoch 2/2 " in said


def test_an_option_that_is_called_otherwise(feed: hogwild.Feed) -> None:
    with pytest.raises(ConfigError, match=r"no option 'learning_rate' \(did you mean lr\?\); options are epochs, "):
        hogwild.train(hogwild.Linear(), feed, learning_rate=0.1)
    with pytest.raises(ConfigError, match=r"no option 'workers' \(did you mean threads\?\)"):
        next(iter(hogwild.AsyncExecutor().run(hogwild.Linear(), feed, workers=3)))


# -- learning rates -------------------------------------------------------------------------------------------------


def test_a_whole_number_as_a_rate_compiles_nothing_new() -> None:
    assert [type(make_schedule(name, 1, 100, 2).first) for name in ("constant", "linear", "inverse")] == [float] * 3


def test_schedules_fall_as_they_say() -> None:
    assert rate_after(make_schedule("constant", 0.5, 100, 2), 150) == 0.5
    linear = make_schedule("linear", 0.5, 100, 2)
    assert [rate_after(linear, p) for p in (0, 100, 200)] == [0.5, 0.25, 0.0]
    inverse = make_schedule("inverse", 0.5, 100, 2, decay=1.0)
    assert [rate_after(inverse, p) for p in (0, 100, 300)] == [0.5, 0.25, 0.125]


def test_a_rate_is_calibrated_when_none_is_given(feed: hogwild.Feed) -> None:
    started = events(hogwild.Linear(optimizer="sgd"), feed, lr=None, epochs=1)[0]
    assert "best of" in started.notes[0]
    assert started.lr > 0.1  # rows of few small values bear a large rate
    scaled = hogwild.feed_of(np.full((300, 3), 30.0, np.float32), np.arange(300) % 2)
    assert events(hogwild.Linear(optimizer="sgd"), scaled, lr=None, epochs=1)[0].lr < 0.1


def test_data_that_can_be_told_apart_does_not_get_an_absurd_rate() -> None:
    feed = hogwild.feed_of(np.array([[0.0], [1.0], [0.1], [0.9]], np.float32), [0, 1, 0, 1])
    seen = events(hogwild.Linear(), feed, lr=None, epochs=20, threads=1)
    assert seen[0].lr <= 20
    assert max(event.loss for event in seen if event.kind == "epoch") < 5


@pytest.mark.parametrize("optimizer", ["adagrad", "ftrl"])
def test_targets_far_from_zero_get_a_rate_that_reaches_them(feed: hogwild.Feed, optimizer: str) -> None:
    prices = 50_000 + 1000 * feed.samples.targets
    houses = replace(feed, samples=feed.samples._replace(targets=prices.astype(np.float32)))
    program = hogwild.train(hogwild.Linear("squared", optimizer), houses, threads=1, epochs=10, quiet=True)
    assert program.evaluate(houses)["rmse"] < prices.std()


def test_the_functional_form_trains_what_startup_returns() -> None:
    samples = Touches(np.array([0, 1, 1], np.int32), np.ones(3, np.float32))
    weights = hogwild.async_executor(
        startup_program=lambda: Cells(np.zeros((2, 1), np.float32)), main_program=Count(), feed=samples, threads=1,
        epochs=2, lr=1.0, quiet=True,
    )  # fmt: skip
    np.testing.assert_array_equal(weights.values[:, 0], [2, 4])


def test_rows_are_as_many_as_numbers_can_name_but_dense_parameters_need_none() -> None:
    many = (1 << 31) + 1
    weights = Cells(np.broadcast_to(np.float32(0), (many, 1)))
    tables = {"values": hogwild.Table(many, 1)}
    with pytest.raises(ConfigError, match="more than 2147483648 rows"):
        check_tables(tables, weights, hogwild.Room(1))
    assert check_tables(tables, weights, hogwild.Room(0, dense=many)) == tables
