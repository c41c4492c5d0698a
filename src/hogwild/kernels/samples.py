"""One way to walk the features of a sample, whatever bundle holds it: compiled to plain indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import BinaryRows, DenseRows, Rows
from hogwild.kernels.jit import choice


@choice
def first_entry(samples: Any, visit: int) -> Any:
    """Index of the first feature of a sample."""


@choice
def last_entry(samples: Any, visit: int) -> Any:
    """Index after the last feature of a sample."""


@choice
def id_at(samples: Any, visit: int, entry: int) -> Any:
    """Feature id of an entry."""


@choice
def value_at(samples: Any, visit: int, entry: int) -> Any:
    """Feature value of an entry."""


@first_entry.of(Rows, BinaryRows)
def _sparse_first(samples: Any, visit: int) -> Any:
    return samples.offsets[visit]


@last_entry.of(Rows, BinaryRows)
def _sparse_last(samples: Any, visit: int) -> Any:
    return samples.offsets[visit + 1]


@id_at.of(Rows, BinaryRows)
def _sparse_id(samples: Any, visit: int, entry: int) -> Any:
    return np.int64(samples.ids[entry])


@value_at.of(Rows)
def _sparse_value(samples: Any, visit: int, entry: int) -> Any:
    return samples.values[entry]


@value_at.of(BinaryRows)
def _one(samples: Any, visit: int, entry: int) -> Any:
    return np.float32(1)


@first_entry.of(DenseRows)
def _dense_first(samples: Any, visit: int) -> Any:
    return np.int64(0)


@last_entry.of(DenseRows)
def _dense_last(samples: Any, visit: int) -> Any:
    return np.int64(samples.matrix.shape[1])


@id_at.of(DenseRows)
def _dense_id(samples: Any, visit: int, entry: int) -> Any:
    return entry


@value_at.of(DenseRows)
def _dense_value(samples: Any, visit: int, entry: int) -> Any:
    return samples.matrix[visit, entry]
