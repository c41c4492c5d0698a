"""Frames: runs of rows of a table as Arrow arrays, and the arrays as numbers, words and texts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hogwild.arrays import Offsets, fits_float32
from hogwild.errors import InputError
from hogwild.feeds.io.source import Bytes, Source
from hogwild.feeds.tables.arrowcheck import why_unsound
from hogwild.feeds.tables.arrowchild import open_arrow
from hogwild.feeds.tables.columns import CATEGORICAL, NUMERIC, SAMPLE, SEVERAL_VALUES, Plan, Sample
from hogwild.feeds.tables.fields import EPOCH, YEAR, FieldRules, style_of
from hogwild.messages import shown

Numbers = npt.NDArray[np.float64]
T = TypeVar("T", bound=np.generic)

WIDE = 512  # columns, from which on those of one kind are read together


class Frame(NamedTuple):
    """Rows of one file: lines[i] is the line of row i (its number in a binary file), arrays[name] its fields.

    wrong: what is the matter with lines that have no row here; seen: lines that were looked at, those included;
    replaced: bytes that were not UTF-8. cells: numbers and categories of a table with very many columns.
    """

    source: Source
    file: int
    lines: Offsets
    arrays: Mapping[str, Any]
    wrong: Mapping[int, str]
    seen: int
    replaced: int = 0
    cells: WideCells | None = None


class WideCells(NamedTuple):
    """All columns of numbers as one array, and all columns of categories.

    Row after row as they stand in the file, and the orders say where in such a row each column of the plan stands; or,
    without orders, column after column.
    """

    numbers: Any
    words: Any
    orders: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None

    def matrix(self, flat: npt.NDArray[T], rows: int, kind: int) -> npt.NDArray[T]:
        """What was made of an array, numbers (kind 0) or words (kind 1): by rows and columns of the plan."""
        if self.orders is None:
            return flat.reshape(-1, rows).T.copy() if rows else flat.reshape(0, 0)
        order = self.orders[kind]
        return flat.reshape(rows, len(order))[:, order]


class Codes(NamedTuple):
    """Words of a column: row i has words[codes[i]], or none where the code is -1.

    Of several columns: codes[i, k] is that of column k, and owners[w] the only column that has the word w.
    left_out: words that stand for a missing value.
    """

    codes: npt.NDArray[np.int32]
    words: Any
    owners: npt.NDArray[np.int64] | None = None
    left_out: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """How many columns."""
        return 1 if self.owners is None else self.codes.shape[1]


class RowSets(NamedTuple):
    """Lists of words: row i has sets[codes[i]]; absent: rows that have no list."""

    sets: list[tuple[str, ...]]
    codes: npt.NDArray[np.intp]
    absent: npt.NDArray[np.bool_]


def read_matrix(frame: Frame, names: Sequence[str], rules: FieldRules) -> tuple[Numbers, dict[int, str]]:
    """Columns as a matrix of numbers, NaN where one is missing, and what is wrong with rows where one is no finite
    float32."""
    rows, wrong = len(frame.lines), dict[int, str]()
    if frame.cells is None:
        matrix = np.empty((rows, len(names)))
        for k, name in enumerate(names):
            matrix[:, k], odd = read_numbers(frame.arrays[name], rules)
            wrong.update((row, _no_number(name, word)) for row, word in odd.items())
        return matrix, wrong
    numbers, odd = read_numbers(frame.cells.numbers, rules)
    if odd:
        places = frame.cells.matrix(np.arange(len(numbers)), rows, 0)
        said = np.isin(places, list(odd))
        for row, k in zip(*np.nonzero(said), strict=True):
            wrong[int(row)] = _no_number(names[k], odd[int(places[row, k])])
    return frame.cells.matrix(numbers, rows, 0), wrong


def _no_number(name: str, word: str) -> str:
    style = style_of(word)
    hint = f" (it would be one with --number-style {style})" if style else ""
    return f"column `{shown(name)}`: `{word}` is not a finite number{hint}"


def read_categories(frame: Frame, names: Sequence[str], rules: FieldRules) -> list[Codes]:
    """Columns of words, each for itself or all together."""
    if frame.cells is None:
        return [read_words(frame.arrays[name], rules) for name in names]
    codes, words, _, left_out = read_words(frame.cells.words, rules)
    matrix = frame.cells.matrix(codes, len(frame.lines), 1)
    there = matrix >= 0
    owned = np.nonzero(there)[1] * np.int64(len(words)) + matrix[there]
    pairs, places = np.unique(owned, return_inverse=True)
    matrix[there] = places
    owners, used = np.divmod(pairs, max(1, len(words)))
    return [Codes(matrix, words.take(pa.array(used)), owners, left_out)]


def joined_columns(frame: Frame, numeric: Sequence[str], categorical: Sequence[str]) -> Frame:
    """The frame with its columns of numbers joined to one array, and its columns of categories, if they are many."""
    arrays = frame.arrays
    own = any(_is_text(kind) or is_date(kind) for kind in (arrays[name].type for name in numeric))
    if len(numeric) + len(categorical) < WIDE or own:
        return frame
    numbers = [pc.cast(_plain(arrays[name]), pa.float64(), safe=False) for name in numeric]
    words = [pc.cast(_plain(arrays[name]), pa.string()) for name in categorical]
    cells = WideCells(*(pa.concat_arrays(parts) if parts else pa.array([], pa.string()) for parts in (numbers, words)))
    return frame._replace(cells=cells)


def _plain(array: Any) -> Any:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def read_numbers(array: Any, rules: FieldRules) -> tuple[Numbers, dict[int, str]]:
    """A column as numbers, NaN where a field is missing, and the rows whose field is no finite float32."""
    array = _plain(array)
    if _is_text(array.type):
        return _parse_numbers(pc.cast(array, pa.string()), rules)
    if is_date(array.type):
        return _years(array), {}
    values = pc.cast(array, pa.float64(), safe=False)
    numbers = rules.without_codes(values.fill_null(np.nan).to_numpy(zero_copy_only=False).astype(np.float64))
    with np.errstate(over="ignore"):
        infinite = np.isinf(numbers.astype(np.float32))
    return numbers, {int(k): str(numbers[k]) for k in np.flatnonzero(infinite)} if infinite.any() else {}


def _parse_numbers(array: Any, rules: FieldRules) -> tuple[Numbers, dict[int, str]]:
    """Strings as numbers: for blocks in which Arrow found something that is no number."""
    present = pc.if_else(pa.array(rules.missing_among(array)), pa.scalar(None, pa.string()), array)
    if rules.style == "plain":
        with suppress(pa.ArrowInvalid):  # all others are numbers
            return read_numbers(pc.cast(pc.utf8_trim_whitespace(present), pa.float64()), rules)
    coded = present.dictionary_encode()
    words = coded.dictionary.to_pylist()
    known = [rules.number_of(word) for word in words]
    odd = {k: shown(word) for k, word in enumerate(words) if (number := known[k]) is None or _too_large(number)}
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    numbers = np.array([*(np.nan if number is None else number for number in known), np.nan])[codes]
    rows = np.flatnonzero(np.isin(codes, list(odd))).tolist() if odd else []
    return numbers, {row: odd[int(codes[row])] for row in rows}


def _too_large(number: float) -> bool:
    return not math.isnan(number) and not fits_float32(number)


def _years(array: Any) -> Numbers:
    """Dates and times as years since 2000."""
    seconds = pc.cast(array, pa.timestamp("us", getattr(array.type, "tz", None)), safe=False).cast(pa.int64())
    past = (seconds.fill_null(0).to_numpy(zero_copy_only=False) / 1e6 - EPOCH.timestamp()) / YEAR
    return np.where(seconds.is_null().to_numpy(zero_copy_only=False), np.nan, past)


def read_words(array: Any, rules: FieldRules) -> Codes:
    """A column as words without blanks around them; missing ones are none."""
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    words = pc.utf8_trim_whitespace(pc.cast(array.dictionary, pa.string()))
    codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)  # unsigned too
    missing = rules.missing_among(words)
    if not missing.any():
        return Codes(codes, words)
    codes[(codes >= 0) & missing[codes]] = -1
    left_out = (word for word in words.filter(pa.array(missing)).to_pylist() if word)
    return Codes(codes, words, left_out=tuple(left_out))


def read_sets(array: Any) -> RowSets:
    """A column of lists as sets of words; see RowSets."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)
    flat = pc.list_flatten(array)
    words = pc.utf8_trim_whitespace(pc.cast(_plain(flat), pa.string())).fill_null("").to_pylist()
    ends = np.cumsum(lengths)
    known: dict[tuple[str, ...], int] = {}
    codes = [
        known.setdefault(tuple(words[end - length : end]), len(known))
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]
    absent = np.asarray(array.is_null())
    return RowSets(list(known), np.array(codes, np.intp), absent)


