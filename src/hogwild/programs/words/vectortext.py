"""Word vectors as text: `word number number …` a line, parsed block by block in several threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Bytes, Source
from hogwild.feeds.sparse.labels import counted, fits_float32, number_of, shown
from hogwild.kernels.parse import vectors as kernel
from hogwild.programs.words.files import (
    BLANKS,
    Gathered,
    Header,
    check_end,
    check_size,
    fields_of,
    numbers_at_end,
    remedy,
)


class _Block(NamedTuple):
    """Whole lines of a file, the first of which has this number."""

    line: int
    text: Bytes


def read_text(source: Source, header: Header | None) -> tuple[list[str], Floats]:
    """Words and matrix of a text file."""
    blocks = _blocks(source, skip=1 if header else 0)
    first = next(blocks, None)
    if first is None:
        check_end(source, header, 0)
        raise AssertionError
    dim = _dimension(source, header, first)
    fits = header is not None and check_size(source, header, 2 * dim + 2)
    gathered = Gathered(source.name, dim, header.words if header and fits else 0)

    def parse(block: _Block) -> kernel.Read:
        out = kernel.room_for_text(len(block.text), dim)
        with np.errstate(over="ignore"):  # words of digits wrap around; only the interpreter would say so
            kernel.parse_lines(block.text, out)
        for entry, place in out.hard[: out.state[kernel.HARD]].tolist():
            out.matrix.reshape(-1)[entry] = np.float32(float(_token(block.text, place)))
        return out

    for block, out in in_order(parse, chain([first], blocks)):
        if out.state[kernel.CODE] != kernel.FINE:
            raise _explain(source, block, out, dim)
        rows = int(out.state[kernel.ROWS])
        if header is not None and len(gathered.words) + rows > header.words:
            raise InputError(
                f"{source.name}: goes on after the {header.words:,} words that its first line announces; correct that "
                "line, or leave it out."
            )
        gathered.add(out.words[: out.state[kernel.BYTES]].tobytes(), out.matrix[:rows])
    check_end(source, header, len(gathered.words))
    return gathered.words, gathered.matrix()


def _blocks(source: Source, skip: int) -> Iterator[_Block]:
    """Blocks of lines without the header, the first one without empty lines before the first word."""
    begun = False
    for line, text in source.blocks():
        if line <= skip:
            end = text.tobytes().index(b"\n") + 1
            line, text = line + 1, text[end:]
        if begun or text.tobytes().strip(BLANKS):
            begun = True
            yield _Block(line, text)


def _dimension(source: Source, header: Header | None, block: _Block) -> int:
    """Numbers of each word: as announced, if the first line has as many, or as the first line has."""
    text = block.text.tobytes().lstrip(BLANKS)
    line = block.line + block.text.tobytes()[: len(block.text) - len(text)].count(b"\n")
    fields = fields_of(text.partition(b"\n")[0])
    found = numbers_at_end(fields)
    if header is not None and len(fields) <= header.dim:
        raise InputError(
            f"{source.place(line)}: {counted(found, 'number')} instead of the {header.dim:,} that the first line "
            f"announces; {remedy(text[:4096])}."
        )
    if found == 0:
        word = shown(fields[0].decode("utf-8", "backslashreplace"))
        raise InputError(
            f"{source.place(line)}: `{word}` has no numbers behind it; {remedy(text[:4096])}."
        )
    return header.dim if header else found


def _explain(source: Source, block: _Block, out: kernel.Read, dim: int) -> InputError:
    """What is wrong with the line at which a block could not be read on."""
    code, place = int(out.state[kernel.CODE]), int(out.state[kernel.PLACE])
    start = block.text[:place].tobytes().rfind(b"\n") + 1
    line = block.line + int(out.state[kernel.LINE])
    if code == kernel.NUMBERS:
        fields = fields_of(block.text[start:].tobytes().partition(b"\n")[0])
        word = shown(fields[0].decode("utf-8", "backslashreplace"))
        what = f"`{word}` has {counted(numbers_at_end(fields), 'number')} instead of {dim}"
        return InputError(f"{source.place(line)}: {what}; {remedy(b' '.join(fields))}.")
    token = _token(block.text, place)
    value = number_of(token)
    what = "is not a number" if value is None or fits_float32(value) else "is not a finite float32 number"
    return InputError(f"{source.place(line, place - start + 1)}: `{shown(token)}` {what}; {remedy(token.encode())}.")


def _token(text: Bytes, place: int) -> str:
    """The field at a place."""
    words = fields_of(text[place : place + 4096].tobytes())
    return words[0].decode("utf-8", "backslashreplace") if words else ""
