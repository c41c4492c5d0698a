"""Pieces of sentences as samples of their own: how they are cut, and that training is that of pieces."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hogwild.errors import ConfigError
from hogwild.executor.run import AsyncExecutor
from hogwild.programs.taggers.crf import CRF
from hogwild.programs.taggers.pieces import count_pieces, cut_pieces
from problems.crf import make_feed

OPTIONS = {"rich_edges": False, "l2": 1.0}
FORM = {"structure_regularization": 3, "structure_regularization_form": "samples"}


@pytest.mark.parametrize("pieces", [1, 2, 3, 50])
def test_sentences_are_cut_into_so_many(pieces):
    lengths = np.random.default_rng(pieces).integers(1, 12, 200)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    found = cut_pieces(offsets, pieces, seed=7)
    assert found.dtype == offsets.dtype
    assert set(offsets.tolist()) <= set(found.tolist())
    assert (np.diff(found) > 0).all()
    wanted = [min(pieces, length) for length in lengths.tolist()]
    inside = [int(((found >= a) & (found < b)).sum()) for a, b in pairwise(offsets)]
    assert inside == wanted
    assert len(found) - 1 == sum(wanted) == count_pieces(offsets, pieces)
    assert found.tolist() == cut_pieces(offsets, pieces, seed=7).tolist()


def test_all_ways_to_cut_are_equally_likely():
    offsets = np.arange(0, 5 * 6001, 5)
    found = cut_pieces(offsets, 3, seed=1)
    ways = Counter(tuple(found[3 * k : 3 * k + 3] - 5 * k) for k in range(6000))
    assert len(ways) == 6  # two of the four places between five tokens
    assert all(800 < count < 1200 for count in ways.values())


def test_training_on_mini_samples_is_training_on_sentences_that_are_cut():
    """To the last bit: an epoch has as many visits as pieces, and each is a sentence of its own."""
    feed = make_feed(61, lengths=(1, 2, 5, 9, 4, 7))
    pace = {"epochs": 3, "seed": 5, "lr": 0.1}
    program = CRF(**OPTIONS, **FORM)
    events = list(AsyncExecutor(mode="serial").run(program, feed, **pace))
    offsets = cut_pieces(feed.samples.offsets, 3, seed=5)
    pieces = replace(feed, samples=feed.samples._replace(offsets=offsets))
    assert program.visits(feed) == len(pieces) == 1 + 2 + 3 + 3 + 3 + 3
    assert events[-1].samples == 3 * len(pieces)
    assert any("15 mini-samples" in note for note in events[0].notes)
    plain = CRF(**OPTIONS)
    others = list(AsyncExecutor(mode="serial").run(plain, pieces, **pace))
    for name, array in plain.arrays().items():
        assert array.tobytes() == program.arrays()[name].tobytes(), name
    losses = [[event.loss for event in each if event.kind == "epoch"] for each in (events, others)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_every_piece_is_visited_once_an_epoch(threads):
    feed = make_feed(62, lengths=(1, 2, 5, 9, 4, 7))
    events = AsyncExecutor(threads, "hogwild", "all", epochs=2, lr=0.1, trace=True).run(CRF(**OPTIONS, **FORM), feed)
    gradients = [sum(w["gradients"] for w in event.trace) for event in events if event.kind == "epoch"]
    assert gradients == [15, 15]


def test_a_form_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="structure_regularization_form"):
        CRF(structure_regularization_form="samples")
