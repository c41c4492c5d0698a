"""Features of tokens from templates: each is named, and its key is a hash of the name, made with no string.

The name is `template=value|value`. Its bytes go through the hash of kernels/ids/hashing.py one value after
another, so that the key is the same as that of the name in one piece. NONE stands for no feature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Keys, Offsets
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.hashing import finish, fold, hash_bytes, push
from hogwild.kernels.ids.keys import NONE

COLUMN, PLACE, OFFSET, OTHER, SAME = range(5)  # columns of `atoms`
MISSING = -1                                    # a value that a token does not have

_SEED = np.uint64(0x5A17C0DE2F3B9D01)
_ONE, _LAST = np.uint64(1), np.uint64(7)
_BAR = 124
_TOP = 0xC0  # bytes that go on with a character are 10xxxxxx
_GOES_ON = 0x80


class Values(NamedTuple):
    """Strings one after another: number k is pool[starts[k]:starts[k + 1]], in UTF-8.

    First come those before and after a sentence: `reach` of each, at distances 1, 2, …; then the answer to `same`.
    """

    pool: npt.NDArray[np.uint8]
    starts: Offsets
    reach: int


class Plan(NamedTuple):
    """Templates over the tokens of a text.

    codes: a row a column. offsets: of sentences. remap: remap[place + code] is the value, or MISSING, that an atom
    makes of a code. atoms: see COLUMN …; template k has the atoms firsts[k]:firsts[k + 1]. hashes[k] is what the hash
    has come to before its values, state and waiting bytes, after sizes[k] bytes.
    """

    codes: npt.NDArray[np.int32]
    offsets: Offsets
    remap: Ids
    atoms: Offsets
    firsts: Offsets
    hashes: Keys
    sizes: Offsets


@kernel
def key_of_name(data: Any, first: int, last: int) -> Any:
    """The key of the name data[first:last]."""
    return max(hash_bytes(data, first, last, _SEED), _ONE)


@kernel
def keys_of_names(data: Any, offsets: Any, keys: Any) -> None:
    """The key of each name data[offsets[k]:offsets[k + 1]]."""
    for k in range(len(keys)):
        keys[k] = key_of_name(data, offsets[k], offsets[k + 1])


@kernel
def start_hashes(data: Any, offsets: Any, hashes: Any) -> None:
    """What the hash comes to after each beginning of a name data[offsets[k]:offsets[k + 1]]: state, waiting bytes."""
    for k in range(len(hashes)):
        state, word = _SEED, np.uint64(0)
        for i in range(offsets[k], offsets[k + 1]):
            word = push(word, data[i])
            if (i - offsets[k]) & 7 == 7:
                state = fold(state, word)
                word = np.uint64(0)
        hashes[k, 0] = state
        hashes[k, 1] = word


@kernel
def _inside(plan: Any, atom: int, token: int) -> int:
    """The value that an atom makes of a token."""
    atoms = plan.atoms
    return plan.remap[atoms[atom, PLACE] + plan.codes[atoms[atom, COLUMN], token]]


@kernel
def _value(plan: Any, reach: int, atom: int, token: int, begin: int, end: int) -> int:
    """The value of an atom at a token of the sentence begin:end, or MISSING."""
    atoms = plan.atoms
    place = token + atoms[atom, OFFSET]
    if atoms[atom, SAME] != 0:
        other = token + atoms[atom, OTHER]
        if min(place, other) < begin or max(place, other) >= end:
            return MISSING
        value = _inside(plan, atom, place)
        return 2 * reach if value >= 0 and value == _inside(plan, atom, other) else MISSING
    if place < begin:
        return begin - place - 1
    if place >= end:
        return reach + place - end
    return _inside(plan, atom, place)


@kernel
def _key(plan: Any, values: Any, template: int, token: int, begin: int, end: int) -> Any:
    """The key of the feature that a template gives at a token, or NONE."""
    pool, starts = values.pool, values.starts
    state, word, size = plan.hashes[template, 0], plan.hashes[template, 1], plan.sizes[template]
    first = plan.firsts[template]
    for atom in range(first, plan.firsts[template + 1]):
        value = _value(plan, values.reach, atom, token, begin, end)
        if value < 0:
            return NONE
        if atom > first:
            word = push(word, _BAR)
            size += 1
            if size & 7 == 0:
                state = fold(state, word)
                word = np.uint64(0)
        for i in range(starts[value], starts[value + 1]):
            word = push(word, pool[i])
            size += 1
            if size & 7 == 0:
                state = fold(state, word)
                word = np.uint64(0)
    return max(finish(state, word, size), _ONE)


@kernel
def write_keys(plan: Any, values: Any, sentence: int, first: int, keys: Any) -> None:
    """The keys of all templates at the tokens from `first` on, which is of the given sentence; a row a token."""
    begin, end = plan.offsets[sentence], plan.offsets[sentence + 1]
    for row in range(keys.shape[0]):
        token = first + row
        while token >= end:
            sentence += 1
            begin, end = end, plan.offsets[sentence + 1]
        for template in range(keys.shape[1]):
            keys[row, template] = _key(plan, values, template, token, begin, end)


# -- names --


@kernel
def measure_names(plan: Any, values: Any, prefixes: Any, places: Any, sentences: Any, sizes: Any) -> None:
    """Bytes of the name of each feature; places[k] is the number token * templates + template of an occurrence.

    prefixes: bytes of what a name begins with, for each template; sentences: those of the occurrences.
    """
    templates = len(plan.sizes)
    for k in range(len(places)):
        token, template = places[k] // templates, places[k] % templates
        begin, end = plan.offsets[sentences[k]], plan.offsets[sentences[k] + 1]
        first, last = plan.firsts[template], plan.firsts[template + 1]
        size = prefixes[template + 1] - prefixes[template] + max(last - first - 1, 0)
        for atom in range(first, last):
            value = _value(plan, values.reach, atom, token, begin, end)
            size += values.starts[value + 1] - values.starts[value]
        sizes[k] = size


@kernel
def write_names(plan: Any, values: Any, begins: Any, places: Any, sentences: Any, out: Any, letters: Any) -> None:
    """The names of features one after another into `out`, and how many characters each has.

    begins: what the names of each template begin with, as Values.
    """
    templates, at = len(plan.sizes), 0
    for k in range(len(places)):
        token, template = places[k] // templates, places[k] % templates
        begin, end = plan.offsets[sentences[k]], plan.offsets[sentences[k] + 1]
        start = at
        at = _copy(begins, template, out, at)
        for atom in range(plan.firsts[template], plan.firsts[template + 1]):
            if atom > plan.firsts[template]:
                out[at] = _BAR
                at += 1
            at = _copy(values, _value(plan, values.reach, atom, token, begin, end), out, at)
        count = 0
        for i in range(start, at):
            count += (out[i] & _TOP) != _GOES_ON
        letters[k] = count


@kernel
def _copy(values: Any, value: int, out: Any, at: int) -> int:
    for i in range(values.starts[value], values.starts[value + 1]):
        out[at] = values.pool[i]
        at += 1
    return at
