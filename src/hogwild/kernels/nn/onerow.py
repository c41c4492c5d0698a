"""One row of features and numbers, checked and put where compiled code reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel

NO_FEATURE, NO_SLOT, UNSORTED, NOT_FINITE = -1, -2, -3, -4


@kernel
def take_row(ids: Any, values: Any, slots: Any, numbers: Any, features: int, most: int, row: Any) -> int:
    """Copy the features that are known, and the numbers. Returns how many features, or what is wrong (negative)."""
    count = 0
    before = 0
    for k in range(len(ids)):
        slot = slots[k]
        if ids[k] < 0:
            return NO_FEATURE
        if slot < 0 or slot >= most:
            return NO_SLOT
        if slot < before:
            return UNSORTED
        if not np.isfinite(values[k]):
            return NOT_FINITE
        before = slot
        if ids[k] < features:
            row.ids[count], row.slots[count], row.values[count] = ids[k], slot, values[k]
            count += 1
    for k in range(len(numbers)):
        if not np.isfinite(numbers[k]):
            return NOT_FINITE
        row.dense[0, k] = numbers[k]
    row.offsets[1] = count
    return count
