"""A corpus: running text as word ids, with its vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Tokens
from hogwild.errors import InputError


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

    def check(self) -> Corpus:
        """Check all that compiled code will trust; returns the corpus itself."""
        ids = self.samples.ids
        if len(self.words) != len(self.counts):
            raise InputError(f"{self.source}: {len(self.words)} words have {len(self.counts)} counts; data is damaged.")
        if len(ids) and not (int(ids.min()) >= -1 and int(ids.max()) < len(self.words)):
            raise InputError(f"{self.source}: a word id lies outside 0 … {len(self.words) - 1}; the data is damaged.")
        return self

    def check_trainable(self) -> Corpus:
        """Raise InputError unless there are two words to tell apart; returns the corpus itself."""
        if len(self.words) < 2:
            only = f" (there is only `{self.words[0]}`)" if self.words else ""
            raise InputError(
                f"{self.source}: at least two different words are needed{only}; give more text, or lower --min-count."
            )
        return self
