"""Sentences as users of sklearn-crfsuite have them, and the two estimators trained on them."""

from __future__ import annotations

import pytest
import sklearn_crfsuite

from hogwild.estimators import CRF
from hogwild.feeds.synthetic.sentences import make_sentences

ALL = {"all_possible_states": True, "all_possible_transitions": True}  # as it is here; then the optimum is the same


def features(sentence, i):
    """In the manner of the tutorial of sklearn-crfsuite."""
    word = sentence[i].word
    found = {"bias": 1.0, "word": word, "word[-2:]": word[-2:], "long": len(word) > 6}
    if i == 0:
        return {**found, "BOS": True}
    return {**found, "-1:word": sentence[i - 1].word, "-1:word[-2:]": sentence[i - 1].word[-2:]}


def made(count, part):
    sentences = list(make_sentences(count, part=part))
    return [[features(s, i) for i in range(len(s))] for s in sentences], [[t.tag for t in s] for s in sentences]


@pytest.fixture(scope="session")
def data():
    """Sentences and labels to train on, and others."""
    return *made(120, 0), *made(60, 1)


@pytest.fixture(scope="session")
def both(data):
    """Theirs and ours, trained on the same."""
    X, y, _, _ = data
    options = {"algorithm": "lbfgs", "c2": 0.1, **ALL}
    return sklearn_crfsuite.CRF(**options).fit(X, y), CRF(**options, threads=1).fit(X, y)


@pytest.fixture(scope="session")
def ours(both):
    return both[1]
