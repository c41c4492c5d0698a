"""Words to ids over the bytes of a text: a hash table with open addressing, and no object a word.

A word of up to seven bytes is its own key: the bytes in one integer. A longer one has a hash for a key, and where keys
and lengths are equal its bytes are compared. So an id is never wrong.

Text is given by addresses (see kernels/compiler/bytes.py). It must be followed by eight bytes that may be read.
A kernel that finds the table full returns where it stands; the caller gives it a larger one and goes on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Offsets
from hogwild.kernels.compiler.bytes import byte_at, load_word, trailing_zeros
from hogwild.kernels.compiler.jit import kernel

WORDS, BYTES, SEEN, LONG, CLOSED, LONGEST = range(6)  # places in `state`
END, UNKNOWN = -1, -2                                 # among ids: a sentence ends; a word that the table does not have
SPARE = 8                                             # bytes that may be read after a text

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LOWEST = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_CONTROL = np.uint64(0x2121212121212121)  # 33 in every byte: smaller ones are blanks and control characters
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD, _HALF, _FIVE = np.uint64(64), np.uint64(32), np.uint64(29)
_ID = np.uint64(0xFFFFFFFF)
_SPACE, _TAB, _RETURN, _NEWLINE = 32, 9, 13, 10


class WordTable(NamedTuple):
    """Words with their counts. slots: two a word, its key, and its length and id + 1 (0: free), at most half in use.

    Word k is blob[starts[k]:starts[k + 1]]. state: words, bytes in the blob, words seen, words that were too long,
    whether the table is closed (unknown words are then not taken in), and the longest word in bytes.
    """

    slots: npt.NDArray[np.uint64]
    blob: npt.NDArray[np.uint8]
    starts: Offsets
    counts: Offsets
    state: Offsets


def make_table(words: int, size: int, earlier: Offsets) -> WordTable:
    """An empty table with room for so many words (a power of two) that have `size` bytes together.

    What was seen, and what holds for words, is that of an earlier state.
    """
    state = earlier.copy()
    state[WORDS] = state[BYTES] = 0
    return WordTable(
        slots=np.zeros(4 * words, np.uint64),
        blob=np.zeros(size + SPARE, np.uint8),
        starts=np.zeros(words + 1, np.int64),
        counts=np.zeros(words, np.int64),
        state=state,
    )


def table_bytes(words: int, size: int) -> int:
    """Bytes that such a table takes."""
    return (4 + 1 + 1) * 8 * words + size


@kernel
def _first_bytes(word: Any, count: int) -> Any:
    """The first 0 to 7 bytes of a word."""
    return word & ~(_ALL << np.uint64(8 * count))


@kernel
def _fold(state: Any, word: Any) -> Any:
    state = (state ^ word) * _SPREAD
    return state ^ (state >> _FIVE)


@kernel
def key_of(at: int, length: int) -> Any:
    """The key of a word."""
    if length < 8:
        return _first_bytes(load_word(at), length)
    key, stop = _SPREAD, at + length
    while at + 8 <= stop:
        key = _fold(key, load_word(at))
        at += 8
    return _fold(key, _first_bytes(load_word(at), stop - at))


@kernel
def _equal(first: int, second: int, length: int) -> bool:
    """Whether two texts of a length have the same bytes."""
    stop = first + length
    while first + 8 <= stop:
        if load_word(first) != load_word(second):
            return False
        first += 8
        second += 8
    return _first_bytes(load_word(first) ^ load_word(second), stop - first) == 0


@kernel
def home(key: Any, slots: Any) -> int:
    """The first slot to look at."""
    mixed = key * _SPREAD
    return np.int64((mixed ^ (mixed >> _HALF)) & np.uint64(len(slots) // 2 - 1))


@kernel
def find(slots: Any, blob: Any, starts: Any, at: int, length: int, key: Any) -> Any:
    """The id of a word and its slot; UNKNOWN and the slot where it belongs."""
    slot, mask = home(key, slots), len(slots) // 2 - 1
    while True:
        entry = slots[2 * slot + 1]
        if entry == 0:
            return UNKNOWN, slot
        if slots[2 * slot] == key and np.int64(entry >> _HALF) == length:
            ident = np.int64(entry & _ID) - 1
            if length < 8 or _equal(blob.ctypes.data + starts[ident], at, length):
                return ident, slot
        slot = (slot + 1) & mask


@kernel
def has_room(table: Any, length: int) -> bool:
    """Whether one more word fits."""
    return table.state[WORDS] < len(table.counts) and table.state[BYTES] + length + SPARE <= len(table.blob)


@kernel
def insert(table: Any, slot: int, at: int, length: int, key: Any) -> int:
    """Put a new word into the slot that `find` gave; returns its id. The caller has seen that there is room."""
    state, ident, place = table.state, table.state[WORDS], table.state[BYTES]
    table.slots[2 * slot] = key
    table.slots[2 * slot + 1] = (np.uint64(length) << _HALF) | np.uint64(ident + 1)
    for k in range(length):
        table.blob[place + k] = byte_at(at + k)
    table.starts[ident + 1] = place + length
    table.counts[ident] = 0
    state[WORDS] += 1
    state[BYTES] += length
    return ident


@kernel
def _is_blank(byte: int) -> bool:
    return byte == _SPACE or (byte >= _TAB and byte <= _RETURN)


@kernel
def _length_at(at: int, end: int) -> int:
    """Length of a word, byte by byte."""
    stop = at
    while stop < end and not _is_blank(byte_at(stop)):
        stop += 1
    return stop - at


@kernel
def encode_text(at: int, end: int, table: Any, ids: Any, written: int) -> Any:
    """Append the ids of words to `ids`, and count them; a newline becomes END, several become one.

    Words that are too long are counted and left out. The text ends with white space, unless with a word that is too
    long; as many ids as it has bytes must fit. Returns where the text goes on (before its end if the table is full)
    and how many ids there are now.
    """
    slots, blob, starts, counts, state = table.slots, table.blob, table.starts, table.counts, table.state
    seen, closed, longest = 0, state[CLOSED] != 0, state[LONGEST]
    while at < end:
        word = load_word(at)
        stops = (word - _CONTROL) & ~word & _HIGH
        if stops != 0:
            length = trailing_zeros(stops) >> 3
            key = _first_bytes(word, length)
        else:
            length = 8
            key = _fold(_SPREAD, word)
            while True:
                word = load_word(at + length)
                stops = (word - _CONTROL) & ~word & _HIGH
                if stops != 0:
                    break
                key = _fold(key, word)
                length += 8
            more = trailing_zeros(stops) >> 3
            key = _fold(key, _first_bytes(word, more))
            length += more
        stop = byte_at(at + length)
        if not _is_blank(stop):  # a control character, which belongs to the word
            length = _length_at(at, end)
            key = key_of(at, length)
            stop = byte_at(at + length)
        if length > longest:
            state[LONG] += 1
        elif length > 0:
            ident, slot = find(slots, blob, starts, at, length, key)
            if ident < 0 and not closed:
                if not has_room(table, length):
                    break
                ident = insert(table, slot, at, length, key)
            if ident >= 0:
                counts[ident] += 1
                ids[written] = ident
                written += 1
            seen += 1
        at += length + 1
        if stop == _NEWLINE and (written == 0 or ids[written - 1] != END):
            ids[written] = END
            written += 1
    state[SEEN] += seen
    return at, written


@kernel
def encode_strings(at: int, lengths: Any, first: int, table: Any, ids: Any, step: int) -> Any:
    """The ids of strings that stand one after another, from number `first` on; each adds `step` to its count.

    A length of END is passed on; empty strings, those that are too long, and unknown ones if the table is closed become
    UNKNOWN. Returns the number of strings that are done (not all if the table is full) and where the next one begins.
    """
    slots, blob, starts, counts, state = table.slots, table.blob, table.starts, table.counts, table.state
    closed, longest = state[CLOSED] != 0, state[LONGEST]
    for k in range(first, len(lengths)):
        length = int(lengths[k])
        if length == END:
            ids[k] = END
            continue
        ident = UNKNOWN
        if length > longest:
            state[LONG] += 1
        elif length > 0:
            key = key_of(at, length)
            ident, slot = find(slots, blob, starts, at, length, key)
            if ident < 0 and not closed:
                if not has_room(table, length):
                    return k, at
                ident = insert(table, slot, at, length, key)
            if ident >= 0:
                counts[ident] += step
            state[SEEN] += step
        ids[k] = ident
        at += length
    return len(lengths), at


@kernel
def after_word(at: int, end: int) -> int:
    """Where the rest of a word ends that a text begins with."""
    return at + _length_at(at, end)


# -- Tables of words as wholes: grown, pruned, counted; and ids replaced when the vocabulary is known -----------------


_UPPER_A, _UPPER_Z, _TO_LOWER = 65, 90, 32


@kernel
def copy_slots(slots: Any, larger: Any) -> None:
    """Put all entries into an empty table of slots that is larger."""
    mask = len(larger) // 2 - 1
    for k in range(len(slots) // 2):
        if slots[2 * k + 1] != 0:
            slot = home(slots[2 * k], larger)
            while larger[2 * slot + 1] != 0:
                slot = (slot + 1) & mask
            larger[2 * slot] = slots[2 * k]
            larger[2 * slot + 1] = slots[2 * k + 1]


@kernel
def move_words(table: Any, least: int, larger: Any) -> None:
    """Put the words that occur `least` times or more into a table that has room for them."""
    base = table.blob.ctypes.data
    for k in range(table.state[WORDS]):
        if table.counts[k] >= least:
            at, length = base + table.starts[k], table.starts[k + 1] - table.starts[k]
            key = key_of(at, length)
            _, slot = find(larger.slots, larger.blob, larger.starts, at, length, key)
            larger.counts[insert(larger, slot, at, length, key)] = table.counts[k]


@kernel
def add_counts(ids: Any, source: Any, target: Any) -> None:
    """Add source[k] to the count of word ids[k]."""
    for k in range(len(ids)):
        if ids[k] >= 0:
            target[ids[k]] += source[k]


@kernel
def count_words(ids: Any, counts: Any) -> None:
    """Add the occurrences of each word to its count."""
    for k in range(len(ids)):
        if ids[k] >= 0:
            counts[ids[k]] += 1


@kernel
def settle(ids: Any, final: Any, settled: Any) -> Any:
    """Replace ids by those of the vocabulary; words that are not in it are left out.

    An END at the beginning, and after another END, is not written. Returns how many ids there are, and whether an END
    was met before the first word that stays: the caller knows whether a sentence was open.
    """
    written, led = 0, False
    for k in range(len(ids)):
        ident = ids[k]
        if ident >= 0:
            ident = final[ident]
        if ident >= 0:
            settled[written] = ident
            written += 1
        elif ident == END:
            if written == 0:
                led = True
            elif settled[written - 1] != END:
                settled[written] = END
                written += 1
    return written, led


@kernel
def prefixes_of(blob: Any, starts: Any, words: Any, prefixes: Any) -> None:
    """The first eight bytes of words as integers that sort as the bytes do."""
    for k in range(len(words)):
        first, last = starts[words[k]], starts[words[k] + 1]
        prefix = np.uint64(0)
        for i in range(8):
            byte = np.uint64(blob[first + i]) if first + i < last else np.uint64(0)
            prefix = (prefix << np.uint64(8)) | byte
        prefixes[k] = prefix


@kernel
def copy_words(blob: Any, starts: Any, words: Any, joined: Any) -> None:
    """The bytes of words, one after another."""
    place = 0
    for k in range(len(words)):
        for i in range(starts[words[k]], starts[words[k] + 1]):
            joined[place] = blob[i]
            place += 1


@kernel
def beyond_ascii(blob: Any, starts: Any, flags: Any) -> None:
    """Mark the words that have other bytes than ASCII."""
    for k in range(len(flags)):
        flags[k] = False
        for i in range(starts[k], starts[k + 1]):
            if blob[i] >= 0x80:
                flags[k] = True


@kernel
def lower_ascii(data: Any) -> None:
    """Lower-case ASCII letters in place."""
    for k in range(len(data)):
        byte = data[k]
        data[k] = byte + _TO_LOWER if byte >= _UPPER_A and byte <= _UPPER_Z else byte


@kernel
def blank_nuls(data: Any) -> int:
    """Write a blank over each NUL; returns how many."""
    count = 0
    for k in range(len(data)):
        if data[k] == 0:
            data[k] = 32
            count += 1
    return count
