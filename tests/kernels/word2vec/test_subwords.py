"""Words of parts, and words in a tree: n-grams and ways against slow twins, gradients too; fused does what both do."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hogwild.arrays import Room, aligned_floats, make_scratch
from hogwild.kernels.simd.rows16 import LANES, layout
from hogwild.kernels.word2vec.cbow import Cbow, plan_cbow
from hogwild.kernels.word2vec.skipgram import SkipGram, plan_skip_gram
from hogwild.kernels.word2vec.subwords import ALL
from hogwild.kernels.word2vec.tree import CbowTree, SkipGramTree, hang_words, plan_cbow_tree, plan_skip_gram_tree
from hogwild.kernels.word2vec.windows import Embeddings, SubwordEmbeddings, WiderText, alias_table, chances_to_stay
from hogwild.programs.words.subwords import Spelling, grams_of, mean_vectors
from problems.word2vec_visits import FUSED, GRADIENT, PAIR, run_visit
from reference import word2vec as twin

WORDS = ["tea", "teas", "a", "seat", "größe", "日本語", "the"]
IDS = [0, 1, 2, 0, -1, 3, 0, 1, 4, 4, 0, 2, -1, -1, 5, -1, 0, 6, 1, 0, 2, 3, 1, 0, 0, 5, 1]
BUCKETS, DIM, WINDOW, STRETCH = 23, 5, 3, 8
KINDS = [SkipGramTree, CbowTree, *ALL]


@pytest.mark.parametrize("letters", [(3, 6), (1, 1), (1, 3), (5, 64)])
def test_n_grams_are_those_of_the_twin(letters: tuple[int, int]) -> None:
    words = [*WORDS, "", "x" * 300, "</s>", "é"]
    found = grams_of(words, Spelling(*letters, 1000))
    for k, word in enumerate(words):
        expected = [] if word == "</s>" else twin.grams(word, *letters, 1000)
        assert found.ids[found.starts[k] : found.starts[k + 1]].tolist() == expected


def test_means_are_those_of_rows() -> None:
    random = np.random.default_rng(1)
    own, table = random.normal(size=(2, len(WORDS), 4)).astype(np.float32)[0], random.normal(size=(BUCKETS, 4))
    grams = grams_of(WORDS, Spelling(3, 6, BUCKETS))
    for mine in (own, None):
        found = mean_vectors(grams, table.astype(np.float32), mine, threads=2)
        for k, word in enumerate(WORDS):
            rows = [table[gram] for gram in twin.grams(word, 3, 6, BUCKETS)] + ([] if mine is None else [mine[k]])
            np.testing.assert_allclose(found[k], np.mean(rows, axis=0) if rows else np.zeros(4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("counts", [[5, 5], [1, 1, 1], [9, 4, 3], [1, 2, 3, 5, 8, 13, 21, 34], [7] * 33])
def test_ways_are_as_short_as_can_be_and_lead_to_one_word(counts: list[int]) -> None:
    starts, forks, signs = hang_words(np.array(counts))
    ways = [tuple(zip(forks[a:b], signs[a:b], strict=True)) for a, b in pairwise(starts)]
    assert sum(len(way) * count for way, count in zip(ways, counts, strict=True)) == twin.least_length(counts)
    assert all(way[0][0] == 0 for way in ways)
    assert set(forks.tolist()) == set(range(len(counts) - 1))
    for one in range(len(ways)):
        for other in range(one):
            apart = [signs for signs in zip(ways[one], ways[other], strict=False) if signs[0] != signs[1]]
            assert apart[0][0][0] == apart[0][1][0]  # they part at one fork
            assert apart[0][0][1] == -apart[0][1][1]


def test_the_tree_does_not_depend_on_the_order_of_rows() -> None:
    counts = np.array([3, 9, 3, 4])
    order = np.argsort(-counts, kind="stable")
    starts, forks, signs = hang_words(counts)
    others = hang_words(counts[order])
    for k, row in enumerate(order):
        for mine, their in ((forks, others[1]), (signs, others[2])):
            assert mine[starts[row] : starts[row + 1]].tolist() == their[others[0][k] : others[0][k + 1]].tolist()


class Case:
    """A task with its text and weights."""

    def __init__(self, kind: type, shared: int, **options: Any) -> None:
        lanes, blocks = layout(DIM)
        self.cells = LANES * len(lanes) * blocks
        self.subwords, self.tree = kind in ALL, issubclass(kind, (SkipGramTree, CbowTree))
        counts = np.bincount([word for word in IDS if word >= 0], minlength=len(WORDS))
        ways, nodes, signs = hang_words(counts)
        self.ways = [list(zip(nodes[a:b], signs[a:b], strict=True)) for a, b in pairwise(ways)]
        grams = grams_of(WORDS, Spelling(3, 6, BUCKETS))
        self.parts = [grams.ids[a:b].tolist() for a, b in pairwise(grams.starts)]
        depth = int(np.diff(ways).max())
        self.task = kind(
            lanes, blocks, self.cells, STRETCH, WINDOW, 2, shared, 1.0, options.get("fixed", False),
            options.get("summed", False), depth,
        )  # fmt: skip
        stay = chances_to_stay(counts, 0.0)
        self.text = WiderText(np.array(IDS, np.int32), stay, *alias_table(counts), grams.starts,
                              grams.ids * self.cells, ways, nodes * self.cells, signs)  # fmt: skip
        random = np.random.default_rng(3)
        tables = []
        for rows in (len(WORDS), len(WORDS), BUCKETS)[: 3 if self.subwords else 2]:
            tables.append(aligned_floats(rows * self.cells).reshape(rows, self.cells))
            tables[-1][:, :DIM] = random.normal(0, 1, (rows, DIM))
        self.weights = SubwordEmbeddings(*tables) if self.subwords else Embeddings(*tables)
        skip = issubclass(kind, SkipGram)
        if self.tree:
            self.plan = plan_skip_gram_tree(self.task) if skip else plan_cbow_tree(self.task)
        else:
            self.plan = plan_skip_gram(self.task) if skip else plan_cbow(self.task)

    def scratch(self) -> Any:
        room = Room(4000, self.cells, floats=self.plan.floats, ints=self.plan.ints)
        scratch = make_scratch(room, np.uint64(5))
        scratch.grads[:], scratch.floats[:] = 7, 7
        return scratch

    def picks(self, scratch: Any, centres: int) -> list[twin.Pick]:
        ints, plan, task = scratch.ints, self.plan, self.task
        skip, found = isinstance(task, SkipGram), []
        for i in range(centres):
            at = WINDOW + i
            near = [int(ints[q]) // self.cells for q in range(ints[plan.low + at], ints[plan.high + at] + 1) if q != at]
            first = plan.picks + (0 if skip else 2)
            weight = (len(near) if skip else 1) * task.negatives / max(1, task.shared)
            negatives = [] if self.tree else [int(p) // self.cells for p in ints[first : first + task.shared]]
            found.append(twin.Pick(int(ints[at]) // self.cells, near, negatives, weight))
        return found

    def expected(self, picks: list[twin.Pick]) -> Any:
        skip = isinstance(self.task, SkipGram)
        tables = [table.astype(np.float64) for table in self.weights]
        model: Any = partial(twin.skip_gram if skip else twin.cbow, picks)
        if self.tree:
            model = partial(twin.tree, not skip, picks, self.ways)
        return twin.by_parts(model, self.parts, *tables) if self.subwords else model(*tables)


def centres_of(visit: int) -> int:
    return sum(word >= 0 for word in IDS[visit * STRETCH : (visit + 1) * STRETCH])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_are_those_of_the_twins(kind: type) -> None:
    case = Case(kind, 6)
    for visit in range(-(-len(IDS) // STRETCH)):
        scratch = case.scratch()
        loss = run_visit(case.task, case.text, visit, case.weights, scratch, np.float32(1), GRADIENT)
        exact = case.expected(case.picks(scratch, centres_of(visit)))
        assert loss == pytest.approx(exact[0], rel=1e-5)
        rows = np.concatenate([[0], np.cumsum([len(table) for table in case.weights])])
        total = np.zeros((rows[-1], case.cells))
        for k in range(scratch.count[0]):
            total[scratch.rows[k]] += scratch.grads[k]
        for number, table in enumerate(exact[1:]):
            np.testing.assert_allclose(total[rows[number] : rows[number + 1]], table, rtol=1e-4, atol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_fused_does_what_gradient_and_apply_do(kind: type) -> None:
    found = []
    for how in (PAIR, FUSED):
        case = Case(kind, 6)
        scratch = case.scratch()
        visits = [*range(-(-len(IDS) // STRETCH))] * 4
        losses = [run_visit(case.task, case.text, v, case.weights, scratch, np.float32(0.05), how) for v in visits]
        found.append((losses, case.weights))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    for pair, fused in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(pair, fused, rtol=1e-3, atol=1e-4)
        assert not fused[:, DIM:].any()


@pytest.mark.parametrize("kind", [SkipGram, Cbow])
@pytest.mark.parametrize("option", ["fixed", "summed"])
def test_windows_may_be_fixed_and_neighbours_summed(kind: type, option: str) -> None:
    from problems.word2vec_visits import by_row, make_task, make_text, make_weights, picks_of, scratch_for

    task = make_task(kind)._replace(**{option: True})
    text, weights, scratch = make_text(IDS, 7), make_weights(task, 7, 16), scratch_for(task)
    loss = run_visit(task, text, 2, weights, scratch, np.float32(1), GRADIENT)
    picks = picks_of(task, 7, scratch)
    if option == "fixed":
        places = [place for place in range(2 * STRETCH, 3 * STRETCH) if IDS[place] >= 0]
        assert [pick.near for pick in picks] == [twin.neighbours(IDS, place, WINDOW, [True] * 7) for place in places]
    tables = [table.astype(np.float64) for table in weights]
    if kind is Cbow and option == "summed":
        exact = summed(picks, *tables)
    else:
        exact = (twin.cbow if kind is Cbow else twin.skip_gram)(picks, *tables)
    assert loss == pytest.approx(exact.loss, rel=1e-5)
    for got, wanted in zip(by_row(task, 7, scratch), exact[1:], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def summed(picks: list[twin.Pick], inputs: Any, outputs: Any) -> twin.Outcome:
    """CBOW by sums: a mean of rows that are as many times as long."""
    loss, by_inputs, by_outputs = 0.0, np.zeros(inputs.shape), np.zeros(outputs.shape)
    for pick in picks:
        one = twin.cbow([pick], inputs * max(1, len(pick.near)), outputs)
        loss, by_inputs, by_outputs = (
            loss + one.loss, by_inputs + one.inputs * len(pick.near), by_outputs + one.outputs,
        )  # fmt: skip
    return twin.Outcome(loss, by_inputs, by_outputs)
