"""Files that several processes read, each a part: cut at line ends or words, and opened by the bytes of a part."""

from __future__ import annotations

import io
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from hogwild.errors import InputError
from hogwild.feeds.io.source import BLANKS, Paths, Settings, Source, is_stream
from hogwild.feeds.io.streams import Stream, open_file, read_fully
from hogwild.messages import counted

NEAR = 1 << 20          # bytes in which the end of a line is sought, where any word would do; in small texts fewer
_LINES = 1 << 62        # the same where only a line end will do
_UNEVEN = 1.25          # largest part over the mean, above which it is told
_CHUNK = 1 << 20
_BLANK = re.compile(b"[" + b"".join(BLANKS) + b"]")


class TextPart(NamedTuple):
    """Bytes first:last of a file, which has `size` of them; of a compressed one always all.

    name: what messages call the file; path: where every node finds it.
    """

    name: str
    path: str
    first: int
    last: int
    size: int


class Cut(NamedTuple):
    """parts: what each node reads. title: how the text is called; notes: what the user should know of the cut."""

    parts: tuple[tuple[TextPart, ...], ...]
    title: str
    notes: tuple[str, ...]


def cut_files(sources: Sequence[Source], title: str, parts: int, lines: bool = False) -> Cut:
    """Divide files into parts of nearly equal size. Plain files are cut; others are read whole, each by one.

    Parameters
    ----------
    title
        What messages call all files.
    parts
        How many; none is empty.
    lines
        Whether it is cut at line ends alone; else at white space where no line end is near.
    """
    files = [TextPart(s.name, os.path.abspath(s.path), 0, size, size) for s in sources for size in [_size(s)]]
    whole = [number for number, source in enumerate(sources) if not source.plain()]
    given: list[list[tuple[int, TextPart]]] = [[] for _ in range(parts)]  # with the number of the file
    loads = [0] * parts
    for number in sorted(whole, key=lambda number: -files[number].size):
        k = min(range(parts), key=lambda k: (loads[k], len(given[k])))
        given[k].append((number, files[number]))
        loads[k] += files[number].size
    plain = {number: file for number, file in enumerate(files) if number not in whole and file.size}
    shares = _shares(loads, sum(file.size for file in plain.values()))
    for taken, run in zip(given, _runs(plain, shares, lines), strict=True):
        taken += run
    if not all(given):
        raise _too_few(title, files, len(whole), parts)
    sizes = [load + share for load, share in zip(loads, shares, strict=True)]
    notes = []
    if whole and max(sizes) > _UNEVEN * sum(sizes) / parts:
        notes.append(f"{counted(len(whole), 'file')} that cannot be cut (compressed, or read by --pipe): nodes have"
                     f" between {min(sizes) / 1e6:.1f} and {max(sizes) / 1e6:.1f} MB to read; unpack for equal parts.")
    return Cut(tuple(tuple(part for _, part in sorted(taken)) for taken in given), title, tuple(notes))


def check_rereadable(paths: Paths) -> None:
    """Raise InputError for what other processes cannot read."""
    for path in paths if isinstance(paths, (list, tuple)) else [paths]:
        if isinstance(path, (str, os.PathLike)) and is_stream(os.fspath(path)):
            raise InputError(f"`{os.fspath(path)}` can be read only once, and only here; write the text to a file that"
                             " all nodes see.")


def _size(source: Source) -> int:
    with open_file(source.path, source.name) as file:
        return os.fstat(file.fileno()).st_size


def _too_few(title: str, files: Sequence[TextPart], whole: int, parts: int) -> InputError:
    if 0 < whole < parts:
        return InputError(f"{title}: {counted(whole, 'file')} that cannot be cut (compressed, or read by --pipe),"
                          f" fewer than the {parts} nodes; unpack the text, or use fewer nodes.")
    size = sum(file.size for file in files)
    return InputError(f"{title}: {counted(size, 'byte')} of text cannot be divided among {parts} nodes; use fewer"
                      " nodes.")


def _shares(loads: Sequence[int], more: int) -> list[float]:
    """How much of `more` each gets, so that those with the least have equally much then."""
    level, below = 0.0, sorted(loads)
    for count, following in enumerate([*below[1:], float("inf")], 1):
        level = (more + sum(below[:count])) / count
        if level <= following:
            break
    return [max(0.0, level - load) for load in loads]


