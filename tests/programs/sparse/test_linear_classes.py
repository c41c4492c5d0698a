"""The linear program: classes and their weights, and options that cannot work."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from hogwild.arrays import DenseRows
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.linear import Linear
from problems.linear_feeds import FEATURES, ROWS, fit, make_feed


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


def test_a_quantity_is_asked_for():
    feed = make_feed(1)
    with pytest.raises(InputError, match=r"400 different numbers \(.*so quantities and no classes; .*--loss squared"):
        fit(Linear(), feed)
    program = Linear(loss="squared")
    fit(program, feed)
    assert (program.loss, program.classes) == ("squared", ())
    np.testing.assert_array_equal(program.predict(feed), program.scores(feed))


@pytest.mark.parametrize(
    ("loss", "targets", "labels", "message"),
    [
        ("auto", np.ones(4), (), "only the class 1"),
        ("hinge", np.arange(2000.0), (), "2000 different targets"),
        ("auto", np.arange(2000.0), (), "2,000 different numbers"),
        ("auto", np.arange(40.0), (), "40 different labels in 40 rows, such as 0: nearly every row has its own"),
        ("auto", np.arange(40.0), tuple(f"id {k}" for k in range(40)), "different labels in 40 rows, such as 'id 0'"),
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
