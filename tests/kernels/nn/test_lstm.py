"""The gradient of a Bi-LSTM tagger: against differences of the loss of a slow twin in float64."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from compiling import cases
from hogwild.arrays import make_scratch
from hogwild.kernels.loop.task import total_loss
from hogwild.kernels.simd.pairs import has_pairs
from hogwild.programs.taggers import bilstm_weights
from hogwild.programs.taggers.bilstm import BiLSTM
from problems.tagged import made_feed
from reference import lstm as twin

SMALL = {"hidden": 5, "word_dim": 4, "feature_dim": 3, "unknown_share": 0.0}
KINDS: list[dict[str, Any]] = [
    {},
    {"layers": 2, "output_layer": "crf", "batch_size": 3},
    {"recurrence": "diagonal", "letters": "convolution", "letter_dim": 3, "letter_filters": 4},
    {"batch_size": 1, "hidden": 17},
]
STEP = 1e-5


def _loss(arrays: dict[str, Any], program: Any, samples: Any, sentences: Any) -> float:
    """Of the mean over the tokens of some sentences, by the twin."""
    slots, total, tokens = len(program.slots), 0.0, 0
    spelled = [samples.letters[a:b].tolist() for a, b in pairwise(samples.word_starts.tolist())]
    for sentence in sentences:
        first, last = int(samples.offsets[sentence]), int(samples.offsets[sentence + 1])
        rows = samples.rows[first * slots : last * slots].reshape(-1, slots).tolist()
        letters = [spelled[samples.words[t]] if spelled else [] for t in range(first, last)]
        found = twin.scores(list(zip(rows, letters, strict=True)), arrays, program.shape.layers, program.shape.diagonal)
        total += twin.loss(found, samples.tags[first:last].tolist(), arrays.get("pairs"))
        tokens += last - first
    return total / tokens


@pytest.mark.parametrize("options", cases(KINDS, KINDS[:1]), ids=str)
def test_the_gradient_is_that_of_the_loss(options: dict[str, Any]) -> None:
    feed = made_feed(12)
    program = BiLSTM(**{**SMALL, **options})
    program.startup(feed, seed=2)
    arrays = {name: array.astype(np.float64) for name, array in program.arrays().items()}
    if "pairs" in arrays:
        arrays["pairs"][:] = np.random.default_rng(1).normal(size=arrays["pairs"].shape)
        plain = {name: array.astype(np.float32) for name, array in arrays.items()}
        bilstm_weights.put_plain(program.shape, plain, program.weights.values)
        arrays["pairs"] = plain["pairs"].astype(np.float64)
    samples, scratch = program.samples(feed), make_scratch(program.room(feed), np.uint64(1))
    visit = len(samples.first) - 1
    sentences = samples.order[samples.first[visit] : samples.first[visit] + samples.count[visit]].tolist()
    loss = total_loss(program.task, samples, program.weights, scratch, visit, visit + 1)
    mean = _loss(arrays, program, samples, sentences)
    tokens = sum(int(samples.offsets[k + 1] - samples.offsets[k]) for k in sentences)
    assert loss == pytest.approx(mean * tokens / len(sentences), rel=1e-5)
    found = bilstm_weights.plain_of(program.shape, scratch.dense)
    rows = {int(row): scratch.grads[line] for line, row in enumerate(scratch.rows[: scratch.count[0]])}
    words = len(arrays["words"])
    random = np.random.default_rng(3)
    for name, array in arrays.items():
        for _ in range(4):
            place = tuple(int(random.integers(size)) for size in array.shape)
            if name in ("words", "features"):
                row = (place[0] if name == "words" else words + place[0])
                got = float(rows[row][place[1]]) if row in rows else 0.0
            else:
                got = float(found[name][place])
            ends = []
            for side in (STEP, -STEP):
                array[place] += side
                ends.append(_loss(arrays, program, samples, sentences))
                array[place] -= side
            assert got == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=2e-3, abs=2e-6), (name, place)


@pytest.mark.skipif(not has_pairs(), reason="this CPU multiplies no pairs")
@pytest.mark.parametrize("options", cases(KINDS, []), ids=str)
def test_a_gradient_by_products_of_bfloat16_is_near(options: dict[str, Any]) -> None:
    feed, found = made_feed(12), []
    for products in ("float32", "bfloat16"):
        program = BiLSTM(**{**SMALL, **options, "products": products})
        program.startup(feed, seed=2)
        samples, scratch = program.samples(feed), make_scratch(program.room(feed), np.uint64(1))
        visit = len(samples.first) - 1
        loss = total_loss(program.task, samples, program.weights, scratch, visit, visit + 1)
        found.append((np.array([loss]), scratch.dense.copy(), scratch.grads.copy()))
    for exact, near in zip(*found, strict=True):
        assert 1e-6 < np.linalg.norm(near - exact) / np.linalg.norm(exact) < 8e-3  # half a step of 8 bits is 2e-3
    np.testing.assert_array_equal(found[0][1] == 0, found[1][1] == 0)


def test_what_fills_panels_up_stays_zero() -> None:
    feed = made_feed(12)
    program = BiLSTM(**{**SMALL, "hidden": 17})
    program.startup(feed, seed=2)
    scratch = make_scratch(program.room(feed), np.uint64(1))
    gradient_sum = np.zeros_like(scratch.dense)
    for visit in range(program.visits(feed)):
        total_loss(program.task, program.samples(feed), program.weights, scratch, visit, visit + 1)
        gradient_sum += np.abs(scratch.dense)
    plain = bilstm_weights.plain_of(program.shape, gradient_sum)
    again = np.zeros_like(gradient_sum)
    bilstm_weights.put_plain(program.shape, plain, again)
    np.testing.assert_array_equal(gradient_sum, again)
