"""Files of word vectors as word2vec writes them, text or binary: which of the two a file is, and what it announces.

Both begin with a line `words dimension`; a text file may do without. Then come the words with their numbers: as text,
one word a line, or as records of the word, a blank and little-endian float32.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np

from hogwild.arrays import Floats, fits_float32, number_of
from hogwild.errors import InputError, SaveError
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Bytes, Source, open_sources
from hogwild.feeds.io.streams import SUFFIXES, read_fully
from hogwild.kernels.parse import vectors as kernel
from hogwild.kernels.parse.vectors import room_for_lines, write_lines
from hogwild.messages import counted, shown

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
    b"\xba\x16\x4f\x2f": "a model of fastText; say so (format fasttext), or leave the format out",
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
    if file_format == "text":
        return read_text(source, header)
    if header is None:
        raise InputError(
            f"{source.name}: begins with no line of two numbers (words, dimension), so it is no binary file of word "
            "vectors."
        )
    return read_binary(source, header)


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
        announced = shown(match[0].decode().strip())
        raise InputError(f"{name}:1: announces {announced} as words and dimension, which cannot be; {_ELSE}.")
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
    """As compiled code reads numbers: `1_0` and `１`, which Python would take, are words."""
    return number_of(field.decode("ascii", "backslashreplace")) is not None


def fields_of(line: bytes) -> list[bytes]:
    """The fields of a line as compiled code sees them: `split` would end them at more than blanks."""
    return _FIELD.findall(line)


def numbers_at_end(fields: list[bytes]) -> int:
    """How many of the last fields of a line are numbers; the first field is a word."""
    return sum(1 for _ in takewhile(_is_number, reversed(fields[1:])))


# -- Word vectors as text: `word number number …` a line, parsed block by block in several threads --------------------


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
        raise InputError(f"{source.place(line)}: `{word}` has no numbers behind it; {remedy(text[:4096])}.")
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


# -- Word vectors as records: a word, a blank, the float32 numbers; with a newline behind them or without -------------


_BINARY_BLOCK = 1 << 24     # bytes read at a time
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
            new = read_fully(stream, max(_BINARY_BLOCK, len(kept)))
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


# -- Word vectors to a file, in the text or the binary format of word2vec ---------------------------------------------
# A word must hold no blank and no end of line there. Where one does, an underscore stands for each such character;
# where that makes it equal to another word, more underscores follow, so that no word is lost.


# Blanks of ASCII, whatever some reader takes for the end of a line, and halves of characters, which UTF-8 cannot hold.
_UNFIT = re.compile("[\x00\t-\r\x1c-\x20\x85\u2028\u2029\ud800-\udfff]")
_BLOCK = 1 << 18  # numbers written at a time


def write_vectors(name: str, words: Sequence[str], matrix: Floats, file_format: Format) -> int:
    """Write the file beside and rename it; returns how many words had to be changed."""
    fitting, changed = fitting_words(words)
    rows, dim = matrix.shape
    step = max(1, _BLOCK // dim)
    encode = _lines if file_format == "text" else _records
    blocks = (slice(start, min(start + step, rows)) for start in range(0, rows, step))
    with write_file(name) as stream:
        stream.write(f"{rows} {dim}\n".encode())
        for _, data in in_order(lambda block: encode(fitting[block], _finite(fitting, matrix, block)), blocks):
            stream.write(data)
    return changed


def fitting_words(words: Sequence[str]) -> tuple[list[str], int]:
    """The words as they are written, all different, and how many of them were changed.

    >>> fitting_words(["new york", "new_york", "tea"])
    (['new_york_', 'new_york', 'tea'], 1)
    """
    fitting = list(words)
    unfit = [row for row, word in enumerate(fitting) if not word or _UNFIT.search(word)]
    if unfit:
        taken = set(fitting)
        for row in unfit:
            word = _UNFIT.sub("_", fitting[row]) or "_"
            while word in taken:
                word += "_"
            taken.add(word)
            fitting[row] = word
    return fitting, len(unfit)


def _finite(words: Sequence[str], matrix: Floats, block: slice) -> Floats:
    rows = np.ascontiguousarray(matrix[block])
    good = np.isfinite(rows).all(axis=1)
    if not good.all():
        word = shown(words[block.start + int(np.argmin(good))])
        raise SaveError(f"the vector of `{word}` has numbers that are not finite; it cannot be written.")
    return rows


def _lines(words: Sequence[str], rows: Floats) -> memoryview:
    text = np.frombuffer("".join(word + "\n" for word in words).encode(), np.uint8)
    out = room_for_lines(len(rows), rows.shape[1], len(text))
    return out[: write_lines(rows, text, out)].data


def _records(words: Sequence[str], rows: Floats) -> bytes:
    # As the original tool writes them, with a newline behind each.
    numbers = rows.astype("<f4", copy=False)
    return b"".join(b"%b %b\n" % (word.encode(), row.tobytes()) for word, row in zip(words, numbers, strict=True))
