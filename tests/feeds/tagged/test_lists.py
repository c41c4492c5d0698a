"""Features in memory: lists, dicts and functions, read as python-crfsuite reads them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hogwild.arrays import Chains, ValuedChains
from hogwild.errors import ConfigError, HogwildWarning, InputError
from hogwild.feeds.tagged.features import encode
from hogwild.feeds.tagged.lists import encode_with, tagging_of
from hogwild.feeds.tagged.templates import parse_templates
from reference import tagging as twin

TOKENS: list[Any] = [
    ["a", "b"],
    ["b", "a", ""],
    ("a",),
    {"a", "c"},
    [],
    {},
    {"a": "b"},
    {"a": ""},
    {"": "x"},
    {"a:b": "c"},
    {"a": True, "b": False},
    {"a": 1.5, "b": 2, "c": -0.25},
    {"a": np.float32(0.5), "b": np.int64(3)},
    {"a": ["x", "y"], "b": []},
    {"a": {"x", "y"}},
    {"a": {"x": "y", "z": 2, "q": True, "f": False, "n": {"d": 1, "e": ["f"]}}},
    {"a": 0.1},
]


def values_of(X: Any, **given: Any) -> list[dict[str, float]]:
    feed = tagging_of(X, **given).check()
    rows = twin.named_rows(feed.samples, feed.names)
    return [row if isinstance(row, dict) else dict.fromkeys(row, 1.0) for row in rows]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_read_as_by_python_crfsuite(token: Any) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite")
    (theirs,) = pycrfsuite.ItemSequence([token]).items()
    expected = {name: float(np.float32(value)) for name, value in theirs.items() if value}
    assert values_of([[token, ["other"]]])[0] == expected
    items = pycrfsuite.ItemSequence([token, ["other"]])
    assert values_of([items])[0] == pytest.approx(expected)


def test_kinds_of_chains() -> None:
    plain = tagging_of([[["a"], {"b": 1, "c": True, "d": False, "e": 0}]])
    assert isinstance(plain.samples, Chains)
    assert plain.names == ("a", "b", "c")  # what is 0 says nothing
    assert isinstance(tagging_of([[["a"], {"b": 2}]]).samples, ValuedChains)


def test_the_same_feature_twice_adds_up() -> None:
    assert values_of([[["a", "b", "a"], {"a": 2.5}]]) == [{"a": 2.0, "b": 1.0}, {"a": 2.5}]
    assert values_of([[{"a": {"b": 2.0}, "a:b": 0.5}]]) == [{"a:b": 2.5}]


@pytest.mark.parametrize("min_count", [1, 2])
def test_against_the_twin(min_count: int) -> None:
    draw = random.Random(1)
    X = [[draw.sample("abcdefghijklmnop", draw.randint(0, 5)) for _ in range(draw.randint(1, 6))] for _ in range(40)]
    y = [draw.choices(["O", "B", "I"], (5, 1, 1), k=len(row)) for row in X]
    feed = tagging_of((iter(row) for row in X), iter(y), min_count=min_count).check()
    rows = [token for row in X for token in row]
    counts = twin.ranked([name for row in rows for name in row], min_count)
    assert feed.names == tuple(counts)
    assert feed.counts.tolist() == list(counts.values())
    kept = [sorted(set(row) & set(counts), key=list(counts).index) for row in rows]
    assert twin.named_rows(feed.samples, feed.names) == kept
    assert np.diff(feed.samples.offsets).tolist() == [len(row) for row in X]
    gold = [tag for row in y for tag in row]
    assert feed.tags == tuple(twin.ranked(gold))
    assert [feed.tags[k] for k in feed.samples.tags] == gold
    assert feed.source == "sentences"
    assert feed.text is None


def test_with_a_model() -> None:
    model = tagging_of([[["a", "b"], ["a", "c"]]], [["X", "Y"]])
    feed = tagging_of([[["c", "new", "a"], {"new": 3.0, "b": 0.5}]], [["Z", "Y"]], names=model.names, tags=model.tags)
    assert twin.named_rows(feed.samples, feed.names) == [{"a": 1.0, "c": 1.0}, {"b": 0.5}]
    assert (feed.unknown, feed.strange, feed.samples.tags.tolist()) == (2, {"Z": 1}, [-1, 1])
    assert feed.notes[0] == "2 of 5 features not in the model, left out."
    assert "`Z` (1)" in feed.notes[1]
    with pytest.raises(InputError, match="hold `a` twice"):
        tagging_of([[["a"]]], names=("a", "a"))
    nothing = tagging_of([[[], []]], names=model.names, tags=model.tags).check()
    assert (nothing.unknown, nothing.samples.tags.tolist(), nothing.tags) == (0, [-1, -1], model.tags)


def test_features_that_a_model_does_not_know() -> None:
    model = tagging_of([[["a", "b"], ["a", "c"]]], [["X", "Y"]])
    ids = {"names": model.names, "tags": model.tags}
    with pytest.raises(InputError) as caught:
        tagging_of([[{"w": "of", "pos": "IN"}], [{"w": "the", "pos": "DT"}]], **ids)
    assert "`w:of`; the model has such as `a`): none of its 4 features is known to the model" in str(caught.value)
    assert "go to program.predict or program.tag" in str(caught.value)
    with pytest.warns(HogwildWarning, match=r"such as `new`.* 67 % of its 3 features are not known to the model"):
        tagging_of([[["a", "new", "newer"]]], **ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tagging_of([[["a", "new"]]], **ids).unknown == 1  # half


def test_rare_features_are_counted() -> None:
    feed = tagging_of([[["a", "b"], ["a", "c"]]], min_count=2)
    assert feed.notes == ("2 features left out that occur fewer than 2 times (--min-count): 2 occurrences.",)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ("abc", None, "X is of type str; give a list of sentences"),
        (None, None, "X is None"),
        ({"a": 1}, None, "X is of type dict"),
        ([], None, "X has no sentences"),
        ([[["a"]], []], None, "sentence 1 has no tokens"),
        (["ab"], None, "sentence 0 is of type str"),
        ([{"a": 1}], None, "sentence 0 is of type dict"),
        ([3], None, "sentence 0 is of type int"),
        ([[["a"], "ab"]], None, "sentence 0, token 1 is of type str; give a list of features, or a dict"),
        ([[["a"]], [["a"], 5]], None, "sentence 1, token 1 is of type int"),
        ([[["a"]], [["b"], ["c", 7]]], None, "sentence 1, token 1 has the feature `7`"),
        ([[["a"]], [["b", b"x"]]], None, "sentence 1, token 0 has the feature `b'x'`"),
        ([[["a", ["b"]]]], None, "sentence 0, token 0 holds `['b']`; features are strings"),
        ([[{"a", 3}]], None, "has a set that holds `3`"),
        ([[{1: "a"}]], None, "sentence 0, token 0 has the key `1`"),
        ([[{"a": None}]], None, "sentence 0, token 0: `a` is None; give a string, a bool, a number"),
        ([[{"a": b"x"}]], None, "`a` is of type bytes"),
        ([[{"a": [1]}]], None, "`a` holds `1`; give strings"),
        ([[{"a": {"b": None}}]], None, "`a:b` is None"),
        ([[{"a": float("nan")}]], None, "`a` is nan, which is not a finite float32 number"),
        ([[{"a": 1e39}]], None, "`a` is 1e+39"),
        ([[{"a": {"b": 3e38}, "a:b": 3e38}]], None, "add up to more than float32"),
        ([[[]]], None, "no token has a feature"),
        ([[["a"]]], [], "X has 1 sentence, but y has 0"),
        ([[["a"]], [["a"], ["b"]]], [["O"], ["O"]], "sentence 1 has 2 tokens, but y has 1 tags for it"),
        ([[["a"]]], ["O"], "y: sentence 0 is of type str"),
        ([[["a"]]], [[1]], "y: sentence 0 has the tag `1`; tags are strings"),
        ([[["a"]]], [[None]], "y: sentence 0 has the tag `None`"),
        ([[["a"]]], "O", "y is of type str"),
    ],
)
def test_mistakes(X: Any, y: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        tagging_of(X, y)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_min_count_is_checked() -> None:
    with pytest.raises(ConfigError, match="min_count is 0"):
        tagging_of([[["a"]]], min_count=0)
    with pytest.raises(InputError, match="no feature occurs 2 times"):
        tagging_of([[["a"]]], min_count=2)


def test_sets_have_the_same_order_in_every_process() -> None:
    program = "from hogwild.feeds.tagged.lists import tagging_of; print(tagging_of([[set('abcdefgh')]]).names)"
    printed = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        printed.add(subprocess.check_output([sys.executable, "-c", program], env=environment, timeout=60))
    assert len(printed) == 1


# -- functions --


def looks(sentence: list[dict[str, str]], i: int) -> Iterator[str] | list[str]:
    word = sentence[i]["w"]
    return [f"word={word}", f"end={word[-1:]}"] + ([f"before={sentence[i - 1]['pos']}"] if i else [])


TEXT = twin.text_of(
    [[{"w": "the", "pos": "D"}, {"w": "cat", "pos": "N"}], [{"w": "cats", "pos": "N"}]], [["B", "I"], ["B"]]
)


def test_a_function() -> None:
    feed = encode_with(TEXT, looks).check()
    assert twin.named_rows(feed.samples, feed.names) == [
        ["word=the", "end=e"], ["word=cat", "end=t", "before=D"], ["word=cats", "end=s"],
    ]  # fmt: skip
    assert (feed.tags, feed.samples.tags.tolist()) == (("B", "I"), [0, 1, 0])
    assert feed.text is TEXT
    again = encode_with(TEXT, looks, names=feed.names[1:], tags=("I",))
    assert (again.unknown, again.strange) == (1, {"B": 2})


def test_a_function_that_does_what_templates_do() -> None:
    lines = ["w[0]", "pos[-1]|pos[0]"]
    made = encode_with(TEXT, lambda sentence, i: twin.features_at(lines, sentence, i))
    compiled = encode(TEXT, parse_templates(lines))
    assert made.names == compiled.names
    for first, second in zip(made.samples, compiled.samples, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_function_that_fails() -> None:
    with pytest.raises(InputError, match="sentence 0, token 0: the function of features fails with KeyError: 'lemma'"):
        encode_with(TEXT, lambda sentence, i: [sentence[i]["lemma"]])
    with pytest.raises(InputError, match="sentence 0, token 0 is None"):
        encode_with(TEXT, lambda sentence, i: None)  # type: ignore[arg-type,return-value]
