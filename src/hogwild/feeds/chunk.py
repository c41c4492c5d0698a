"""What an encoder yields: a run of rows as arrays, and at the end what holds for the whole file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hogwild.arrays import Floats, Ids, Offsets


class Chunk(NamedTuple):
    """Rows in the order of the file. `values` is empty when all are 1; lines[i] is the line number of row i."""

    lengths: Offsets
    ids: Ids
    values: Floats
    targets: Floats
    lines: Offsets


@dataclass(frozen=True)
class Summary:
    """What an encoder knows when all files are read; see Feed for the meaning of the fields."""

    features: int
    labels: tuple[str, ...] = ()
    schema: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