def is_labels(kind: Any) -> bool:
    """Whether a type of Arrow is that of lists of labels: of words, whole numbers, or nothing."""
    types = pa.types
    return is_list(kind, lambda item: _is_text(item) or types.is_integer(item) or types.is_null(item))


class Bags(NamedTuple):
    """A column whose rows have several values, each once: row i has lengths[i] of the items, none of which is
    missing."""

    lengths: Offsets
    items: Codes


def read_bags(array: Any, separator: str, rules: FieldRules) -> Bags:
    """A column of lists, or of fields that hold several words with a separator between them."""
    array = _plain(array)
    if not is_list(array.type):
        array = pc.split_pattern(pc.cast(array, pa.string()).fill_null(""), separator)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)
    items = read_words(_words_of(pc.list_flatten(array)), rules)
    rows, codes = np.repeat(np.arange(len(lengths)), lengths), items.codes.astype(np.int64)
    # Of a value that a row has twice the first one stays.
    _, firsts = np.unique(rows * (len(items.words) + 1) + codes, return_index=True)
    kept = np.zeros(len(codes), np.bool_)
    kept[firsts] = True
    kept &= codes >= 0
    return Bags(np.bincount(rows[kept], minlength=len(lengths)), items._replace(codes=items.codes[kept]))


def _words_of(array: Any) -> Any:
    """Items of lists as words without blanks around them: `a` and `a ` are one."""
    return pc.utf8_trim_whitespace(pc.cast(_plain(array), pa.string()))


