"""Feeds that have other features than a model are refused; those that have the same, in whatever form, are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import hogwild
from hogwild import FeedConfig, InputError, feed_of, open_feed

QUICK = {"epochs": 2, "lr": 0.1, "mode": "serial", "quiet": True}
LIBFFM = ["1 0:3:1 1:7:0.5", "0 0:4:1 1:8:1", "1 0:3:1 1:9:2", "0 0:5:1 1:7:1"]
SVMLIGHT = ["1 0:1 3:0.5", "0 1:2 2:1", "1 0:1 2:0.25", "0 1:1 3:2"]
MULTISLOT = ["1 1 2 7 9 1 0.5", "1 0 1 8 1 2.5", "1 1 1 9 1 1.0", "1 0 2 8 6 1 3.0"]
SLOTS = """[[slot]]
name = "click"
type = "uint64"
label = true
[[slot]]
name = "ad"
type = "uint64"
[[slot]]
name = "price"
type = "float"
dense = true
width = 1
"""


def check(program, same, others):
    """The model predicts for one feed, and refuses the others in one line, wherever they are asked for."""
    program.predict(same)
    for feed, why in others:
        for ask in (program.predict, program.scores, program.evaluate):
            with pytest.raises(InputError, match=f"does not fit the model: .*{why}") as caught:
                ask(feed)
            assert "\n" not in str(caught.value)
        with pytest.raises(InputError, match="does not fit the model"):
            hogwild.train(program, feed, **QUICK)
        with pytest.raises(InputError, match="does not fit the model"):
            hogwild.train(type(program)(), same, valid=feed, **QUICK)


def lines(path, rows):
    path.write_text("\n".join(rows * 5) + "\n")
    return path


PROGRAMS = [hogwild.Linear, hogwild.FactorizationMachine, lambda: hogwild.SparseMLP(hidden=(4,), batch_size=4)]


@pytest.mark.parametrize("make", PROGRAMS)
def test_columns_of_numbers_are_found_by_name(make):
    random = np.random.default_rng(3)
    frame = pd.DataFrame(random.normal(size=(60, 3)), columns=["a", "b", "c"])
    y = np.where(frame.a > frame.b, "yes", "no")
    program = hogwild.train(make(), feed_of(frame, y), **QUICK)
    turned = frame[["c", "a", "b"]]
    expected = program.scores(feed_of(frame, y))
    np.testing.assert_allclose(program.scores(feed_of(turned, schema=program.schema)), expected, rtol=1e-5, atol=1e-6)
    for data in (turned, turned.to_dict("records"), frame.to_numpy()):
        np.testing.assert_allclose(program.scores(data), expected, rtol=1e-5, atol=1e-6)
    assert program.evaluate((turned, y)) == pytest.approx(program.evaluate(feed_of(frame, y)), rel=1e-5)
    check(program, feed_of(frame, y), [
        (feed_of(turned, y), "columns of numbers are c, a, b, those of the model a, b, c"),
        (feed_of(frame[["a", "b"]], y), "columns of numbers are a, b, those"),
        (feed_of(frame.to_numpy(), y), "arrays without names"),
        (feed_of(csr_array(frame.to_numpy()), y), "arrays without names"),
    ])  # fmt: skip
    with pytest.raises(InputError, match="a row has 2 values, but the model has 3 columns: a, b, c"):
        program.predict(frame.to_numpy()[:, :2])
    with pytest.raises(InputError, match="column `c` is missing"):
        program.predict(frame[["a", "b"]])


@pytest.mark.parametrize("make", PROGRAMS)
def test_a_matrix_has_as_many_columns(make):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(60, 3)), random.integers(0, 2, 60)
    program = hogwild.train(make(), feed_of(X, y), **QUICK)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": ["x", "y", "z"] * 20})
    check(program, feed_of(X, y), [(feed_of(X[:, :2], y), "2 columns, and the model 3"),
                                   (feed_of(np.hstack([X, X]), y), "6 columns, and the model 3"),
                                   (feed_of(frame, y), "a table, and the model was trained on arrays")])  # fmt: skip


def test_embeddings_learn_from_a_matrix():
    """Each column is an input of the dense layers: as columns of numbers in a file are."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 5))
    y = 2 * X[:, 0] - X[:, 1] > 0
    program = hogwild.SparseMLP(hidden=(16,), batch_size=32)
    feed = feed_of(X, y)
    hogwild.train(program, feed, epochs=10, lr=0.01, mode="serial", quiet=True)
    assert program.sizes[0] == program.config.dim + 5
    assert program.evaluate(feed)["auc"] > 0.97


