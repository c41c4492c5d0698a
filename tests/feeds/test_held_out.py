"""Parts of the training data that are held out to validate on."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import hogwild
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.feeds.held_out import hold_out


def rows_in(feed: Any) -> list[Any]:
    """Every row as plain values."""
    samples = feed.samples
    if not hasattr(samples, "offsets"):
        return [(*row.tolist(), float(target)) for row, target in zip(samples.matrix, samples.targets, strict=True)]
    spans = zip(samples.offsets[:-1], samples.offsets[1:], samples.targets, strict=True)
    return [
        (samples.ids[a:b].tolist(), samples.values[a:b].tolist() if hasattr(samples, "values") else [], float(target))
        for a, b, target in spans
    ]


@pytest.fixture(params=["sparse", "dense", "binary"])
def feed(request: Any) -> Any:
    random = np.random.default_rng(4)
    if request.param == "sparse":
        matrix = random.random((50, 9)) * (random.random((50, 9)) < 0.4)
        return hogwild.feed_of(csr_array(matrix), np.arange(50) % 3)
    if request.param == "dense":
        return hogwild.feed_of(random.random((50, 4)).astype(np.float32), np.arange(50) % 2)
    return hogwild.feed_of(csr_array(random.integers(0, 2, (50, 6))), np.arange(50) % 2)


def test_a_share_divides_the_rows_by_the_seed(feed: Any) -> None:
    whole = rows_in(feed)
    kept, held, note = hold_out(TrainConfig(valid_share=0.2), feed)
    assert (len(kept), len(held)) == (40, 10)
    assert "10 of 50" in note
    kept.check(), held.check()
    assert sorted(map(str, rows_in(kept) + rows_in(held))) == sorted(map(str, whole))
    assert rows_in(hold_out(TrainConfig(valid_share=0.2), feed).valid) == rows_in(held)
    assert rows_in(hold_out(TrainConfig(valid_share=0.2, seed=2), feed).valid) != rows_in(held)
    assert held.features == feed.features
    assert held.labels == feed.labels


def test_the_last_share_is_the_end_and_copies_nothing(feed: Any) -> None:
    kept, held, _ = hold_out(TrainConfig(valid_last=0.2), feed)
    assert rows_in(kept) + rows_in(held) == rows_in(feed)
    assert np.shares_memory(held.samples.targets, feed.samples.targets)


def test_rows_still_know_their_lines(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        (tmp_path / f"{name}.svm").write_text("".join(f"{k % 2} {k % 5 + 1}:1\n" for k in range(10)))
        files.append(str(tmp_path / f"{name}.svm"))
    feed = hogwild.open_feed(files, hogwild.FeedConfig(cache=False))
    _, held, _ = hold_out(TrainConfig(valid_last=0.5), feed)
    assert held.place(0) == f"{files[1]}:1"
    assert held.place(9) == f"{files[1]}:10"
    _, held, _ = hold_out(TrainConfig(valid_share=0.5), feed)
    places = [held.place(k) for k in range(10)]
    assert places == sorted(places, key=lambda place: (place.split(":")[0], int(place.split(":")[1])))
    assert {place.split(":")[0] for place in places} == set(files)


def test_ratings_and_the_order_of_lists() -> None:
    rows = [(f"u{k % 7}", f"i{k % 5}", float(k % 3)) for k in range(40)]
    feed = hogwild.ratings_of(*map(list, zip(*rows, strict=True)))
    kept, held, _ = hold_out(TrainConfig(valid_last=0.25), feed)
    assert np.concatenate([kept.samples.items, held.samples.items]).tolist() == feed.samples.items.tolist()
    assert held.users == feed.users
    together = sorted(rows)
    lists = hogwild.ratings_of(*map(list, zip(*together, strict=True)))
    with pytest.raises(ConfigError, match="stands together"):
        hold_out(TrainConfig(valid_last=0.25), lists)
    assert len(hold_out(TrainConfig(valid_share=0.25), lists).valid) == 10


def test_sentences_with_their_text(tmp_path: Path) -> None:
    lines = [f"w{k}{j} t{j % 2}\n" for k in range(20) for j in range(3)]
    (tmp_path / "t.txt").write_text("".join(line + "\n" * (n % 3 == 2) for n, line in enumerate(lines)))
    feed = hogwild.open_tagging([str(tmp_path / "t.txt")], hogwild.TaggingConfig(features="pos", cache=False))
    kept, held, _ = hold_out(TrainConfig(valid_share=0.3), feed)
    kept.check(), held.check()
    assert (len(kept), len(held)) == (14, 6)
    assert int(kept.counts.sum() + held.counts.sum()) == int(feed.counts.sum()) == len(feed.samples.ids)
    words = [column.values[code] for part in (kept, held) for column in part.text.columns[:1] for code in column.codes]
    assert sorted(words) == sorted(line.split()[0] for line in lines)


def test_running_text_in_pieces_that_no_window_crosses() -> None:
    words = [f"w{k % 50}" for k in range(10_000)]
    corpus = hogwild.corpus_of([words, words[:30]], hogwild.CorpusConfig(min_count=1))
    kept, held, _ = hold_out(TrainConfig(valid_share=0.3), corpus)
    kept.check(), held.check()
    assert int(kept.counts.sum() + held.counts.sum()) == len(corpus) == 10_030
    whole, left = corpus.samples.ids.tolist(), kept.samples.ids.tolist()
    neighbours = set(itertools.pairwise(whole))
    assert all(-1 in pair or pair in neighbours for pair in itertools.pairwise(left))
    before, last, _ = hold_out(TrainConfig(valid_last=0.1), corpus)
    assert np.concatenate([before.samples.ids, last.samples.ids]).tolist() == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [({"valid_share": 0.001}, "leaves nothing to validate on"), ({"valid_last": 0.999}, "leaves nothing to train on")],
)
def test_shares_that_leave_nothing(options: dict[str, float], message: str) -> None:
    feed = hogwild.feed_of(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
    with pytest.raises(ConfigError, match=message):
        hold_out(TrainConfig(**options), feed)


def test_what_makes_no_sense() -> None:
    feed = hogwild.feed_of(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
    with pytest.raises(ConfigError, match="choose one of the two"):
        TrainConfig(valid_share=0.1, valid_last=0.1)
    with pytest.raises(ConfigError, match="from 0 to below 1"):
        TrainConfig(valid_share=1.5)
    with pytest.raises(ConfigError, match="leave one of them out"):
        hold_out(TrainConfig(valid_share=0.5), feed, feed)
    with pytest.raises(ConfigError, match="a list is none"):
        hold_out(TrainConfig(valid_share=0.5), [1, 2, 3])
