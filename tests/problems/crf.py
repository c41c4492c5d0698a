"""Small random problems for tests of CRFs, and the loop of the executor that runs them.

Compiling takes seconds for every combination of update rule, edges, values and width of rows. Compiled, tests run few
of them; interpreted (`test_crfs_without_the_compiler`) all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import Chains, Scratch, ValuedChains, make_scratch
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.loop.modes import FreeMode, RoundRobin, make_turns
from hogwild.kernels.loop.order import Order
from hogwild.kernels.loop.schedule import Schedule, elapsed_at
from hogwild.kernels.loop.span import Span, runner
from hogwild.kernels.loop.trace import Untraced
from hogwild.programs.taggers.crf import CRF
from reference import crf as twin

GRADIENT, PAIR, FUSED = range(3)
EVERY = {"rich_edge_min_count": 1}  # every feature has rich edges
SOME = {"rich_edge_min_count": 4}


def make_feed(
    seed: int = 0, tags: int = 3, lengths: Any = (1, 7, 4, 2, 5, 3, 1, 6), features: int = 9, values: bool = False
) -> TaggingFeed:
    """Sentences of these lengths, with tokens without features, features that a token has twice, and the last id.

    The features of a token tell something of its tag, and of the one before it.
    """
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = random.integers(0, tags, offsets[-1]).astype(np.int32)
    codes[: min(tags, len(codes))] = np.arange(min(tags, len(codes)))
    bags = []
    for t, code in enumerate(codes.tolist()):
        bag = (features * random.random(random.integers(0, 4)) ** 2).astype(int).tolist()
        bag += [code * code % features] if random.random() < 0.7 else []
        bag += [(code + codes[t - 1]) % features] if t and random.random() < 0.7 else []
        bags.append(bag)
    bags[0] = []
    bags[-1] = [features - 1, features - 1, 0]
    counts = np.bincount(np.concatenate([np.array(bag, np.int64) for bag in bags]), minlength=features)
    order = np.argsort(-counts, kind="stable")
    rank = np.argsort(order, kind="stable")
    ids = [sorted(rank[bag].tolist()) for bag in bags]
    starts = np.concatenate([[0], np.cumsum([len(bag) for bag in ids])]).astype(np.int64)
    samples: Any = Chains(offsets, starts, np.concatenate([np.array(bag, np.int32) for bag in ids]), codes)
    if values:
        samples = ValuedChains(*samples, random.normal(0, 1, starts[-1]).astype(np.float32))
    names = tuple(f"f{k}" for k in range(features))
    return TaggingFeed(samples, names, counts[order], tuple(f"T{k}" for k in range(tags))).check()


def make_crf(feed: TaggingFeed, seed: int | None = 0, size: float = 1.0, **options: Any) -> CRF:
    """A CRF for the feed, not yet trained, with random weights of about this size; None: of zero."""
    program = CRF(**{"l2": 0.0, **options})
    program.startup(feed, 1)
    if seed is not None:
        fill(program, seed, size)
    return program


def fill(program: CRF, seed: int, size: float = 1.0) -> None:
    """Random weights."""
    random = np.random.default_rng(seed)
    arrays = program.arrays()
    for name in ("nodes", "edges", "rich"):
        arrays[name] = random.normal(0, size, arrays[name].shape).astype(np.float32)
    program.restore(arrays)


def model_of(program: CRF) -> twin.Model:
    """Its weights, for the twin."""
    return twin.model_of(program.arrays())


def scratch_for(program: CRF, feed: TaggingFeed, seed: int = 1) -> Scratch:
    """Scratch for one visit of any sentence."""
    return make_scratch(program.room(feed), np.uint64(seed))


def visit(
    program: CRF, feed: TaggingFeed, sentence: int, form: int, scratch: Scratch | None = None, rate: float = 0.1
) -> tuple[float, Scratch]:
    """One visit in one of the three forms, at time 0; its loss, and the scratch that it leaves."""
    before = type(program.weights)(*(table.copy() for table in program.weights))
    scratch = scratch or scratch_for(program, feed)
    order = Order(np.full(len(feed), sentence, np.int32), np.zeros(1, np.int32), 0, len(feed), len(feed))
    loss = _run(program, feed, order, (0, 1), Schedule(rate, 0.0, 0.0), form, scratch)
    if form == GRADIENT:
        for table, kept in zip(program.weights, before, strict=True):
            table[:] = kept
    return loss, scratch


def train(
    program: CRF, feed: TaggingFeed, schedule: Schedule, form: int = FUSED, scratch: Scratch | None = None,
    order: Any = None,
) -> float:  # fmt: skip
    """Visit all sentences in turn; the sum of losses. The penalties are still to be paid."""
    listed = np.arange(len(feed), dtype=np.int32) if order is None else np.array(order, np.int32)
    blocks = Order(listed, np.zeros(1, np.int32), 0, len(listed), len(listed))
    total = _run(program, feed, blocks, (0, len(listed)), schedule, form, scratch or scratch_for(program, feed))
    program.stand_at(float(elapsed_at(schedule, float(len(listed)))))
    return total


def _run(
    program: CRF, feed: TaggingFeed, order: Order, part: tuple[int, int], schedule: Schedule, form: int,
    scratch: Scratch,
) -> float:  # fmt: skip
    """The very code of the executor: `serial` is fused, rounds of one are a gradient and its application."""
    mode: Any = FreeMode() if form == FUSED else RoundRobin(make_turns(), np.zeros(16, np.int64), 0, 1)
    samples = program.samples(feed)
    span = Span(order, schedule, *part, 0, 0, 0, 1, 0.0)
    run = runner(program.task, samples, program.weights)
    return float(run(program.task, mode, Untraced(), samples, program.weights, scratch, span))


def gradient_of(program: CRF, scratch: Scratch) -> twin.Gradient:
    """The gradient in scratch; what fills rows up must have none."""
    features, tags = len(program.names), len(program.tags)
    edges, rich = features, features + tags
    count = int(scratch.count[0])
    rows, grads = scratch.rows[:count], scratch.grads[:count].astype(np.float64)
    table = np.zeros((rich + int(program.pairs.chunk_starts[-1]), grads.shape[1]))
    np.add.at(table, rows, grads)
    chunks = table[rich:, :8].reshape(-1)
    assert not table[:rich, tags:].any()
    assert not table[rich:, 8:].any()
    assert not np.delete(chunks, program.pairs.slots).any()
    return twin.Gradient(table[:edges, :tags], table[edges:rich, :tags], chunks[program.pairs.slots])
