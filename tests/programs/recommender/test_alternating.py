"""Alternating least squares as a program: any number of workers, going on from the middle, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.errors import ConfigError, WorkerError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.programs.recommender import alternating
from hogwild.programs.recommender.program import MatrixFactorization
from hogwild.programs.recommender.ranking import turned
from hogwild.programs.store import load_model, save_model
from reference.factorization import solved


def blocks(users: int = 60, items: int = 40) -> RatingFeed:
    """Users who have three of five items of their own kind, of four kinds."""
    random = np.random.default_rng(5)
    pairs = [(u, i) for u in range(users) for i in range(items) if u % 4 == i % 4 and random.random() < 0.6]
    return hogwild.ratings_of([f"u{u}" for u, _ in pairs], [f"i{i}" for _, i in pairs])


FEED = blocks()


def trained(feed: RatingFeed = FEED, epochs: int = 4, threads: int = 1, **options: Any) -> MatrixFactorization:
    """A program after so many epochs."""
    program = MatrixFactorization(dim=8, solver="als", **options)
    list(AsyncExecutor(threads=threads).run(program, feed, epochs=epochs))
    return program


def test_it_finds_the_blocks_and_the_loss_falls() -> None:
    program = MatrixFactorization(dim=8, solver="als")
    events = list(AsyncExecutor(threads=2).run(program, FEED, epochs=4))
    losses = [event.loss for event in events if event.kind == "epoch"]
    assert losses == sorted(losses, reverse=True)
    assert events[-1].samples == 4 * len(FEED)
    for user in ("u0", "u1", "u7"):
        best = program.recommend(user, 3)
        assert {int(item[1:]) % 4 for item, _ in best} == {int(user[1:]) % 4}
    assert {int(item[1:]) % 4 for item, _ in program.similar_items("i6", 4)} == {2}
    assert not program.factors().item_biases.any()


def test_an_epoch_is_what_the_formula_says() -> None:
    """The items of the last half epoch, each solved for with the users as they are, up to some steps of the solver."""
    program = trained(epochs=30)
    factors, theirs = program.factors(), turned(program.seen, len(FEED.items))
    for k in range(0, len(FEED.items), 7):
        own = theirs.items[theirs.offsets[k] : theirs.offsets[k + 1]].tolist()
        row, _ = solved(own, factors.user_vectors.astype(np.float64), 1 / program.alpha, program.l2)
        np.testing.assert_allclose(factors.item_vectors[k], row, atol=0.02)


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_workers_changes_nothing(threads: int) -> None:
    one, several = trained(), trained(threads=threads)
    for mine, theirs in zip(one.weights, several.weights, strict=True):
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("after", [1, 30, 60, 77])
def test_it_goes_on_from_the_middle_of_an_epoch(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped among the users, between users and items, and among the items; saved with the state, and opened again."""
    whole = trained(epochs=3)
    program = MatrixFactorization(dim=8, solver="als")
    executor, made = AsyncExecutor(threads=1), 0
    solve = alternating.solve_rows

    def counting(side: Any, system: Any, start: int, stop: int, room: Any) -> Any:
        nonlocal made
        made += stop - start
        if made >= 100 + after:
            executor.stop()
        return solve(side, system, start, stop, room)

    monkeypatch.setattr(alternating, "solve_rows", counting)
    *_, last = executor.run(program, FEED, epochs=3)
    state = executor.state()
    monkeypatch.undo()
    assert last.reason == "stopped"
    again = MatrixFactorization(**program.options())
    again.restore(program.arrays(state=True))
    list(AsyncExecutor(threads=2).run(again, FEED, epochs=3, start=state))
    for mine, theirs in zip(whole.weights, again.weights, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_a_worker_that_fails_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(side: Any, system: Any, start: int, stop: int, room: Any) -> float:
        if stop > 20:
            raise ValueError("planted")
        return 0.0

    monkeypatch.setattr(alternating, "solve_rows", failing)
    with pytest.raises(WorkerError, match="planted"):
        list(AsyncExecutor(threads=4).run(MatrixFactorization(dim=8, solver="als"), FEED, epochs=2))


def test_a_saved_model_predicts_the_same(tmp_path: Any) -> None:
    program = trained()
    save_model(tmp_path / "model", program)
    again = load_model(tmp_path / "model").program
    pairs = [("u1", "i1"), ("nobody", "i1"), ("u1", "nothing")]
    assert again.predict(pairs).tolist() == program.predict(pairs).tolist()
    assert again.predict(pairs)[1:].tolist() == [0, 0]
    assert (again.loss, again.l2) == ("weighted", program.l2)


def test_validation_keeps_the_best_epoch() -> None:
    valid = hogwild.ratings_of(["u1", "u2"], ["i1", "i6"], names=(FEED.users, FEED.items))
    program = MatrixFactorization(dim=8, loss="weighted")
    events = list(AsyncExecutor(threads=2).run(program, FEED, valid=valid, epochs=3))
    metrics = [event.metrics for event in events if event.kind == "epoch"]
    assert all({"loss", "ndcg@20", "recall@20"} <= set(each) for each in metrics)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "als", "loss": "bpr"}, "least squares have the loss weighted, not bpr"),
        ({"solver": "sgd", "loss": "weighted"}, "the loss weighted is solved by als"),
        ({"solver": "als", "optimizer": "sgd"}, "optimizer is 'sgd'; least squares"),
        ({"loss": "weighted", "negatives": 3}, "negatives is 3; least squares"),
        ({"solver": "als", "shrink": 0.1}, "shrink is 0.1; least squares"),
        ({"loss": "bpr", "alpha": 3.0}, "add --solver als"),
        ({"solver": "als", "alpha": 0.0}, "it must be positive"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MatrixFactorization(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "locked"}, "mode is locked; least squares"), ({"mode": "minibatch"}, "mode is minibatch"),
        ({"lr": 0.1}, "--lr has no effect"), ({"sharing": "replica"}, "--sharing has no effect"),
        ({"trace": True}, "--trace has no effect"), ({"schedule": "constant"}, "--schedule has no effect"),
    ],
)  # fmt: skip
def test_ways_to_train_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(AsyncExecutor(threads=2, **options).run(MatrixFactorization(dim=2, solver="als"), FEED, epochs=1))


def test_parts_of_the_data_are_refused() -> None:
    with pytest.raises(ConfigError, match="one machine"):
        list(AsyncExecutor(threads=1).run(MatrixFactorization(dim=2, solver="als"), FEED, epochs=1, shard=(0, 2)))


def test_alpha_without_least_squares_is_refused() -> None:
    with pytest.raises(ConfigError, match="add --solver als"):
        list(AsyncExecutor(threads=1).run(MatrixFactorization(dim=2, alpha=3.0), FEED, epochs=1))
