"""Ctrl-C, SIGTERM, SIGHUP and --resume, with real processes and real signals."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time

import pytest

from hogwild.cli import interrupt
from hogwild.cli import main as frame
from hogwild.cli.interrupt import Interrupts
from hogwild.errors import ModelError
from hogwild.programs.store import load_model

RUN = ("--mode", "serial", "--lr", "0.2")


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "hogwild", *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def read_until(process, what):
    """Lines of standard error up to the one that holds `what`."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if what in line:
            return lines
    raise AssertionError(f"no {what!r} in {''.join(lines)}")


def bytes_in(pipe):
    """Written and not yet read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_saves_and_says_how_to_go_on(number, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN, "--epochs", 10**7, "--output", tmp_path / "m"]
    run = start(*words, "--json")
    read_until(run, "epoch 2/")
    run.send_signal(number)
    time.sleep(0.03)
    run.send_signal(number)  # as `timeout` does: one to the process and one to its group
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    found = json.loads(out)
    assert found["reason"] == "stopped"
    assert found["samples"] >= 4000
    assert "Traceback" not in err
    assert "--resume to go on" in err.splitlines()[-1]
    assert load_model(tmp_path / "m").program.name == "linear"
    assert (tmp_path / "m.checkpoint").is_dir()


def test_a_signal_without_an_output(files):
    run = start("train", "classifier", files / "train.svm", *RUN, "--epochs", 10**7)
    read_until(run, "epoch 2/")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "nothing was saved without --output" in err


def test_a_signal_while_nothing_runs_yet():
    run = start("train", "classifier", "-")     # waits for standard input, of which only the beginning is written
    run.stdin.write("1 1:1\n")
    run.stdin.flush()
    while bytes_in(run.stdin):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in err


def test_resume_after_a_signal_equals_a_run_without(hogwild, files, tmp_path):
    # Enough epochs that the signal comes in time, few enough to be run three times.
    words = ("train", "classifier", files / "train.svm", *RUN, "--epochs", 300)
    run = start(*words, "--output", tmp_path / "stopped")
    read_until(run, "epoch 3/")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    if run.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert run.returncode == 130
    said = hogwild(*words, "--output", tmp_path / "stopped", "--resume", "--json")
    assert said.code == 0
    assert said.json["epochs"] == 300
    assert any(note.startswith("goes on after ") for note in said.json["notes"])
    assert hogwild(*words, "--output", tmp_path / "whole", "--quiet").code == 0
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("stopped", "whole"))
    assert one == other


def test_resume_without_a_checkpoint_starts(hogwild, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN, "--epochs", 2, "--output", tmp_path / "m"]
    said = hogwild(*words, "--resume")
    assert said.code == 0
    assert "there is no checkpoint yet" in said.err


def test_resume_of_a_finished_run_says_the_same_again(hogwild, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN, "--epochs", 2, "--output", tmp_path / "m", "--json"]
    words += ["--checkpoint-every", "1epoch", "--watch", "norm(weights)"]
    first, second = hogwild(*words), hogwild(*words, "--resume")
    assert "finished before; nothing is left to do" in second.err
    assert second.err.count("norm(weights)") == 1
    assert first.json["metrics"] == second.json["metrics"]
    assert second.json["samples"] == 4000
    assert second.json["throughput"]["samples_per_second"] == pytest.approx(4000 / second.json["seconds"]["train"])


def test_resume_of_another_run_is_refused(hogwild, refused, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN, "--output", tmp_path / "m"]
    assert hogwild(*words, "--epochs", 2, "--checkpoint-every", "1epoch").code == 0
    before = (tmp_path / "m" / "weights.safetensors").read_bytes()
    assert "epochs was 2, is 1" in refused(*words, "--epochs", 1, "--resume")
    assert (tmp_path / "m" / "weights.safetensors").read_bytes() == before


@pytest.mark.parametrize("schedule", ["constant", "inverse"])
def test_a_finished_run_goes_on_to_more_epochs(hogwild, files, tmp_path, schedule):
    """Where the rate does not depend on the number of epochs: the same bits as a run of that many."""
    words = ["train", "classifier", files / "train.svm", *RUN, "--l2", "1e-3", "--schedule", schedule]
    short = hogwild(*words, "--epochs", 2, "--output", tmp_path / "m", "--checkpoint-every", "1epoch")
    assert short.code == 0
    more = hogwild(*words, "--epochs", 4, "--output", tmp_path / "m", "--resume", "--json")
    assert more.json["epochs"] == 4
    assert more.json["samples"] == 8000
    assert hogwild(*words, "--epochs", 4, "--output", tmp_path / "whole").code == 0
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("m", "whole"))
    assert one == other


def test_more_epochs_and_a_rate_that_falls_to_their_end(hogwild, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN, "--output", tmp_path / "m"]
    assert hogwild(*words, "--epochs", 2, "--checkpoint-every", "1epoch").code == 0
    more = hogwild(*words, "--epochs", 4, "--resume", "--json")
    (note,) = [note for note in more.json["notes"] if "epochs instead of" in note]
    half = float(RUN[RUN.index("--lr") + 1]) / 2
    assert note == (
        f"4 epochs instead of 2: the learning rate goes on as that of a run of 4 epochs, from {half:g} here."
    )


def test_killed_at_any_moment_the_output_is_whole_and_goes_on(hogwild, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", *RUN, "--epochs", 10**7, "--output", tmp_path / "m"]
    words += ["--valid", files / "test.svm", "--checkpoint-every", "1epoch"]
    for epochs in (2, 9):
        run = start(*words, "--resume")
        read_until(run, f"epoch {epochs}/")
        run.kill()
        run.communicate(timeout=60)
        assert load_model(tmp_path / "m").metrics["accuracy"] > 0.5
    run = start(*words, "--resume")
    assert any("goes on after" in line for line in read_until(run, "samples to visit"))
    os.kill(run.pid, signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.checkpoint"]


class Clock:
    """A clock that is set by hand, in the place of `time.monotonic`; `then` happens when it is looked at."""

    now = 1000.0

    def __init__(self, monkeypatch, then=lambda: None):
        self.then = [then]
        monkeypatch.setattr(interrupt, "time", self)

    def monotonic(self):
        if self.then:
            self.then.pop()()
        return self.now


@pytest.fixture
def ended(monkeypatch):
    """Exit codes with which the process would have ended at once."""
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


def test_a_second_signal_after_a_second_is_immediate(ended, monkeypatch):
    clock = Clock(monkeypatch)
    with Interrupts() as interrupts:
        interrupts.arm()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        clock.now += 0.99
        signal.raise_signal(signal.SIGTERM)  # the same interrupt
        assert ended == []
        clock.now += 0.02
        signal.raise_signal(signal.SIGHUP)
        assert ended == [130]
        clock.now += 2.0


def test_a_signal_while_another_is_handled_is_the_same(ended, monkeypatch):
    Clock(monkeypatch, then=lambda: signal.raise_signal(signal.SIGTERM))
    with Interrupts() as interrupts:
        interrupts.arm()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        assert ended == []
        interrupts._first = 0.0


def test_the_second_of_two_that_are_one_may_come_when_all_is_over(monkeypatch):
    clock, seen = Clock(monkeypatch), []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), Interrupts():
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert seen == []
        clock.now += 2.0
        signal.raise_signal(signal.SIGTERM)
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_was_to_outlive_its_terminal_does(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        with Interrupts() as interrupts:
            interrupts.arm()
            signal.raise_signal(signal.SIGHUP)
            assert not interrupts.asked
    finally:
        signal.signal(signal.SIGHUP, before)


CALLBACK = ctypes.CFUNCTYPE(None)


@pytest.mark.parametrize("broken", [True, False])
def test_a_signal_while_the_compiler_calls_back_is_not_lost(broken, hogwild, monkeypatch):
    def command(argv):
        CALLBACK(lambda: signal.raise_signal(signal.SIGINT))()  # Python cannot raise through foreign code
        if broken:
            raise RuntimeError("no compiled object yet")
        time.sleep(20)
        return 0

    monkeypatch.setattr(frame, "_dispatch", command)
    began = time.monotonic()
    assert hogwild("demo") == (130, "", "hogwild: interrupted.\n")
    assert time.monotonic() - began < 10
    assert sys.unraisablehook.__module__ != "hogwild.cli.interrupt"


def test_signals_are_put_back(monkeypatch):
    clock = Clock(monkeypatch)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        assert signal.getsignal(signal.SIGINT) is not before[0]
        with pytest.raises(KeyboardInterrupt):      # not armed: there is nothing to save yet
            signal.raise_signal(signal.SIGINT)
        clock.now += 2.0
    assert not interrupts.asked
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_model_that_is_being_replaced_is_never_missing(files, tmp_path):
    run = start(
        "train", "classifier", files / "train.svm", "--valid", files / "test.svm", *RUN, "--epochs", 10**7, "--output",
        tmp_path / "m", "--checkpoint-every", "1epoch",
    )  # fmt: skip
    read_until(run, "epoch 1/")
    reader = threading.Thread(target=run.stderr.read)  # else the run waits for us when the pipe is full
    reader.start()
    seen, problems, losses = 0, [], set()
    while len(losses) < 2 or seen < 50:
        assert run.poll() is None
        try:
            losses.add(load_model(tmp_path / "m").metrics["loss"])
            seen += 1
        except ModelError as error:
            problems += [error] if seen else []     # before the first save there may be none
    run.send_signal(signal.SIGINT)
    reader.join()
    assert run.wait(timeout=60) == 130
    assert problems == []
