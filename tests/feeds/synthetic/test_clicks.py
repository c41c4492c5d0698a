"""Made clicks: the law that was asked for, texts that equal their twins, and pairs that a linear model misses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from hogwild.config import ClicksConfig
from hogwild.errors import ConfigError
from hogwild.feeds.synthetic import lines as made_text
from hogwild.feeds.synthetic.clicks import Clicks, slot_sizes
from hogwild.feeds.synthetic.truth import Truth

SMALL = ClicksConfig(rows=3000, slots=5, numbers=2, features=400)


def whole(config):
    """All rows of a problem at once, and the truth about them."""
    truth = Truth()
    (rows,) = Clicks(config).rows(truth)
    return rows, truth


@pytest.mark.parametrize(("slots", "features"), [(1, 2), (3, 6), (26, 1_000_000), (26, 300), (40, 2**31 - 1), (2, 20)])
def test_sizes_of_slots(slots, features):
    sizes = slot_sizes(slots, features)
    assert sizes.sum() == features
    assert sizes.min() >= 2
    assert (np.diff(sizes) >= 0).all()
    assert sizes[0] <= 10 or slots == 1


@pytest.mark.parametrize("nonzeros", ["1", "0:3"])
@pytest.mark.parametrize("distribution", ["zipf", "uniform"])
def test_rows_are_as_asked_for(nonzeros, distribution):
    config = replace(SMALL, nonzeros=nonzeros, distribution=distribution, clicks=0.1)
    rows, truth = whole(config)
    low, high = config.lengths
    assert rows.lengths.shape == (3000, 5)
    assert (rows.lengths.min(), rows.lengths.max()) == (low, high)
    sizes = Clicks(config).sizes
    ends = np.cumsum(sizes)
    cells = np.repeat(np.arange(15_000), rows.lengths.ravel())
    assert (np.searchsorted(ends, rows.ids, side="right") == cells % 5).all()     # every id is of its slot
    assert len(np.unique(cells * 400 + rows.ids)) == len(rows.ids)                # none twice in a slot
    counts = np.sort(np.bincount(rows.ids, minlength=400)[-sizes[-1] :])[::-1]
    assert counts[0] > 8 * np.median(counts) if distribution == "zipf" else counts[0] < 4 * np.median(counts)
    assert rows.numbers.shape == (3000, 2)
    assert (rows.numbers == np.rint(10_000 * np.log1p(rows.counts))).all()
    assert truth.positive / 3000 == pytest.approx(0.1, abs=0.03)
    assert truth.bayes()["auc"] == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("auc", [0.5, 0.65, 0.95])
def test_the_auc_asked_for(auc):
    assert whole(replace(SMALL, auc=auc))[1].bayes()["auc"] == pytest.approx(auc, abs=0.02)


def test_the_same_seed_gives_the_same_rows():
    def ids(config):
        return np.concatenate([rows.ids for rows in Clicks(config).rows(Truth())]).tolist()

    assert ids(SMALL) == ids(SMALL)
    assert ids(SMALL) == ids(replace(SMALL, auc=0.9))       # labels differ only
    assert ids(SMALL) != ids(replace(SMALL, part=1))
    assert ids(SMALL) != ids(replace(SMALL, seed=2))


def test_pairs_are_there_to_be_learned():
    """With pairs, a linear model stays behind one that has the products of categories too, which reaches the truth."""
    config = ClicksConfig(rows=12_000, slots=3, numbers=1, features=30, pairs=0.6, auc=0.85)
    (rows, _), (test, truth) = whole(config), whole(replace(config, rows=8000, part=1))

    def design(made, products):
        count = len(made.labels)
        ids = made.ids.reshape(count, 3)
        hot = csr_matrix((np.ones(3 * count), ids.ravel(), np.arange(0, 3 * count + 1, 3)), (count, 30))
        parts = [hot, made.numbers / 10_000]
        for a, b in ((0, 1), (0, 2), (1, 2)) if products else ():
            both = ids[:, a] * 30 + ids[:, b]
            parts.append(csr_matrix((np.ones(count), both, np.arange(count + 1)), (count, 900)))
        return hstack(parts).tocsr()

    areas = {}
    for products in (False, True):
        model = LogisticRegression(max_iter=500).fit(design(rows, products), rows.labels)
        areas[products] = roc_auc_score(test.labels, model.decision_function(design(test, products)))
    assert areas[False] < truth.bayes()["auc"] - 0.05
    assert truth.bayes()["auc"] - 0.015 < areas[True] < truth.bayes()["auc"] + 0.015


# -- text -----------------------------------------------------------------------------------------------------------


def number(units):
    """A number in units of 1 / 10000 as the writers write it."""
    return str(units // 10_000) if units % 10_000 == 0 else f"{units // 10_000}.{units % 10_000:04}"


def slots_of(rows):
    """Ids of each slot of each row."""
    ends = np.cumsum(rows.lengths.ravel())
    cells = [rows.ids[end - length : end].tolist() for end, length in zip(ends, rows.lengths.ravel(), strict=True)]
    width = rows.lengths.shape[1]
    return [cells[k : k + width] for k in range(0, len(cells), width)]


def slow_multislot(rows):
    lines = []
    for label, numbers, slots in zip(rows.labels, rows.numbers, slots_of(rows), strict=True):
        words = ["1", str(label)]
        if len(numbers):
            words += [str(len(numbers)), *map(number, numbers)]
        for ids in slots:
            words += [str(len(ids)), *(str(k + 1) for k in ids)]
        lines.append(" ".join(words) + "\n")
    return "".join(lines).encode()


def slow_libffm(rows, features):
    lines = []
    for label, numbers, slots in zip(rows.labels, rows.numbers, slots_of(rows), strict=True):
        words = [str(label), *(f"{slot}:{k + 1}:1" for slot, ids in enumerate(slots) for k in ids)]
        words += [f"{len(slots) + k}:{features + k + 1}:{number(value)}" for k, value in enumerate(numbers)]
        lines.append(" ".join(words) + "\n")
    return "".join(lines).encode()


def slow_csv(rows):
    lines = []
    for label, numbers, slots in zip(rows.labels, rows.numbers, slots_of(rows), strict=True):
        lines.append(",".join([str(label), *map(number, numbers), *(f"v{ids[0] + 1}" for ids in slots)]) + "\n")
    return "".join(lines).encode()


@pytest.mark.parametrize("features", [10, 9999, 10_000, 123_456_789])
@pytest.mark.parametrize("numbers", [0, 2])
def test_texts_equal_their_twins(features, numbers):
    config = ClicksConfig(rows=40, slots=2, numbers=numbers, features=features, nonzeros="0:4")
    rows, _ = whole(config)
    assert made_text.clicks_multislot(rows) == slow_multislot(rows)
    assert made_text.libffm(rows, features) == slow_libffm(rows, features)
    single, _ = whole(replace(config, nonzeros="1"))
    assert made_text.csv(single) == slow_csv(single)


def test_criteo_lines():
    rows, _ = whole(ClicksConfig(rows=2000))
    lines = [line.split("\t") for line in made_text.criteo(rows).decode().splitlines()]
    assert {len(words) for words in lines} == {40}
    assert [int(words[0]) for words in lines] == rows.labels.tolist()
    assert [[int(word) for word in words[1:14]] for words in lines] == rows.counts.tolist()
    names = [words[14:] for words in lines]
    assert all(len(name) == 8 and int(name, 16) >= 0 for row in names for name in row)
    ids = rows.ids.reshape(2000, 26)
    for slot in range(26):  # names and ids are the same thing
        pairs = set(zip(ids[:, slot].tolist(), (row[slot] for row in names), strict=True))
        assert len(pairs) == len({k for k, _ in pairs}) == len({name for _, name in pairs})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": 51}, "two a slot"),
        ({"slots": 0}, "slots is 0"),
        ({"nonzeros": "3:2"}, "low before high"),
        ({"nonzeros": "x"}, "low before high"),
        ({"nonzeros": "11"}, "the smallest slot has 10"),
        ({"nonzeros": "0", "numbers": 0}, "nothing in a row"),
        ({"slots": 1}, "one slot makes no pairs"),
        ({"pairs": 1.5}, "share between 0 and 1"),
        ({"clicks": 0.0}, "clicks is 0.0"),
        ({"auc": 0.4}, "pure chance"),
    ],
)
def test_what_cannot_be_made(wrong, message):
    with pytest.raises(ConfigError, match=message):
        ClicksConfig(**wrong)
