"""Visits in halves: slices of the columns, with summed scores, do what a whole visit does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiling import OFF, cases
from hogwild.kernels.compiler.rng import mix
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.word2vec.columns import Block, key_of, learn_block, most_scores, score_block
from kernels.sparse.test_linear import in_new_process
from problems.word2vec_visits import FUSED, Cbow, SkipGram, make_task, make_text, make_weights, run_visit, scratch_for

WORDS = 7
SENTENCES = [0, 1, 2, 0, -1, 3, 0, 1, 4, 4, 0, 2, -1, -1, 5, -1, 0, 6, 1, 0, 2, 3, 1, 0, 0, 5, 1]  # 8 a stretch: 3 left
ENDLESS = [int(word) for word in np.random.default_rng(0).integers(0, WORDS, 27)]
EMPTY = [*[-1] * 16, *SENTENCES, *[-1] * 9, 3]
RATE = np.float32(0.1)
STEADY = Schedule(0.1, 0.0, 0.0)
BOTH = pytest.mark.parametrize("kind", cases([SkipGram, Cbow], [SkipGram]))


class Slices:
    """The columns of some weights, divided."""

    def __init__(self, kind: type, dim: int, parts: int, shared: int, text: Any, weights: Any) -> None:
        self.text, self.parts = text, []
        for part in range(parts):
            a, b = dim * part // parts, dim * (part + 1) // parts
            task = make_task(kind, b - a, shared=shared)
            own = make_weights(task, WORDS, b - a)
            for mine, whole in zip(own, weights, strict=True):
                mine[:, : b - a] = whole[:, a:b]
            self.parts.append((task, own, scratch_for(task), a, b))

    def score(self, block: Block) -> tuple[Any, Any, Any]:
        """The sums of all parts, the scores of each, and where those of each visit end."""
        found, ends = [], np.zeros(block.stop - block.first, np.int64)
        for task, own, scratch, *_ in self.parts:
            scores = np.full(most_scores(task) * len(ends) + 1, np.nan, np.float32)
            before, ends = ends.copy(), np.zeros_like(ends)
            score_block(task, self.text, own, scratch, block, scores, ends)
            assert np.isnan(scores[ends[-1] :]).all()
            found.append(scores[: ends[-1]])
            assert not before.any() or (before == ends).all()
        return np.sum(found, axis=0), found, ends

    def learn(self, block: Block, sums: Any, mine: Any) -> list[float]:
        """The loss, as each part sees it. mine: the scores of each, as they were summed up."""
        parts, losses = np.float32(len(self.parts)), []
        for (task, own, scratch, *_), scores in zip(self.parts, mine, strict=True):
            given = task, self.text, own, scratch, block
            losses.append(learn_block(*given, sums - parts * scores, parts, STEADY))
        return losses

    def compare(self, weights: Any) -> None:
        """With the whole tables."""
        for _, own, _, a, b in self.parts:
            for mine, whole in zip(own, weights, strict=True):
                np.testing.assert_allclose(mine[:, : b - a], whole[:, a:b], rtol=1e-5, atol=1e-5)
                assert not mine[:, b - a :].any()


@BOTH
@pytest.mark.parametrize("shared", [6, 0], ids=["shared", "pairs"])
@pytest.mark.parametrize(("dim", "parts"), [(16, 1), (19, 2), (19, 3), (5, 3)])
@pytest.mark.parametrize("ids", [SENTENCES, ENDLESS, EMPTY], ids=["sentences", "endless", "empty"])
def test_slices_do_what_a_whole_visit_does(kind: type, shared: int, dim: int, parts: int, ids: list[int]) -> None:
    task = make_task(kind, dim, shared=shared)
    text, weights, scratch = make_text(ids, WORDS, sample=0.1), make_weights(task, WORDS, dim), scratch_for(task)
    slices, key = Slices(kind, dim, parts, shared, text, weights), key_of(5, 2)
    for visit in range(-(-len(ids) // task.stretch)):
        with np.errstate(over="ignore"):
            scratch.random[0] = mix(key + np.uint64(visit))
        expected = run_visit(task, text, visit, weights, scratch, RATE, FUSED)
        block = Block(key, visit, visit + 1, 0)
        sums, mine, _ = slices.score(block)
        assert slices.learn(block, sums, mine) == pytest.approx([expected] * parts, rel=1e-5, abs=1e-6)
    slices.compare(weights)


@BOTH
def test_visits_of_a_block_are_scored_together(kind: type) -> None:
    """As each by itself; and a block may be divided where the scores of a visit end."""
    task = make_task(kind, 19)
    text, key = make_text(ENDLESS * 3, WORDS), key_of(1, 0)
    visits = -(-len(ENDLESS) * 3 // task.stretch)
    one, other = (Slices(kind, 19, 2, 6, text, make_weights(task, WORDS, 19)) for _ in range(2))
    block = Block(key, 0, visits, 0)
    sums, mine, ends = one.score(block)
    each = [other.score(Block(key, visit, visit + 1, 0))[0] for visit in range(visits)]
    np.testing.assert_array_equal(np.concatenate(each), sums)
    whole = one.learn(block, sums, mine)
    begins = [end - len(scores) for end, scores in zip(ends, each, strict=True)]
    parts = [
        other.learn(Block(key, visit, visit + 1, 0), sums[begin:], [scores[begin:] for scores in mine])
        for visit, begin in enumerate(begins)
    ]
    assert np.sum(parts, axis=0) == pytest.approx(whole, rel=1e-12)
    for (_, here, *_), (_, there, *_) in zip(one.parts, other.parts, strict=True):
        for found, expected in zip(here, there, strict=True):
            np.testing.assert_array_equal(found, expected)


@BOTH
def test_one_part_learns_from_what_it_has_now(kind: type) -> None:
    """A block of all visits, scored long before, does what these do one after the other."""
    task = make_task(kind, 19)
    text, weights, scratch = make_text(ENDLESS, WORDS), make_weights(task, WORDS, 19), scratch_for(task)
    key = key_of(1, 0)
    slices = Slices(kind, 19, 1, 6, text, weights)
    visits = -(-len(ENDLESS) // task.stretch)
    block = Block(key, 0, visits, 0)
    sums, mine, _ = slices.score(block)
    (loss,) = slices.learn(block, sums, mine)
    expected = 0.0
    for visit in range(visits):
        with np.errstate(over="ignore"):
            scratch.random[0] = mix(key + np.uint64(visit))
        expected += run_visit(task, text, visit, weights, scratch, RATE, FUSED)
    assert loss == pytest.approx(expected, rel=1e-5)
    slices.compare(weights)


@BOTH
def test_parts_of_others_are_taken_to_have_changed_as_the_own(kind: type) -> None:
    """Two parts that are equal know all that the other has learnt since."""
    task = make_task(kind, 8)
    text, key = make_text(ENDLESS, WORDS), key_of(1, 0)
    half, whole = make_weights(task, WORDS, 8), make_weights(make_task(kind, 16), WORDS, 16)
    for table, both in zip(half, whole, strict=True):
        both[:, :16] = np.tile(table[:, :8], 2)
    slices, scratch = Slices(kind, 16, 2, 6, text, whole), scratch_for(make_task(kind, 16))
    visits = -(-len(ENDLESS) // task.stretch)
    block = Block(key, 0, visits, 0)
    sums, mine, _ = slices.score(block)
    slices.learn(block, sums, mine)
    for visit in range(visits):
        with np.errstate(over="ignore"):
            scratch.random[0] = mix(key + np.uint64(visit))
        run_visit(make_task(kind, 16), text, visit, whole, scratch, RATE, FUSED)
    slices.compare(whole)


def test_random_numbers_are_of_the_seed_the_epoch_and_the_visit() -> None:
    assert len({int(key_of(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9
    assert key_of(1, 2) == key_of(1, 2)


@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_the_loops_in_plain_python_do_the_same(tmp_path: Path) -> None:
    chosen = "sentences and 19-2"
    done = in_new_process(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen], tmp_path, NUMBA_DISABLE_JIT="1",
        PYTHONWARNINGS="ignore",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("....")  # so many, none of them left out
