"""Text about a few topics: words of one topic stand beside each other, so that they must become neighbours."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

TOPICS = {
    "fruit": ["apple", "pear", "plum", "cherry", "grape", "peach", "melon", "lemon"],
    "metal": ["iron", "copper", "zinc", "silver", "gold", "lead", "nickel", "chrome"],
    "sky": ["moon", "star", "comet", "planet", "galaxy", "sun", "orbit", "meteor"],
}
COMMON = ["the", "of", "and", "a"]


def write_topics(path: Path, sentences: int, seed: int = 0, topics: Sequence[str] = tuple(TOPICS)) -> Path:
    """A file of sentences of ten words, each about one topic."""
    draw = random.Random(seed)
    lines = []
    for _ in range(sentences):
        words = TOPICS[draw.choice(list(topics))]
        lines.append(" ".join(draw.choice(words if draw.random() < 0.8 else COMMON) for _ in range(10)))
    path.write_text("\n".join(lines) + "\n")
    return path
