"""`hogwild similar`: items and users that are alike, and names that are not there."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hogwild as package
from hogwild.errors import ConfigError, UnknownNameError
from hogwild.programs.recommender.neighbors import suggest


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A recommender whose vectors are known: made, not trained."""
    random = np.random.default_rng(3)
    users = [f"user {k}" for k in range(40)]
    items = ["Green Tea", "Black Tea", "jam", "a\x1b[31m", *(f"item {k}" for k in range(26))]
    pairs = [(users[k % 40], items[k % 30]) for k in range(120)]
    program = package.MatrixFactorization(dim=4, loss="bpr")
    feed = package.ratings_of(*zip(*pairs, strict=True), names=(tuple(users), tuple(items)))
    program = package.train(program, feed, epochs=1, mode="serial", quiet=True)
    for table in program.weights:
        table.reshape(-1, 10)[:, :4] = random.standard_normal((len(table) // 10, 4))  # vector, bias, squares of each
    program.weights.items.reshape(-1, 10)[7, :4] = 0
    path = tmp_path_factory.mktemp("similar") / "model"
    package.save_model(path, program)
    return path


@pytest.mark.parametrize("users", [False, True])
def test_the_nearest_by_cosine(model, users):
    """Against the plain formula, one pair at a time."""
    program = package.load_model(model).program
    factors = program.factors()
    vectors, names = (factors.user_vectors, program.users) if users else (factors.item_vectors, program.items)

    def cosine(a, b):
        size = float(np.sqrt((a @ a) * (b @ b)))
        return float(a @ b) / size if size else 0.0

    for name in (names[0], names[5], names[-1]):
        own = vectors[names.index(name)].astype(np.float64)
        plain = {other: cosine(own, vectors[k].astype(np.float64)) for k, other in enumerate(names) if other != name}
        expected = sorted(plain.items(), key=lambda pair: -pair[1])[:6]
        found = (program.similar_users if users else program.similar_items)(name, 6)
        assert [other for other, _ in found] == [other for other, _ in expected]
        assert [value for _, value in found] == pytest.approx([value for _, value in expected], abs=1e-6)
    assert len((program.similar_users if users else program.similar_items)(names[0], 1000)) == len(names) - 1


def test_lines_and_json_say_the_same(hogwild, model, tmp_path):
    program = package.load_model(model).program
    said = hogwild("similar", model, "jam", "Green Tea", "--top", 3)
    lines = [line.split("\t") for line in said.out.splitlines()]
    expected = [(name, *pair) for name in ("jam", "Green Tea") for pair in program.similar_items(name, 3)]
    assert [(one, other) for one, other, _ in lines] == [(one, other) for one, other, _ in expected]
    assert [float(value) for *_, value in lines] == pytest.approx([value for *_, value in expected], rel=1e-5)
    assert hogwild("similar", model, "jam", "Green Tea", "--top", 3, "--items").out == said.out
    hogwild("similar", model, "jam", "Green Tea", "--top", 3, "--output", tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv").read_text() == said.out
    told = json.loads(hogwild("similar", model, "user 3", "--users", "--top", 2, "--json").out)
    assert (told["of"], told["unknown"]) == ("users", [])
    (listed,) = told["names"]
    assert [(each["name"], each["similarity"]) for each in listed["similar"]] == program.similar_users("user 3", 2)


def test_unknown_names(hogwild, model):
    said = hogwild("similar", model, "green tea", "jan", "jam", "--top", 1)
    assert said.code == 2
    assert said.out.startswith("jam\t")  # the others are answered
    assert said.out.count("\n") == 1
    assert "'green tea' (did you mean 'Green Tea'?), 'jan' (did you mean 'jam'?) are not among the 30 items" in said.err
    assert "'user 3' (it is the name of a user: add --users) is not among" in hogwild("similar", model, "user 3").err
    said = hogwild("similar", model, "jam", "--users")
    assert "'jam' (it is the name of an item: add --items) is not among the 40 users" in said.err
    told = hogwild("similar", model, "zzz", "jam", "--json")
    assert (told.code, json.loads(told.out)["unknown"]) == (2, ["zzz"])
    program = package.load_model(model).program
    with pytest.raises(UnknownNameError, match="'zzz' is not among"):
        program.similar_items("zzz")
    with pytest.raises(KeyError):
        program.similar_users("zzz")
    with pytest.raises(ConfigError, match="ask for 1 or more"):
        program.similar_items("jam", 0)


def test_what_was_meant():
    known = {name: k for k, name in enumerate(["The Matrix (1999)", "Heat", "Matilda"])}
    assert suggest("HEAT", known) == "Heat"
    assert suggest("the matrix", known) == "The Matrix (1999)"
    assert suggest("Matlida", known) == "Matilda"
    assert suggest("", known) == suggest("xyzzy", known) == ""


def test_wrong_usage(hogwild, model):
    assert "leave --items out" in hogwild("similar", model, "jam", "--items", "--users").err
    assert "--json lists the names itself" in hogwild("similar", model, "jam", "--json", "--output", "x").err
    assert "top is 0; it must lie between 1 and 10000" in hogwild("similar", model, "jam", "--top", 0).err
