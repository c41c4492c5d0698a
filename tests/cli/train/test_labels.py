"""Several labels a row by the command line: train on fastText's lines, evaluate, predict, standard input, refusals."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

TOPICS = {"red": ["ruby", "rose"], "blue": ["sky", "navy"], "round": ["ball", "coin"]}


def lines(count: int, seed: int) -> str:
    made = random.Random(seed)
    rows = []
    for _ in range(count):
        labels = [name for name in TOPICS if made.random() < 0.5] or ["red"]
        words = ["the", "old", *(made.choice(TOPICS[name]) for name in labels)]
        rows.append(" ".join([*(f"__label__{name}" for name in labels), *words]) + "\n")
    return "".join(rows)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.txt").write_text(lines(600, 1))
    (tmp_path / "test.txt").write_text(lines(100, 2))
    return tmp_path


@pytest.mark.parametrize("model", ["linear", "text"])
def test_from_lines_to_labels(hogwild, files, model):
    words = ["train", "classifier", files / "train.txt", "--model", model, "--mode", "serial", "--hash-bits", 10]
    said = hogwild(*words, "--epochs", 10, "--output", files / "model", "--json", "--valid", files / "test.txt")
    assert said.code == 0, said.err
    assert said.json["metrics"]["f1"] > 0.95
    found = hogwild("evaluate", files / "model", files / "test.txt", "--top", 2, "--json").json["metrics"]
    assert {"p@2", "r@2", "macro_f1"} <= set(found)
    assert found["loss"] == pytest.approx(said.json["metrics"]["loss"])
    (files / "new.txt").write_text("the ruby ball\nthe sky\n")
    rows = hogwild("predict", files / "model", files / "new.txt").out.splitlines()
    assert [sorted(row.split("\t")) for row in rows] == [["red", "round"], ["blue"]]
    best = hogwild("predict", files / "model", files / "new.txt", "--top", 1, "--proba").out.splitlines()
    name, chance = best[1].split("\t")
    assert (name, float(chance) > 0.5) == ("blue", True)
    everything = hogwild("predict", files / "model", files / "new.txt", "--threshold", 0).out.splitlines()
    assert [sorted(row.split("\t")) for row in everything] == [sorted(TOPICS)] * 2


def test_fresh_process_reads_standard_input(hogwild, files):
    words = ["train", "classifier", files / "train.txt", "--mode", "serial", "--hash-bits", 10]
    assert hogwild(*words, "--output", files / "model", "--quiet").code == 0
    asked = "__label__red the ruby ball\nsome sky\n"
    (files / "same.txt").write_text(asked)
    whole = hogwild("predict", files / "model", files / "same.txt").out
    command = [sys.executable, "-m", "hogwild", "predict", str(files / "model"), "-"]
    assert subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout == whole


def test_objects(hogwild, files):
    rows = []
    for line in lines(300, 1).splitlines():
        words = line.split()
        labels = [word[9:] for word in words if word.startswith("__label__")]
        rows.append({"labels": labels, "text": " ".join(words[len(labels) :])})
    (files / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--mode", "serial", "--hash-bits", 10, "--output", files / "model", "--quiet"]
    assert hogwild("train", "classifier", files / "train.jsonl", *words).code == 0
    found = hogwild("evaluate", files / "model", files / "train.jsonl", "--json").json
    assert found["metrics"]["f1"] > 0.9
    command = [sys.executable, "-m", "hogwild", "predict", str(files / "model"), "-"]
    asked = '{"text": "the ruby ball"}\n{"text": "some sky", "labels": null, "more": {}}\n'
    said = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [sorted(row.split("\t")) for row in said] == [["red", "round"], ["blue"]]
    said = subprocess.run(command, input="the old, the sky\n", capture_output=True, text=True, check=True).stdout
    assert said == "blue\n", "plain text too"


def test_refusals(hogwild, refused, files):
    train = files / "train.txt"
    assert "several labels" in refused("train", "classifier", train, "--model", "fm", "--hash-bits", 10)
    assert "several labels" in refused("train", "ctr", train, "--hash-bits", 10)
    assert "leave out class_weight" in refused("train", "classifier", train, "--balanced", "--hash-bits", 10)
    assert "threshold is 2" in refused("predict", files, train, "--threshold", 2)
