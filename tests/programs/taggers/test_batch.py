"""The objective over all sentences: its value and gradient against the twin, whatever the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import OFF, cases
from hogwild.programs.taggers.batch import Objective
from hogwild.programs.taggers.crf_weights import Plain
from hogwild.programs.taggers.owlqn import Limits, minimise
from problems.crf import SOME, make_crf, make_feed, model_of
from reference import crf as twin

PLAIN = {"rich_edges": False}
ALL = {"every_state": True, "every_pair": True}
KINDS = [(PLAIN, False), (SOME, False), (PLAIN, True), (SOME, True)]


def plain_of(program: Any) -> Plain:
    return Plain(*(program.arrays()[name] for name in Plain._fields))


@pytest.mark.parametrize("kind", cases(KINDS, KINDS[:1]), ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_value_and_gradient_are_those_of_the_twin(kind: Any, threads: int) -> None:
    options, values = kind
    feed = make_feed(5, values=values)
    program = make_crf(feed, 5, **options)
    objective = Objective(feed, program.pairs, 0.5, **ALL, threads=threads)
    x = objective.take(plain_of(program))
    chains, model = twin.chains_of(feed.samples), model_of(program)
    parts = [twin.gradient_of(model, chain) for chain in chains]
    sums = [sum(getattr(part, name) for part in parts).reshape(-1) for name in Plain._fields]
    loss = sum(twin.loss_of(model, chain) for chain in chains)
    for _ in range(2):  # nothing is left of the first time
        value, gradient = objective(x)
        assert objective.loss == pytest.approx(loss, rel=1e-5)
        assert value == pytest.approx(loss + 0.25 * float(np.square(x).sum()), rel=1e-5)
        np.testing.assert_allclose(gradient, np.concatenate(sums) + 0.5 * x, atol=2e-5)
    for one, other in zip(objective.plain(x), plain_of(program), strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_weights_of_what_the_text_has() -> None:
    feed = make_feed(6, tags=4)
    program = make_crf(feed, 6, **PLAIN)
    objective = Objective(feed, program.pairs, 0.5, every_state=False, every_pair=False)
    samples, states, pairs = feed.samples, set(), set()
    for first, last in zip(samples.offsets[:-1].tolist(), samples.offsets[1:].tolist(), strict=True):
        for t in range(first, last):
            states |= {(int(k), int(samples.tags[t])) for k in samples.ids[samples.starts[t] : samples.starts[t + 1]]}
            pairs |= {(int(samples.tags[t - 1]), int(samples.tags[t]))} if t > first else set()
    x = objective.take(plain_of(program))
    assert len(x) == len(states) + len(pairs) < 9 * 4 + 16
    found = objective.plain(x)
    assert {(int(a), int(b)) for a, b in zip(*np.nonzero(found.nodes), strict=True)} == states
    assert {(int(a), int(b)) for a, b in zip(*np.nonzero(found.edges), strict=True)} == pairs
    value, gradient = objective(x)
    for k in range(0, len(x), 3):  # as far as float32 tells
        step = np.zeros_like(x)
        step[k] = 0.01
        slope = (objective(x + step)[0] - objective(x - step)[0]) / 0.02
        assert slope == pytest.approx(gradient[k], abs=0.01)
    assert value > 0


@pytest.mark.skipif(OFF, reason="many evaluations")
def test_l1_leaves_zeros() -> None:
    feed = make_feed(7, tags=4, lengths=(7, 6, 9, 5, 8) * 6, features=30)
    program = make_crf(feed, None, **PLAIN)
    objective = Objective(feed, program.pairs, 0.1, **ALL)
    start = objective.take(plain_of(program))
    found = [minimise(objective, start, l1, Limits(300, delta=1e-7)) for l1 in (0.0, 0.5, 2.0)]
    counts = [np.count_nonzero(x) for x in found]
    assert len(start) == counts[0] > counts[1] > counts[2] > 0
    for x, l1 in zip(found[1:], (0.5, 2.0), strict=True):  # the gradient at the optimum
        _, gradient = objective(x)
        assert np.abs(gradient[x == 0]).max() <= l1 + 0.02
        np.testing.assert_allclose(gradient[x != 0], -l1 * np.sign(x[x != 0]), atol=0.05)
