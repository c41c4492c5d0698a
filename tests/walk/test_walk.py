"""What a new user does with each program: a file, `hogwild train`, `evaluate`, `predict`, then the model in a fresh
Python process. Every number on the way is compared with the next, and with one that is counted here from the file."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.sentences import make_sentence
from cli.topics import TOPICS, write_topics
from hogwild.cli.main import main
from places import SOURCE

Said = Callable[..., str]


@pytest.fixture
def hogwild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Said:
    """The command line, called where the files are; returns its standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))

    def call(*words: str) -> str:
        capfd.readouterr()
        code = main(list(words))
        said = capfd.readouterr()
        assert code == 0, said.err
        return said.out

    return call


def in_a_fresh_process(code: str) -> Any:
    """What a program of a user's, in a Python of its own, leaves as `found`."""
    program = f"import json\nimport hogwild\n{code}\nprint(json.dumps(found))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_table(path: Path, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def write_tables(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """train.csv; test.csv; new.csv, which is the latter without its last column, the label. Returns its labels."""
    cut = len(rows) * 3 // 4
    write_table(Path("train.csv"), names, rows[:cut])
    write_table(Path("test.csv"), names, rows[cut:])
    write_table(Path("new.csv"), names[:-1], [row[:-1] for row in rows[cut:]])
    return [row[-1] for row in rows[cut:]]


def same_numbers(one: dict[str, float], other: dict[str, float]) -> None:
    """Metrics of two places, of which one may have more."""
    shared = one.keys() & other.keys()
    assert "loss" in shared
    assert {name: one[name] for name in shared} == pytest.approx({name: other[name] for name in shared}, nan_ok=True)


# -- tables: linear models, factorization machines, clicks, texts -----------------------------------------------------


def customers(draw: random.Random) -> list[Any]:
    """Age, income, town, whether they bought: by income, and by town."""
    age, income, town = draw.randint(18, 80), draw.randint(12, 90), draw.choice(["Ulm", "Bonn", "Kiel"])
    chance = 1 / (1 + math.exp(-(0.15 * (income - 50) + {"Ulm": 2, "Bonn": 0, "Kiel": -2}[town])))
    return [age, income * 1000, town, "yes" if draw.random() < chance else "no"]


def tastes(draw: random.Random) -> list[Any]:
    """Who, what, whether it was liked: by the pair, and by neither alone."""
    who, what = draw.randrange(6), draw.randrange(6)
    return [f"u{who}", f"i{what}", draw.choice("xyz"), int((who + what) % 2 if draw.random() < 0.95 else who % 2)]


def clicks(draw: random.Random) -> list[Any]:
    """Site, device, price, hour, whether it was clicked: by the site, and by the price."""
    site, device, price = draw.choice("abcdef"), draw.choice(["phone", "desk"]), draw.random() * 5
    chance = 1 / (1 + math.exp(-(2.0 * "abcdef".index(site) - 5 - 1.5 * (price - 2.5))))
    return [site, device, f"{price:.2f}", draw.randrange(24), int(draw.random() < chance)]


def reviews(draw: random.Random) -> list[Any]:
    """A number, a text with commas and quotes, what was thought."""
    mood = draw.choice(["good", "bad"])
    words = {"good": ["warm", "fine", "bright", "kind"], "bad": ["dull", "poor", "long", "cold"]}[mood]
    plain = ["film", "story", 'the "cast"', "ending, too", "music", "I saw", "it"]
    text = " ".join(draw.choice(words if draw.random() < 0.35 else plain) for _ in range(draw.randint(5, 15)))
    return [draw.randrange(1000), text, mood]


# The rows and their names, the words of the command that trains on them, and the least accuracy that says it learnt.
TABLES: dict[str, tuple[Any, list[str], list[str], float]] = {
    "linear": (customers, ["age", "income", "town", "bought"], ["classifier", "--label", "bought"], 0.75),
    "fm": (tastes, ["who", "what", "where", "liked"], ["classifier", "--model", "fm", "--label", "liked"], 0.85),
    "ctr": (clicks, ["site", "device", "price", "hour", "click"], ["ctr", "--label", "click", "--epochs", "20"], 0.8),
    "text": (
        reviews, ["number", "review", "mood"],
        ["classifier", "--model", "text", "--text", "review", "--label", "mood", "--ignore", "number"], 0.85,
    ),
}  # fmt: skip
ROWS = 4000

SERVE_ROWS = """
model = hogwild.load_model("model")
program = model.program
feed = hogwild.open_feed("test.csv", model.feed_config, schema=model.schema)
found = {
    "saved": model.metrics, "metrics": program.evaluate(feed), "labels": program.predict(feed).tolist(),
    "chances": program.predict_proba(feed).tolist(),
}
if isinstance(program, hogwild.TextClassifier):
    import csv
    found["one by one"] = [program.predict_one(row["review"]) for row in csv.DictReader(open("new.csv"))]
