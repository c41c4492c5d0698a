"""Changes of rows on their way between nodes: in fewer bits and back, and those of two nodes as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import inlined, kernel

STEPS8, STEPS4 = 127, 7  # steps of a scale on either side of 0
LARGEST = 2.9e38         # of a cell that can be sent: rounded, or with one step more, it is still a float32
SMALLEST = 1e-30         # below this all cells of a part are 0, so that one over a scale is a float32 too

_SIZE = np.int32(0x7FFFFFFF)  # a float32 without its sign; what is not finite is larger than all that is
_MOST = np.float32(LARGEST).view(np.int32)
_INFINITE = np.uint16(0x7F80)


@kernel
def round_cells(cells: Any, halves: Any) -> bool:
    """The nearest bfloat16 of each of some cells, of two equally near the even one. Whether all can be sent."""
    bits, sizes = cells.view(np.uint32), cells.view(np.int32)
    largest = np.int32(0)
    for k in range(len(halves)):
        largest = max(largest, np.int32(sizes[k] & _SIZE))
        odd = (bits[k] >> np.uint32(16)) & np.uint32(1)
        halves[k] = np.uint16((bits[k] + np.uint32(0x7FFF) + odd) >> np.uint32(16))
    return largest <= _MOST


@kernel
def widen_cells(halves: Any, cells: Any) -> bool:
    """The float32 of each of some bfloat16. Whether all are finite."""
    bits = cells.view(np.uint32)
    largest = np.uint16(0)
    for k in range(len(halves)):
        largest = max(largest, np.uint16(halves[k] & np.uint16(0x7FFF)))
        bits[k] = np.uint32(halves[k]) << np.uint32(16)
    return largest < _INFINITE


@inlined
def _scale_of(sizes: Any, scales: Any, row: int, steps: Any) -> Any:
    """Find the scale of a row. Returns what cells are multiplied with to count steps; less than 0: they cannot be."""
    largest = np.int32(0)
    for k in range(len(sizes)):
        largest = max(largest, np.int32(sizes[k] & _SIZE))
    scales.view(np.int32)[row] = largest
    size = scales[row]
    if not size <= np.float32(LARGEST):
        return np.float32(-1)
    if size < np.float32(SMALLEST):
        scales[row] = np.float32(0)
        return np.float32(0)
    scales[row] = size / np.float32(steps)
    return np.float32(steps) / size


@kernel
def count_steps8(cells: Any, bounds: Any, scales: Any, steps: Any) -> int:
    """Cells between two bounds of each row as whole numbers of -127 … 127, and the scale of each row.

    Returns how many rows were done: the next has a cell that is not finite, or nearly so.
    """
    first, last = bounds
    sizes = cells.view(np.int32)
    for row in range(len(cells)):
        factor = _scale_of(sizes[row, first:last], scales, row, STEPS8)
        if factor < 0:
            return row
        values, out = cells[row, first:last], steps[row]
        for k in range(len(values)):
            # What is cut off is rounded down: all these are above 0.
            out[k] = np.int8(np.int32(values[k] * factor + np.float32(128.5)) - np.int32(128))
    return len(cells)


@kernel
def weigh_steps8(steps: Any, scales: Any, bounds: Any, cells: Any) -> None:
    """Cells between two bounds of each row, of what `count_steps8` makes of them."""
    first, last = bounds
    for row in range(len(cells)):
        scale, values, out = scales[row], steps[row], cells[row, first:last]
        for k in range(len(out)):
            out[k] = np.float32(values[k]) * scale


@kernel
def count_steps4(cells: Any, bounds: Any, scales: Any, pairs: Any) -> int:
    """As `count_steps8`, in whole numbers of -7 … 7, two a byte and 8 more than they are.

    The low halves of the bytes are the first half of a row, the high ones the second: so the loop is over cells that
    are side by side. Of an odd number of cells the last byte has 0 for the one that is not there.
    """
    first, last = bounds
    sizes = cells.view(np.int32)
    middle = first + pairs.shape[1]
    for row in range(len(cells)):
        factor = _scale_of(sizes[row, first:last], scales, row, STEPS4)
        if factor < 0:
            return row
        low, high, out = cells[row, first:middle], cells[row, middle:last], pairs[row]
        for k in range(len(high)):
            small = np.int32(low[k] * factor + np.float32(8.5))
            large = np.int32(high[k] * factor + np.float32(8.5))
            out[k] = np.uint8(small | (large << np.int32(4)))
        if len(high) < len(low):
            out[len(high)] = np.uint8(np.int32(low[len(high)] * factor + np.float32(8.5)))
    return len(cells)


@kernel
def weigh_steps4(pairs: Any, scales: Any, bounds: Any, cells: Any) -> None:
    """Cells between two bounds of each row, of what `count_steps4` makes of them."""
    first, last = bounds
    middle = first + pairs.shape[1]
    for row in range(len(cells)):
        scale, values = scales[row], pairs[row]
        low, high = cells[row, first:middle], cells[row, middle:last]
        for k in range(len(high)):
            low[k] = np.float32(np.int32(values[k] & np.uint8(15)) - np.int32(8)) * scale
            high[k] = np.float32(np.int32(values[k] >> np.uint8(4)) - np.int32(8)) * scale
        if len(high) < len(low):
            low[len(high)] = np.float32(np.int32(values[len(high)] & np.uint8(15)) - np.int32(8)) * scale


@inlined
def _shares(one: Any, other: Any) -> tuple[Any, Any]:
    """What two rows are multiplied with, so that in their sum the direction that they have in common counts once."""
    common, square, other_square = 0.0, 0.0, 0.0
    for k in range(len(one)):
        a, b = np.float64(one[k]), np.float64(other[k])
        common += a * b
        square += a * a
        other_square += b * b
    share = 1 - common / (2 * square) if square > 0 else 1.0
    other_share = 1 - common / (2 * other_square) if other_square > 0 else 1.0
    return np.float32(share), np.float32(other_share)


@inlined
def _copy_row(cells: Any, sign: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = sign * cells[k]


@kernel
def merge_changes(one: Any, other: Any, out: Any, width: int, sign: Any, project: bool) -> int:
    """Rows of two sets of changes, each the pair of its rising ids and its cells, as one; returns how many.

    Rows of both are summed, those of the other with a sign. With `project` the direction that the leading `width` cells
    of both have in common counts once: a (1 - <a, b> / 2 |a|^2) + b (1 - <a, b> / 2 |b|^2).
    """
    ids, cells = one
    other_ids, other_cells = other
    all_ids, all_cells = out
    i, j, count = 0, 0, 0
    while i < len(ids) or j < len(other_ids):
        row = all_cells[count]
        if j == len(other_ids) or (i < len(ids) and ids[i] < other_ids[j]):
            all_ids[count] = ids[i]
            _copy_row(cells[i], np.float32(1), row)
            i += 1
        elif i == len(ids) or other_ids[j] < ids[i]:
            all_ids[count] = other_ids[j]
            _copy_row(other_cells[j], sign, row)
            j += 1
        else:
            all_ids[count] = ids[i]
            a, b = cells[i], other_cells[j]
            share, other_share = np.float32(1), sign
            if project:
                share, other_share = _shares(a[:width], b[:width])
            for k in range(width):
                row[k] = share * a[k] + other_share * b[k]
            for k in range(width, len(row)):
                row[k] = a[k] + sign * b[k]
            i += 1
            j += 1
        count += 1
    return count
