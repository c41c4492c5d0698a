"""Standard streams that are closed, full or dead, limits of the system, odd names; with real processes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import resource
import subprocess
import sys
import warnings

import pytest

from hogwild.cli import main as frame
from hogwild.errors import HogwildWarning
from hogwild.programs.store import load_model

RUN = ("--mode", "serial", "--lr", "0.2", "--epochs", "2")
ODD = os.fsdecode(b"k\xff.svm")
EVIL = "a\x1b]0;x\x07\nb\u202e.svm"


def shell(line, *words):
    """Run a line of the shell in which "$@" is hogwild with these words; (code, out, err)."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "hogwild", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120, text=True, errors="surrogateescape")
    return done.returncode, done.stdout, done.stderr


def errors_of(err):
    assert "unexpected" not in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    return [line for line in err.splitlines() if "error" in line.lower()]


@pytest.mark.parametrize(
    ("line", "flags", "code", "said"),
    [
        ('"$@" 2>&-', (), 0, None),
        ('"$@" 2>/dev/full', (), 0, None),
        ('"$@" 2>&1 | head -1; exit ${PIPESTATUS[0]}', (), 1, None),
        ('"$@" >/dev/full', ("--json",), 1, "No space left on device"),
        ('"$@" >&-', (), 1, "it is closed"),
        ('"$@" <&- >&- 2>&-', (), 1, None),
    ],
)
def test_a_run_outlives_its_streams(line, flags, code, said, files, tmp_path):
    found = shell(line, "train", "classifier", files / "train.svm", *RUN, "--output", tmp_path / "m", *flags)
    assert found[0] == code, found
    errors = errors_of(found[2])
    assert len(errors) == (said is not None), found
    assert said is None or f"hogwild: error: standard output cannot be written to: {said}" in errors[0]
    assert load_model(tmp_path / "m").program.name == "linear"


def test_predictions_that_cannot_be_written_are_one_line(hogwild, files, tmp_path):
    assert hogwild("train", "classifier", files / "train.svm", *RUN, "--output", tmp_path / "m", "--quiet").code == 0
    code, _, err = shell('"$@" >/dev/full', "predict", tmp_path / "m", files / "train.svm", "--quiet")
    assert (code, err.count("\n")) == (1, 1)
    assert "standard output cannot be written to: No space left on device" in err
    line = '"$@" | true; exit ${PIPESTATUS[0]}'
    code, _, err = shell(line, "predict", tmp_path / "m", files / "train.svm", "--quiet")
    assert (code, err) == (1, "")  # the reader has gone: nobody needs to be told


def test_names_that_are_not_utf8(hogwild, files, tmp_path):
    (tmp_path / ODD).write_bytes((files / "train.svm").read_bytes())
    model = tmp_path / os.fsdecode(b"m\xfe")
    logs = tmp_path / os.fsdecode(b"l\xfd")
    said = hogwild("train", "classifier", tmp_path / ODD, *RUN, "--output", model, "--log-dir", logs, "--json")
    assert said.code == 0
    assert said.json["output"] == str(model)
    said.out.encode("utf-8")  # no half of a character
    assert hogwild("predict", model, tmp_path / ODD, "--output", tmp_path / os.fsdecode(b"p\xfc"), "--quiet").code == 0
    assert hogwild("evaluate", model, tmp_path / ODD).code == 0
    assert "k\\udcff.svm" in hogwild("cache", "list").out
    assert hogwild("cache", "list", "--json").json["entries"][0]["sources"][0].endswith(ODD)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_tables_whose_names_are_not_utf8(ending, hogwild, tmp_path):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({"label": [0, 1] * 20, "x": [0.0, 1.0] * 20})
    write = pyarrow.parquet.write_table if ending == "parquet" else pyarrow.feather.write_feather
    write(table, tmp_path / "plain")
    path = tmp_path / os.fsdecode(b"k\xff." + ending.encode())
    (tmp_path / "plain").rename(path)
    assert hogwild("train", "classifier", path, *RUN, "--quiet").code == 0


