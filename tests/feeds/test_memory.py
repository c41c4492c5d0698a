"""Data in memory as a feed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from hogwild.arrays import BinaryRows, DenseRows, Rows
from hogwild.config import FeedConfig
from hogwild.errors import HogwildError, InputError
from hogwild.feeds.memory import feed_of
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed


def dense_of(feed: Feed) -> np.ndarray:
    """The rows of a sparse feed as a matrix, in the features' own order."""
    samples = feed.samples
    assert isinstance(samples, (Rows, BinaryRows))
    values = samples.values if isinstance(samples, Rows) else np.ones(len(samples.ids))
    ids = samples.ids if feed.original is None else feed.original[samples.ids]
    return sp.csr_array((values, ids, samples.offsets), (len(feed), feed.features)).toarray()


def random_matrix(seed: int, rows: int = 40, columns: int = 23) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < rng.random(columns) ** 3)
    return matrix.astype(np.float32)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("rank", [True, False])
def test_sparse_of_any_format(form: str, kind: str, rank: bool) -> None:
    matrix = random_matrix(1)
    data = getattr(sp, f"{form}_{kind}")(matrix)
    before = data.toarray()
    feed = feed_of(data, np.arange(40), rank=rank).check()
    assert np.array_equal(dense_of(feed), matrix)
    assert np.array_equal(data.toarray(), before)  # the user's data is as it was
    assert feed.samples.targets.tolist() == list(range(40))
    assert (feed.original is not None) == rank
    counts = np.bincount(feed.samples.ids, minlength=feed.features)
    assert not rank or (np.diff(counts) <= 0).all()


def test_a_feed_is_shown_in_one_line() -> None:
    assert repr(feed_of(np.ones((3, 2)), [1, 2, 3])) == "<Feed of arrays: 3 samples, 2 features, 6 nonzeros>"


def test_csr_is_not_copied() -> None:
    data = sp.csr_array(random_matrix(2))
    samples = feed_of(data, rank=False).samples
    assert isinstance(samples, Rows)
    assert np.shares_memory(samples.values, data.data)
    assert np.shares_memory(samples.ids, data.indices)


def test_duplicates_are_summed_and_zeros_may_be_there() -> None:
    data = sp.csr_array((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 3))
    feed = feed_of(data).check()
    assert dense_of(feed).tolist() == [[0, 3, 0], [0, 0, 0]]
    assert feed.nonzeros == 2
    assert data.nnz == 3


def test_ones_make_binary_rows() -> None:
    for dtype in (np.bool_, np.int64, np.float64):
        assert isinstance(feed_of(sp.csr_array(np.eye(3, dtype=dtype))).samples, BinaryRows)
    assert isinstance(feed_of(sp.csr_array((3, 4))).check().samples, Rows)  # no entries at all


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64, np.bool_])
def test_dense_arrays(dtype: Any) -> None:
    matrix = np.arange(6).reshape(2, 3).astype(dtype)
    for data in (matrix, np.asfortranarray(matrix), matrix.tolist()):
        feed = feed_of(data).check()
        assert isinstance(feed.samples, DenseRows)
        assert feed.samples.matrix.tolist() == matrix.tolist()
        assert feed.samples.matrix.dtype == np.float32
        assert feed.samples.targets.tolist() == [0, 0]
        assert feed.samples.importance.tolist() == [1, 1]
    assert np.shares_memory(feed_of(matrix).samples[0], matrix) == (dtype == np.float32)


