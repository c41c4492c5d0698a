"""What a visit does with a gradient: fused or in two steps, update rules, penalties, sentences in pieces."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiling import OFF, cases
from hogwild.kernels.crf.forward_backward import cut
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.simd import rows8
from hogwild.programs.taggers.crf import CRF
from places import ROOT
from problems.crf import (
    FUSED,
    GRADIENT,
    PAIR,
    SOME,
    gradient_of,
    make_crf,
    make_feed,
    model_of,
    scratch_for,
    train,
    visit,
)
from reference import crf as twin
from reference import linear as reference

SCHEDULE = Schedule(0.2, 0.03, 0.0)
ORDER = [0, 1, 2, 3, 4, 5, 6, 7, 3, 1, 1, 0, 6]
PLAIN = {"rich_edges": False}
RULES: dict[str, dict[str, Any]] = {
    "sgd": {},
    "sgd l2": {"l2": 3.0},
    "sgd l1": {"l1": 0.2},
    "sgd l1 l2": {"l1": 0.2, "l2": 1.0},
    "momentum": {"constants": {"beta": 0.5}},
    "momentum l1 l2": {"constants": {"beta": 0.5}, "l1": 0.1, "l2": 0.5},
    "adagrad": {},
    "adagrad l2": {"l2": 1.0},
    "adagrad l1 l2": {"l1": 0.1, "l2": 0.5},
    "adam": {},
    "adam l1 l2": {"l1": 0.1, "l2": 0.5},
    "ftrl": {},
    "ftrl l1 l2": {"l1": 0.3, "l2": 0.5},
}
COMPILED = ["sgd", "sgd l2"]  # one and the same code


def started(feed: Any, rule: str, **options: Any) -> CRF:
    """A CRF with an update rule; at zero for ftrl, whose memory makes the weights."""
    seed = None if rule.startswith("ftrl") else 7
    return make_crf(feed, seed, 0.3, optimizer=rule.split()[0], **{**SOME, **RULES[rule], **options})


def twin_of(program: CRF, sentences: int) -> twin.CRFTwin:
    """The twin of a CRF that has learnt nothing yet. Penalties are of a sum over sentences: a visit pays its part."""
    within_rule = program.config.optimizer == "ftrl"
    l1, l2 = (0.0, 0.0) if within_rule else (program.config.l1 / sentences, program.l2 / sentences)
    return twin.CRFTwin(model_of(program), program.task.rule, l1, l2)


def equal(program: CRF, exact: twin.Model, tolerance: float) -> None:
    """The weights of a program and of a model of the twin."""
    found = model_of(program)
    np.testing.assert_allclose(found.nodes, exact.nodes, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.edges, exact.edges, rtol=tolerance, atol=tolerance)
    assert [list(pairs) for pairs in found.rich] == [list(pairs) for pairs in exact.rich]
    for one, other in zip(found.rich, exact.rich, strict=True):
        np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=tolerance, atol=tolerance)


# -- training, step by step -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", cases(RULES, COMPILED))
def test_training_equals_the_twin(rule: str) -> None:
    feed = make_feed(21)
    program = started(feed, rule)
    slow = twin_of(program, len(feed))
    loss = train(program, feed, SCHEDULE, FUSED, order=ORDER)
    assert loss == pytest.approx(slow.run(twin.chains_of(feed.samples), SCHEDULE, ORDER), rel=2e-4)
    equal(program, slow.model(), 2e-3)
    before = model_of(program)
    program.settle(program._elapsed)
    equal(program, before, 1e-6)  # paid or still to be paid: the same


@pytest.mark.full
@pytest.mark.parametrize("rule", cases(["adagrad l1 l2", "sgd", "adam"], ["adagrad l1 l2"]))
def test_training_with_values_equals_the_twin(rule: str) -> None:
    feed = make_feed(22, values=True)
    program = started(feed, rule)
    slow = twin_of(program, len(feed))
    loss = train(program, feed, SCHEDULE, FUSED, order=ORDER)
    assert loss == pytest.approx(slow.run(twin.chains_of(feed.samples), SCHEDULE, ORDER), rel=2e-4)
    equal(program, slow.model(), 2e-3)


@pytest.mark.parametrize("rule", cases(RULES, COMPILED))
@pytest.mark.parametrize("edges", cases([PLAIN, SOME], [SOME]))
def test_fused_equals_gradient_and_apply(rule: str, edges: dict[str, Any]) -> None:
    feed = make_feed(23)
    one, other = started(feed, rule, **edges), started(feed, rule, **edges)
    first = train(one, feed, SCHEDULE, FUSED)
    assert first == pytest.approx(train(other, feed, SCHEDULE, PAIR), rel=1e-6)
    for name, mine, theirs in zip(one.weights._fields, one.weights, other.weights, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("rule", cases(["sgd l2", "adam l1 l2"], ["sgd l2"]))
def test_only_what_a_sentence_has_is_written(rule: str) -> None:
    feed = make_feed(24, features=30)
    program = started(feed, rule)
    before = [table.copy() for table in program.weights]
    visit(program, feed, 3, FUSED)
    chain = twin.chains_of(feed.samples)[3]
    touched = {feature for features in chain.features for feature, _ in features}
    rows = {name: table.rows for name, table in program.tables().items()}
    nodes = (program.weights.nodes != before[0]).reshape(rows["nodes"], -1).any(axis=1)
    assert set(np.flatnonzero(nodes).tolist()) == touched
    rich = (program.weights.rich != before[2]).reshape(rows["rich"], -1).any(axis=1)
    later = {f for features in chain.features[1:] for f, _ in features}
    starts = program.pairs.chunk_starts
    allowed = {c for f in later if f < program.pairs.features for c in range(starts[f], starts[f + 1])}
    assert set(np.flatnonzero(rich).tolist()) == allowed


@pytest.mark.parametrize("rule", cases(["sgd l2", "momentum", "adam l1 l2", "ftrl"], ["sgd l2"]))
def test_what_fills_rows_up_stays_zero(rule: str) -> None:
    feed = make_feed(25, 3)
    program = started(feed, rule)
    for form in (FUSED, PAIR):
        train(program, feed, SCHEDULE, form)
    nodes = program.weights.nodes.reshape(len(feed.names), -1)
    assert not nodes[:, 3:8].any()
    assert not program.weights.edges.reshape(3, -1)[:, 3:8].any()
    chunks = program.weights.rich.reshape(int(program.pairs.chunk_starts[-1]), -1)[:, :8].reshape(-1)
    assert not np.delete(chunks, program.pairs.slots).any()
    assert len(chunks) > len(program.pairs.slots)


# -- L2 by one common factor ----------------------------------------------------------------------------------------


def test_sgd_is_sgd_on_the_penalized_objective() -> None:
    """The textbook: w -= rate (gradient + l2 / N w), at every visit, for every weight."""
    feed = make_feed(26)
    chains, schedule = twin.chains_of(feed.samples), Schedule(0.02, 0.0, 0.0)
    program = make_crf(feed, 3, 0.5, l2=2.0, **SOME)
    slow = twin.CRFTwin(model_of(program), program.task.rule)
    for position, sentence in enumerate(ORDER):
        rate = reference.rate(schedule, position)
        touches = twin.touches_of(slow.model(), chains[sentence])
        before = {cell: weight.value for cell, weight in slow.weights.items()}
        slow.apply(touches, rate)
        for cell, weight in slow.weights.items():
            weight.value -= rate * 2.0 / len(feed) * before[cell]
    train(program, feed, schedule, FUSED, order=ORDER)
    equal(program, slow.model(), 0.004)  # the penalty takes 0.065; a visit pays it after its step, not beside it


@pytest.mark.parametrize("form", [FUSED, PAIR])
@pytest.mark.parametrize("l2", [200.0, 4000.0])
def test_a_penalty_that_leaves_next_to_nothing(form: int, l2: float) -> None:
    """Stored weights grow as the factor falls to exp(-60), and no further."""
    feed = make_feed(27)
    program = make_crf(feed, 3, l2=l2, **SOME)
    loss = train(program, feed, Schedule(0.1, 0.0, 0.0), form, order=ORDER)
    assert np.isfinite(loss)
    program.settle(program._elapsed)
    for table in program.weights:
        assert np.isfinite(table).all()
    if l2 == 200.0:
        slow = twin_of(make_crf(feed, 3, l2=l2, **SOME), len(feed))
        slow.run(twin.chains_of(feed.samples), Schedule(0.1, 0.0, 0.0), ORDER)
        equal(program, slow.model(), 1e-3)


# -- structure regularization ---------------------------------------------------------------------------------------


def cuts_of(scratch: Any, tokens: int) -> tuple[int, ...]:
    """Where the pieces of the last visit begin, but for the first."""
    assert scratch.ints[0] == 1
    return tuple(np.flatnonzero(scratch.ints[1:tokens]) + 1)


@pytest.mark.parametrize("edges", [SOME, PLAIN])
@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 100])
def test_the_gradient_is_that_of_the_pieces(edges: dict[str, Any], pieces: int) -> None:
    feed = make_feed(28)
    program = make_crf(feed, 28, structure_regularization=pieces, **edges)
    scratch = scratch_for(program, feed)
    seen = set()
    for sentence, chain in enumerate(twin.chains_of(feed.samples)):
        loss, _ = visit(program, feed, sentence, GRADIENT, scratch)
        cuts = cuts_of(scratch, len(chain.tags))
        seen.add(cuts)
        assert len(cuts) == min(pieces, len(chain.tags)) - 1
        assert loss == pytest.approx(twin.loss_of(model_of(program), chain, cuts), rel=1e-5)
        found, exact = gradient_of(program, scratch), twin.gradient_of(model_of(program), chain, cuts)
        for name, part in vars(exact).items():
            np.testing.assert_allclose(getattr(found, name), part, atol=2e-5, err_msg=name)
    assert len(seen) > (pieces > 1)


@pytest.mark.parametrize("size", [1.0, 60.0])
def test_scores_far_apart_in_pieces(size: float) -> None:
    feed = make_feed(29)
    program = make_crf(feed, 29, size, structure_regularization=3, **SOME)
    arrays = program.arrays()
    arrays["nodes"][0, 1] = -300  # with small weights some sentences go by logarithms, where much is still open
    program.restore(arrays)
    for sentence, chain in enumerate(twin.chains_of(feed.samples)):
        loss, scratch = visit(program, feed, sentence, GRADIENT)
        cuts = cuts_of(scratch, len(chain.tags))
        assert loss == pytest.approx(twin.loss_of(model_of(program), chain, cuts), rel=1e-5, abs=1e-3)
        found, exact = gradient_of(program, scratch), twin.gradient_of(model_of(program), chain, cuts)
        for name, part in vars(exact).items():
            np.testing.assert_allclose(getattr(found, name), part, atol=1e-3, err_msg=name)


def test_all_ways_to_cut_are_equally_likely() -> None:
    feed = make_feed(30, lengths=(6, 1))
    program = make_crf(feed, 30, structure_regularization=3, **SOME)
    scratch = scratch_for(program, feed, seed=5)
    task, draws = program.task, 5000
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(draws):
        cut(task, 6, scratch)
        counts[cuts_of(scratch, 6)] += 1
    assert set(counts) == set(combinations(range(1, 6), 2))
    expected = draws / 10
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 33.7  # 9 degrees, 1 in 10,000


def test_the_same_random_state_cuts_alike_in_both_forms() -> None:
    feed = make_feed(31)
    one = make_crf(feed, 31, structure_regularization=3, **SOME)
    other = make_crf(feed, 31, structure_regularization=3, **SOME)
    mine, theirs = scratch_for(one, feed, 9), scratch_for(other, feed, 9)
    first = train(one, feed, SCHEDULE, FUSED, mine, ORDER)
    assert first == pytest.approx(train(other, feed, SCHEDULE, PAIR, theirs, ORDER), rel=1e-6)
    assert mine.random[0] == theirs.random[0] != 9
    for table, same in zip(one.weights, other.weights, strict=True):
        np.testing.assert_allclose(table, same, rtol=2e-5, atol=2e-6)
    different = make_crf(feed, 31, structure_regularization=3, **SOME)
    assert first != pytest.approx(train(different, feed, SCHEDULE, FUSED, scratch_for(one, feed, 10), ORDER), rel=1e-3)


def test_every_visit_is_cut_anew() -> None:
    feed = make_feed(32, lengths=(7, 1))
    program = make_crf(feed, 32, structure_regularization=3, **SOME)
    scratch = scratch_for(program, feed)
    assert len({cuts_of(visit(program, feed, 0, FUSED, scratch)[1], 7) for _ in range(10)}) > 3


# -- without the compiler -------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_crfs_without_the_compiler(tmp_path: Path) -> None:
    root = ROOT
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    kernels = [f"tests/kernels/crf/test_{name}.py" for name in ("forward_backward", "gradient", "viterbi")]
    programs = [f"tests/programs/taggers/test_{name}.py" for name in ("crf", "crf_modes", "crf_saving")]
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "HOGWILD_CACHE": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *kernels, *programs],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


def test_the_inner_run_is_interpreted() -> None:
    assert (rows8.score_rows is rows8._score_rows) == OFF