def keep_bags(bags: Bags, keep: npt.NDArray[np.bool_]) -> Bags:
    """The rows that are marked."""
    codes = bags.items.codes[np.repeat(keep, bags.lengths)]
    return Bags(bags.lengths[keep], bags.items._replace(codes=codes))


def read_texts(array: Any) -> tuple[Bytes, Offsets]:
    """A column as bytes, and where in them the text of each row begins and ends."""
    data, offsets = string_buffers(pc.cast(_plain(array), pa.string()).fill_null(""))
    return data, np.stack((offsets[:-1], offsets[1:]), axis=1)


def string_buffers(array: Any) -> tuple[Bytes, Offsets]:
    """Bytes of an array of strings, and the offsets of each. Copies: what Arrow gives may not be written to, and code
    would be compiled once more for such arrays."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    if data is None or not len(ends):
        return np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].copy(), ends - ends[0]


# -- Parquet and Arrow files, a few thousand rows at a time -----------------------------------------------------------

_ROWS, _CELLS = 8192, 1 << 23  # of a frame at the most
_REASON = 200  # characters of a reason that messages show


class ArrowFile:
    """A Parquet file, or an Arrow (Feather, IPC) file or stream.

    names: its columns; types: of Arrow; kinds: numeric, categorical, or why the column cannot be a feature;
    label_kinds: what a label in that column would be, `numbers` or `words`.
    """

    def __init__(self, source: Source, form: str) -> None:
        self.source = source
        self.form = form
        with self._reading():
            schema = self._open()[0]
        self.names: tuple[str, ...] = tuple(schema.names)
        self.types = [field.type for field in schema]
        self.kinds = [_kind(field.type) for field in schema]
        self.label_kinds = [_label_kind(field.type) for field in schema]

    def sample(self, rules: FieldRules) -> Sample:
        """The first rows. Columns of strings that hold nothing but numbers are words all the same, unless the user says
        how numbers or dates are written."""
        kinds = {name: NUMERIC if rules.dates and is_date(kind) else own
                 for name, own, kind in zip(self.names, self.kinds, self.types, strict=True)}  # fmt: skip
        words = [name for name, kind in zip(self.names, self.types, strict=True) if _is_text(kind)]
        frame = next(self.frames(words, 0), None) if words else None
        if frame is None:
            return Sample(kinds, {})
        heads = {name: _plain(frame.arrays[name][:SAMPLE]).cast(pa.string()) for name in words}
        first = {name: head.fill_null("").to_pylist() for name, head in heads.items()}
        if rules.style != "plain" or rules.dates:
            kinds |= Sample.of(first, rules).kinds
        return Sample(kinds, {name: rules.present(fields) for name, fields in first.items()})

    def check_kinds(self, plan: Plan, called: Mapping[str, str]) -> None:
        """Raise InputError for a column of lists where a plan has one value a row, and of what holds no words where it
        has several. called: by the plan's name of a column, its name in this file."""
        kinds = dict(zip(self.names, zip(self.types, self.kinds, strict=True), strict=True))
        for name, own in called.items():
            kind, found = kinds[own]
            if name in plan.multi:
                if found not in (NUMERIC, CATEGORICAL, SEVERAL_VALUES):
                    raise InputError(f"{self.source.name}: column `{shown(own)}` {found}; it needs lists of words.")
            elif name == plan.label and is_labels(kind):
                continue  # rows have several labels
            elif name in (plan.label, *plan.features()) and is_list(kind):
                raise InputError(f"{self.source.name}: column `{shown(own)}` holds lists ({shown(str(kind))}), where"
                                 " one value a row is needed.")  # fmt: skip

    def frames(self, columns: Sequence[str], file: int) -> Iterator[Frame]:
        """The rows of these columns."""
        twice = next((name for name in columns if self.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self.source.name}: two columns are named `{shown(twice)}`; rename one of them.")
        row = 1
        with self._reading():
            for batch in self._open(columns)[1]:
                batch.validate(full=True)  # compiled code trusts offsets, and everyone that text is UTF-8
                for start in range(0, batch.num_rows, _rows(columns)):
                    part = batch.slice(start, _rows(columns))
                    lines = np.arange(row, row + part.num_rows)
                    arrays = {name: part.column(name) for name in columns}
                    yield Frame(self.source, file, lines, arrays, {}, part.num_rows)
                    row += part.num_rows

    def _open(self, columns: Sequence[str] = ()) -> tuple[Any, Iterator[Any]]:
        path = str(self.source.local())
        if self.form == "parquet":
            import pyarrow.parquet  # late: only who has such files needs it

            parquet = pyarrow.parquet.ParquetFile(pa.memory_map(os.fsencode(path)))  # bytes: not every name is UTF-8
            return parquet.schema_arrow, parquet.iter_batches(_rows(columns), columns=list(columns))
        reason = why_unsound(self.source)
        if reason:
            raise self._unreadable(reason)
        return open_arrow(path)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, reason: str) -> InputError:
        name = "Parquet" if self.form == "parquet" else "Arrow"
        line = shown(reason.strip().split("\n")[0].rstrip("."), _REASON)
        return InputError(
            f"{self.source.name}: this is no readable {name} file ({line}); write it again, or check --format."
        )


