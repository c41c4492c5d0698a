"""Visits to documents: loss and gradients against the twin, where documents end, the fused form, inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hogwild.arrays import Room, aligned_floats, make_scratch
from hogwild.kernels.word2vec.cbow import plan_cbow
from hogwild.kernels.word2vec.documents import (
    Alternating,
    Dbow,
    DbowTree,
    Dm,
    DmTree,
    DocumentEmbeddings,
    DocumentText,
    document_at,
    infer_rows,
    turn_of,
)
from hogwild.kernels.word2vec.skipgram import SkipGram
from hogwild.kernels.word2vec.tree import hang_words, plan_cbow_tree
from problems.word2vec_visits import FUSED, GRADIENT, PAIR, make_task, make_text, picks_of, run_visit, scratch_for
from reference import word2vec as twin
from reference.word2vec import Pick

WORDS = 7
# Documents of several sentences, of none, of one word; the last one ends with the text. 8 words a visit.
IDS = [0, 1, 2, 0, -1, 3, 0, -1, -1, *[1, 4, 4, 0, 2, 5, 5, 1, 2, 3, 0, 1, 6, 0], -1, 5, -1]
IDS += [0, 6, 1, 0, 2, 3, 1, 0, 0, 5, 1]
ENDS = [5, 8, 9, 24, 26, 37]
# Each kind is compiled for itself: those of trees take their time where there is more of it.
TREES = [pytest.param(kind, marks=pytest.mark.full) for kind in (DmTree, DbowTree)]
KINDS = pytest.mark.parametrize("kind", [Dm, Dbow, *TREES])
ONE = np.float32(1)


def is_tree(task: Any) -> bool:
    return isinstance(task, DmTree | DbowTree)


def document_task(kind: type, dim: int = 16, shared: int = 6, summed: bool = False, **options: int) -> Any:
    window = 0 if kind in (Dbow, DbowTree) else options.pop("window", 3)
    task = make_task(kind, dim, window=window, shared=shared, **options)
    return task._replace(fixed=window == 0, summed=summed, depth=WORDS)


def document_text(task: Any, ids: list[int] = IDS, ends: list[int] = ENDS) -> DocumentText:
    text = make_text(ids, WORDS)
    forks, nodes, signs = tree_of(ids)
    return DocumentText(*text, forks, nodes * task.cells, signs, np.array(ends, np.int64))


def tree_of(ids: list[int]) -> Any:
    return hang_words(np.bincount([word for word in ids if word >= 0], minlength=WORDS) + 1)


def document_weights(task: Any, dim: int, documents: int = len(ENDS)) -> DocumentEmbeddings:
    """Without neighbours there are no inputs at all: whoever read or wrote them would be found out."""
    random = np.random.default_rng(3)
    sizes = (0 if task.window == 0 else WORDS, WORDS, documents)
    tables = [aligned_floats(rows * task.cells).reshape(rows, task.cells) for rows in sizes]
    for table in tables:
        table[:, :dim] = random.normal(0, 2 / np.sqrt(dim), (len(table), dim))
    return DocumentEmbeddings(*tables)


def document_scratch(task: Any, seed: int = 1) -> Any:
    plan = plan_cbow_tree(task) if is_tree(task) else plan_cbow(task)
    each = task.stretch * (task.depth if is_tree(task) else task.negatives)
    rows = 2 * task.stretch + plan.most + (task.shared if task.shared and not is_tree(task) else each)
    scratch = make_scratch(Room(rows, task.cells, floats=plan.floats, ints=plan.ints), np.uint64(seed))
    scratch.grads[:], scratch.floats[:] = 7, 7
    return scratch


def looked_at(task: Any, ids: list[int], ends: list[int], visit: int, scratch: Any) -> tuple[list[Pick], list[int]]:
    """What a visit looked at, all words staying, and the document of each word, from the text itself."""
    places = [p for p in range(visit * task.stretch, min((visit + 1) * task.stretch, len(ids))) if ids[p] >= 0]
    plan = plan_cbow_tree(task) if is_tree(task) else plan_cbow(task)
    picks, ints = [], scratch.ints
    for i, place in enumerate(places):
        at = task.window + i
        low, high = int(ints[plan.low + at]), int(ints[plan.high + at])
        near = [int(ints[q]) // task.cells for q in range(low, high + 1) if q != at]
        first, count, weight = plan.picks + 2, task.shared, task.negatives / max(1, task.shared)
        if not task.shared:
            first, count, weight = plan.picks + 1 + i * plan.negatives, task.negatives, 1.0
        negatives = [] if is_tree(task) else [int(n) // task.cells for n in ints[first : first + count]]
        picks.append(Pick(ids[place], near, negatives, weight))
    return picks, [twin.document_of(ends, place) for place in places]


def expected_of(task: Any, visit: int, tables: Any, scratch: Any) -> tuple[float, twin.Tables]:
    starts, forks, signs = tree_of(IDS)
    edges = [slice(starts[k], starts[k + 1]) for k in range(WORDS)]
    ways = [list(zip(forks[edge].tolist(), signs[edge].tolist(), strict=True)) for edge in edges]
    picks, owners = looked_at(task, IDS, ENDS, visit, scratch)
    return twin.paragraphs(picks, owners, tables, ways if is_tree(task) else (), task.summed)


def by_table(task: Any, weights: Any, scratch: Any) -> list[Any]:
    """The gradients in scratch, added up by the rows of all tables."""
    total = np.zeros((sum(map(len, weights)), task.cells))
    for k in range(scratch.count[0]):
        total[scratch.rows[k]] += scratch.grads[k]
    return np.split(total, np.cumsum([len(table) for table in weights])[:-1])


def visits_of(task: Any) -> int:
    return -(-len(IDS) // task.stretch)


def as_doubles(weights: Any) -> twin.Tables:
    return twin.Tables(*(table.astype(np.float64) for table in weights))


def test_the_gradients_of_the_twin_are_those_of_its_loss() -> None:
    random = np.random.default_rng(0)
    tables = twin.Tables(random.normal(size=(4, 3)), random.normal(size=(4, 3)), random.normal(size=(2, 3)))
    picks = [Pick(0, [1, 2, 1], [0, 3], 0.5), Pick(1, [], [3, 3], 0.5), Pick(2, [3], [1, 0], 0.5)]
    ways = [[(0, 1.0)], [(0, -1.0), (1, 1.0)], [(1, -1.0), (2, 1.0)], [(2, -1.0)]]
    for given, summed in (((), False), ((), True), (ways, False)):
        _, slopes = twin.paragraphs(picks, [0, 0, 1], tables, given, summed)
        for table, slope in zip(tables, slopes, strict=True):
            assert np.abs(slope).max() > 0.01
            for cell in np.ndindex(table.shape):
                kept, losses = table[cell], []
                for moved in (kept + 1e-5, kept - 1e-5):
                    table[cell] = moved
                    losses.append(twin.paragraphs(picks, [0, 0, 1], tables, given, summed)[0])
                table[cell] = kept
                assert slope[cell] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-6)


def test_a_position_is_in_the_document_that_ends_behind_it() -> None:
    ends = np.array(ENDS, np.int64)
    assert [document_at(ends, place) for place in range(37)] == [twin.document_of(ENDS, place) for place in range(37)]


@KINDS
@pytest.mark.parametrize(("shared", "dim", "summed"), [(6, 16, False), (0, 5, True)])
def test_loss_and_gradients_are_those_of_the_twin(kind: type, shared: int, dim: int, summed: bool) -> None:
    task = document_task(kind, dim, shared, summed)
    text, weights, scratch = document_text(task), document_weights(task, dim), document_scratch(task)
    for visit in range(visits_of(task)):
        loss = run_visit(task, text, visit, weights, scratch, ONE, GRADIENT)
        exact, slopes = expected_of(task, visit, as_doubles(weights), scratch)
        assert loss == pytest.approx(exact, rel=1e-5)
        for found, slope in zip(by_table(task, weights, scratch), slopes, strict=True):
            np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5)


@KINDS
@pytest.mark.parametrize(("shared", "dim", "summed"), [(6, 16, False), (0, 5, True)])
def test_fused_does_what_gradient_and_apply_do(kind: type, shared: int, dim: int, summed: bool) -> None:
    task = document_task(kind, dim, shared, summed)
    text, begin = document_text(task), document_weights(task, dim)
    tables, losses = [], []
    for how in (PAIR, FUSED):
        weights, scratch = document_weights(task, dim), document_scratch(task)
        visits = list(range(visits_of(task))) * 4
        losses.append([run_visit(task, text, v, weights, scratch, np.float32(0.1), how) for v in visits])
        tables.append(weights)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    for pair, fused, first in zip(*tables, begin, strict=True):
        np.testing.assert_allclose(pair, fused, rtol=1e-4, atol=1e-5)
        assert not fused[:, dim:].any()
        assert first.size == 0 or np.abs(pair - first).max() > 1e-2
    moved = np.abs(tables[1].documents - begin.documents).max(axis=1) > 1e-3
    assert moved.tolist() == [True, True, False, True, True, True]  # the third document has no words


@pytest.mark.parametrize("how", [PAIR, FUSED])
@pytest.mark.full
def test_words_and_documents_learn_in_turns(how: int) -> None:
    """A visit of skip-gram, then those of DBOW on the same words; both write the same outputs."""
    words = make_task(SkipGram, 16, stretch=16, window=2, negatives=2, shared=6)
    documents = document_task(Dbow, 16)
    task = Alternating(words, documents, 2)
    text = document_text(documents)
    both, apart = (document_weights(words, 16) for _ in range(2))
    room, alone = scratch_for(words), scratch_for(words)
    visits = 3 * -(-len(IDS) // words.stretch)
    for visit in range(visits):
        loss = run_visit(task, text, visit, both, room, np.float32(0.1), how)
        is_words, number = turn_of(visit, 2)
        one = words if is_words else documents
        if not is_words and number * documents.stretch >= len(IDS):
            assert loss == 0  # behind the end of the text
            continue
        expected = run_visit(one, text, number, apart, alone, np.float32(0.1), how)
        if is_words and how == PAIR:  # what skip-gram applies alone knows nothing of documents, and needs not
            assert len(picks_of(words, WORDS, alone)) > 0
        assert loss == expected
    for one, other in zip(both, apart, strict=True):
        assert one.tobytes() == other.tobytes()
    assert [turn_of(visit, 2) for visit in range(6)] == [
        (True, 0), (False, 0), (False, 1), (True, 1), (False, 2), (False, 3),
    ]  # fmt: skip


@KINDS
def test_inference_moves_documents_alone_and_each_for_itself(kind: type) -> None:
    task = document_task(kind)
    rates, seed = np.full(20, 0.1, np.float32), np.uint64(5)
    text, weights = document_text(task), document_weights(task, 16)
    weights.documents[:] = weights.documents[0]
    before = [table.copy() for table in weights]
    infer_rows(task, text, weights, document_scratch(task), rates, seed)
    assert weights.inputs.tobytes() == before[0].tobytes()
    assert weights.outputs.tobytes() == before[1].tobytes()
    assert (np.abs(weights.documents - before[2]).max(axis=1) > 1e-3).tolist() == [True, True, False, True, True, True]
    # The fifth document by itself, which is one word.
    alone = document_text(task, IDS[24:26], [2])._replace(
        stay=text.stay, chance=text.chance, alias=text.alias, forks=text.forks, nodes=text.nodes, signs=text.signs
    )
    single = weights._replace(documents=before[2][:1].copy())
    infer_rows(task, alone, single, document_scratch(task), rates, seed)
    assert single.documents.tobytes() == weights.documents[4:5].tobytes()
    assert single.documents[0, :16] @ weights.outputs[5, :16] > before[2][0, :16] @ weights.outputs[5, :16] or kind in (
        DmTree, DbowTree,
    )  # fmt: skip
