"""Small texts for the word-vector kernels, a compiled visit, and what it picked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hogwild.arrays import Room, Scratch, Step, aligned_floats, make_scratch
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.simd.rows16 import LANES, layout
from hogwild.kernels.word2vec.cbow import Cbow, plan_cbow
from hogwild.kernels.word2vec.skipgram import SkipGram, plan_skip_gram
from hogwild.kernels.word2vec.windows import Embeddings, Text, alias_table, chances_to_stay
from reference.word2vec import Pick

GRADIENT, PAIR, FUSED = 0, 1, 2


def make_task(
    kind: type, dim: int = 16, stretch: int = 8, window: int = 3, negatives: int = 2, shared: int = 6
) -> SkipGram | Cbow:
    """A task with its layout; the number of shared negatives is even."""
    lanes, blocks = layout(dim)
    return kind(lanes, blocks, LANES * len(lanes) * blocks, stretch, window, negatives, shared, 1.0)


def make_text(ids: Sequence[int], words: int, sample: float = 0.0, never: Sequence[int] = ()) -> Text:
    """A text whose words stay by `sample`, but those in `never`."""
    counts = np.bincount([word for word in ids if word >= 0], minlength=words) + 1
    stay = chances_to_stay(counts, sample)
    stay[list(never)] = 0
    return Text(np.array(ids, np.int32), stay, *alias_table(counts))


def make_weights(task: Any, words: int, dim: int, seed: int = 0) -> Embeddings:
    """Random rows, filled up with zeros."""
    random = np.random.default_rng(seed)
    tables = [aligned_floats(words * task.cells).reshape(words, task.cells) for _ in range(2)]
    for table in tables:
        table[:, :dim] = random.normal(0, 2 / np.sqrt(dim), (words, dim))
    return Embeddings(*tables)


def plan_for(task: Any) -> Any:
    """Where a visit keeps its things."""
    return plan_cbow(task) if isinstance(task, Cbow) else plan_skip_gram(task)


def scratch_for(task: Any, seed: int = 1) -> Scratch:
    """Scratch for one visit; every number in it is set, so that none is taken for zero."""
    plan = plan_for(task)
    each = task.negatives * (1 if isinstance(task, Cbow) else 2 * task.window)
    rows = task.stretch + plan.most + (task.shared or task.stretch * each)
    scratch = make_scratch(Room(rows, task.cells, floats=plan.floats, ints=plan.ints), np.uint64(seed))
    scratch.grads[:] = 7
    scratch.floats[:] = 7
    return scratch


@kernel
def run_visit(task: Any, text: Any, visit: int, weights: Any, scratch: Any, rate: Any, how: int) -> Any:
    """One visit: its gradient alone, with `apply` after it, or both in one."""
    step = Step(rate, rate, 0, 0, 1)
    if how == FUSED:
        return fused(task, text, visit, weights, scratch, step)
    loss = gradient(task, text, visit, weights, scratch)
    if how == PAIR:
        apply(task, weights, scratch, step)
    return loss


def picks_of(task: Any, words: int, scratch: Scratch) -> list[Pick]:
    """What the visit before looked at, after its gradient."""
    plan, ints = plan_for(task), scratch.ints
    skip = isinstance(task, SkipGram)
    rows = scratch.rows[: scratch.count[0]]
    centres = int(np.argmax((rows < words) != skip)) if len(rows) else 0  # the rows of the words themselves come first
    found = []
    for i in range(centres):
        at = task.window + i
        low, high = int(ints[plan.low + at]), int(ints[plan.high + at])
        near = [int(ints[q]) // task.cells for q in range(low, high + 1) if q != at]
        first = plan.picks + (0 if skip else 2) if task.shared else plan.picks + (0 if skip else 1) + i * plan.negatives
        pairs = len(near) if skip else 1
        count, weight = task.shared, pairs * task.negatives / max(1, task.shared)
        if not task.shared:
            count, weight = pairs * task.negatives, 1.0
        negatives = [int(place) // task.cells for place in ints[first : first + count]]
        found.append(Pick(int(ints[at]) // task.cells, near, negatives, weight))
    return found


def by_row(task: Any, words: int, scratch: Scratch) -> tuple[Any, Any]:
    """The gradients in scratch, added up by the rows of both tables."""
    total = np.zeros((2 * words, task.cells))
    for k in range(scratch.count[0]):
        total[scratch.rows[k]] += scratch.grads[k]
    return total[:words], total[words:]
