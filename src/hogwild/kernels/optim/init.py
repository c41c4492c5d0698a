"""Random numbers that rows of weights begin with: of a feature, whatever place it has in the order of a feed."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.compiler.rng import mix


@kernel
def draw_rows(table: Any, cells: int, width: int, order: Any, features: Any, seed: Any, scale: Any) -> None:
    """Numbers between -scale and scale for the first `width` cells of the rows of features[0] and later features.

    Row r is that of feature order[r], or of feature r where `order` is empty; features: the first feature and the one
    after the last.
    """
    gamma = np.uint64(0x9E3779B97F4A7C15)
    unit = np.float32(scale) * np.float32(2.0**-23)
    for row in range(len(table) // cells):
        feature = np.int64(order[row]) if len(order) else row
        if features[0] <= feature < features[1]:
            state = mix(np.uint64(seed) + np.uint64(feature) * gamma)
            for c in range(width):
                drawn = mix(state + np.uint64(c) * gamma) >> np.uint64(40)
                table[row * cells + c] = unit * (np.float32(np.int64(drawn)) - np.float32(8388607.5))
