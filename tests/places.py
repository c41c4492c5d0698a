"""Where things are, for all tests: wherever a test moves to, it finds its data."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
DATA = ROOT.parent / "shared" / "data"