@pytest.mark.parametrize(
    ("y", "targets", "labels"),
    [
        ([3, 1.5], [3, 1.5], ()),
        (np.array([True, False]), [1, 0], ()),
        (np.array([[1], [2]]), [1, 2], ()),
        (["spam", "ham"], [1, 0], ("ham", "spam")),
        (np.array(["b", "a"], dtype=object), [1, 0], ("a", "b")),
        (np.array([2, 1], dtype=object), [2, 1], ()),
        (pd.Series(["x", "y"], dtype="category"), [0, 1], ("x", "y")),
        (pl.Series(["x", "y"]), [0, 1], ("x", "y")),
        (pd.Series([1, 2], index=[7, 3]), [1, 2], ()),
    ],
)
def test_labels(y: Any, targets: list[float], labels: tuple[str, ...]) -> None:
    feed = feed_of([[1.0], [2.0]], y, sample_weight=[0, 2.5])
    assert feed.samples.targets.tolist() == targets
    assert feed.labels == labels
    assert feed.samples.importance.tolist() == [0, 2.5]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_of_numbers_are_dense(library: Any) -> None:
    feed = feed_of(library({"a": [1, 2], "b": [0.5, -1], "c": [True, False]}), ["x", "y"]).check()
    assert isinstance(feed.samples, DenseRows)
    assert feed.samples.matrix.tolist() == [[1, 0.5, 1], [2, -1, 0]]
    assert feed.labels == ("x", "y")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_with_categories_are_sparse(library: Any, tmp_path: Any, home: Any) -> None:
    frame = library({"city": ["Rome", "Oslo", "Rome"], "size": [2.0, 2.0, 0.0], "kind": ["a", "b", "b"]})
    feed = feed_of(frame, ["no", "yes", "no"], sample_weight=[1, 2, 3]).check()
    assert feed.labels == ("no", "yes")
    assert feed.samples.targets.tolist() == [0, 1, 0]
    assert feed.samples.importance.tolist() == [1, 2, 3]
    matrix = dense_of(feed)
    assert matrix.shape == (3, 5)
    assert matrix.sum(axis=1).tolist() == [3, 3, 2]  # sizes are scaled to 1
    assert matrix[0] @ matrix[2] == 1  # the same city
    assert matrix[1] @ matrix[2] == 1  # the same kind
    again = feed_of(frame, None, schema=feed.schema)
    assert np.array_equal(dense_of(again), matrix)
    other = feed_of(library({"city": ["Bonn"], "size": [4.0], "kind": ["b"]}), schema=feed.schema)
    assert dense_of(other)[0].sum() == 3
    file = tmp_path / "a.csv"
    file.write_text("kind,label,city,size\nb,yes,Oslo,2\n")
    assert np.array_equal(dense_of(open_feed(file, schema=feed.schema))[0], matrix[1])
    assert not list(home.rglob("frame.arrow"))


def test_a_categorical_column() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y", "x"]), "d": [1, 1, 1]})
    matrix = dense_of(feed_of(frame))
    assert matrix.shape == (3, 3)
    assert (matrix[0] == matrix[2]).all()
    assert (matrix[0] != matrix[1]).any()


