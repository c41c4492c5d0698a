"""A small language of two topics: words of one stand beside each other, so that their vectors must become alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import hogwild

TOPICS = (tuple(f"sea{k}" for k in range(25)), tuple(f"sky{k}" for k in range(25)))
COMMON = ("the", "of")


def sentences(count: int, seed: int = 0, topics: Sequence[Sequence[str]] = TOPICS) -> list[list[str]]:
    """Sentences of ten words, each about one topic; the first words of a topic are the most frequent."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        topic = topics[random.integers(len(topics))]
        places = (random.random(10) ** 1.5 * len(topic)).astype(int)
        found.append([topic[place] if random.random() < 0.9 else str(random.choice(COMMON)) for place in places])
    return found


def corpus(count: int = 400, seed: int = 0, **options: Any) -> hogwild.Corpus:
    """Such sentences, all of their words kept."""
    return hogwild.corpus_of(sentences(count, seed), hogwild.CorpusConfig(min_count=1), **options)


def contrast(vectors: hogwild.Vectors) -> float:
    """The mean similarity of two words of one topic, less that of words of two topics."""
    rows = {word: row for row, word in enumerate(vectors.words)}
    matrix = np.array([vectors[word] for topic in TOPICS for word in topic])
    assert len(rows) >= len(matrix)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    alike = matrix @ matrix.T
    topic = np.arange(len(matrix)) // len(TOPICS[0])
    same = topic[:, None] == topic
    others = ~np.eye(len(matrix), dtype=bool)
    return float(alike[same & others].mean() - alike[~same].mean())