def test_json_is_json_in_every_encoding(monkeypatch):
    line = 'PYTHONIOENCODING=ascii "$@" | cat'
    _, out, err = shell(line, "make-dataset", "sparse", "--rows", "5", "--output", "/dev/null", "--json", "--seed", "1")
    assert json.loads(out)["output"] == "/dev/null", err
    _, _, err = shell('PYTHONIOENCODING=ascii "$@"', "evaluate", "é", "ü")
    assert "\\xe9: there is no such model" in err


def test_closed_standard_input(refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed; name a file" in refused("train", "classifier", "-", *RUN)


def test_a_deleted_working_directory(files, tmp_path):
    def gone(*words):
        (tmp_path / "gone").mkdir()
        return shell(f'cd {tmp_path}/gone && rmdir ../gone && "$@"', *words)

    whole = ("train", "classifier", files / "train.svm", *RUN, "--quiet", "--output")
    assert gone(*whole, tmp_path / "m") == (0, "", "")
    assert (tmp_path / "m" / "config.json").exists()
    for words, code in ((("train", "classifier", "x.svm"), 2), ((*whole, "m"), 1)):
        found = gone(*words)
        assert found[0] == code
        assert len(errors_of(found[2])) == 1
        assert "the current directory was deleted" in found[2]


@pytest.mark.parametrize(("limit", "value", "flag"), [("RLIMIT_NOFILE", 10, "-n"), ("RLIMIT_FSIZE", 4096, "-f")])
def test_limits_of_the_system_are_named(limit, value, flag, files, tmp_path):
    def lower():
        resource.setrlimit(getattr(resource, limit), (value, value))

    done = subprocess.run(
        [sys.executable, "-m", "hogwild", "train", "classifier", files / "train.svm", *RUN, "--output", tmp_path / "m"],
        check=False, preexec_fn=lower, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done
    assert len(errors_of(done.stderr)) == 1
    assert f"`ulimit {flag} " in done.stderr


def test_an_error_of_the_system_is_one_line(hogwild, monkeypatch):
    def command(argv):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), b"/x/\xff")

    monkeypatch.setattr(frame, "_dispatch", command)
    assert hogwild("demo") == (1, "", "hogwild: error: Permission denied: /x/\\udcff; check the permissions.\n")


def test_warnings_are_notes(hogwild, monkeypatch):
    def command(argv):
        for _ in range(2):
            warnings.warn("the cache is not used.", HogwildWarning, stacklevel=2)
        return 0

    monkeypatch.setattr(frame, "_dispatch", command)
    assert hogwild("demo", "--quiet") == (0, "", "note: the cache is not used.\n")


# -- terminals --

def on_terminal(*words):
    """All that a command writes where both its streams are a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "hogwild", *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave) as run:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):  # of Linux, when everybody else has closed it
            while piece := os.read(master, 1 << 16):
                said += piece
        os.close(master)
    return run.returncode, said.decode().replace("\r\n", "\n")


def test_names_are_escaped_on_a_terminal_only(tmp_path):
    words = ("train", "classifier", tmp_path / EVIL, "--quiet")
    code, said = on_terminal(*words)
    assert code == 2
    assert "a\\x1b]0;x\\x07\\nb\\u202e.svm does not exist" in said
    assert EVIL not in said
    assert f"{tmp_path / EVIL} does not exist" in shell('"$@"', *words)[2]


def test_words_are_escaped_on_a_terminal_only(tmp_path):
    (tmp_path / "words.vec").write_text("2 2\n\x1b[31mred 1 0\nb 0.5 1\n")
    words = ("neighbors", tmp_path / "words.vec", "b")
    code, said = on_terminal(*words)
    assert code == 0
    assert "\\x1b[31mred" in said
    assert "\x1b[31mred" not in said
    assert "\x1b[31mred" in shell('"$@"', *words)[1]


def test_the_bar_escapes_names(files, tmp_path):
    (tmp_path / EVIL).write_bytes((files / "train.svm").read_bytes())
    output = tmp_path / "m\x1b[32m"
    code, said = on_terminal("train", "classifier", tmp_path / EVIL, *RUN, "--output", output)
    assert code == 0
    assert "saved to " in said
    assert "m\\x1b[32m" in said
    assert "\x1b]0;" not in said
    assert "m\x1b[32m" not in said
    assert output.is_dir()
