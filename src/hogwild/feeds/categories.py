"""Categories to ids: each with one of its own, in order of first appearance, or hashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Ids
from hogwild.errors import InputError
from hogwild.feeds.frames import Codes, string_buffers
from hogwild.feeds.hashed import Hashing
from hogwild.feeds.labels import counted
from hogwild.kernels.hashing import hash_bytes, hash_strings

_MOST = 2**31 - 1


class Cut(NamedTuple):
    """Values that occur less often than `min_count` become one; shared: the same value in two columns is one."""

    min_count: int = 1
    shared: bool = False


class Vocabulary:
    """Gives each column=value an id, from `first` on, row by row and column by column as they appear.

    Parameters
    ----------
    columns
        Names of the columns.
    first
        The first id.
    known
        Entries of an earlier vocabulary: then no new one is added, and what is not among them has id -1, or that of
        the rare values of its column if there is a cut-off.
    cut
        Values that occur less often become one of their column, and whether columns share their values.
    """

    def __init__(
        self, columns: Sequence[str], first: int, known: Sequence[str] | None = None, cut: Cut | None = None
    ) -> None:
        cut = cut or Cut()
        self.first = first
        self.fixed = known is not None
        self.unseen = 0
        self.min_count = cut.min_count
        self.groups = min(len(columns), 1) if cut.shared else len(columns)
        self._prefixes = ["=" if cut.shared else f"{_escaped(name)}=" for name in columns]
        ids: list[dict[str, int]] = [{} for _ in range(self.groups)]
        self._ids = [ids[min(k, self.groups - 1)] for k in range(len(columns))]
        self._entries: list[str] = list(known or ())
        self._counts = np.zeros(0, np.int64)
        self._rare = (0, 0)  # values that are rare, and how often they occur
        columns_of = {prefix: k for k, prefix in enumerate(self._prefixes)}
        for place, entry in enumerate(self._entries):
            end = _prefix_length(entry)
            self._ids[columns_of[entry[:end]]][entry[end:]] = first + place

    def __len__(self) -> int:
        return len(self._entries) + (self.groups if self.min_count > 1 else 0)

    def entries(self) -> list[str]:
        r"""`column=value` for each id in order; `=` and `\` inside a column's name are written `\=` and `\\`."""
        return self._entries

    def ids(self, columns: Sequence[Codes], rows: int) -> Ids:
        """For each row and column its id, or -1 where there is none."""
        lists = [column.words.to_pylist() for column in columns]
        if not self.fixed:
            self._add(columns, lists)
        table = np.full((rows, len(columns)), -1, np.int32)
        for k, column in enumerate(columns):
            found = np.array([*(self._ids[k].get(word, -1) for word in lists[k]), -1], np.int32)
            table[:, k] = found[column.codes]  # code -1 is the last place
            unseen = (table[:, k] < 0) & (column.codes >= 0)
            self.unseen += int(np.count_nonzero(unseen))
            if self.min_count > 1:
                table[unseen, k] = self.first + len(self._entries) + min(k, self.groups - 1)
        if self.min_count > 1 and not self.fixed:
            counts = np.bincount(table[table >= 0] - self.first, minlength=len(self._entries))
            counts[: len(self._counts)] += self._counts
            self._counts = counts
        return table

    def finish(self) -> Ids | None:
        """When all is read: the final id of each that was given; None if they are final."""
        if self.fixed or self.min_count == 1:
            return None
        often = self._counts >= self.min_count
        self._rare = (int(np.count_nonzero(~often)), int(self._counts[~often].sum()))
        places = {prefix: min(k, self.groups - 1) for k, prefix in enumerate(self._prefixes)}
        columns = [places[entry[: _prefix_length(entry)]] for entry in self._entries]
        kept = self.first + np.cumsum(often) - 1
        rare = self.first + int(often.sum()) + np.array(columns, np.int64)
        self._entries = [entry for entry, keep in zip(self._entries, often.tolist(), strict=True) if keep]
        return np.concatenate((np.arange(self.first), np.where(often, kept, rare))).astype(np.int32)

    def notes(self) -> list[str]:
        """What to tell the user."""
        if self._rare[0]:
            number, fields = self._rare[0], counted(self._rare[1], "field")
            categories = f"{number:,} {'category' if number == 1 else 'categories'}"
            seen = f"seen less than {self.min_count} times ({fields})"
            return [f"{categories} {seen} are the rare feature of their column."]
        if self.fixed and self.unseen and self.min_count > 1:
            return [f"{counted(self.unseen, 'field')} with categories that training saw rarely or never are the rare"
                    " feature of their column."]
        if self.fixed and self.unseen:
            return [f"{counted(self.unseen, 'field')} with categories that training never saw left out."]
        return []

    def _add(self, columns: Sequence[Codes], lists: list[list[str]]) -> None:
        new: list[tuple[int, int, str]] = []
        for k, column in enumerate(columns):
            known = self._ids[k]
            fresh = [place for place, word in enumerate(lists[k]) if word and word not in known]
            if fresh:
                rows = len(column.codes)
                firsts = np.full(len(lists[k]) + 1, rows)
                np.minimum.at(firsts, column.codes, np.arange(rows))
                new += [(int(firsts[place]), k, lists[k][place]) for place in fresh if firsts[place] < rows]
        for _, k, word in sorted(new):
            if word not in self._ids[k]:
                self._ids[k][word] = self.first + len(self._entries)
                self._entries.append(self._prefixes[k] + word)
        if self.first + len(self._entries) > _MOST:
            raise InputError("there are more categories than ids; hash them with --categories hash.")


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("=", "\\=")


def _prefix_length(entry: str) -> int:
    """Length of the column's name in an entry, with the sign after it."""
    place = 0
    while entry[place] != "=":
        place += 2 if entry[place] == "\\" else 1
    return place + 1


class HashedCategories:
    """Hashes each column=value to one of 2^bits ids, from `first` on. Keeps no state: threads may share it."""

    def __init__(self, columns: Sequence[str], first: int, hashing: Hashing, shared: bool = False) -> None:
        self.first = first
        self.bits = hashing.bits
        self._seeds = [self._seed("" if shared else name, hashing.seed) for name in columns]

    def ids(self, columns: Sequence[Codes], rows: int) -> Ids:
        """For each row and column its id, or -1 where there is none."""
        table = np.full((rows, len(columns)), -1, np.int32)
        for k, column in enumerate(columns):
            hashes = np.empty(len(column.words), np.uint64)
            with np.errstate(over="ignore"):
                hash_strings(*string_buffers(column.words), self._seeds[k], hashes)
            found = (hashes >> np.uint64(64 - self.bits)).astype(np.int32) + np.int32(self.first)
            table[:, k] = np.append(found, np.int32(-1))[column.codes]
        return table

    def _seed(self, name: str, seed: int) -> np.uint64:
        data = np.frombuffer(bytearray(name.encode()), np.uint8)
        with np.errstate(over="ignore"):
            return np.uint64(hash_bytes(data, 0, len(data), np.uint64(seed)))
