"""Tables: embeddings with dense layers at their defaults against scikit-learn's MLPs at theirs, on standardised inputs.

Ours reads a CSV file as `hogwild train classifier --model mlp` does; theirs gets numbers from a StandardScaler and
categories from a OneHotEncoder that leaves unknown ones out. A quarter of the rows is for testing, drawn by the seed.
None of these tables had a part in the choice of our defaults (docs/quality.md names those that had).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from defaults_row import Row, row_of

import hogwild
from hogwild.config import FeedConfig

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LABEL = "label"
ROWS = 8000  # of adult that are trained on: scikit-learn takes minutes for all of them
PEERS = {True: "scikit-learn MLPClassifier", False: "scikit-learn MLPRegressor"}


class Table(NamedTuple):
    """Rows with a column `label`; classes: whether that is one."""

    frame: Any
    classes: bool


def bundled(name: str, classes: bool) -> Table:
    """One of scikit-learn's own."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    names = [str(column) for column in getattr(found, "feature_names", range(found.data.shape[1]))]
    return Table(pd.DataFrame(found.data, columns=[f"x{name}" for name in names]).assign(label=found.target), classes)


def friedman() -> Table:
    """Made: two thousand rows of ten numbers, five of which matter."""
    from sklearn.datasets import make_friedman1

    inputs, targets = make_friedman1(2000, noise=1.0, random_state=0)
    return Table(pd.DataFrame(inputs, columns=[f"x{k}" for k in range(10)]).assign(label=targets), False)


def houses() -> Table:
    """Made, in the manner of house prices: numbers of very different sizes, a category, noise that grows."""
    rng = np.random.default_rng(0)
    income, rooms, people = (rng.gamma(shape, scale, 6000) for shape, scale in ((4, 1.0), (9, 0.6), (2, 700)))
    age = rng.integers(1, 52, 6000)
    north, town = rng.uniform(32, 42, 6000), rng.integers(0, 12, 6000)
    worth = 0.45 * income + 0.2 * np.sin(north) + 0.08 * rooms * (income > 4) + 0.04 * town
    price = (worth - 0.3 * np.log1p(people / 1000) + 0.005 * age) * np.exp(rng.normal(0, 0.15, 6000)) * 1e5
    numbers = {"income": income, "age": age, "rooms": rooms, "people": people, "north": north}
    return Table(pd.DataFrame({**numbers, "town": [f"t{k}" for k in town], LABEL: price}), False)


def adult() -> Table:
    """Census income."""
    frame = pd.read_csv(DATA / "adult" / "train.csv.xz", header=None, skipinitialspace=True)
    frame.columns = [*(f"x{k}" for k in range(frame.shape[1] - 1)), LABEL]
    return Table(frame.sample(ROWS * 4 // 3, random_state=0), True)


def avazu() -> Table:
    """Clicks; without the columns of which nearly every row has its own."""
    frame = pd.read_csv(DATA / "avazu" / "train.csv.xz").rename(columns={"click": LABEL})
    frame = frame.drop(columns=[name for name in ("id", "device_id", "device_ip") if name in frame])
    words = [name for name in frame if name not in (LABEL, "hour")]
    return Table(frame.astype(dict.fromkeys(words, str)), True)


TABLES: dict[str, Callable[[], Table]] = {
    "breast cancer": lambda: bundled("breast_cancer", True), "wine": lambda: bundled("wine", True),
    "digits": lambda: bundled("digits", True), "diabetes": lambda: bundled("diabetes", False), "friedman": friedman,
    "houses (made)": houses, "adult": adult, "avazu": avazu,
}  # fmt: skip


def metrics_of(truth: Any, found: Any, classes: list[Any]) -> dict[str, float]:
    """Of chances of classes, or of quantities."""
    from sklearn.metrics import log_loss, roc_auc_score

    if not classes:
        return {"rmse": float(np.sqrt(np.mean((truth - found) ** 2)))}
    more = {"multi_class": "ovr", "labels": classes} if len(classes) > 2 else {}
    auc = roc_auc_score(truth, found if more else found[:, 1], **more)
    accuracy = np.mean(np.array(classes)[found.argmax(1)] == truth)
    return {"auc": float(auc), "log loss": float(log_loss(truth, found, labels=classes)), "accuracy": float(accuracy)}


def ours(table: Table, train: Any, test: Any, seed: int) -> dict[str, float]:
    """Files as a user has them."""
    words = tuple(name for name in train if name != LABEL and train[name].dtype.kind not in "iuf")
    with tempfile.TemporaryDirectory() as directory:
        paths = [str(Path(directory) / name) for name in ("train.csv", "test.csv")]
        for path, rows in zip(paths, (train, test), strict=True):
            rows.to_csv(path, index=False)
        config = FeedConfig(label=LABEL, layout="slots", categorical=words, cache=False)
        feed = hogwild.open_feed(paths[0], config)
        program = hogwild.SparseMLP(loss="auto" if table.classes else "squared")
        program = hogwild.train(program, feed, seed=seed + 1, quiet=True)
        if not table.classes:
            return metrics_of(test[LABEL].to_numpy(), program.predict(paths[1]), [])
        chances = program.predict_proba(paths[1])
    whole = chances if chances.ndim == 2 else np.column_stack((1 - chances, chances))
    return metrics_of(test[LABEL].to_numpy(), whole, list(program.classes or ()))


def theirs(table: Table, train: Any, test: Any, seed: int) -> dict[str, float]:
    """A pipeline as the guide of scikit-learn has it."""
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in train if name != LABEL and train[name].dtype.kind in "iuf"]
    words = [name for name in train if name != LABEL and name not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
    model = make_pipeline(columns, (MLPClassifier if table.classes else MLPRegressor)(random_state=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 200 rounds are its default, whether it has converged or not
        model.fit(train.drop(columns=LABEL), train[LABEL])
    inputs, truth = test.drop(columns=LABEL), test[LABEL].to_numpy()
    if not table.classes:
        return metrics_of(truth, model.predict(inputs), [])
    return metrics_of(truth, model.predict_proba(inputs), list(model.classes_))


def compare(seeds: int) -> Iterator[Row]:
    """All tables, or those that are there."""
    from sklearn.model_selection import train_test_split

    for name, make in TABLES.items():
        try:
            table = make()
        except FileNotFoundError:
            continue
        mine, peer = [], []
        for seed in range(seeds):
            even = table.frame[LABEL] if table.classes else None
            train, test = train_test_split(table.frame, test_size=0.25, random_state=seed, stratify=even)
            mine.append(ours(table, train, test, seed))
            peer.append(theirs(table, train, test, seed))
        task = "classes" if table.classes else "a quantity"
        for metric in mine[0]:
            means = [float(np.mean([each[metric] for each in side])) for side in (mine, peer)]
            yield row_of(name, task, metric, (means[0], means[1]), PEERS[table.classes])
