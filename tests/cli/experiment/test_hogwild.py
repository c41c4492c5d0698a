"""hogwild experiment hogwild: rows and ratings, modes compared, saved and gone on with."""

from __future__ import annotations

import json

import pytest

TINY = ("--threads", 1, 2, "--epochs", 2, "--seeds", 1)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """train.svm and test.svm of the same features."""
    place = tmp_path_factory.mktemp("rows")
    for name, first, count in (("train", 0, 120), ("test", 120, 40)):
        numbers = range(first, first + count)
        lines = [f"{1 if k % 2 else -1} {1 + k % 2}:1 {3 + k % 7}:0.5 {10 + k % 11}:0.25" for k in numbers]
        (place / f"{name}.svm").write_text("\n".join(lines) + "\n")
    return "--train", place / "train.svm", "--test", place / "test.svm"


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """train.csv and test.csv: even users like even items."""
    place = tmp_path_factory.mktemp("ratings")
    for name, step in (("train", 3), ("test", 7)):
        pairs = [(k % 12, (k * step + k // 12) % 10) for k in range(120)]
        lines = [f"u{user},i{item},{4.5 if user % 2 == item % 2 else 1.5}" for user, item in pairs]
        (place / f"{name}.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    return "--train", place / "train.csv", "--test", place / "test.csv"


def modes_of(found):
    return [(entry["method"], entry["threads"]) for entry in found["methods"]]


ALL = [
    ("serial", 1), ("hogwild", 1), ("hogwild", 2), ("locked", 1), ("locked", 2), ("round-robin", 1), ("round-robin", 2),
]  # fmt: skip


@pytest.mark.full
def test_rows(hogwild, rows, tmp_path):
    words = ("experiment", "hogwild", *rows, *TINY, "--output", tmp_path / "x.json")
    said = hogwild(*words, "--report", tmp_path / "x.html")
    assert said.code == 0
    found = json.loads((tmp_path / "x.json").read_text())
    assert (found["schema"], found["complete"], found["score"]) == ("hogwild.hogwild", True, "accuracy")
    assert modes_of(found) == ALL
    assert all(entry["final_score"]["mean"] == 1 for entry in found["methods"])
    assert found["methods"][0]["speed_up"] == 1
    alone = [entry["final_loss"]["mean"] for entry in found["methods"] if entry["threads"] == 1]
    assert alone == pytest.approx([alone[0]] * 4, rel=1e-4)  # one thread is one thread in every mode
    errors = {tuple(key): e["errors"] for key, e in zip(modes_of(found), found["methods"], strict=True) if e["errors"]}
    assert set(errors) == {("hogwild", 1), ("hogwild", 2)}
    assert errors["hogwild", 1]["error_rate"] == 0
    for run in found["runs"]:
        if run["traced"]:
            assert sum(worker["gradients"] for worker in run["iterations"][0]["workers"]) == 120
    assert found["data"]["train"]["rows"] == 120
    assert "x: locked, 2 threads" in (tmp_path / "x.html").read_text()
    titles = ["mode", "threads", "test", "accuracy", "train", "loss", "s/iteration", "speed-up", "errors"]
    assert titles in [line.split() for line in said.out.splitlines()]
    del found["runs"][4:]
    found["complete"] = False
    (tmp_path / "x.json").write_text(json.dumps(found))
    again = hogwild(*words, "--resume", "--quiet")
    assert again == (0, "", "")
    more = json.loads((tmp_path / "x.json").read_text())
    assert more["runs"][:4] == found["runs"]
    assert modes_of(more) == ALL


@pytest.mark.full
def test_ratings(hogwild, ratings):
    words = ("experiment", "hogwild", "--problem", "factorization", *ratings, *TINY, "--dim", 4)
    found = hogwild(*words, "--json").json
    assert (found["score"], found["task"]) == ("rmse", "factorization")
    assert modes_of(found) == ALL
    assert all(0 < entry["final_score"]["mean"] < 2 for entry in found["methods"])
    assert found["options"]["dim"] == 4
    assert found["data"]["train"] == {**found["data"]["train"], "rows": 120, "users": 12, "items": 10}


@pytest.mark.full
@pytest.mark.parametrize("problem", ["linear", "factorization"])
def test_made_data(problem, hogwild):
    said = hogwild("experiment", "hogwild", "--problem", problem, "--small", "--threads", 1, "--epochs", 1, "--json")
    assert (said.json["complete"], said.json["data"]["train"]["rows"]) == (True, 5000)
    assert "note: made data: 5,000 rows to train on, 1,000 to test with." in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--train", "a.svm"), "--test"),
        (("--dim", 4), "--dim is for --problem factorization, not linear"),
        (("--problem", "factorization", "--loss", "hinge"), "--loss is for --problem linear, not factorization"),
        (("--problem", "factorization", "--dim", 0), "dim is 0"),
        (("--threads", 0), "threads is"),
        (("--l2", -1), "l2 is -1"),
        (("--train", "nowhere.svm", "--test", "nowhere.svm"), "nowhere.svm"),
    ],
    ids=str,
)
def test_mistakes(words, message, refused):
    assert message in refused("experiment", "hogwild", *words, "--quiet")


def test_ratings_that_are_none_are_refused(refused, tmp_path):
    (tmp_path / "lists.txt").write_text("a x y\nb x z\nc y z\n")
    words = ("--problem", "factorization", "--train", tmp_path / "lists.txt", "--test", tmp_path / "lists.txt")
    assert "there are no ratings" in refused("experiment", "hogwild", *words, "--quiet")
