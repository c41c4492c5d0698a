"""Sentences as they are read, a chunk at a time: codes of their columns, their lengths, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.config import TaggingConfig
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, check_utf8
from hogwild.feeds.io.source import Source
from hogwild.feeds.sparse.labels import counted
from hogwild.feeds.tagged.taggedtext import TextColumn

REMEDY = "Correct the line, check --format, or skip such sentences with --bad-lines skip."


class Coder(dict[Any, int]):
    """Numbers different values (texts, or their bytes) as they come.

    >>> Coder().codes(["to", "be", "to"]).tolist()
    [0, 1, 0]
    """

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number

    def codes(self, values: Collection[Any]) -> Ids:
        """The numbers of values; new ones get the next."""
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))

    def strings(self) -> tuple[str, ...]:
        """The values in the order of their numbers."""
        return tuple(value.decode() if isinstance(value, bytes) else value for value in self)


class Gathering:
    """What all readers of tagged text share. `left_out` counts by what it is called: `comment line`.

    A reader takes checked blocks from `blocks`, reports malformed sentences to `bad`, and adds the others.
    """

    def __init__(self, config: TaggingConfig) -> None:
        self.config = config
        self.bad = BadLines(config, "sentences")
        self.left_out: Counter[str] = Counter()
        self.replaced = 0
        self.sentences = self.tokens = 0
        self.coders: list[Coder] = []
        self._codes: list[list[Ids]] = []
        self._lengths: list[Offsets] = []

    def blocks(self, source: Source) -> Iterator[Block]:
        """The blocks of a file, in UTF-8."""
        for block in blocks_of(source, 0, 0):
            text, replaced = check_utf8(block, self.config.invalid_utf8 == "replace")
            self.replaced += replaced
            yield block._replace(text=text)

    def open(self, columns: int) -> None:
        """There are so many columns."""
        self.coders = [Coder() for _ in range(columns)]
        self._codes = [[] for _ in range(columns)]

    def add(self, codes: Sequence[Ids], lengths: Offsets) -> None:
        """More sentences: the codes of each column, and how many tokens each sentence has."""
        for kept, more in zip(self._codes, codes, strict=True):
            kept.append(more)
        self._lengths.append(lengths)
        self.sentences += len(lengths)
        self.tokens += int(lengths.sum())

    def report(self, problem: str, remedy: str = REMEDY) -> None:
        """A sentence is malformed: `problem` is `file:line: what`."""
        self.bad.report(problem, remedy)

    def column(self, place: int, name: str) -> TextColumn:
        """A column over all sentences."""
        parts = self._codes[place]
        return TextColumn(name, np.concatenate(parts) if parts else np.zeros(0, np.int32), self.coders[place].strings())

    def offsets(self) -> Offsets:
        """Where sentences begin and end."""
        return np.concatenate([np.zeros(1, np.int64), *self._lengths]).cumsum()

    def notes(self) -> list[str]:
        """What to tell the user. Raises InputError when too many sentences were malformed."""
        notes = [f"{counted(number, what)} left out." for what, number in self.left_out.items() if number]
        if self.replaced:
            notes.append(f"{counted(self.replaced, 'byte')} not UTF-8, read as `?`.")
        return [*notes, *self.bad.notes()]
