"""Slow, obvious twins of readers of tagged text, feature templates and their encoding, chunks and schemes of tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hogwild.arrays import AnyChains, ValuedChains
from hogwild.feeds.tagged.text import TaggedText, TextColumn

Row = dict[str, str]
Sentence = list[Row]


def _shape(value: str) -> str:
    signs = ""
    for c in value:
        if c.isdecimal():
            signs += "d"
        elif c.isalpha():
            signs += "X" if c.isupper() or c.istitle() else "x" if c.islower() else "a"
        else:
            signs += c
    return signs


TRANSFORMS: dict[str, Callable[..., str | None]] = {
    "lower": lambda value: value.lower(),
    "prefix": lambda value, size: value[:size] if len(value) >= size else None,
    "suffix": lambda value, size: value[len(value) - size :] if len(value) >= size else None,
    "fullshape": _shape,
    "shape": lambda value: re.sub(r"(.)\1+", r"\1", _shape(value), flags=re.DOTALL),
    "digits": lambda value: re.sub(r"\d", "0", value),
    "hasdigit": lambda value: "1" if re.search(r"\d", value) else None,
    "hasupper": lambda value: "1" if any(c.isupper() for c in value) else None,
}


def value_of(expression: str, row: Row) -> str | None:
    """What `suffix(lower(w),3)` is for a token."""
    call = re.fullmatch(r"(\w+)\((.*?)(?:,(\d+))?\)", expression)
    if not call:
        return row[expression]
    inner = value_of(call[2], row)
    if inner is None:
        return None
    return TRANSFORMS[call[1]](inner, *([int(call[3])] if call[3] else []))


def atom_at(atom: str, sentence: Sentence, i: int) -> str | None:
    """The value of an atom at token i, or None."""
    call = re.fullmatch(r"same\((.*)\)\[(-?\d+),(-?\d+)\]", atom)
    if call:
        places = i + int(call[2]), i + int(call[3])
        if min(places) < 0 or max(places) >= len(sentence):
            return None
        first, second = (value_of(call[1], sentence[place]) for place in places)
        return "1" if first is not None and first == second else None
    parts = re.fullmatch(r"(.*)\[(-?\d+)\]", atom)
    assert parts, atom
    place = i + int(parts[2])
    if place < 0:
        return f"_B{place}"
    if place >= len(sentence):
        return f"_E+{place - len(sentence) + 1}"
    return value_of(parts[1], sentence[place])


def features_at(templates: Sequence[str], sentence: Sentence, i: int) -> list[str]:
    """The names of the features of token i, in the order of the templates."""
    found = []
    for template in templates:
        if template == "bias":
            found.append("bias")
            continue
        values = [atom_at(atom, sentence, i) for atom in template.split("|")]
        if None not in values:
            found.append(template + "=" + "|".join(str(value) for value in values))
    return found


def ranked(items: Sequence[str], min_count: int = 1) -> dict[str, int]:
    """Counts by falling count; `most_common` leaves equal ones in the order of their first places."""
    return {item: count for item, count in Counter(items).most_common() if count >= min_count}


def rows_of(text: TaggedText) -> list[Sentence]:
    """The sentences of a text."""
    tokens = [{column.name: column.values[column.codes[t]] for column in text.columns} for t in range(text.tokens)]
    return [tokens[first:last] for first, last in pairwise(text.offsets.tolist())]


def features_of(templates: Sequence[str], text: TaggedText) -> list[list[str]]:
    """The names of the features of every token."""
    return [features_at(templates, rows, i) for rows in rows_of(text) for i in range(len(rows))]


def tags_of(text: TaggedText) -> list[str]:
    """The tag of every token."""
    assert text.tags is not None
    return [text.tags.values[code] for code in text.tags.codes]


def text_of(sentences: Sequence[Sentence], tags: Sequence[Sequence[str]] | None = None) -> TaggedText:
    """A text of rows; values are numbered in the order of the alphabet, not of their first places."""

    def column(name: str, cells: list[str]) -> TextColumn:
        values = sorted(set(cells))
        places = {value: place for place, value in enumerate(values)}
        return TextColumn(name, np.array([places[cell] for cell in cells], np.int32), tuple(values))

    tokens = [row for rows in sentences for row in rows]
    offsets = np.cumsum([0, *map(len, sentences)])
    tagged = None if tags is None else column("tag", [tag for row in tags for tag in row])
    return TaggedText(tuple(column(name, [row[name] for row in tokens]) for name in tokens[0]), tagged, offsets)


def named_rows(samples: AnyChains, names: Sequence[str]) -> list[Any]:
    """The features of every token by name: a list, or with values a dict. Ids must rise."""
    rows: list[Any] = []
    for first, last in pairwise(samples.starts.tolist()):
        ids = samples.ids[first:last].tolist()
        assert ids == sorted(set(ids))
        found = [names[k] for k in ids]
        if isinstance(samples, ValuedChains):
            rows.append(dict(zip(found, samples.values[first:last].tolist(), strict=True)))
        else:
            rows.append(found)
    return rows


def conll_sentences(data: bytes, columns: int, tabs: bool) -> list[list[tuple[str, ...]]]:
    """Sentences of a file with so many columns: one tuple a token."""
    found: list[list[tuple[str, ...]]] = [[]]
    for line in data.decode("utf-8-sig").split("\n"):
        line = line.rstrip("\r ")
        if not line.strip(" \t\v\f\r"):
            found.append([])
            continue
        values = line.split("\t") if tabs else line.encode().split()
        texts = tuple(value if isinstance(value, str) else value.decode() for value in values)
        if line.startswith("-DOCSTART-"):
            found.append([])
        elif len(texts) == columns:
            found[-1].append(texts)
        elif not line.startswith("#"):
            raise ValueError(line)
    return [sentence for sentence in found if sentence]


def segmented_sentences(data: str) -> list[list[tuple[str, ...]]]:
    """Sentences of segmented text: characters with the tags B, M, E, S."""
    found = []
    for line in data.split("\n"):
        sentence: Sentence = []
        for word in line.split():
            tags = "S" if len(word) == 1 else "B" + "M" * (len(word) - 2) + "E"
            sentence += zip(word, tags, strict=True)
        if sentence:
            found.append(sentence)
    return found


# -- chunks and schemes of tags ----------------------------------------------------------------------------------------

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
