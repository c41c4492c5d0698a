"""What pickle and copies make of executors, programs, feeds and estimators; and that we never load a pickle."""

from __future__ import annotations

import ast
import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
from sklearn.base import clone

import hogwild
from hogwild.config import TrainConfig
from hogwild.executor.run import AsyncExecutor

SOURCES = Path(hogwild.__file__).parent


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


WAYS = [pickled, copy.copy, copy.deepcopy]


def make_feed() -> Any:
    X = np.random.default_rng(0).normal(size=(100, 4))
    return hogwild.feed_of(X, X[:, 0] > 0)


@pytest.mark.parametrize("way", WAYS)
def test_an_executor_travels_without_its_run(way: Callable[[Any], Any]) -> None:
    feed, executor = make_feed(), AsyncExecutor(threads=1, mode="serial", lr=0.1, epochs=2)
    made = [way(executor)]
    events = executor.run(hogwild.Linear(), feed)
    next(events)
    executor.pause()
    made.append(way(executor))
    executor.resume()
    assert list(events)[-1].reason == "done"
    made.append(way(executor))
    for other in made:
        assert type(other) is AsyncExecutor
        assert other.config == executor.config
        with pytest.raises(hogwild.ConfigError, match="no run yet"):
            other.state()
        assert list(other.run(hogwild.Linear(), feed))[-1].reason == "done"


@pytest.mark.parametrize("way", WAYS)
def test_programs_and_feeds_travel(way: Callable[[Any], Any]) -> None:
    feed = make_feed()
    assert way(TrainConfig(lr=0.5)) == TrainConfig(lr=0.5)
    for program in (hogwild.Linear(), hogwild.FactorizationMachine(dim=2)):
        hogwild.train(program, feed, epochs=1, lr=0.1, threads=1, quiet=True)
        other = way(program)
        np.testing.assert_array_equal(other.predict(way(feed)), program.predict(feed))
    assert way(feed).longest == feed.longest


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_has_answered_single_rows_travels(way: Callable[[Any], Any]) -> None:
    """The lock of its scratch could not be pickled."""
    program = hogwild.FactorizationMachine(dim=2)
    hogwild.train(program, make_feed(), epochs=1, lr=0.1, threads=1, quiet=True)
    asked = program.predict_one([0, 2], [0.5, 1.0])
    assert way(program).predict_one([0, 2], [0.5, 1.0]) == asked


@pytest.mark.parametrize("way", WAYS)
def test_word_vectors_train_on_after_travelling(way: Callable[[Any], Any]) -> None:
    corpus = hogwild.corpus_of([["a", "b", "a", "c"]] * 50, hogwild.CorpusConfig(min_count=1))
    options = {"epochs": 1, "threads": 1, "mode": "serial", "quiet": True}
    program = hogwild.train(hogwild.Word2Vec(dim=4), corpus, **options)
    other = hogwild.train(way(program), way(corpus), **options)
    assert np.isfinite(other.vectors.matrix).all()


def test_estimators_travel() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    y = X[:, 0] > 0
    model = hogwild.HogwildClassifier(n_jobs=1).fit(X, y)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for other in (joblib.load(file), pickled(model), copy.deepcopy(model), clone(model).fit(X, y)):
        assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(pickled(model).predict(X), model.predict(X))


def test_nothing_of_ours_loads_a_pickle() -> None:
    """Whoever loads a pickle executes it. Compiled code is one; see kernels/compiler/test_codecache.py. What a process
    hands to workers that it starts, through memory without a name, is another."""
    own = {SOURCES / "kernels" / "compiler" / "codecache.py", SOURCES / "pytorch" / "memory.py"}
    for path in set(SOURCES.rglob("*.py")) - own:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"pickle", "marshal", "shelve", "dill"}, path
            if isinstance(node, ast.Call):
                assert not any(word.arg == "allow_pickle" for word in node.keywords), path
                called = ast.unparse(node.func)
                assert called not in ("torch.load", "joblib.load", "pd.read_pickle", "np.load", "numpy.load"), path
