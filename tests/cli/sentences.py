"""Tagged sentences from a small grammar: phrases of nouns and verbs, which few sentences are enough to learn."""

from __future__ import annotations

import random
from pathlib import Path

WORDS = {
    "DT": ["the", "a", "every", "some"],
    "JJ": ["old", "red", "small", "quick", "warm"],
    "NN": ["dog", "house", "river", "stone", "bird", "letter", "walk", "watch"],
    "MD": ["will", "may", "can"],
    "VB": ["see", "find", "walk", "watch", "carry"],
    ".": ["."],
}  # `walk` and `watch` are nouns or verbs: what stands before them tells
PHRASES = {"NP": [["DT", "NN"], ["DT", "JJ", "NN"], ["JJ", "NN"]], "VP": [["MD", "VB"], ["VB"]]}
TAGS = {"B-NP", "I-NP", "B-VP", "I-VP", "O"}


def make_sentence(draw: random.Random) -> list[tuple[str, str, str]]:
    """A word, its part of speech and the tag of its phrase for each token."""
    tokens = []
    for name in ("NP", "VP", "NP")[: draw.choice((1, 3, 3))]:
        for place, pos in enumerate(draw.choice(PHRASES[name])):
            tokens.append((draw.choice(WORDS[pos]), pos, f"{'I' if place else 'B'}-{name}"))
    return [*tokens, (".", ".", "O")]


def write_sentences(path: Path, count: int, seed: int = 0, columns: tuple[int, ...] = (0, 1, 2)) -> Path:
    """A file of columns: words, parts of speech and tags of phrases, or some of them."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        lines += [" ".join(token[k] for k in columns) for token in make_sentence(draw)]
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_words(path: Path, count: int, seed: int = 0) -> Path:
    """A file of words with spaces between them."""
    draw = random.Random(seed)
    path.write_text("".join(" ".join(word for word, *_ in make_sentence(draw)) + "\n" for _ in range(count)))
    return path
