"""Slow, obvious readers of tagged text, to compare with."""

from __future__ import annotations

Sentence = list[tuple[str, ...]]


def conll_sentences(data: bytes, columns: int, tabs: bool) -> list[Sentence]:
    """Sentences of a file with so many columns: one tuple a token."""
    found: list[Sentence] = [[]]
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


def segmented_sentences(data: str) -> list[Sentence]:
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
