"""Tables of words as wholes: grown, pruned, counted; and ids replaced when the vocabulary is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.words import END, WORDS, find, home, insert, key_of

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


