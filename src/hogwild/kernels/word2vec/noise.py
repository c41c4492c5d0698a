"""Random words: which are left out because they are frequent, and which are drawn as negatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import Ids
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.compiler.rng import mix

_ALL = np.float64(2**32 - 1)
_HALF, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)


def chances_to_stay(counts: Any, sample: float) -> Any:
    """For each word the chance of an occurrence to stay, in 2^32ths: sqrt(t / f) + t / f, where f is its share."""
    share = counts / max(1, counts.sum())
    with np.errstate(divide="ignore"):
        rarity = sample / share if sample else np.full(len(counts), np.inf)
    return (np.minimum(1.0, np.sqrt(rarity) + rarity) * _ALL).astype(np.uint32)


def alias_table(counts: Any, power: float = 0.75) -> tuple[Any, Ids]:
    """Walker's table of the words by count^power: draw a column, keep it with its chance (in 2^32ths), else its alias.

    Examples
    --------
    >>> chance, alias = alias_table(np.array([16, 1]), power=1.0)
    >>> (chance / 2**32).round(3).tolist(), alias.tolist()
    ([1.0, 0.118], [0, 0])
    """
    weight = counts.astype(np.float64) ** power
    weight *= len(weight) / weight.sum()
    chance = np.full(len(weight), 2**32 - 1, np.uint32)
    alias = np.arange(len(weight), dtype=np.int32)
    fill_aliases(weight, chance, alias)
    return chance, alias


@kernel
def fill_aliases(weight: Any, chance: Any, alias: Any) -> None:
    """Give what each column has too little of to one that has too much; weights have mean 1 and are used up."""
    size = len(weight)
    rich = 0
    while rich < size and weight[rich] < 1.0:
        rich += 1
    scan = 0  # columns before it are settled, or rich
    poor = 0
    while rich < size:
        while scan < size and weight[scan] >= 1.0:
            scan += 1
        if scan == size:
            return
        poor = scan
        scan += 1
        while poor >= 0 and rich < size:
            chance[poor] = np.uint32(weight[poor] * _ALL)
            alias[poor] = np.int32(rich)
            weight[rich] -= 1.0 - weight[poor]
            giver = rich
            poor = -1
            if weight[giver] < 1.0:
                while rich < size and (rich <= giver or weight[rich] < 1.0):
                    rich += 1
                if giver < scan:
                    poor = giver  # it has become poor itself, and the scan is past it


@kernel
def draw_word(state: Any, chance: Any, alias: Any) -> int:
    """The word that these 64 random bits name."""
    column = np.int64(((state >> _S32) * np.uint64(len(chance))) >> _S32)
    return column if (state & _HALF) < np.uint64(chance[column]) else np.int64(alias[column])


@kernel
def stays(seed: Any, position: Any, chance: Any) -> Any:
    """Whether the occurrence at a position of the text is visited."""
    return (mix(seed + np.uint64(position)) & _HALF) <= np.uint64(chance)
