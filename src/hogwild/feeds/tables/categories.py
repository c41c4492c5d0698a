"""Categories to ids: each with one of its own, in order of first appearance, or hashed; and ids of missing numbers."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hogwild.arrays import Ids, Keys
from hogwild.errors import InputError, ModelError
from hogwild.feeds.sparse.encoder import rare_notes
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.tables.frames import Bags, Codes, string_buffers
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.hashing import hash_seeded, hash_strings
from hogwild.kernels.ids.keys import AHEAD, find_keys, grown, make_table, number_keys

_MOST = 2**31 - 1
_ROOM = 1 << 12  # values that a new table has room for
_STEPS = 8       # work of looking up a word, in what `ready` counts
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ONE_GROUP, _NO_ID = np.zeros(1, np.uint16), np.full(1, -1, np.int32)


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

    Values are known by 64 bits of a hash, and 64 bits of another tell if two ever share those: that is an error.

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
        marks = [f"{_escaped(name)}=" for name in numbers]
        # Owners of entries: columns (one for all where they share values), then columns of numbers.
        self._prefixes = [*(["="] * self.groups if cut.shared else [f"{_escaped(name)}=" for name in columns]), *marks]
        self._groups = np.minimum(np.arange(len(columns)), self.groups - 1)  # the owner of the values of each column
        self._seeds = np.arange(1, len(self._prefixes) + 1, dtype=np.uint64) * _SPREAD
        self._table, self._checks = make_table(_ROOM), np.empty(_ROOM, np.uint64)
        self._owners: list[npt.NDArray[np.int64]] = []  # of entries, and the value of each
        self._words: list[Any] = []
        self._counts = np.zeros(0, np.int64)
        self._rare = (0, 0)  # values that are rare, and how often they occur
        self.rare = tuple(range(self.groups)) if cut.rare is None else cut.rare
        self._stand_ins = np.full(len(columns), -1, np.int64)  # ids of rare values, where values may be taken for them
        if self.fixed and self.min_count > 1:
            places = [min(k, self.groups - 1) for k in range(len(columns))]
            self._stand_ins[:] = [first + len(known or ()) + k if k in self.rare else -1 for k in places]
        self.marks: Ids = np.full(len(numbers), -1, np.int32)
        self._entries: list[str] | None = None if known is None else list(known)
        if known is not None:
            self._recall(known)

    def __len__(self) -> int:
        entries = self._size if self._entries is None else len(self._entries)
        return entries + (self.groups if self.min_count > 1 else 0)

    @property
    def _size(self) -> int:
        return sum(map(len, self._owners))

    def entries(self) -> list[str]:
        r"""`column=value` for each id in order; `=` and `\` inside a column's name are written `\=` and `\\`.

        `column=` is the id of missing numbers.
        """
        if self._entries is None:
            names = pa.array(self._prefixes, pa.string())
            joined = [pc.binary_join_element_wise(names.take(pa.array(owners)), words, "")
                      for owners, words in zip(self._owners, self._words, strict=True)]  # fmt: skip
            return [entry for part in joined for entry in part.to_pylist()]
        return self._entries

    def ids(self, columns: Sequence[Codes], rows: int, missing: npt.NDArray[np.bool_] | None = None) -> Ids:
        """For each row and column its id, or -1 where there is none.

        missing: for each row and column of numbers whether it is missing; `marks` are afterwards the ids of those, -1
        for a column where none was.
        """
        known = self._ids(firsts := list(_with_first(columns)), missing)
        table = np.full((rows, sum(column.columns for column in columns)), -1, np.int32)
        for (first, column), found in zip(firsts, known, strict=True):
            part = table[:, first : first + column.columns]
            codes = column.codes.reshape(part.shape)
            part[:] = found[codes]
            unseen = (part < 0) & (codes >= 0)
            if unseen.any():
                part[unseen] = self._stand_in(first + np.nonzero(unseen)[1])
        self._count(table[table >= 0])
        return table

    def bag(self, place: int, items: Codes) -> Ids:
        """The ids of the items of a column of which a row has several; -1 for what is not known. None is missing.

        place: the number of the column.
        """
        found: Ids = self._ids([(place, items)], None)[0][items.codes]
        unseen = found < 0
        if unseen.any():
            found[unseen] = self._stand_in(np.full(np.count_nonzero(unseen), place))
        self._count(found[found >= 0])
        return found

    def _ids(self, columns: Sequence[tuple[int, Codes]], missing: npt.NDArray[np.bool_] | None) -> list[Ids]:
        """Of each column the ids of its words, -1 for none; and -1 at the end, which code -1 finds."""
        owners = [np.full(len(column.words), first) if column.owners is None else first + column.owners
                  for first, column in columns]  # fmt: skip
        words = self._keyed([column.words for _, column in columns], [self._groups[own] for own in owners])
        found = self._find(words)
        if not self.fixed:
            self._add(words, found, columns, missing)
        ends = np.cumsum([0, *map(len, owners)]).tolist()
        return [np.append(found[start:end], np.int32(-1)) for start, end in pairwise(ends)]

    def _stand_in(self, places: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """What values of these columns are taken for that are not known: ids of rare ones, or -1."""
        found: npt.NDArray[np.int64] = self._stand_ins[places]
        taken = int(np.count_nonzero(found >= 0))
        self.unseen += taken
        self.left_out += len(found) - taken
        return found

    def _count(self, ids: Ids) -> None:
        if self.min_count > 1 and not self.fixed:
            counts = np.bincount(ids - self.first, minlength=self._size)
            counts[: len(self._counts)] += self._counts
            self._counts = counts

    @functools.cached_property
    def _values(self) -> list[dict[str, int]]:
        """Of each owner, the ids of its values."""
        values: list[dict[str, int]] = [{} for _ in self._prefixes]
        ident = self.first
        for owners, words in zip(self._owners, self._words, strict=True):
            for owner, word in zip(owners.tolist(), words.to_pylist(), strict=True):
                values[owner][word] = ident
                ident += 1
        return values

    def tables(self) -> list[dict[str, int]]:
        """Of each column, the ids of its values, when all is read; none of them is missing, or has blanks around it."""
        return [self._values[group] for group in self._groups.tolist()]

    def one(self, column: int, word: str) -> int:
        """The id of a word in a column, as `ids` has it; an empty one is missing."""
        values = self._values[self._groups[column]]
        ident = values.get(word, -1) if word else -1
        if ident < 0:
            ident = _otherwise_written(word, values)
        return int(self._stand_ins[column]) if ident < 0 and word else ident

    def sizes(self) -> list[int]:
        """How many different values each column has; it must share none."""
        owners = np.concatenate([np.zeros(0, np.int64), *self._owners])
        return np.bincount(owners, minlength=len(self._prefixes)).tolist()[: self.groups]  # type: ignore[no-any-return]

    def finish(self) -> Ids | None:
        """When all is read: the final id of each that was given; None if they are final."""
        if self.fixed or self.min_count == 1:
            return None
        entries = self.entries()
        counts = np.zeros(len(entries), np.int64)
        counts[: len(self._counts)] = self._counts
        marks = self.marks[self.marks >= 0] - self.first
        counts[marks] = self.min_count  # never rare
        often = counts >= self.min_count
        self._rare = (int(np.count_nonzero(~often)), int(counts[~often].sum()))
        owners = np.concatenate([np.zeros(0, np.int64), *self._owners])
        self.rare = tuple(np.unique(owners[~often]).tolist())
        kept = self.first + np.cumsum(often) - 1
        rare = self.first + int(often.sum()) + owners
        self._entries = [entry for entry, keep in zip(entries, often.tolist(), strict=True) if keep]
        return np.concatenate((np.arange(self.first), np.where(often, kept, rare))).astype(np.int32)

    def notes(self) -> list[str]:
        """What to tell the user."""
        what = ("field", "column")
        return [*rare_notes(self._rare, self.unseen, self.min_count, what), *rare_notes((0, 0), self.left_out, 1, what)]

    # -- numbers of words -------------------------------------------------------------------------------------------

    def _keyed(self, words: Sequence[Any], owners: Sequence[npt.NDArray[np.int64]]) -> _Words:
        """Words of several columns, one after another, with two hashes of each."""
        strings = pa.concat_arrays([pa.array([], pa.string()), *words])
        of = np.concatenate([np.zeros(0, np.int64), *owners])
        data, ends = string_buffers(strings)
        keys, checks = np.empty(len(of), np.uint64), np.empty(len(of), np.uint64)
        with np.errstate(over="ignore"):
            for seeds, hashes in ((self._seeds[of], keys), (~self._seeds[of], checks)):
                ready(hash_seeded, len(data))(data, ends, seeds, hashes)
        return _Words(strings, of, keys, checks)

    def _find(self, words: _Words) -> Ids:
        """The id of each word, -1 for none."""
        if self.fixed and not self._table.size[0] and self._size:
            self._number(self._keyed(self._words, self._owners))
            if self._table.size[0] < self._size:
                raise ModelError("the model has a category twice; copy the model again.")
        found, homes = np.empty(len(words.keys), np.int32), np.empty(AHEAD, np.int64)
        with np.errstate(over="ignore"):
            ready(find_keys, _STEPS * len(found))(self._table, words.keys, _ONE_GROUP, _NO_ID, found, homes)
        known = found >= 0
        self._compare(found[known], words.checks[known])
        found[known] += np.int32(self.first)
        if self.fixed:
            unknown = np.flatnonzero(~known)
            spelt = words.strings.take(pa.array(unknown)).to_pylist()
            for k, owner, word in zip(unknown.tolist(), words.owners[unknown].tolist(), spelt, strict=True):
                found[k] = _otherwise_written(word, self._values[owner])
        return found

    def _number(self, words: _Words) -> Ids:
        """The number of each word; those that have none get the next, in this order."""
        numbers, homes = np.empty(len(words.keys), np.int32), np.empty(AHEAD, np.int64)
        before, done = int(self._table.size[0]), 0
        with np.errstate(over="ignore"):
            number = ready(number_keys, _STEPS * len(numbers))
            while (done := number(self._table, words.keys, _ONE_GROUP, numbers, done, homes)) < len(numbers):
                self._table = grown(self._table)
        size = int(self._table.size[0])
        if self.first + size > _MOST:
            raise InputError("there are more categories than ids; hash them with --categories hash.")
        if size > len(self._checks):
            self._checks = np.append(self._checks, np.empty(size, np.uint64))
        _, new = np.unique(numbers, return_index=True)
        new = new[numbers[new] >= before]
        self._checks[before:size] = words.checks[new]
        self._compare(numbers, words.checks)
        if not self.fixed:
            self._owners.append(words.owners[new])
            self._words.append(words.strings.take(pa.array(new)))
        return numbers

    def _compare(self, numbers: Ids, checks: Keys) -> None:
        """Raise InputError if words that have these numbers are not those that got them."""
        if (self._checks[numbers] != checks).any():
            raise InputError("two categories share a hash, which is rare; hash all of them with --categories hash.")

    def _add(
        self, words: _Words, found: Ids, columns: Sequence[tuple[int, Codes]], missing: npt.NDArray[np.bool_] | None
    ) -> None:
        """Give ids to words that have none, and to missing numbers, in the order of the cells where they stand."""
        width = len(self._stand_ins) + len(self.marks)
        fresh, cells, start = [], [], 0
        for first, column in columns:
            size = len(column.words)
            new = np.flatnonzero(found[start : start + size] < 0)
            if len(new):
                firsts = np.full(size + 1, column.codes.size)
                firsts[column.codes.reshape(-1)[::-1]] = np.arange(column.codes.size)[::-1]  # the last one stays
                new = new[firsts[new] < column.codes.size]
                rows, places = np.divmod(firsts[new], column.columns)
                fresh.append(start + new)
                cells.append(rows * width + first + places)
            start += size
        unmarked = np.zeros(0, np.int64)
        if missing is not None and len(missing):
            unmarked = np.flatnonzero(missing.any(0) & (self.marks < 0))
            fresh.append(start + np.arange(len(unmarked)))
            cells.append(np.argmax(missing[:, unmarked], 0) * width + len(self._stand_ins) + unmarked)
        if not fresh:
            return
        if len(unmarked):
            words = words.with_others(self._keyed([pa.array([""] * len(unmarked))], [self.groups + unmarked]))
        order = np.concatenate(fresh)[np.argsort(np.concatenate(cells))]
        ids = np.full(len(words.keys), -1, np.int32)
        ids[order] = self._number(words.take(order)) + np.int32(self.first)
        self.marks[unmarked] = ids[start:]
        np.copyto(found, ids[:start], where=ids[:start] >= 0)

    def _recall(self, known: Sequence[str]) -> None:
        """The entries of a model."""
        prefixes = {prefix: k for k, prefix in enumerate(self._prefixes[: self.groups])}
        marks = {mark: k for k, mark in enumerate(self._prefixes[self.groups :])}
        owners, words = [], []
        for place, entry in enumerate(known):
            end = _prefix_length(entry)
            words.append(entry[end:])
            if end == len(entry):
                self.marks[marks[entry]] = self.first + place
                owners.append(self.groups + marks[entry])
            else:
                owners.append(prefixes[entry[:end]])
        self._owners, self._words = [np.array(owners, np.int64)], [pa.array(words, pa.string())]


class _Words(NamedTuple):
    """Words, whose each is, and two hashes of each."""

    strings: Any
    owners: npt.NDArray[np.int64]
    keys: Keys
    checks: Keys

    def take(self, which: npt.NDArray[np.int64]) -> _Words:
        """Some of them."""
        strings = self.strings.take(pa.array(which))
        return _Words(strings, self.owners[which], self.keys[which], self.checks[which])

    def with_others(self, others: _Words) -> _Words:
        """These, then the others."""
        arrays = (np.concatenate(pair) for pair in zip(self[1:], others[1:], strict=True))
        return _Words(pa.concat_arrays([self.strings, others.strings]), *arrays)


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