def _runs(
    plain: Mapping[int, TextPart], shares: Sequence[float], lines: bool
) -> Iterator[list[tuple[int, TextPart]]]:
    """The bytes of plain files in so many runs, which end where words or sentences do."""
    files = [*plain.values()]
    begins = [*accumulate((file.size for file in files), initial=0)]
    # One distance for all: cuts then stay in order wherever they move to.
    near = _LINES if lines else min(NEAR, int(min((share for share in shares if share), default=0)) // 4)
    wanted = [int(end) for end in accumulate(shares)][:-1]
    ends = [_moved(files, begins, end, near) for end in wanted]
    for start, end in pairwise([0, *ends, begins[-1]]):
        yield [
            (number, file._replace(first=max(0, start - begin), last=min(file.size, end - begin)))
            for number, file, begin in zip(plain, files, begins[:-1], strict=True)
            if max(begin, start) < min(begin + file.size, end)
        ]


def _moved(files: Sequence[TextPart], begins: Sequence[int], place: int, near: int) -> int:
    for file, begin in zip(files, begins[:-1], strict=True):
        if begin < place < begin + file.size:
            return begin + _end_of_sentence(file, place - begin, near)
    return place


def _end_of_sentence(file: TextPart, place: int, near: int) -> int:
    """The first place from this one on after a newline; after a word, if there is none in `near` bytes."""
    with open_file(Path(file.path), file.name) as raw:
        raw.seek(place - 1)
        text = read_fully(raw, _CHUNK if near == _LINES else near + 1)
        while near == _LINES and text and b"\n" not in text:
            place += len(text)
            text = read_fully(raw, _CHUNK)
        newline = text.find(b"\n")
        if newline >= 0:
            return place + newline
        if place + near >= file.size:
            return file.size
        while text:
            blank = _BLANK.search(text)
            if blank:
                return place + blank.start()
            place += len(text)
            text = read_fully(raw, _CHUNK)
    return file.size


# -- reading ----------------------------------------------------------------------------------------------------------

class _Section(io.RawIOBase):
    """The next bytes of a file, so many."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        count: int = self._file.readinto(memoryview(cast(bytearray, buffer))[: self._left])  # type: ignore[attr-defined]
        self._left -= count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _PartSource(Source):
    """A part of a plain file. Its last piece ends with a newline, as that of a file does; a part that has the header of
    the file begins with it."""

    def __init__(self, part: TextPart, config: Settings) -> None:
        super().__init__(part.name, Path(part.path), config)
        self.first, self._last = part.first, part.last

    def open(self) -> BinaryIO:
        """The bytes of the part."""
        raw = open_file(self.path, self.name)
        raw.seek(self.first)
        return cast(BinaryIO, Stream(cast(BinaryIO, _Section(raw, self._last - self.first)), self.name))

    def head(self, count: int = 1 << 16) -> bytes:
        """The first bytes of the whole file: a part is read as that is."""
        with open_file(self.path, self.name) as raw:
            return read_fully(raw, count)

    def plain(self) -> bool:
        """The file has more than that."""
        return False

    def place(self, line: int, column: int = 0) -> str:
        """The line in the whole file."""
        with open_file(self.path, self.name) as raw:
            left, lines = self.first, 0
            while left and (text := raw.read(min(left, _CHUNK))):
                left, lines = left - len(text), lines + text.count(b"\n")
        return super().place(lines + line, column)


def source_of(part: TextPart, config: Settings) -> Source:
    """What a node reads a part from. Raises InputError where it has another file, or none."""
    if not os.path.exists(part.path):
        raise InputError(f"{part.name}: there is no {part.path} on {socket.gethostname()}; every node reads its part of"
                         " the text itself: put the file where all see it under this name.")
    source = _PartSource(part, config) if part.last - part.first < part.size else Source(
        part.name, Path(part.path), config)
    size = _size(source)
    if size != part.size:
        raise InputError(f"{part.path} has {size:,} bytes on {socket.gethostname()}, and had {part.size:,} where the"
                         " text was divided; give all nodes the same file, and start again when it is complete.")
    return source
