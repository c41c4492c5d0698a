"""A cache directory of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from hogwild.kernels.jit import code_cache


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache directory."""
    directory = tmp_path / "cache-home"
    # First, as it is found by way of HOGWILD_CACHE: compiled code stays where it is, for children too.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(code_cache().parent))
    monkeypatch.setenv("HOGWILD_CACHE", str(directory))
    return directory
