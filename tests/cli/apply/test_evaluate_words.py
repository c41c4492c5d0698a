"""`hogwild evaluate` for models of words and files of vectors."""

from __future__ import annotations

import numpy as np
import pytest

from cli.words import MATRIX, WORDS, make_words
from hogwild import Linear, Vectors, feed_of, save_model, train
from problems.word_models import gensim_vectors


@pytest.fixture
def model(tmp_path):
    return make_words(tmp_path)


def test_one_json_object(hogwild, model, tmp_path):
    tests = [tmp_path / name for name in ("pairs.tsv", "more.csv", "questions.txt")]
    found = hogwild("evaluate", model, *tests, "--json").json
    theirs = gensim_vectors()(4)
    theirs.add_vectors(WORDS, MATRIX)
    first, second, third = found["files"]
    assert first["kind"] == second["kind"] == "similarity"
    for part, path, sign in ((first, tests[0], "\t"), (second, tests[1], ",")):
        pearson, spearman, oov = theirs.evaluate_word_pairs(str(path), delimiter=sign)
        assert part["spearman"] == pytest.approx(spearman[0], abs=1e-4)
        assert part["pearson"] == pytest.approx(pearson[0], abs=1e-4)
        assert part["oov"] == pytest.approx(oov / 100)
        assert part["file"] == str(path)
    assert found["spearman"] == pytest.approx((first["spearman"] + second["spearman"]) / 2)
    assert found["analogy"] == pytest.approx(theirs.evaluate_word_analogies(str(tests[2]))[0])
    assert found["metrics"] == {"spearman": found["spearman"], "analogy": found["analogy"]}
    assert found["samples"] == 4 + 3 + 3
    assert (third["questions"], third["known"], third["kind"]) == (3, 2, "analogy")
    assert [section["section"] for section in third["sections"]] == ["family", "fruit"]
    assert third["sections"][0]["correct"] == 1
    assert found["restrict_vocab"] == 30000
    names, kinds = found["notes"][2], [found["notes"][k] for k in (0, 1, 3)]
    assert "taken for a line of names" in names
    assert [note.partition(": read as ")[2] for note in kinds] == [
        "similarities, 4 pairs.", "similarities, 3 pairs.", "analogies, 3 questions in 2 sections.",
    ]  # fmt: skip
    assert found["wrong"] == []
    assert {"load", "evaluate"} == set(found["seconds"])


def test_tables(hogwild, model, tmp_path):
    said = hogwild("evaluate", model, tmp_path / "pairs.tsv", tmp_path / "more.csv", tmp_path / "questions.txt")
    assert said.code == 0
    rows = [line.split() for line in said.out.splitlines()]
    assert ["similarity", "Spearman", "Pearson", "pairs", "unknown"] in rows
    assert any(row[:1] == ["mean"] for row in rows)
    assert ["family", "100.0", "1", "of", "1", "50.0", "%"] in rows
    assert any(row[:1] == ["total"] for row in rows)
    assert "note: " in said.err
    assert hogwild("evaluate", model, tmp_path / "pairs.tsv", "--quiet").err == ""


def test_files_of_vectors_are_models_too(hogwild, model, tmp_path):
    Vectors(WORDS[:-1], MATRIX[:-1]).save(tmp_path / "v.bin")
    found = hogwild("evaluate", tmp_path / "v.bin", tmp_path / "pairs.tsv", "--json").json
    assert found["spearman"] == hogwild("evaluate", model, tmp_path / "pairs.tsv", "--json").json["spearman"]
    assert found["analogy"] is None


def test_analogies_among_the_most_frequent_words(hogwild, model, tmp_path):
    found = hogwild("evaluate", model, tmp_path / "questions.txt", "--restrict-vocab", 3, "--json").json
    assert found["files"][0]["known"] == 0
    assert found["analogy"] is None
    assert found["spearman"] is None
    assert "none is answered" in found["notes"][1]
    assert "–" in hogwild("evaluate", model, tmp_path / "questions.txt", "--restrict-vocab", 3).out


def test_wrong_usage(refused, hogwild, model, tmp_path):
    (tmp_path / "bad.txt").write_text("king queen 8\nking\n")
    assert "bad.txt:2: 1 field where a pair has 3" in refused("evaluate", model, tmp_path / "bad.txt")
    found = hogwild("evaluate", model, tmp_path / "bad.txt", "--bad-lines", "skip", "--json").json
    assert "1 of 2 lines malformed and skipped" in found["notes"][1]
    assert "--label is not for models of words" in refused("evaluate", model, tmp_path / "pairs.tsv", "--label", "x")
    assert "restrict_vocab is -1" in refused("evaluate", model, tmp_path / "pairs.tsv", "--restrict-vocab", "-1")
    assert "none.txt does not exist" in refused("evaluate", model, "none.txt")
    piped = hogwild("evaluate", model, tmp_path / "pairs.tsv", "--pipe", "head -3", "--json").json
    assert piped["files"][0]["pairs"] == 3


def test_a_wrong_file_does_not_keep_the_others_from_being_read(hogwild, model, tmp_path):
    (tmp_path / "bad.txt").write_text("king queen 8\nking\n")
    files = (tmp_path / "none.txt", tmp_path / "pairs.tsv", tmp_path / "bad.txt", tmp_path / "questions.txt")
    said = hogwild("evaluate", model, *files, "--json")
    assert said.code == 2
    errors = [line for line in said.err.splitlines() if line.startswith("hogwild: error: ")]
    assert ["none.txt does not exist" in errors[0], "bad.txt:2: 1 field" in errors[1], len(errors)] == [True, True, 2]
    found = said.json
    assert found["wrong"] == [error.removeprefix("hogwild: error: ") for error in errors]
    right = hogwild("evaluate", model, tmp_path / "pairs.tsv", tmp_path / "questions.txt", "--json")
    assert right.code == 0
    assert found["metrics"] == right.json["metrics"]
    assert found["files"] == right.json["files"]
    shown = hogwild("evaluate", model, *files, "--quiet")
    assert (shown.code, "family" in shown.out, shown.err.count("\n")) == (2, True, 2)


def test_analogies_need_no_section(hogwild, model, tmp_path):
    (tmp_path / "bare.txt").write_text("man king woman queen\nking man queen woman\n")
    said = hogwild("evaluate", model, tmp_path / "bare.txt")
    assert said.code == 0
    assert "bare.txt: read as analogies, 2 questions." in said.err
    assert ["total", "100.0", "2", "of", "2", "0.0", "%"] in [line.split() for line in said.out.splitlines()]


def test_classifiers_know_no_vocabulary(refused, hogwild, files, tmp_path):
    assert "no-model" in refused("evaluate", "no-model", tmp_path / "pairs.tsv", "--restrict-vocab", 5)
    save_model(tmp_path / "linear", train(Linear(), feed_of(np.eye(4), [0, 1, 0, 1]), epochs=1, lr=0.1, quiet=True))
    asked = ("evaluate", tmp_path / "linear", files / "few.svm")
    assert "--restrict-vocab is for word vectors" in refused(*asked, "--restrict-vocab", 5)
