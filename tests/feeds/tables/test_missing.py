"""Missing values in every kind of table; numbers and dates in other notations, and what is said of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from feeds.sparse.files import rows_of, targets_of
from feeds.tables.files import raw, read
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.executor.train import train
from hogwild.feeds.io.source import Source
from hogwild.feeds.memory import feed_of
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.tables.onerow import TableRow
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.store import load_model, save_model

WORDS = ("NA", "NaN", "N/A", "null", "None", "?", "-", "", "na", "NULL", " ? ", "n/a", "none", "nan")
AGES = [3.0, None, 1.0, 2.0, None, 0.0]   # their mean is 1.5
KINDS = ["cat", "dog", None, "cat", "dog", "cat"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pets.csv"


def table(word: str = "", ages: list[Any] = AGES) -> str:
    pairs = enumerate(zip(ages, KINDS, strict=True))
    lines = [f"{k % 2},{word if age is None else age},{kind or word}" for k, (age, kind) in pairs]
    return "\n".join(["label,age,kind", *lines, ""])


def frame(ages: list[Any] = AGES) -> dict[str, list[Any]]:
    return {"label": [0, 1, 0, 1, 0, 1], "age": ages, "kind": KINDS}


# ids: 0 age, 1 cat, 2 dog, 3 age is missing; the last age, 0, has no feature
EXPECTED = [{0: 3, 1: 1}, {0: 1.5, 2: 1, 3: 1}, {0: 1}, {0: 2, 1: 1}, {0: 1.5, 2: 1, 3: 1}, {1: 1}]


# -- which fields are missing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", WORDS)
def test_words_for_missing_values(file: Path, word: str) -> None:
    feed = raw(file, table(word))
    assert (feed.schema["numeric"], feed.schema["categorical"]) == (["age"], ["kind"])
    assert feed.schema["vocabulary"] == ["kind=cat", "kind=dog", "age="]
    assert rows_of(feed) == EXPECTED
    assert feed.schema["means"] == [1.5]
    kept = f" (`{word.strip()}`; see --missing)" if word.strip() else ""
    assert f"1 missing field in columns of categories left out{kept}." in feed.notes


@pytest.mark.parametrize("how", ["parquet", "arrow", "pandas", "pandas-nullable", "polars", "nan"])
def test_the_same_in_every_kind_of_table(tmp_path: Path, file: Path, how: str) -> None:
    config = FeedConfig(scale=False)
    if how == "parquet":
        pl.DataFrame(frame()).write_parquet(tmp_path / "a.parquet")
        feed = open_feed(tmp_path / "a.parquet", config)
    elif how == "arrow":
        pl.DataFrame(frame()).write_ipc(tmp_path / "a.arrow")
        feed = open_feed(tmp_path / "a.arrow", config)
    elif how == "nan":
        pl.DataFrame(frame([age if age is not None else float("nan") for age in AGES])).write_parquet(tmp_path / "a.pq")
        feed = open_feed(tmp_path / "a.pq", config)
    else:
        data: Any = pl.DataFrame(frame()) if how == "polars" else pd.DataFrame(frame())
        if how == "pandas-nullable":
            data = data.convert_dtypes()
        y = frame()["label"]
        data = data.drop("label") if how == "polars" else data.drop(columns="label")
        feed = feed_of(data, y)
        feed = feed_of(data, y, schema={**feed.schema, "scales": [1.0]})
    assert rows_of(feed) == EXPECTED
    assert feed.schema["means"] == [1.5]
    assert (feed.schema["numeric"], feed.schema["missing_numbers"]) == (["age"], "mean")
    assert feed.schema["vocabulary"] == ["kind=cat", "kind=dog", "age="]


def test_other_words(file: Path) -> None:
    feed = raw(file, table("-999"), missing=("-999",))
    assert rows_of(feed) == EXPECTED
    again = read(file, "label,age,kind\n1,-999,NA\n", json.loads(json.dumps(feed.schema)))
    assert rows_of(again) == [{0: 1.5, 3: 1}], "NA is a category that training never saw"
    both = raw(file, table("-999").replace("3.0", "NA"), missing=("-999,NA",))
    assert len(both) == 6
    assert both.schema["means"] == [1.0]
    plain = raw(file, table("NA"), missing=("",))
    assert plain.schema["categorical"] == ["age", "kind"]


def test_labels_are_missing_only_where_the_user_says_so(file: Path) -> None:
    lines = "class,n\n+,1\n-,2\n+,3\n-,4\n"
    assert raw(file, lines).labels == ("+", "-"), "credit approval has these"
    with pytest.raises(InputError, match=r"pets\.csv:3: the label is missing"):
        raw(file, lines, missing=("-",))
    numbers = "y,n\n1.5,1\nNA,2\n2.5,1\n"
    with pytest.raises(InputError, match=r"pets\.csv:3: the label is missing"):
        raw(file, numbers)
    assert targets_of(raw(file, numbers, bad_lines="skip")) == [1.5, 2.5]


# -- what missing numbers are ------------------------------------------------------------------------------------------


def test_zero_or_an_error_instead(file: Path) -> None:
    zero = raw(file, table("NA"), missing_numbers="zero")
    assert rows_of(zero) == [{0: 3, 1: 1}, {2: 1}, {0: 1}, {0: 2, 1: 1}, {2: 1}, {1: 1}]
    assert "2 missing fields in columns of numbers left out." in zero.notes
    again = raw(file, table("NA"), schema=json.loads(json.dumps(zero.schema)))
    assert rows_of(again) == rows_of(zero)
    with pytest.raises(InputError, match=r"pets\.csv:3: column `age`: the number is missing\."):
        raw(file, table("NA"), missing_numbers="error")
    kept = raw(file, table("NA"), missing_numbers="error", bad_lines="skip")
    assert len(kept) == 4
    with pytest.raises(InputError, match=r"pets\.csv:2: column `age`: the number is missing"):
        raw(file, "label,age,kind\n1,,cat\n", schema=kept.schema)


def test_scaled_as_the_others(file: Path) -> None:
    feed = read(file, table("?"))
    scale = 1 / np.sqrt((9 + 1 + 4) / 3)
    assert feed.schema["scales"] == pytest.approx([scale]), "of the numbers that are there"
    assert rows_of(feed)[1] == pytest.approx({0: 1.5 * scale, 2: 1, 3: 1})
    again = read(file, "label,age,kind\n1,,dog\n0,7,cat\n", json.loads(json.dumps(feed.schema)))
    assert rows_of(again)[0] == rows_of(feed)[1], "bit for bit"


def test_a_column_that_is_whole_in_training_has_no_feature_for_it(file: Path) -> None:
    feed = raw(file, "label,a,b\n1,2,x\n0,4,y\n")
    assert (feed.features, feed.schema["means"]) == (3, [3.0])
    assert rows_of(raw(file, "label,a,b\n1,NA,x\n", schema=feed.schema)) == [{0: 3, 1: 1}]


@pytest.mark.parametrize(
    "options", [{}, {"categories": "hash"}, {"min_count": 2}, {"shared_ids": True}, {"layout": "slots"}]
)
def test_whatever_the_blocks(file: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    """The mean is that of all rows, and ids do not depend on where a block ends; read by its schema it is the same."""
    draw = np.random.default_rng(8)
    some = [f"{draw.normal():.3f}" if draw.random() < 0.8 else draw.choice(["NA", "", "?"]) for _ in range(1200)]
    numbers = [some[k : k + 3] for k in range(0, 1200, 3)]
    lines = "label,a,b,c,kind\n" + "".join(f"{k % 2},{','.join(row)},k{k % 37}\n" for k, row in enumerate(numbers))
    whole = raw(file, lines, **options)
    there = pd.DataFrame(numbers, columns=["a", "b", "c"]).apply(pd.to_numeric, errors="coerce")
    np.testing.assert_allclose(whole.schema["means"], there.mean(), rtol=1e-6)
    blocks = Source.blocks
    monkeypatch.setattr(Source, "blocks", lambda self, size=300: blocks(self, size))
    parts = raw(file, lines, cache=False, **options)
    np.testing.assert_allclose(parts.schema.pop("means"), whole.schema["means"], rtol=1e-6)
    assert parts.schema == {name: value for name, value in whole.schema.items() if name != "means"}
    again = raw(file, lines, schema=json.loads(json.dumps(whole.schema)))
    for feed in (parts, again):
        assert _sorted(feed) == _sorted(whole)


def _sorted(feed: Feed) -> list[Any]:
    samples = feed.samples
    assert feed.original is not None
    ids = feed.original[samples.ids].tolist()  # type: ignore[union-attr]
    values = np.round(samples.values, 5).tolist() if "values" in samples._fields else [1.0] * len(ids)  # type: ignore[union-attr]
    pairs = list(zip(ids, values, strict=True))
    dense = np.round(samples.dense, 5).tolist() if "dense" in samples._fields else []  # type: ignore[union-attr]
    return [[sorted(pairs[a:b]) for a, b in pairwise(samples.offsets.tolist())], dense]  # type: ignore[union-attr]


def test_slots_have_one_for_what_is_missing(file: Path) -> None:
    feed = raw(file, table("NA"), layout="slots")
    assert (feed.slots, feed.dense) == (("kind", "missing"), ("age",))
    assert feed.samples.dense[:, 0].tolist() == [3, 1.5, 1, 2, 1.5, 0]  # type: ignore[union-attr]
    assert feed.original is not None
    bounds = pairwise(feed.samples.offsets.tolist())  # type: ignore[union-attr]
    found = [
        [(feed.slots[slot], feed.schema["vocabulary"][feed.original[ident]]) for slot, ident in zip(
            feed.samples.slots[a:b].tolist(), feed.samples.ids[a:b].tolist(), strict=True)]  # type: ignore[union-attr]
        for a, b in bounds
    ]  # fmt: skip
    assert found[:3] == [[("kind", "kind=cat")], [("kind", "kind=dog"), ("missing", "age=")], []]
    again = raw(file, "label,age,kind\n1,-,dog\n", schema=json.loads(json.dumps(feed.schema)))
    assert again.samples.dense.tolist() == [[1.5]]  # type: ignore[union-attr]
    assert again.samples.slots.tolist() == [0, 1]  # type: ignore[union-attr]
    whole = raw(file, table("7"), layout="slots", categorical=("kind",))
    assert whole.slots == ("kind",), "no slot where nothing is missing"


def test_a_model_of_before_reads_as_it_did(file: Path) -> None:
    feed = raw(file, table("4"))
    old = {name: value for name, value in feed.schema.items()
           if name not in ("means", "missing", "missing_numbers", "number_style", "dates")}  # fmt: skip
    again = raw(file, "label,age,kind\n1,,dog\n0,NA,dog\n", schema=old)
    assert again.features == feed.features
    assert [set(row) & {0} for row in rows_of(again)] == [set(), set()]


def test_saved_with_the_model(file: Path, tmp_path: Path) -> None:
    feed = read(file, table("NA"))
    program = train(Linear(), feed, epochs=2, lr=0.1, mode="serial", threads=1, quiet=True)
    save_model(tmp_path / "model", program, feed_schema=feed.schema)
    model = load_model(tmp_path / "model")
    assert model.schema == feed.schema
    again = read(file, table("-"), dict(model.schema))
    np.testing.assert_array_equal(model.program.scores(again), program.scores(feed))  # type: ignore[attr-defined]


# -- in memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["numpy", "pandas", "polars"])
def test_numbers_alone(how: str) -> None:
    """A frame or array of numbers of which some are missing."""
    draw = np.random.default_rng(3)
    numbers = draw.normal(2, 1, (200, 3))
    y = (numbers[:, 0] + numbers[:, 1] > 4).astype(int)
    holes = numbers.copy()
    holes[draw.random(holes.shape) < 0.2] = np.nan
    holes[:, 2] = numbers[:, 2]  # whole
    given: dict[str, Any] = {"numpy": holes, "pandas": pd.DataFrame(holes, columns=list("abc")),
                             "polars": pl.DataFrame(holes, schema=list("abc"), orient="row")}  # fmt: skip
    feed = feed_of(given[how], y)
    names = feed.schema["numeric"]
    np.testing.assert_allclose(feed.schema["means"], np.nanmean(holes, 0), rtol=1e-6)
    assert sorted(feed.schema["vocabulary"]) == [f"{name}=" for name in names[:2]]
    where = {name: feed.schema["vocabulary"].index(f"{name}=") + 3 for name in names[:2]}
    scales = np.array(feed.schema["scales"])
    for row, values in zip(rows_of(feed), holes, strict=True):
        filled = np.where(np.isnan(values), feed.schema["means"], values) * scales
        wanted = {k: filled[k] for k in range(3)} | {
            where[name]: 1.0 for k, name in enumerate(names[:2]) if np.isnan(values[k])
        }
        assert row == pytest.approx(wanted, rel=1e-5)
    program = train(Linear(), feed, epochs=5, lr=0.1, mode="serial", threads=1, quiet=True)
    assert program.evaluate(feed)["accuracy"] > 0.6
    served = program.predict_proba(given[how])
    np.testing.assert_allclose(served, program.predict_proba(feed), rtol=1e-6)
    for k in (0, 1, 2, 3):
        one = program.predict_proba_one(holes[k].tolist())
        assert list(one.values()) == pytest.approx(served[k].tolist(), rel=1e-4)


def test_one_missing_for_a_model_of_whole_numbers() -> None:
    data = pd.DataFrame({"a": [1.0, 2.0, 3.0, 6.0] * 10, "b": [0.0, 1.0, 0.0, 1.0] * 10})
    program = train(Linear(), feed_of(data, [0, 1, 0, 1] * 10), epochs=2, lr=0.1, mode="serial", threads=1, quiet=True)
    holes = program.scores(pd.DataFrame({"a": [np.nan], "b": [1.0]}))
    np.testing.assert_allclose(holes, program.scores(pd.DataFrame({"a": [3.0], "b": [1.0]})), rtol=1e-6)
    assert program.predict_proba_one({"a": None, "b": 1.0}) == program.predict_proba_one({"a": 3.0, "b": 1.0})


@pytest.mark.parametrize("options", [{}, {"layout": "slots"}, {"categories": "hash"}, {"missing": ("-999",)}])
def test_one_row_is_read_as_a_file(file: Path, options: dict[str, Any]) -> None:
    word = options.get("missing", ("NA",))[0]
    feed = read(file, table(word), **options)
    encode = TableRow(feed.schema)
    file.write_text(table(word))
    again = open_feed(file, FeedConfig(unlabelled=True), feed.schema)
    assert again.original is not None
    samples: Any = again.samples
    for k, (age, kind) in enumerate(zip(AGES, KINDS, strict=True)):
        part = slice(*samples.offsets[k : k + 2].tolist())
        for missing in (word, float(word) if word == "-999" else None):
            one = encode({"age": missing if age is None else age, "kind": word if kind is None else kind})
            assert sorted(one.ids) == sorted(again.original[samples.ids[part]].tolist())
            if "slots" in feed.schema:
                assert sorted(one.slots or ()) == sorted(samples.slots[part].tolist())
                assert list(one.dense) == pytest.approx(samples.dense[k].tolist(), rel=1e-6)
    refuse = TableRow({**feed.schema, "missing_numbers": "error"})
    with pytest.raises(InputError, match="column `age`: the number is missing"):
        refuse({"age": None, "kind": "cat"})


# -- numbers and dates in other notations ------------------------------------------------------------------------------

NOTATIONS = {
    "comma": (["3,5", "1.234,25", "-0,5", "12 €", "NA"], {"number_style": "comma"}, [3.5, 1234.25, -0.5, 12.0, None]),
    "point": (["$31", "1,234.5", "-$2.5", "15%", "?"], {"number_style": "point"}, [31.0, 1234.5, -2.5, 15.0, None]),
    "iso": (["2000-01-01", "2001-01-01", "1999-12-31 12:00:00", "2000-01-02T00:00:00", ""], {"dates": "iso"},
            [0.0, 366 / 365.2425, -0.5 / 365.2425, 1 / 365.2425, None]),
    "dates": (["1.1.2000", "31.12.2000", "02.01.2000", "01.01.2001", "-"], {"dates": "%d.%m.%Y"},
              [0.0, 365 / 365.2425, 1 / 365.2425, 366 / 365.2425, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTATIONS)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_numbers_in_other_notations(tmp_path: Path, name: str, form: str) -> None:
    fields, options, numbers = NOTATIONS[name]
    data = pd.DataFrame({"label": [0, 1] * 10, "x": fields * 4})
    path = tmp_path / f"t.{form}"
    data.to_csv(path, index=False) if form == "csv" else data.to_parquet(path)  # type: ignore[func-returns-value]
    feed = open_feed(path, FeedConfig(scale=False, missing_numbers="zero", **options))
    assert feed.schema["numeric"] == ["x"]
    found = [row.get(0, 0.0) for row in rows_of(feed)]
    assert found == pytest.approx([number or 0.0 for number in numbers * 4], rel=1e-6)
    again = open_feed(path, FeedConfig(scale=False), json.loads(json.dumps(feed.schema)))
    assert rows_of(again) == rows_of(feed), "the schema says how they are written"
    words = open_feed(path, FeedConfig(scale=False, ignore=()))
    assert words.schema["categorical"] == ["x"]
    option = {"comma": "--number-style comma", "point": "--number-style point", "iso": "--dates 'iso'",
              "dates": "--dates '%d.%m.%Y'"}[name]  # fmt: skip
    (doubt,) = [note for note in words.notes if "Column `x` is read as words: `" in note]
    assert option in doubt
    assert any(f"`{field}`" in doubt for field in fields if field)


def test_a_remedy_that_fits_comes_with_the_error(file: Path) -> None:
    prices = "label,price,n\n" + "".join(f'{k % 2},"${k},{k:03}.5",1\n' for k in range(1, 100))
    with pytest.raises(InputError, match=r"99 different words.* would be a number with --number-style point"):
        raw(file, prices)
    with pytest.raises(InputError, match=r"csv:2: column `price`: `\$1,001.5` is .* with --number-style point\)\. "):
        raw(file, prices, numeric=("price",))
    later = "label,n\n" + "1,2\n" * 1200 + "0,n.a.\n"
    with pytest.raises(InputError, match=r"csv:1202: column `n`: `n\.a\.` is not a finite number\. .*--missing"):
        raw(file, later)
    assert len(raw(file, later, missing=("n.a.",))) == 1201


def test_the_label_too(file: Path) -> None:
    feed = raw(file, "price,n\n" + "".join(f'"1.{k:03},5",{k % 3}\n' for k in range(40)), number_style="comma")
    assert targets_of(feed)[:2] == [1000.5, 1001.5]


@pytest.mark.parametrize("kind", ["date32[day][pyarrow]", "timestamp[us][pyarrow]", "timestamp[ms, tz=UTC][pyarrow]"])
def test_columns_of_dates_in_binary_tables(tmp_path: Path, kind: str) -> None:
    when = pd.to_datetime(["2000-01-01", "2001-01-01", None, "2000-01-02"], utc="tz" in kind).to_series(index=range(4))
    data = pd.DataFrame({"y": [0, 1, 0, 1], "when": when.astype(kind)})
    data.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"column `when` is of type .*--dates iso"):
        open_feed(tmp_path / "t.parquet")
    feed = open_feed(tmp_path / "t.parquet", FeedConfig(dates="iso", scale=False))
    found = [row.get(0, 0.0) for row in rows_of(feed)]
    assert found[:2] == pytest.approx([0, 366 / 365.2425])
    assert found[2] == pytest.approx(np.mean([0, 366, 1]) / 365.2425)


def test_a_column_that_begins_empty_is_said(file: Path) -> None:
    feed = raw(file, "label,a,b\n" + "1,NA,2\n0,,3\n" * 20)
    assert "Column `a` is read as words: none of its first fields is there (see --numeric)." in feed.notes
    assert raw(file, "label,a,b\n" + "1,NA,2\n0,,3\n" * 20, numeric=("a",)).schema["numeric"] == ["a", "b"]


@pytest.mark.parametrize("form", ["%Q", "01.01", "%H:%M"])
def test_what_is_no_form_of_a_date(form: str) -> None:
    with pytest.raises(ConfigError, match="dates is "):
        FeedConfig(dates=form)


@pytest.mark.parametrize("written", ["{}", "{}.0"])
def test_whole_numbers_as_categories_with_and_without_a_point(tmp_path: Path, written: str) -> None:
    """pandas writes a column of whole numbers as 7.0 where some are missing; its frames have 7.0 or 7 for them."""
    codes = np.arange(60) % 5
    lines = [f"{written.format(code)},{'yn'[code % 2]}" for code in codes]
    (tmp_path / "a.csv").write_text("\n".join(["code,label", *lines]) + "\n")
    feed = open_feed(tmp_path / "a.csv", FeedConfig(categorical=("code",)))
    encode = TableRow(feed.schema)
    for kind in (int, float, "Int64", str):
        again = feed_of(pd.DataFrame({"code": pd.Series(codes).astype(kind)}), schema=feed.schema)
        np.testing.assert_array_equal(again.samples.ids, feed.samples.ids)
    assert feed.original is not None
    own = feed.original[feed.samples.ids]
    for code, ident in zip(codes.tolist(), own.tolist(), strict=True):
        for value in (code, float(code), str(code), f"{code}.0"):
            assert list(encode({"code": value}).ids) == [ident]
