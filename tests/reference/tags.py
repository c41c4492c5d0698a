"""Slow, obvious twins for chunks and schemes of tags."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

Chunk = tuple[int, int, str]

# Letters for the first, a middle, the last and the only token of a chunk.
LETTERS = {"iob2": "BIIB", "iobes": "BIES", "bmes": "BMES", "bmewo": "BMEW", "bilou": "BILU", "ioe2": "IIEE"}


def all_chunkings(length: int, types: str, start: int = 0) -> Iterator[list[Chunk]]:
    """Every way to place chunks of these types in a sentence."""
    if start == length:
        yield []
        return
    for rest in all_chunkings(length, types, start + 1):
        yield rest
    for end in range(start + 1, length + 1):
        for kind in types:
            for rest in all_chunkings(length, types, end):
                yield [(start, end, kind), *rest]


def encode(chunks: list[Chunk], length: int, scheme: str) -> list[str]:
    """Tags of a sentence with these chunks."""
    tags = ["O"] * length
    for start, end, kind in chunks:
        first, middle, last, only = LETTERS.get(scheme, "IIII")
        letters = [first, *[middle] * (end - start - 2), last] if end - start > 1 else [only]
        tags[start:end] = [f"{letter}-{kind}" for letter in letters]
    for (_, end, kind), (start, _, after) in pairwise(chunks):
        if end == start and kind == after:
            if scheme == "iob1":
                tags[start] = f"B-{kind}"
            if scheme == "ioe1":
                tags[end - 1] = f"E-{kind}"
    return tags


def script_chunks(tags: list[str]) -> list[Chunk]:
    """Chunks as the script of CoNLL finds them in B, I, E and O: by rules on two neighbours, one state."""
    chunks, begun = [], -1
    for place, (before, now) in enumerate(pairwise(["O", *tags, "O"])):
        old, _, old_type = before.partition("-")
        new, _, new_type = now.partition("-")
        ends = old + new in {"BB", "BO", "IB", "IO", "EE", "EI", "EO"} or (old != "O" and old_type != new_type)
        starts = old + new in {"BB", "IB", "OB", "OI", "EE", "EI", "OE"} or (new != "O" and old_type != new_type)
        if ends:
            chunks.append((begun, place, old_type))
        if starts:
            begun = place
    return chunks


def spans_of_words(words: list[str]) -> set[tuple[int, int]]:
    """Where the words of a sentence stand, in characters."""
    spans, start = set(), 0
    for word in words:
        spans.add((start, start + len(word)))
        start += len(word)
    return spans


def bmes(words: list[str]) -> list[str]:
    """A tag for each character."""
    return [
        "S" if len(word) == 1 else "B" if k == 0 else "E" if k == len(word) - 1 else "M"
        for word in words
        for k in range(len(word))
    ]
