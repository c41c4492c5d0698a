"""The logistic function in a form that the compiler turns into vector code: no branch, no call, no table."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.jit import kernel
from hogwild.kernels.lanes import float_of_bits

_F = np.float32
_TO_BASE_2, _FROM_BASE_2 = _F(1.4426950408889634), _F(0.6931471805599453)


@kernel
def exp_below(x: Any) -> Any:
    """exp(x) of a number that is not positive, to 4e-7 of it; below -87 the least normal number."""
    y = max(x * _TO_BASE_2, _F(-126))
    whole = np.int32(y - _F(0.5))  # cut towards zero: the nearest whole number
    r = (y - _F(whole)) * _FROM_BASE_2
    tail = _F(1 / 2) + r * (_F(1 / 6) + r * (_F(1 / 24) + r * (_F(1 / 120) + r * _F(1 / 720))))
    return (_F(1) + r + r * r * tail) * float_of_bits((whole + np.int32(127)) << np.int32(23))


@kernel
def log_above_one(e: Any) -> Any:
    """log(1 + e) of a number from 0 to 1, to 2e-7."""
    s = e / (e + _F(2))
    q = s * s
    return _F(2) * s * (_F(1) + q * (_F(1 / 3) + q * (_F(1 / 5) + q * (_F(1 / 7) + q * (_F(1 / 9) + q * _F(1 / 11))))))


@kernel
def chance_against(score: Any) -> Any:
    """1 / (1 + exp(score)): how far a score is from certainty."""
    rest = exp_below(-abs(score))
    above = _F(1) / (_F(1) + rest)
    return rest * above if score > _F(0) else above


@kernel
def surprise(score: Any) -> Any:
    """log(1 + exp(-score))."""
    return log_above_one(exp_below(-abs(score))) + max(-score, _F(0))
