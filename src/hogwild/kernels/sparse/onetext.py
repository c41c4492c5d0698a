"""One text to scores, in one call: hashed, counted and looked up."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.tokens import encode_texts

_SLOTS = 8  # for each feature, at the most, that `encode_texts` looks at


@kernel
def mean_of_text(data: Any, bounds: Any, recipe: Any, bags: Any, table: Any, counted: bool, mean: Any) -> None:
    """The mean of the rows of the n-grams of one text; `counted`: each as often as it occurs.

    bounds: room for where the text begins and ends; bags: room for the features of a text that long.
    """
    bounds[0, 0], bounds[0, 1] = 0, len(data)
    # Slots of an earlier text must not be taken for this one's.
    bags.slots[: min(len(bags.slots), _SLOTS * (1 + recipe.ngrams * (len(data) // 2 + 2)))] = np.int32(0)
    count = encode_texts(data, bounds, recipe, bags)
    mean[:] = np.float32(0)
    total = np.float32(0)
    for e in range(count):
        value = bags.values[e] if counted else np.float32(1)
        total += value
        for c in range(len(mean)):
            mean[c] += value * table[bags.ids[e], c]
    if total > np.float32(0):
        for c in range(len(mean)):
            mean[c] /= total