NAN, INF = float("nan"), float("inf")
BAD = [
    (([[1, 2], [3, INF]],), "X holds inf in row 1, column 1, which is not a finite number; clean or drop"),
    (([[1, INF]],), "X holds inf in row 0, column 1"),
    (([[1e39]],), "X holds 1e[+]39 in row 0, column 0, which is too large for float32"),
    ((sp.csr_array([[0, 1], [0, NAN]]),), "X holds nan in row 1, column 1"),
    ((sp.csr_array([[0, 1e300]]),), "X holds 1e[+]300 in row 0, column 1, which is too large"),
    ((pd.DataFrame({"a": [1.0, INF], "b": ["x", "y"]}),), "X:2: column `a`: `inf` is not a finite number"),
    ((pd.DataFrame({"a": [1.0], "t": [pd.Timestamp("2020-01-01")]}),), "column `t` is of type timestamp"),
    (([1, 2, 3],), r"X has 1 dimension, not 2.*reshape\(-1, 1\)"),
    ((np.zeros((2, 2, 2)),), "X has 3 dimensions, not 2"),
    (([[1, 2], [3]],), "X is not a regular array"),
    (([["a", "b"]],), r"X holds `a` at \(0, 0\), which is not a number"),
    (([[1 + 2j]],), "X holds complex numbers"),
    ((sp.csr_array([[1 + 2j]]),), "X holds complex128 numbers"),
    ((np.zeros((0, 3)),), "X has no rows"),
    ((np.zeros((3, 0)),), "X has no columns"),
    ((sp.csr_array((0, 3)),), "X has no rows"),
    ((pd.DataFrame(),), "X has no rows"),
    ((7,), "X is int; give a matrix"),
    (([[1], [2]], [1]), "X has 2 rows, but y has 1 values"),
    (([[1], [2]], np.array([[1, 2], [3, 4]])), r"y has shape \(2, 2\); give one value a row"),
    (([[1], [2]], [1, NAN]), "y holds nan in row 1"),
    (([[1], [2]], ["a", None]), "y has no label in row 1"),
    (([[1], [2]], pd.Series(["a", pd.NA])), "y has no label in row 1"),
    (([[1], [2]], [1, 1j]), "y holds complex numbers"),
    (([[1], [2]], None, [1]), "X has 2 rows, but sample_weight has 1"),
    (([[1], [2]], None, [1, -2]), "sample_weight is -2 in row 1; it must not be negative"),
    (([[1], [2]], None, [1, INF]), "sample_weight holds inf in row 1"),
    (([[1], [2]], None, ["a", "b"]), "sample_weight holds `a`"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_what_cannot_be_used_is_said(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        feed_of(*arguments)


def test_large_numbers_whose_sum_overflows_are_fine() -> None:
    assert len(feed_of(np.full((4, 4), 3e38))) == 4


def csr(indptr: Any, indices: Any, kind: Any = sp.csr_array) -> Any:
    """A matrix of 2 by 3 with ones in two entries, and then these arrays."""
    matrix = kind(([1.0, 1.0], ([0, 1], [0, 2])), (2, 3))
    matrix.indptr, matrix.indices = np.array(indptr), np.array(indices)
    return matrix


def coo(row: Any, col: Any) -> Any:
    matrix = sp.coo_array(([1.0, 1.0], ([0, 1], [0, 2])), (2, 3))
    matrix.coords = (np.array(row), np.array(col))
    return matrix


def lil(rows: Any) -> Any:
    matrix = sp.lil_array((2, 3))
    matrix.rows[0] = rows
    matrix.data[0] = [1.0, 2.0]
    return matrix


HOSTILE = [
    (csr([0, 1, 2], [0, 3]), "entry 1 has the column number 3, outside 0 … 2"),
    (csr([0, 1, 2], [-1, 0]), "entry 0 has the column number -1, outside 0 … 2"),
    (csr([0, 1, 2], [0, 10**9]), "entry 1 has the column number 1000000000"),
    (csr([0, 1, 9], [0, 1]), "indptr must rise from 0 to at most 2"),
    (csr([0, 2, 1], [0, 1]), "indptr must rise from 0"),
    (csr([1, 1, 2], [0, 1]), "indptr must rise from 0"),
    (csr([0, -5, 2], [0, 1]), "indptr must rise from 0"),
    (csr([0, 2], [0, 1]), r"indptr has shape \(2,\)"),
    (csr([0.0, 1.0, 2.0], [0, 1]), "indptr has shape .* and type float64"),
    (csr([0, 1, 2], [0.0, 1.0]), "its column numbers have type float64"),
    (csr([0, 1, 2], [0]), r"indices have shape \(1,\) for 2 values"),
    (csr([0, 1, 1, 2], [0, 2], sp.csc_array), "entry 1 has the row number 2, outside 0 … 1"),
    (coo([0, 2], [0, 1]), "entry 1 has the row number 2, outside 0 … 1"),
    (coo([0, 1], [0, -3]), "entry 1 has the column number -3"),
    (coo([0], [0]), "it has 1 row and 1 column numbers for 2 values"),
    (lil([0, 7]), "entry 1 has the column number 7"),
    (lil([0]), "its rows have not as many column numbers as values"),
]


@pytest.mark.parametrize(("matrix", "message"), HOSTILE)
@pytest.mark.parametrize("rank", [True, False])
def test_indices_that_lead_outside_a_matrix(matrix: Any, message: str, rank: bool) -> None:
    with pytest.raises(InputError, match=f"^X is no sound sparse matrix: .*{message}.*; build it anew[.]$"):
        feed_of(matrix, [0, 1], rank=rank)


def test_room_behind_the_entries_is_no_entry() -> None:
    matrix = sp.csr_array(np.eye(2, 3))
    matrix.indices, matrix.data = np.array([0, 1, 9], np.int32), np.array([1.0, 1.0, np.nan])
    assert dense_of(feed_of(matrix).check()).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("kind", [">f4", ">f8", "f2", "g", "unaligned", "reversed", "broadcast"])
def test_odd_dense_arrays(kind: str) -> None:
    plain = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    room = np.zeros(plain.nbytes + 1, np.uint8)[1:].view(np.float32)
    room[:] = plain.ravel()
    spread = np.broadcast_to(plain[0], (3, 2))
    odd = {"unaligned": room.reshape(3, 2), "reversed": plain[::-1, ::-1], "broadcast": spread}
    data = odd[kind] if kind in odd else plain.astype(kind)
    matrix = feed_of(data).check().samples[0]
    assert matrix.tolist() == np.array(data.tolist()).tolist()
    assert matrix.dtype == np.float32
    assert matrix.flags.c_contiguous
    assert matrix.flags.aligned


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[10**400]], None, r"X holds 1000.*… at \(0, 0\), which is too large for float32"),
        ([[1], [2]], np.array([1, [2]], object), "y holds lists or the like, which are no labels"),
        ([[1], [2]], [1, 10**400], "y holds 1000.* which is too large for float32"),
    ],
)  # fmt: skip
def test_odd_objects(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        feed_of(X, y)


# -- as tables are read -----------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({
    "price": [2.0, 4.0, 0.0, 6.0], "site": ["a", "b", "a", "c"], "review": ["warm film", "dull", "so warm", "film"],
    "id": ["1x", "2x", "3x", "4x"], "seen": ["no", "yes", "no", "yes"],
})  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ignore": ("id",)},
        {"layout": "slots", "ignore": ("id", "review")},
        {"categories": "hash", "hash_bits": 8},
        {"min_count": 2, "ignore": ("id",)},
        {"text": "review", "categorical": ("site",), "numeric": ("price",), "hash_bits": 8, "layout": "slots"},
        {"text": "review", "hash_bits": 8, "ngrams": 2},
        {"scale": False, "categorical": ("price",)},
    ],
)
def test_a_frame_is_read_as_its_file_is(options: dict[str, Any], tmp_path: Any) -> None:
    """The same samples, schema and labels as of the frame in a Parquet file."""
    FRAME.to_parquet(tmp_path / "a.parquet")
    config = FeedConfig(label="seen", **options)
    expected = open_feed(tmp_path / "a.parquet", config)
    y = FRAME["seen"]
    other = FRAME.drop(columns="seen")
    for feed in (feed_of(FRAME, config=config), feed_of(pl.from_pandas(FRAME), config=config),
                 feed_of(FRAME.to_dict("records"), config=config),
                 feed_of((row for row in FRAME.to_dict("records")), config=config)):  # fmt: skip
        assert feed.schema == expected.schema
        assert feed.labels == expected.labels == ("no", "yes")
        assert type(feed.samples) is type(expected.samples)
        for name, array in expected.samples._asdict().items():
            np.testing.assert_array_equal(getattr(feed.samples, name), array)
    apart = feed_of(other, y, config=FeedConfig(**options))
    for name, array in expected.samples._asdict().items():
        np.testing.assert_array_equal(getattr(apart.samples, name), array)
    again = feed_of(other[other.columns[::-1]], y, schema=expected.schema, rank=False)
    own = expected.original[expected.samples.ids]
    np.testing.assert_array_equal(again.samples.ids, own)
    assert again.original is None


