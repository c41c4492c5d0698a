"""Blocks of text at the door: first lines to judge by, headers left out, UTF-8 or a message that says where not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hogwild.errors import InputError
from hogwild.feeds.io.source import Bytes, Source
from hogwild.kernels.ids.tokens import NEWLINE, find_odd_byte, replace_odd_bytes
from hogwild.messages import counted

SIGN = ord("?")   # stands for a byte that is not UTF-8
HEAD = 1 << 20    # bytes from which columns are judged
LONG = 16 << 20   # the same where lines are long
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

_SHORT = 1 << 16  # bytes of a text that Python looks at itself

class Block(NamedTuple):
    """A block of text and where it stands: the place of its file among the sources, and its first line."""

    source: Source
    file: int
    line: int
    text: Bytes


def head_of(source: Source, replace: bool, lines: int = 0) -> str:
    """The first whole lines of a file; a part of the first one if it is very long.

    lines: so many if they can be had in LONG bytes, and two of them whatever they take.
    What is no text is said here, before columns are sought in it.
    """
    size = HEAD
    head = source.head(size)
    while len(head) == size and _ends(head) < min(lines, 2 if size >= LONG else lines) and size <= source.max_line:
        size *= 4
        head = source.head(size)
    head = head.removeprefix(b"\xef\xbb\xbf")
    whole = len(head) < size - 3
    if not whole and b"\n" in head:
        head, whole = head[: head.rindex(b"\n") + 1], True
    # A part of a line may end inside a character.
    text, _ = check_utf8(Block(source, 0, 1, np.frombuffer(bytearray(head), np.uint8)), replace or not whole)
    return text.tobytes().decode()


def _ends(head: bytes) -> int:
    """Line ends, which may be CR."""
    return max(head.count(b"\n"), head.count(b"\r"))


def blocks_of(source: Source, file: int, skip: int) -> Iterator[Block]:
    """The blocks of a file without its first `skip` lines, which are not in a part that begins later."""
    for line, text in source.blocks():
        if line <= skip and not source.first:
            ends = np.flatnonzero(text == NEWLINE)[: skip - line + 1]
            line += len(ends)
            text = text[ends[-1] + 1 :]
        if len(text):
            yield Block(source, file, line, text)


def check_utf8(block: Block, replace: bool) -> tuple[Bytes, int]:
    """The text with each byte that is not UTF-8 replaced, and how many were. Raises InputError unless `replace`."""
    text = block.text
    if len(text) <= _SHORT and _is_plain(text):
        return text, 0
    at = find_odd_byte(text, 0)
    if at == len(text):
        return text, 0
    if block.line == 1:
        check_not_utf16(text, block.source.name)
    nul = np.flatnonzero(text == 0)
    if len(nul):  # whatever else is wrong: this is no text at all
        at = nul[0]
    elif replace:
        text = text.copy()
        return text, int(replace_odd_bytes(text, np.uint8(SIGN)))
    raise InputError(_explain(block, int(at), text[at]))


def _is_plain(text: Bytes) -> bool:
    """Whether all is UTF-8, and no NUL in it: asked of Python, which needs no compiled code."""
    data = text.tobytes()
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def replaced_notes(count: int) -> Iterator[str]:
    """What to tell of bytes that were replaced."""
    if count:
        yield f"{counted(count, 'byte')} not UTF-8, read as `{chr(SIGN)}`."


def check_not_utf16(text: Bytes, name: str) -> None:
    """Raise InputError if a file that begins so is in UTF-16."""
    if text[:2].tobytes() in _UTF16:
        raise InputError(f"{name}: this looks like UTF-16; convert it with `iconv -f utf-16 -t utf-8`.")


def _explain(block: Block, at: int, byte: np.uint8) -> str:
    line = block.line + int(np.count_nonzero(block.text[:at] == NEWLINE))
    column = at - (block.text[:at].tobytes().rfind(b"\n") + 1) + 1
    place = block.source.place(line, column)
    if byte == 0:
        return f"{place}: a NUL byte: this is no text; is it the right file, and the right --format?"
    return (f"{place}: byte 0x{byte:02x} is not UTF-8; convert the file (`iconv -f latin1 -t utf-8` if it is Latin-1),"
            " or pass --invalid-utf8 replace.")
