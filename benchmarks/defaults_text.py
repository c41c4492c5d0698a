"""Texts: `TextClassifier` beside our own linear model, fastText, and TF-IDF with logistic regression, all as they come.

Sets are cut out of film reviews and tagged sentences: single sentences and whole reviews by sentiment, reviews by the
number of stars, words by part of speech from their neighbours, sentences by how they end. Training and test parts are
of different files. Defaults were chosen on parts of the training files alone. fastText runs in a process of its own,
of the Python that `--peers` names, or of this one.
"""

from __future__ import annotations

import json
import lzma
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from defaults_row import Row, Skipped, row_of

import hogwild

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TASK = "text"
WORD = re.compile(r"[a-z0-9\x80-\U0010ffff]+(?:'[a-z0-9\x80-\U0010ffff]+)*")
READ = hogwild.FeedConfig(format="text", cache=False)
LEAST = 1e-7  # a probability of 0 counts as this, on all sides
BINS = 10
Texts = list[tuple[str, str]]  # label and text
CHILD = """
import json, sys
import fasttext
model = fasttext.train_supervised(sys.argv[1], verbose=0, seed=int(sys.argv[3]), thread=1)
for line in open(sys.argv[2]):
    labels, chances = model.predict(line.rstrip("\\n").split(" ", 1)[1], k=-1)
    print(json.dumps(dict(zip([label[9:] for label in labels], [float(chance) for chance in chances]))))
"""


# -- data -------------------------------------------------------------------------------------------------------------


