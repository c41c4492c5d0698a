"""Sentences of tokens in columns, as files of tagged text hold them."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.arrays import Ids, Offsets


@dataclass(frozen=True)
class TextColumn:
    """One column over all tokens: values[codes[t]] is what token t has in it. Each value stands there once."""

    name: str
    codes: Ids
    values: tuple[str, ...]


@dataclass(frozen=True)
class TaggedText:
    """Sentences as columns of strings.

    columns: the columns that features are made of, in the order of the file, and `tags`, None where text is read
    without tags. offsets: sentence s is the tokens offsets[s]:offsets[s + 1]; no sentence is empty.
    notes: what the reader should know, one sentence each, with counts.
    """

    columns: tuple[TextColumn, ...]
    tags: TextColumn | None
    offsets: Offsets
    notes: tuple[str, ...] = ()
    source: str = "sentences"

    def __len__(self) -> int:
        """Sentences."""
        return len(self.offsets) - 1

    @property
    def tokens(self) -> int:
        """Tokens of all sentences."""
        return int(self.offsets[-1])
