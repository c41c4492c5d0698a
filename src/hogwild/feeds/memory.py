"""Data in memory as a feed: sparse matrices, arrays, lists of lists, texts, records, pandas and polars frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import BinaryRows, DenseRows, Floats, Ids, Offsets, Rows
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.labels import TEXT_NAME
from hogwild.feeds.sparse.labelsets import SetLabels, Sets
from hogwild.feeds.sparse.matrix import are_records, are_texts, as_csr, sound
from hogwild.feeds.storage.ranking import Frequencies, check_features
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.ranking import replace_ids
from hogwild.messages import shown


def feed_of(
    X: Any,  # noqa: N803
    y: Any = None,
    sample_weight: Any = None,
    rank: bool = True,
    schema: Mapping[str, Any] | None = None,
    config: FeedConfig | None = None,
) -> Feed:
    """Make a feed of data in memory.

    Parameters
    ----------
    X
        Rows by features: a scipy sparse matrix or array of any format, a NumPy array, a list of lists, a pandas or
        polars frame, an Arrow table, a list of dicts, or texts; also what yields such rows one by one. A frame of
        numbers (True and False are 1 and 0) is dense; one that has columns of strings or categories too, or values that
        are missing, is read like a table in a file: one feature a category, numbers scaled. Texts are hashed.
    y
        One label or target a row: numbers, or words that name classes; or several, as a list, tuple or set a row, for
        models that learn each label for itself. None: those of the column `label` of `config` or
        of the schema, else all 0.
    sample_weight
        One importance a row, not negative, as it is. None: those of the column `weight` of `config`, which are divided
        by their mean, else all 1.
    rank
        Number the features of sparse data by frequency, which training with several workers profits from;
        `Feed.original` gives their own numbers.
    schema
        `Feed.schema` of the feed that a model was trained on, so that the same columns and words get the same ids;
        columns are found by their names, rows without names have them in the order of training.
    config
        How a table is read, as `open_feed` takes it: which columns are text, categories or left out, hashing, slots.

    Examples
    --------
    >>> feed = feed_of([[0.0, 1.0], [2.0, 3.0]], ["ham", "spam"])
    >>> len(feed), feed.features, feed.labels, feed.samples.targets.tolist()
    (2, 2, ('ham', 'spam'), [0.0, 1.0])
    >>> texts = feed_of(["a warm film", "dull, dull"], ["good", "bad"], config=FeedConfig(hash_bits=10))
    >>> texts.features, texts.schema["text"]
    (1024, 'text')
    """
    X, y, sample_weight = (list(data) if isinstance(data, Iterator) else data for data in (X, y, sample_weight))  # noqa: N806
    known = schema or {}
    names: tuple[str, ...] = ()
    asked = config is not None or known.get("format") == "table"
    if not hasattr(X, "tocsr") and (asked or _is_table(X)):
        from hogwild.feeds.tables import dataframes  # late: pyarrow is slow to import

        if asked or not dataframes.is_numeric(X):
            return _table_feed(X, (y, sample_weight), rank, known, config or FeedConfig())
        names = dataframes.names_of(X)
        _check_shape(*X.shape)
        X = dataframes.matrix_of(X)  # noqa: N806
    elif config is not None:
        raise ConfigError("config says how columns are read, and a sparse matrix has none; leave it out.")
    rows = _length(X)
    several = sets_of(y, rows)
    targets, labels, sets = several or (*targets_of(y, rows), ())
    importance = importance_of(sample_weight, rows)
    if hasattr(X, "tocsr"):
        samples, features = _sparse_rows(X, targets, importance)
        feed = Feed(samples, features, labels=labels, sets=sets)
    else:
        matrix = dense_matrix(X, names)
        feed = Feed(DenseRows(matrix, targets, importance), matrix.shape[1], labels=labels, sets=sets)
        if names:
            feed = replace(feed, schema=dataframes.schema_of(names, labels, matrix))
    feed = replace(feed, labelled=y is not None)
    return ranked(feed) if rank else feed


def _is_table(data: Any) -> bool:
    """Whether this is read like a file: a frame, texts, records, or numbers of which some are missing."""
    if type(data).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
        return getattr(data, "ndim", 2) == 2 or are_texts(data)
    return are_texts(data) or are_records(data) or _gaps_of(data) is not None


def _gaps_of(data: Any) -> npt.NDArray[Any] | None:
    """The data in float64 if they are rows of numbers of which some are missing: None, or NaN."""
    try:
        numbers = np.asarray(data)
        if numbers.ndim != 2 or numbers.dtype.kind not in "fO":
            return None
        numbers = numbers.astype(np.float64, copy=False)
    except (ValueError, TypeError, OverflowError):
        return None
    return numbers if bool(np.isnan(numbers).any()) else None


def filled(data: Any, means: Sequence[float]) -> Any:
    """Rows of numbers with these means of columns in place of missing ones; the data itself where none is missing, or
    where columns have names."""
    named = type(getattr(data, "columns", None)).__name__ not in ("NoneType", "RangeIndex")
    numbers = None if named or hasattr(data, "tocsr") else _gaps_of(data)
    if numbers is None or numbers.shape[1] != len(means):
        return data
    return np.where(np.isnan(numbers), np.array(means), numbers)


def _table_feed(data: Any, given: tuple[Any, Any], rank: bool, schema: Mapping[str, Any], config: FeedConfig) -> Feed:
    """What is read like a table, with its labels and weights, as a feed."""
    from hogwild.feeds.tables import dataframes

    if are_texts(data) and not schema:
        config = replace(config, text=config.text or TEXT_NAME)
    table = dataframes.table_of(data, schema, config.text)
    y, sample_weight = given
    if sample_weight is not None:
        if config.weight not in ("", "none"):
            twice = f"by sample_weight and by the column {config.weight!r} of config"
            raise ConfigError(f"weights are given twice, {twice}; keep one.")
        config = replace(config, weight="none")
    rows = table.num_rows
    _check_shape(rows, table.num_columns)
    importance = importance_of(sample_weight, rows)
    words: Any = None
    if several := sets_of(y, rows):
        targets, labels, sets = several
        words = [[labels[place] for place in sets[int(number)]] for number in targets.tolist()]
        config = replace(config, several_labels=True)
    elif y is not None:
        targets, labels = targets_of(y, rows)
        words = np.array(labels)[targets.astype(np.int64)] if labels else targets
    feed = dataframes.feed_of_table(table, words, config, schema)
    assert feed.lines is not None
    if sample_weight is not None:
        kept = importance[feed.lines - 1]  # rows that are skipped as bad have none
        feed = replace(feed, samples=feed.samples._replace(importance=kept))
    feed = replace(feed, source="X", fingerprint="")
    if len(feed) == rows:  # then a row is called by its number
        feed = replace(feed, lines=None, files=())
    return feed if rank else _unranked(feed)


def _unranked(feed: Feed) -> Feed:
    """The same feed with the features' own ids."""
    if feed.original is None or isinstance(feed.samples, DenseRows):
        return feed
    ids = feed.original[feed.samples.ids]
    return replace(feed, samples=feed.samples._replace(ids=ids), original=None)


