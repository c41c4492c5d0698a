"""A corpus: running text as word ids, with its vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Tokens


@dataclass(frozen=True, repr=False)
class Corpus:
    """Text that word vectors are trained on, in memory or memory-mapped from the cache.

    words: the vocabulary, the most frequent first; words[k] is the word with id k. counts: how often each occurs.
    total: words of the text, those that are not in the vocabulary included.
    schema: what turns another text into the same ids; JSON values only.
    notes: what the reader should know, one sentence each, with counts.
    fingerprint: identifies content and options; empty for text from memory.
    """

    samples: Tokens
    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    total: int
    schema: dict[str, Any]
    notes: tuple[str, ...] = ()
    source: str = "sentences"
    fingerprint: str = ""

    def __len__(self) -> int:
        """Words in the vocabulary's ids (ends of sentences are no words)."""
        return int(self.counts.sum())

    def __repr__(self) -> str:
        return f"<Corpus of {self.source}: {self.total:,} words, {len(self.words):,} different>"
