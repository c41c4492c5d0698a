"""Weights of the rows of a table: read from a column, left out of the features, and used."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import hogwild
from feeds.tables.files import read
from hogwild import FeedConfig, feed_of, open_feed
from hogwild.errors import ConfigError, InputError

TABLE = "label,age,kind,times\nyes,3,cat,2\nno,1,dog,0\nyes,1,cat,1\nno,2,bird,3\n"
REPEATED = "label,age,kind\n" + "yes,3,cat\n" * 2 + "yes,1,cat\n" + "no,2,bird\n" * 3


def test_weights_are_divided_by_their_mean_and_rows_of_weight_0_are_not_there(tmp_path):
    feed = read(tmp_path / "a.csv", TABLE, weight="times")
    assert feed.samples.importance.tolist() == [1.0, 0.5, 1.5]
    assert feed.lines.tolist() == [2, 4, 5]
    assert feed.schema["numeric"] == ["age"]
    assert feed.schema["weight"] == "times"
    assert "kind=dog" not in feed.schema["vocabulary"]
    assert "1 row of weight 0 left out." in feed.notes
    plain = read(tmp_path / "b.csv", TABLE)
    assert "weight" not in plain.schema
    assert plain.schema["numeric"] == ["age", "times"]
    assert plain.samples.importance.tolist() == [1.0] * 4


def test_a_class_that_weighs_nothing_is_none(tmp_path):
    feed = read(tmp_path / "a.csv", "label,x,w\na,1,1\nb,2,1\nc,3,0\n", weight="w")
    assert feed.labels == ("a", "b")
    other = read(tmp_path / "c.csv", "label,x,w\n1,1,0\n3,2,2\n4,3,2\n", weight="2")
    assert other.samples.targets.tolist() == [3, 4]
    assert other.schema["weight"] == "w"


def test_other_files_are_weighed_in_the_same_way(tmp_path):
    schema = read(tmp_path / "a.csv", TABLE, weight="3").schema
    moved = "times,kind,age,label\n4,cat,3,yes\n2,dog,1,no\n"
    assert read(tmp_path / "b.csv", moved, schema).samples.importance.tolist() == pytest.approx([4 / 3, 2 / 3])
    assert read(tmp_path / "b.csv", moved, schema, weight="none").samples.importance.tolist() == [1, 1]
    assert read(tmp_path / "b.csv", moved, schema, weight="age").samples.importance.tolist() == [1.5, 0.5]
    assert len(read(tmp_path / "c.csv", "kind,age\ncat,3\n", schema, unlabelled=True)) == 1
    zero = read(tmp_path / "d.csv", "kind,age,times,label\ncat,3,0,yes\ndog,3,1,no\n", schema, unlabelled=True)
    assert len(zero) == 2  # predictions are for all
    with pytest.raises(InputError, match="the weight column `times` is missing; give another with --weight, or none"):
        read(tmp_path / "c.csv", "kind,age,label\ncat,3,yes\n", schema)
    with pytest.raises(ConfigError, match=r"no column `tims` \(--weight\).*Did you mean `times`"):
        read(tmp_path / "b.csv", moved, schema, weight="tims")


def test_files_without_a_header(tmp_path):
    feed = read(tmp_path / "a.csv", "1,0.5,2,4\n0,0.25,1,12\n", weight="-1", label="0")
    assert feed.samples.importance.tolist() == [0.5, 1.5]
    assert len(read(tmp_path / "b.csv", "0.5,2\n0.1,3\n", feed.schema, unlabelled=True)) == 2


@pytest.mark.parametrize(("word", "message"), [
    ("-1", "a.csv:3: the weight is -1, and must not be negative"),
    ("", "a.csv:3: the weight is missing"),
    ("NaN", "a.csv:3: the weight is missing"),
    ("much", "a.csv:3: the weight `much` is not a finite number"),
    ("1e39", r"a.csv:3: the weight `1e\+39` is not a finite number"),
])  # fmt: skip
def test_weights_that_are_none(tmp_path, word, message):
    lines = f"label,x,w\na,1,1\nb,2,{word}\na,3,1\n"
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.csv", lines, weight="w")
    assert read(tmp_path / "a.csv", lines, weight="w", bad_lines="skip").lines.tolist() == [2, 4]


def test_wrong_columns(tmp_path):
    with pytest.raises(ConfigError, match="column `label` is named by both --label and --weight"):
        read(tmp_path / "a.csv", TABLE, weight="label")
    with pytest.raises(ConfigError, match="column `age` is named by both --weight and --numeric"):
        read(tmp_path / "a.csv", TABLE, weight="age", numeric=("age",))
    with pytest.raises(ConfigError, match="no column `w`"):
        read(tmp_path / "a.csv", TABLE, weight="w")
    with pytest.raises(InputError, match="all weights are 0"):
        read(tmp_path / "a.csv", "label,x,w\na,1,0\nb,2,0\n", weight="w")
    (tmp_path / "a.svm").write_text("1 1:2\n0 2:1\n")
    with pytest.raises(ConfigError, match="is read as svmlight, which has no column for weights"):
        open_feed(tmp_path / "a.svm", FeedConfig(weight="w"))


def test_weights_are_as_repeated_rows(tmp_path):
    """The same classes, categories and scales but for the scale of numbers, and the same sums."""
    weighed, repeated = read(tmp_path / "a.csv", TABLE, weight="times"), read(tmp_path / "b.csv", REPEATED)
    assert weighed.schema["vocabulary"] == repeated.schema["vocabulary"]
    assert weighed.labels == repeated.labels
    one, other = (hogwild.Linear(l2=0.1) for _ in range(2))
    for program, feed in ((one, weighed), (other, repeated)):
        program.startup(feed, seed=1)
    found, expected = one.evaluate(weighed), other.evaluate(repeated)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "records", "text"])
def test_all_kinds_of_tables(tmp_path, form):
    rows = {"label": ["yes", "no"] * 2, "kind": ["cat", "dog", "cat", "ant"], "w": [3, 1, 0, 2]}
    frame, config = pd.DataFrame(rows), FeedConfig(weight="w", label="label")
    if form == "csv":
        frame.to_csv(tmp_path / "a.csv", index=False)
        feed = open_feed(tmp_path / "a.csv", config)
    elif form == "parquet":
        frame.to_parquet(tmp_path / "a.parquet")
        feed = open_feed(tmp_path / "a.parquet", config)
    elif form == "text":
        frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
        feed = open_feed(tmp_path / "a.tsv", FeedConfig(weight="w", text="kind"))
    else:
        feed = feed_of(frame if form == "frame" else frame.to_dict("records"), config=config)
    assert feed.samples.importance.tolist() == [1.5, 0.5, 1.0]
    assert feed.schema["weight"] == "w"


def test_weights_in_memory():
    frame = pd.DataFrame({"kind": ["cat", "dog"], "w": [3.0, 1.0]})
    with pytest.raises(ConfigError, match="weights are given twice, by sample_weight and by the column 'w'"):
        feed_of(frame, [0, 1], [1, 2], config=FeedConfig(weight="w"))
    feed = feed_of(frame, [0, 1], config=FeedConfig(weight="w"))
    assert feed.samples.importance.tolist() == [1.5, 0.5]
    assert feed_of(frame, [0, 1], [4, 5], schema=feed.schema).samples.importance.tolist() == [4, 5]
    program = hogwild.Linear()
    program.startup(feed, seed=1)
    program.finish(feed)
    assert program.predict([["cat"], ["dog"]]).shape == (2,)
    assert program.predict(frame[["kind"]]).shape == (2,)
    assert program.predict_one({"kind": "cat"}) in (0, 1)


@pytest.mark.full
def test_a_weighed_classifier_is_that_of_scikit_learn(tmp_path):
    random = np.random.default_rng(2)
    matrix = random.standard_normal((400, 3)).round(3)
    labels = (matrix[:, 0] - matrix[:, 1] + random.standard_normal(400) > 0).astype(int)
    weights = random.integers(0, 9, 400)
    frame = pd.DataFrame({"y": labels, "a": matrix[:, 0], "b": matrix[:, 1], "c": matrix[:, 2], "w": 1000 * weights})
    frame.to_csv(tmp_path / "a.csv", index=False)
    feed = open_feed(tmp_path / "a.csv", FeedConfig(label="y", weight="w", scale=False))
    l2 = 0.05
    program = hogwild.train(hogwild.Linear(l2=l2), feed, epochs=150, mode="serial", quiet=True)
    peer = LogisticRegression(C=1 / (l2 * weights.sum()), tol=1e-10).fit(matrix, labels, weights)
    assert program.arrays()["weight"][:3] == pytest.approx(peer.coef_[0], abs=0.02)
    assert program.arrays()["bias"] == pytest.approx(peer.intercept_, abs=0.02)
