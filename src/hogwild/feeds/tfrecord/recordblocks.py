"""TFRecord files in blocks of whole records, with the lengths of records checked before memory is taken for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hogwild.feeds.io.source import BLOCK, Bytes, Source, fill
from hogwild.kernels.tfrecord.examples import FOOTER, HEADER
from hogwild.kernels.tfrecord.records import BROKEN, READ_AHEAD, TOO_LONG, cut_records

_AGAIN = "copy or download the file again"


class RecordBlock(NamedTuple):
    """Whole records of a file, the first of which has the number `record` and stands at byte `offset`.

    room: the memory of `data`, with READ_AHEAD bytes after it. problem: why the file cannot be read any further.
    """

    data: Bytes
    room: Bytes
    record: int
    offset: int
    problem: str = ""

    def records(self) -> Iterator[bytes]:
        """The data of each record."""
        at = 0
        while at < len(self.data):
            size = int.from_bytes(self.data[at : at + 8].tobytes(), "little")
            yield self.data[at + HEADER : at + HEADER + size].tobytes()
            at += HEADER + size + FOOTER


def new_room(size: int) -> Bytes:
    """Memory for blocks of that many bytes."""
    return np.empty(size + READ_AHEAD, np.uint8)


def record_blocks(source: Source, take: Callable[[], Bytes] | None = None, size: int = BLOCK) -> Iterator[RecordBlock]:
    """The records of a file in blocks of about `size` bytes.

    take: gives memory made by `new_room(size)`, new or used before. A record that is longer than a block has one of its
    own; one longer than `source.max_line` is a problem before memory is taken for it. Such a block is the last.
    """
    take = take or (lambda: new_room(size))
    record, offset = 1, 0
    kept: Bytes = np.zeros(0, np.uint8)  # the beginning of a record that the last block cut off
    wanted = size
    with source.open() as stream:
        while True:
            room = take() if wanted <= size else new_room(wanted)
            room[: len(kept)] = kept
            # One byte more than there is at the end of the file says that it has ended.
            filled = len(kept) + fill(stream, room[len(kept) : len(room) - READ_AHEAD].data)
            ended = filled < len(room) - READ_AHEAD
            end, records, state, length = map(int, cut_records(room, filled, source.max_line))
            problem = ""
            if state in (BROKEN, TOO_LONG) or (ended and end < filled):
                problem = _problem(source, room[end:filled], record + records, offset + end, state)
            if records or problem:
                kept = room[end:filled].copy()  # before the block is given away
                yield RecordBlock(room[:end], room, record, offset, problem)
                record, offset = record + records, offset + end
            else:
                kept = room[:filled].copy()
            if ended or problem:
                return
            # Doubling: memory grows with what the file really has.
            wanted = max(size, min(2 * len(kept), HEADER + length + FOOTER)) if len(kept) >= HEADER else size


def place_of(source: Source, record: int, offset: int) -> str:
    """Where a record stands, for messages."""
    return f"{source.name}: record {record} (byte {offset})"


def _problem(source: Source, rest: Bytes, record: int, offset: int, state: int) -> str:
    where = place_of(source, record, offset)
    length = int.from_bytes(rest[:8].tobytes(), "little")
    if state == BROKEN:
        if record == 1:
            return f"{where}: its length has a wrong checksum; is this a TFRecord file? If so, {_AGAIN}."
        return f"{where}: its length has a wrong checksum, so that the records after it cannot be found; {_AGAIN}."
    if state == TOO_LONG:
        most = f"more than the {source.max_line} that a record may have"
        return f"{where}: it is {length} bytes long, {most}; raise --max-line if this is right."
    needed = f"of {HEADER + length + FOOTER} bytes" if len(rest) >= HEADER else f"of at least {HEADER + FOOTER} bytes"
    return f"{where}: the file ends within the record, after {len(rest)} {needed}; {_AGAIN}."
