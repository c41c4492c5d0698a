"""`--profile` of training commands: the flag alone or with a file, the table, the trace, the JSON object."""

from __future__ import annotations

import json

import pytest

from cli.conftest import SERIAL
from hogwild.cli.flags import parse
from hogwild.cli.train.classifier import PAGE, Options


@pytest.mark.parametrize(
    ("words", "profile", "files"),
    [
        (["--profile", "a.svm"], "auto", ("a.svm",)),
        (["a.svm", "--profile"], "auto", ("a.svm",)),
        (["a.svm", "--profile", "--lr", "1"], "auto", ("a.svm",)),
        (["a.svm", "--profile", "t.json"], "t.json", ("a.svm",)),
        (["--profile", "t.json", "a.svm"], "t.json", ("a.svm",)),
        (["--profile=t", "a.svm"], "t", ("a.svm",)),
        (["a.svm"], "", ("a.svm",)),
    ],
)
def test_the_flag_takes_a_file_or_stands_alone(words, profile, files):
    options = parse(Options, PAGE, words)
    assert options.watch.profile == profile
    assert options.files == files


def test_beside_the_output(hogwild, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", "--valid", files / "test.svm", *SERIAL, "--lr", 0.5]
    said = hogwild(*words, "--output", tmp_path / "model", "--profile", "--json").json
    found = said["profile"]
    assert found["file"] == str(tmp_path / "model.profile.json")
    assert {"read", "parse", "encode", "rank", "compile", "train", "evaluate", "save"} <= set(found["phases"])
    assert sum(found["phases"].values()) == pytest.approx(found["seconds"], rel=0.01)
    assert found["phases"]["train"] == pytest.approx(said["seconds"]["train"], rel=0.05, abs=0.01)
    trace = json.loads((tmp_path / "model.profile.json").read_text())
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert {"main", "worker 0"} <= names
    assert any(name.startswith("feed") for name in names)
    told = hogwild(*words, "--profile", tmp_path / "again.json")
    assert "each worker while training, in seconds:" in told.err
    assert "again.json has it span by span" in told.err
    assert "read the files" not in told.err        # what was encoded before is opened only
    assert (tmp_path / "again.json").exists()
    quiet = hogwild(*words, "--quiet", "--profile", tmp_path / "again.json")
    assert quiet.err == ""


def test_data_is_not_replaced_by_a_trace(refused, files, tmp_path):
    (tmp_path / "data.json").write_text("{}")
    words = ["train", "classifier", files / "train.svm", *SERIAL]
    assert "not replaced" in refused(*words, "--profile", tmp_path / "data.json")
    assert (tmp_path / "data.json").read_text() == "{}"
