"""Word vectors as records: a word, a blank, the float32 numbers; with a newline behind them or without."""

from __future__ import annotations

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.io.streams import read_fully
from hogwild.feeds.sparse.labels import shown
from hogwild.kernels.parse import vectors as kernel
from hogwild.programs.words.files import Gathered, Header, check_end, check_size

_BLOCK = 1 << 24     # bytes read at a time
_LONGEST = 1 << 20   # bytes of a word


def read_binary(source: Source, header: Header) -> tuple[list[str], Floats]:
    """Words and matrix of a binary file."""
    fits = check_size(source, header, 4 * header.dim + 2)
    gathered = Gathered(source.name, header.dim, header.words if fits else 0)
    with source.open() as stream:
        at = len(read_fully(stream, header.bytes))
        kept = b""  # a record that the last block cut off
        while len(gathered.words) < header.words:
            # As much again as is kept: a long record is copied a few times only.
            new = read_fully(stream, max(_BLOCK, len(kept)))
            data = kept + new
            used = _add(data, at, header, gathered)
            at, kept = at + used, data[used:]
            if not new:
                break
        if len(gathered.words) < header.words and kept.strip(b"\n"):
            raise InputError(
                f"{source.name}: ends at byte {at + len(kept):,} inside word number {len(gathered.words) + 1:,} of "
                f"{header.words:,}; copy it again from where it was made."
            )
        check_end(source, header, len(gathered.words))
        if kept.strip(b"\n") or read_fully(stream, 1).strip(b"\n"):
            raise InputError(
                f"{source.name}: goes on at byte {at:,}, after the {header.words:,} words that its first line "
                "announces; it is damaged or of another kind."
            )
    return gathered.words, gathered.matrix()


def _add(data: bytes, at: int, header: Header, gathered: Gathered) -> int:
    """Take the whole records out of the data, which stands at byte `at` of the file; returns the bytes used."""
    done = len(gathered.words)
    most = min(header.words - done, len(data) // (4 * header.dim + 2))
    out = kernel.room_for_binary(most, header.dim, len(data))
    kernel.split_records(np.frombuffer(data, np.uint8), _LONGEST, out.matrix.view(np.uint8), out)
    rows, used = int(out.state[kernel.ROWS]), int(out.state[kernel.PLACE])
    words = out.words[: out.state[kernel.BYTES]].tobytes()
    matrix = out.matrix[:rows]
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        word = shown(words.split(b"\n")[row].decode("utf-8", "backslashreplace"))
        raise InputError(
            f"{gathered.name}: word number {done + row + 1:,}, `{word}`, has numbers that are not finite; the file is "
            "damaged or of another kind."
        )
    gathered.add(words, matrix)
    if out.state[kernel.CODE] != kernel.FINE:
        what = {
            kernel.NO_WORD: "is empty",
            kernel.BROKEN_WORD: f"has no end: no blank follows it within the line and {_LONGEST:,} bytes",
        }[int(out.state[kernel.CODE])]
        raise InputError(
            f"{gathered.name}: word number {done + rows + 1:,} at byte {at + used:,} {what}; the file is damaged or "
            "announces wrong sizes."
        )
    return used
