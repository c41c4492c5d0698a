"""Categories to ids: each with one of its own, in order of first appearance, or hashed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hogwild.arrays import Ids
from hogwild.errors import InputError
from hogwild.feeds.frames import Codes, string_buffers
from hogwild.feeds.hashed import Hashing
from hogwild.kernels.hashing import hash_bytes, hash_strings

_MOST = 2**31 - 1


class Vocabulary:
    """Gives each column=value an id, from `first` on, row by row and column by column as they appear.

    Parameters
    ----------
    columns
        Names of the columns.
    first
        The first id.
    known
        Entries of an earlier vocabulary: then no new one is added, and what is not among them has id -1.
    """

    def __init__(self, columns: Sequence[str], first: int, known: Sequence[str] | None = None) -> None:
        self.first = first
        self.fixed = known is not None
        self.unseen = 0
        self._prefixes = [f"{_escaped(name)}=" for name in columns]
        self._ids: list[dict[str, int]] = [{} for _ in columns]
        self._entries: list[str] = list(known or ())
        columns_of = {prefix: k for k, prefix in enumerate(self._prefixes)}
        for place, entry in enumerate(self._entries):
            cut = _prefix_length(entry)
            self._ids[columns_of[entry[:cut]]][entry[cut:]] = first + place

    def __len__(self) -> int:
        return len(self._entries)

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
            self.unseen += int(np.count_nonzero((table[:, k] < 0) & (column.codes >= 0)))
        return table

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

    def __init__(self, columns: Sequence[str], first: int, hashing: Hashing) -> None:
        self.first = first
        self.bits = hashing.bits
        self._seeds = [self._seed(name, hashing.seed) for name in columns]

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
