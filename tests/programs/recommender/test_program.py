"""Recommenders: the five modes against the twin, predictions, rankings, saving, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hogwild
from compiling import OFF, cases, compiled_in_full
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.kernels.compiler.rng import seeds
from hogwild.kernels.loop.order import shuffled
from hogwild.kernels.loop.schedule import make_schedule
from hogwild.programs.recommender.program import MatrixFactorization
from hogwild.programs.recommender.ranking import Seen, best_items, seen_in
from hogwild.programs.store import load_model, save_model
from kernels.sparse.test_linear import in_new_process
from reference.factorization import FactorTwin, ranking

LR = 0.1


def make_feed(rows: int = 30, users: int = 5, items: int = 8, rated: bool = True, seed: int = 1) -> RatingFeed:
    """Ratings with a taste: users and items of the same parity like each other. Every user and item occurs."""
    random = np.random.default_rng(seed)
    u = np.concatenate([np.arange(users), random.integers(0, users, rows)])
    i = np.concatenate([np.arange(users) % 2, 2 * random.integers(0, items // 2, rows)])
    i[users:] += np.where(random.random(rows) < 0.9, u[users:] % 2, 1 - u[users:] % 2)
    names = [f"u{k}" for k in u], [f"i{k}" for k in i]
    if not rated:
        return hogwild.ratings_of(*names)
    return hogwild.ratings_of(*names, np.where(u % 2 == i % 2, 4.5, 1.5) + random.choice([-0.5, 0.5], len(u)))


def run(program: MatrixFactorization, feed: Any, mode: str = "serial", threads: int = 1, **options: Any) -> list[Any]:
    """All events of a run."""
    options = {"lr": LR, "epochs": 2, **options}
    executor = AsyncExecutor(threads=threads, mode=mode, **{k: v for k, v in options.items() if k != "epochs"})
    return list(executor.run(program, feed, epochs=options["epochs"]))


def bits(program: MatrixFactorization) -> dict[str, bytes]:
    """All that a run has changed, to the last bit."""
    return {name: array.tobytes() for name, array in program.arrays(state=True).items()}


def seen_lists(feed: RatingFeed) -> list[list[int]]:
    """The items of each user."""
    pairs = list(zip(feed.samples.users.tolist(), feed.samples.items.tolist(), strict=True))
    return [sorted({item for user, item in pairs if user == k}) for k in range(len(feed.users))]


def make_twin(feed: RatingFeed, **options: Any) -> FactorTwin:
    """The twin of a program that has not been trained yet."""
    program = MatrixFactorization(**options)
    program.startup(feed, 1)
    cells = program.weights.users.size // len(feed.users)
    tables = [table.reshape(-1, cells)[:, : program.width].astype(np.float64) for table in program.weights]
    return FactorTwin(*tables, program.task, int(seeds(1, 1)[0]))


def equal(program: MatrixFactorization, twin: FactorTwin) -> None:
    """The weights are those of the twin."""
    factors = program.factors()
    users, items = twin.matrices()
    dim = program.config.dim
    np.testing.assert_allclose(factors.user_vectors, users[:, :dim], rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(factors.item_vectors, items[:, :dim], rtol=2e-3, atol=2e-4)
    if program.config.bias:
        np.testing.assert_allclose(factors.user_biases, users[:, dim], rtol=2e-3, atol=2e-4)
        np.testing.assert_allclose(factors.item_biases, items[:, dim], rtol=2e-3, atol=2e-4)


# -- modes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", cases(["squared", "bpr", "logistic"], ["squared", "bpr"]))
def test_serial_equals_the_twin_and_itself(loss: str) -> None:
    feed = make_feed(rated=loss == "squared")
    options: dict[str, Any] = {"dim": 3, "loss": loss, "shrink": 0.01 if OFF else 0.0}
    program, again = MatrixFactorization(**options), MatrixFactorization(**options)
    events = run(program, feed)
    run(again, feed)
    assert bits(program) == bits(again)
    twin = make_twin(feed, **options)
    schedule = make_schedule("linear", LR, len(feed), 2)
    order = [int(k) for epoch in range(2) for k in shuffled(len(feed), 1, epoch).blocks]
    seen, half = seen_lists(feed), len(feed)
    losses = [twin.run(feed.samples, seen, schedule, order[k : k + half], k) / half for k in (0, half)]
    assert [event.loss for event in events if event.kind == "epoch"] == pytest.approx(losses, rel=1e-4)
    equal(program, twin)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_one_worker_is_serial(sharing: str) -> None:
    feed = make_feed(rated=False)
    serial, free = MatrixFactorization(dim=3), MatrixFactorization(dim=3)
    run(serial, feed)
    run(free, feed, "hogwild", sharing=sharing)
    assert bits(serial) == bits(free)


@compiled_in_full
@pytest.mark.parametrize("mode", ["locked", "round-robin", "minibatch"])
def test_other_modes_with_one_worker_equal_serial(mode: str) -> None:
    feed = make_feed(rated=True)
    serial, other = (MatrixFactorization(dim=2, optimizer="adam", shrink=0.1) for _ in range(2))
    run(serial, feed)
    run(other, feed, mode)
    assert bits(serial) == bits(other)


@compiled_in_full
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_batches_equal_the_twin(loss: str) -> None:
    feed = make_feed(rated=loss == "squared")
    options: dict[str, Any] = {"dim": 2, "loss": loss, "optimizer": "sgd"}
    program, twin = MatrixFactorization(**options), make_twin(feed, **options)
    run(program, feed, "minibatch", batch=7, epochs=1, schedule="constant")
    touched: list[Any] = []
    order = [int(k) for k in shuffled(len(feed), 1, 0).blocks]
    seen = seen_lists(feed)
    for place, k in enumerate(order):
        user, item, value = (column[k] for column in feed.samples)
        touched += twin.visit(int(user), int(item), float(value), seen[int(user)])[1]
        if (place + 1) % 7 == 0 or place + 1 == len(order):
            twin.apply(touched, LR, 0.0)
            touched = []
    equal(program, twin)


@compiled_in_full
@pytest.mark.parametrize(("mode", "sharing"), [
    ("locked", "all"), ("round-robin", "all"), ("minibatch", "all"), ("hogwild", "hot"), ("hogwild", "replica"),
])  # fmt: skip
def test_two_workers_learn_in_every_mode(mode: str, sharing: str) -> None:
    feed = make_feed(rated=True, rows=40)
    program = MatrixFactorization(dim=2, optimizer="sgd", shrink=0.001)
    events = run(program, feed, mode, 2, sharing=sharing, epochs=3)
    losses = [event.loss for event in events if event.kind == "epoch"]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.full
@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_modes_and_rules_without_the_compiler(tmp_path: Path) -> None:
    chosen = ["tests/programs/recommender/test_program.py", "tests/kernels/sparse/test_factorization.py"]
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    done = in_new_process(arguments, tmp_path, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.count(".") > 60


# -- what it learns and predicts ------------------------------------------------------------------------------------


@pytest.mark.skipif(OFF, reason="many visits")
@pytest.mark.parametrize("sharing", ["all", "hot"])
def test_many_workers_learn_ratings(sharing: str) -> None:
    train, test = make_feed(6000, 40, 30), make_feed(800, 40, 30, seed=2)
    test = hogwild.ratings_of(*_names(test), test.samples.values, names=(train.users, train.items))
    program = MatrixFactorization(dim=3)
    run(program, train, "hogwild", 2, sharing=sharing, epochs=8)
    found = program.evaluate(test)
    assert found["rmse"] < 0.56  # the noise is 0.5
    assert found["mae"] <= found["rmse"]
    assert np.std(test.samples.values) > 1.0


@pytest.mark.skipif(OFF, reason="many visits")
def test_tastes_are_recommended() -> None:
    feed = make_feed(1500, 40, 60, rated=False)
    program = MatrixFactorization(dim=3)
    run(program, feed, "hogwild", 2, epochs=30, sharing="all")
    right = []
    for user in program.users:
        found = program.recommend(user, 5)
        mine = {feed.items[k] for k in seen_lists(feed)[feed.users.index(user)]}
        assert not mine & {item for item, _ in found}
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        right += [int(item[1:]) % 2 == int(user[1:]) % 2 for item, _ in found]
    assert np.mean(right) > 0.8
    liked, _ = program.recommend_all(["u1"], 3, seen=True)[0]
    assert len(liked) == 3


def _names(feed: RatingFeed) -> tuple[list[str], list[str]]:
    users, items, _ = feed.samples
    return [feed.users[k] for k in users], [feed.items[k] for k in items]


def trained(loss: str = "squared", **options: Any) -> tuple[MatrixFactorization, RatingFeed]:
    feed = make_feed(rated=loss == "squared")
    program = MatrixFactorization(dim=3, loss=loss, **options)
    run(program, feed)
    return program, feed


def test_what_is_unknown_gives_the_mean_and_the_other_bias() -> None:
    program, feed = trained()
    factors = program.factors()
    pairs = hogwild.ratings_of(
        ["u1", "new", "new", "u1"], ["i1", "i1", "none", "none"], names=(program.users, program.items)
    )
    user, item = program.users.index("u1"), program.items.index("i1")
    known = factors.user_vectors[user] @ factors.item_vectors[item]
    biases = factors.user_biases[user], factors.item_biases[item]
    exact = [known + sum(biases), biases[1], 0, biases[0]]
    np.testing.assert_allclose(program.scores(pairs), program.mean + np.array(exact), rtol=1e-5)
    assert program.unknown == (2, 2)
    assert (program.lowest, program.highest) == (feed.samples.values.min(), feed.samples.values.max())
    program.weights.users[:] += 100
    np.testing.assert_array_equal(program.predict(pairs)[:1], program.highest)
    program.weights.users[:] -= 100
    names, scores = program.recommend_all(["new"], 4)[0]
    best = np.argsort(-factors.item_biases, kind="stable")[:4]
    assert names == [program.items[k] for k in best]
    np.testing.assert_allclose(scores, program.mean + factors.item_biases[best], rtol=1e-5)


def test_rankings_against_sorting() -> None:
    program, feed = trained("bpr")
    factors, seen = program.factors(), seen_lists(feed)
    held_out = {"u0": ["i1", "i3", "nothing"], "u3": ["i0", "i6"], "stranger": ["i1"]}
    pairs = [(user, item) for user, items in held_out.items() for item in items]
    test = hogwild.ratings_of(*zip(*pairs, strict=True), names=(program.users, program.items))
    found = program.evaluate(test, top=3)
    rows, repeated = [], 0
    for user in ("u0", "u3"):
        k = program.users.index(user)
        numbers = [program.items.index(item) if item in program.items else -1 for item in held_out[user]]
        fresh = [item for item in numbers if item not in seen[k]]
        repeated += len(numbers) - len(fresh)
        if fresh:
            scores = factors.item_vectors @ factors.user_vectors[k] + factors.item_biases
            rows.append(ranking(scores, seen[k], fresh, 3))
    assert rows
    exact = np.mean(rows, axis=0)
    assert [found[f"{name}@3"] for name in ("precision", "recall", "ndcg", "hit")] == pytest.approx(exact, rel=1e-6)
    assert (program.unknown, program.repeated) == ((1, 1), repeated)
    assert len(program.evaluation_notes()) == 2 + (repeated > 0)
    assert program.judge(found, 0.0) == -found["ndcg@3"]
    assert set(program.evaluate(feed)) == {"loss"}  # nothing but what training had


def test_blocks_of_users_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = trained("bpr")
    users = np.array([3, -1, 0, 2, 3], np.int32)
    (whole,) = best_items(program.factors(), users, program.seen, 4)
    monkeypatch.setattr("hogwild.programs.recommender.ranking._BLOCK_BYTES", 2 * 4 * len(program.items))
    for threads in (1, 2):
        parts = list(best_items(program.factors(), users, program.seen, 4, threads))
        assert len(parts) == 3
        np.testing.assert_array_equal(np.concatenate([part.items for part in parts]), whole.items)
        np.testing.assert_allclose(np.concatenate([part.scores for part in parts]), whole.scores, rtol=1e-5)


def test_seen_items_are_sorted_once_each_and_add_up() -> None:
    feed = hogwild.ratings_of(list("aabba"), list("yxxyx"))
    found = seen_in(feed.samples, 2, 2)
    assert (found.offsets.tolist(), found.items.tolist()) == ([0, 2, 4], [0, 1, 0, 1])
    earlier = Seen(np.array([0, 1, 1], np.int64), np.array([1], np.int32))
    more = seen_in(hogwild.ratings_of(["a", "b"], ["x", "x"], names=(feed.users, feed.items)).samples, 2, 2, earlier)
    assert (more.offsets.tolist(), more.items.tolist()) == ([0, 2, 3], [0, 1, 0])


# -- saving ---------------------------------------------------------------------------------------------------------


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    for loss in ("squared", "bpr"):
        program, feed = trained(loss, bias=loss == "squared")
        save_model(tmp_path / loss, program)
        loaded = load_model(tmp_path / loss).program
        assert isinstance(loaded, MatrixFactorization)
        assert (loaded.users, loaded.items, loaded.loss) == (program.users, program.items, loss)
        np.testing.assert_array_equal(loaded.predict(feed), program.predict(feed))
        assert loaded.recommend("u2", 3) == program.recommend("u2", 3)
        assert loaded.evaluate(feed) == program.evaluate(feed)


def test_state_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    program, feed = trained(shrink=0.01 if OFF else 0.0)
    other = MatrixFactorization(**program.options())
    other.restore(program.arrays(state=True))
    assert bits(other) == bits(program)
    run(program, feed, epochs=1)
    run(other, feed, epochs=1)
    assert bits(other) == bits(program)


@pytest.mark.parametrize(("name", "array"), [
    ("seen", np.array([99], np.int32)),
    ("user_vectors", np.zeros((1, 3), np.float32)),
    ("range", np.full(3, np.nan)),
    ("strange", np.zeros(1, np.float32)),
    ("seen_offsets", None),
])  # fmt: skip
def test_damaged_arrays_are_refused(name: str, array: Any) -> None:
    program, _ = trained()
    arrays = program.arrays()
    if name == "seen":
        array = np.append(arrays["seen"][:-1], array)
    arrays[name] = array
    if array is None:
        del arrays[name]
    other = MatrixFactorization(**program.options())
    with pytest.raises(ModelError, match=name if name != "seen" else "seen do not fit"):
        other.restore(arrays)


# -- what is refused ------------------------------------------------------------------------------------------------


def test_mistakes_are_told() -> None:
    rated, plain = make_feed(), make_feed(rated=False)
    with pytest.raises(ConfigError, match="there are no ratings to predict"):
        run(MatrixFactorization(loss="squared"), plain)
    with pytest.raises(ConfigError, match="holds no ratings"):
        run(MatrixFactorization(), hogwild.feed_of(np.eye(2), [0, 1]))
    with pytest.raises(ConfigError, match="dim is 0"):
        MatrixFactorization(dim=0)
    with pytest.raises(ConfigError, match="sgd has no constant 'beta'"):
        MatrixFactorization(optimizer="sgd", constants={"beta": 1})
    with pytest.raises(ConfigError, match="no weights yet"):
        MatrixFactorization().factors()
    with pytest.raises(InputError, match="one item only"):
        run(MatrixFactorization(), hogwild.ratings_of(["a", "b"], ["x", "x"]))
    program, _ = trained()
    with pytest.raises(ConfigError, match=r"program\.open"):
        program.predict(make_feed(users=9, seed=5))
    strange = hogwild.ratings_of(["u1", "new"], ["i1", "i2"], [1, 2], names=(program.users, program.items))
    with pytest.raises(InputError, match="1 rating of users or items that the model has no vectors for"):
        run(program, strange)
    with pytest.raises(InputError, match="no ratings to compare with"):
        program.evaluate(hogwild.ratings_of(["u1"], ["i1"], names=(program.users, program.items)))
    assert rated.implicit is False


@pytest.mark.parametrize("name", ["\ud800", 3])
def test_names_that_no_file_can_hold_are_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="a name of a user or an item is no text"):
        MatrixFactorization(users=["a", name], items=["b"])


@pytest.mark.parametrize("loss", ["squared", "logistic", "bpr"])
def test_pairs_as_users_have_them(loss: str, tmp_path: Any) -> None:
    program, feed = trained(loss)
    known = [*zip(*_names(feed), strict=True)][:20]
    pairs = [*known, ("u1", "none"), ("new", "i1"), ("new", "none")]
    named = hogwild.ratings_of(*zip(*pairs, strict=True), names=(program.users, program.items))
    expected = program.predict(named)
    frame = pd.DataFrame(pairs, columns=["user", "item"])
    path = tmp_path / "pairs.csv"
    frame.to_csv(path, index=False)
    turned = frame[["item", "user"]]
    for data in (pairs, [list(pair) for pair in pairs], frame, turned, pl.from_pandas(turned), path, str(path)):
        np.testing.assert_array_equal(program.predict(data), expected)
    found = [program.predict_one(*pair) for pair in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert program.predict_one(pairs[0]) == found[0]
    for wrong in ("ann", 7, ("a", "b", "c"), None):
        with pytest.raises(InputError, match="a user and an item are asked for"):
            program.predict_one(wrong)
    for wrong in (np.eye(2)[0], [("a",)], {"user": 1}, hogwild.feed_of(np.eye(2))):
        with pytest.raises(InputError, match="pairs are asked for"):
            program.predict(wrong)


def test_ratings_in_memory_are_evaluated() -> None:
    program, feed = trained()
    users, items = _names(feed)
    rated = [*zip(users, items, feed.samples.values.tolist(), strict=True)]
    expected = program.evaluate(feed)
    assert program.evaluate(rated) == pytest.approx(expected)
    frame = pd.DataFrame({"item_id": items, "rating": feed.samples.values, "userId": users})
    assert program.evaluate(frame) == pytest.approx(expected)
    with pytest.raises(InputError, match="no ratings to compare with"):
        program.evaluate([pair[:2] for pair in rated])


def test_one_pair_is_answered_by_the_weights_of_now() -> None:
    """Training goes on in place: what predict_one keeps for the next pair was of before."""
    feed = hogwild.ratings_of(["ann", "bob", "cid"] * 9, ["tea", "jam", "tea"] * 9, [5, 1, 4] * 9)
    program = hogwild.MatrixFactorization(dim=2)
    executor = hogwild.AsyncExecutor(threads=1, mode="serial")
    seen = []
    for epochs in (1, 3):
        for event in executor.run(program, feed, epochs=epochs, lr=0.1):
            if event.kind == "epoch":
                seen.append(program.predict_one("bob", "jam"))
                assert seen[-1] == pytest.approx(float(program.predict([("bob", "jam")])[0]), abs=1e-5)
        assert program.predict_one("bob", "jam") == pytest.approx(float(program.predict([("bob", "jam")])[0]), abs=1e-5)
    assert len(set(seen)) == 4


# -- defaults for ratings ---------------------------------------------------------------------------------------------


def test_the_penalty_of_ratings_follows_from_their_number() -> None:
    feed = make_feed(rows=95, users=5, items=8)  # 100 ratings
    program = MatrixFactorization(dim=3)
    run(program, feed)
    assert program.penalties == pytest.approx((5 * 5 / 100, 5 * 8 / 100))
    given = MatrixFactorization(dim=3, l2=0.3)
    run(given, feed)
    assert given.penalties == (0.3, 0.3)
    few = MatrixFactorization(dim=3)
    run(few, make_feed(rows=3, users=5, items=8))
    assert few.penalties[0] == 1.0  # no more than that
    implicit = MatrixFactorization(dim=3)
    run(implicit, make_feed(rated=False))
    assert implicit.penalties == (0.04, 0.04)


def test_ratings_of_any_scale_are_learnt_alike(tmp_path: Path) -> None:
    """Percents as stars: in a unit that is a power of 4 nothing is rounded, so all is 64 times as large to the bit."""
    feed = make_feed()
    large = hogwild.ratings_of(
        [feed.users[k] for k in feed.samples.users], [feed.items[k] for k in feed.samples.items],
        64 * feed.samples.values, names=(feed.users, feed.items),
    )  # fmt: skip
    stars, percents = MatrixFactorization(dim=3), MatrixFactorization(dim=3)
    told = [run(program, data)[-1].loss for program, data in ((stars, feed), (percents, large))]
    assert percents.scale == 64 * stars.scale
    assert (percents.predict(large) == 64 * stars.predict(feed)).all()
    assert told[1] == pytest.approx(64**2 * told[0], rel=1e-6)
    assert percents.evaluate(large)["rmse"] == pytest.approx(64 * stars.evaluate(feed)["rmse"], rel=1e-6)
    save_model(tmp_path / "model", percents)
    again = load_model(tmp_path / "model").program
    assert (again.predict(large) == percents.predict(large)).all()
    assert bits(again).keys() <= bits(percents).keys()
    for mine, theirs in zip(again.factors()[:4], percents.factors()[:4], strict=True):
        assert (mine == theirs).all()


def test_a_wrong_unit_is_refused() -> None:
    program = MatrixFactorization(dim=3)
    run(program, make_feed())
    arrays, options = program.arrays(), program.options()
    for wrong in (0.0, -4.0, 2.0, 3.0, np.nan, np.inf):
        again = MatrixFactorization(**options)
        with pytest.raises(ModelError, match="array unit is"):
            again.restore({**arrays, "unit": np.array([wrong])})


def test_models_of_before_open() -> None:
    """Without a unit, and without the options that came later."""
    program = MatrixFactorization(dim=3)
    run(program, make_feed())
    options = {name: value for name, value in program.options().items() if name not in ("solver", "alpha")}
    again = MatrixFactorization(**options)
    again.restore({name: array for name, array in program.arrays().items() if name != "unit"})
    assert (again.predict(make_feed()) == program.predict(make_feed())).all()
