"""`hogwild train recommender`, and what its models are good for."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from hogwild import load_model
from places import DATA

FOLDER = DATA / "gowalla"
SMALL = ("--users", 60, "--items", 48)


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """train.csv and test.csv, ratings of one problem; train.txt and test.txt, lists of another."""
    from hogwild.cli.main import main

    place = tmp_path_factory.mktemp("ratings")
    for part, name in enumerate(("train", "test")):
        size = [str(word) for word in (*SMALL, "--part", part, "--quiet")]
        rows = ["--rows", "300" if part else "6000"]
        main(["make-dataset", "ratings", *size, *rows, "--output", str(place / f"{name}.csv")])
        few = ["--rows", "120" if part else "300", "--format", "lists"]
        main(["make-dataset", "ratings", *size, *few, "--output", str(place / f"{name}.txt")])
    return place


@pytest.fixture(scope="module")
def model(rated, tmp_path_factory):
    """A model of ratings."""
    from hogwild.cli.main import main

    path = tmp_path_factory.mktemp("models") / "ratings"
    words = ["train", "recommender", str(rated / "train.csv"), "--dim", "4", "--epochs", "8", "--threads", "1"]
    assert main([*words, "--mode", "serial", "--quiet", "--output", str(path)]) == 0
    return path


def test_the_json_object(hogwild, rated, tmp_path):
    words = ["train", "recommender", rated / "train.csv", "--valid", rated / "test.csv", "--dim", 4, "--threads", 1]
    said = hogwild(*words, "--mode", "serial", "--epochs", 8, "--json", "--output", tmp_path / "m")
    found = said.json
    assert (found["program"], found["objective"], found["users"], found["items"]) == (
        "matrix-factorization", "squared", 60, 48,
    )  # fmt: skip
    assert (found["lr"], found["samples"]) == (0.1, 48_000)
    assert found["l2"] == pytest.approx(5 * (60 * 48) ** 0.5 / 6_000)
    assert set(found["metrics"]) == {"loss", "rmse", "mae"}
    made = hogwild("make-dataset", "ratings", *SMALL, "--rows", 300, "--part", 1, "--json", "--output", tmp_path / "x")
    truth = made.json["truth"]["rmse"]
    assert (tmp_path / "x").read_text() == (rated / "test.csv").read_text()
    assert truth < found["metrics"]["rmse"] < 1.25 * truth
    assert load_model(tmp_path / "m").metrics == pytest.approx(found["metrics"])


def test_predictions_are_in_the_order_of_the_file(hogwild, rated, model, tmp_path):
    rows = [line.split(",") for line in (rated / "test.csv").read_text().splitlines()[1:]]
    predicted = [float(line) for line in hogwild("predict", model, rated / "test.csv").out.split()]
    assert len(predicted) == len(rows)
    rmse = np.sqrt(np.mean((np.array(predicted) - [float(row[2]) for row in rows]) ** 2))
    found = hogwild("evaluate", model, rated / "test.csv", "--json").json
    assert found["metrics"]["rmse"] == pytest.approx(rmse, rel=1e-4)
    assert found["unknown"] == {"users": 0, "items": 0}
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{user}\t{item}\n" for user, item, _ in rows[:5]) + "nobody\tnothing\n")
    said = hogwild("predict", model, pairs)
    assert [float(line) for line in said.out.split()[:5]] == predicted[:5]
    assert "1 rating of users that the model does not know" in said.err
    assert float(said.out.split()[5]) == pytest.approx(load_model(model).program.mean, rel=1e-5)


def test_recommendations(hogwild, rated, model, monkeypatch):
    program = load_model(model).program
    said = hogwild("recommend", model, "7", "--top", 3)
    lines = [line.split("\t") for line in said.out.splitlines()]
    assert [(item, float(score)) for _, item, score in lines] == [
        (item, pytest.approx(score, rel=1e-5)) for item, score in program.recommend("7", 3)
    ]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"7\nnobody\n\n")))
    found = hogwild("recommend", model, "-", "--top", 2, "--seen", "--json").json
    assert [entry["user"] for entry in found["users"]] == ["7", "nobody"]
    assert [len(entry["items"]) for entry in found["users"]] == [2, 2]
    assert "1 of 2 users are not in the model" in found["notes"][0]


def test_lists(hogwild, rated, tmp_path):
    words = ["train", "recommender", rated / "train.txt", "--valid", rated / "test.txt", "--top", 5, "--dim", 4]
    said = hogwild(*words, "--threads", 2, "--sharing", "all", "--epochs", 4, "--output", tmp_path / "m", "--json")
    found = said.json
    assert (found["objective"], found["negatives"]) == ("bpr", 1)
    assert set(found["metrics"]) == {"loss", "precision@5", "recall@5", "ndcg@5", "hit@5"}
    assert "300 interactions, " in found["notes"][-2] + found["notes"][-1]
    scored = hogwild("evaluate", tmp_path / "m", rated / "test.txt", "--top", 5, "--json").json
    assert scored["metrics"] == pytest.approx(found["metrics"])
    chosen = [json.loads(line) for line in hogwild("cache", "list", "--json").out.splitlines()]
    assert {entry["unit"] for entry in chosen[0]["entries"]} == {"ratings"}


def test_a_run_can_go_on(hogwild, rated, tmp_path):
    words = ["train", "recommender", rated / "train.csv", "--dim", 4, "--mode", "serial", "--epochs", 2, "--json"]
    hogwild(*words, "--output", tmp_path / "m", "--checkpoint-every", "1epoch")
    again = hogwild(*words, "--output", tmp_path / "m", "--resume").json
    assert "this run was finished before" in " ".join(again["notes"])


def test_what_is_refused(refused, hogwild, rated, model, tmp_path):
    train = ["train", "recommender"]
    bad = tmp_path / "bad.csv"
    bad.write_text("user,item,rating\na,b,3\na,c,many\n")
    assert "bad.csv:3: the rating `many` is not a number" in refused(*train, bad)
    assert "no ratings to predict" in refused(*train, rated / "train.txt", "--loss", "squared")
    assert "dim is 0" in refused(*train, rated / "train.csv", "--dim", 0)
    assert "need none" in refused(*train, rated / "train.csv", "--loss", "squared", "--negatives", 3)
    assert "no complete model" in refused("recommend", tmp_path, "7")
    assert "--proba" in refused("predict", model, rated / "test.csv", "--proba")
    assert "--label" in refused("evaluate", model, rated / "test.csv", "--label", "rating")
    assert "no ratings to compare with" in refused("evaluate", model, rated / "test.txt")
    assert "top is 0" in refused("recommend", model, "7", "--top", 0)


@pytest.mark.full
@pytest.mark.data
@pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data/gowalla")
def test_gowalla(hogwild, tmp_path):
    words = ["train", "recommender", FOLDER / "train.txt.xz", "--dim", 16, "--epochs", 3, "--threads", 2]
    hogwild(*words, "--sharing", "all", "--output", tmp_path / "m")
    found = hogwild("evaluate", tmp_path / "m", FOLDER / "test.txt.xz", "--json").json
    assert found["metrics"]["ndcg@20"] > 0.03
