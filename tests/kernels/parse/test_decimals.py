"""Numbers to text, and vectors to files and back, also with the compiler off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.parse.decimals import WIDEST, write_number
from places import SOURCE

SCRIPT = """
import sys, numpy as np
from hogwild import Vectors
vectors = Vectors(["a b", "c"], np.array([[0.1, -3e20, 1e-30], [5, 0, 12345.678]], np.float32))
for name in ("v.vec", "v.bin"):
    vectors.save(name)
    found = Vectors.load(name)
    assert found.words == ("a_b", "c"), found.words
    assert (found.matrix == vectors.matrix).all()
assert open("v.vec").read() == "2 3\\na_b 0.1 -3e+20 1e-30\\nc 5 0 12345.678\\n"
"""


def written(value: float) -> str:
    out = np.zeros(WIDEST, np.uint8)
    return out[: write_number(np.float32(value), out, 0)].tobytes().decode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.0, "0"), (1, "1"), (-1, "-1"), (0.1, "0.1"), (-0.25, "-0.25"), (100, "100"),
        (1e15, "1000000000000000"),
        (1e16, "1e+16"), (0.00001, "0.00001"), (1e-6, "1e-06"), (1.5e-7, "1.5e-07"), (16777216, "16777216"),
        (3.4028235e38, "3.4028235e+38"), (-1e-45, "-1e-45"), (0.3, "0.3"), (999999.9, "999999.9"),
        (1 / 3, "0.33333334"),
    ],
)  # fmt: skip
def test_numbers_are_short(value: float, text: str) -> None:
    assert written(value) == text


def test_every_kind_of_float32_comes_back() -> None:
    rng = np.random.default_rng(1)
    powers = (10.0 ** np.arange(-45, 39)).astype(np.float32)
    values = np.concatenate([
        rng.integers(0, 2**32, 300 if OFF else 30_000, dtype=np.uint32).view(np.float32),
        rng.normal(size=300 if OFF else 10_000).astype(np.float32), powers, np.nextafter(powers, np.float32(0)),
        np.nextafter(powers, np.float32(np.inf)),
    ])  # fmt: skip
    for value in values[np.isfinite(values)]:
        text = written(value)
        assert np.float32(float(text)) == value
        assert len(text) <= WIDEST


@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_the_interpreter_does_the_same(tmp_path: Path) -> None:
    source = SOURCE
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(source), "HOGWILD_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
