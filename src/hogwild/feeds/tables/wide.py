"""Delimited text with very many columns: all fields of one kind are read as a single long column.

A column of Arrow takes some 10 kB and 100 microseconds a block, whatever it holds; here it takes what its fields do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hogwild.feeds.io.blocks import Block
from hogwild.feeds.tables.columns import Plan
from hogwild.feeds.tables.delimited import WORDS, Shape, read_fields, read_records, unclear_quotes
from hogwild.feeds.tables.frames import Frame, WideCells

Places = npt.NDArray[np.int64]


class WideShape(NamedTuple):
    """The shape of the label and the text; and where the columns of numbers and of categories stand in a record."""

    shape: Shape
    numeric: Places
    categorical: Places


def wide_shape(shape: Shape, plan: Plan) -> WideShape:
    """For the columns of a plan, in its order."""
    numbers, words = (
        np.fromiter((shape.places[name] for name in names), np.int64, len(names))
        for names in (plan.numeric, plan.categorical)
    )
    others = {name: shape.places[name] for name in (plan.label, plan.text) if name in shape.places}
    return WideShape(shape._replace(places=others), numbers, words)


def read_wide(block: Block, wide: WideShape, replace: bool) -> Frame:
    """Read a block: label and text are columns of the frame, numbers and categories are its `cells`."""
    shape = wide.shape
    found = read_records(block, shape, replace)

    def read(places: Any, kind: Any) -> Any:
        wanted = np.zeros(shape.fields, np.bool_)
        wanted[places] = True
        try:
            return read_fields(found.text, found.starts, shape.dialect, wanted, kind)
        except pa.ArrowInvalid:  # some field is no number: read_numbers will find it
            return read_fields(found.text, found.starts, shape.dialect, wanted, pa.string())

    arrays = {name: read(place, shape.kind_of(name)) for name, place in shape.places.items()}
    numbers, words = read(wide.numeric, pa.float64()), read(wide.categorical, WORDS)
    fields = len(found.lines) * len(wide.numeric), len(found.lines) * len(wide.categorical)
    if (len(numbers), len(words)) != fields:
        raise unclear_quotes(block)
    cells = WideCells(numbers, words, (_ranks(wide.numeric), _ranks(wide.categorical)))
    return found.frame(block, arrays)._replace(cells=cells)


def _ranks(places: Places) -> npt.NDArray[np.intp]:
    """Of each place, the how manieth it is in the order of the file."""
    return np.argsort(np.argsort(places))
