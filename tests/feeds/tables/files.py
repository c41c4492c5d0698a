"""A small table, and the reading of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hogwild.config import FeedConfig
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed

BITS = 14
PETS = "label,age,kind,weight\nyes,3,cat,4.5\nno,,dog,0\nyes,1,cat,1e1\nno,2,,-2\n"


def read(path: Path, lines: str | bytes, schema: dict[str, Any] | None = None, **options: Any) -> Feed:
    """Write the lines to the file and read it as CSV."""
    path.write_bytes(lines.encode() if isinstance(lines, str) else lines)
    return open_feed(path, FeedConfig(**{"format": "csv", "bad_share": 1.0, "hash_bits": BITS, **options}), schema)


def raw(path: Path, lines: str | bytes, **options: Any) -> Feed:
    """The same with numbers as they are."""
    return read(path, lines, scale=False, **options)
