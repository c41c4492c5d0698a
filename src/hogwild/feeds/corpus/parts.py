"""A text that several nodes read, each a part of it: cut, counted apart, and encoded with one vocabulary.

A part ends where a word does, and with a sentence where that can be had: then the ids of all parts one after another
are those that `open_corpus` gives.
"""

from __future__ import annotations

import io
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.config import CorpusConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.corpus.encode import Odd, Stretch, TextPass, read_texts, settled
from hogwild.feeds.corpus.open import (
    checked,
    count_texts,
    known,
    merge,
    most_words,
    pass_notes,
    places_in,
    rank,
    schema_of,
    through,
    usual_threads,
)
from hogwild.feeds.io.source import BLANKS, Bytes, Paths, Source, is_stream, open_sources
from hogwild.feeds.io.streams import Stream, open_file, read_fully
from hogwild.feeds.storage.arrayfiles import title_of
from hogwild.feeds.storage.words import Words
from hogwild.messages import counted

NEAR = 1 << 20          # bytes in which the end of a sentence is sought; in small texts a quarter of a part
_UNEVEN = 1.25          # largest part over the mean, above which it is told
_CHUNK = 1 << 20
_BLANK = re.compile(b"[" + b"".join(BLANKS) + b"]")


# -- cutting ----------------------------------------------------------------------------------------------------------

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


def cut_texts(paths: Paths, parts: int, config: CorpusConfig | None = None) -> Cut:
    """Divide texts into parts of nearly equal size, each word in one of them.

    Parameters
    ----------
    paths
        As for `open_corpus`, but for streams. Plain files are cut; compressed ones, and what goes through a command,
        are read by one node each.
    parts
        How many; none is empty.
    config
        How the text is read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     Path(file.name).write_text("to be\\nor not to be\\n" * 10)
    ...     cut = cut_texts(file.name, 2)
    190
    >>> [(part.first, part.last) for (part,) in cut.parts]
    [(0, 95), (95, 190)]
    """
    config = config or CorpusConfig()
    _check(paths, config)
    sources = open_sources(paths, config)
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
    for taken, run in zip(given, _runs(plain, shares), strict=True):
        taken += run
    title = title_of([file.name for file in files], "the text")
    if not all(given):
        raise _too_few(title, files, len(whole), parts)
    sizes = [load + share for load, share in zip(loads, shares, strict=True)]
    notes = []
    if whole and max(sizes) > _UNEVEN * sum(sizes) / parts:
        notes.append(f"{counted(len(whole), 'file')} that cannot be cut (compressed, or read by --pipe): nodes have"
                     f" between {min(sizes) / 1e6:.1f} and {max(sizes) / 1e6:.1f} MB to read; unpack for equal parts.")
    return Cut(tuple(tuple(part for _, part in sorted(taken)) for taken in given), title, tuple(notes))


def _check(paths: Paths, config: CorpusConfig) -> None:
    if config.phrases:
        raise ConfigError("--phrases does not work with --cluster yet; join the phrases of the text first, or train on"
                          " one node.")
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


