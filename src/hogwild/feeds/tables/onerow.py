"""One row of a table as features: a mapping of names to values, values in the order of the columns, or a text."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from hogwild.arrays import Floats, Ids
from hogwild.config import FeedConfig
from hogwild.errors import InputError, brief
from hogwild.feeds.sparse.encoder import reading_schema
from hogwild.feeds.sparse.features import Fills, Standards
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.sparse.onerow import LARGEST, OneRow, finite
from hogwild.feeds.tables.categories import Cut, HashedCategories, Vocabulary
from hogwild.feeds.tables.columns import Plan, list_columns
from hogwild.feeds.tables.crosses import block_of, crosses_of, hashed_ids
from hogwild.feeds.tables.dataframes import columns_for
from hogwild.feeds.tables.fields import FieldRules, years
from hogwild.feeds.tables.frames import Codes
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.ids.tokens import encode_text, make_bags
from hogwild.messages import shown

_LENGTH = 1 << 14  # bytes of a text for which there is room from the beginning
_MISSING = float("nan")


class TableRow:
    """Rows of a table by the schema of a model: the same features that `TableEncoder` gives them.

    features: how many there are without the dense columns. Threads may share it.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        with reading_schema(schema, "table", "a table", "columns"):
            plan = self.plan = Plan.known(schema)
            hashing = Hashing.of(FeedConfig(), schema)
            cut = Cut.known(schema)
            self._slotted = "slots" in schema
            crosses = self._crosses = crosses_of(schema)
            words = (*plan.categorical, *crosses.pair_names, *plan.multi)
            self._bags_from = len(plan.categorical) + len(crosses.pair_names)
            hashed = words if schema.get("categories") == "hash" else ()
            numbers = (*plan.numeric, *crosses.product_names)
            count = len(numbers)
            before = 0 if self._slotted else count
            first = before + hashed_ids(hashing, crosses if hashed else None, bool(plan.text or hashed))
            listed = () if hashed else words
            self._vocabulary = Vocabulary(listed, first, schema["vocabulary"], cut, numbers)
            blocks = block_of(crosses, len(plan.categorical))
            self._hasher = HashedCategories(hashed, before, hashing, cut.shared, blocks) if hashed else None
            scales = [float(np.float32(scale)) for scale in schema.get("scales") or [1.0] * count]
            self._standards = Standards(count, schema, asked=False) if "shifts" in schema else None
            own = [1.0] * count if self._standards else scales
            self._scales = list(zip(plan.numeric, own[: len(plan.numeric)], strict=True))
            self._product_scales = scales[len(plan.numeric) :]
            if len(scales) != count:
                raise ValueError("scales are not those of the columns")
            self._rules, fills = FieldRules.of(FeedConfig(), schema), Fills(count, schema, "zero")
        self._fills = [float(fill) for fill in fills.values * (1 if self._standards else np.array(scales, np.float32))]
        self._whole = fills.kind == "error"
        self._marks = self._vocabulary.marks.tolist()
        self._tables = list(zip(plan.categorical, self._vocabulary.tables(), strict=False)) if listed else []
        self._of_pairs = [(len(plan.categorical) + place, place) for place in range(len(crosses.pairs))]
        self._valued = dict(crosses.valued)
        self.features = max(first + len(self._vocabulary), 1)
        self._text = _TextHasher(hashing, before) if plan.text else None
        self._text_slot = len(plan.words())
        self._only = plan.features()[0] if len(plan.features()) == 1 else ""
        self._bare = self._text if self._only and not self._slotted else None
        self._by_count: dict[int, tuple[str, ...]] = {}

    def __call__(self, row: Any) -> OneRow:
        """The features of a row. Raises InputError for a column that it lacks, or what is no number where one is."""
        if self._bare and isinstance(row, str):
            return OneRow(*self._bare(row))
        if not isinstance(row, Mapping):
            row = self._named(row)
        marks: list[int] = []  # features that say that a number is missing
        try:
            numbers = self._numbers(row, marks)
            found = self._categories(row)
            bags = self._bags(row)
            pairs = self._pairs(row, numbers) if self._of_pairs else []
            text = row[self.plan.text] if self._text else None
        except KeyError as error:
            raise InputError(f"column `{shown(str(error.args[0]))}` is missing in the row;"
                             f" {list_columns(self.plan.features())}.") from None  # fmt: skip
        ids = [] if self._slotted else [k for k, number in enumerate(numbers) if number]
        values = [numbers[k] for k in ids]
        slots = [k for k, ident in enumerate(found) if ident >= 0]
        ids += found if len(slots) == len(found) else [found[k] for k in slots]
        values += [1.0] * len(slots)
        for slot, bag in bags:
            ids += bag
            values += [1.0] * len(bag)
            slots += [slot] * len(bag)
        for ident, value in pairs:
            ids.append(ident)
            values.append(value)
        if self._text:
            grams, counts = self._text(text)
            ids += grams.tolist()
            values += counts.tolist()
            slots += [self._text_slot] * len(grams)
        if marks:
            ids += marks
            values += [1.0] * len(marks)
            slots += [self._text_slot + bool(self._text)] * len(marks)
        if self._standards and numbers:
            numbers = self._standards.standardized(np.array(numbers, np.float32)).tolist()
        return OneRow(ids, values, slots, numbers) if self._slotted else OneRow(ids, values)

    def _numbers(self, row: Mapping[str, Any], marks: list[int]) -> list[float]:
        """The columns of numbers, scaled, missing ones filled in; their marks are added to `marks`."""
        codes, found = self._rules.codes, []
        for k, (name, scale) in enumerate(self._scales):
            number = row[name]
            if type(number) is not float or not -LARGEST <= number <= LARGEST or number in codes:
                number = _number(number, name, self._rules)
            if number == number:
                found.append(number * scale)
                continue
            if self._whole:
                raise InputError(f"column `{shown(name)}`: the number is missing, and the model needs all.")
            found.append(self._fills[k])
            if self._marks[k] >= 0:
                marks.append(self._marks[k])
        if self._crosses.products:
            self._multiply(row, found, marks)
        return found

    def _multiply(self, row: Mapping[str, Any], found: list[float], marks: list[int]) -> None:
        """Add the products of numbers, scaled, to what was found of the numbers themselves."""
        raw = [_number(row[name], name, self._rules) for name in self.plan.numeric]
        for place, (left, right) in enumerate(self._crosses.products):
            k, product = len(raw) + place, raw[left] * raw[right]
            if product == product:
                found.append(finite(product, self._crosses.product_names[place]) * self._product_scales[place])
                continue
            found.append(self._fills[k])
            if self._marks[k] >= 0:
                marks.append(self._marks[k])

    def _pairs(self, row: Mapping[str, Any], numbers: list[float]) -> list[tuple[int, float]]:
        """Features and values of crossed columns: a category with another, or with a number."""
        words = [_word(row[name], self._rules) for name in self.plan.categorical]
        joint = [self._crosses.words_of(place, words) for _, place in self._of_pairs]
        if self._hasher:
            idents = self._hasher.one([*words, *joint])[len(words) :]
        else:
            idents = [self._vocabulary.one(column, joint[place]) for column, place in self._of_pairs]
        values = [numbers[self._valued[place]] if place in self._valued else 1.0 for _, place in self._of_pairs]
        return [(ident, value) for ident, value in zip(idents, values, strict=True) if ident >= 0 and value]

    def _categories(self, row: Mapping[str, Any]) -> list[int]:
        """The ids of the columns of categories; -1 for those that have none."""
        if self._hasher:
            words = [_word(row[name], self._rules) for name in self.plan.categorical]
            return self._hasher.one([*words, *[""] * len(self._of_pairs)])[: len(words)]
        found = []
        for k, (name, table) in enumerate(self._tables):
            value = row[name]
            # What is known as it stands is neither missing nor in need of being cleaned: mostly that is all.
            ident = table.get(value) if type(value) is str else None
            found.append(self._vocabulary.one(k, _word(value, self._rules)) if ident is None else ident)
        return found

    def _bags(self, row: Mapping[str, Any]) -> list[tuple[int, list[int]]]:
        """Of each column of several values its number and the ids of what it holds, each once."""
        found = []
        columns = zip(self.plan.multi, self.plan.separators, strict=True)
        for place, (name, separator) in enumerate(columns, self._bags_from):
            words = list(dict.fromkeys(word for word in _several(row[name], separator, self._rules) if word))
            if self._hasher:
                items = Codes(np.arange(len(words), dtype=np.int32), pa.array(words, pa.string()))
                ids = self._hasher.bag(place, items).tolist() if words else []
            else:
                ids = [ident for word in words if (ident := self._vocabulary.one(place, word)) >= 0]
            found.append((place, ids))
        return found

    def _named(self, row: Any) -> Mapping[str, Any]:
        if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            if self._only and (isinstance(row, str) or self._only != self.plan.text):
                return {self._only: row}
            columns = list_columns(self.plan.features())
            raise InputError(f"a row is asked for, not {brief(row)}; give a dict or a list of values: {columns}.")
        names = self._by_count.get(len(row))
        if names is None:
            names = self._by_count[len(row)] = columns_for(len(row), self.plan.schema())
        return dict(zip(names, row, strict=True))


