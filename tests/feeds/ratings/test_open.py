"""Ratings from files of every kind, what is wrong with them, and the cache."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import hogwild
from hogwild.config import MadeRatingsConfig, RatingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.feeds.storage import cache
from hogwild.feeds.synthetic.ratings import RatingTruth, csv_lines, make_lists, make_ratings, true_model
from places import DATA

FOLDER = DATA / "gowalla"
TRIPLES = [("ann", "tea", 5.0), ("bob", "tea", 3.5), ("bob", "jam é", 4.0), ("ann", "tea", 1.0)]


def triples(feed: RatingFeed) -> list[tuple[str, str, float]]:
    """Ratings in names, in the order of the file; None for those that are not known."""
    users, items = [*feed.users, "?"], [*feed.items, "?"]
    return [(users[u], items[i], float(v)) for u, i, v in zip(*feed.samples, strict=True)]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(sign: str, tail: str = "") -> str:
    return "".join(f"{u}{sign}{i}{sign}{v:g}{tail}\n" for u, i, v in TRIPLES)


TEXTS = {
    "tab": lines("\t", "\t881250949"),
    "comma": lines(","),
    "comma-spaces": lines(" , "),
    "semicolon": lines(";"),
    "colons": lines("::", "::978300760"),
    "header": "userId,movieId,rating,timestamp\r\n" + lines(",", ",1\r"),
    "quotes": "".join(f'"{u}","{i}",{v}\n' for u, i, v in TRIPLES),
    "other-order": "stars;item;extra;user\n" + "".join(f"{v};{i};;{u}\n" for u, i, v in TRIPLES),
    "no-last-newline": lines("\t")[:-1],
    "byte-order-mark": "\ufeff" + lines("\t"),
    "blank-lines": "\n" + lines("\t") + "\n \n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_columns(name: str, tmp_path: Path) -> None:
    feed = hogwild.open_ratings(write(tmp_path / "a.txt", TEXTS[name]))
    assert triples(feed) == TRIPLES
    assert not feed.implicit
    assert (feed.users, feed.items) == (("ann", "bob"), ("tea", "jam é"))  # the most frequent first, then the earlier
    assert feed.samples.users.dtype == feed.samples.items.dtype == np.int32
    assert ("3 blank lines left out." in feed.notes) == (name == "blank-lines")


def test_blanks_between_columns(tmp_path: Path) -> None:
    feed = hogwild.open_ratings(write(tmp_path / "a", "  1 10\t4.5  99 \n2  10 3 98\n"))
    assert triples(feed) == [("1", "10", 4.5), ("2", "10", 3.0)]
    pairs = hogwild.open_ratings(write(tmp_path / "b", "1 10\n2 10\n2 11\n"))
    assert pairs.implicit
    assert triples(pairs) == [("1", "10", 1.0), ("2", "10", 1.0), ("2", "11", 1.0)]


def test_lists(tmp_path: Path) -> None:
    text = "0 5 6 7\n1 5\n2\n\n3 8 5 9 10 11 12 13 14 15 16 \n"
    feed = hogwild.open_ratings(write(tmp_path / "lists.txt", text))
    assert feed.implicit
    assert triples(feed)[:4] == [("0", "5", 1.0), ("0", "6", 1.0), ("0", "7", 1.0), ("1", "5", 1.0)]
    assert len(feed) == 14
    assert feed.users == ("3", "0", "1")
    assert {"1 user without items.", "1 blank line left out."} <= set(feed.notes)
    assert "read as lists: a user and all items a line." in feed.notes
    asked = hogwild.open_ratings(write(tmp_path / "b", "a x y\nb x z\n"), RatingConfig(format="lists"))
    assert len(asked) == 4


def test_tables_grow_with_their_names(tmp_path: Path) -> None:
    names = [f"user-{k}-with-a-long-name" for k in range(9000)]
    text = "".join(f"{name}\titem {k % 5001}\t{k % 5 + 1}\n" for k, name in enumerate(names))
    feed = hogwild.open_ratings(write(tmp_path / "a.tsv", text))
    assert [u for u, _, _ in triples(feed)] == names
    assert [i for _, i, _ in triples(feed)] == [f"item {k % 5001}" for k in range(9000)]
    listed = "".join(f"{name} {' '.join(f'{name}/{k}' for k in range(2 + n % 5))}\n" for n, name in enumerate(names))
    lists = hogwild.open_ratings(write(tmp_path / "b.txt", listed))
    assert len(lists) == sum(2 + n % 5 for n in range(9000))
    assert len(set(lists.items)) == len(lists)
    assert all(item.startswith(user) for user, item, _ in triples(lists))


def test_quotes_in_names(tmp_path: Path) -> None:
    rows = [("ann", 'the "best" tea, hot', 5.0), ("bob", '"', 3.0), ("ann", "jam", 1.0), ('"q"', "tea", 2.0)]
    rows += [("b", 'c""', 4.0)]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("user", "item", "rating"), *rows])
    assert triples(hogwild.open_ratings(tmp_path / "a.csv")) == rows
    many = [(f"u{k}", f'title "{k}", part 2', 1.0 + k % 5) for k in range(9000)]  # the tables grow on the way
    with (tmp_path / "b.tsv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL).writerows(many)
    assert triples(hogwild.open_ratings(tmp_path / "b.tsv")) == many
    known = hogwild.open_ratings(tmp_path / "a.csv")
    asked = hogwild.open_ratings(write(tmp_path / "c.csv", 'user,item,rating\nann,"the ""best"" tea, hot",4\n'),
                                 users=known.users, items=known.items)
    assert triples(asked) == [("ann", 'the "best" tea, hot', 4.0)]


@pytest.mark.parametrize(("line", "message"), [
    ('ann,"the ""best"" tea",good', r"x:3: the rating `good` is not a number"),
    ('ann,"the ""best"" tea"', r"x:3: 2 columns, not 3"),
    ('"","the ""best"" tea",3', r"x:3: there is no user"),
])
def test_what_is_wrong_beside_quotes(line: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x", f'user,item,rating\nann,jam,3\n{line}\nbob,jam,4\n')
    with pytest.raises(InputError, match=message):
        hogwild.open_ratings(path)
    feed = hogwild.open_ratings(path, RatingConfig(bad_lines="skip", bad_share=0.5))
    assert triples(feed) == [("ann", "jam", 3.0), ("bob", "jam", 4.0)]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_binary_files(form: str, tmp_path: Path) -> None:
    users, items, values = zip(*TRIPLES, strict=True)
    table = pa.table({"item_id": pa.array(items).dictionary_encode(), "user_id": users, "score": values})
    path = tmp_path / "a.bin"
    (pyarrow.parquet.write_table if form == "parquet" else pyarrow.feather.write_feather)(table, str(path))
    assert triples(hogwild.open_ratings(path)) == TRIPLES
    numbers = pa.table({"user": [7, 8, None, 7], "item": [1, 2, 3, 1], "rating": [1.0, None, 2.0, 4.0]})
    pyarrow.parquet.write_table(numbers, str(path))
    with pytest.raises(InputError, match=r"a\.bin:3: there is no user"):
        hogwild.open_ratings(path)
    feed = hogwild.open_ratings(path, RatingConfig(bad_lines="skip", bad_share=0.6))
    assert triples(feed) == [("7", "1", 1.0), ("7", "1", 4.0)]
    assert any("2 of 4 lines malformed" in note for note in feed.notes)


WRONG = {
    "not a number": ("a\tb\t3\nb\tc\tgood\n", r"x:2: the rating `good` is not a number"),
    "nan": ("a\tb\t3\nb\tc\tnan\n", r"x:2: the rating `nan` is not a number"),
    "too large": ("a\tb\t3\nb\tc\t1e39\n", r"x:2: the rating `1e39` is not a finite number"),
    "number and more": ("a,b,3\nb,c,3x\n", r"x:2: the rating `3x` is not a number"),
    "no rating": ("a,b,3\nb,c,\nb,d,1\n", r"x:2: the rating `` is not a number"),
    "too few": ("a\tb\t3\nb\tc\nc\td\t1\n", r"x:2: 2 columns, not 3"),
    "too many": ("a::b::3\nb::c::3::4\nb::d::2\n", r"x:2: 4 columns, not 3"),
    "no user": ("a,b,3\n,c,3\n", r"x:2: there is no user"),
    "no item": ("u,i,r\na,b,3\nb, ,3\n", r"x:3: there is no item"),
    "open quote": ('a,b,3\n"b,c,3\n', r"x:2: a quote does not end"),
}


@pytest.mark.parametrize("name", WRONG)
def test_malformed_lines(name: str, tmp_path: Path) -> None:
    text, message = WRONG[name]
    path = write(tmp_path / "x", text)
    with pytest.raises(InputError, match=message):
        hogwild.open_ratings(path)
    feed = hogwild.open_ratings(path, RatingConfig(bad_lines="skip", bad_share=0.5))
    assert len(feed) == text.count("\n") - 1 - text.startswith("u,i")
    assert any("malformed and skipped" in note for note in feed.notes)


def test_other_mistakes(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", "a,b,3\nc,d,2\n")
    for text in ("", "\n\n"):
        with pytest.raises(InputError, match=r"empty: no ratings; is the file empty\?"):
            hogwild.open_ratings(write(tmp_path / "empty", text))
    with pytest.raises(InputError, match="2 lines with one column only"):
        hogwild.open_ratings(write(tmp_path / "one", "a\nb\n"))
    with pytest.raises(ConfigError, match="no column `stars`"):
        hogwild.open_ratings(good, RatingConfig(rating="stars"))
    with pytest.raises(ConfigError, match="cannot be two of"):
        hogwild.open_ratings(good, RatingConfig(user="0", item="0"))
    with pytest.raises(InputError, match="some of the files have ratings"):
        hogwild.open_ratings([good, write(tmp_path / "pairs.csv", "a,b\nb,c\n")])
    (tmp_path / "latin").write_bytes(b"a,b,3\n\xff,d,2\n")
    with pytest.raises(InputError, match="0xff is not UTF-8"):
        hogwild.open_ratings(tmp_path / "latin")
    nul = write(tmp_path / "nul", "a,b,3\na\0,b,2\n")
    with pytest.raises(InputError, match="a NUL byte"):
        hogwild.open_ratings(nul)
    with pytest.raises(InputError, match="does not exist"):
        hogwild.open_ratings(tmp_path / "nowhere")
    with pytest.raises(InputError, match="empty name"):
        hogwild.ratings_of(["a", ""], ["x", "y"])
    with pytest.raises(InputError, match="1 users, 2 items"):
        hogwild.ratings_of(["a"], ["x", "y"])
    with pytest.raises(InputError, match="rating 1 is nan"):
        hogwild.ratings_of(["a", "b"], ["x", "y"], [1, np.nan])


def test_names_of_a_model(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", lines(","))
    feed = hogwild.open_ratings(path, users=("zoe", "bob"), items=("jam é", "tea"))
    assert triples(feed) == [("?", "tea", 5.0), ("bob", "tea", 3.5), ("bob", "jam é", 4.0), ("?", "tea", 1.0)]
    assert "2 ratings of users that the model does not know." in feed.notes
    assert feed.known.tolist() == [False, True, True, False]
    without = hogwild.open_ratings(path, users=("ann",), items=("tea",), with_ratings=False)
    assert without.implicit
    assert without.samples.values.tolist() == [1.0] * 4


def test_few_stars_can_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", lines(","))
    feed = hogwild.open_ratings(path, RatingConfig(min_rating=4))
    assert triples(feed) == [TRIPLES[0], TRIPLES[2]]
    assert feed.items == ("tea", "jam é")
    assert "2 ratings below 4 left out (--min-rating)." in feed.notes
    with pytest.raises(ConfigError, match="no ratings to compare"):
        hogwild.open_ratings(write(tmp_path / "pairs", "a b\nc d\n"), RatingConfig(min_rating=1))


def test_files_pipes_and_the_cache(tmp_path: Path) -> None:
    half = lines("\t").splitlines(keepends=True)
    with gzip.open(tmp_path / "part-1.gz", "wt", encoding="utf-8") as file:
        file.write("".join(half[:2]))
    write(tmp_path / "part-2", "".join(half[2:]))
    feed = hogwild.open_ratings(str(tmp_path / "part-*"))
    assert triples(feed) == TRIPLES
    (entry,) = cache.entries()
    assert (entry.rows, entry.unit) == (4, "ratings")
    again = hogwild.open_ratings(str(tmp_path / "part-*"))
    assert triples(again) == TRIPLES
    assert (again.fingerprint, again.notes, again.schema) == (feed.fingerprint, feed.notes, feed.schema)
    assert len(cache.entries()) == 1
    piped = hogwild.open_ratings(tmp_path / "part-2", RatingConfig(pipe="tr a-z A-Z", cache=False))
    assert triples(piped)[1] == ("ANN", "TEA", 1.0)
    assert len(cache.entries()) == 1
    with pytest.raises(InputError, match="--pipe"):
        hogwild.open_ratings(tmp_path / "part-2", RatingConfig(pipe="false"))


# -- made data ------------------------------------------------------------------------------------------------------


def test_made_ratings_follow_the_truth() -> None:
    config = MadeRatingsConfig(rows=20_000, users=50, items=40, noise=0.3)
    truth = RatingTruth()
    ((users, items, ratings),) = make_ratings(config, truth)
    model = true_model(config)
    true = 3 + model.user_biases[users] + model.item_biases[items] + (model.users[users] * model.items[items]).sum(1)
    assert truth.rmse == pytest.approx(float(np.sqrt(np.mean((ratings - true.clip(0.5, 5)) ** 2))))
    assert 0.3 < truth.rmse < 0.36  # rounding to halves adds 0.144 squared
    assert set(np.unique(2 * ratings)) <= set(range(1, 11))
    assert csv_lines(users, items, ratings).count("\n") == 20_000
    other = next(make_ratings(MadeRatingsConfig(rows=20_000, users=50, items=40, noise=0.3, part=1), RatingTruth()))
    assert not np.array_equal(users, other[0])


def test_made_lists_are_disjoint_and_follow_the_truth() -> None:
    config: dict[str, Any] = {"rows": 3000, "users": 300, "items": 200}
    parts = [dict(make_lists(MadeRatingsConfig(**config, part=part), RatingTruth())) for part in (0, 1)]
    assert [sum(map(len, part.values())) for part in parts] == [3000, 3000]
    for user in parts[0]:
        assert not set(parts[0][user]) & set(parts[1].get(user, ()))
    truth = RatingTruth()
    list(make_lists(MadeRatingsConfig(**config), truth))
    assert truth.ndcg / truth.users > 0.25  # by chance 0.05
    with pytest.raises(ConfigError, match="lower --rows"):
        list(make_lists(MadeRatingsConfig(rows=3000, users=10, items=100), truth))


@pytest.mark.data
@pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data/gowalla")
def test_gowalla() -> None:
    train = hogwild.open_ratings(FOLDER / "train.txt.xz")
    assert (len(train), len(train.users), len(train.items)) == (810_128, 29_858, 40_981)
    counts = np.bincount(train.samples.items)
    assert (np.diff(counts) <= 0).all()
    test = hogwild.open_ratings(FOLDER / "test.txt.xz", users=train.users, items=train.items)
    assert len(test) == 217_242
    assert test.known.all()
