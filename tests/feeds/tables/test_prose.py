"""Text columns that are found, and free text, labels and categories that would be one of a kind a row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from feeds.tables.files import BITS, read
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.memory import feed_of
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed

GOOD, BAD = ["warm", "bright", "clever", "moving", "fresh"], ["dull", "cold", "slow", "stale", "loud"]


def reviews(rows: int, seed: int = 1) -> pd.DataFrame:
    """Reviews that nobody wrote twice."""
    draw = random.Random(seed)
    labels = [draw.choice(["positive", "negative"]) for _ in range(rows)]
    words = {"positive": GOOD, "negative": BAD}
    texts = [
        f"A {draw.choice(words[label])}, {draw.choice(words[label])} film. Number {draw.randrange(10**6)}, said he."
        for label in labels
    ]
    return pd.DataFrame({"review": texts, "sentiment": labels})


def write(data: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        data.to_parquet(path)
    elif path.suffix == ".feather":
        data.to_feather(path)
    else:
        data.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def is_read_as_text(feed: Feed, label: str = "sentiment") -> bool:
    schema = feed.schema
    return (schema["label"], schema["text"], schema["numeric"], schema["categorical"]) == (label, "review", [], [])


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.parquet", "r.feather"])
@pytest.mark.parametrize("order", [["review", "sentiment"], ["sentiment", "review"]])
def test_the_text_beside_the_label_is_found(tmp_path: Path, name: str, order: list[str]) -> None:
    path = write(reviews(200)[order], tmp_path / name)
    feed = open_feed(path, FeedConfig(hash_bits=BITS))
    assert is_read_as_text(feed)
    assert feed.labels == ("negative", "positive"), "and the header is no row"
    assert any("The label is column `sentiment`" in note for note in feed.notes)
    assert any("Column `review` is read as text (--categorical" in note for note in feed.notes)
    asked = open_feed(path, FeedConfig(hash_bits=BITS, text="review", label="sentiment"))
    assert (asked.samples.ids == feed.samples.ids).all()  # type: ignore[union-attr]


def test_also_of_a_frame() -> None:
    data = reviews(100)
    feed = feed_of(data[["review"]], data["sentiment"])
    assert is_read_as_text(feed, feed.schema["label"])


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_free_text_among_categories_stops(tmp_path: Path, name: str) -> None:
    data = reviews(200).assign(town=["Ulm", "Bonn"] * 100, stars=[1, 2, 3, 4] * 50)
    path = write(data, tmp_path / name)
    with pytest.raises(InputError, match=r"column `review` holds free text, such as `A .*--text review.*--ignore"):
        open_feed(path, FeedConfig(label="sentiment"))
    assert is_read_as_text(open_feed(path, FeedConfig(label="sentiment", text="review", hash_bits=BITS)))
    left = open_feed(path, FeedConfig(label="sentiment", ignore=("review",)))
    assert (left.schema["numeric"], left.schema["categorical"]) == (["stars"], ["town"])
    meant = open_feed(path, FeedConfig(label="sentiment", categorical=("review",)))
    assert "review" in meant.schema["categorical"]


@pytest.mark.parametrize("options", [{}, {"layout": "slots"}])
def test_a_category_that_differs_in_nearly_every_row_stops(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "a.csv"
    lines = "label,user,town\n" + "".join(f"{k % 2},u{k if k % 20 else 0},{'UB'[k % 2]}\n" for k in range(400))
    with pytest.raises(InputError, match=r"column `user` has 381 different words in 400 rows, .*--ignore user"):
        read(path, lines, **options)
    assert read(path, lines, ignore=("user",), **options).schema["categorical"] == ["town"]
    for meant in ({"categorical": ("user",)}, {"min_count": 2}, {"categories": "hash"}):
        assert "user" in read(path, lines, **meant, **options).schema["categorical"]
    hashed = read(path, lines, categories="hash", **options)
    said = "Column `user` is read as words: nearly every one of the first rows has its own (--ignore user?)."
    assert said in hashed.notes
    often = "label,user\n" + "".join(f"{k % 2},u{k % 200}\n" for k in range(400))
    assert read(path, often, **options).schema["categorical"] == ["user"]


def test_a_label_that_nobody_chose_and_that_differs_in_every_row(tmp_path: Path) -> None:
    lines = "user,town,n\n" + "".join(f"u{k},{'UB'[k % 2]},{k % 7}\n" for k in range(100))
    with pytest.raises(InputError, match=r"`user`, such as `u0`, differs in nearly every row; .*--label"):
        read(tmp_path / "a.csv", lines)
    assert read(tmp_path / "a.csv", lines, label="town", ignore=("user",)).labels == ("B", "U")


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        ("city,mood\n" + "Ulm,glad\nBonn,sad\n" * 20, True),
        ("Ulm,glad\n" + "Ulm,sad\nBonn,glad\n" * 20, False),
        ("city,mood\nUlm,glad\nBonn,sad\n", False),
    ],
)
def test_a_header_over_words(tmp_path: Path, lines: str, header: bool) -> None:
    assert read(tmp_path / "a.csv", lines).schema["header"] == header
