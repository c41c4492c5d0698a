"""Made rows as lines of text: svmlight and MultiSlot for sparse rows; MultiSlot, CSV, Criteo and libffm for clicks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hogwild.config import ClicksConfig
from hogwild.feeds.synthetic.clicks import MadeClicks
from hogwild.feeds.synthetic.sampling import UNITS, Words, decimals, digits, hexadecimals, joined, words_of
from hogwild.feeds.synthetic.sparse import MadeRows
from hogwild.feeds.synthetic.truth import Longs

_SPREAD = 0x9E3779B1  # odd: the product with a number below 2^32, modulo 2^32, is a permutation


def svmlight(rows: MadeRows, classes: int = 2) -> bytes:
    """Sparse rows as svmlight lines, ids from 1; of two classes the labels are -1 and +1."""
    names = ["\n-1", "\n+1"] if classes == 2 else [f"\n{k}" for k in range(classes)]
    features = np.hstack([_sign(" ", len(rows.ids)), digits(rows.ids + 1), _sign(":", len(rows.ids)),
                          decimals(rows.values)])  # fmt: skip
    heads = rows.offsets[:-1] + np.arange(len(rows.labels))     # places of labels among all tokens
    text = np.zeros((len(features) + len(heads), features.shape[1]), np.uint32)
    is_feature = np.ones(len(text), bool)
    is_feature[heads] = False
    text[is_feature] = features
    text[heads, 0] = words_of(names)[rows.labels]
    return _lines(text)


def sparse_multislot(rows: MadeRows, binary: bool) -> bytes:
    """Sparse rows as MultiSlot lines: the label, the ids (from 1) and, unless all are 1, the values."""
    lengths = np.diff(rows.offsets)[:, None]
    label = (np.ones_like(lengths), rows.labels * UNITS)
    ids = (lengths, (rows.ids + 1) * UNITS)
    return _multislot([label, ids] if binary else [label, ids, (lengths, rows.values)])


def clicks_multislot(rows: MadeClicks) -> bytes:
    """Clicks as MultiSlot lines: the label, all numbers in one slot, and the ids (from 1) of each slot."""
    count, width = rows.numbers.shape
    parts = [(np.ones((count, 1), np.int64), rows.labels * UNITS)]
    if width:
        parts.append((np.full((count, 1), width), rows.numbers.ravel()))
    return _multislot([*parts, (rows.lengths, (rows.ids + 1) * UNITS)])


def csv(rows: MadeClicks) -> bytes:
    """Clicks with one category a slot: label,I1,…,C1,…; categories are v1, v2, …; see `csv_head`."""
    cells = [digits(rows.labels), *(_after(",", decimals(column)) for column in rows.numbers.T)]
    cells += [_after(",v", digits(column + 1)) for column in rows.ids.reshape(len(rows.labels), -1).T]
    return _lines(_after("\n", np.hstack(cells)))


def csv_head(config: ClicksConfig) -> bytes:
    """The line that names the columns."""
    return ",".join(("label", *number_names(config), *slot_names(config))).encode() + b"\n"


def criteo(rows: MadeClicks) -> bytes:
    """Clicks with one category a slot as Criteo has them: counts, then categories of eight hexadecimal digits."""
    cells = [digits(rows.labels), *(_after("\t", digits(column)) for column in rows.counts.T)]
    ids = rows.ids.reshape(len(rows.labels), -1).T
    cells += [_after("\t", hexadecimals((column * _SPREAD & 0xFFFFFFFF).astype(np.uint32))) for column in ids]
    return _lines(_after("\n", np.hstack(cells)))


def libffm(rows: MadeClicks, features: int) -> bytes:
    """Clicks as libffm lines: field:feature:value; numbers are fields and features after those of the slots."""
    count, slots = rows.lengths.shape
    width = rows.numbers.shape[1]
    ones = np.ones((count, 1), np.int64)
    lengths = np.hstack([ones, rows.lengths, np.repeat(ones, width, axis=1)])
    fields = np.repeat(np.tile(np.arange(-1, slots + width), count), lengths.ravel())  # -1: the label
    ids = np.zeros(len(fields), np.int64)
    values = np.full(len(fields), UNITS)
    is_slot, is_number = (fields >= 0) & (fields < slots), fields >= slots
    ids[is_slot] = rows.ids + 1
    ids[is_number] = fields[is_number] - slots + features + 1
    values[is_number] = rows.numbers.ravel()
    heads = fields < 0
    text = np.hstack([_sign(" ", len(fields)), digits(np.maximum(fields, 0)), _sign(":", len(fields)), digits(ids),
                      _sign(":", len(fields)), decimals(values)])  # fmt: skip
    text[heads] = 0
    text[heads, 0] = words_of(["\n0", "\n1"])[rows.labels]
    return _lines(text)


def number_names(config: ClicksConfig) -> list[str]:
    """Names of the columns of numbers."""
    return [f"I{k + 1}" for k in range(config.numbers)]


def slot_names(config: ClicksConfig) -> list[str]:
    """Names of the slots."""
    return [f"C{k + 1}" for k in range(config.slots)]


def _multislot(parts: Sequence[tuple[Longs, Longs]]) -> bytes:
    """`count v1 … vn` a slot. parts: (rows, slots) counts, and the values of all rows in units of 1 / UNITS."""
    lengths = np.hstack([counts for counts, _ in parts])
    ends = np.cumsum(lengths.ravel() + 1)                       # of each slot among all tokens
    places = (ends - lengths.ravel() - 1).reshape(lengths.shape)  # where the count of each slot stands
    numbers = np.zeros(int(ends[-1]), np.int64)
    numbers[places] = lengths * UNITS
    first = 0
    for counts, values in parts:
        starts = places[:, first : first + counts.shape[1]].ravel() + 1
        before = np.cumsum(counts.ravel()) - counts.ravel()
        numbers[np.repeat(starts - before, counts.ravel()) + np.arange(len(values))] = values
        first += counts.shape[1]
    text = np.hstack([_sign(" ", len(numbers)), decimals(numbers)])
    text[places[:, 0], 0] = words_of(["\n"])[0]
    return _lines(text)


def _sign(sign: str, count: int) -> Words:
    return np.full((count, 1), words_of([sign])[0], np.uint32)


def _after(sign: str, text: Words) -> Words:
    return np.hstack([_sign(sign, len(text)), text])


def _lines(text: Words) -> bytes:
    """Rows begin with a line end; a text ends with one."""
    return joined(text)[1:] + b"\n"