"""


@pytest.mark.parametrize("kind", TABLES)
def test_models_of_tables(hogwild: Said, kind: str) -> None:
    make, names, words, least = TABLES[kind]
    draw = random.Random(kind)
    truth = [str(label) for label in write_tables(names, [make(draw) for _ in range(ROWS)])]

    trained = json.loads(hogwild("train", *words, "train.csv", "--valid", "test.csv", "--output", "model", "--json"))
    evaluated = json.loads(hogwild("evaluate", "model", "test.csv", "--json"))
    same_numbers(trained["metrics"], evaluated["metrics"])
    assert evaluated["samples"] == len(truth)

    predicted = hogwild("predict", "model", "new.csv").splitlines()
    right = sum(one == other for one, other in zip(predicted, truth, strict=True)) / len(truth)
    assert right == pytest.approx(evaluated["metrics"]["accuracy"])
    assert right >= least
    lines = hogwild("predict", "model", "new.csv", "--proba").splitlines()
    chances = [[float(number) for number in line.split("\t")] for line in lines]
    classes = sorted(set(truth))
    sure = [max(row[classes.index(label)], 1e-6) for row, label in zip(chances, truth, strict=True)]
    assert -np.mean(np.log(sure)) == pytest.approx(evaluated["metrics"]["logloss"], rel=1e-3)

    served = in_a_fresh_process(SERVE_ROWS)
    same_numbers(served["metrics"], evaluated["metrics"])
    same_numbers(served["saved"], evaluated["metrics"])
    assert [str(label) for label in served["labels"]] == predicted
    np.testing.assert_allclose(served["chances"], chances, rtol=1e-4, atol=1e-6)
    assert [str(label) for label in served.get("one by one", served["labels"])] == predicted


# -- recommenders -----------------------------------------------------------------------------------------------------


SERVE_PAIRS = """
model = hogwild.load_model("model")
program = model.program
feed = program.open("test.csv")
found = {
    "metrics": program.evaluate(feed), "ratings": program.predict(feed).tolist(), "best": program.recommend("u7", 3),
}
"""


def test_a_recommender(hogwild: Said) -> None:
    draw = random.Random(1)
    users, items = ([draw.gauss(0, 0.8) for _ in range(count)] for count in (60, 40))
    pairs = [(user, item) for user in range(60) for item in range(40) if draw.random() < 0.8]
    draw.shuffle(pairs)
    rows = [[f"u{u}", f"i{i}", round(3 + users[u] + items[i] + draw.gauss(0, 0.3), 1)] for u, i in pairs]
    truth = np.array(write_tables(["user", "item", "rating"], rows), float)

    words = ["recommender", "train.csv", "--valid", "test.csv"]
    trained = json.loads(hogwild("train", *words, "--output", "model", "--json"))
    evaluated = json.loads(hogwild("evaluate", "model", "test.csv", "--json"))
    same_numbers(trained["metrics"], evaluated["metrics"])
    predicted = np.array(hogwild("predict", "model", "new.csv").split(), float)
    off = float(np.sqrt(np.mean((predicted - truth) ** 2)))
    assert off == pytest.approx(evaluated["metrics"]["rmse"], rel=1e-4)
    assert off < 0.6 * truth.std()
    lines = [line.split("\t") for line in hogwild("recommend", "model", "u7", "--top", "3").splitlines()]

    served = in_a_fresh_process(SERVE_PAIRS)
    same_numbers(served["metrics"], evaluated["metrics"])
    np.testing.assert_allclose(served["ratings"], predicted, rtol=1e-5)
    assert [item for item, _ in served["best"]] == [item for _, item, _ in lines]
    np.testing.assert_allclose([score for _, score in served["best"]], [float(line[2]) for line in lines], rtol=1e-5)
    had = {row[1] for row in rows[: len(rows) * 3 // 4] if row[0] == "u7"}
    assert not had & {item for item, _ in served["best"]}, "what a user has is not recommended"


# -- taggers ----------------------------------------------------------------------------------------------------------


SERVE_SENTENCES = """
model = hogwild.load_model("model")
feed = model.program.open("test.txt", schema=model.schema)
found = {"metrics": model.program.evaluate(feed), "tags": model.program.predict(feed)}
"""


LSTM = "--model bilstm --features words-pos --hidden 32 --word-dim 16 --feature-dim 8 --epochs 8 --lr 0.01"


@pytest.mark.parametrize("flags", ["", LSTM], ids=["crf", "bilstm"])
def test_a_tagger(hogwild: Said, flags: str) -> None:
    draw = random.Random(2)
    sentences = [make_sentence(draw) for _ in range(400)]
    for name, some, width in (("train", sentences[:300], 3), ("test", sentences[300:], 3), ("new", sentences[300:], 2)):
        text = "\n".join("".join(" ".join(token[:width]) + "\n" for token in sentence) for sentence in some)
        Path(f"{name}.txt").write_text(text + "\n")
    truth = [[tag for *_, tag in sentence] for sentence in sentences[300:]]

    words = ["tagger", "train.txt", "--valid", "test.txt", *flags.split()]
    trained = json.loads(hogwild("train", *words, "--output", "model", "--json"))
    evaluated = json.loads(hogwild("evaluate", "model", "test.txt", "--json"))
    same_numbers(trained["metrics"], evaluated["metrics"])
    blocks = hogwild("predict", "model", "new.txt").strip().split("\n\n")
    predicted = [[line.split()[-1] for line in block.splitlines()] for block in blocks]
    pairs = [pair for one, other in zip(predicted, truth, strict=True) for pair in zip(one, other, strict=True)]
    right = sum(one == other for one, other in pairs) / len(pairs)
    assert right == pytest.approx(evaluated["metrics"]["accuracy"])
    assert right > 0.95

    served = in_a_fresh_process(SERVE_SENTENCES)
    same_numbers(served["metrics"], evaluated["metrics"])
    assert served["tags"] == predicted


# -- word vectors -----------------------------------------------------------------------------------------------------


SERVE_WORDS = """
from hogwild.programs.words.evaluation import evaluate_test, read_tests
vectors = hogwild.Vectors.load("model")
pairs, = read_tests("pairs.tsv")
model = hogwild.load_model("model")
held_out = hogwild.open_corpus("test.txt", vocabulary=model.program.words)
found = {
    "metrics": model.program.evaluate(held_out), "spearman": evaluate_test(vectors, pairs).pairs.spearman,
    "near": vectors.most_similar("apple", topn=5), "vector": vectors["apple"].tolist(),
}
"""


def test_word_vectors(hogwild: Said) -> None:
    write_topics(Path("train.txt"), 3000)
    write_topics(Path("test.txt"), 300, seed=1)
    fruit, metal = TOPICS["fruit"], TOPICS["metal"]
    alike = [f"{a}\t{b}\t9\n" for topic in (fruit, metal) for a, b in pairwise(topic)]
    unlike = [f"{a}\t{b}\t1\n" for a, b in zip(fruit, metal, strict=True)]
    Path("pairs.tsv").write_text("".join(alike + unlike))

    words = ["word2vec", "train.txt", "--valid", "test.txt", "--dim", "16", "--sample", "0"]
    trained = json.loads(hogwild("train", *words, "--output", "model", "--json"))
    evaluated = json.loads(hogwild("evaluate", "model", "pairs.tsv", "--json"))
    assert evaluated["spearman"] > 0.6, "0.8 if each of the former is nearer than all of the latter"
    asked = json.loads(hogwild("neighbors", "model", "apple", "--topn", "5", "--json"))["queries"][0]["neighbors"]
    assert {entry["word"] for entry in asked} <= set(fruit)
    hogwild("export", "model", "vectors.vec")
    written = {line.split()[0]: line.split()[1:] for line in Path("vectors.vec").read_text().splitlines()[1:]}

    served = in_a_fresh_process(SERVE_WORDS)
    same_numbers(served["metrics"], trained["metrics"])
    assert served["spearman"] == pytest.approx(evaluated["spearman"])
    assert [word for word, _ in served["near"]] == [entry["word"] for entry in asked]
    near = [similarity for _, similarity in served["near"]]
    np.testing.assert_allclose(near, [entry["similarity"] for entry in asked], rtol=1e-5)
    np.testing.assert_array_equal(np.float32(served["vector"]), np.array(written["apple"], np.float32))
