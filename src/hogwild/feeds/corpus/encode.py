"""One pass over texts by several threads: each has a table of words of its own, and writes the ids that it gives.

Pieces are taken as they come; their numbers bring them back into order when the ids are settled.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Ids
from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.feeds.io.blocks import SIGN, check_not_utf16
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import BLOCK, READ_AHEAD, Bytes, Piece, Source
from hogwild.feeds.io.workspace import writing
from hogwild.feeds.storage.arrayfiles import write_whole
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.tokens import NEWLINE, count_lines, find_odd_byte, replace_odd_bytes
from hogwild.kernels.ids.words import CLOSED, END, after_word, blank_nuls, lower_ascii, settle


class Stretch(NamedTuple):
    """Ids of a piece: in which file they are, from which place on, how many; the source, and lines of the piece."""

    path: Path
    table: int
    place: int
    size: int
    file: int = 0
    lines: int = 0


class Odd(NamedTuple):
    """What a text had that is told: NUL bytes, bytes that were replaced, words left out as too long or empty."""

    nuls: int = 0
    replaced: int = 0
    too_long: int = 0
    empty: int = 0


@dataclass
class TextPass:
    """What a pass found: a table a thread, and stretches by the number of their piece."""

    tables: list[Words]
    stretches: dict[int, Stretch] = field(default_factory=dict)
    nuls: int = 0
    replaced: int = 0
    empty: int = 0

    @property
    def lost(self) -> int:
        """A word that occurs more often is in one of the tables; above 0 the ids do not cover the text."""
        return sum(table.lost for table in self.tables)

    @property
    def seen(self) -> int:
        """Words of the text."""
        return sum(table.seen for table in self.tables)

    @property
    def odd(self) -> Odd:
        """What is told of it."""
        return Odd(self.nuls, self.replaced, sum(table.too_long for table in self.tables), self.empty)

    def in_order(self) -> list[Stretch]:
        """The stretches as the text goes."""
        return [self.stretches[number] for number in sorted(self.stretches)]


class _Numbered(NamedTuple):
    number: int
    file: int
    piece: Piece


class _OddByte(Exception):
    """A byte that is not UTF-8, and where it is; `lines`: the newlines before it in its piece."""

    def __init__(self, file: int, offset: int, byte: int, lines: int) -> None:
        self.file, self.offset, self.byte, self.lines = file, offset, byte, lines


def read_texts(sources: Sequence[Source], config: CorpusConfig, tables: list[Words], directory: Path) -> TextPass:
    """Encode all sources, with a thread for each table; what they write goes into the directory."""
    return _Reading(sources, config, TextPass(tables), directory).run()


class _Reading:
    def __init__(self, sources: Sequence[Source], config: CorpusConfig, result: TextPass, directory: Path) -> None:
        self.sources, self.config, self.result, self.directory = sources, config, result, directory
        self._pieces = self._number_pieces()
        self._lock = threading.Lock()
        self._given = 0
        self._stopped = False
        self._errors: dict[int, Exception] = {}  # by the number of the piece

    def run(self) -> TextPass:
        tables = self.result.tables
        try:
            with ThreadPoolExecutor(len(tables), thread_name_prefix="corpus") as pool:
                try:
                    for future in [pool.submit(self._work, k) for k in range(len(tables))]:
                        future.result()
                finally:
                    self._stopped = True
        finally:
            self._pieces.close()  # ends a command that still writes
        if self._errors:
            number = min(self._errors)
            raise self._explained(number, self._errors[number]) from None
        return self.result

    def _number_pieces(self) -> Generator[_Numbered, None, None]:
        number = 0
        for file, source in enumerate(self.sources):
            for piece in source.pieces(BLOCK):
                yield _Numbered(number, file, piece)
                number += 1

    def _next(self) -> _Numbered | None:
        with self._lock:
            if self._stopped:
                return None
            try:
                item = next(self._pieces, None)
            except Exception as error:
                self._errors[self._given], self._stopped = error, True
                return None
            self._given += item is not None
            return item

    def _work(self, k: int) -> None:
        try:
            self._encode_pieces(k)
        except BaseException:
            self._stopped = True  # the others need not go on
            raise

    def _encode_pieces(self, k: int) -> None:
        words, path = self.result.tables[k], self.directory / f"text-{k}"
        ids, place = np.empty(BLOCK + 2, np.int32), 0
        with writing(path), open(path, "wb", buffering=0) as file:
            while (item := self._next()) is not None:
                try:
                    text = self._clean(item, bool(words.table.state[CLOSED]))
                except (_OddByte, InputError) as error:
                    self._errors[item.number], self._stopped = error, True
                    return
                ids = ids if len(text) < len(ids) else np.empty(len(text) + 2, np.int32)
                start = after_word(text.ctypes.data, text.ctypes.data + len(text)) - text.ctypes.data
                count = words.encode_text(text, start if item.piece.inside else 0, ids)
                if words.lost and len(self.result.tables) > 1:
                    self._stopped = True  # one table will have to do it
                    return
                if not words.lost:
                    write_whole(file, ids[:count])
                lines = count_lines(text) - int(text[-1] != NEWLINE)
                self.result.stretches[item.number] = Stretch(path, k, place, count, item.file, lines)
                place += count

    def _clean(self, item: _Numbered, closed: bool) -> Bytes:
        """The text without NULs, in UTF-8, and in lower case if asked."""
        text, offset = item.piece.text, item.piece.offset
        at, replaced = find_odd_byte(text, 0), 0
        if at < len(text):
            nuls = int(blank_nuls(text))
            at = find_odd_byte(text, at)
            if at < len(text):
                if offset == 0:
                    check_not_utf16(text, self.sources[item.file].name)
                if self.config.invalid_utf8 == "stop":
                    lines = int(np.count_nonzero(text[:at] == NEWLINE))
                    raise _OddByte(item.file, offset + int(at), int(text[at]), lines)
                replaced = int(replace_odd_bytes(text, np.uint8(SIGN)))
            with self._lock:
                self.result.nuls += nuls
                self.result.replaced += replaced
        if self.config.lowercase:
            if closed and bool((text >= 0x80).any()):
                # Distinct words are not kept, so that these cannot be lower-cased at the end.
                lowered = text.tobytes().decode().lower().encode()
                return np.frombuffer(bytearray(lowered + bytes(READ_AHEAD)), np.uint8, len(lowered))
            lower_ascii(text)
        return text

    def _explained(self, number: int, error: Exception) -> Exception:
        if not isinstance(error, _OddByte):
            return error
        stretches = self.result.stretches.items()
        before = sum(stretch.lines for k, stretch in stretches if stretch.file == error.file and k < number)
        place = self.sources[error.file].place(1 + before + error.lines)
        return InputError(f"{place}: byte 0x{error.byte:02x}, byte {error.offset + 1:,} of the text, is not UTF-8;"
                          " convert the file (`iconv -f latin1 -t utf-8` if it is Latin-1), or pass --invalid-utf8"
                          " replace.")


def settled(stretches: Sequence[Stretch], maps: Sequence[Ids], threads: int = 0) -> Iterator[Ids]:
    """The ids of all stretches in order, replaced by maps[table]; no two ends of sentences in a row."""

    def replace(stretch: Stretch) -> tuple[Ids, bool]:
        ids = np.fromfile(stretch.path, np.int32, stretch.size, offset=4 * stretch.place)
        written, led = settle(ids, maps[stretch.table], ids)
        return ids[:written], led

    opened = False
    for _, (ids, led) in in_order(replace, stretches, threads):
        if led and opened:
            yield np.array([END], np.int32)
            opened = False
        if len(ids):
            yield ids
            opened = int(ids[-1]) != END
