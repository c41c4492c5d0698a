"""One text to scores, in one call, for serving: hashed, counted and looked up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.tokens import encode_text
from hogwild.kernels.sparse.text_classifier import part_of


class TextTable(NamedTuple):
    """What makes scores of a text: a row of `rows` (features, outputs) an n-gram, and `bias`, one number an output.

    counted: n-grams weigh as often as they occur, or as the recipe has it; else all the same. mean: the sum of the rows
    is divided by that of the weights; unit: see TextTask in kernels/sparse/text_classifier.py.
    """

    rows: Floats
    bias: Floats
    counted: bool
    mean: bool
    unit: np.float32 = np.float32(0)


@kernel
def score_text(data: Any, recipe: Any, bags: Any, table: Any, scores: Any) -> None:
    """The scores of one text. bags: room for the features of a text that long."""
    count = encode_text(data, recipe, bags)
    ids, values, rows = bags.ids, bags.values, table.rows
    total, alone = np.float32(0), np.float32(0)
    for k in range(len(scores)):
        scores[k] = np.float32(0)
    for e in range(count):
        value = values[e] if table.counted else np.float32(1)
        total += value
        if len(scores) == 1:  # in a register: a sixth of the time of a text
            alone += value * rows[ids[e], 0]
        else:
            row = rows[ids[e]]
            for k in range(len(scores)):
                scores[k] += value * row[k]
    part = part_of(table.unit, total) if table.mean and total > np.float32(0) else np.float32(1)
    for k in range(len(scores)):
        scores[k] = (scores[k] + alone) * part + table.bias[k]