def _runs(plain: Mapping[int, TextPart], shares: Sequence[float]) -> Iterator[list[tuple[int, TextPart]]]:
    """The bytes of plain files in so many runs, which end where words or sentences do."""
    files = [*plain.values()]
    begins = [*accumulate((file.size for file in files), initial=0)]
    # One distance for all: cuts then stay in order wherever they move to.
    near = min(NEAR, int(min((share for share in shares if share), default=0)) // 4)
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
        text = read_fully(raw, near + 1)
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
    """A part of a plain file. Its last piece ends with a newline, as that of a file does."""

    def __init__(self, part: TextPart, config: CorpusConfig) -> None:
        super().__init__(part.name, Path(part.path), config)
        self.first, self._last = part.first, part.last

    def open(self) -> BinaryIO:
        """The bytes of the part."""
        raw = open_file(self.path, self.name)
        raw.seek(self.first)
        return cast(BinaryIO, Stream(cast(BinaryIO, _Section(raw, self._last - self.first)), self.name))

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


def source_of(part: TextPart, config: CorpusConfig) -> Source:
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


# -- counting, and the vocabulary of all ------------------------------------------------------------------------------

class PartCounts(NamedTuple):
    """The different words of a part, for the way over the network: their bytes one after another, and the length and
    the count of each. total: words of the part; odd: what is told of it."""

    letters: Bytes
    lengths: Ids
    counts: Offsets
    total: int
    odd: Odd


class SettledPart:
    """The final ids of a part, which are read from disk again each time that they are iterated over, in blocks.

    counts: how often the part has each word of the vocabulary.
    """

    def __init__(self, stretches: Sequence[Stretch], maps: Sequence[Ids], threads: int, counts: Offsets) -> None:
        self._stretches, self._maps, self._threads, self.counts = stretches, maps, threads, counts

    def __iter__(self) -> Iterator[Ids]:
        return settled(self._stretches, self._maps, self._threads)

    @cached_property
    def size(self) -> int:
        """Ids of all blocks, from a pass over them: how many sentences have a word that stays cannot be known else."""
        return sum(map(len, self))


class CountedPart:
    """A part whose words are counted, and which lies on disk in ids of its own.

    counts: what the common vocabulary is made of.
    """

    def __init__(self, found: TextPass, config: CorpusConfig, threads: int) -> None:
        self._words, self._maps = merge(found.tables, config.lowercase)
        self._stretches, self._threads = found.in_order(), threads
        kept = np.flatnonzero(self._words.counts)
        letters, lengths = self._words.joined(kept)
        self.counts = PartCounts(letters, lengths.astype(np.int32), self._words.counts[kept], found.seen, found.odd)

    def settle(self, words: Sequence[str]) -> SettledPart:
        """The part in the ids of a vocabulary; other words are left out."""
        final = places_in(known(words), self._words)
        counts, known_here = np.zeros(len(words), np.int64), final >= 0
        np.add.at(counts, final[known_here], self._words.counts[known_here])
        return SettledPart(self._stretches, [through(ids, final) for ids in self._maps], self._threads, counts)


def count_part(parts: Sequence[TextPart], config: CorpusConfig, directory: Path, threads: int = 0) -> CountedPart:
    """Read a part, once. What `settle` needs of it goes into the directory, which must stay until that is done.

    Parameters
    ----------
    parts
        One of the parts that `cut_texts` gives.
    config
        How the text is read.
    directory
        An empty one, which the caller removes.
    threads
        As for `open_corpus`; no result depends on it.
    """
    sources = [source_of(part, config) for part in parts]
    threads = threads or usual_threads()

    def read(tables: list[Words], scratch: Path) -> TextPass:
        return read_texts(sources, config, tables, scratch)

    found = count_texts(read, config, threads, directory)
    for source in sources:
        source.check_unchanged()
    if found.lost:
        most = most_words(config)
        raise InputError(f"{parts[0].name}: the text of one node has more than {most:,} different words, which is all"
                         f" that are held; raise --max-vocabulary to {2 * most} or more, or use more nodes.")
    return CountedPart(found, config, threads)


class WholeText(NamedTuple):
    """What is known of all parts together; each field as that of a Corpus."""

    words: tuple[str, ...]
    counts: Offsets
    total: int
    schema: dict[str, Any]
    notes: tuple[str, ...]


def merge_counts(
    counts: Sequence[PartCounts], config: CorpusConfig, title: str, keep: Sequence[str] = ()
) -> WholeText:
    """The vocabulary of all parts, ranked and cut as that of a text that was read as a whole.

    Parameters
    ----------
    counts
        Those of all parts, in any order.
    config
        How the text was read.
    title
        What messages call the text.
    keep
        As for `open_corpus`.

    Examples
    --------
    >>> def part(words, counts):
    ...     lengths = np.array([len(word) for word in words], np.int32)
    ...     letters = np.frombuffer("".join(words).encode(), np.uint8)
    ...     return PartCounts(letters, lengths, np.array(counts), sum(counts), Odd())
    >>> text = merge_counts([part(["to", "be"], [1, 3]), part(["or", "to"], [1, 2])], CorpusConfig(min_count=2), "it")
    >>> text.words, text.counts.tolist(), text.total
    (('be', 'to'), [3, 3], 7)
    """
    whole = Words()
    for part in counts:
        # Copies: arrays from the network are read-only, for which code would be compiled once more.
        whole.take_joined(part.letters, np.array(part.lengths, np.int32), np.array(part.counts, np.int64))
    total = sum(part.total for part in counts)
    if not total:
        raise InputError(f"{title}: no words; is the file empty?")
    chosen = rank(whole, config, title, (checked(keep) or []) if len(keep) else [])
    odd = Odd(*(sum(numbers) for numbers in zip(*(part.odd for part in counts), strict=True)))
    return WholeText(chosen.words, chosen.counts, total, schema_of(config), (*pass_notes(odd, config), *chosen.notes))
