"""A cache directory of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hogwild.kernels.jit  # noqa: F401  # fixes where compiled code is kept, before the cache moves


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache directory."""
    directory = tmp_path / "cache-home"
    monkeypatch.setenv("HOGWILD_CACHE", str(directory))
    yield directory
