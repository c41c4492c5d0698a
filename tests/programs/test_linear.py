"""The linear program: classes, orders of ids, growth, evaluation, saving, and training through the executor."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as theirs
from sklearn.utils.class_weight import compute_class_weight

from hogwild.arrays import BinaryRows, DenseRows, Rows
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.feed import Feed
from hogwild.programs.linear import Linear

FEATURES = 30
ROWS = 400
CONSTANT = {"schedule": "constant", "lr": 0.2}


def make_feed(classes=2, seed=0, features=FEATURES, rows=ROWS, ranked=False, labels=(), importance=None):
    """A learnable sparse problem; with `ranked`, ids are shuffled ranks and `original` names the features."""
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(77).normal(0, 2, (200, max(classes, 1)))[:features]
    matrix = sp.random(rows, features, 0.2, "csr", np.float32, rng=random)
    matrix.sort_indices()
    if classes > 1:
        targets = (matrix @ truth + random.normal(0, 0.1, (rows, classes))).argmax(axis=1)
    else:
        targets = (matrix @ truth)[:, 0] + 0.5
    weights = np.ones(rows) if importance is None else importance
    ids, original = matrix.indices.astype(np.int32), None
    if ranked:
        original = random.permutation(features).astype(np.int32)
        back = np.empty_like(original)
        back[original] = np.arange(features, dtype=np.int32)
        ids = back[ids]
    samples = Rows(
        matrix.indptr.astype(np.int64), ids, matrix.data, targets.astype(np.float32), weights.astype(np.float32)
    )
    return Feed(samples, features, original=original, labels=labels, source="toy.svm").check()


def dense(feed):
    """The feed's matrix with columns in the features' own order."""
    rows = feed.samples
    own = rows.ids if feed.original is None else feed.original[rows.ids]
    return sp.csr_matrix((rows.values, own, rows.offsets), shape=(len(feed), feed.features)).toarray()


def fit(program, feed, epochs=5, mode="serial", **options):
    executor = AsyncExecutor(threads=options.pop("threads", 1), mode=mode, **{**CONSTANT, **options})
    return list(executor.run(program, feed, epochs=epochs))


# -- classes ----------------------------------------------------------------------------------------------------


def test_numeric_labels_become_classes_in_the_users_terms():
    feed = make_feed(2)
    shifted = Feed(feed.samples._replace(targets=feed.samples.targets * 7 - 3), FEATURES)
    program = Linear()
    fit(program, shifted)
    assert program.loss == "logistic"
    assert program.classes == (-3, 4)
    assert set(program.predict(shifted).tolist()) == {-3, 4}
    assert program.evaluate(shifted)["accuracy"] > 0.9


def test_words_become_classes():
    feed = make_feed(3, labels=("ant", "bee", "cat"))
    program = Linear()
    fit(program, feed)
    assert program.classes == ("ant", "bee", "cat")
    assert program.predict(feed)[:5].tolist() == [("ant", "bee", "cat")[k] for k in program.scores(feed)[:5].argmax(1)]


def test_auto_takes_fractions_for_a_quantity():
    program = Linear()
    feed = make_feed(1)
    fit(program, feed)
    assert (program.loss, program.classes) == ("squared", ())
    np.testing.assert_array_equal(program.predict(feed), program.scores(feed))


@pytest.mark.parametrize(
    ("loss", "targets", "labels", "message"),
    [
        ("auto", np.ones(4), (), "only the class 1"),
        ("hinge", np.arange(2000.0), (), "2000 different targets"),
        ("squared", np.zeros(4), ("a", "b"), "labels are words"),
    ],
)
def test_targets_that_cannot_work(loss, targets, labels, message):
    rows = len(targets)
    samples = DenseRows(np.ones((rows, 1), np.float32), targets.astype(np.float32), np.ones(rows, np.float32))
    with pytest.raises(InputError, match=message):
        Linear(loss=loss).startup(Feed(samples, 1, labels=labels), 1)


def test_a_label_outside_the_classes_is_named_with_its_place():
    program = Linear()
    fit(program, make_feed(2), epochs=1)
    later = make_feed(3, seed=5)
    row = int(np.argmax(later.samples.targets == 2))
    with pytest.raises(InputError, match=rf"toy.svm: row {row + 1}: the label 2 is not one of the classes 0, 1"):
        program.evaluate(later)
    with pytest.raises(InputError, match="label 2"):
        fit(program, later)
    assert len(program.predict(later)) == ROWS  # needs no labels


def test_words_are_matched_by_name_not_by_number():
    feed = make_feed(2, labels=("no", "yes"))
    program = Linear()
    fit(program, feed)
    turned = Feed(feed.samples._replace(targets=1 - feed.samples.targets), FEATURES, labels=("yes", "no"))
    assert program.evaluate(turned) == program.evaluate(feed)
    other = Feed(feed.samples, FEATURES, labels=("no", "perhaps"))
    with pytest.raises(InputError, match="'perhaps' is not one of the classes 'no', 'yes'"):
        program.evaluate(other)


def test_numbers_written_as_words_are_the_same_classes():
    feed = make_feed(2)
    program = Linear()
    fit(program, feed)
    words = Feed(feed.samples, FEATURES, labels=("0.0", "1"))
    assert program.evaluate(words) == program.evaluate(feed)


def test_classes_given_beforehand():
    program = Linear(classes=[0, 1, 2])
    fit(program, make_feed(2), epochs=1)
    assert program.scores(make_feed(2)).shape == (ROWS, 3)
    fit(program, make_feed(3), epochs=1)


@pytest.mark.parametrize("weight", ["balanced", {0: 3.0, 1: 0.5}, {"1": 2.0}])
def test_class_weights_multiply_importance(weight):
    importance = np.random.default_rng(1).uniform(0.5, 2, ROWS)
    feed = make_feed(2, importance=importance)
    program = Linear(class_weight=weight)
    program.startup(feed, 1)
    truth = feed.samples.targets.astype(int)
    given = {int(k): v for k, v in weight.items()} if isinstance(weight, dict) else weight
    full = {0: 1.0, 1: 1.0, **given} if isinstance(given, dict) else given
    factors = compute_class_weight(full, classes=np.array([0, 1]), y=truth)
    samples = program.samples(feed)
    np.testing.assert_allclose(samples.importance, importance * factors[truth], rtol=1e-6)
    assert set(samples.targets.tolist()) == {-1.0, 1.0}
    assert feed.samples.targets.min() == 0  # the feed itself is as it was


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": "even"}, "balanced"),
        ({"class_weight": {0: -1.0}}, "weight of class 0 is -1"),
        ({"optimizer": "adam", "constants": {"beta3": 0.1}}, "no constant 'beta3'; it has beta1, beta2, epsilon"),
        ({"optimizer": "sgd", "constants": {"beta": 0.1}}, "it has none"),
        ({"loss": "squared", "classes": [1, 2]}, "do not go together"),
        ({"classes": [1, 1]}, "each once"),
        ({"l1": -1}, "l1"),
        ({"loss": "cubic"}, "loss"),
    ],
)
def test_options_that_cannot_work(options, message):
    with pytest.raises(ConfigError, match=message):
        Linear(**options)


def test_a_weight_for_an_unknown_class():
    program = Linear(class_weight={5: 2.0})
    with pytest.raises(ConfigError, match="class_weight names 5, which is not one of the classes 0, 1"):
        fit(program, make_feed(2))


# -- orders of ids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_ranked_ids_train_the_same_model(classes):
    plain, ranked = make_feed(classes, seed=3), make_feed(classes, seed=3, ranked=True)
    models = []
    for feed in (plain, ranked):
        program = Linear(l2=0.001)
        fit(program, feed)
        assert program.order is None
        models.append(program)
    one, other = (model.arrays(state=True) for model in models)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-6, err_msg=name)
    first = models[0].evaluate(plain)
    for model in models:
        for feed in (plain, ranked):
            assert model.evaluate(feed) == pytest.approx(first, rel=1e-5)


def test_evaluation_between_epochs_reads_weights_in_the_order_of_training():
    feed, valid = make_feed(2, seed=3, ranked=True), make_feed(2, seed=4, ranked=True)
    program = Linear()
    events = AsyncExecutor(threads=1, mode="serial", **CONSTANT).run(program, feed, epochs=3, valid=valid)
    seen = []
    for event in events:
        if event.kind == "epoch":
            assert program.order is feed.original
            before = program.weights.table.copy()
            scores = program.scores(valid)
            exact = dense(valid) @ program.arrays()["weight"] + program.arrays()["bias"]
            np.testing.assert_allclose(scores, exact, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(program.weights.table, before)
            seen.append(event.metrics)
            after_training = program.evaluate(valid)
    assert len(seen) == 3
    assert seen[-1] == after_training == program.evaluate(valid)


def test_a_model_grows_with_its_feeds_and_ignores_what_it_does_not_know():
    narrow, wide = make_feed(2, features=20, ranked=True), make_feed(2, features=FEATURES, ranked=True)
    program = Linear()
    fit(program, narrow)
    before = program.arrays()["weight"]
    exact = dense(wide)[:, :20] @ before + program.arrays()["bias"]
    np.testing.assert_allclose(program.scores(wide), exact, rtol=1e-4, atol=1e-5)
    assert program.ignored == np.count_nonzero(dense(wide)[:, 20:])
    program.startup(wide, 1)
    program.finish(wide)
    np.testing.assert_array_equal(program.arrays()["weight"][:20], before)
    assert not program.arrays()["weight"][20:].any()
    fit(program, wide)
    assert program.features == FEATURES
    assert program.arrays()["weight"][20:].any()
    fit(program, narrow)  # a narrower feed again
    assert program.features == FEATURES
    assert program.scores(narrow).shape == (ROWS,)
    assert program.ignored == 0


def test_dense_and_binary_samples_score_alike():
    feed = make_feed(2)
    program = Linear()
    fit(program, feed)
    full = Feed(DenseRows(dense(feed).astype(np.float32), *feed.samples[3:]), FEATURES)
    np.testing.assert_allclose(program.scores(full), program.scores(feed), rtol=1e-4, atol=1e-5)
    ones = Feed(BinaryRows(*feed.samples[:2], *feed.samples[3:]), FEATURES)
    exact = (dense(feed) != 0) @ program.arrays()["weight"] + program.arrays()["bias"]
    np.testing.assert_allclose(program.scores(ones), exact, rtol=1e-4, atol=1e-4)


def test_threads_score_the_same():
    feed = make_feed(3)
    program = Linear()
    fit(program, feed, epochs=1)
    for threads in (2, 3, 7, ROWS + 1):
        np.testing.assert_array_equal(program.scores(feed, threads), program.scores(feed))


# -- evaluation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_two_classes(weighted):
    importance = np.random.default_rng(1).uniform(0.5, 2, ROWS) if weighted else None
    feed = make_feed(2, importance=importance)
    program = Linear()
    fit(program, feed, epochs=1)
    found = program.evaluate(feed, threads=2)
    truth, odds, guess = feed.samples.targets, program.predict_proba(feed), program.predict(feed)
    how = {"sample_weight": importance}
    expected = {
        "loss": theirs.log_loss(truth, odds, **how),
        "accuracy": theirs.accuracy_score(truth, guess, **how),
        "logloss": theirs.log_loss(truth, odds, **how),
        "auc": theirs.roc_auc_score(truth, program.scores(feed), **how),
        "precision": theirs.precision_score(truth, guess, **how),
        "recall": theirs.recall_score(truth, guess, **how),
        "f1": theirs.f1_score(truth, guess, **how),
    }
    assert found == pytest.approx(expected, rel=1e-6)
    assert all(isinstance(value, float) for value in found.values())


def test_metrics_of_three_classes():
    feed = make_feed(3)
    program = Linear()
    fit(program, feed)
    found, odds = program.evaluate(feed), program.predict_proba(feed)
    truth = feed.samples.targets.astype(int)
    assert set(found) == {"loss", "accuracy", "logloss", "auc"}
    assert found["loss"] == pytest.approx(theirs.log_loss(truth, odds), rel=1e-5)
    assert found["auc"] == pytest.approx(theirs.roc_auc_score(truth, odds, multi_class="ovr"), rel=1e-5)
    assert found["accuracy"] > 0.85
    np.testing.assert_allclose(odds.sum(axis=1), 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_hinge(classes):
    feed = make_feed(classes)
    program = Linear(loss="hinge")
    fit(program, feed)
    found = program.evaluate(feed)
    assert "logloss" not in found
    assert found["accuracy"] > 0.85
    scores = program.scores(feed).reshape(ROWS, -1)
    sides = np.where(feed.samples.targets[:, None] == (np.arange(classes) if classes > 2 else [1]), 1, -1)
    assert found["loss"] == pytest.approx(np.maximum(0, 1 - sides * scores).sum(axis=1).mean(), rel=1e-5)
    with pytest.raises(ConfigError, match="hinge loss gives no probabilities"):
        program.predict_proba(feed)


def test_metrics_of_a_quantity():
    feed = make_feed(1)
    program = Linear(loss="squared")
    fit(program, feed, epochs=20)
    found = program.evaluate(feed)
    error = theirs.root_mean_squared_error(feed.samples.targets, program.predict(feed))
    assert found == pytest.approx({"loss": error**2 / 2, "rmse": error}, rel=1e-5)
    assert error < 0.2 * feed.samples.targets.std()


def test_an_auc_that_does_not_exist_is_left_out():
    feed = make_feed(2)
    program = Linear()
    fit(program, feed, epochs=1)
    one_class = Feed(feed.samples._replace(targets=np.zeros(ROWS, np.float32)), FEATURES)
    assert "auc" not in program.evaluate(one_class)


def test_an_untrained_model_says_so():
    with pytest.raises(ConfigError, match="no weights yet"):
        Linear().scores(make_feed())
    with pytest.raises(ConfigError, match="no weights yet"):
        Linear(classes=[0, 1]).evaluate(make_feed())


# -- going on, saving -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "classes"),
    [("sgd", 2), ("momentum", 2), ("adagrad", 2), ("adam", 2), ("ftrl", 2), ("adagrad", 3), ("adam", 3)],
)
def test_state_comes_back_bit_for_bit(optimizer, classes):
    feed = make_feed(classes, ranked=True)
    program = Linear(optimizer=optimizer, l1=1e-4, l2=1e-3, class_weight={1: 2.0})
    fit(program, feed, epochs=1, lr=0.05)
    options, arrays = program.options(), program.arrays(state=True)
    twin = Linear(**json.loads(json.dumps(options)))
    twin.restore(arrays)
    assert twin.options() == options
    for name, array in twin.arrays(state=True).items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    for model in (program, twin):
        fit(model, feed, epochs=1, lr=0.05, seed=9)
    for name, array in twin.arrays(state=True).items():
        np.testing.assert_array_equal(array, program.arrays(state=True)[name], err_msg=name)


def test_weights_alone_predict_the_same_and_can_be_trained_on():
    feed = make_feed(3)
    program = Linear(l2=0.01)
    fit(program, feed)
    twin = Linear(**program.options())
    twin.restore(program.arrays())
    np.testing.assert_array_equal(twin.scores(feed), program.scores(feed))
    assert program.arrays()["weight"].shape == (FEATURES, 3)
    assert program.arrays()["bias"].shape == (3,)
    fit(twin, feed, epochs=1)


def test_running_again_goes_on():
    feed = make_feed(2)
    once, twice = Linear(), Linear()
    fit(once, feed, epochs=1)
    fit(twice, feed, epochs=1)
    first = twice.evaluate(feed)["loss"]
    fit(twice, feed, epochs=5)
    assert twice.evaluate(feed)["loss"] < first
    squares = [model.arrays(state=True)["weight_squares"] for model in (once, twice)]
    assert (squares[1] >= squares[0]).all()
    assert squares[1].sum() > squares[0].sum()


def test_arrays_that_do_not_fit_are_refused():
    program = Linear()
    fit(program, make_feed(3), epochs=1)
    options, good = program.options(), program.arrays(state=True)
    changes = {
        "a name is missing": {"weight": None},
        "too few rows": {"weight": good["weight"][:-1], "weight_squares": good["weight_squares"][:-1]},
        "other classes": {"weight": good["weight"][:, :2]},
        "flat": {"weight": good["weight"].reshape(-1)},
        "float64": {"weight": good["weight"].astype(np.float64)},
        "nan": {"weight": np.full_like(good["weight"], np.nan)},
        "memory of another rule": {"weight_squares": None, "weight_mean": good["weight_squares"]},
        "memory of another size": {"weight_squares": good["weight_squares"][:, :2]},
        "strange": {"strange": good["bias"]},
        "a number": {"weight": np.float32(1).reshape(())},
    }
    for what, change in changes.items():
        arrays = {name: array for name, array in {**good, **change}.items() if array is not None}
        with pytest.raises(ModelError):
            assert Linear(**options).restore(arrays), what
    with pytest.raises(ModelError, match="classes"):
        Linear().restore(good)


def test_a_run_stopped_in_the_middle_owes_its_penalty_once():
    feed = make_feed(2)
    program = Linear(optimizer="sgd", l1=0.01, l2=0.05)
    fit(program, feed, epochs=1, lr=0.1)
    settled = program.arrays()["weight"]
    cells = program.weights.table.reshape(FEATURES, 2)
    cells[:, 1] = np.linspace(0, 4, FEATURES)  # as a run leaves it that was stopped at time 4
    owing = program.arrays()["weight"]
    held = settled[:-1] != 0
    assert (np.abs(owing)[:-1][held] < np.abs(settled)[:-1][held]).all()
    assert owing[-1] == settled[-1]
    program.renew()
    np.testing.assert_allclose(program.arrays()["weight"], owing, rtol=1e-6)
    assert not program.weights.table[1::2].any()


@pytest.mark.parametrize("sharing", ["hot", "replica"])
def test_private_copies_pay_the_whole_penalty_together(sharing):
    """Features of value 0 are touched and leave nothing but the decay, exp(-l2 * sum of rates), whoever visits what."""
    rows = make_feed(2).samples
    nothing = rows._replace(values=np.zeros_like(rows.values))
    program = Linear(optimizer="sgd", l2=0.05)
    program.startup(Feed(nothing, FEATURES), 1)
    program.weights.table[::2] = 1.0
    for epochs in (1, 3):
        before = program.arrays()["weight"]
        fit(program, Feed(nothing, FEATURES), epochs=epochs, mode="hogwild", sharing=sharing, threads=2, lr=0.01)
        decay = np.exp(-0.05 * 0.01 * ROWS * epochs)
        # Shares are paid side by side and then added: (1 - x / 2) twice is 1 - x, where one after the other is more.
        np.testing.assert_allclose(program.arrays()["weight"], before * decay, rtol=0.012 * epochs)


def test_watchable_weights_are_in_the_features_own_order():
    feed = make_feed(2, ranked=True)
    program = Linear()
    program.startup(feed, 1)
    program.weights.table[::2] = feed.original
    found = program.watchable()
    np.testing.assert_array_equal(found["weights"](), np.arange(FEATURES)[:, None])
    assert found["bias"].shape == (1,)


def test_units_and_room():
    feed = make_feed(3)
    program = Linear()
    program.startup(feed, 1)
    assert program.units(feed) == len(feed.samples.ids)
    assert program.visits(feed) == ROWS
    assert program.room(feed).rows == int(np.diff(feed.samples.offsets).max()) + 1
    tables = program.tables()
    assert tables["table"].rows * tables["table"].cells == len(program.weights.table)
    assert tables["bias"].rows * tables["bias"].cells == len(program.weights.bias)
    assert (tables["table"].kind, tables["bias"].kind) == ("ranked", "scalar")


def test_scoring_leaves_the_interpreter_free():
    feed = make_feed(2, rows=2000)
    program = Linear()
    fit(program, feed, epochs=1)
    ticks = []
    clock = threading.Event()
    thread = threading.Thread(target=lambda: ticks.extend(1 for _ in range(3) if not clock.wait(0.001)))
    thread.start()
    for _ in range(20):
        program.scores(feed, threads=2)
    thread.join()
    assert len(ticks) == 3
