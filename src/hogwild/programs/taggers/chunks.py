"""Chunks of tagged sentences, by the rules of the evaluation script of the CoNLL shared tasks.

A tag is a letter, a dash and a type, as in `B-NP`, or a letter alone, whose type is empty. The letters of all schemes
are read at once:

    B               begins a chunk
    I, M            goes on with one
    E, L            ends one
    S, U, W, [, ]   is a chunk of its own
    O, .            is in none

Every token in a chunk goes on with the chunk of the token before, unless that is in none, is of another type or has
ended its chunk, or the token itself begins one (B, S). So tags that break a scheme have chunks too: I-NP after O begins
one, and so does I-VP after B-NP. A tag with another letter is read as I where it has a type, else as O.

For tags of B, I, O and of I, E, O this is what `conlleval` counts. The script knows no letters beyond those, and takes
two neighbours of one type in IOBES for one chunk; here they are two, as `seqeval` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError
from hogwild.feeds.sparse.labels import shown

Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.integer]

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)

ROLES = {
    "O": OUTSIDE, ".": OUTSIDE, "B": BEGIN, "I": INSIDE, "M": INSIDE, "E": END, "L": END,
    "S": SINGLE, "U": SINGLE, "W": SINGLE, "[": SINGLE, "]": SINGLE,
}  # fmt: skip
"""What a letter does, in any scheme."""


class TagParts(NamedTuple):
    """Tags taken apart: roles[k] and names[types[k]] are what the letter of tag k does and its type."""

    roles: npt.NDArray[np.int8]
    types: Ids
    names: tuple[str, ...]


class Spans(NamedTuple):
    """Chunks in the order of the text: tokens starts[j]:ends[j], of the type with number types[j]."""

    starts: Offsets
    ends: Offsets
    types: Ids


def parts_of(tags: Sequence[str]) -> TagParts:
    """Roles and types of tags."""
    roles, types = [], []
    numbers: dict[str, int] = {}
    for tag in tags:
        letter, _, kind = tag.partition("-")
        roles.append(ROLES.get(letter, INSIDE if kind else OUTSIDE))
        types.append(-1 if roles[-1] == OUTSIDE else numbers.setdefault(kind, len(numbers)))
    return TagParts(np.array(roles, np.int8), np.array(types, np.int32), tuple(numbers))


def spans_of(offsets: Offsets, codes: Codes, parts: TagParts) -> Spans:
    """Chunks of sentences, where codes[t] is the number of the tag of token t and sentence s has the tokens
    offsets[s]:offsets[s + 1]. No chunk goes past the end of a sentence."""
    roles, types = parts.roles[codes], parts.types[codes]
    inside = roles != OUTSIDE
    joined = np.zeros(len(codes) + 1, np.bool_)  # whether a token goes on with the chunk of the one before
    joined[1:-1] = inside[:-1] & inside[1:] & (types[:-1] == types[1:])
    joined[1:-1] &= (roles[:-1] != END) & (roles[:-1] != SINGLE) & (roles[1:] != BEGIN) & (roles[1:] != SINGLE)
    joined[offsets] = False
    starts = np.flatnonzero(inside & ~joined[:-1])
    return Spans(starts, np.flatnonzero(inside & ~joined[1:]) + 1, types[starts])


def chunks_of(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Chunks of one sentence as (start, end, type), the end being the first token after the chunk.

    By the CoNLL rules, for IOB1, IOB2, IOE, IOBES, BMES, BMEWO and BILOU, which need not be told apart. Tags that break
    the rules of their scheme have chunks too.

    Examples
    --------
    >>> chunks_of(["B-NP", "I-NP", "O", "B-VP"])
    [(0, 2, 'NP'), (3, 4, 'VP')]
    >>> chunks_of(["O", "I-NP", "I-VP"])
    [(1, 2, 'NP'), (2, 3, 'VP')]
    >>> chunks_of(["B", "M", "E", "S"])
    [(0, 3, ''), (3, 4, '')]
    """
    index: dict[str, int] = {}
    offsets, codes = coded([tags], index)
    parts = parts_of(tuple(index))
    spans = spans_of(offsets, codes, parts)
    names = [parts.names[kind] for kind in spans.types.tolist()]
    return list(zip(spans.starts.tolist(), spans.ends.tolist(), names, strict=True))


def coded(sentences: Sequence[Sequence[str]], index: dict[str, int]) -> tuple[Offsets, Ids]:
    """Offsets of sentences, and a number for each tag; tags that `index` has not are added to it."""
    for number, sentence in enumerate(sentences, 1):
        if isinstance(sentence, str):
            raise InputError(f"sentence {number} is the string `{shown(sentence)}`; give a list of tags a sentence.")
        for tag in sentence:
            if not isinstance(tag, str):
                raise InputError(f"sentence {number} has the tag {shown(repr(tag))}; give tags as strings.")
    offsets = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum([len(sentence) for sentence in sentences], out=offsets[1:])
    codes = (index.setdefault(tag, len(index)) for sentence in sentences for tag in sentence)
    return offsets, np.fromiter(codes, np.int32, int(offsets[-1]))
