"""A small language of two topics: words of one stand beside each other, so that their vectors must become alike.

And programs that learn it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import hogwild

TOPICS = (tuple(f"sea{k}" for k in range(25)), tuple(f"sky{k}" for k in range(25)))
COMMON = ("the", "of")
DIM = 16
LR = 0.03


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
    matrix = np.array([vectors[word] for topic in TOPICS for word in topic])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    alike = matrix @ matrix.T
    topic = np.arange(len(matrix)) // len(TOPICS[0])
    same = topic[:, None] == topic
    others = ~np.eye(len(matrix), dtype=bool)
    return float(alike[same & others].mean() - alike[~same].mean())


def made(cbow: bool = False, **options: Any) -> hogwild.Word2Vec:
    """Small vectors; no word is left out."""
    return hogwild.Word2Vec(**{"dim": DIM, "sample": 0, "cbow": cbow, **options})


def train(program: hogwild.Word2Vec, text: Any, **options: Any) -> hogwild.Word2Vec:
    """Train it quietly with one worker, unless told otherwise."""
    chosen = {"lr": LR, "epochs": 10, "threads": 1, "quiet": True, **options}
    assert hogwild.train(program, text, **chosen) is program
    return program


def same(one: hogwild.Word2Vec, other: hogwild.Word2Vec) -> bool:
    """Whether two programs know the same words by the same bits."""
    pairs = zip(one.arrays().values(), other.arrays().values(), strict=True)
    return one.words == other.words and all(a.tobytes() == b.tobytes() for a, b in pairs)