def test_ids_that_begin_elsewhere(tmp_path):
    train = open_feed(lines(tmp_path / "train.svm", SVMLIGHT))
    later = lines(tmp_path / "later.svm", [row.replace("0:1 ", "") for row in SVMLIGHT])  # by itself it begins at 1
    program = hogwild.train(hogwild.Linear(), train, **QUICK)
    check(program, open_feed(later, schema=program.schema), [(open_feed(later), "its ids begin elsewhere")])
    few = lines(tmp_path / "few.svm", ["1 0:1", "0 1:1"])
    check(program, open_feed(few), [])  # fewer features, but the same numbers
    np.testing.assert_array_equal(program.scores(few), program.scores(open_feed(few, schema=program.schema)))
    matrix = np.array([[1, 0, 0, 0.5], [0, 2, 1, 0]])
    np.testing.assert_allclose(program.scores(csr_array(matrix)), program.scores(train)[:2], rtol=1e-6)


@pytest.mark.parametrize("hashed", [False, True])
def test_slots_of_text_files(tmp_path, hashed):
    (tmp_path / "slots.toml").write_text(SLOTS)
    way = "hash" if hashed else "enumerate"
    config = FeedConfig(slots=str(tmp_path / "slots.toml"), format="multislot", categories=way)
    train = lines(tmp_path / "train.txt", MULTISLOT)
    later = lines(tmp_path / "later.txt", MULTISLOT[2:])
    for make in PROGRAMS:
        program = hogwild.train(make(), open_feed(train, config), **QUICK)
        why = "scaled otherwise" if hashed else "categories have other numbers"
        check(program, open_feed(later, config, schema=program.schema), [
            (open_feed(later, config), why), (feed_of(np.ones((4, 1)), [0, 1, 0, 1]), "arrays without names"),
        ])  # fmt: skip
        np.testing.assert_allclose(program.scores(later)[:2], program.scores(train)[2:4], rtol=1e-6)


@pytest.mark.full
def test_fields_of_a_machine(tmp_path):
    train = lines(tmp_path / "train.ffm", LIBFFM)
    few = lines(tmp_path / "few.ffm", [row.split(" 1:")[0] for row in LIBFFM])
    program = hogwild.train(hogwild.FactorizationMachine(field_aware=True, dim=2), open_feed(train), **QUICK)
    check(program, open_feed(few), [])  # its ids are numbers; it has fewer fields
    assert len(program.predict(few)) == 20
    with pytest.raises(InputError, match="its features have no fields"):
        program.predict(feed_of(csr_array(np.ones((2, 3)))))


def test_a_model_keeps_its_schema(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "c": list("xyxy")})
    feed = feed_of(frame, ["no", "yes", "no", "yes"])
    program = hogwild.train(hogwild.Linear(), feed, **QUICK)
    hogwild.save_model(tmp_path / "model", program)
    loaded = hogwild.load_model(tmp_path / "model")
    assert loaded.schema == loaded.program.schema == feed.schema
    np.testing.assert_array_equal(loaded.program.scores(frame[["c", "a"]]), program.scores(feed))
    with pytest.raises(InputError, match="does not fit the model: its numbers are scaled otherwise"):
        loaded.program.evaluate(feed_of(frame[2:], ["no", "yes"]))


def test_labels_are_needed_where_they_are_learned_or_compared():
    feed = feed_of(np.eye(3))
    with pytest.raises(InputError, match="there are no labels to learn"):
        hogwild.train(hogwild.Linear(loss="squared"), feed, **QUICK)
    program = hogwild.train(hogwild.Linear(), feed_of(np.eye(3), [0, 1, 0]), **QUICK)
    with pytest.raises(InputError, match="there are no labels to compare with"):
        program.evaluate(feed)
    assert len(program.predict(feed)) == 3


def test_labels_do_not_matter_where_they_are_not_asked_for():
    """A column of labels that are not there yet, or are others, is no reason to predict nothing."""
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4] * 5, "label": ["no", "yes"] * 10})
    program = hogwild.train(hogwild.Linear(), feed_of(frame, config=FeedConfig(label="label")), **QUICK)
    for column in ([None] * 20, ["maybe"] * 20, [1.0] * 20):
        np.testing.assert_array_equal(program.scores(frame.assign(label=column)), program.scores(frame))
    with pytest.raises(InputError, match="the label `maybe` is none of no, yes"):
        program.evaluate(frame.assign(label="maybe"))


@pytest.mark.parametrize("data", [(np.eye(2), [0, 1]), np.eye(2), {"a": 1}, None, "nowhere.csv"])
def test_what_is_no_feed_is_refused(data):
    with pytest.raises(hogwild.HogwildError) as caught:
        list(hogwild.AsyncExecutor(threads=1).run(hogwild.Linear(), data))
    assert "is no feed; open a file with hogwild.open_feed(path), or make one" in str(caught.value)


# -- one row at a time ------------------------------------------------------------------------------------------------


def one(program, row):
    """The score of the second class, by the chance that a row is given."""
    chance = program.predict_proba_one(row)[program.classes[1]]
    return np.log(chance / (1 - chance))


