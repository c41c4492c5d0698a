"""hogwild.simulate: predictions, what they rest on, real runs beside them; what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hogwild
from hogwild.errors import ConfigError
from hogwild.executor.virtual.measure import load_of
from hogwild.machine import cores
from hogwild.observe.logs import plain


def _data(rows: int = 800) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(5).normal(size=(rows, 6)).astype(np.float32)
    return X, X[:, 0] > X[:, 1]


@pytest.mark.full
def test_predictions_and_real_runs_beside_them():
    X, y = _data()
    told = []
    found = hogwild.simulate(
        hogwild.Linear(), (X[:600], y[:600]), valid=(X[600:], y[600:]), workers=(1, 16), compare=(1, 2), epochs=3,
        lr=0.05, tell=lambda event, outcome: told.append((event.kind, outcome is not None)),
    )  # fmt: skip
    one, many = found.predictions
    assert (one.workers, many.workers, many.cores) == (1, 16, 16)
    assert one.losses == pytest.approx(found.serial.losses, rel=1e-5)
    assert one.error_rate == 0 < many.error_rate <= 1
    assert one.speed_up == pytest.approx(1)
    assert 0.1 < many.speed_up <= 16
    assert all(each.gradients == 3 * 600 for each in (one, many, found.serial))
    assert many.loss == many.metrics["loss"]
    assert [pair.real.workers for pair in found.compared] == [1, 2]
    for pair in found.compared:  # held-out loss of such a small problem hardly depends on the interleaving
        assert pair.errors["loss"] == pytest.approx(0, abs=0.1)
        assert pair.predicted.cores == cores()
    assert found.pace.visit > 0
    assert json.loads(json.dumps(plain(found.record()), allow_nan=False))["compared"][0]["real"]["workers"] == 1
    assert told.count(("finished", True)) == 1 + 2 + 1 + 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"workers": (0,)}, "workers has 0"), ({"workers": (257,)}, "workers has 257"),
        ({"workers": ()}, "workers is empty"), ({"workers": (2, 2)}, "a number twice"),
        ({"workers": (True,)}, "workers has True"), ({"compare": (0,)}, "compare has 0"),
        ({"delay": -1.0}, "delay is -1.0"), ({"lost": 2.0}, "lost is 2.0"), ({"mode": "serial"}, "mode is serial"),
        ({"sharing": "replica"}, "sharing is replica"), ({"threads": 4}, "threads is 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_simulated(options, why):
    with pytest.raises(ConfigError, match=why):
        hogwild.simulate(hogwild.Linear(), _data(), **options)


def test_the_load_beside_a_run_is_what_it_did_not_get():
    there = cores()
    assert load_of(there, float(there)) == 0
    assert load_of(there, there / 2) == pytest.approx(there)
    assert load_of(2 * there, there / 2) == pytest.approx(2 * there)
