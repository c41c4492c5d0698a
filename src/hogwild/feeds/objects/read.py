"""Blocks of JSON lines as Arrow arrays: Arrow's parser where a block is plain, else line by line, which says what is
wrong with each.

Arrow's parser calls itself for each level of nesting and takes objects wherever they begin: it is given only blocks
whose lines have few brackets, begin with one and end with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from hogwild.arrays import Offsets
from hogwild.feeds.io.source import Bytes
from hogwild.feeds.objects.values import (
    NOTHING,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    WHOLES,
    MalformedError,
    kind_of,
    object_in,
)
from hogwild.messages import shown

_DEEPEST = 1000  # brackets of a line that Arrow's parser is given
_TYPES = {NUMBER: pa.float64(), WHOLE: pa.int64(), TEXT: pa.string(), TRUTH: pa.bool_(),
          TEXTS: pa.list_(pa.string()), WHOLES: pa.list_(pa.int64())}  # fmt: skip
_OPEN, _CLOSE, _NEWLINE, _BLANK = ord("{"), ord("}"), 10, 32


class Wanted(NamedTuple):
    """Fields to read: what kind of values each has. words: texts that stand for a missing value, in small letters;
    known: all fields of the first lines, None where others do not matter."""

    kinds: Mapping[str, str]
    words: frozenset[str]
    known: frozenset[str] | None = None


class Columns(NamedTuple):
    """Rows of a block: lines[i], from 0, is that of row i; wrong: what is wrong with lines that have no row here.

    late: fields that the first lines do not have.
    """

    arrays: Mapping[str, Any]
    lines: Offsets
    wrong: Mapping[int, str]
    late: frozenset[str] = frozenset()


def read_columns(text: Bytes, wanted: Wanted) -> Columns:
    """Read the wanted fields of a block."""
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.concatenate(([0], ends[:-1] + 1))
    filled = np.flatnonzero(text > _BLANK)
    first = np.searchsorted(filled, starts)
    past = np.searchsorted(filled, ends)
    lines = np.flatnonzero(past > first)
    if _is_plain(text, starts, filled[first[lines]], filled[past[lines] - 1]):
        table = _parse(text, wanted)
        if table is not None and table.num_rows == len(lines):
            late = frozenset(table.schema.names) - wanted.known if wanted.known is not None else frozenset()
            return Columns({name: _whole(table[name]) for name in wanted.kinds}, lines, {}, late)
    return _read_lines(text, np.stack((starts, ends), 1), lines, wanted)


def _is_plain(text: Bytes, starts: Offsets, first: npt.NDArray[Any], last: npt.NDArray[Any]) -> bool:
    brackets = (text == _OPEN) | (text == ord("["))
    deep = len(starts) and int(np.add.reduceat(brackets, starts).max()) > _DEEPEST
    return not deep and bool((text[first] == _OPEN).all() and (text[last] == _CLOSE).all()) and len(first) > 0


def _parse(text: Bytes, wanted: Wanted) -> Any:
    """A table of the wanted fields, and of others if they matter; None where something is odd."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in wanted.kinds.items()])
    json = pyarrow.json
    for others in ("infer", "ignore") if wanted.known is not None else ("ignore",):
        options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
        try:
            reading = json.ReadOptions(use_threads=False, block_size=len(text) + 1)
            table = json.read_json(pa.BufferReader(pa.py_buffer(text)), reading, options)
            table.validate(full=True)
            return table
        except (pa.ArrowException, UnicodeDecodeError):
            continue
    return None


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


# -- line by line ---------------------------------------------------------------------------------------------------


def _read_lines(text: Bytes, bounds: Offsets, lines: Offsets, wanted: Wanted) -> Columns:
    values: dict[str, list[Any]] = {name: [] for name in wanted.kinds}
    good: list[int] = []
    wrong: dict[int, str] = {}
    late: set[str] = set()
    for line in lines.tolist():
        start, end = bounds[line].tolist()
        try:
            fields = object_in(text[start:end].tobytes().decode())
            row = [_value(fields.get(name), name, kind, wanted.words) for name, kind in wanted.kinds.items()]
        except MalformedError as problem:
            wrong[line] = str(problem)
            continue
        good.append(line)
        for column, value in zip(values.values(), row, strict=True):
            column.append(value)
        if wanted.known is not None:
            late |= fields.keys() - wanted.known
    arrays = {name: pa.array(column, _PLAIN[wanted.kinds[name]]) for name, column in values.items()}
    return Columns(arrays, np.array(good, np.int64), wrong, frozenset(late))


_PLAIN = {NUMBER: pa.float64(), WHOLE: pa.string(), TEXT: pa.string(), TRUTH: pa.bool_(),
          TEXTS: pa.list_(pa.string()), WHOLES: pa.list_(pa.string())}  # fmt: skip
_FITTING = {
    NUMBER: (NUMBER, WHOLE), WHOLE: (WHOLE, NUMBER), TEXT: (TEXT,), TRUTH: (TRUTH,),
    TEXTS: (TEXTS, "an empty list"), WHOLES: (WHOLES, "an empty list"),
}  # fmt: skip


def _value(value: Any, name: str, kind: str, words: frozenset[str]) -> Any:
    """A value as a column of this kind has it. Raises MalformedError."""
    found = kind_of(value)
    if found == NOTHING or (found == TEXT and kind != TEXT and value.strip().lower() in words):
        return None
    if found not in _FITTING[kind]:
        raise MalformedError(f"column `{shown(name)}`: {found}, where the first lines have {kind}; write all values as"
                             " one kind")  # fmt: skip
    if kind == NUMBER:
        return _number(value, name)
    if kind in (TEXT, TEXTS):
        return _sound(value, name)
    if kind == WHOLE:
        return str(value) if isinstance(value, int) else f"{value:.17g}"
    return [str(item) for item in value] if kind == WHOLES else value


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise MalformedError(f"column `{shown(name)}`: a number is too large") from None


def _sound(value: Any, name: str) -> Any:
    try:
        "".join(value).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise MalformedError(f"column `{shown(name)}`: `{half}` is half of a character") from None
    return value
