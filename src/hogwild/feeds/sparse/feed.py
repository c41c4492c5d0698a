"""A feed: samples as arrays, with what is needed to name them again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hogwild.arrays import AnyRows, DenseRows, Ids, Offsets, check_rows
from hogwild.errors import InputError, worded
from hogwild.feeds.held_out import chosen, entries_of, marked
from hogwild.messages import counted

_OF_ENTRIES = ("offsets", "ids", "values", "slots")  # arrays that have no entry a row


class kept:  # noqa: N801
    """A number that is computed once for each instance. No lock, as `cached_property` has until Python 3.12: whoever
    forks while another thread computes it would find that taken for ever."""

    def __init__(self, compute: Callable[[Any], int]) -> None:
        self._compute, self._name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))  # from now on found there


@dataclass(frozen=True, repr=False)
class Feed:
    """Samples that a program trains on or predicts, in memory or memory-mapped from the cache.

    original: the feature id of each rank when ids are ranked by frequency (then hot features are the low ids);
    None when the ids in `samples` are the features' own.
    labels: names of the classes when labels are words (targets are then their indices); empty when numeric.
    schema: what turns another file into the same ids (columns, vocabularies, hashing); JSON values only.
    notes: what the reader of the file should know, one sentence each, with counts.
    fingerprint: identifies content and options; empty for arrays in memory.
    lines: the line (from 1) that each row stood on; files: (name, first row) of each file. None and empty in memory.
    labelled: False where no labels were given, and all targets are 0.
    sets: where rows have several labels, those of each target: places in `labels`, in rising order. Empty for one each.
    """

    samples: AnyRows
    features: int
    original: Ids | None = None
    labels: tuple[str, ...] = ()
    schema: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = "arrays"
    fingerprint: str = ""
    lines: Offsets | None = None
    files: tuple[tuple[str, int], ...] = ()
    labelled: bool = True
    sets: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(worded(note) for note in self.notes))

    def __len__(self) -> int:
        return len(self.samples.targets)

    def __repr__(self) -> str:
        parts = [f"{len(self):,} samples", f"{self.features:,} features", f"{self.nonzeros:,} nonzeros"]
        if self.slots:
            parts.append(counted(len(self.slots), "slot"))
            parts += [counted(len(self.dense), "dense column")] if self.dense else []
        if self.labels:
            parts.append(f"{len(self.labels)} {'labels, several a row' if self.sets else 'classes'}")
        return f"<Feed of {self.source}: {', '.join(parts)}{'' if self.labelled else ', not labelled'}>"

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the slots of its samples; none where samples have no slots."""
        return tuple(self.schema.get("slots", ()))

    @property
    def dense(self) -> tuple[str, ...]:
        """Names of the columns of numbers beside the slots; all columns of a matrix."""
        if isinstance(self.samples, DenseRows):
            return tuple(self.schema.get("numeric") or map(str, range(self.features)))
        return tuple(self.schema.get("dense", ()))

    @property
    def nonzeros(self) -> int:
        """Features over all samples (for dense samples: cells of the matrix)."""
        if isinstance(self.samples, DenseRows):
            return int(self.samples.matrix.size)
        return len(self.samples.ids)

    @kept
    def longest(self) -> int:
        """Features of the longest sample."""
        if isinstance(self.samples, DenseRows):
            return int(self.samples.matrix.shape[1])
        return int(np.diff(self.samples.offsets).max(initial=0))

    def place(self, row: int) -> str:
        """Where a row came from, for error messages."""
        if self.lines is None:
            return f"{self.source}: row {row + 1}"
        name, _ = self.files[bisect_right(self.files, row, key=lambda file: file[1]) - 1]
        return f"{name}:{int(self.lines[row])}"

    def one_label(self, what: str) -> Feed:
        """Raise InputError where rows have several labels, which such a model cannot learn; else the feed itself."""
        if self.sets:
            raise InputError(f"{self.source}: rows have several labels, which {what} cannot learn; use a linear model"
                             " or a text classifier (`hogwild train classifier`).")  # fmt: skip
        return self

    @property
    def away(self) -> bool:
        """Whether its rows are with other processes, and only labels, weights and sizes are here."""
        return False

    @property
    def parts(self) -> int:
        """Rows."""
        return len(self)

    def part(self, rows: Offsets, mark: str) -> Feed:
        """Some of the rows, under the names of all."""
        pick, fields = chosen(rows), self.samples._asdict()
        taken = {name: array[pick] for name, array in fields.items() if name not in _OF_ENTRIES}
        if "offsets" in fields:
            offsets, entries = entries_of(fields["offsets"], rows)
            taken["offsets"] = offsets
            taken.update({name: fields[name][entries] for name in _OF_ENTRIES if name in fields and name != "offsets"})
        files = tuple((name, int(np.searchsorted(rows, first))) for name, first in self.files)
        return replace(
            self, samples=type(self.samples)(**taken), notes=(), fingerprint=marked(self.fingerprint, mark),
            lines=None if self.lines is None else self.lines[pick], files=files,
        )  # fmt: skip

    def check(self) -> Feed:
        """Check all that compiled code will trust; returns the feed itself."""
        check_rows(self.samples, self.features)
        return self
