"""Files of tagged text for tests, and what was read from them as plain lists."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.config import TaggingConfig
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.text import TaggedText, TextColumn

VERSE = "to TO B-VP\nbe VB I-VP\n\nor CC O\nnot RB O\n"


def read(path: Path, data: str | bytes, schema: Any = None, with_tags: bool = True, **options: Any) -> TaggedText:
    """Write a file and read it."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return check(read_tagged(path, TaggingConfig(**options), schema=schema, with_tags=with_tags))


def check(text: TaggedText) -> TaggedText:
    """What everyone trusts: lengths, bounds, no empty sentence, every value once and in use."""
    assert text.offsets[0] == 0
    assert text.offsets.dtype == np.int64
    assert (np.diff(text.offsets) > 0).all()
    for column in (*text.columns, *((text.tags,) if text.tags else ()), *(text.origin.columns if text.origin else ())):
        assert column.codes.dtype == np.int32
        assert len(column.codes) == text.tokens
        assert np.unique(column.codes).tolist() == list(range(len(column.values)))
        assert len(set(column.values)) == len(column.values)
    return text


def names_of(text: TaggedText) -> list[str]:
    """Names of the columns that features are made of."""
    return [column.name for column in text.columns]


def sentences_of(text: TaggedText) -> list[list[tuple[str, ...]]]:
    """Sentences as lists of tokens: the columns, and the tag if there is one."""
    columns: list[TextColumn] = [*text.columns, *([text.tags] if text.tags else [])]
    bounds = pairwise(text.offsets.tolist())
    return [list(zip(*(column.strings(*bound) for column in columns), strict=True)) for bound in bounds]
