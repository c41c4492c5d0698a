"""The order in which an epoch visits its samples, as blocks that are shuffled and samples shuffled inside them.

Blocks of one sample make a full permutation (data in memory); larger blocks keep reads of a file that does not
fit into memory near one another; one endless block is the order of the file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.jit import kernel


class Order(NamedTuple):
    """blocks: block numbers in the order of visit, an incomplete one last; inner: order inside a complete block."""

    blocks: npt.NDArray[np.int32]
    inner: npt.NDArray[np.int32]
    shift: int
    samples: int


def file_order(samples: int) -> Order:
    """Every sample once, as it stands in the feed."""
    return Order(np.zeros(1, np.int32), np.zeros(1, np.int32), 62, samples)


def shuffled(samples: int, seed: int, epoch: int, block: int = 1) -> Order:
    """Every sample once, in an order that depends only on the seed and the epoch. `block` is a power of two."""
    random = np.random.default_rng(np.random.SeedSequence((seed, 7919, epoch)))
    complete = samples // block
    blocks = np.empty(-(-samples // block), np.int32)
    blocks[:complete] = random.permutation(np.arange(complete, dtype=np.int32))
    blocks[complete:] = complete
    return Order(blocks, random.permutation(np.arange(block, dtype=np.int32)), block.bit_length() - 1, samples)


@kernel
def locate(order: Any, position: int) -> int:
    """The sample at a position of the epoch."""
    block = np.int64(order.blocks[position >> order.shift])
    inside = position & ((1 << order.shift) - 1)
    first = block << order.shift
    if first + (1 << order.shift) > order.samples:
        return first + inside
    return first + np.int64(order.inner[inside])