class _TextHasher:
    """The n-grams of one text, in room that is made once. Threads take turns."""

    def __init__(self, hashing: Hashing, first: int) -> None:
        self._recipe, self._first = hashing.recipe(), first
        self._lock = threading.Lock()
        self._make_room(_LENGTH)
        self._call = entry(encode_text, np.frombuffer(b"a", np.uint8), self._recipe, self._bags)

    def _make_room(self, length: int) -> None:
        self._length, self._bags = length, make_bags(1, length, self._recipe)

    def __call__(self, text: Any) -> tuple[Ids, Floats]:
        data = np.frombuffer(bytes_of(text), np.uint8)
        with self._lock:
            if len(data) > self._length:
                self._make_room(2 * len(data))
            total = int(self._call(data, self._recipe, self._bags))
            ids = self._bags.ids[:total].copy()
            ids += np.int32(self._first)
            return ids, self._bags.values[:total].copy()


def bytes_of(text: Any) -> bytes:
    """A text as UTF-8; None is an empty one."""
    try:
        return b"" if text is None else text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the text is not Unicode at character {error.start + 1}; clean it first.") from None
    except AttributeError:
        raise InputError(f"one text is asked for, not {type(text).__name__}; predict takes several.") from None


def _number(value: Any, name: str, rules: FieldRules) -> float:
    """A number, NaN for a missing one."""
    if type(value) is float and abs(value) <= LARGEST:
        return value if value not in rules.codes else _MISSING
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return _MISSING
    if isinstance(value, str):
        if rules.is_missing(value):
            return _MISSING
        number = rules.number_of(value)
        value = value if number is None else number
    elif isinstance(value, date) and rules.dates:
        return years(value)
    if isinstance(value, float | np.floating) and math.isnan(value):
        return _MISSING
    found = finite(value, name)
    return _MISSING if found in rules.codes else found


def _several(value: Any, separator: str, rules: FieldRules) -> Iterator[str]:
    """The words of a field that holds several: a text with a separator between them, a list or a set, or one value."""
    if isinstance(value, str):
        value = value.split(separator)
    elif isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist()
    elif not isinstance(value, list | tuple | set | frozenset):
        value = (value,)
    return (_word(item, rules) for item in value)


def _word(value: Any, rules: FieldRules) -> str:
    """A category as a table has it, empty for a missing one: whole numbers without a point, true and false as Arrow."""
    if type(value) is str:
        return "" if rules.is_missing(value) else value.strip()
    if value is None or value != value:
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    return str(value).strip()