def reviews(name: str) -> list[dict[str, str]]:
    """Film reviews."""
    with lzma.open(DATA / "imdb" / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        names = file.readline().rstrip("\n").split("\t")
        return [dict(zip(names, line.rstrip("\n").split("\t"), strict=True)) for line in file]


def sentences(rows: list[dict[str, str]], count: int, seed: int) -> Texts:
    """One sentence of each of so many reviews, with the label of the review."""
    draw, found = random.Random(seed), []
    for row in draw.sample(rows, len(rows)):
        parts = [part.strip() for part in re.split(r"(?<=[.!?])\s+|<br />", row["text"])]
        if parts := [part for part in parts if 4 <= len(part.split()) <= 40]:
            found.append((row["label"], draw.choice(parts)))
    return found[:count]


def tagged(path: Path) -> Iterator[list[list[str]]]:
    """Sentences of rows of columns."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            if rows := [line.split("\t") for line in block.split("\n") if line.strip()]:
                yield rows


def words_in_place(path: Path, count: int, seed: int) -> Texts:
    """A word with three to either side, by its part of speech."""
    draw, found = random.Random(seed), []
    for rows in tagged(path):
        words = [row[0] for row in rows]
        found += [(rows[k][1], " ".join(words[max(0, k - 3) : k + 4])) for k in range(len(rows)) if draw.random() < 0.2]
    draw.shuffle(found)
    return found[:count]


def ends(path: Path) -> Texts:
    """Sentences without punctuation, by how they end."""
    found = []
    for rows in tagged(path):
        words = [row[0] for row in rows]
        kind = {"?": "question", "!": "call", ".": "statement"}.get(words[-1], "none")
        if plain := [word for word in words if any(map(str.isalnum, word))]:
            found.append((kind, " ".join(plain)))
    return found


def sets() -> Iterator[tuple[str, Texts, Texts]]:
    """Name, training part and test part."""
    if not (DATA / "imdb" / "train.tsv.xz").exists():
        raise Skipped("the reviews (imdb) are not there")
    train, test = reviews("train"), reviews("test")
    for count in (1000, 7000):
        yield f"{count:,} sentences", sentences(train, count, count), sentences(test, 8000, 1)
    draw = random.Random(3)
    some, others = draw.sample(train, 6000), draw.sample(test, 6000)
    yield "6,000 reviews, 8 classes", *([(row["rating"], row["text"]) for row in rows] for rows in (some, others))
    yield "25,000 reviews", *([(row["label"], row["text"]) for row in rows] for rows in (train, test))
    home = DATA / "ud_ewt"
    yield (
        "words in place, 17 classes",
        words_in_place(home / "train.conll.xz", 6000, 7),
        words_in_place(home / "test.conll.xz", 6000, 8),
    )
    yield "ends of sentences, 4 classes", ends(home / "train.conll.xz"), ends(home / "test.conll.xz")


# -- both sides: chances of the classes of each test text, (texts, classes), and the classes --------------------------


Found = tuple[np.ndarray, list[str]]


def ours(make: Callable[[], Any], place: Path, seed: int) -> Found:
    """A program of ours at its defaults."""
    feed = hogwild.open_feed([place / "train.tsv"], READ)
    test = hogwild.open_feed([place / "test.tsv"], READ, schema=feed.schema)
    program = hogwild.train(make(), feed, seed=seed, quiet=True)
    return program.predict_proba(test), [str(label) for label in program.classes]


def fasttext(place: Path, seed: int) -> Found:
    """fastText's supervised mode at its defaults, on lower-case words with spaces between."""
    python = os.environ.get("HOGWILD_PEERS") or sys.executable
    arguments = [python, "-c", CHILD, str(place / "train.ft"), str(place / "test.ft"), str(seed)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"fastText: {done.stderr.strip().splitlines()[-1:]}")
    chances = [json.loads(line) for line in done.stdout.splitlines()]
    classes = sorted({label for found in chances for label in found})
    return np.array([[found.get(label, 0.0) for label in classes] for found in chances]), classes


def logistic_regression(train: Texts, test: Texts) -> Found:
    """scikit-learn's TfidfVectorizer and LogisticRegression at their defaults, but for the iterations that it needs."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise Skipped("scikit-learn is not installed") from error
    words = TfidfVectorizer()
    model = LogisticRegression(max_iter=1000).fit(
        words.fit_transform([text for _, text in train]), [label for label, _ in train]
    )
    return model.predict_proba(words.transform([text for _, text in test])), list(model.classes_)


# -- what is told -----------------------------------------------------------------------------------------------------


def figures(found: Found, test: Texts) -> dict[str, float]:
    """Accuracy, log loss, and calibration error: of the chances of the class that is predicted, in ten bins."""
    chances, classes = found
    place = {label: k for k, label in enumerate(classes)}
    true = np.array([place.get(label, -1) for label, _ in test])
    best = chances.argmax(axis=1)
    right, sure = best == true, chances.max(axis=1)
    of_true = np.where(true >= 0, chances[np.arange(len(true)), np.maximum(true, 0)], 0.0)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs(float((right[bins == k] - sure[bins == k]).sum())) for k in range(BINS)]
    return {
        "accuracy": float(right.mean()), "log loss": float(-np.log(np.clip(of_true, LEAST, 1.0)).mean()),
        "calibration error": sum(gaps) / len(true),
    }  # fmt: skip


def write_files(place: Path, train: Texts, test: Texts) -> None:
    """Both parts as either side reads them, the training part in random order: fastText takes it as it stands."""
    train = random.Random(0).sample(train, len(train))
    for name, rows in (("train", train), ("test", test)):
        plain = [f"{label}\t{text}\n" for label, text in rows]
        (place / f"{name}.tsv").write_text("".join(plain))
        lines = (f"__label__{label} {' '.join(WORD.findall(text.lower()))}\n" for label, text in rows)
        (place / f"{name}.ft").write_text("".join(lines))


def mean_of(runs: list[dict[str, float]]) -> dict[str, float]:
    """Of several seeds."""
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def compare(seeds: int) -> Iterator[Row]:
    """Every set with every peer."""
    for name, train, test in sets():
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            write_files(place, train, test)
            mine = mean_of([figures(ours(hogwild.TextClassifier, place, seed), test) for seed in range(1, seeds + 1)])
            peers: dict[str, Callable[[int], Found]] = {
                "Linear, ours": lambda seed, place=place: ours(hogwild.Linear, place, seed),  # type: ignore[misc]
                "fastText": lambda seed, place=place: fasttext(place, seed),  # type: ignore[misc]
                "TF-IDF, logistic regression": lambda seed, both=(train, test): logistic_regression(*both),  # type: ignore[misc]
            }
            for peer, run in peers.items():
                count = 1 if peer.startswith("TF") else seeds  # no seed makes a difference there
                try:
                    theirs = mean_of([figures(run(seed), test) for seed in range(1, count + 1)])
                except Skipped as reason:
                    print(f"text: {name}: {reason}", file=sys.stderr)
                    continue
                for metric, value in mine.items():
                    yield row_of(name, TASK, metric, (value, theirs[metric]), peer)
