"""Names of the features of models over rows: columns, categories, words; numbers where nothing says more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids
from hogwild.config import FeedConfig
from hogwild.config.kinds import letters_of
from hogwild.errors import ConfigError
from hogwild.feeds.slots.ids import SlotIds, feature_names
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.sparse.spellings import hashes_of, hashes_of_parts
from hogwild.feeds.tables.categories import HashedCategories, column_of
from hogwild.feeds.tables.crosses import CrossNames, block_of, crosses_of
from hogwild.messages import shown

Places = npt.NDArray[np.int64]

_MARK = re.compile(r"((?:[^=\\]|\\.)*)=")  # an entry without a value: a number is missing
_SHOWN = 2  # names of a feature that several have
_WORDS = 10_000  # whose parts are named, where parts of words are features


class Names:
    """What the features of a model are called, by the schema of its data; hashed ones by the names that were kept when
    it was trained, those of which several have the same hash with `or` between them, and else by their number.

    own: names of hashed features of the data that is looked at, which go before those of the model.

    >>> Names({"format": "svmlight", "zero_based": False})[2]
    '3'
    """

    def __init__(self, schema: Mapping[str, Any], own: Sequence[str] = ()) -> None:
        self._schema, self._own = schema, own
        self._table, self._slotted = schema.get("format") == "table", "slots" in schema
        self.first = 0 if self._table or schema.get("zero_based", True) else 1
        self.numeric: list[str] = list(schema.get("numeric", ())) if self._table and not self._slotted else []
        entries = schema.get("vocabulary", ()) if self._table else ()
        named: list[str] = [
            f"{found[1]} missing" if (found := _MARK.fullmatch(entry)) else entry for entry in entries
        ]
        blocks, pairs = list[str](), list[str]()
        self._crosses: CrossNames | None = None
        if schema.get("interactions"):
            crosses = self._crosses = CrossNames(schema)
            named = [crosses.of(entry) for entry in named]
            self.numeric += crosses.products
            blocks, pairs = crosses.blocks, crosses.columns
        self.entries: list[str] = named
        if self._slotted:
            self.entries += feature_names(schema)
        elif self._table and schema.get("min_count", 1) > 1:
            words = [*schema["categorical"], *pairs, *schema.get("multi", ())]
            columns = [""] if schema.get("shared_ids") else words
            self.entries += [f"{column} rare".strip() for column in columns]
        hashes = "hashing" in schema and (schema.get("text") or schema.get("categories") == "hash")
        self.bits = schema["hashing"]["bits"] if hashes else 0
        self.blocks = ["", *blocks] if schema.get("categories") == "hash" else [""]  # numbers that hashed pairs go with
        self.hashed = len(self.blocks) << self.bits if hashes else 0

    def __getitem__(self, feature: int) -> str:
        if feature < len(self.numeric):
            return self.numeric[feature]
        rest = feature - len(self.numeric)
        if rest < self.hashed:
            known = self._of_row.get(feature) or self.kept.get(feature)
            return known or f"{self.blocks[rest >> self.bits]}hash {rest & ((1 << self.bits) - 1)}"
        rest -= self.hashed
        return self.entries[rest] if rest < len(self.entries) else str(feature + self.first)

    @cached_property
    def kept(self) -> dict[int, str]:
        """The names of hashed features that the model has kept."""
        return self._named(self._schema.get("names", ()))

    @cached_property
    def _of_row(self) -> dict[int, str]:
        return self._named(self._own)

    def _named(self, names: Sequence[str]) -> dict[int, str]:
        """The name of each hashed feature; where several have one, the first of them."""
        found: dict[int, list[str]] = {}
        for feature, name in self._hashed(names) if self.hashed else ():
            found.setdefault(feature, []).append(name)
        return {
            feature: " or ".join([*several[:_SHOWN], *["…"] * (len(several) > _SHOWN)])
            for feature, several in found.items()
        }

    def _hashed(self, names: Sequence[str]) -> Iterable[tuple[int, str]]:
        if not self._table:
            entries = [name for name in names if "=" in name]
            return zip(slot_features(self._schema, entries).tolist(), entries, strict=True)
        grams = [name for name in names if "=" not in name]
        entries = [name for name in names if "=" in name]  # no word has such a sign
        hashing, before = Hashing(**self._schema["hashing"]), len(self.numeric)
        of_grams = _features_of(hashes_of(grams, hashing.seed), hashing, before)
        found = [zip(of_grams, grams, strict=True)]
        if hashing.subwords:
            words = [name for name in grams if " " not in name][:_WORDS]
            parts = list(dict.fromkeys(part for word in words for part in parts_of(word, hashing.subwords)))
            named = (f"part {part}" for part in parts)
            found.append(zip(_features_of(hashes_of_parts(parts, hashing.seed), hashing, before), named, strict=True))
        if entries:
            of_entries = _table_features(self._schema, entries, before)
            called = [self._crosses.of(entry) for entry in entries] if self._crosses else entries
            found.append(zip(of_entries.tolist(), called, strict=True))
        return chain.from_iterable(found)

    def find(self, text: str, count: int) -> Places:
        """The features whose names hold a text; hashed ones without a name only where it begins with `hash`."""
        if not text:
            return np.arange(count)
        first = len(self.numeric)
        hashed = range(first, min(first + self.hashed, count))
        some = hashed if text.startswith("hash") else sorted(k for k in self.kept if k < count)
        chosen = chain(range(min(first, count)), some, range(first + self.hashed, count))
        return np.array([k for k in chosen if text in self[k]], np.int64)

    def holding(self, text: str, count: int) -> Places:
        """The same; ConfigError if there are none."""
        found = self.find(text, count)
        return found if len(found) else holding((), text)

    def slots(self, features: int) -> Ids:
        """The slot of each feature of data with slots; -1 where nothing says it."""
        schema, found = self._schema, np.full(features, -1, np.int32)
        places = {name: k for k, name in enumerate(schema.get("slots", ()))}
        if self.hashed:
            for feature, name in self._hashed(schema.get("names", ())):
                found[feature] = places.get(column_of(name)[0] if "=" in name else schema.get("text", ""), -1)
        shared = schema.get("shared_ids", False)
        if self._table:
            split = [column_of(entry) for entry in schema["vocabulary"]]
            own = [places.get(column, -1) if value else len(places) - 1 for column, value in split]
        else:
            own = [] if shared else [k for k, size in enumerate(schema.get("sizes", ())) for _ in range(size)]
        if schema.get("min_count", 1) > 1 and not shared and own:
            own += range(len(places))
        own = own[: max(0, features - self.hashed)]
        found[self.hashed : self.hashed + len(own)] = own
        return np.zeros(features, np.int32) if len(places) <= 1 else found

    def columns(self, features: int) -> Ids:
        """The column of each feature of a column of which a row has one value; -1 for all others."""
        schema, found = self._schema, np.full(features, -1, np.int32)
        if schema.get("format") == "criteo":
            return self.slots(features)
        if not self._table or schema.get("shared_ids"):
            return found
        places = {name: k for k, name in enumerate(schema["categorical"])}
        for feature, name in self._hashed(schema.get("names", ())) if self.hashed else ():
            found[feature] = places.get(column_of(name)[0], -1) if "=" in name else -1
        first = len(self.numeric) + self.hashed
        for k, entry in enumerate(schema["vocabulary"][: max(0, features - first)], first):
            column, value = column_of(entry)
            found[k] = places.get(column, -1) if value else -1
        return found


class Named:
    """The names of some features, in their order."""

    def __init__(self, names: Names, features: Places) -> None:
        self._names, self._features = names, features

    def __getitem__(self, place: int) -> str:
        return self._names[int(self._features[place])]


def holding(names: Sequence[str], text: str) -> Places:
    """The places of names that hold a text; ConfigError if there are none."""
    found = np.array([k for k, name in enumerate(names) if text in name], np.int64)
    if not len(found):
        raise ConfigError(f"no feature of the model has `{shown(text)}` in its name; try a shorter text.")
    return found


def parts_of(word: str, subwords: str) -> list[str]:
    """The parts of a word that are features: `<` begins it, `>` ends it.

    >>> parts_of("cat", "3:4")
    ['<ca', '<cat', 'cat', 'cat>', 'at>']
    """
    shortest, longest = letters_of(subwords)
    marked = f"<{word}>"
    spans = ((k, k + n) for k in range(len(marked)) for n in range(shortest, longest + 1) if k + n <= len(marked))
    return [marked[a:b] for a, b in spans if marked[a:b] not in ("<", ">")]


def slot_features(schema: Mapping[str, Any], entries: Sequence[str]) -> Ids:
    """The features of entries `slot=key`, by the hash of a schema of slots."""
    shared = schema.get("shared_ids", False)
    places = {"" if shared else name: k for k, name in enumerate(schema["slots"])}
    halves = [entry.rpartition("=") for entry in entries]
    keys = np.array([int(key) for _, _, key in halves], np.uint64)
    slots = np.array([places[slot] if not shared else 0 for slot, _, _ in halves], np.uint16)
    return SlotIds(schema["slots"], FeedConfig(), schema).ids(keys, slots)[0]


def _features_of(hashes: npt.NDArray[np.uint64], hashing: Hashing, before: int) -> list[int]:
    found: list[int] = ((hashes >> np.uint64(64 - hashing.bits)).astype(np.int64) + before).tolist()
    return found


def _table_features(schema: Mapping[str, Any], entries: Sequence[str], before: int) -> Ids:
    """The features of entries `column=value`, by the hash of a table's schema."""
    crosses, words = crosses_of(schema), schema["categorical"]
    columns = (*words, *crosses.pair_names, *schema.get("multi", ()))
    hashing, shared = Hashing(**schema["hashing"]), schema.get("shared_ids", False)
    return HashedCategories(columns, before, hashing, shared, block_of(crosses, len(words))).entries(entries)
