"""Parquet and Arrow files as feeds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from feeds.sparse.files import lines_of, rows_of, targets_of
from feeds.tables.files import BITS, PETS, read
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.open import open_feed
from hogwild.feeds.ratings.open import open_ratings

FRAME = pa.table(
    {
        "label": pa.array(["yes", "no", "yes", "no"]),
        "age": pa.array([3, None, 1, 2], pa.int16()),
        "kind": pa.array(["cat", "dog", "cat", None]).dictionary_encode(),
        "weight": pa.array([4.5, 0, 10, -2], pa.float32()),
    }
)


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=3)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, str(path), compression="zstd")
    else:
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table, max_chunksize=2)
    return path


@pytest.mark.parametrize("name", ["pets.parquet", "pets.feather", "pets.arrow"])
def test_binary_tables_equal_text(tmp_path: Path, name: str) -> None:
    feed = open_feed(write(FRAME, tmp_path / name), FeedConfig(hash_bits=BITS))
    same = read(tmp_path / "pets.csv", PETS)
    assert rows_of(feed) == rows_of(same)
    assert feed.labels == same.labels
    assert targets_of(feed) == targets_of(same)
    assert feed.schema == same.schema
    assert feed.notes == same.notes
    assert lines_of(feed) == [1, 2, 3, 4]
    assert rows_of(open_feed(tmp_path / name, schema=same.schema)) == rows_of(same)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
@pytest.mark.parametrize("index", [pa.uint8(), pa.uint16(), pa.uint32(), pa.int8()])
def test_codes_of_categories_may_be_unsigned(tmp_path: Path, suffix: str, index: pa.DataType) -> None:
    column = FRAME["kind"].combine_chunks().cast(pa.dictionary(index, pa.string()))
    table = FRAME.set_column(2, "kind", column)
    assert rows_of(open_feed(write(table, tmp_path / f"a{suffix}"))) == rows_of(
        open_feed(write(FRAME, tmp_path / f"b{suffix}"))
    )
    text = open_feed(tmp_path / f"a{suffix}", FeedConfig(text="kind", hash_bits=BITS))
    assert [len(row) for row in rows_of(text)] == [1, 1, 1, 0]


def test_types_of_columns(tmp_path: Path) -> None:
    table = pa.table(
        {
            "y": pa.array([True, False]),
            "flag": pa.array([True, None]),
            "big": pa.array(["u", "v"], pa.large_string()),
            "codes": pa.array([7, 8]).dictionary_encode(),
            "price": pa.array([Decimal("1"), Decimal("2")], pa.decimal128(5, 2)),
            "nothing": pa.nulls(2),
        }
    )
    feed = open_feed(write(table, tmp_path / "t.arrow"), FeedConfig(scale=False, missing_numbers="zero"))
    assert feed.labels == ("false", "true")
    assert targets_of(feed) == [1, 0]
    assert feed.schema["numeric"] == ["flag", "price", "nothing"]
    assert rows_of(feed) == [{0: 1, 1: 1, 3: 1, 4: 1}, {1: 2, 5: 1, 6: 1}]
    assert feed.schema["vocabulary"] == ["big=u", "codes=7", "big=v", "codes=8"]
    config = FeedConfig(categorical=("price",), numeric=("codes",), label="flag", bad_lines="skip", bad_share=1)
    forced = open_feed(tmp_path / "t.arrow", config)
    assert forced.labels == ("true",)
    assert forced.schema["numeric"] == ["y", "codes", "nothing"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1.0], [2.0]]), r"`x` is of type list<\w+: double>: --values COLUMN .*--indices.*--ignore x"),
        (pa.array([[["a"]], [["b"]]]), r"`x` is of type list<.*>, not a single value a row; .* --ignore x"),
        (pa.array([{"a": 1}, {"a": 2}]), r"column `x` is of type struct<a: int64>, not a single value"),
        (pa.array([1, 2], pa.timestamp("ms")), r"`x` is of type timestamp\[ms\]; .*--dates iso.*--ignore x"),
        (pa.array([b"u", b"v"]), r"column `x` is of type binary, which is neither"),
    ],
)
def test_columns_that_cannot_be_features(tmp_path: Path, column: pa.Array, message: str) -> None:
    path = write(pa.table({"y": [1, 0], "a": [1, 2], "x": column}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=message):
        open_feed(path)
    assert open_feed(path, FeedConfig(ignore=("x",))).features == 1
    with pytest.raises(InputError, match="column `x` is of type"):
        open_feed(path, FeedConfig(categorical=("x",)))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"y": [1, 0], "x": [1.0, float("inf")]}), r"t\.parquet:2: column `x`: `inf` is not a finite number"),
        (pa.table({"y": [1, None], "x": [1.0, 2.0]}), r"t\.parquet:2: the label is missing"),
        (pa.table({"y": ["a", None], "x": [1.0, 2.0]}), r"t\.parquet:2: the label is missing"),
        (pa.table({"y": pa.array([], pa.int8()), "x": pa.array([], pa.int8())}), "no rows"),
    ],
)
def test_bad_values_in_binary_tables(tmp_path: Path, table: pa.Table, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_feed(write(table, tmp_path / "t.parquet"))


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_broken_binary_tables(tmp_path: Path, name: str) -> None:
    path = write(FRAME, tmp_path / name)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=rf"{name}: this is no readable (Parquet|Arrow) file \(.*\); write it again"):
        open_feed(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_two_columns_of_one_name(tmp_path: Path, name: str) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"]), pa.array([1.0])], names=["u", "u", "u"])
    path = write(table, tmp_path / name)
    for opened in (open_feed, open_ratings):
        with pytest.raises(InputError, match=rf"{name}: two columns are named `u`; rename one of them"):
            opened(path)
