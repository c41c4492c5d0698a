"""Factors that bring columns of numbers to a like size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hogwild.errors import InputError

TOO_LARGE = "a number is too large for float32 once it is scaled as in training"


def scales_of(squares: npt.NDArray[np.float64], present: npt.NDArray[np.int64]) -> list[float]:
    """1 / root mean square of each column without its zeros; 1 where there is none, or none that float32 can hold.

    squares, present: of each column the sum of squares, and how many numbers are other than 0.

    >>> scales_of(np.array([8.0, 0.0, 1e-90]), np.array([2, 0, 1]))
    [0.5, 1.0, 1.0]
    """
    sizes = np.sqrt(squares / np.maximum(present, 1))
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        factors = (1 / sizes).astype(np.float32)
    return [float(factor) if np.isfinite(factor) and factor > 0 else 1.0 for factor in factors]


def scale(numbers: npt.NDArray[np.float32], scales: npt.NDArray[np.float32], place_of: Callable[[int], str]) -> None:
    """Multiply columns by their factors, in place. Raises InputError at the first row that overflows."""
    with np.errstate(over="ignore"):
        numbers *= scales
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite.all(1)))
        raise InputError(f"{place_of(row)}: {TOO_LARGE}; correct it, or train on numbers of this size too.")