@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("way", ["enumerate", "hash", "rare"])
def test_rows_of_slots(tmp_path, make, way):
    (tmp_path / "slots.toml").write_text(SLOTS)
    config = FeedConfig(slots=str(tmp_path / "slots.toml"), format="multislot", min_count=6 if way == "rare" else 1,
                        categories="hash" if way == "hash" else "enumerate")  # fmt: skip
    train = lines(tmp_path / "train.txt", MULTISLOT)
    program = hogwild.train(make(), open_feed(train, config), **QUICK)
    expected = program.scores(train)[:4]
    rows = [{"ad": [7, 9], "price": 0.5}, {"ad": 8, "price": "2.5"}, [[9], 1.0], {"ad": {8: 1.0, "6": 1.0}, "price": 3}]
    np.testing.assert_allclose([one(program, row) for row in rows], expected, rtol=1e-4, atol=1e-5)
    strange = lines(tmp_path / "strange.txt", ["1 1 1 12345 1 0.0"])
    np.testing.assert_allclose(one(program, {"ad": 12345, "price": None}), program.scores(strange)[0], atol=1e-5)
    for bad, why in [({"ad": 7}, "`price` is missing in the row"), ({"ad": "x", "price": 1}, "'x' is no id"),
                     ({"ad": -1, "price": 1}, "-1 is no id"), ([1], "a row of 2 values is asked for"),
                     ({"ad": 7, "price": "much"}, "column `price`: 'much' is not a finite")]:  # fmt: skip
        with pytest.raises(InputError, match=why):
            program.predict_one(bad)


@pytest.mark.parametrize("make", PROGRAMS)
def test_rows_of_criteo(tmp_path, make):
    random = np.random.default_rng(5)
    numbers = random.integers(-2, 50, (40, 13))
    keys = random.integers(0, 6, (40, 26)) * 123456789
    rows = [[*map(str, n), *(f"{key:08x}" for key in k)] for n, k in zip(numbers.tolist(), keys.tolist(), strict=True)]
    path = tmp_path / "day.txt"
    path.write_text("".join("\t".join([str(k % 2), *row]) + "\n" for k, row in enumerate(rows)))
    program = hogwild.train(make(), open_feed(path), **QUICK)
    expected = program.scores(path)
    named = dict(zip([*(f"I{k}" for k in range(1, 14)), *(f"C{k}" for k in range(1, 27))], rows[1], strict=True))
    found = [one(program, rows[0]), one(program, named), one(program, [*numbers[2], *keys[2]])]
    np.testing.assert_allclose(found, expected[:3], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", PROGRAMS)
def test_rows_of_numbers(make):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(60, 3)), random.integers(0, 2, 60)
    program = hogwild.train(make(), feed_of(X, y), **QUICK)
    expected = program.scores(X)[:5]
    if program.name == "fm":
        np.testing.assert_allclose(program.predict_one([0, 1, 2], X[0]), 1 / (1 + np.exp(-expected[0])), rtol=1e-5)
    np.testing.assert_allclose([one(program, row) for row in X[:5]], expected, rtol=1e-4, atol=1e-5)
    for bad, why in [([1.0, 2.0], "a row has 2 values, but the model has 3"), ([1, 2, np.inf], "not a finite number")]:
        with pytest.raises(InputError, match=why):
            program.predict_one(bad)


def test_rows_of_ids(tmp_path):
    program = hogwild.train(hogwild.Linear(), open_feed(lines(tmp_path / "train.svm", SVMLIGHT)), **QUICK)
    expected = program.scores(tmp_path / "train.svm")[:4]
    rows = [{0: 1, 3: 0.5}, [0, 2, 1, 0], {0: 1.0, 2: 0.25, 99: 7.0}, {"1": 1, "3": 2}]
    np.testing.assert_allclose([one(program, row) for row in rows], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="feature -1 does not exist"):
        program.predict_one({-1: 1})
    assert program.predict_one(rows[0]) == program.predict(tmp_path / "train.svm")[0]


@pytest.mark.full
def test_a_quantity_and_several_classes_of_one_row():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4] * 5, "c": list("xyzx") * 5})
    for y in ([100.0, 200, 300, 400] * 5, list("uvwu") * 5):
        loss = "squared" if isinstance(y[0], float) else "logistic"
        for make in (hogwild.Linear, lambda loss: hogwild.SparseMLP(hidden=(4,), batch_size=4, loss=loss)):
            program = hogwild.train(make(loss=loss), feed_of(frame, y, config=FeedConfig(layout="slots")), **QUICK)
            row = {"c": "y", "a": 2.0}
            expected = program.predict([row])[0] if loss == "squared" else program.predict_proba([row])[0]
            found = program.predict_one(row) if loss == "squared" else list(program.predict_proba_one(row).values())
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_threads_and_copies_ask_the_same(tmp_path):
    import copy
    import pickle
    from concurrent.futures import ThreadPoolExecutor

    texts = ["a warm film", "dull, dull", "so fine", "poor plot " * 30] * 10
    program = hogwild.train(hogwild.Linear(), feed_of(texts, ["good", "bad"] * 20), **QUICK)
    expected = [program.predict_proba_one(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(program.predict_proba_one, texts)) == expected
    for twin in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert [twin.predict_proba_one(text) for text in texts] == expected
