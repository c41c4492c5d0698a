"""Criteo's click logs against their slow twin, and all that can be wrong with a line."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from feeds.slots.files import rows_of
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.open import open_feed
from hogwild.feeds.slots.encoder import SlotTextEncoder
from hogwild.feeds.sparse.feed import Feed
from reference.slots import criteo


def open_text(directory: Path, text: str, schema: dict[str, object] | None = None, **options: object) -> Feed:
    path = directory / "day.txt"
    path.write_text(text, newline="")
    return open_feed(path, FeedConfig(**{"scale": False, "cache": False, **options}), schema)  # type: ignore[arg-type]


def line(label: str = "1", counts: str = "1\t" * 13, categories: str = "\t".join(["68fd1e64"] * 26)) -> str:
    return f"{label}\t{counts}{categories}\n"


def made(rows: int) -> str:
    rng = random.Random(8)

    def count() -> str:
        return rng.choice(["", "0", "-2", str(rng.randrange(100)), str(rng.randrange(10**9))])

    def category() -> str:
        return rng.choice(["", f"{rng.randrange(40):08x}", f"{rng.randrange(2**32):08x}"])

    def row() -> list[str]:
        return [str(rng.randrange(2)), *(count() for _ in range(13)), *(category() for _ in range(26))]

    return "".join("\t".join(row()) + "\n" for _ in range(rows))


def test_rows_are_those_of_the_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = made(700)
    monkeypatch.setattr(SlotTextEncoder, "block_size", 1 << 13)
    feed = open_text(tmp_path, text)
    found, expected = rows_of(feed), criteo(text)
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    np.testing.assert_allclose([row[2] for row in found], [row[2] for row in expected], rtol=1e-6)
    assert feed.schema["format"] == "criteo", "the content does not tell"
    assert (feed.slots[0], feed.slots[-1], feed.dense[0], feed.dense[-1]) == ("C1", "C26", "I1", "I13")
    fields = [field for row in text.splitlines() for field in row.split("\t")]
    empty = sum(not field for row in text.splitlines() for field in row.split("\t")[1:14])
    assert feed.notes == (
        f"{empty:,} empty fields in columns of numbers read as 0.",
        f"{fields.count('') - empty:,} empty fields in columns of categories left out.",
    )


def test_line_ends_and_wide_keys(tmp_path: Path) -> None:
    wide = line(categories="\t".join(["FFFFFFFFFFFFFFFF"] * 26))
    text = line("0") + wide.replace("\n", "\r\n") + " \n" + "1" + "\t" * 39
    feed = open_text(tmp_path, text, format="criteo")
    assert rows_of(feed)[1][1][25] == ("C26", 2**64 - 1, 1.0)
    assert [row[:2] for row in rows_of(feed)] == [row[:2] for row in criteo(text)]
    assert rows_of(feed)[2] == (1.0, [], [0.0] * 13)


def test_rows_without_labels_are_for_prediction_only(tmp_path: Path) -> None:
    schema = dict(open_text(tmp_path, line(), scale=True).schema)
    bare = line().removeprefix("1\t") + line("")
    feed = open_text(tmp_path, bare, schema, unlabelled=True)
    assert [row[0] for row in rows_of(feed)] == [0, 0]
    assert all(len(row[1]) == 26 for row in rows_of(feed))
    assert rows_of(feed)[0][2] == pytest.approx([0.0] * 13), "centred as in the model"
    short = line(categories="\t" * 25).removeprefix("1\t")
    wrong = ((short, "day.txt:1:52: the line ends after 39 of 40"), (line(""), "1:1: the label is missing"))
    for text, problem in wrong:
        with pytest.raises(InputError, match=problem):
            open_text(tmp_path, text, schema)


BAD = [
    (line("2"), "1:1", "the label `2` is neither 0 nor 1"),
    (line("-1"), "1:1", "the label `-1` is neither 0 nor 1"),
    (line("x"), "1:1", "the label `x` is neither 0 nor 1"),
    (line() + line(counts="1\tx\t" + "1\t" * 11), "2:5", "I2: `x` is not a number"),
    (line(counts="nan\t" + "1\t" * 12), "1:3", "I1: `nan` is not a finite float32 number"),
    (line(counts="inf\t" + "1\t" * 12), "1:3", "I1: `inf` is not a finite float32 number"),
    (line(categories="xyz" + "\t" * 25), "1:29", "C1: `xyz` is not a hexadecimal number of up to 16 digits"),
    (line(categories="0" * 17 + "\t" * 25), "1:29", "is not a hexadecimal number of up to 16 digits"),
    (line(categories="68fd1e64" + "\t" * 24), "1:61", "the line ends after 39 of 40 fields"),
    (line(categories="68fd1e64" + "\t" * 26), "1:62", "the line has more than 40 fields"),
    ("1\t5\n", "1:4", "the line ends after 2 of 40 fields"),
    ("1\n", "1:2", "the line ends after 1 of 40 fields"),
]


@pytest.mark.parametrize(("text", "where", "what"), BAD)
def test_what_is_wrong_with_a_line(tmp_path: Path, text: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        open_text(tmp_path, text, format="criteo")
    assert f"day.txt:{where}: " in str(caught.value)
    assert what in str(caught.value)
    whole = "".join(line() for _ in range(20))
    feed = open_text(tmp_path, whole + text, format="criteo", bad_lines="skip", bad_share=0.5)
    assert len(feed) == 20 + text.count("\n") - 1
    assert "malformed and skipped" in feed.notes[-1]


def test_empty_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rows; is the file empty"):
        open_text(tmp_path, "", format="criteo")
