"""Categories to ids: each with one of its own, in order of first appearance, or hashed; and ids of missing numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hogwild.arrays import Ids
from hogwild.errors import InputError
from hogwild.feeds.sparse.encoder import rare_notes
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.tables.frames import Bags, Codes, string_buffers
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.hashing import hash_seeded, hash_strings

_MOST = 2**31 - 1


class Cut(NamedTuple):
    """Values that occur less often than `min_count` become one; shared: the same value in two columns is one.

    rare: columns that had such values in training, by number (0 where they share them): values that were never seen are
    taken for these. None: all, as models had it before it was told.
    """

    min_count: int = 1
    shared: bool = False
    rare: tuple[int, ...] | None = None

    @classmethod
    def known(cls, schema: Mapping[str, Any]) -> Cut:
        """As a model has it."""
        rare = tuple(int(k) for k in schema["rare"]) if "rare" in schema else None
        return cls(schema.get("min_count", 1), schema.get("shared_ids", False), rare)


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
    numbers
        Names of the columns of numbers that have an id for missing ones: `column=`, with no value.
    """

    def __init__(
        self,
        columns: Sequence[str],
        first: int,
        known: Sequence[str] | None = None,
        cut: Cut | None = None,
        numbers: Sequence[str] = (),
    ) -> None:
        cut = cut or Cut()
        self.first = first
        self.fixed = known is not None
        self.unseen = self.left_out = 0  # of values not known: those taken for rare ones, and the others
        self.min_count = cut.min_count
        self.groups = min(len(columns), 1) if cut.shared else len(columns)
        self._prefixes = ["=" if cut.shared else f"{_escaped(name)}=" for name in columns]
        ids: list[dict[str, int]] = [{} for _ in range(self.groups)]
        self._ids = [ids[min(k, self.groups - 1)] for k in range(len(columns))]
        self._entries: list[str] = list(known or ())
        self._counts = np.zeros(0, np.int64)
        self._rare = (0, 0)  # values that are rare, and how often they occur
        self.rare = tuple(range(self.groups)) if cut.rare is None else cut.rare
        self._stand_ins = np.full(len(columns), -1, np.int64)  # ids of rare values, where values may be taken for them
        if self.fixed and self.min_count > 1:
            places = [min(k, self.groups - 1) for k in range(len(columns))]
            self._stand_ins[:] = [first + len(self._entries) + k if k in self.rare else -1 for k in places]
        self._marks = [f"{_escaped(name)}=" for name in numbers]
        self.marks: Ids = np.full(len(numbers), -1, np.int32)
        columns_of = {prefix: k for k, prefix in enumerate(self._prefixes)}
        marks_of = {mark: k for k, mark in enumerate(self._marks)}
        for place, entry in enumerate(self._entries):
            end = _prefix_length(entry)
            if end == len(entry):
                self.marks[marks_of[entry]] = first + place
            else:
                self._ids[columns_of[entry[:end]]][entry[end:]] = first + place

    def __len__(self) -> int:
        return len(self._entries) + (self.groups if self.min_count > 1 else 0)

    def entries(self) -> list[str]:
        r"""`column=value` for each id in order; `=` and `\` inside a column's name are written `\=` and `\\`.

        `column=` is the id of missing numbers.
        """
        return self._entries

    def ids(self, columns: Sequence[Codes], rows: int, missing: npt.NDArray[np.bool_] | None = None) -> Ids:
        """For each row and column its id, or -1 where there is none.

        missing: for each row and column of numbers whether it is missing; `marks` are afterwards the ids of those, -1
        for a column where none was.
        """
        lists = [column.words.to_pylist() for column in columns]
        tables = [self._tables(column, first) for first, column in _with_first(columns)]
        if not self.fixed:
            self._add(columns, lists, tables, missing)
        table = np.full((rows, sum(column.columns for column in columns)), -1, np.int32)
        for (first, column), words, ids in zip(_with_first(columns), lists, tables, strict=True):
            part = table[:, first : first + column.columns]
            codes = column.codes.reshape(part.shape)
            part[:] = self._found(words, ids)[codes]  # code -1 is the last place
            unseen = (part < 0) & (codes >= 0)
            part[unseen] = self._stand_in(first + np.nonzero(unseen)[1])
        self._count(table[table >= 0])
        return table

    def bag(self, place: int, items: Codes) -> Ids:
        """The ids of the items of a column of which a row has several; -1 for what is not known. None is missing.

        place: the number of the column.
        """
        words, ids = items.words.to_pylist(), self._ids[place]
        if not self.fixed:
            _, firsts = np.unique(items.codes, return_index=True)
            for word in (words[code] for code in items.codes[np.sort(firsts)].tolist()):
                if word not in ids:
                    ids[word] = self.first + len(self._entries)
                    self._entries.append(self._prefixes[place] + word)
            self._check_size()
        found: Ids = self._found(words, [ids] * len(words))[items.codes]
        unseen = found < 0
        found[unseen] = self._stand_in(np.full(np.count_nonzero(unseen), place))
        self._count(found[found >= 0])
        return found

    def _found(self, words: Sequence[str], tables: Sequence[dict[str, int]]) -> Ids:
        """The id of each word by its table, -1 for none; and -1 at the end."""
        found = np.array([*map(dict.get, tables, words, repeat(-1)), -1], np.int32)
        if self.fixed:
            for k in np.flatnonzero(found[:-1] < 0).tolist():
                found[k] = _otherwise_written(words[k], tables[k])
        return found

    def _stand_in(self, places: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """What values of these columns are taken for that are not known: ids of rare ones, or -1."""
        found: npt.NDArray[np.int64] = self._stand_ins[places]
        taken = int(np.count_nonzero(found >= 0))
        self.unseen += taken
        self.left_out += len(found) - taken
        return found

    def _count(self, ids: Ids) -> None:
        if self.min_count > 1 and not self.fixed:
            counts = np.bincount(ids - self.first, minlength=len(self._entries))
            counts[: len(self._counts)] += self._counts
            self._counts = counts

    def tables(self) -> list[dict[str, int]]:
        """Of each column, the ids of its values; none of them is missing, or has blanks around it."""
        return self._ids

    def one(self, column: int, word: str) -> int:
        """The id of a word in a column, as `ids` has it; an empty one is missing."""
        ident = self._ids[column].get(word, -1) if word else -1
        if ident < 0:
            ident = _otherwise_written(word, self._ids[column])
        return int(self._stand_ins[column]) if ident < 0 and word else ident

    def _tables(self, column: Codes, first: int) -> list[dict[str, int]]:
        """For each word of a column, or of several from the `first` on, the ids of its column."""
        if column.owners is None:
            return [self._ids[first]] * len(column.words)
        return [self._ids[first + owner] for owner in column.owners.tolist()]

    def sizes(self) -> list[int]:
        """How many different values each column has; it must share none."""
        return [len(ids) for ids in self._ids]

    def finish(self) -> Ids | None:
        """When all is read: the final id of each that was given; None if they are final."""
        if self.fixed or self.min_count == 1:
            return None
        counts = np.zeros(len(self._entries), np.int64)
        counts[: len(self._counts)] = self._counts
        marks = self.marks[self.marks >= 0] - self.first
        counts[marks] = self.min_count  # never rare
        often = counts >= self.min_count
        self._rare = (int(np.count_nonzero(~often)), int(counts[~often].sum()))
        places = {prefix: min(k, self.groups - 1) for k, prefix in enumerate(self._prefixes)}
        places |= dict.fromkeys(self._marks, 0)
        columns = [places[entry[: _prefix_length(entry)]] for entry in self._entries]
        self.rare = tuple(sorted({column for column, keep in zip(columns, often.tolist(), strict=True) if not keep}))
        kept = self.first + np.cumsum(often) - 1
        rare = self.first + int(often.sum()) + np.array(columns, np.int64)
        self._entries = [entry for entry, keep in zip(self._entries, often.tolist(), strict=True) if keep]
        return np.concatenate((np.arange(self.first), np.where(often, kept, rare))).astype(np.int32)

    def notes(self) -> list[str]:
        """What to tell the user."""
        what = ("field", "column")
        return [*rare_notes(self._rare, self.unseen, self.min_count, what), *rare_notes((0, 0), self.left_out, 1, what)]

    def _add(
        self,
        columns: Sequence[Codes],
        lists: list[list[str]],
        tables: list[list[dict[str, int]]],
        missing: npt.NDArray[np.bool_] | None,
    ) -> None:
        new: list[tuple[int, int, str]] = []
        if missing is not None and len(missing):
            unmarked = np.flatnonzero(missing.any(0) & (self.marks < 0))
            met_in = np.argmax(missing[:, unmarked], 0).tolist()
            new += [(row, len(self._prefixes) + k, "") for row, k in zip(met_in, unmarked.tolist(), strict=True)]
        for (first, column), words, ids in zip(_with_first(columns), lists, tables, strict=True):
            fresh = [k for k, (word, known) in enumerate(zip(words, ids, strict=True)) if word and word not in known]
            if fresh:
                cells = column.codes.size
                firsts = np.full(len(words) + 1, cells)
                np.minimum.at(firsts, column.codes.reshape(-1), np.arange(cells))
                rows, places = (part.tolist() for part in np.divmod(firsts[fresh], column.columns))
                met = zip(rows, places, fresh, strict=True)
                new += [(row, first + place, words[k]) for row, place, k in met if row < len(column.codes)]
        for _, k, word in sorted(new):
            ident, number = self.first + len(self._entries), k - len(self._prefixes)
            if number >= 0:
                self.marks[number] = ident
                self._entries.append(self._marks[number])
            elif word not in self._ids[k]:
                self._ids[k][word] = ident
                self._entries.append(self._prefixes[k] + word)
        self._check_size()

    def _check_size(self) -> None:
        if self.first + len(self._entries) > _MOST:
            raise InputError("there are more categories than ids; hash them with --categories hash.")


def _otherwise_written(word: str | None, ids: dict[str, int]) -> int:
    """The id of a whole number that is known with a point, or without it: `7.0` of a file is 7 in a frame; else -1."""
    return -1 if not word else ids.get(word.removesuffix(".0") if word.endswith(".0") else f"{word}.0", -1)


def _with_first(columns: Sequence[Codes]) -> Iterator[tuple[int, Codes]]:
    """Columns, or several in one, each with the number of its first column."""
    first = 0
    for column in columns:
        yield first, column
        first += column.columns


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("=", "\\=")


def column_of(entry: str) -> tuple[str, str]:
    r"""The column of an entry of a vocabulary, and its value; none for that of missing numbers.

    >>> column_of(r"a\=b=c=d")
    ('a=b', 'c=d')
    """
    end = _prefix_length(entry)
    return re.sub(r"\\(.)", r"\1", entry[: end - 1]), entry[end:]


def _prefix_length(entry: str) -> int:
    """Length of the column's name in an entry, with the sign after it."""
    place = 0
    while entry[place] != "=":
        place += 2 if entry[place] == "\\" else 1
    return place + 1


class HashedCategories:
    """Hashes each column=value to one of 2^bits ids, from `first` on. Keeps no state: threads may share it.

    blocks: of each column, which such run of ids is its own; 0, the first, for all.
    """

    def __init__(
        self, columns: Sequence[str], first: int, hashing: Hashing, shared: bool = False, blocks: Sequence[int] = ()
    ) -> None:
        self.first = first
        # Where the ids of each column begin: columns whose values are no ones have some of their own.
        self._firsts = np.full(len(columns), first, np.int32)
        self._firsts[: len(blocks)] += (np.array(blocks, np.int64) << hashing.bits).astype(np.int32)[: len(columns)]
        self.bits = hashing.bits
        names = [b"" if shared else name.encode() for name in columns]
        self._prefixes = ["=" if shared else f"{_escaped(name)}=" for name in columns]
        self._seeds = np.empty(len(names), np.uint64)
        joined = np.frombuffer(bytearray(b"".join(names)), np.uint8)
        with np.errstate(over="ignore"):
            ends = np.cumsum([0, *map(len, names)])
            ready(hash_strings, len(joined))(joined, ends, np.uint64(hashing.seed), self._seeds)

    def one(self, words: Sequence[str]) -> list[int]:
        """The ids of one row whose columns hold these words; -1 for empty ones."""
        parts = [word.encode() for word in words]
        ends = np.array([0, *accumulate(map(len, parts))], np.int64)
        hashes = np.empty(len(parts), np.uint64)
        with np.errstate(over="ignore"):
            hash_seeded(np.frombuffer(bytearray(b"".join(parts)), np.uint8), ends, self._seeds[: len(parts)], hashes)
        found = (hashes >> np.uint64(64 - self.bits)).astype(np.int32) + self._firsts[: len(parts)]
        return [ident if part else -1 for ident, part in zip(found.tolist(), parts, strict=True)]

    def ids(self, columns: Sequence[Codes], rows: int) -> Ids:
        """For each row and column its id, or -1 where there is none."""
        table = np.full((rows, sum(column.columns for column in columns)), -1, np.int32)
        for first, column in _with_first(columns):
            part = table[:, first : first + column.columns]
            part[:] = np.append(self._hashed(column, first), np.int32(-1))[column.codes.reshape(part.shape)]
        return table

    def bag(self, place: int, items: Codes) -> Ids:
        """The ids of the items of a column of which a row has several."""
        found: Ids = self._hashed(items, place)[items.codes]
        return found

    def spelt(self, columns: Sequence[Codes], bags: Sequence[Bags], rows: int) -> Counter[str]:
        """How often each `column=value` is in the first rows of these columns, those of several values last."""
        found: Counter[str] = Counter()
        place = sum(column.columns for column in columns)
        one = [(first, column, rows) for first, column in _with_first(columns)]
        many = [(place + k, bag.items, int(bag.lengths[:rows].sum())) for k, bag in enumerate(bags)]
        for first, column, count in (*one, *many):
            codes = column.codes[:count].reshape(-1)
            counts = np.bincount(codes[codes >= 0], minlength=len(column.words))
            there = np.flatnonzero(counts)
            words, owners = column.words.take(pa.array(there)).to_pylist(), column.owners
            for word, k, times in zip(words, there.tolist(), counts[there].tolist(), strict=True):
                found[self._prefixes[first if owners is None else first + int(owners[k])] + word] += times
        return found

    def entries(self, names: Sequence[str]) -> Ids:
        """The ids of entries `column=value`; -1 for a column that is not one of these."""
        places = {prefix: k for k, prefix in reversed(list(enumerate(self._prefixes)))}
        ends = [_prefix_length(name) for name in names]
        owners = np.array([places.get(name[:end], -1) for name, end in zip(names, ends, strict=True)], np.int64)
        known = np.flatnonzero(owners >= 0)
        words = pa.array([names[k][ends[k] :] for k in known.tolist()], pa.string())
        found = np.full(len(names), -1, np.int32)
        if len(known):
            found[known] = self._hashed(Codes(np.arange(len(known), dtype=np.int32), words, owners[known]), 0)
        return found

    def _hashed(self, column: Codes, first: int) -> Ids:
        """The id of each word of a column, or of several from the `first` on."""
        hashes = np.empty(len(column.words), np.uint64)
        strings = string_buffers(column.words)
        with np.errstate(over="ignore"):
            if column.owners is None:
                ready(hash_strings, len(strings[0]))(*strings, self._seeds[first], hashes)
            else:
                ready(hash_seeded, len(strings[0]))(*strings, self._seeds[first + column.owners], hashes)
        owners = first if column.owners is None else first + column.owners
        found: Ids = (hashes >> np.uint64(64 - self.bits)).astype(np.int32) + self._firsts[owners]
        return found
