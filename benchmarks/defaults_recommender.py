"""Recommenders at their defaults: ratings beside surprise's SVD (RMSE), what users have beside implicit's BPR and ALS.

The defaults were chosen on other sets (`CHOSEN_ON`, and a tenth of Gowalla's training data, held out). Ratings here are
made ones of several sizes; gray levels of photographs (row, column, level) that scikit-learn brings, of which the most
are hidden; and how often words of a Wikipedia text follow each other within four words (word, word, log of the count).
"""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from defaults_row import Row, Skipped, row_of

import hogwild
from hogwild.config import MadeRatingsConfig
from hogwild.feeds.synthetic.ratings import RatingTruth, make_lists, make_ratings
from hogwild.programs.recommender.ranking import Factors, ranking_metrics, relevant_in, seen_in

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TOP = 20


class Split(NamedTuple):
    """Training and test data as (users, items, ratings)."""

    train: tuple[Any, Any, Any]
    test: tuple[Any, Any, Any]


def made(seed: int, rows: int, users: int, items: int, **options: Any) -> Split:
    """Made ratings."""
    parts = []
    for part, count in ((0, rows), (1, max(2000, rows // 10))):
        config = MadeRatingsConfig(rows=count, users=users, items=items, seed=seed, part=part, **options)
        columns = zip(*make_ratings(config, RatingTruth()), strict=True)
        parts.append(tuple(np.concatenate(column) for column in columns))
    return Split(*parts)


def held_out(users: Any, items: Any, ratings: Any, seed: int, share: float) -> Split:
    """Some of the ratings for testing."""
    held = np.random.default_rng(seed).random(len(users)) < share
    return Split(*((users[rows], items[rows], ratings[rows]) for rows in (~held, held)))


def shown_cells(matrix: Any, seed: int, keep: float) -> Split:
    """A share of the cells of a matrix, a fifth of it held out."""
    kept = np.random.default_rng(seed).random(matrix.shape) < keep
    return held_out(*np.nonzero(kept), matrix[kept].astype(float), seed, 0.2)


def photograph(name: str, seed: int, keep: float) -> Split:
    """Gray levels of every other pixel."""
    from sklearn.datasets import load_sample_image

    return shown_cells(load_sample_image(name).mean(axis=2)[::2, ::2], seed, keep)


def digits(seed: int, keep: float) -> Split:
    """Gray levels of the pixels of handwritten digits."""
    from sklearn.datasets import load_digits

    return shown_cells(load_digits().data, seed, keep)


def neighbours(seed: int, words: int, skip: int, keep: float) -> Split:
    """Logs of how often a word follows another within four words, of words of some ranks."""
    found = sorted((DATA / "wiki").glob("*.xz"))
    if not found:
        raise Skipped("../shared/data/wiki is not there")
    with lzma.open(found[0]) as stream:
        text = stream.read(12_000_000).decode().split()
    rank = {word: k for k, (word, _) in enumerate(Counter(text).most_common(words + skip)[skip:])}
    ids = np.array([rank.get(word, -1) for word in text])
    counts = np.zeros((words, words))
    for apart in range(1, 5):
        pairs = ids[:-apart], ids[apart:]
        both = (pairs[0] >= 0) & (pairs[1] >= 0)
        np.add.at(counts, (pairs[0][both], pairs[1][both]), 1)
    users, items = np.nonzero(counts)
    kept = np.random.default_rng(seed).random(len(users)) < keep
    users, items = users[kept], items[kept]
    return held_out(users, items, np.log1p(counts[users, items]), seed, 0.1)


RATINGS: dict[str, Callable[[int], Split]] = {
    "made, 5,000, much noise": lambda seed: made(24 + seed, 5_000, 300, 200, noise=1.0),
    "made, 50,000": lambda seed: made(21 + seed, 50_000, 500, 300, rank=6),
    "made, 100,000, noise": lambda seed: made(22 + seed, 100_000, 943, 1682, noise=0.9),
    "made, 1,000,000": lambda seed: made(23 + seed, 1_000_000, 6_000, 3_700),
    "photograph, 40 % of pixels": lambda seed: photograph("china.jpg", 3 + seed, 0.4),
    "photograph, 30 % of pixels": lambda seed: photograph("flower.jpg", 4 + seed, 0.3),
    "words beside words": lambda seed: neighbours(5 + seed, 2_000, 1_500, 0.6),
}
CHOSEN_ON: dict[str, Callable[[int], Split]] = {
    "made, 20,000": lambda seed: made(11 + seed, 20_000, 200, 100),
    "made, 30,000, few a user": lambda seed: made(13 + seed, 30_000, 3_000, 1_000, noise=1.0),
    "made, 100,000, rank 4": lambda seed: made(12 + seed, 100_000, 1_000, 1_700, rank=4, noise=0.8),
    "digits, half": lambda seed: digits(1 + seed, 0.5),
    "digits, a tenth": lambda seed: digits(17 + seed, 0.1),
    "frequent words beside words": lambda seed: neighbours(2 + seed, 1_000, 0, 0.5),
}


def our_rmse(split: Split, seed: int) -> float:
    """Of `hogwild.MatrixFactorization` as it is."""
    named = [[list(map(str, part[0])), list(map(str, part[1])), part[2].tolist()] for part in split]
    feed = hogwild.ratings_of(*named[0])
    test = hogwild.ratings_of(*named[1], names=(feed.users, feed.items))
    program = hogwild.train(hogwild.MatrixFactorization(), feed, seed=seed + 1, quiet=True)
    return float(program.evaluate(test)["rmse"])


def their_rmse(split: Split, seed: int) -> dict[str, float]:
    """Of surprise's SVD as it is, and of biases alone."""
    try:
        import pandas as pd
        from surprise import SVD, BaselineOnly, Dataset, Reader
    except ImportError:
        raise Skipped("scikit-surprise is not installed") from None
    users, items, ratings = split.train
    frame = pd.DataFrame({"user": users, "item": items, "rating": ratings})
    reader = Reader(rating_scale=(float(ratings.min()), float(ratings.max())))
    train = Dataset.load_from_df(frame, reader).build_full_trainset()
    found = {}
    for name, model in (("surprise SVD", SVD(random_state=seed)), ("biases alone", BaselineOnly(verbose=False))):
        model.fit(train)
        guessed = np.array([model.predict(user, item).est for user, item in zip(*split.test[:2], strict=True)])
        found[name] = float(np.sqrt(np.mean((guessed - split.test[2]) ** 2)))
    return found


class Lists(NamedTuple):
    """What users have: for training, and to be found."""

    train: Any
    test: Any


def made_lists(seed: int, rows: int, users: int, items: int, **options: Any) -> Lists:
    """Made lists of items."""
    parts = []
    for part, count in ((0, rows), (1, rows // 4)):
        config = MadeRatingsConfig(rows=count, users=users, items=items, seed=seed, part=part, **options)
        pairs = [(str(user), str(item)) for user, own in make_lists(config, RatingTruth()) for item in own]
        parts.append([list(column) for column in zip(*pairs, strict=True)])
    train = hogwild.ratings_of(*parts[0])
    return Lists(train, hogwild.ratings_of(*parts[1], names=(train.users, train.items)))


def gowalla(seed: int) -> Lists:
    """Check-ins."""
    place = DATA / "gowalla"
    if not (place / "train.txt.xz").exists():
        raise Skipped("../shared/data/gowalla is not there")
    train = hogwild.open_ratings(place / "train.txt.xz")
    return Lists(train, hogwild.open_ratings(place / "test.txt.xz", users=train.users, items=train.items))


LISTS: dict[str, Callable[[int], Lists]] = {
    "made lists, 3,000": lambda seed: made_lists(51 + seed, 3_000, 250, 150),
    "made lists, 40,000": lambda seed: made_lists(52 + seed, 40_000, 1_500, 1_200, rank=6),
    "made lists, 25,000, few a user": lambda seed: made_lists(53 + seed, 25_000, 4_000, 600),
    "Gowalla": gowalla,
}


def measured(factors: Factors, lists: Lists) -> dict[str, float]:
    """Recall and NDCG of the best items."""
    sizes = len(lists.train.users), len(lists.train.items)
    seen = seen_in(lists.train.samples, *sizes)
    relevant, _ = relevant_in(lists.test.samples, seen, sizes[1])
    found = ranking_metrics(factors, seen, relevant, TOP)
    return {name: found[name] for name in (f"recall@{TOP}", f"ndcg@{TOP}")}


def our_lists(lists: Lists, seed: int, **options: Any) -> dict[str, float]:
    """Of `hogwild.MatrixFactorization` as it is, or with a solver."""
    program = hogwild.train(hogwild.MatrixFactorization(**options), lists.train, seed=seed + 1, quiet=True)
    return measured(program.factors(), lists)


def their_lists(lists: Lists, seed: int, kind: str) -> dict[str, float]:
    """Of implicit's BPR or ALS as it is."""
    try:
        from implicit.als import AlternatingLeastSquares
        from implicit.bpr import BayesianPersonalizedRanking
    except ImportError:
        raise Skipped("implicit is not installed") from None
    from scipy.sparse import csr_matrix

    model = {"BPR": BayesianPersonalizedRanking, "ALS": AlternatingLeastSquares}[kind](random_state=seed)
    shape = len(lists.train.users), len(lists.train.items)
    users, items, _ = lists.train.samples
    model.fit(csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=shape), show_progress=False)
    vectors = [np.ascontiguousarray(each, dtype=np.float32) for each in (model.user_factors, model.item_factors)]
    nothing = [np.zeros(size, np.float32) for size in shape]
    return measured(Factors(vectors[0], nothing[0], vectors[1], nothing[1], 0.0), lists)


def compare(seeds: int) -> Iterator[Row]:
    """Ratings and lists, ours and theirs at defaults: the means over so many seeds."""
    for name, build in {**RATINGS, **{f"{name} (chosen on)": each for name, each in CHOSEN_ON.items()}}.items():
        splits = [build(100 * seed) for seed in range(seeds)]
        ours = float(np.mean([our_rmse(split, seed) for seed, split in enumerate(splits)]))
        theirs = [their_rmse(split, seed) for seed, split in enumerate(splits)]
        for peer in theirs[0]:
            yield row_of(name, "ratings", "RMSE", (ours, float(np.mean([each[peer] for each in theirs]))), peer)
    for name, load in LISTS.items():
        sets = [load(100 * seed) for seed in range(seeds)]
        for kind, options in (("BPR", {}), ("ALS", {"solver": "als"})):
            mine = [our_lists(lists, seed, **options) for seed, lists in enumerate(sets)]
            peers = [their_lists(lists, seed, kind) for seed, lists in enumerate(sets)]
            for metric in mine[0]:
                figures = (float(np.mean([each[metric] for each in side])) for side in (mine, peers))
                task = "lists, --solver als" if options else "lists"
                yield row_of(name, task, metric, tuple(figures), f"implicit {kind}")


if __name__ == "__main__":
    for row in compare(1):
        figures = f"{row.ours:8.4f} {row.peer:8.4f} {row.peer_name}"
        print(f"{row.dataset:32} {row.task:20} {row.metric:10} {figures}", flush=True)
