"""What is written where: no output is an input, and what was trained is not lost where it cannot be written."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from hogwild.cli.outputs import check_outputs
from hogwild.errors import ConfigError
from hogwild.programs.store import load_model
from system import mounted

RUN = ("--mode", "serial", "--lr", 0.2, "--epochs", 2)


@pytest.fixture(scope="module")
def _model(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model"


@pytest.fixture
def model(hogwild, files, _model):
    if not _model.exists():
        assert hogwild("train", "classifier", files / "few.svm", *RUN, "--output", _model).code == 0
    return _model


# -- outputs that are inputs ------------------------------------------------------------------------------------


def test_predicting_into_what_is_read(refused, files, model, tmp_path):
    data = tmp_path / "a.svm"
    data.write_bytes((files / "few.svm").read_bytes())
    (tmp_path / "link.svm").symlink_to(data)
    os.link(data, tmp_path / "hard.svm")
    before = data.read_bytes()
    weights = (model / "weights.safetensors").read_bytes()
    for output in (data, tmp_path / "link.svm", tmp_path / "hard.svm", model / "weights.safetensors", model / "new",
                   model, tmp_path / "x" / ".." / "a.svm"):  # fmt: skip
        assert "choose another output" in refused("predict", model, data, "--output", output)
    assert "choose another output" in refused("predict", model, tmp_path / "*.svm", "--output", tmp_path / "link.svm")
    assert "choose another output" in refused("export", model, model / "weights.safetensors")
    assert data.read_bytes() == before
    assert (model / "weights.safetensors").read_bytes() == weights
    assert sorted(os.listdir(model)) == ["config.json", "weights.safetensors"]


def test_predicting_beside_what_is_read(hogwild, files, model, tmp_path):
    data = tmp_path / "a.svm"
    data.write_bytes((files / "few.svm").read_bytes())
    assert hogwild("predict", model, tmp_path / "*.svm", "--output", tmp_path / "b.svm").code == 0
    assert len((tmp_path / "b.svm").read_text().splitlines()) == 3
    assert hogwild("predict", model, data, "--output", os.devnull).code == 0


@pytest.mark.parametrize("flag", ["--output", "--profile", "--log-dir"])
@pytest.mark.parametrize("read", ["train", "--valid", "--config", "--slots"])
def test_training_into_what_is_read(refused, files, tmp_path, flag, read):
    place = tmp_path / ("events.jsonl" if flag == "--log-dir" else "x.json")
    place.write_text("epochs = 3\n")
    target = tmp_path if flag == "--log-dir" else place
    words = [place] if read == "train" else [files / "few.svm", read, place]
    error = refused("train", "classifier", *words, flag, target)
    assert "choose another output" in error or (flag == "--profile" and "it is not replaced" in error)
    assert place.read_text() == "epochs = 3\n"


def test_outputs_in_each_others_way(refused, files, tmp_path):
    words = ["train", "classifier", files / "few.svm", "--output", tmp_path / "m"]
    for more in (["--log-dir", tmp_path / "m"], ["--profile", tmp_path / "m" / "p.json"]):
        assert "both outputs" in refused(*words, *more)
    assert os.listdir(tmp_path) == []


def test_every_other_command_that_writes(refused, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("")
    for words in (
        ("make-dataset", "sparse"), ("make-dataset", "clicks"), ("make-dataset", "ratings"),
        ("experiment", "asyngrad"), ("recommend", "m", "ann"), ("similar", "m", "tea"),
    ):  # fmt: skip
        assert "choose another output" in refused(*words, "--config", config, "--output", config)
    both = ("experiment", "asyngrad", "--train", config, "--test", "x")
    assert "choose another output" in refused(*both, "--output", config)
    start = ("train", "word2vec", "x.txt", "--start", tmp_path, "--output", tmp_path)
    assert "choose another output" in refused(*start)
    templates = ("train", "tagger", "x.txt", "--features", config, "--output", config)
    assert "choose another output" in refused(*templates)
    assert config.read_text() == ""


def test_what_is_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chunking").mkdir()
    (tmp_path / "a").write_text("x")
    check_outputs(["-", "", "b"], ["-", "", "a", "missing"], ["chunking"])
    check_outputs(["chunking"], ["a"])
    for name in ("a", "./a", str(tmp_path / "a"), "[a]"):
        with pytest.raises(ConfigError):
            check_outputs(["a"], [name])


@pytest.mark.parametrize(
    "words",
    [
        ("train", "classifier", "x"), ("train", "ctr", "x"), ("train", "recommender", "x"), ("train", "tagger", "x"),
        ("train", "word2vec", "x"), ("train", "module", "a:b", "x"), ("predict", "m", "x"), ("recommend", "m", "ann"),
        ("make-dataset", "sparse"), ("make-dataset", "clicks"), ("make-dataset", "ratings"), ("experiment", "asyngrad"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_output_without_a_name(refused, words):
    assert "--output is there without a name" in refused(*words, "--output", "")
    assert "--output is there without a name" in refused(*words, "--output=")


def test_an_output_without_a_name_in_a_file_of_options(refused, files, tmp_path):
    (tmp_path / "run.toml").write_text('output = ""\n')
    words = ("train", "classifier", files / "train.svm", "--config", tmp_path / "run.toml")
    assert "run.toml: output is there without a name" in refused(*words)


# -- found out before training ----------------------------------------------------------------------------------


def test_a_loop_of_links_is_said_before_training(refused, files, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    error = refused("train", "classifier", "no-such-file.svm", "--output", tmp_path / "a", code=1)
    assert "links that lead to each other" in error
    error = refused("make-dataset", "sparse", "--rows", 10, "--output", tmp_path / "a", code=1)
    assert "symbolic links" in error


# -- finished work is not lost ----------------------------------------------------------------------------------


def _come_between(monkeypatch, path):
    """A file of the user's gets into the output while the run goes on."""
    from hogwild.executor.readers.checkpoint import Checkpointer

    real = Checkpointer._finish

    def finish(self, event):
        path.mkdir(exist_ok=True)
        (path / "thesis.txt").write_text("years of work")
        real(self, event)

    monkeypatch.setattr(Checkpointer, "_finish", finish)


