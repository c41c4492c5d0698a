"""Sentences and labels as users of CRFsuite have them, made ready for a feed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.errors import InputError
from hogwild.feeds.tagged.feed import TaggingFeed


def length(sentence: Any) -> int:
    """Tokens, or labels, of a sentence."""
    try:
        return len(sentence)
    except TypeError:
        kind = type(sentence).__name__
        raise InputError(f"a sentence is of type {kind}; give a list with one item a token.") from None


def without_empty(X: Any, y: Any, name: str = "X") -> tuple[list[Any], list[Any]]:
    """Sentences with their labels; those without tokens teach nothing and are left out."""
    sentences, labels = list(X), list(y)
    if len(sentences) != len(labels):
        raise InputError(f"{name} has {len(sentences):,} sentences, but labels are there for {len(labels):,}.")
    kept = [k for k, sentence in enumerate(sentences) if length(sentence) or length(labels[k])]
    return [sentences[k] for k in kept], [labels[k] for k in kept]


def in_order_of_places(feed: TaggingFeed) -> TaggingFeed:
    """The feed with its tags in the order of their first places, as CRFsuite numbers them."""
    codes = feed.samples.tags
    found, firsts = np.unique(codes, return_index=True)
    order = found[np.argsort(firsts)]
    final = np.empty(len(feed.tags), np.int32)
    final[order] = np.arange(len(order), dtype=np.int32)
    tags = tuple(feed.tags[code] for code in order.tolist())
    return replace(feed, samples=feed.samples._replace(tags=final[codes]), tags=tags)


def seed_of(state: Any) -> int:
    """The seed that a `random_state` stands for: None, a whole number, or a generator of NumPy."""
    if state is None:
        return 1
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31 - 1))
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**31 - 1))
    if isinstance(state, (int, np.integer)):
        return int(state)
    raise InputError(f"random_state is {state!r}; give a whole number, a RandomState, or nothing.")
