"""Ranking ids by frequency."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.errors import InputError
from hogwild.feeds.storage import ranking
from hogwild.feeds.storage.ranking import Frequencies, check_features
from hogwild.kernels.ids import ranking as kernel


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_a_stable_sort_by_falling_count(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, [1, 4, 50, 1000, 500_000][seed], size=rng.integers(1, 400))
    rank, original = kernel.ranks_of(counts)
    assert original.tolist() == np.argsort(-counts, kind="stable").tolist()
    assert rank[original].tolist() == list(range(len(counts)))
    assert rank.dtype == original.dtype == np.int32


def test_counts_add_up_over_chunks() -> None:
    rng = np.random.default_rng(1)
    ids = rng.zipf(1.3, 50_000)
    ids = ids[ids < 200_000].astype(np.int32)
    seen = Frequencies()
    for part in np.array_split(ids, 7):
        seen.add(part)
    seen.add(np.empty(0, np.int32))
    rank, original = seen.rank(features=200_000, first=1)
    counts = np.bincount(ids, minlength=200_001)[1:]
    assert original.tolist() == np.argsort(-counts, kind="stable").tolist()
    replaced = ids.copy()
    kernel.replace_ids(replaced, rank, 1)
    assert (original[replaced] + 1).tolist() == ids.tolist()


def test_too_many_features_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="at most 2147483648 can be numbered"):
        check_features(2**31 + 1)
    monkeypatch.setattr(ranking, "memory", lambda: 1_000_000)
    with pytest.raises(InputError, match="more than the memory of this machine"):
        check_features(100_000)
    with pytest.raises(InputError, match="feature id -4 is below 0"):
        Frequencies().add(np.array([1, -4], np.int32))
