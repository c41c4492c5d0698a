"""The order in which an epoch visits its samples, as blocks that are shuffled and samples shuffled inside them.

Blocks of one sample make a full permutation (data in memory); larger blocks keep reads of a file that does not
fit into memory near one another; one endless block is the order of the file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.compiler.jit import kernel


class Order(NamedTuple):
    """blocks: block numbers in the order of visit, an incomplete one last; inner: order inside a complete block;
    key: scatters the rows of a feed over visits that are batches of rows, see `row_at`; 0: as they stand. samples: of
    this part of the order, which has every `stride`-th of all, from `first` on; whole: of all parts."""

    blocks: npt.NDArray[np.int32]
    inner: npt.NDArray[np.int32]
    shift: int
    samples: int
    whole: int
    key: int = 0
    first: int = 0
    stride: int = 1

    def shard(self, part: int, parts: int) -> Order:
        """One of several parts that have all samples, each once; all go through the order at the same pace."""
        return self._replace(samples=shard_size(self.whole, part, parts), first=part, stride=parts)


def shard_size(samples: int, part: int, parts: int) -> int:
    """Samples of one of several parts."""
    return len(range(part, samples, parts))


def file_order(samples: int) -> Order:
    """Every sample once, as it stands in the feed."""
    return Order(np.zeros(1, np.int32), np.zeros(1, np.int32), 62, samples, samples)


def shuffled(samples: int, seed: int, epoch: int, block: int = 1) -> Order:
    """Every sample once, in an order that depends only on the seed and the epoch. `block` is a power of two."""
    random = np.random.default_rng(np.random.SeedSequence((seed, 7919, epoch)))
    complete = samples // block
    blocks = np.empty(-(-samples // block), np.int32)
    blocks[:complete] = random.permutation(np.arange(complete, dtype=np.int32))
    blocks[complete:] = complete
    inner = random.permutation(np.arange(block, dtype=np.int32))
    return Order(blocks, inner, block.bit_length() - 1, samples, samples, int(random.integers(1, 1 << 62)))


@kernel
def locate(order: Any, position: int) -> int:
    """The sample at a position of this part of the epoch."""
    place = position * order.stride + order.first
    block = np.int64(order.blocks[place >> order.shift])
    inside = place & ((1 << order.shift) - 1)
    first = block << order.shift
    if first + (1 << order.shift) > order.whole:
        return first + inside
    return first + np.int64(order.inner[inside])


def visits_at(order: Order, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The samples at some positions: `locate` of all of them, for who makes visits without compiled code."""
    places = positions * order.stride + order.first
    first = order.blocks[places >> order.shift].astype(np.int64) << order.shift
    inside = places & ((1 << order.shift) - 1)
    whole = first + (1 << order.shift) <= order.whole
    return first + np.where(whole, order.inner[np.where(whole, inside, 0)], inside)


@kernel
def row_at(place: int, rows: int, window: int, key: int) -> int:
    """The row at a place of the rows in file order, when each window of rows is shuffled by a key (0: not at all).

    A bijection of the places of a window onto its rows, found by walking a bijection of the next power of two until it
    falls into the window. Where data does not fit into memory windows are small, so that reads stay near one another.
    """
    if key == 0:
        return place
    first = place - place % window
    size = min(window, rows - first)
    mask = np.uint64(1)
    half = 1
    while mask < np.uint64(size - 1):
        mask = (mask << np.uint64(1)) | np.uint64(1)
        half += 1
    shift = np.uint64(half // 2 + 1)
    odd = (np.uint64(key) | np.uint64(1)) & mask
    x = np.uint64(place - first)
    while True:
        for turn in range(3):
            x = (x * odd + (np.uint64(key) >> np.uint64(16 * turn))) & mask
            x ^= x >> shift
            x = (x * np.uint64(0x9E3779B97F4A7C15)) & mask
        if x < np.uint64(size):
            return first + np.int64(x)
