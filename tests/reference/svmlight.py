"""A slow, obvious twin of the svmlight parser: one line at a time, with Python's own float."""

from __future__ import annotations

import numpy as np

Row = tuple[float, list[int], list[float]]


def parse_line(line: str) -> Row | None:
    """Label, ids and values of a line; None for a blank or a comment. Ids are sorted."""
    words = line.partition("#")[0].split()
    if not words:
        return None
    entries = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
    pairs = sorted((int(name), float(np.float32(float(value)))) for name, value in entries)
    return float(np.float32(float(words[0]))), [name for name, _ in pairs], [value for _, value in pairs]


def parse_text(text: str) -> list[Row]:
    """All rows."""
    return [row for line in text.split("\n") if (row := parse_line(line)) is not None]
