"""Records of TFRecord files: length (8 bytes), masked CRC of it (4), data, masked CRC of the data (4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.bytes import load_word
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.crc32c import masked_crc
from hogwild.kernels.tfrecord.examples import (
    ABSENT,
    BAD,
    CHECKSUM,
    DETAIL,
    ENTRIES,
    FEATURE,
    FINE,
    FOOTER,
    HEADER,
    LARGEST,
    MALFORMED,
    OTHER,
    ROWS,
    UNLABELLED,
    find_features,
    take_row,
)

READ_AHEAD = 8                    # bytes after a block that may be read
MORE, BROKEN, TOO_LONG = range(3)  # how the framing goes on after the records of a block

_LOWER = np.uint64(0xFFFFFFFF)


@kernel
def cut_records(text: Any, filled: int, longest: int) -> Any:
    """(end, records, how it goes on, length of the next one) of the whole records at the beginning of a block.

    Lengths are checked against their CRC. longest: bytes that a record may have.
    """
    start: Any = np.int64(text.ctypes.data)
    end = start + filled
    at = start
    records = 0
    while at + HEADER <= end:
        length = load_word(at)
        if masked_crc(at, 8) != load_word(at + 8) & _LOWER:
            return at - start, records, BROKEN, 0
        if length > np.uint64(longest):
            return at - start, records, TOO_LONG, 0
        after = at + HEADER + np.int64(length) + FOOTER
        if after > end:
            return at - start, records, MORE, np.int64(length)
        at = after
        records += 1
    return at - start, records, MORE, 0


@kernel
def parse_records(text: Any, wanted: Any, terms: Any, out: Any, beside: Any) -> None:
    """Parse the whole records of a block. Bad ones are left out; with `terms.stop` the first one ends it."""
    start: Any = np.int64(text.ctypes.data)
    end = start + len(text)
    at = start
    record = 0
    counts = out.counts
    counts[LARGEST] = -1
    while at < end:
        data = at + HEADER
        after = data + np.int64(load_word(at))
        entries, largest, unlabelled, absent = counts[ENTRIES], counts[LARGEST], counts[UNLABELLED], counts[ABSENT]
        if masked_crc(data, after - data) != load_word(after) & _LOWER:
            code = CHECKSUM
        elif not find_features(text, data, after, wanted, beside.found):
            code = MALFORMED
        else:
            code = take_row(text, wanted, terms, out, beside)
        if code == FINE:
            row = counts[ROWS]
            out.lengths[row] = counts[ENTRIES] - entries
            out.lines[row] = record
            counts[ROWS] = row + 1
        else:
            if counts[BAD] < len(out.errors):
                note(out.errors[counts[BAD]], counts, code, record, at - start)
            counts[BAD] += 1
            counts[ENTRIES], counts[LARGEST], counts[UNLABELLED], counts[ABSENT] = entries, largest, unlabelled, absent
            if terms.stop:
                break
        at = after + FOOTER
        record += 1


@kernel
def note(error: Any, counts: Any, code: int, record: int, place: int) -> None:
    """Write down what is wrong with a record."""
    error[0], error[1], error[2] = code, record, place
    error[3], error[4], error[5] = counts[FEATURE], counts[DETAIL], counts[OTHER]