def ranked(feed: Feed) -> Feed:
    """The same feed with its ids ranked by frequency. Dense ones stay as they are."""
    if feed.original is not None or isinstance(feed.samples, DenseRows):
        return feed
    seen = Frequencies()
    seen.add(feed.samples.ids)
    ranks, original = seen.rank(feed.features)
    ids = feed.samples.ids.copy()
    ready(replace_ids, len(ids))(ids, ranks, 0)
    return replace(feed, samples=feed.samples._replace(ids=ids), original=original)


def _length(data: Any) -> int:
    shape = getattr(data, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    try:
        return len(data)
    except TypeError:
        raise InputError(f"X is {type(data).__name__}; give a matrix of rows by features.") from None


# -- features -------------------------------------------------------------------------------------------------------


def dense_matrix(data: Any, columns: Sequence[str] = ()) -> Floats:
    """The data as a matrix of finite float32; `columns` name its columns in messages."""
    matrix = _as_array(data, "X")
    if matrix.ndim != 2:
        raise InputError(f"X has {matrix.ndim} dimension{'s' * (matrix.ndim != 1)}, not 2: rows by features. Use"
                         " X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row.")
    _check_shape(*matrix.shape)
    numbers = _as_numbers(matrix, "X")
    _check_finite(numbers, matrix, lambda place: f"row {place[0]}, column {_name(place[1], columns)}")
    return np.require(numbers, requirements=("C", "A"))  # compiled code reads whole words


def _sparse_rows(data: Any, targets: Floats, importance: Floats) -> tuple[Rows | BinaryRows, int]:
    sound(data)
    _check_shape(*data.shape)
    check_features(data.shape[1])
    matrix = as_csr(data)
    offsets: Offsets = np.ascontiguousarray(matrix.indptr, np.int64)
    ids: Ids = np.ascontiguousarray(matrix.indices, np.int32)
    values = np.ascontiguousarray(_as_numbers(matrix.data, "X"))

    def place_of(place: tuple[int, ...]) -> str:
        return f"row {int(np.searchsorted(offsets, place[0], side='right')) - 1}, column {int(ids[place[0]])}"

    _check_finite(values, matrix.data, place_of)
    if len(values) and bool((values == 1).all()):
        return BinaryRows(offsets, ids, targets, importance), int(matrix.shape[1])
    return Rows(offsets, ids, values, targets, importance), int(matrix.shape[1])


def _check_shape(rows: int, columns: int) -> None:
    if not rows:
        raise InputError("X has no rows; give at least one.")
    if not columns:
        raise InputError("X has no columns; give at least one feature.")


# -- targets --------------------------------------------------------------------------------------------------------


def targets_of(y: Any, rows: int) -> tuple[Floats, tuple[str, ...]]:
    """Targets and, if the labels are words, their names: targets are then places in the sorted names."""
    if y is None:
        return np.zeros(rows, np.float32), ()
    labels = _one_a_row(y, "y", rows)
    if labels.dtype.kind in "OSU" and not _all_real(labels):
        missing = next((k for k, label in enumerate(labels) if _absent(label)), None)
        if missing is not None:
            raise InputError(f"y has no label in row {missing}; drop that row.")
        try:
            names, places = np.unique(labels.astype(str), return_inverse=True)
        except (ValueError, TypeError):
            raise InputError("y holds lists or the like, which are no labels; give one word or number a row.") from None
        return np.ascontiguousarray(places, np.float32), tuple(names.tolist())
    numbers = _as_numbers(labels, "y")
    _check_finite(numbers, labels, lambda place: f"row {place[0]}", "y")
    return np.ascontiguousarray(numbers), ()


def sets_of(y: Any, rows: int) -> tuple[Floats, tuple[str, ...], Sets] | None:
    """Numbers of sets, names of labels and the labels of each set, where y has a list, tuple or set of labels a row."""
    if hasattr(y, "dtype") and y.dtype != object:
        return None
    try:
        given = list(y)
    except TypeError:
        return None
    if not given or not all(isinstance(each, list | tuple | set | frozenset) for each in given):
        return None
    if len(given) != rows:
        raise InputError(f"X has {rows} rows, but y has {len(given)} lists of labels; give one a row.")
    odd = next((row for row, each in enumerate(given) if not all(_is_label(label) for label in each)), None)
    if odd is not None:
        raise InputError(f"y holds {shown(str(given[odd]))} in row {odd}; labels are words or whole numbers.")
    known: dict[tuple[str, ...], int] = {}
    codes = [known.setdefault(tuple(sorted(map(str, each))), len(known)) for each in given]
    labels = SetLabels(FeedConfig(several_labels=True))
    targets, _ = labels.targets_of_sets(list(known), np.array(codes, np.intp), empty=True)
    return targets, labels.names(), labels.sets()


def _is_label(label: Any) -> bool:
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    return whole or (isinstance(label, str) and bool(label))


def importance_of(weights: Any, rows: int) -> Floats:
    """One importance a row."""
    if weights is None:
        return np.ones(rows, np.float32)
    given = _one_a_row(weights, "sample_weight", rows)
    numbers = _as_numbers(given, "sample_weight")
    _check_finite(numbers, given, lambda place: f"row {place[0]}", "sample_weight")
    if len(numbers) and float(numbers.min()) < 0:
        row = int(np.argmin(numbers))
        raise InputError(f"sample_weight is {numbers[row]:g} in row {row}; it must not be negative.")
    return np.ascontiguousarray(numbers)


def _one_a_row(data: Any, what: str, rows: int) -> npt.NDArray[Any]:
    array = _as_array(data, what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{what} has shape {array.shape}; give one value a row.")
    if len(array) != rows:
        raise InputError(f"X has {rows} rows, but {what} has {len(array)} values; give one a row.")
    return array


# -- numbers --------------------------------------------------------------------------------------------------------


def _as_array(data: Any, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(data)
    except (ValueError, TypeError):
        raise InputError(f"{what} is not a regular array; its rows must all have the same length.") from None


def _absent(label: Any) -> bool:
    # NaN differs from itself; pandas' NA and NaT cannot be asked.
    return label is None or type(label).__name__ in ("NAType", "NaTType") or (
        isinstance(label, (float, np.floating)) and bool(label != label)
    )


def _all_real(labels: npt.NDArray[Any]) -> bool:
    return labels.dtype.kind == "O" and all(isinstance(x, (int, float, np.integer, np.floating)) for x in labels)


def _as_numbers(array: npt.NDArray[Any], what: str) -> Floats:
    """The array in float32; numbers that do not fit become infinite."""
    if array.dtype.kind == "c":
        raise InputError(f"{what} holds complex numbers; give real ones.")
    try:
        with np.errstate(over="ignore"):
            return array.astype(np.float32, copy=False)
    except (ValueError, TypeError, OverflowError):
        pass
    for place in np.ndindex(array.shape):
        try:
            np.float32(array[place])
        except OverflowError:
            number = shown(str(array[place]))
            raise InputError(f"{what} holds {number} at {place}, which is too large for float32.") from None
        except (ValueError, TypeError):
            raise InputError(f"{what} holds `{shown(str(array[place]))}` at {place}, which is not a number.") from None
    raise InputError(f"{what} holds {array.dtype}, not numbers.")


def _check_finite(numbers: Floats, given: npt.NDArray[Any], place_of: Any, what: str = "X") -> None:
    # A sum is finite only if all numbers are (or overflow, and then the slow way says so): one pass, no copy.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(numbers.sum(dtype=np.float64)) or bool(np.isfinite(numbers).all()):
            return
    place = tuple(int(k) for k in np.unravel_index(int(np.argmin(np.isfinite(numbers))), numbers.shape))
    value = given[place]
    finite = value is not None and np.isfinite(float(value))
    why = "which is too large for float32" if finite else "which is not a finite number"
    raise InputError(f"{what} holds {value} in {place_of(place)}, {why}; clean or drop that row.")


def _name(column: int, columns: Sequence[str]) -> str:
    return f"`{shown(columns[column])}`" if columns else str(column)
