"""Random numbers in compiled code: one 64-bit state a worker, splitmix64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels.compiler.jit import kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


def seeds(seed: int, streams: int) -> npt.NDArray[np.uint64]:
    """One independent random state for each of `streams` workers, all from one seed."""
    children = np.random.SeedSequence(seed).spawn(streams)
    return np.array([child.generate_state(1, np.uint64)[0] for child in children], dtype=np.uint64)


@kernel
def mix(state: Any) -> Any:
    """The 64-bit hash at the heart of splitmix64."""
    z = (state ^ (state >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@kernel
def draw(random: Any) -> Any:
    """The next 64 random bits of a worker; advances its state random[0]."""
    random[0] += _GAMMA
    return mix(random[0])


@kernel
def below(random: Any, bound: int) -> int:
    """A random integer from 0 to bound - 1 (bound up to 2**32)."""
    return np.int64(((draw(random) >> _S32) * np.uint64(bound)) >> _S32)
