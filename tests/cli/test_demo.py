"""The demo works without a terminal and tells the truth."""

from __future__ import annotations

import re

SMALL = ("demo", "--rows", 2000, "--epochs", 2, "--threads", 2)


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
