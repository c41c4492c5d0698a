"""Options of hashing: from the configuration when a model is trained, from its schema ever after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hogwild.arrays import Offsets
from hogwild.config import FeedConfig
from hogwild.config.kinds import letters_of
from hogwild.errors import ConfigError
from hogwild.feeds.io.source import Bytes
from hogwild.feeds.sparse.features import Features, all_ones
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.tokens import Recipe, encode_texts, letters, make_bags


@dataclass(frozen=True)
class Hashing:
    """How words and categories become ids from 0 to 2^bits - 1."""

    bits: int
    seed: int
    ngrams: int
    lowercase: bool
    normalize: bool
    subwords: str = ""

    def __post_init__(self) -> None:
        try:
            letters_of(self.subwords)
        except (AttributeError, ConfigError):
            raise ValueError("no such hashing") from None
        if not (1 <= self.bits <= 30 and 0 <= self.seed < 2**64 and 1 <= self.ngrams <= 16):
            raise ValueError("no such hashing")

    @classmethod
    def of(cls, config: FeedConfig, schema: Mapping[str, Any]) -> Hashing:
        """As the schema says, else as the configuration asks."""
        if "hashing" in schema:
            return cls(**schema["hashing"])
        form = config.lowercase, config.normalize, config.subwords
        return cls(config.hash_bits, config.hash_seed, config.ngrams, *form)

    def schema(self) -> dict[str, Any]:
        """JSON values from which `of` makes this again; those of models without subwords are as they were before."""
        return {name: value for name, value in asdict(self).items() if name != "subwords" or value}

    def recipe(self) -> Recipe:
        """The same for compiled code."""
        parts = letters_of(self.subwords)
        return Recipe(letters(self.lowercase), np.uint64(self.seed), self.bits, self.ngrams, self.normalize, *parts)


def hash_texts(recipe: Recipe, data: Bytes, bounds: Offsets) -> Features:
    """The n-grams of the texts data[bounds[k, 0]:bounds[k, 1]] as features."""
    size = int((bounds[:, 1] - bounds[:, 0]).sum())
    bags = make_bags(len(bounds), size, recipe)
    with np.errstate(over="ignore"):  # hashes wrap around; only the interpreter, with the compiler off, would say so
        total = ready(encode_texts, size * recipe.ngrams)(data, bounds, recipe, bags)
    # Copies: the room is several times larger than what was filled.
    return Features(bags.lengths, bags.ids[:total].copy(), all_ones(bags.values[:total]).copy())
