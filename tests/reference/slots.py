"""Slow, obvious twins of the parsers of text with slots: one line at a time, with Python's own numbers.

A row is (target, entries, numbers): entries are (slot, key, value), numbers those of the dense columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Entry = tuple[str, int, float]
Row = tuple[float, list[Entry], list[float]]


def single(number: float) -> float:
    """Rounded to float32."""
    return float(np.float32(number))


def multislot(text: str, slots: Sequence[tuple[str, str]]) -> list[Row]:
    """Rows of MultiSlot text; slots are (name, kind): ids, dense, label, unused, or the name of a slot of ids."""
    return [_multislot_row(line.split(), slots) for line in text.split("\n") if line.split()]


def _multislot_row(words: list[str], slots: Sequence[tuple[str, str]]) -> Row:
    target, at = 0.0, 0
    keys: dict[str, list[int]] = {}
    values: dict[str, list[float]] = {}
    numbers: list[float] = []
    for name, kind in slots:
        count = int(words[at])
        given = words[at + 1 : at + 1 + count]
        assert len(given) == count
        at += 1 + count
        if kind == "ids":
            keys[name] = [int(word) for word in given]
            values.setdefault(name, [1.0] * count)
        elif kind == "dense":
            numbers += [single(float(word)) for word in given]
        elif kind == "label":
            target = single(float(given[0]))
        elif kind != "unused":
            values[kind] = [single(float(word)) for word in given]
    assert at == len(words)
    entries = [(name, key, value) for name in keys for key, value in zip(keys[name], values[name], strict=True)]
    return target, entries, numbers


def criteo(text: str) -> list[Row]:
    """Rows of Criteo's click logs."""
    rows = []
    for line in text.split("\n"):
        if not line.strip(" \r"):
            continue
        label, *fields = line.rstrip("\r").split("\t")
        counts = [float(field or 0) for field in fields[:13]]
        numbers = [single(math.copysign(math.log1p(abs(count)), count)) for count in counts]
        entries = [(f"C{k + 1}", int(field, 16), 1.0) for k, field in enumerate(fields[13:]) if field]
        rows.append((float(label), entries, numbers))
    return rows


def libffm(text: str) -> list[Row]:
    """Rows of libffm text, each sorted by field."""
    rows = []
    for line in text.split("\n"):
        words = line.split()
        if words:
            parts = [word.split(":") for word in words[1:]]
            entries = [(field, int(key), single(float(value))) for field, key, value in parts]
            rows.append((single(float(words[0])), sorted(entries, key=lambda entry: int(entry[0])), list[float]()))
    return rows
