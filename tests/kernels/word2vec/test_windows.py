"""Random words: the tables against their formulas, and what visits draw against the tables, with fixed seeds."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from scipy.stats import chisquare

from hogwild.kernels.word2vec.windows import alias_table, chances_to_stay
from problems.word2vec_visits import (
    GRADIENT,
    SkipGram,
    make_task,
    make_text,
    make_weights,
    picks_of,
    plan_for,
    run_visit,
    scratch_for,
)
from reference import word2vec as twin

ALL = 2**32
COUNTS = np.array([4000, 1500, 1500, 600, 250, 100, 40, 10])


def shares(chance: np.ndarray, alias: np.ndarray) -> np.ndarray:
    """What a column that is drawn evenly, and then kept or sent on, gives each word."""
    found = np.zeros(len(chance))
    for column in range(len(chance)):
        kept = (int(chance[column]) + 0.5) / ALL
        found[column] += kept
        found[alias[column]] += 1 - kept
    return found / len(chance)


@settings(max_examples=150, deadline=None)
@given(some.lists(some.integers(1, 10**9) | some.integers(1, 3), min_size=1, max_size=60))
@example([1])
@example([5, 5, 5])
@example([10**12] + [1] * 50)
@example([1] * 50 + [10**12])
def test_the_alias_table_holds_counts_to_the_three_quarters(counts: list[int]) -> None:
    chance, alias = alias_table(np.array(counts))
    assert chance.dtype == np.uint32
    assert ((alias >= 0) & (alias < len(counts))).all()
    np.testing.assert_allclose(shares(chance, alias), twin.noise(counts), rtol=0, atol=2e-9)


def test_an_alias_table_of_many_words() -> None:
    counts = (1e9 / np.arange(1, 100_001)).astype(np.int64)
    np.testing.assert_allclose(shares(*alias_table(counts)), twin.noise(counts.tolist()), rtol=0, atol=1e-9)


def test_words_that_do_not_occur_are_never_drawn() -> None:
    """Text in a given vocabulary may lack some of its words."""
    found = shares(*alias_table(np.array([3, 0, 5, 0])))
    assert found[[1, 3]].max() < 1e-9
    assert found.sum() == pytest.approx(1)


@given(some.lists(some.integers(1, 10**9), min_size=1, max_size=40), some.floats(1e-7, 1))
@settings(max_examples=100, deadline=None)
def test_chances_to_stay(counts: list[int], sample: float) -> None:
    found = chances_to_stay(np.array(counts), sample) / (ALL - 1)
    for chance, count in zip(found, counts, strict=True):
        share = count / sum(counts)
        assert chance == pytest.approx(min(1.0, (sample / share) ** 0.5 + sample / share), abs=1e-9)


def test_without_sampling_every_word_stays() -> None:
    assert (chances_to_stay(np.array([10**9, 1, 0]), 0.0) == ALL - 1).all()
    assert chances_to_stay(np.array([10**9, 1, 0]), 1e-5)[2] == ALL - 1


@cache
def draws(shared: int, window: int = 4) -> tuple[Counter[int], Counter[int], Counter[int], np.ndarray]:
    """Over many visits: words that stayed, halves of windows, negatives; and the text."""
    random = np.random.default_rng(5)
    ids = random.permutation(np.repeat(np.arange(len(COUNTS)), COUNTS))
    task = make_task(SkipGram, stretch=16, window=window, negatives=1, shared=shared)
    text, weights = make_text(ids, len(COUNTS), sample=0.02), make_weights(task, len(COUNTS), 16)
    scratch = scratch_for(task, 11)
    plan, words, halves, negatives = plan_for(task), Counter(), Counter(), Counter()
    for visit in range(len(ids) // 16):
        run_visit(task, text, visit, weights, scratch, np.float32(1), GRADIENT)
        picks = picks_of(task, len(COUNTS), scratch)
        for k, pick in enumerate(picks):
            words[pick.word] += 1
            if 1 < visit < len(ids) // 16 - 2:
                halves[int(scratch.ints[plan.high + window + k]) - window - k] += 1
            if not shared:
                negatives.update(pick.negatives)
        if shared and picks:
            negatives.update(picks[0].negatives)
    return words, halves, negatives, np.bincount(ids, minlength=len(COUNTS))


def fits(found: Counter[int], keys: range, expected: np.ndarray) -> bool:
    """Whether such counts, or stranger ones, are seen more often than once in ten thousand times."""
    observed = np.array([found[key] for key in keys])
    return chisquare(observed, expected / expected.sum() * observed.sum()).pvalue > 1e-4


@pytest.mark.parametrize("shared", [6, 0], ids=["shared", "pairs"])
def test_many_visits_draw_negatives_by_their_share(shared: int) -> None:
    _, _, negatives, counts = draws(shared)
    assert sum(negatives.values()) > 2500
    assert fits(negatives, range(len(COUNTS)), twin.noise((counts + 1).tolist()))
    assert not fits(negatives, range(len(COUNTS)), counts.astype(float))  # the test would see another power


def test_many_visits_draw_windows_of_all_sizes_alike() -> None:
    _, halves, _, _ = draws(6)
    assert set(halves) == {1, 2, 3, 4}
    assert sum(halves.values()) > 2000
    assert fits(halves, range(1, 5), np.ones(4))


def test_many_visits_leave_frequent_words_out() -> None:
    words, _, _, counts = draws(6)
    share = (counts + 1) / (counts + 1).sum()
    chance = np.minimum(1, np.sqrt(0.02 / share) + 0.02 / share)
    for word, (count, stays) in enumerate(zip(counts, chance, strict=True)):
        away = abs(words[word] - count * stays)
        assert away <= 4 * np.sqrt(count * stays * (1 - stays)) + 1e-9, word
    assert words[0] < 0.4 * counts[0]
    assert words[7] == counts[7]


def test_many_seeds_give_many_choices() -> None:
    """A visit does not leave out the same words each time."""
    ids = [0] * 16
    task = make_task(SkipGram, stretch=16)
    text, weights = make_text(ids, 2, sample=0.2), make_weights(task, 2, 16)
    kept = []
    for seed in range(200):
        scratch = scratch_for(task, seed)
        run_visit(task, text, 0, weights, scratch, np.float32(1), GRADIENT)
        kept.append(len(picks_of(task, 2, scratch)))
    stays = chances_to_stay(np.array([17, 1]), 0.2)[0] / ALL
    assert np.mean(kept) == pytest.approx(16 * stays, abs=4 * np.sqrt(16 * stays * (1 - stays) / 200))
    assert len(set(kept)) > 4
