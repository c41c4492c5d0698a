"""Made sentences with words, parts of speech and chunks, as text and as feeds; true and guessed tags to score."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from hogwild.config import TaggingConfig
from hogwild.feeds.synthetic.sentences import make_sentences, write_lines
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.open import open_tagging

TEMPLATES = "lower(w)[0]\npos[0]\nsuffix(lower(w),2)[0]\n"


def write_text(place: Path, count: int, part: int = 0) -> Path:
    """A file of so many sentences, and the templates beside it."""
    path = place / f"made-{count}-{part}.txt"
    path.write_text(write_lines("chunking", make_sentences(count, 1, part), 1), encoding="utf-8")
    (place / "templates").write_text(TEMPLATES, encoding="utf-8")
    return path


def made_feed(count: int, part: int = 0, like: TaggingFeed | None = None) -> TaggingFeed:
    """A feed of so many sentences; like: one whose features and tags it is to have."""
    with tempfile.TemporaryDirectory() as place:
        path = write_text(Path(place), count, part)
        config = TaggingConfig(features=str(Path(place) / "templates"), cache=False)
        if like is None:
            return open_tagging(path, config)
        return open_tagging(path, config, schema=like.schema, names=like.names, tags=like.tags)


CHUNKS = ["O", "O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("NP", "VP", "PP"))]


def random_pair(tags, sentences, noise=0.2, seed=0):
    """True and guessed tags; a share of the guesses is random."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(tags, rng.integers(1, 15)).tolist() for _ in range(sentences)]
    guess = [[str(rng.choice(tags)) if rng.random() < noise else tag for tag in sentence] for sentence in gold]
    return gold, guess


def flat(sentences):
    return [tag for sentence in sentences for tag in sentence]
