"""The demo works without a terminal and tells the truth."""

from __future__ import annotations

import re

import pytest

from hogwild.cli.observe.demo import ASKED, DemoConfig, Options, show_words
from hogwild.config import ShowConfig

SMALL = ("demo", "--rows", 2000, "--epochs", 2, "--threads", 2, "--words", 30_000, "--dim", 16)


def test_the_demo_ends_with_a_table(hogwild):
    said = hogwild(*SMALL)
    assert said.code == 0
    for title in ("mode", "speed-up", "test accuracy", "gradient errors"):
        assert title in said.out
    rows = [line.split() for line in said.out.splitlines() if line.strip().startswith(("serial", "hogwild"))]
    assert [row[0] for row in rows] == ["serial", "hogwild"]
    assert rows[0][3] == "1.00x"
    assert all(re.fullmatch(r"\d+\.\d\d%", row[-1]) for row in rows)
    assert "epoch 2/2" in said.err
    assert "\x1b" not in said.out + said.err
    assert "epoch 20/20" in said.err
    asked = [line.split()[0] for line in said.out.partition("nearest in use")[2].splitlines() if ", " in line]
    assert asked
    assert set(asked) <= set(ASKED)
    assert re.search(r"Learnt from 3\d,\d{3} words of documentation at [\d.]+[kM]? words/s", said.out)


def test_the_demo_as_json(hogwild):
    said = hogwild(*SMALL, "--json", "--quiet")
    found = said.json
    assert said.err == ""
    serial, free = found["modes"]
    assert (serial["mode"], serial["threads"]) == ("serial", 1)
    assert (free["mode"], free["threads"]) == ("hogwild", 2)
    assert found["speed_up"] > 0
    assert 0 <= found["error_rate"] <= 1
    assert found["trace"]["gradients"] == 2000
    assert abs(serial["accuracy"] - free["accuracy"]) < 0.1
    assert found["truth"] > serial["accuracy"] - 0.05
    words = found["words"]
    assert 30_000 <= words["words"] < 40_000
    assert words["dim"] == 16
    assert {"gather", "compile", "train"} == set(words["seconds"])
    assert all(len(near) == 5 and word not in near for word, near in words["neighbors"].items())


@pytest.mark.full
def test_words_that_are_used_alike_are_neighbours():
    """A part of the text, at the dimension of the other tests: what the demonstration shows makes sense."""
    options = Options(DemoConfig(dim=16, threads=2, words=300_000), ShowConfig(quiet=True))
    near = show_words(options, lambda line: None)["neighbors"]
    expected = {
        "file": {"files", "filename", "opened", "open", "read", "gzip"},
        "thread": {"threads", "lock", "acquire", "acquired", "process"},
        "error": {"errors", "exception", "failure", "occurred", "warning"},
        "socket": {"connection", "connected", "transport", "client", "server", "pipe"},
    }
    right = [word for word, some in expected.items() if some & set(near[word])]
    assert len(right) >= 3, near  # other versions of Python have other text


def test_the_demo_without_words(hogwild):
    said = hogwild(*SMALL[:-4], "--words", 0, "--json", "--quiet")
    assert said.json["words"] is None


def test_a_python_without_sources(monkeypatch):
    monkeypatch.setattr("hogwild.feeds.synthetic.docstrings.documentation", lambda most: [])
    said = []
    assert show_words(Options(), said.append) is None
    assert "none" in said[-1]
