"""Sentences that a worker reads at once: their steps are those that each would make alone, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import cases, compiled_in_full
from hogwild.arrays import Step, make_scratch
from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.loop.task import OneByOne, apply, fused_group, group_size, paced, total_loss
from hogwild.programs.taggers.bilstm import BiLSTM
from problems.tagged import made_feed

SMALL = {"hidden": 17, "word_dim": 4, "feature_dim": 3, "batch_size": 1, "unknown_share": 0.0}
KINDS: list[dict[str, Any]] = [
    {},
    {"optimizer": "sgd", "layers": 2, "output_layer": "crf"},
    {"optimizer": "adagrad", "recurrence": "diagonal", "letters": "convolution", "letter_dim": 3, "letter_filters": 4},
    {"optimizer": "momentum", "l2": 0.001, "output_layer": "crf", "letters": "convolution"},
    {"optimizer": "ftrl"},
]


@inner
def _together(task: Any, samples: Any, visits: Any, weights: Any, scratch: Any, step: Any) -> Any:
    return fused_group(task, samples, visits, weights, scratch, step)


@inner
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    apply(task, weights, scratch, step)


@pytest.mark.parametrize("options", cases(KINDS, []), ids=str)
def test_steps_are_those_of_each_alone(options: dict[str, Any]) -> None:
    feed = made_feed(12)
    program = BiLSTM(**{**SMALL, **options})
    program.startup(feed, seed=2)
    samples, room, task = program.samples(feed), program.room(feed), program.task
    visits = np.array([3, 5, 0, 7], np.int64)
    step = Step(np.float32(0.05), np.float32(0), 0, 0, 1)
    alone = type(program.weights)(*(array.copy() for array in program.weights))
    single = paced(task, "serial")
    assert isinstance(single.pace, OneByOne)
    found = []
    for visit in visits.tolist():
        scratch = make_scratch(room, np.uint64(1))
        loss = total_loss(single, samples, program.weights, scratch, visit, visit + 1)
        found.append((int(samples.offsets[visit + 1] - samples.offsets[visit]), loss, scratch))
    for _, _, scratch in sorted(found, key=lambda each: -each[0]):  # the longest steps first
        _apply(single, alone, scratch, step)
    before = [array.copy() for array in program.weights]
    loss = _together(task, samples, visits.copy(), program.weights, make_scratch(room, np.uint64(1)), step)
    assert loss == pytest.approx(sum(each[1] for each in found), rel=1e-5)
    changed = 0
    for name, old, one, all_ in zip(alone._fields, before, alone, program.weights, strict=True):
        np.testing.assert_allclose(all_, one, rtol=2e-3, atol=2e-5, err_msg=name)
        changed += int((old != all_).sum())
    assert changed > 1000


@compiled_in_full
def test_what_fills_strips_up_stays_zero() -> None:
    feed = made_feed(12)
    program = BiLSTM(**SMALL)  # type: ignore[arg-type]
    program.startup(feed, seed=2)
    zeros = int((program.weights.values == 0).sum())
    step = Step(np.float32(0.05), np.float32(0), 0, 0, 1)
    scratch = make_scratch(program.room(feed), np.uint64(1))
    for first in (0, 4, 8):
        visits = np.arange(first, first + 4)
        _together(program.task, program.samples(feed), visits, program.weights, scratch, step)
    again = BiLSTM(**SMALL)  # type: ignore[arg-type]
    again.startup(feed, seed=2)
    again.restore(program.arrays(state=True))
    np.testing.assert_array_equal(again.weights.values, program.weights.values)
    assert (program.weights.values == 0).sum() < zeros  # biases and the output have moved


def test_windows_are_for_sentences_alone_in_mode_hogwild() -> None:
    feed = made_feed(200)
    program = BiLSTM(**SMALL)  # type: ignore[arg-type]
    program.startup(feed, seed=1)
    assert group_size(program.task) == 12  # 200 sentences: three times four
    assert group_size(paced(program.task, "hogwild")) == 12
    assert group_size(paced(program.task, "round-robin")) == 1
    for options in ({"batch_size": 2}, {"together": 1}, {"clip": 1.0}):
        other = BiLSTM(**{**SMALL, **options})  # type: ignore[arg-type]
        other.startup(feed, seed=1)
        assert group_size(other.task) == 1
