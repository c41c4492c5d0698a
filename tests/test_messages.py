"""What people see, and streams that nobody can read any more."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import sys

import pytest

from hogwild.executor.readers.display import show_progress
from hogwild.messages import Stream, data_output, printable, printable_json


class Terminal(io.StringIO):
    """Looks like one."""

    def isatty(self):
        return True


@contextlib.contextmanager
def dying(descriptor):
    """A stream that cannot be written to, nor be closed without an error."""
    stream = os.fdopen(descriptor, "w")
    yield stream
    with contextlib.suppress(OSError):
        stream.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 語 🙂 a\u200db", "plain é 語 🙂 a\u200db"),
        ("\x1b]0;x\x07\r\n\t", "\\x1b]0;x\\x07\\r\\n\\t"),
        ("\x7f\x85\x9b", "\\x7f\\x85\\x9b"),
        ("\u202e\u2066\u2028", "\\u202e\\u2066\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown


def test_json_stays_the_same():
    value = "é\x7f\x9b\u202e\udcff"
    text = printable_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert printable(text) == text


def test_data_on_a_terminal_keeps_its_columns(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    stream = data_output()
    stream.write("a\x1b[31m\té".encode()[:-1])  # cut inside a character
    stream.write("é\n".encode()[1:] + b"\xff\n")
    assert sys.stdout.getvalue() == "a\\x1b[31m\té\n\\xff\n"


def test_a_stream_falls_silent_and_keeps_why():
    reading, writing = os.pipe()
    os.close(reading)
    with dying(writing) as inner:
        stream = Stream(inner)
        print("nobody reads this", file=stream, flush=True)
        print("nor this", file=stream, flush=True)
        assert isinstance(stream.problem, BrokenPipeError)


def test_the_bar_outlives_its_terminal():
    master, slave = pty.openpty()
    with dying(slave) as stream, show_progress(stream=stream) as display:
        os.close(master)
        display.phase("working")
        display.say("nobody sees this")


def test_lines_outlive_their_reader(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with dying(writing) as stream, show_progress(stream=stream) as display:
        display.say("nobody sees this")
    monkeypatch.setattr(sys, "stderr", None)
    with show_progress() as display:
        display.say("nor this")
