"""Tables as feeds: what becomes of their columns, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from feeds.sparse.files import lines_of, rows_of, targets_of
from feeds.tables.files import BITS, PETS, raw, read
from hogwild.arrays import BinaryRows
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.open import open_feed
from reference import text as twin

SEED = FeedConfig.hash_seed

@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pets.csv"


# -- what becomes of a table -------------------------------------------------------------------------------------------


def test_numbers_categories_and_labels(file: Path) -> None:
    feed = raw(file, PETS)
    assert feed.schema["numeric"] == ["age", "weight"]
    assert feed.schema["categorical"] == ["kind"]
    assert feed.schema["vocabulary"] == ["kind=cat", "kind=dog", "age="]
    assert feed.features == 5
    assert rows_of(feed) == [{0: 3, 1: 4.5, 2: 1}, {0: 2, 3: 1, 4: 1}, {0: 1, 1: 10, 2: 1}, {0: 2, 1: -2}]
    assert feed.labels == ("no", "yes")
    assert targets_of(feed) == [1, 0, 1, 0]
    assert lines_of(feed) == [2, 3, 4, 5]
    assert feed.notes == (
        "The label is column `label` (--label chooses another).",
        "Columns: 2 numeric (age, weight); 1 categorical (kind).",
        "1 missing field in columns of numbers read as the mean of training, with a feature beside it that says so "
        "(see --missing-numbers).",
        "1 missing field in columns of categories left out.",
    )


def test_a_word_among_numbers_is_said(file: Path) -> None:
    lines = "label,age,kind\n" + "yes,3,cat\nno,4,7\n" * 20 + "yes,old,cat\n"
    feed = raw(file, lines)
    assert feed.schema["categorical"] == ["age", "kind"]
    doubts = [note for note in feed.notes if "among its numbers" in note]
    assert doubts == ["Column `age` is read as words: among its numbers is `old` (see --missing and --numeric)."]
    assert not any("among its numbers" in note for note in raw(file, lines, categorical=("age",)).notes)


def test_columns_beside_the_text_are_said(file: Path) -> None:
    lines = "label,words,rating,id,age\n1,good,9,7,3\n0,bad,2,8,4\n"
    feed = raw(file, lines, text="words", numeric=("age",), ignore=("3",))
    assert feed.notes[1] == "Columns: 1 not read (rating)."


def test_numbers_are_scaled_by_what_training_saw(file: Path) -> None:
    feed = read(file, PETS)
    scales = [1 / np.sqrt((9 + 1 + 4) / 3), 1 / np.sqrt((4.5**2 + 100 + 4) / 3)]
    assert feed.schema["scales"] == pytest.approx(scales)
    assert rows_of(feed)[0] == pytest.approx({0: 3 * scales[0], 1: 4.5 * scales[1], 2: 1})
    again = read(file, "label,age,kind,weight\nyes,100,cat,3\n", feed.schema)
    assert rows_of(again)[0] == pytest.approx({0: 100 * scales[0], 1: 3 * scales[1], 2: 1})
    assert again.schema == feed.schema


def test_columns_of_ones_and_zeros_stay_so(file: Path) -> None:
    feed = read(file, "y,a,b\n1,0,1\n0,1,1\n1,1,0\n0,0,1\n")
    assert feed.schema["scales"] == [1, 1]
    assert isinstance(feed.samples, BinaryRows)


def test_all_categories_make_binary_rows(file: Path) -> None:
    assert isinstance(read(file, "y,a,b\n1,u,v\n0,w,v\n").samples, BinaryRows)


def test_equal_to_pandas_one_hot(file: Path) -> None:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "y": draw.integers(0, 2, 500),
            "a": draw.choice(["x", "y", "z=1", ' "q"', "two\nlines", "a,b"], 500),
            "n": draw.normal(size=500).round(4),
            "b": draw.choice([f"v{k}" for k in range(40)], 500),
        }
    )
    frame.to_csv(file, index=False)
    feed = open_feed(file, FeedConfig(scale=False))
    names = ["n", *feed.schema["vocabulary"]]
    dense = np.zeros((500, len(names)))
    for k, row in enumerate(rows_of(feed)):
        dense[k, list(row)] = list(row.values())
    frame["a"] = frame["a"].str.strip()
    expected = pd.get_dummies(frame.drop(columns="y"), columns=["a", "b"], prefix_sep="=").reindex(columns=names)
    np.testing.assert_allclose(dense, expected.to_numpy(float), rtol=1e-6)
    np.testing.assert_array_equal(feed.samples.targets, frame["y"])


def test_ids_in_order_of_appearance_whatever_the_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(4)
    table = draw.integers(0, 60, (400, 3))
    lines = "y,a,b,c\n" + "".join(f"1,u{a},v{b},w{c}\n" for a, b, c in table)
    expected = list(dict.fromkeys(f"{c}={p}{v}" for row in table for c, p, v in zip("abc", "uvw", row, strict=True)))
    whole = read(file, lines)
    assert whole.schema["vocabulary"] == expected
    blocks = Source.blocks
    monkeypatch.setattr(Source, "blocks", lambda self, size=300: blocks(self, size))
    parts = read(file, lines, cache=False)
    assert rows_of(parts) == rows_of(whole)
    assert lines_of(parts) == list(range(2, 402))


def test_hashed_categories(file: Path) -> None:
    feed = raw(file, PETS, categories="hash", hash_bits=12, missing_numbers="zero")
    kind = twin.hash_bytes(b"kind", SEED)
    cat, dog = (2 + (twin.hash_bytes(word, kind) >> 52) for word in (b"cat", b"dog"))
    assert rows_of(feed) == [{0: 3, 1: 4.5, cat: 1}, {dog: 1}, {0: 1, 1: 10, cat: 1}, {0: 2, 1: -2}]
    assert feed.features == 2 + 4096
    assert feed.schema["vocabulary"] == []
    again = read(file, "label,age,kind,weight\nno,,cat,\n", json.loads(json.dumps(feed.schema)))
    assert rows_of(again) == [{cat: 1}]


def test_the_same_value_in_two_columns_is_two_features(file: Path) -> None:
    for categories in ("enumerate", "hash"):
        (row,) = rows_of(read(file, "y,a,b\n1,u,u\n", categories=categories))
        assert len(row) == 2


def test_text_in_a_table(file: Path) -> None:
    lines = 'y,id,review,stars\n1,7,"Fine, ""fine"" film",5\n0,8,Bad,1\n'
    feed = raw(file, lines, text="review", ngrams=2)
    bags = [twin.bag_of(twin.words_of(text), SEED, BITS, 2, True) for text in ("Fine, fine film", "Bad")]
    assert rows_of(feed) == [pytest.approx(bag) for bag in bags]
    beside = raw(file, lines, text="review", numeric=("stars",), categorical=("id",))
    shifted = [{ident + 1: value for ident, value in bag.items()} for bag in bags]
    first = 1 + (1 << BITS)
    assert rows_of(beside)[0] == pytest.approx({0: 5, first: 1, **shifted[0]})
    assert rows_of(beside)[1] == pytest.approx({0: 1, first + 1: 1, **shifted[1]})
    assert beside.features == first + 2


def test_a_model_of_text_reads_tables_too(file: Path, tmp_path: Path) -> None:
    tabbed = tmp_path / "train.tsv"
    tabbed.write_text('label\ttext\npos\t"good film\nneg\tbad\n')
    feed = open_feed(tabbed, FeedConfig(text="text", hash_bits=BITS))
    again = read(file, 'text,label\n"bad, bad film",pos\n', feed.schema)
    assert rows_of(again) == [pytest.approx(twin.bag_of([b"bad", b"bad", b"film"], SEED, BITS, 2, True))]
    assert targets_of(again) == [1]


# -- which column is what ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "options", "targets", "names"),
    [
        ("1,a,5\n0,b,6\n", {}, [1, 0], ["0", "1", "2"]),
        ("1,a,5\n0,b,6\n", {"label": "-1"}, [5, 6], ["0", "1", "2"]),
        ("1,a,5\n0,b,6\n", {"label": "2"}, [5, 6], ["0", "1", "2"]),
        ("a,b,Target\n1,x,5\n0,y,6\n", {}, [5, 6], ["a", "b", "Target"]),
        ("a,b,c\n1,x,5\n0,y,6\n", {}, [1, 0], ["a", "b", "c"]),
        ("a,b,c\n1,x,5\n0,y,6\n", {"label": "c"}, [5, 6], ["a", "b", "c"]),
        (",y,x\n0,1,u\n1,0,v\n", {}, [1, 0], ["column 0", "y", "x"]),
        ("a,b\nu,x\nv,y\n", {"label": "b"}, [0, 1], ["a", "b"]),
        ("class,b\nu,x\nv,y\n", {}, [0, 1], ["class", "b"]),
        ("u,x\nv,y\n", {}, [0, 1], ["0", "1"]),
        ("u,x\nv,y\n", {"header": "yes"}, [0], ["u", "x"]),
        ("a,1\nb,2\n", {"header": "no"}, [0, 1], ["0", "1"]),
        ("a;b\n1;2\n", {}, [1], ["a", "b"]),
        ("a|b\n1|2\n", {}, [1], ["a", "b"]),
        ("a\tb\n1\t2\n", {}, [1], ["a", "b"]),
        ("a\tb\n1\t2\n", {"format": "tsv"}, [1], ["a", "b"]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n", {}, [1], ["a", "b"]),
        ("\n\na,b\n\n1,2\n", {}, [1], ["a", "b"]),
        ('"two\nlines",b\n1,2\n', {}, [1], ["two\nlines", "b"]),
    ],
)
def test_labels_and_headers(
    file: Path, lines: str | bytes, options: dict[str, Any], targets: list[float], names: list[str]
) -> None:
    feed = read(file, lines, **options)
    assert targets_of(feed) == targets
    assert feed.schema["columns"] == names


def test_columns_as_the_user_says(file: Path) -> None:
    feed = read(file, PETS, categorical=("age",), ignore=("3",))
    assert feed.schema["categorical"] == ["age", "kind"]
    assert feed.schema["numeric"] == []
    assert feed.schema["vocabulary"] == ["age=3", "kind=cat", "kind=dog", "age=1", "age=2"]


@pytest.mark.parametrize("names", [("age", "weight"), ("age,weight",), ("1,3",)])
def test_several_columns_in_one_word(file: Path, names: tuple[str, ...]) -> None:
    assert read(file, PETS, ignore=names).schema["numeric"] == []
    assert read(file, PETS, categorical=names).schema["categorical"] == ["age", "kind", "weight"]
    odd = read(file, 'y,"a,b",c,a\n1,x,u,p\n0,y,v,q\n', ignore=("a,b", "c"))
    assert odd.schema["categorical"] == ["a"], "a column may have a comma in its name"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ignore": ("age,wieght",)}, r"`wieght` \(--ignore\).*Did you mean `weight`"),
        ({"label": "lable"}, r"no column `lable` \(--label\); the columns are label, age, .*\. Did you mean `label`\?"),
        ({"numeric": ("wieght",)}, r"`wieght` \(--numeric\).*Did you mean `weight`"),
        ({"ignore": ("4",)}, r"`4` \(--ignore\)"),
        ({"text": "Kind"}, r"`Kind` \(--text\).*Did you mean `kind`"),
        ({"numeric": ("age",), "categorical": ("1",)}, r"column `age` is named by both --numeric and --categorical"),
        ({"numeric": ("label",)}, r"column `label` is named by both --label and --numeric"),
    ],
)
def test_wrong_columns(file: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(file, PETS, **options)


# -- bad input ---------------------------------------------------------------------------------------------------------

MANY = "y,age,kind\n" + "1,2,cat\n" * 1200


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("y,a,b\n1,2,x\n1,2\n", r"pets\.csv:3: expected 3 columns, found 2\. Correct the line, or skip [^,]*$"),
        ("y,a,b\n1,2,x\n\n1,2,x,4\n", r"pets\.csv:4: expected 3 columns, found 4"),
        ('y,a,b\n1,2,"x\ny"\n1,2\n', r"pets\.csv:4: expected 3 columns, found 2"),
        (MANY + "1,old,cat\n", r"pets\.csv:1202: column `age`: `old` is not a finite number\. .*--categorical"),
        ("y,age,b\n1,-inf,x\n", r"pets\.csv:2: column `age`: `-inf` is not a finite number"),
        ("y,age,b\n1,1e39,x\n", r"pets\.csv:2: column `age`: `1e\+39` is not a finite number"),
        ("y,age,b\n1,2,x\n,2,x\n", r"pets\.csv:3: the label is missing"),
        ("y,age,b\nu,2,x\n ,2,x\n", r"pets\.csv:3: the label is missing"),
        (MANY + "x,1,cat\n", r"pets\.csv:1202: the label `x` is not a finite number"),
        ("y,age,b\n1,2,x\ninf,2,x\n", r"pets\.csv:3: the label `inf` is not a finite number"),
        ('y,a,b\n1,2,"x\n1,2,x\n', r"pets\.csv:2: a quote is opened in this record and never closed"),
        ("y,a,b\n1,2,\0\n", r"pets\.csv:2:5: a NUL byte"),
        (b"y,\xe9,b\n1,2,3\n", r"pets\.csv:1:3: byte 0xe9 is not UTF-8"),
        (b"y,a,b\n1,2,\xe9\n", r"pets\.csv:2:5: byte 0xe9 is not UTF-8"),
        ("y,a,b\n".encode("utf-16"), "looks like UTF-16"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "NUL byte"),
        ("", "no rows"),
        ("y,a,b\n", "no rows"),
        ("just one column\nand no delimiter\n", "no column is left for features"),
        ("y,a,a\n1,2,3\n", "two columns are named `a`; rename one"),
    ],
)
def test_bad_tables(file: Path, lines: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(file, lines)


def test_bad_lines_are_skipped_and_counted(file: Path) -> None:
    lines = MANY.replace("1,2,cat", "1,2,cat\n0,3,dog,4\n,1,cat\n1,old,cow", 1) + "x,1,cat\n"
    feed = raw(file, lines, bad_lines="skip", numeric=("age",))
    assert len(feed) == 1200
    assert lines_of(feed) == [2, *range(6, 1205)]
    assert feed.schema["vocabulary"] == ["kind=cat"], "a skipped row adds no category"
    assert feed.notes[0].startswith("4 of 1204 lines malformed and skipped: ")
    assert "pets.csv:3: expected 3 columns, found 4" in feed.notes[0]
    with pytest.raises(InputError, match=r"4 of 1204 lines are malformed, more than the share 0\.001"):
        raw(file, lines, bad_lines="skip", bad_share=0.001, numeric=("age",))


def test_skipped_rows_take_their_text_with_them(file: Path) -> None:
    lines = "y,t,n\n1,good,1\n1,lost,x\n0,bad,2\n"
    feed = raw(file, lines, text="t", numeric=("n",), bad_lines="skip", ngrams=1)
    bags = [{1 + (twin.hash_bytes(word, SEED) >> (64 - BITS)): 1.0} for word in (b"good", b"bad")]
    assert rows_of(feed) == [{0: 1.0, **bags[0]}, {0: 2.0, **bags[1]}]
    hashed = raw(file, lines.replace("t,n", "c,n"), numeric=("n",), bad_lines="skip", categories="hash")
    assert [len(row) for row in rows_of(hashed)] == [2, 2]


def test_numbers_as_python_reads_them(file: Path) -> None:
    feed = raw(file, "y,n,b\n1,+2,u\n 0 , 3.5 ,u\n1, ,v\n0,x,v\n", numeric=("n",), bad_lines="skip")
    assert [row.get(0, 0) for row in rows_of(feed)] == [2, 3.5, 2.75], "the mean of what is there, without bad lines"
    assert targets_of(feed) == [1, 0, 1]


def test_invalid_utf8_is_replaced_and_counted(file: Path) -> None:
    feed = read(file, b"y,a\n1,caf\xe9\n0,caf\xc3\xa9\n", invalid_utf8="replace")
    assert feed.schema["vocabulary"] == ["a=caf?", "a=café"]
    assert "1 byte not UTF-8, read as `?`." in feed.notes


def test_quotes_across_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "y,a,n\n" + "".join(f'{k % 2},"text, with\n""quotes"" and\r\nlines {k}",{k}\n' for k in range(200))
    whole = raw(file, lines, categorical=("a",))
    blocks = Source.blocks
    monkeypatch.setattr(Source, "blocks", lambda self, size=100: blocks(self, size))
    parts = raw(file, lines, cache=False, categorical=("a",))
    assert rows_of(parts) == rows_of(whole)
    assert lines_of(parts) == lines_of(whole) == list(range(2, 602, 3))
    assert whole.schema["vocabulary"][7] == 'a=text, with\n"quotes" and\r\nlines 7'
    with pytest.raises(InputError, match=r"pets\.csv:602: a quote is opened"):
        raw(file, lines + '1,"x,1\n' + "0,y,1\n" * 300, cache=False, categorical=("a",))


def test_a_number_that_the_scale_of_training_makes_infinite(tmp_path: Path) -> None:
    small = read(tmp_path / "a.csv", "y,x\n1,1e-20\n0,3e-20\n")
    text = "y,x\n1,1e-20\n0,1e30\n"
    with pytest.raises(InputError, match=r"a\.csv:3: a number is too large for float32 once it is scaled"):
        read(tmp_path / "a.csv", text, small.schema)
    assert len(read(tmp_path / "a.csv", text, small.schema, bad_lines="skip")) == 1
