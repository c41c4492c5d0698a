"""`hogwild doctor`."""

from __future__ import annotations

from hogwild.machine import cores


def test_what_it_tells_and_its_json(hogwild):
    told = hogwild("doctor", "--no-speeds").out
    assert f"{cores()} cores" in told
    assert "linear algebra: " in told
    assert "kept in " in told
    found = hogwild("doctor", "--no-speeds", "--json").json
    assert found["speeds"] == []
    assert found["measured"]["1"]["memory"] > 0
