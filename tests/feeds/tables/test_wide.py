"""Tables of very many columns give the same feeds as narrow ones, and cost what their fields do."""

from __future__ import annotations

import csv
import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hogwild import Linear, load_model, open_feed, save_model, train
from hogwild.errors import InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.tables import columns, frames
from hogwild.feeds.tables import encoder as table
from hogwild.feeds.tables.delimited import Dialect, as_bytes, read_fields
from hogwild.kernels.parse.tables import NO_QUOTE, copy_fields

from .files import read

KINDS = ("words", "numbers", "words", "numbers", "numbers", "words")


def make_lines(seed: int, rows: int, form: str) -> list[list[str]]:
    """Rows of random fields: numbers and words, some empty, with blanks, or in quotes with all that needs them."""
    draw = random.Random(seed)
    words = ["a", "b", " a ", "Ulm", "x,y", 'say "no"', "two\nlines", "", "ä", "\ufeffmark", "=", "\\"]
    numbers = ["0", "1", "-2.5", "1e3", "", " 7 ", "0.1"]
    made = []
    for row in range(rows):
        made.append([draw.choice("ny") if row < 2 else draw.choice("nyz")])
        made[-1] += [draw.choice(words if kind == "words" else numbers) for kind in KINDS]
    if form == "bad":
        made[rows // 2][2] = "odd"
        made[rows // 2 + 1].append("one too many")
    return made


def text_of(rows: list[list[str]], end: str = "\n", order: list[int] | None = None) -> str:
    """Delimited text with a header; `order`: which column stands where."""
    names = ["label", *(f"c{k}" for k in range(len(KINDS)))]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=end)
    for row in (names, *rows):
        writer.writerow([row[k] for k in order] if order else row)
    return file.getvalue()


def same(one: Feed, other: Feed) -> None:
    """Both feeds are equal bit for bit, with all that is said of them."""
    for left, right in zip(one.samples, other.samples, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    assert (one.features, one.labels, one.notes, one.files) == (other.features, other.labels, other.notes, other.files)
    np.testing.assert_array_equal(one.original, other.original)
    np.testing.assert_array_equal(one.lines, other.lines)
    listed = [name for name in ("scales", "means", "shifts") if name in other.schema]
    numbers = {name: [float(number) for number in other.schema.pop(name)] for name in listed}
    assert {**one.schema} == {**other.schema, **numbers}


def both(monkeypatch: pytest.MonkeyPatch, path: Path, content: str, **options: Any) -> tuple[Feed, Feed]:
    """The same file read as a narrow table and as a wide one."""
    feeds = []
    for wide in (sys.maxsize, 2):
        monkeypatch.setattr(table, "WIDE", wide)
        feeds.append(read(path, content, cache=False, **options))
    return feeds[0], feeds[1]


@pytest.mark.parametrize(
    "options",
    [
        {}, {"scale": False}, {"categories": "hash"}, {"min_count": 3}, {"shared_ids": True}, {"text": "c0"},
        {"min_count": 2, "shared_ids": True}, {"layout": "slots"}, {"ignore": ("c1", "c2")}, {"categorical": ("c1",)},
        {"bad_lines": "skip"}, {"label": "c5", "bad_lines": "skip"},
        {"text": "c2", "numeric": ("c1",), "categorical": ("c5",)},
        {"categories": "hash", "layout": "slots", "shared_ids": True},
    ],
)  # fmt: skip
def test_wide_tables_are_read_as_narrow_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, Any]
) -> None:
    for seed, rows, end in ((1, 2, "\n"), (2, 40, "\r\n"), (3, 300, "\n")):
        form = "bad" if options == {"bad_lines": "skip"} and rows > 2 else ""
        lines = make_lines(seed, rows, form)
        given = {"numeric": ("c1",)} if form else {}
        same(*both(monkeypatch, tmp_path / "pets.csv", text_of(lines, end), **options, **given))


def test_columns_are_found_again_in_another_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    feed = both(monkeypatch, tmp_path / "pets.csv", text_of(make_lines(1, 60, "")))[1]
    again = both(monkeypatch, tmp_path / "pets.csv", text_of(make_lines(1, 60, ""), order=[4, 6, 2, 0, 1, 5, 3]))
    schema = feed.schema
    shuffled = text_of(make_lines(5, 60, ""), order=[4, 6, 2, 0, 1, 5, 3])
    straight = text_of(make_lines(5, 60, ""))
    feeds = [
        both(monkeypatch, tmp_path / "pets.csv", text, schema=schema, unlabelled=True)[k]
        for text in (straight, shuffled) for k in (0, 1)
    ]  # fmt: skip
    for other in feeds[1:]:
        for left, right in zip(feeds[0].samples, other.samples, strict=True):
            np.testing.assert_array_equal(left, right)
    same(*again)


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize("options", [{}, {"categories": "hash"}, {"min_count": 2}, {"layout": "slots"}, {"text": "c1"}])
def test_wide_binary_tables_are_read_as_narrow_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, Any], form: str
) -> None:
    draw = random.Random(1)
    rows = 30
    made = {
        "label": pa.array([draw.choice("ny") for _ in range(rows)]),
        "c0": pa.array([draw.choice([1, 2, None]) for _ in range(rows)], pa.int8()),
        "c1": pa.array([draw.choice(["a", " b", "", None]) for _ in range(rows)]),
        "c2": pa.array([draw.random() for _ in range(rows)], pa.float32()),
        "c3": pa.array([draw.choice("ab") for _ in range(rows)]).dictionary_encode(),
        "c4": pa.array([draw.random() < 0.5 for _ in range(rows)]),
        "c5": pa.array([draw.choice("bc") for _ in range(rows)], pa.large_string()),
        "c6": pa.nulls(rows),
    }
    path = tmp_path / f"t.{form}"
    if form == "parquet":
        pq.write_table(pa.table(made), path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.table(made).schema) as writer:
            writer.write_table(pa.table(made), 7)
    feeds = []
    for wide in (sys.maxsize, 2):
        monkeypatch.setattr(frames, "WIDE", wide)
        feeds.append(open_feed(path, table.FeedConfig(cache=False, **options)))
    same(*feeds)


