"""Steps through lines of text that ends with a newline, by addresses of bytes."""

from __future__ import annotations

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse.numbers import byte_at

NEWLINE, SPACE, TAB, RETURN = 10, 32, 9, 13


@kernel
def skip_blanks(at: int) -> int:
    """The next byte that is no space, tab or carriage return."""
    if byte_at(at) == SPACE:  # nearly always one of them
        at += 1
    while byte_at(at) == SPACE or byte_at(at) == TAB or byte_at(at) == RETURN:
        at += 1
    return at


@kernel
def next_line(at: int) -> int:
    """The byte after the next newline."""
    while byte_at(at) != NEWLINE:
        at += 1
    return at + 1
