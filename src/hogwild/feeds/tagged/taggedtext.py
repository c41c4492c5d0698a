"""Sentences of tokens in columns, as files of tagged text hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.arrays import Ids, Offsets


@dataclass(frozen=True)
class TextColumn:
    """One column over all tokens: values[codes[t]] is what token t has in it. Each value stands there once."""

    name: str
    codes: Ids
    values: tuple[str, ...]

    def strings(self, start: int = 0, end: int | None = None) -> list[str]:
        """What the tokens from `start` to `end` have in the column.

        >>> TextColumn("w", np.array([0, 1, 0], np.int32), ("to", "be")).strings(1)
        ['be', 'to']
        """
        values = self.values
        return [values[code] for code in self.codes[start:end].tolist()]


@dataclass(frozen=True)
class Origin:
    """What is needed to write sentences again as they were read.

    format: conll, conllu, segmented or jsonl.
    columns: all columns of the file in its order, also those that no feature is made of and that of the tags; none
    for JSON lines.
    separator: what stands between columns.
    lines: the objects of JSON lines as they were read, empty sentences too.
    places: in formats with one sentence a line, the place of each sentence among `total` lines.
    """

    format: str
    columns: tuple[TextColumn, ...] = ()
    separator: str = " "
    lines: tuple[str, ...] = ()
    places: Offsets = field(default_factory=lambda: np.zeros(0, np.int64))
    total: int = 0


@dataclass(frozen=True, repr=False)
class TaggedText:
    """Sentences as columns of strings.

    columns: the columns that features are made of, in the order of the file (in that of the schema, if text is read
    with one), and `tags`, None where text is read without tags.
    offsets: sentence s is the tokens offsets[s]:offsets[s + 1]; no sentence is empty.
    notes: what the reader should know, one sentence each, with counts.
    schema: what makes `read_tagged` find the same columns in another file; JSON values only, under the keys `format`,
    `columns`, `fields` and `tag`.
    origin: what is needed to write the sentences again; None for text that was not read from files.
    """

    columns: tuple[TextColumn, ...]
    tags: TextColumn | None
    offsets: Offsets
    notes: tuple[str, ...] = ()
    source: str = "sentences"
    schema: dict[str, Any] = field(default_factory=dict)
    origin: Origin | None = None

    def __len__(self) -> int:
        """Sentences."""
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        tags = f", {len(self.tags.values)} tags" if self.tags else ""
        return f"<TaggedText of {self.source}: {len(self):,} sentences, {self.tokens:,} tokens, columns {names}{tags}>"

    @property
    def tokens(self) -> int:
        """Tokens of all sentences."""
        return int(self.offsets[-1])
