"""A growing table of words in bounded memory, filled from bytes by compiled code."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import PAD, Ids, Offsets, bytes_of
from hogwild.errors import InputError
from hogwild.feeds.io.source import READ_AHEAD, Bytes
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids import words as kernel
from hogwild.machine import memory

_UNLIMITED = 1 << 30
_FIRST = 1 << 12    # room for words at the beginning; a power of two
_SMALL = 1 << 20    # up to here tables grow by four, then by two


class Words:
    """Different words, numbered as they come, with their counts.

    When there are more than `most` (a power of two), the rarer half is dropped, and `lost` grows by the largest count
    that was dropped: a word has no more occurrences before than `lost` that are not in its count.

    Parameters
    ----------
    longest
        Bytes of the longest word; longer ones are left out and counted.
    most
        How many words are held at a time.

    Examples
    --------
    >>> words = Words()
    >>> words.encode_strings([b"to", b"be", b"to"]).tolist(), len(words), words.word(1)
    ([0, 1, 0], 2, b'be')
    """

    def __init__(self, longest: int = _UNLIMITED, most: int = _UNLIMITED) -> None:
        state = np.zeros(PAD, np.int64)
        state[kernel.LONGEST] = longest
        self.table: kernel.WordTable = kernel.make_table(min(_FIRST, most), 8 * _FIRST, state)
        self.most = most
        self.lost = 0

    def __len__(self) -> int:
        return int(self.table.state[kernel.WORDS])

    @property
    def counts(self) -> Offsets:
        """How often each word was met."""
        return self.table.counts[: len(self)]

    @property
    def starts(self) -> Offsets:
        """Where each word begins in the blob, and where the last one ends."""
        return self.table.starts[: len(self) + 1]

    @property
    def seen(self) -> int:
        """Words that were met, with those that are not in the table."""
        return int(self.table.state[kernel.SEEN])

    @property
    def too_long(self) -> int:
        """Words that were left out for their length."""
        return int(self.table.state[kernel.LONG])

    def word(self, ident: int) -> bytes:
        """The bytes of a word."""
        start, end = self.table.starts[ident : ident + 2].tolist()
        return self.table.blob[start:end].tobytes()

    def joined(self, idents: npt.NDArray[np.intp]) -> tuple[Bytes, Offsets]:
        """Bytes of words one after another, and the length of each."""
        starts = self.table.starts
        lengths = starts[idents + 1] - starts[idents]
        letters = np.empty(int(lengths.sum()), np.uint8)
        kernel.copy_words(self.table.blob, starts, idents, letters)
        return letters, lengths

    def texts(self, idents: npt.NDArray[np.intp]) -> tuple[str, ...]:
        """Words as strings."""
        letters, lengths = self.joined(idents)
        raw = letters.tobytes()
        places = pairwise([0, *np.cumsum(lengths).tolist()])
        if raw.isascii():
            text = raw.decode()
            return tuple(text[start:end] for start, end in places)
        return tuple(raw[start:end].decode() for start, end in places)

    def closed(self, longest: int = _UNLIMITED) -> Words:
        """The same words with counts of their own, to which none is added: unknown words are left out."""
        state = self.table.state.copy()
        state[kernel.CLOSED], state[kernel.SEEN], state[kernel.LONG], state[kernel.LONGEST] = 1, 0, 0, longest
        other = Words.__new__(Words)
        other.table = self.table._replace(counts=np.zeros_like(self.table.counts), state=state)
        other.most, other.lost = self.most, 0
        return other

    def opened(self) -> Words:
        """This table, to which words are added again."""
        self.table.state[kernel.CLOSED] = 0
        return self

    def encode_text(self, text: Bytes, start: int, ids: Ids) -> int:
        """Put the ids of the words of a text, from a place on, and ends of sentences into `ids`; returns how many."""
        first = text.ctypes.data
        at, end, written = first + start, first + len(text), 0
        while at < end:
            at, written = kernel.encode_text(at, end, self.table, ids, written)
            if at < end:
                self.make_room(int(self.table.state[kernel.LONGEST]))
        return written

    def encode_strings(self, strings: Iterable[bytes]) -> Ids:
        """The ids of strings, not counted."""
        listed = list(strings)
        return self.encode_joined(b"".join(listed), np.fromiter(map(len, listed), np.int32, len(listed)))

    def encode_joined(self, joined: bytes, lengths: npt.NDArray[np.integer[Any]], step: int = 0) -> Ids:
        """The ids of strings that stand one after another; each counts `step` times; a length of -1 is passed on."""
        text = np.frombuffer(joined + bytes(READ_AHEAD), np.uint8)
        return self._encode(text.ctypes.data, lengths, step)

    def take(self, other: Words) -> Ids:
        """Add the words of another table and their counts; returns the ids that they have here."""
        ids = self._encode(other.table.blob.ctypes.data, np.diff(other.starts))
        kernel.add_counts(ids, other.counts, self.table.counts)
        return ids

    def take_joined(self, letters: Bytes, lengths: Ids, counts: Offsets) -> None:
        """Add words that stand one after another, as `joined` gives them, and their counts."""
        kernel.add_counts(self.encode_joined(letters.tobytes(), lengths), counts, self.table.counts)

    def _encode(self, at: int, lengths: npt.NDArray[np.integer[Any]], step: int = 0) -> Ids:
        ids = np.empty(len(lengths), np.int32)
        sizes = np.ascontiguousarray(lengths, np.int32)
        done, encode = 0, ready(kernel.encode_strings, int(sizes.sum()))
        while True:
            done, at = encode(at, sizes, done, self.table, ids, step)
            if done == len(sizes):
                return ids
            self.make_room(int(sizes[done]))

    def make_room(self, needed: int) -> None:
        """A larger table with the same words, or one of the same size with the more frequent half."""
        table, words = self.table, len(self.table.counts)
        size = len(table.blob) - kernel.SPARE
        if table.state[kernel.BYTES] + needed > size:
            size = max(2 * size, size + needed)
        if len(self) == words == self.most:
            rarest = int(np.partition(self.counts, words // 2)[words // 2])
            self.lost += rarest
            self.table = kernel.make_table(words, size, table.state)
            kernel.move_words(table, rarest + 1, self.table)
            return
        if len(self) == words:
            words = min((4 if words < _SMALL else 2) * words, self.most)
            _check_memory(words, kernel.table_bytes(words, size) + bytes_of(table))
        self.table = kernel.make_table(words, size, table.state)
        self.table.blob[: len(table.blob)] = table.blob
        self.table.starts[: len(table.starts)] = table.starts
        self.table.counts[: len(table.counts)] = table.counts
        self.table.state[:] = table.state
        kernel.copy_slots(table.slots, self.table.slots)


def _check_memory(words: int, needed: int) -> None:
    """Raise InputError, before it is taken, for more memory than there is."""
    if needed > memory():
        raise InputError(
            f"a table of {words:,} different words needs {needed / 1e9:.1f} GB, and this machine has "
            f"{memory() / 1e9:.1f} GB; lower --max-vocabulary (max_vocabulary), so that the rarest are dropped."
        )
