"""`hogwild report`, and `--report` of a training command."""

from __future__ import annotations

import json
import re

from cli.conftest import SERIAL


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])


def test_a_run_writes_its_report_and_its_log_makes_the_same(hogwild, files, tmp_path):
    flags = ["--valid", files / "test.svm", "--lr", 0.2, "--log-dir", tmp_path / "log", "--report", tmp_path / "a.html"]
    done = hogwild("train", "classifier", files / "train.svm", *SERIAL, *flags, "--json")
    assert done.code == 0
    assert hogwild("report", tmp_path / "log", "--output", tmp_path / "b.html").out == f"1 run in {tmp_path}/b.html\n"
    (run,), (again,) = data_of(tmp_path / "a.html")["runs"], data_of(tmp_path / "b.html")["runs"]
    assert run["verdict"]["metrics"]["auc"] == done.json["metrics"]["auc"]
    assert run["verdict"]["speed"] == {"value": done.json["throughput"]["units_per_second"], "unit": "nonzeros"}
    assert run["verdict"]["score"] == {"name": "accuracy", "value": done.json["metrics"]["accuracy"]}  # judged by it
    assert run["verdict"]["held_out"] == done.json["metrics"]["loss"] != run["verdict"]["loss"]
    assert run["about"]["command"].startswith("hogwild train classifier ")
    assert run["about"]["seed"] == 1
    assert run["options"]["train.lr"] == "0.2"
    assert len(run["epochs"]) == 3
    for name in ("verdict", "about", "options", "epochs", "notes"):
        assert run[name] == again[name], name


def test_the_command_says_where_the_report_is(hogwild, files, tmp_path):
    done = hogwild("train", "classifier", files / "few.svm", *SERIAL, "--lr", 0.2, "--report", tmp_path / "a.html")
    assert done.out.endswith(f"report in {tmp_path}/a.html\n")


def test_mistakes_are_a_line(hogwild, files, tmp_path):
    (tmp_path / "mine.html").write_text("<p>mine")
    train = ("train", "classifier", files / "train.svm", *SERIAL, "--lr", 0.2)
    for command, said in (
        (("report",), "RUN is missing"),
        (("report", tmp_path / "none"), "No such file or directory; give a directory of --log-dir"),
        (("report", tmp_path), "no events.jsonl in it"),
        (("report", tmp_path, "--output", ""), "output"),
        ((*train, "--report", tmp_path / "mine.html"), "no report of hogwild, so it is not replaced"),
        ((*train, "--report", files / "train.svm"), "is an output, and"),
    ):
        done = hogwild(*command)
        assert done.code == 2, done
        assert said in done.err
        assert done.err.count("\n") == 1