@pytest.mark.parametrize("show", [(), ("--json",), ("--quiet",)])
def test_a_file_that_came_into_the_output(hogwild, files, tmp_path, monkeypatch, show):
    output = tmp_path / "m"
    _come_between(monkeypatch, output)
    said = hogwild("train", "classifier", files / "few.svm", *RUN, "--output", output, *show)
    assert said.code == 1
    (place,) = tmp_path.glob("m.rescued-*")
    (line,) = [line for line in said.err.splitlines() if "error" in line]
    assert line.startswith("hogwild: error: ")
    assert str(place) in line
    assert "thesis.txt" in line or "not a model" in line
    assert load_model(place).program.name == "linear"
    assert os.listdir(output) == ["thesis.txt"]
    if show == ("--json",):
        assert said.json["output"] == str(place)
        assert str(place) in said.json["notes"][-1]
    elif not show:
        assert f"saved to {place}\n" in said.out


def test_files_may_not_grow(files, tmp_path):
    """`ulimit -f`: the model cannot be written anywhere. One line, and nothing is left."""
    code = (
        "import resource, signal, sys; from hogwild.cli.main import main; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["train", "classifier", files / "few.svm", *RUN, "--output", tmp_path / "m", "--no-cache"]
    told = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    (line,) = [line for line in told.stderr.splitlines() if "error" in line]
    assert "File too large" in line
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    with mounted(tmp_path / "disk", "1m") as place:
        yield place


def fill(place):
    """Write until the disk is full."""
    with open(place / "filler", "ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1000))


def test_the_disk_fills_while_it_trains_and_then_it_is_interrupted(files, small_disk, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    words = ["train", "classifier", files / "train.svm", *RUN[:-1], 10**7, "--output", small_disk / "m", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "hogwild", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert any("epoch 2/" in line for line in run.stderr)
        fill(small_disk)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 1, err
    found = json.loads(out)
    assert found["reason"] == "stopped"
    assert found["output"].startswith(str(tmp_path / "temporary" / "hogwild-rescued-"))
    (error,) = [line for line in err.splitlines() if "error" in line]
    assert "No space left" in error
    assert found["output"] in error
    assert f"--output {found['output']} --resume" in err.splitlines()[-1]
    assert load_model(found["output"]).program.name == "linear"
    assert os.path.isdir(found["output"] + ".checkpoint")
    assert os.listdir(small_disk) == ["filler"]


def test_a_disk_that_is_full_for_a_while_costs_checkpoints_only(files, small_disk, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN[:-1], 10**7, "--output", small_disk / "m"]
    with subprocess.Popen(
        [sys.executable, "-m", "hogwild", *map(str, words), "--checkpoint-every", "1epoch"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        for line in run.stderr:
            if "without this checkpoint" in line:
                break
            if "epoch " in line:
                fill(small_disk)  # again and again: a checkpoint gives room back
        assert line.startswith("note: ")
        os.unlink(small_disk / "filler")
        assert any("epoch" in line for line in run.stderr)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert load_model(small_disk / "m").program.name == "linear"
    assert (small_disk / "m.checkpoint").is_dir()