def test_texts_are_features(tmp_path: Any) -> None:
    texts, labels = FRAME["review"].tolist(), FRAME["seen"].tolist()
    (tmp_path / "a.txt").write_text("".join(f"{y}\t{text}\n" for text, y in zip(texts, labels, strict=True)))
    config = FeedConfig(hash_bits=9, ngrams=2)
    expected = open_feed(tmp_path / "a.txt", config)
    for data in (texts, tuple(texts), np.array(texts), pd.Series(texts), pl.Series(texts), iter(texts)):
        y = (label for label in labels)
        feed = feed_of(data, y, config=config)
        assert feed.schema["hashing"] == expected.schema["hashing"]
        for name, array in expected.samples._asdict().items():
            np.testing.assert_array_equal(getattr(feed.samples, name), array)
    by_schema = feed_of(texts, schema=expected.schema)
    np.testing.assert_array_equal(by_schema.samples.ids, expected.samples.ids)
    assert not by_schema.labelled


def test_importance_stays_with_its_row() -> None:
    frame = FRAME.assign(price=["2", "x", "4", "6"])
    chosen = {"numeric": ("price",), "categorical": ("site",), "ignore": ("id", "review")}
    config = FeedConfig(**chosen, bad_lines="skip", bad_share=1.0)
    feed = feed_of(frame.drop(columns="seen"), frame["seen"], sample_weight=[1, 2, 3, 4], config=config)
    assert feed.samples.importance.tolist() == [1, 3, 4]
    assert feed.samples.targets.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((FRAME, [0, 1, 0, 1]), {"label": "seen"}, "labels are given twice, by y and by the label 'seen'"),
        ((FRAME,), {"label": "sene"}, "there is no column `sene` for the label; the columns are price, site"),
        ((sp.csr_array(np.eye(2)),), {}, "config says how columns are read, and a sparse matrix has none"),
        ((FRAME,), {"label": "seen", "text": "revue"}, "there is no column `revue`"),
        (([{"a": 1}, {"a": "x"}],), {}, "X cannot be read as a table"),
        (([[1, 2], [3]],), {}, "X cannot be read as a table|X is no table"),
    ],
)
def test_what_no_table_can_be_is_said(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(HogwildError, match=message) as caught:
        feed_of(*arguments, config=FeedConfig(**options))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [
    pd.DataFrame({"a": [1.0, NAN, 3.0], "b": [2.0, 2.0, 2.0]}), pl.DataFrame({"a": [1, None, 3], "b": [2.0, 2, 2]}),
    pl.DataFrame({"a": [1.0, NAN, 3.0], "b": [2.0, 2, 2]}), np.array([[1, 2], [NAN, 2], [3, 2]]),
])  # fmt: skip
def test_missing_numbers_are_those_of_a_table(data: Any) -> None:
    feed = feed_of(data, [0, 1, 0]).check()
    assert feed.schema["numeric"] in (["a", "b"], ["0", "1"])
    assert any("in columns of numbers" in note for note in feed.notes)
    again = feed_of(data, schema=feed.schema)
    np.testing.assert_array_equal(again.samples.ids, feed.samples.ids)


def test_a_frame_of_numbers_knows_its_columns(tmp_path: Any) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 5.0]})
    feed = feed_of(frame, ["x", "y"])
    assert isinstance(feed.samples, DenseRows)
    (tmp_path / "a.csv").write_text("b,label,a\n5,y,2\n")
    assert dense_of(open_feed(tmp_path / "a.csv", schema=feed.schema)).tolist() == [[2, 5]]
    assert feed_of(pd.DataFrame(np.eye(2))).schema == {}  # pandas has numbered them, for want of names
    with pytest.raises(InputError, match="two columns are named `a`"):
        feed_of(pd.DataFrame(np.eye(2), columns=["a", "a"]))
