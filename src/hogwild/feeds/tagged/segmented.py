"""One sentence a line, with white space between words: tokens are characters, whose tags say where in a word each
stands; or tokens are the words themselves, without tags."""

from __future__ import annotations

from itertools import chain

import numpy as np

from hogwild.arrays import Offsets
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.tagged.columns import TAGS, WORDS, Asked, ColumnPlan
from hogwild.feeds.tagged.conll import run_lengths
from hogwild.feeds.tagged.text import Gathering, Origin, TextColumn
from hogwild.messages import counted

BEGIN, MIDDLE, END, SINGLE = "BMES"
_BY_ENDS = np.frombuffer(f"{MIDDLE}{BEGIN}{END}{SINGLE}".encode(), np.uint8)  # neither, begins, ends a word, both
_NEWLINE = 10
_LAST_GAP = 0x3000
_GAPS = np.array([chr(code).isspace() for code in range(_LAST_GAP + 1)])


class SegmentedReader:
    """Takes one file after the other. Without tags white space is left out, so that raw text will do."""

    def __init__(self, gathering: Gathering, asked: Asked) -> None:
        if asked.config.columns or asked.config.tag_column:
            raise ConfigError("segmented text has no columns; leave out --columns and --tag-column, or check --format.")
        self.gathering, self.with_tags = gathering, asked.with_tags
        self.plan = ColumnPlan((WORDS, TAGS), 1)
        self._places: list[Offsets] = []
        self._lines = self._divided = 0
        gathering.open(2 if self.with_tags else 1)

    def read(self, source: Source) -> None:
        """Take the sentences of a file."""
        for block in self.gathering.blocks(source):
            text = block.text.tobytes().decode()
            letters = np.frombuffer(text.encode("utf-32-le"), np.uint32)
            gaps = (letters <= _LAST_GAP) & _GAPS[np.minimum(letters, _LAST_GAP)]
            lines = self._lines + np.cumsum(letters == _NEWLINE)
            self._lines = int(lines[-1])
            # A block ends with a gap, which so stands before its first letter too.
            begins, ends = np.roll(gaps, 1)[~gaps], np.roll(gaps, -1)[~gaps]
            lines = lines[~gaps]
            lengths = run_lengths(lines)
            self._divided += int((run_lengths(lines[begins]) > 1).sum())
            self._places.append(lines[np.cumsum(lengths) - lengths])
            tags = _BY_ENDS[begins + 2 * ends].tobytes().decode()
            values = ("".join(text.split()), tags)  # the tags are not taken where they are not wanted
            codes = [coder.codes(column) for coder, column in zip(self.gathering.coders, values, strict=False)]
            self.gathering.add(codes, lengths)

    def origin(self, columns: tuple[TextColumn, ...]) -> Origin:
        """What the sentences are written with again; a line without words stays one."""
        return Origin("segmented", columns[:1], " ", (), np.concatenate(self._places), self._lines)

    def notes(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """What is odd."""
        if self.with_tags or not self._divided:
            return []
        return [f"White space in {counted(self._divided, 'line')} left out: words are found anew."]


class TokensReader:
    """Takes one file after the other, a line of tokens a sentence. For prediction only: there are no tags."""

    def __init__(self, gathering: Gathering, asked: Asked) -> None:
        if asked.config.columns or asked.config.tag_column:
            raise ConfigError("lines of tokens have no columns; leave out --columns and --tag-column.")
        if asked.with_tags:
            raise InputError("lines of tokens have no tags to train or evaluate on; --format tokens is for prediction.")
        self.gathering = gathering
        self.plan = ColumnPlan((asked.needed[0] if len(asked.needed) == 1 else WORDS,))
        gathering.open(1)

    def read(self, source: Source) -> None:
        """Take the sentences of a file; lines without tokens are left out."""
        for block in self.gathering.blocks(source):
            lines = [line.split() for line in block.text.tobytes().split(b"\n")]  # by ASCII blanks, as columns are
            lengths = np.array([len(line) for line in lines if line], np.int64)
            self.gathering.add([self.gathering.coders[0].codes(list(chain.from_iterable(lines)))], lengths)

    def origin(self, columns: tuple[TextColumn, ...]) -> Origin:
        """They are written again as columns, which have place for tags."""
        return Origin("conll", columns)

    def notes(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """Nothing was decided."""
        return []