def test_what_is_wrong_is_said_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = make_lines(7, 50, "bad")
    said = []
    for wide in (sys.maxsize, 2):
        monkeypatch.setattr(table, "WIDE", wide)
        with pytest.raises(InputError) as caught:
            read(tmp_path / "pets.csv", text_of(lines), numeric=("c1", "c3"), cache=False)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "column `c1`: `odd` is not a finite number" in said[0]


def test_fields_are_copied_as_the_csv_module_reads_them() -> None:
    for seed in range(20):
        rows = make_lines(seed, 12, "")
        text = as_bytes(text_of(rows).partition("\n")[2].removesuffix("\n"))
        records, _ = Dialect(",", True).records(text)
        wanted = np.array([random.Random(seed * 31 + k).random() < 0.5 for k in range(len(rows[0]))])
        out = np.empty(len(text), np.uint8)
        size = copy_fields(text, records.starts, np.array([ord(","), ord('"')]), wanted, out)
        kept = list(csv.reader(io.StringIO(out[:size].tobytes().decode(), newline="")))
        expected = [field for row in rows for field, want in zip(row, wanted, strict=True) if want]
        assert ["".join(row) for row in kept] == expected
        read_back = read_fields(text, records.starts, Dialect(",", True), wanted, pa.string())
        assert read_back.fill_null("").to_pylist() == expected


def test_no_quotes_mean_that_a_quote_is_text() -> None:
    text = as_bytes('a\t"b\tc"\n"x\ty\tz')
    out = np.empty(len(text), np.uint8)
    size = copy_fields(text, np.array([0, 8]), np.array([9, NO_QUOTE]), np.array([False, True, True]), out)
    assert out[:size].tobytes() == b'"b\nc"\ny\nz\n'


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux forgets the peak of memory")
def test_memory_of_columns(tmp_path: Path) -> None:
    """40,000 columns took 400 MB and, with categories, a search through all columns for each of them."""
    count = 40_000
    head = ",".join(["label", *(f"c{k}" for k in range(count))])
    rows = [",".join([str(row % 2), *("a" if k % 2 else str(k % 7 + row) for k in range(count))]) for row in range(3)]
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    feed = read(tmp_path / "pets.csv", "\n".join([head, *rows]), cache=False)
    assert feed.features == count
    assert peak() - before < 3_000 * count


def peak() -> int:
    """Most bytes of memory that this process had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def test_a_model_of_many_columns_keeps_its_factors_in_a_file_of_their_own(tmp_path: Path) -> None:
    """28 bytes of config.json a column, of which 16 MiB are read: found out when all was trained."""
    count = 700
    rows = [",".join([str(row % 2), *(str((k * 37 + row) % 11 / 7) for k in range(count))]) for row in range(5)]
    text = "\n".join([",".join(["label", *(f"c{k}" for k in range(count))]), *rows])
    feed = read(tmp_path / "pets.csv", text, cache=False)
    program = train(Linear(), feed, epochs=1, lr=0.1, threads=1, mode="serial", quiet=True)
    save_model(tmp_path / "model", program, feed_schema=feed.schema)
    assert (tmp_path / "model" / "config.json").stat().st_size < 5_000
    schema = load_model(tmp_path / "model").schema
    assert schema == feed.schema
    again = read(tmp_path / "pets.csv", text, schema, cache=False)
    np.testing.assert_array_equal(again.samples.values, feed.samples.values)  # type: ignore[union-attr]


def test_a_header_longer_than_what_is_looked_at_first(tmp_path: Path) -> None:
    names = [f"a rather long name of column {k:030}" for k in range(20_000)]
    text = "\n".join([",".join(["label", *names]), ",".join(["1"] * 20_001), ",".join(["0", *["2"] * 20_000])])
    assert len(text) > 1 << 20
    feed = read(tmp_path / "pets.csv", text, cache=False)
    assert len(feed) == 2
    assert feed.schema["columns"][1:] == names


def test_named_columns_are_not_searched_for_one_by_one() -> None:
    """Each name was sought in all columns: seconds for ten thousand of them."""
    names = tuple(f"c{k}" for k in range(10_000))

    class Counted(tuple):  # type: ignore[type-arg]
        sought = 0

        def index(self, *arguments: Any) -> int:
            Counted.sought += 1
            return super().index(*arguments)

        def count(self, value: Any) -> int:
            Counted.sought += 1
            return super().count(value)

    config = table.FeedConfig(numeric=names[1:5000], categorical=names[5000:9000], ignore=names[9000:])
    sample = columns.Sample(dict.fromkeys(names, columns.NUMERIC), {})
    plan = columns.make_plan(config, Counted(names), True, sample, "t.csv")
    assert (len(plan.numeric), len(plan.categorical)) == (4999, 4000)
    assert Counted.sought < 10
