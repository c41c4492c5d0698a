"""A cache directory of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache directory."""
    directory = tmp_path / "cache-home"
    monkeypatch.setenv("HOGWILD_CACHE", str(directory))
    return directory
