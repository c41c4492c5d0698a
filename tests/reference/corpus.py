"""Slow, obvious twins of what reads running text: str.split and collections.Counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

Sentences = list[list[str]]


def sentences_of(data: bytes, lowercase: bool = False, longest: int = 1000) -> Sentences:
    """Lines as lists of words; empty ones are left out."""
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b" ").split(b"\n")
    found = [[word.decode() for word in line.split() if len(word) <= longest] for line in lines]
    if lowercase:
        found = [[word.lower() for word in sentence] for sentence in found]
    return [sentence for sentence in found if sentence]


def vocabulary_of(sentences: Sentences, min_count: int = 1, max_vocab: int = 0) -> dict[str, int]:
    """Words with their counts, the most frequent first, then by bytes."""
    counts = Counter(word for sentence in sentences for word in sentence)
    kept = [(word, count) for word, count in counts.items() if count >= min_count]
    kept.sort(key=lambda pair: (-pair[1], pair[0].encode()))
    return dict(kept[: max_vocab or None])


def count_within(words: Sequence[str], most: int) -> tuple[set[str], int]:
    """The words that are left when no more than `most` are held at a time, and the sum of the thresholds.

    When a new word finds the table full, those that occur no more often than the middle one are dropped.
    """
    counts: Counter[str] = Counter()
    lost = 0
    for word in words:
        if word not in counts and len(counts) == most:
            threshold = sorted(counts.values())[most // 2]
            lost += threshold
            counts = Counter({kept: count for kept, count in counts.items() if count > threshold})
        counts[word] += 1
    return set(counts), lost


def ids_of(sentences: Sentences, vocabulary: Sequence[str]) -> list[int]:
    """Ids with -1 after each sentence that has any."""
    places = {word: place for place, word in enumerate(vocabulary)}
    ids: list[int] = []
    for sentence in sentences:
        known = [places[word] for word in sentence if word in places]
        ids += [*known, -1] if known else []
    return ids


def join_phrases(sentences: Sentences, min_count: float, threshold: float) -> Sentences:
    """One pass: pairs with a score above the threshold become one word, from left to right."""
    words = Counter(word for sentence in sentences for word in sentence)
    pairs = Counter(pair for sentence in sentences for pair in pairwise(sentence))
    size = len(words) + len(pairs)
    joined = []
    for sentence in sentences:
        out, k = [], 0
        while k < len(sentence):
            a, b = sentence[k], sentence[k + 1] if k + 1 < len(sentence) else ""
            if b and (pairs[a, b] - min_count) / float(words[a] * words[b]) * size > threshold:
                out.append(f"{a}_{b}")
                k += 2
            else:
                out.append(a)
                k += 1
        joined.append(out)
    return joined