def _rows(columns: Sequence[str]) -> int:
    return max(1, min(_ROWS, _CELLS // max(1, len(columns))))


def _kind(kind: Any) -> str:
    types, name = pa.types, shown(str(kind), _REASON)
    if types.is_dictionary(kind):
        return CATEGORICAL if _kind(kind.value_type) in (NUMERIC, CATEGORICAL) else _kind(kind.value_type)
    if _label_kind(kind) == "numbers" or types.is_boolean(kind) or types.is_null(kind):
        return NUMERIC
    if _is_text(kind):
        return CATEGORICAL
    if is_list(kind, _is_item):
        return SEVERAL_VALUES
    if is_list(kind, types.is_floating):
        return f"is of type {name}: --values COLUMN reads lists of values, beside lists of ids (--indices COLUMN)"
    if types.is_nested(kind):
        return f"is of type {name}, not a single value a row; give each part a column of its own"
    if is_date(kind):
        return f"is of type {name}; read it as a number of years with --dates iso, or turn it into strings first"
    if types.is_temporal(kind):
        return f"is of type {name}; turn it into numbers or strings first"
    return f"is of type {name}, which is neither number nor string; convert it first"


def _is_item(kind: Any) -> bool:
    """Whether a type of Arrow is that of words, or of whole numbers that name something."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def is_list(kind: Any, item: Callable[[Any], bool] = lambda kind: True) -> bool:
    """Whether a type of Arrow is that of lists of such items."""
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return lists and bool(item(kind.value_type))


def is_date(kind: Any) -> bool:
    """Whether a type of Arrow is that of days or moments."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _label_kind(kind: Any) -> str:
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "numbers" if numeric else "words"
