"""Files of word vectors as word2vec writes them, text or binary: which of the two a file is, and what it announces.

Both begin with a line `words dimension`; a text file may do without. Then come the words with their numbers: as text,
one word a line, or as records of the word, a blank and little-endian float32.
"""

from __future__ import annotations

import os
import re
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.io.streams import SUFFIXES
from hogwild.feeds.sparse.labels import shown

Format = Literal["text", "binary"]

_HEADER = re.compile(rb"[ \t]*([+-]?\d{1,40})[ \t]+([+-]?\d{1,40})[ \t]*\r?\n")
_MOST = 1 << 31   # words, and numbers a word, that a file may announce
_LOOKED_AT = 1 << 12
_FIELD = re.compile(rb"[^ \t\r\n]+")
BLANKS = b" \t\r\n"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_ELSE = "the file is damaged or of another kind"
_IF_BINARY = "if the file is binary, let its name end in .bin"
_OTHERS = {
    b"\xba\x16\x4f\x2f": "a model of fastText; use the .vec file that stands beside it",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x93NUMPY": "an array of NumPy without words; use hogwild.Vectors(words, numpy.load(file))",
    b"\x80\x03": "a pickle; load it in gensim and write it with save_word2vec_format",
    b"\x80\x04": "a pickle; load it in gensim and write it with save_word2vec_format",
    b"\x80\x05": "a pickle; load it in gensim and write it with save_word2vec_format",
}


class Header(NamedTuple):
    """The first line of a file: words and numbers a word that it announces, and its own length in bytes."""

    words: int
    dim: int
    bytes: int


class Gathered:
    """Words and rows of a file as they come in, in order.

    With sizes that are known and have been checked against the file, rows go to their final place at once.
    """

    def __init__(self, name: str, dim: int, rows: int = 0) -> None:
        self.name = name
        self.words: list[str] = []
        self._whole = np.empty((rows, dim), np.float32) if rows else None
        self._parts: list[Floats] = []

    def add(self, words: bytes, rows: Floats) -> None:
        """Take over rows, and their words with a newline behind each. Raises InputError for words not in UTF-8."""
        try:
            new = words.decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            number = len(self.words) + words.count(b"\n", 0, error.start) + 1
            odd = words.split(b"\n")[number - len(self.words) - 1]
            raise InputError(
                f"{self.name}: word number {number:,}, {shown(odd.decode('utf-8', 'backslashreplace'))}, is not UTF-8; "
                "write the file again, or convert it with iconv."
            ) from None
        if self._whole is not None:
            self._whole[len(self.words) : len(self.words) + len(new)] = rows
        else:
            self._parts.append(np.array(rows))
        self.words += new

    def matrix(self) -> Floats:
        """All rows."""
        return self._whole if self._whole is not None else np.concatenate(self._parts)


def read_vectors(path: str | os.PathLike[str], file_format: str = "auto") -> tuple[list[str], Floats]:
    """Words and matrix of a file, which may be compressed.

    Sizes that the file announces are checked before memory is taken for them. Raises InputError for whatever is wrong.
    """
    (source,) = open_sources(Path(path))
    head = source.head(1 << 16)
    header = read_header(head, source.name)
    if file_format == "auto":
        file_format = _format_of(source, head, header)
    if file_format == "binary":
        from hogwild.programs.words.vectorbinary import read_binary

        if header is None:
            raise InputError(
                f"{source.name}: begins with no line of two numbers (words, dimension), so it is no binary file of "
                "word vectors."
            )
        return read_binary(source, header)
    from hogwild.programs.words.vectortext import read_text

    return read_text(source, header)


def read_header(head: bytes, name: str) -> Header | None:
    """What the first line announces; None if it is no header."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    for magic, what in _OTHERS.items():
        if head.startswith(magic):
            raise InputError(f"{name}: is {what}.")
    if not head.strip():
        raise InputError(f"{name}: is empty; it holds no word vectors.")
    match = _HEADER.match(head)
    if match is None:
        return None
    words, dim = int(match[1]), int(match[2])
    if not 0 < words < _MOST or not 0 < dim < _MOST:
        raise InputError(
            f"{name}:1: announces {shown(match[0].decode().strip())} as words and dimension, which cannot be; "
            f"{_ELSE}."
        )
    return Header(words, dim, match.end())


def check_size(source: Source, header: Header, row: int) -> bool:
    """Whether the announced sizes fit the file, with at least `row` bytes for a word and its numbers.

    False if it is compressed, so that nobody knows; raises InputError if the file is too short for them.
    """
    if not source.plain():
        return False
    size = source.path.stat().st_size
    needed = header.bytes + header.words * row - 1  # the last newline may be missing
    if size < needed:
        raise InputError(
            f"{source.name}: announces {header.words:,} words of {header.dim:,} numbers, at least {needed:,} bytes, "
            f"but has {size:,}: it was cut short or is of another kind."
        )
    return True


def check_end(source: Source, header: Header | None, found: int) -> None:
    """Raise InputError if fewer words were found than announced, or none at all."""
    if header is not None and found < header.words:
        raise InputError(
            f"{source.name}: ends after {found:,} of the {header.words:,} words that its first line announces; copy "
            "it again from where it was made."
        )
    if not found:
        raise InputError(f"{source.name}: holds no word vectors.")


def format_of_name(name: str | os.PathLike[str]) -> Format | None:
    """The format that the ending of a file's name stands for."""
    path = Path(name)
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    return cast(dict[str, Format], {".bin": "binary", ".vec": "text", ".txt": "text"}).get(path.suffix)


def _format_of(source: Source, head: bytes, header: Header | None) -> Format:
    """The format by the name, or by whether what follows the header is text."""
    named = format_of_name(source.name)
    if header is None or named == "text":
        return named or "text"
    body = head[header.bytes :]
    fields = fields_of(body.partition(b"\n")[0])
    if named == "binary":
        return "text" if numbers_at_end(fields) >= header.dim else "binary"
    return "text" if _is_text(body[:_LOOKED_AT]) else "binary"


def remedy(text: bytes) -> str:
    """What to say of text that cannot be read."""
    return _IF_BINARY if _CONTROL.search(text) else _ELSE


def _is_text(body: bytes) -> bool:
    if _CONTROL.search(body):
        return False
    try:
        body[: max(0, len(body) - 4)].decode("utf-8")  # the last character may be cut
    except UnicodeDecodeError as error:
        return error.start > len(body) - 8
    return True


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def fields_of(line: bytes) -> list[bytes]:
    """The fields of a line as compiled code sees them: `split` would end them at more than blanks."""
    return _FIELD.findall(line)


def numbers_at_end(fields: list[bytes]) -> int:
    """How many of the last fields of a line are numbers; the first field is a word."""
    return sum(1 for _ in takewhile(_is_number, reversed(fields[1:])))
