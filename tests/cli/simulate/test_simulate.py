"""hogwild simulate: the table, the JSON object, the file, the log that a report reads; what does not fit."""

from __future__ import annotations

import json

import pytest

ASK = ("--epochs", 2, "--lr", 0.1, "--workers", "1,8")


@pytest.mark.full
def test_a_table_a_file_and_a_log_that_a_report_draws(hogwild, files, tmp_path):
    words = ("simulate", "classifier", files / "train.svm", "--valid", files / "test.svm", *ASK, "--compare", "1")
    said = hogwild(*words, "--output", tmp_path / "s.json", "--log-dir", tmp_path / "logs")
    assert said.code == 0
    assert "other machines" in said.out
    assert "predicted" in said.out
    assert "a visit takes" in said.out
    kept = json.loads((tmp_path / "s.json").read_text())
    assert [each["workers"] for each in kept["predictions"]] == [1, 8]
    assert kept["predictions"][1]["error_rate"] > 0
    assert kept["compared"][0]["errors"]["loss"] == pytest.approx(0, abs=1e-3)
    assert hogwild(*words, "--output", tmp_path / "s.json", "--json").json["output"] == str(tmp_path / "s.json")
    page = hogwild("report", tmp_path / "logs", "--output", tmp_path / "r.html")
    assert page.code == 0
    html = (tmp_path / "r.html").read_text()
    assert "8 workers, predicted" in html
    assert '"predicted": "yes"' in html or '"predicted":"yes"' in html


@pytest.mark.full
def test_virtual_nodes(hogwild, files, tmp_path):
    words = ("simulate", "classifier", files / "train.svm", *ASK, "--cluster", "virtual", "--nodes", 3, "--link", 1)
    said = hogwild(*words, "--sync-every", 20, "--combine", "sum", "--log-dir", tmp_path / "logs")
    assert said.code == 0
    assert "3 nodes, each" in said.out
    assert "an exchange every 20 visits of a node" in said.out
    found = hogwild(*words, "--json").json["predictions"]
    assert [(each["nodes"], each["workers"]) for each in found] == [(3, 1), (3, 8)]
    assert all(each["sent"] > 0 for each in found)
    page = hogwild("report", tmp_path / "logs", "--output", tmp_path / "r.html")
    assert page.code == 0
    assert "24 workers, predicted" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--workers", "0"), "whole numbers from 1 to 256"),
        (("--workers", "257"), "whole numbers from 1 to 256"),
        (("--workers", "two"), "whole numbers from 1 to 256"),
        (("--workers", "2,2"), "stands there twice"),
        (("--compare", "1;2"), "whole numbers from 1 to 256"),
        (("--delay", "-1"), "it must not be negative"),
        (("--lost", "2"), "a chance between 0 and 1"),
        (("--cores", "0"), "between 1 and 256"),
        (("--mode", "locked"), "mode is locked"),
        (("--sharing", "hot"), "sharing is hot"),
        (("--threads", 2), "--threads has no effect on a simulation"),
        (("--resume", "--output", "x"), "--resume has no effect on a simulation"),
        (("--output", "-"), "for standard output there is --json"),
        (("--cluster", "local"), "a simulation has cluster virtual"),
        (("--cluster", "virtual", "--strategy", "gossip"), "strategy is gossip"),
        (("--cluster", "virtual", "--compare", "1"), "--compare has no effect on virtual nodes"),
        (("--nodes", 2), "Add cluster"),
        (("--link", 1), "--link has no effect on one machine"),
        (("--latency", 0, "--cluster", "virtual"), "it must be positive"),
    ],
)
def test_what_cannot_be_simulated(refused, files, words, why):
    assert why in refused("simulate", "classifier", files / "train.svm", *words)


def test_a_file_that_is_not_ours_is_not_replaced(refused, files, tmp_path):
    (tmp_path / "mine.json").write_text("{}")
    said = refused("simulate", "classifier", files / "train.svm", "--output", tmp_path / "mine.json")
    assert "no file of a simulation" in said
    assert (tmp_path / "mine.json").read_text() == "{}"
