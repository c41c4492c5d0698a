"""hogwild tune: trials, the best model, the table, the file; what does not fit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from hogwild.programs.store import load_model

ASK = ("--search", "lr=0.01:1:log", "--search", "l2=0,1e-5", "--epochs", 3, "--best-by", "loss")


def test_the_best_model_is_the_one_that_was_judged(hogwild, files, tmp_path):
    words = ("tune", "classifier", files / "train.svm", "--valid", files / "test.svm", *ASK, "--trials", 5)
    said = hogwild(*words, "--output", tmp_path / "m", "--trials-file", tmp_path / "t.jsonl", "--json")
    assert said.code == 0
    assert said.err.count("trial ") >= 5
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert sorted(line["trial"] for line in lines) == [0, 1, 2, 3, 4]
    whole = [line for line in lines if line["status"] == "done"]
    assert said.json["best"]["score"] == min(line["score"] for line in whole)
    assert lines[[line["trial"] for line in lines].index(0)]["status"] == "done"  # the usual options have a whole run
    found = hogwild("evaluate", tmp_path / "m", files / "test.svm", "--json").json["metrics"]
    assert found["loss"] == pytest.approx(said.json["metrics"]["loss"], rel=1e-9)
    again = hogwild(*words, "--side-by-side", 1, "--json").json["trials"]
    for one, other in zip(said.json["trials"], again, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_a_table_for_people(hogwild, files):
    said = hogwild("tune", "classifier", files / "train.svm", "--valid", files / "test.svm", *ASK, "--trials", 2)
    assert "the best is trial" in said.out
    assert said.out.count("done") + said.out.count("short") == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--search", "lr=1:0.1"), "the first number is the lower one"),
        (("--search", "lr=0:1:log"), "above 0 on a logarithmic scale"),
        (("--search", "wrong=1,2"), "no option of linear or of training"),
        (("--search", "lr"), "write for example lr=0.01:1:log"),
        (("--search", "l2=red,blue"), "search is 'l2=red,blue'"),
        (("--threads", 2), "--threads has no effect on a search"),
        (("--resume", "--output", "x"), "--resume has no effect on a search"),
        (("--lr", 0.1, "--l2", 0.1, "--epochs", 2), "nothing to search for"),
    ],
)
def test_what_cannot_be_searched_for(refused, files, words, why):
    assert why in refused("tune", "classifier", files / "train.svm", "--valid", files / "test.svm", *words)


def test_a_tenth_is_held_out_where_there_is_no_other_data(hogwild, files):
    said = hogwild("tune", "classifier", files / "train.svm", *ASK, "--trials", 2, "--json")
    assert any("200 of 2,000 samples are held out" in note for note in said.json["notes"])


@pytest.mark.full
def test_ctrl_c_keeps_the_best_so_far(files, tmp_path):
    words = ["tune", "classifier", files / "train.svm", "--valid", files / "test.svm", "--trials", 100000]
    command = [sys.executable, "-m", "hogwild", *map(str, words), "--output", str(tmp_path / "m")]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    for line in run.stderr:
        if line.startswith("trial 1"):
            break
    time.sleep(0.2)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "the best so far was kept" in err
    assert "Traceback" not in err
    assert "the best is trial" in out
    assert load_model(tmp_path / "m").metrics["accuracy"] > 0.5
