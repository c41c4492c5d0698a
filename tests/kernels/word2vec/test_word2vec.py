"""Visits to running text: loss and gradients against the twin, windows against the text, the fused form with both."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from hogwild.kernels.loop.task import total_loss
from problems.word2vec_visits import (
    FUSED,
    GRADIENT,
    PAIR,
    Cbow,
    SkipGram,
    by_row,
    make_task,
    make_text,
    make_weights,
    picks_of,
    plan_for,
    run_visit,
    scratch_for,
)
from reference import word2vec as twin

WORDS = 7
SENTENCES = [0, 1, 2, 0, -1, 3, 0, 1, 4, 4, 0, 2, -1, -1, 5, -1, 0, 6, 1, 0, 2, 3, 1, 0, 0, 5, 1]  # 8 a stretch: 3 left
ENDLESS = [int(word) for word in np.random.default_rng(0).integers(0, WORDS, 27)]
TEXTS = {"sentences": SENTENCES, "endless": ENDLESS, "none": [-1] * 9, "alone": [0, -1, 1, -1, 2, -1, 0, -1, 3, -1]}
BOTH = pytest.mark.parametrize("kind", [SkipGram, Cbow])
ONE = np.float32(1)


def model_of(task: Any) -> Any:
    return twin.cbow if isinstance(task, Cbow) else twin.skip_gram


def visits_of(task: Any, ids: list[int]) -> int:
    return -(-len(ids) // task.stretch)


def compare(task: Any, loss: Any, weights: Any, scratch: Any) -> twin.Outcome:
    """The loss and the gradients of the last visit, with those of the twin for the same picks."""
    words = len(weights.inputs)
    expected = model_of(task)(picks_of(task, words, scratch), *(table.astype(np.float64) for table in weights))
    assert loss == pytest.approx(expected.loss, rel=1e-5, abs=1e-6)
    for found, exact in zip(by_row(task, words, scratch), expected[1:], strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)
    return expected


@pytest.mark.parametrize(("shared", "weight"), [(4, 0.75), (0, 1.0)])
@pytest.mark.parametrize("model", [twin.skip_gram, twin.cbow])
def test_the_gradients_of_the_twin_are_those_of_its_loss(model: Any, shared: int, weight: float) -> None:
    random = np.random.default_rng(shared)
    inputs, outputs = random.normal(size=(2, 5, 3))
    negatives = [[0, 3, 3, 1]] * 3 if shared else [[0, 3], [4, 4], [1, 0]]
    near = [[1, 2, 1], [0], []]  # one neighbour twice, one alone, none
    picks = [twin.Pick(word, near[word], negatives[word], weight) for word in range(3)]
    outcome = model(picks, inputs, outputs)
    for found, exact in zip(outcome[1:], twin.numeric(model, picks, inputs, outputs), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-8)
    assert np.abs(outcome.inputs).max() > 0.1


@BOTH
@pytest.mark.parametrize("shared", [6, 0], ids=["shared", "pairs"])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("dim", [16, 5])
def test_loss_and_gradients_are_those_of_the_twin(kind: type, shared: int, name: str, dim: int) -> None:
    task = make_task(kind, dim, shared=shared)
    text, weights, scratch = make_text(TEXTS[name], WORDS), make_weights(task, WORDS, dim), scratch_for(task)
    total = 0.0
    for visit in range(visits_of(task, TEXTS[name])):
        loss = run_visit(task, text, visit, weights, scratch, ONE, GRADIENT)
        total += compare(task, loss, weights, scratch).loss
    assert (total > 0) == (name in ("sentences", "endless"))  # words without neighbours cost nothing


@pytest.mark.parametrize("dim", [48, 140])
def test_other_layouts(dim: int) -> None:
    """Three vectors to a block, in one block and in three; the last one is not full."""
    task = make_task(SkipGram, dim)
    text, weights = make_text(SENTENCES, WORDS), make_weights(task, WORDS, dim)
    assert len(task.lanes) == 3
    before = 0.0
    for visits in range(1, visits_of(task, SENTENCES) + 1):
        scratch = scratch_for(task)
        total = total_loss(task, text, weights, scratch, 0, visits)
        compare(task, total - before, weights, scratch)
        before = total


@BOTH
@pytest.mark.parametrize(
    ("words", "options"),
    [
        (2, {"window": 1, "negatives": 1, "shared": 2}),
        (2, {"window": 20, "negatives": 3, "shared": 0}),
        (WORDS, {"window": 20, "negatives": 1, "shared": 16}),
        (WORDS, {"window": 2, "negatives": 17, "shared": 0}),
        (WORDS, {"window": 5, "stretch": 64, "negatives": 5, "shared": 48}),
        (WORDS, {"window": 5, "stretch": 48, "negatives": 5, "shared": 22}),
        (WORDS, {"window": 6, "stretch": 1, "negatives": 5, "shared": 4}),
    ],
)
def test_all_sizes(kind: type, words: int, options: dict[str, int]) -> None:
    task = make_task(kind, **options)
    ids = [min(word, words - 1) for word in SENTENCES + ENDLESS * 2]
    text, weights, scratch = make_text(ids, words), make_weights(task, words, 16), scratch_for(task)
    seen: list[twin.Pick] = []
    for visit in range(visits_of(task, ids)):
        loss = run_visit(task, text, visit, weights, scratch, ONE, GRADIENT)
        compare(task, loss, weights, scratch)
        seen += picks_of(task, words, scratch)
    assert [pick.word for pick in seen] == [word for word in ids if word >= 0]
    assert max(len(pick.near) for pick in seen) > min(2, task.window)
    each = task.shared or task.negatives
    assert all(len(pick.negatives) >= min(each, len(pick.near)) for pick in seen)


@BOTH
@pytest.mark.parametrize("never", [(), (0,), (1, 2, 4), range(WORDS)])
def test_windows_hold_the_words_that_stay_in_the_same_sentence(kind: type, never: Any) -> None:
    """At both ends of a stretch, too; a word that is left out is no centre, and those beyond it move nearer."""
    task = make_task(kind, window=3)
    stays = [word not in never for word in range(WORDS)]
    for ids in (SENTENCES, ENDLESS):
        text = make_text(ids, WORDS, never=list(never))
        weights, scratch = make_weights(task, WORDS, 16), scratch_for(task)
        sizes = Counter()
        for visit in list(range(visits_of(task, ids))) * 20:
            start = visit * task.stretch
            places = [p for p in range(start, min(start + task.stretch, len(ids))) if ids[p] >= 0 and stays[ids[p]]]
            run_visit(task, text, visit, weights, scratch, ONE, GRADIENT)
            picks = picks_of(task, WORDS, scratch)
            assert [pick.word for pick in picks] == [ids[place] for place in places]
            for place, pick in zip(places, picks, strict=True):
                possible = [twin.neighbours(ids, place, far, stays) for far in (1, 2, 3)]
                assert pick.near in possible
                sizes[place] = max(sizes[place], len(pick.near))
        for place, size in sizes.items():  # 20 draws of three: the widest is among them
            assert size >= len(twin.neighbours(ids, place, 2, stays))
        assert max(sizes.values(), default=0) == max(
            (len(twin.neighbours(ids, place, 3, stays)) for place in sizes), default=0
        )


@BOTH
def test_a_window_sees_beyond_its_stretch_but_not_beyond_its_sentence(kind: type) -> None:
    task = make_task(kind, stretch=4, window=1)
    ids = [0, 1, 2, 3, 4, 5, 6, -1, 0, 1, -1, 2]
    text, weights, scratch = make_text(ids, WORDS), make_weights(task, WORDS, 16), scratch_for(task)
    found = []
    for visit in range(3):
        run_visit(task, text, visit, weights, scratch, ONE, GRADIENT)
        found += [(pick.word, pick.near) for pick in picks_of(task, WORDS, scratch)]
    inside = [(0, [1]), (1, [0, 2]), (2, [1, 3]), (3, [2, 4]), (4, [3, 5]), (5, [4, 6]), (6, [5])]
    assert found == [*inside, (0, [1]), (1, [0]), (2, [])]


@BOTH
@pytest.mark.parametrize("shared", [6, 0], ids=["shared", "pairs"])
@pytest.mark.parametrize("dim", [16, 5])
def test_fused_does_what_gradient_and_apply_do(kind: type, shared: int, dim: int) -> None:
    task = make_task(kind, dim, shared=shared)
    text = make_text(SENTENCES, WORDS)
    tables, losses = [], []
    for how in (PAIR, FUSED):
        weights, scratch = make_weights(task, WORDS, dim), scratch_for(task)
        visits = [v for _ in range(5) for v in range(visits_of(task, SENTENCES))]
        losses.append([run_visit(task, text, v, weights, scratch, np.float32(0.1), how) for v in visits])
        tables.append(weights)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    begin = make_weights(task, WORDS, dim)
    for pair, fused, first in zip(*tables, begin, strict=True):
        np.testing.assert_allclose(pair, fused, rtol=1e-4, atol=1e-5)
        assert np.abs(pair - first).max(axis=1).min() > 1e-3  # every word has learnt
        assert not pair[:, dim:].any()
        assert not fused[:, dim:].any()


@BOTH
@pytest.mark.parametrize("how", [PAIR, FUSED])
def test_a_step_goes_against_the_gradient_of_the_twin(kind: type, how: int) -> None:
    task = make_task(kind)
    text, weights, scratch = make_text(ENDLESS, WORDS), make_weights(task, WORDS, 16), scratch_for(task)
    before = [table.astype(np.float64) for table in weights]
    other = scratch_for(task)
    run_visit(task, text, 1, weights, other, ONE, GRADIENT)
    outcome = model_of(task)(picks_of(task, WORDS, other), *before)
    run_visit(task, text, 1, weights, scratch, np.float32(0.25), how)
    for table, first, slope in zip(weights, before, outcome[1:], strict=True):
        np.testing.assert_allclose(table, first - 0.25 * slope, rtol=1e-4, atol=1e-5)


@BOTH
def test_the_loss_is_a_sum_in_double_precision(kind: type) -> None:
    """A long text: a sum in single precision would be off by more."""
    task = make_task(kind, stretch=8, window=2, negatives=1, shared=2)
    ids = ENDLESS * 150
    text, weights, scratch = make_text(ids, WORDS), make_weights(task, WORDS, 16), scratch_for(task)
    visits = visits_of(task, ids)
    each = [run_visit(task, text, visit, weights, scratch, ONE, GRADIENT) for visit in range(visits)]
    assert isinstance(each[0], float)
    total = total_loss(task, text, weights, scratch_for(task), 0, visits)
    assert total == pytest.approx(sum(each), rel=1e-12)
    halved = task._replace(scale=0.5)
    assert total_loss(halved, text, weights, scratch_for(task), 0, visits) == pytest.approx(total / 2, rel=1e-12)


@BOTH
def test_rows_of_scratch_are_enough_for_the_fullest_visit(kind: type) -> None:
    """Every word stays and every window is full: what the plan has room for is what is used at the most."""
    for shared in (0, 4):
        task = make_task(kind, window=2, negatives=3, shared=shared)
        text, weights = make_text(ENDLESS * 40, WORDS), make_weights(task, WORDS, 16)
        most: Counter[str] = Counter()
        scratch = scratch_for(task)
        room, floats = len(scratch.rows) - 16, scratch.floats[plan_for(task).floats :]
        for visit in range(visits_of(task, ENDLESS * 40)):
            run_visit(task, text, visit, weights, scratch, ONE, GRADIENT)
            most["rows"] = max(most["rows"], int(scratch.count[0]))
        assert 0 < most["rows"] <= room
        assert (scratch.grads[room:] == 7).all()
        assert (floats == 7).all()
