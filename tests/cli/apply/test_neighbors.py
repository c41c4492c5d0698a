"""`hogwild neighbors`, with models and with files."""

from __future__ import annotations

import numpy as np
import pytest

from cli.words import MATRIX, WORDS, make_words
from hogwild import Vectors


@pytest.fixture
def model(tmp_path):
    return make_words(tmp_path)


def test_a_table_for_each_word(hogwild, model):
    said = hogwild("neighbors", model, "king", "apple", "--topn", 2)
    assert said.code == 0
    assert said.err == ""
    lines = [line.split() for line in said.out.splitlines() if line.strip(" ─")]
    assert lines == [
        ["king", "similarity"], ["man", "0.7071"], ["queen", "0.5000"],
        ["apple", "similarity"], ["pear", "0.9950"], ["[bold]plum[/]", "0.9578"],
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["king", "woman", "--minus", "man"], ["king", "--minus", "man", "woman"]])
def test_sums_and_differences(hogwild, model, words):
    said = hogwild("neighbors", model, *words, "--topn", 1)
    assert said.out.split()[:5] == ["king", "+", "woman", "-", "man"]
    assert "queen" in said.out
    found = hogwild("neighbors", model, *words, "--json").json
    (query,) = found["queries"]
    assert query["words"] == ["king", "woman"]
    assert query["minus"] == ["man"]
    wanted = Vectors(WORDS, MATRIX).most_similar(["king", "woman"], "man")
    assert [entry["word"] for entry in query["neighbors"]] == [word for word, _ in wanted]
    np.testing.assert_allclose([entry["similarity"] for entry in query["neighbors"]], [v for _, v in wanted], atol=1e-6)


def test_one_json_object(hogwild, model):
    found = hogwild("neighbors", model, "king", "man", "--topn", 3, "--json", "--restrict-vocab", 4).json
    assert found["words"] == 8
    assert found["dim"] == 4
    assert [query["words"] for query in found["queries"]] == [["king"], ["man"]]
    assert all(len(query["neighbors"]) == 3 for query in found["queries"])
    assert {entry["word"] for query in found["queries"] for entry in query["neighbors"]} <= set(WORDS[:4])
    assert set(found["seconds"]) == {"load", "search"}


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.txt.gz"])
def test_files_are_models_too(hogwild, model, tmp_path, name):
    Vectors(WORDS, MATRIX).save(tmp_path / name)
    asked = ("king", "--topn", 3, "--json")
    wanted = hogwild("neighbors", model, *asked).json["queries"]
    assert hogwild("neighbors", tmp_path / name, *asked).json["queries"] == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kign", "dragon"], "'kign' (did you mean king?), 'dragon' are not in the vocabulary of 8 words"),
        (["king", "--minus", "Man"], "'Man' (did you mean man?) is not in the vocabulary"),
        (["king", "--topn", "0"], "topn is 0; it must be at least 1"),
        (["king", "--restrict-vocab", "-1"], "restrict_vocab is -1"),
        (["king", "--top-n", "3"], "unknown flag --top-n (did you mean --topn?)"),
        ([], "WORD is missing"),
    ],
)
def test_wrong_questions(refused, model, words, said):
    assert said in refused("neighbors", model, *words)


def test_the_known_words_are_answered_and_the_unknown_ones_named(hogwild, model):
    said = hogwild("neighbors", model, "kign", "king", "dragon", "apple", "--topn", 2)
    assert said.code == 2
    assert said.out == hogwild("neighbors", model, "king", "apple", "--topn", 2).out
    assert said.err.splitlines() == [
        "hogwild: error: 'kign' (did you mean king?), 'dragon' are not in the vocabulary of 8 words."
    ]
    found = hogwild("neighbors", model, "kign", "king", "--json").json
    assert found["unknown"] == ["kign"]
    assert [query["words"] for query in found["queries"]] == [["king"]]
    assert hogwild("neighbors", model, "king", "--json").json["unknown"] == []


def test_models_without_words(refused, tmp_path):
    (tmp_path / "notes.txt").write_text("these are no vectors\n")
    assert "no-model: there is no such model" in refused("neighbors", "no-model", "king")
    assert "notes.txt:1: `these` has no numbers behind it" in refused("neighbors", tmp_path / "notes.txt", "king")
    (tmp_path / "empty").mkdir()
    assert "config.json is missing" in refused("neighbors", tmp_path / "empty", "king")
