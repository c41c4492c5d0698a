"""`hogwild inspect MODEL --row FILE:LINE`: a line of a file as the model reads it, and what makes up its prediction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from hogwild.cli.apply.lines import LINES, TABLES, written
from hogwild.cli.apply.options import RECOMMENDERS, ReadConfig, TaggedConfig
from hogwild.cli.apply.recommenders import open_pairs
from hogwild.cli.apply.rows import config_for, open_for
from hogwild.cli.apply.taggers import BY_LINES, open_tagged
from hogwild.config import FeedConfig, Format
from hogwild.errors import ConfigError, InputError, brief
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.open import encoder_for, format_of
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.spellings import Spellings
from hogwild.feeds.sparse.store import make_feed
from hogwild.programs.inspecting.contributions import Explanation, explain_pair, explain_row
from hogwild.programs.inspecting.tagged import explain_token
from hogwild.programs.sparse.supervised import Supervised
from hogwild.programs.store import Model
from hogwild.programs.taggers.tagger import Tagger


class Place(NamedTuple):
    """A line of a file, counted from 1."""

    file: str
    line: int

    @classmethod
    def of(cls, text: str) -> Place:
        """From `FILE:LINE`; ConfigError if it is none."""
        file, colon, number = text.rpartition(":")
        if not colon or not file or not number.isdecimal() or not number.isascii() or int(number) < 1:
            raise ConfigError(f"--row is {brief(text)}; write FILE:LINE, with the number of a line from 1 on.")
        if file == "-":
            raise ConfigError("--row reads a file, and not standard input; name one.")
        return cls(file, int(number))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def explain_place(model: Model, place: Place, reading: ReadConfig, tag: str) -> list[Explanation]:
    """What makes up the predictions of a line: mostly one; of a line that is a sentence, one for each token."""
    program: Any = model.program
    if isinstance(program, Tagger):
        found = _of_tokens(model, place, reading, tag)
    elif program.name in RECOMMENDERS:
        if tag:
            raise ConfigError("--tag is for taggers and classifiers, and this model is a recommender; leave it out.")
        found = _of_pairs(model, place, reading)
    elif isinstance(program, Supervised):
        feed, own = _row(model, place, reading)
        found = [explain_row(program, feed, own, tag)]
    else:
        raise ConfigError(f"--row explains a prediction, and a {program.name} model gives none that is made of terms.")
    several = len(found) > 1
    return [replace(each, where=f"{place}:{k + 1}" if several else str(place)) for k, each in enumerate(found)]


# -- lines of files ---------------------------------------------------------------------------------------------------


class _Cut(NamedTuple):
    """A record of a file, with the first one before it, which may be a header; after the first, with the next.

    first, rest: both in the order of the file. numbers: of each line its own in the file. is_first: the first was asked
    for.
    """

    first: bytes
    rest: bytes
    numbers: tuple[int, ...]
    is_first: bool


class _Excerpt(Source):
    """A file of lines that were cut out of another."""

    numbers: tuple[int, ...] = ()

    def place(self, line: int, column: int = 0) -> str:
        return super().place(self.numbers[min(line, len(self.numbers)) - 1], column)


@contextmanager
def _excerpt(data: bytes, place: Place, numbers: tuple[int, ...]) -> Iterator[Source]:
    with written(data) as path:
        source = _Excerpt(place.file, path, FeedConfig())
        source.numbers = numbers
        yield source


def _lines(source: Source) -> Iterator[tuple[int, bytes]]:
    for first, text in source.blocks():
        for k, line in enumerate(text.tobytes().split(b"\n")[:-1]):
            yield first + k, line + b"\n"


def _records(source: Source, quoted: bool) -> Iterator[tuple[int, list[bytes]]]:
    """Records and the lines where they begin; quoted: they go on to the next line inside of quotes."""
    begun: list[bytes] = []
    for number, line in _lines(source):
        begun.append(line)
        if not quoted or sum(each.count(b'"') for each in begun) % 2 == 0:
            yield number - len(begun) + 1, begun
            begun = []
    if begun:
        yield number - len(begun) + 1, begun


def _cut(source: Source, place: Place, quoted: bool) -> _Cut:
    """The record that was asked for. Raises InputError for a line that is not there, blank or inside of a record."""
    first: tuple[int, list[bytes]] | None = None
    wanted: tuple[int, list[bytes]] | None = None
    last = 0
    for number, lines in _records(source, quoted):
        last = number + len(lines) - 1
        if number <= place.line <= last:
            if number != place.line:
                raise InputError(f"{place} is inside of a record that begins in line {number}; name that line.")
            if not b"".join(lines).strip():
                raise InputError(f"{place} is blank; name a line that is a row.")
            wanted = number, lines
        elif (first is None or wanted is not None) and b"".join(lines).strip():
            first = first or (number, lines)
        if first is not None and wanted is not None:
            break
    if wanted is None:
        raise _not_there(place, last)
    both = sorted([each for each in (first, wanted) if each is not None])
    numbers = tuple(number + k for number, lines in both for k in range(len(lines)))
    parts = [b"".join(lines) for _, lines in both]
    return _Cut(parts[0], b"".join(parts[1:]), numbers, both[0] is wanted)


def _not_there(place: Place, last: int) -> InputError:
    return InputError(f"{place} is not there: {place.file} has {last} {'line' if last == 1 else 'lines'}.")


def _row(model: Model, place: Place, reading: ReadConfig) -> tuple[Feed, list[str]]:
    """The line as a feed of one row, and the names of its hashed features."""
    config = replace(config_for(model, reading, unlabelled=True), cache=False)
    source = _one_source(place, config)
    form = format_of([source], config, model.schema)
    if form not in LINES or not model.schema:
        feed = open_for(model, (place.file,), reading, unlabelled=True)
        lines = np.arange(1, len(feed) + 1) if feed.lines is None else feed.lines
        found = np.flatnonzero(lines == place.line)
        if not len(found):
            raise InputError(f"{place} is no row: there are rows from {int(lines[0])} to {int(lines[-1])}.")
        return feed.part(found[:1], "row"), []
    cut = _cut(source, place, form in TABLES)
    exact = replace(config, format=cast(Format, form), bad_share=1.0, pipe="")
    feed, own = _read(cut.first + cut.rest, cut.numbers, place, exact, model)
    assert feed.lines is not None
    first = cut.first.count(b"\n")
    of_first, others = np.flatnonzero(feed.lines <= first), np.flatnonzero(feed.lines > first)
    if not cut.is_first and len(of_first):  # no header: only the row itself says what its features are called
        feed, own = _read(cut.rest, cut.numbers[first:], place, exact, model)
        others = np.arange(len(feed))
    chosen = of_first if cut.is_first else others
    if not len(chosen):
        raise _no_row(place)
    return feed.part(chosen[:1], "row"), own


def _no_row(place: Place) -> InputError:
    return InputError(f"{place} is no row, but a header, a comment or the like; name a line with data.")


def _read(
    data: bytes, numbers: tuple[int, ...], place: Place, config: FeedConfig, model: Model
) -> tuple[Feed, list[str]]:
    """Some lines as a feed, and the names of its hashed features."""
    with _excerpt(data, place, numbers) as source:
        encoder: Any = encoder_for(config.format, config, model.schema)
        if hasattr(encoder, "spellings"):
            encoder.spellings = Spellings()
        try:
            feed = make_feed(encoder, [source], "", keep=False)
        except InputError as error:
            if "no rows" in str(error):
                raise _no_row(place) from None
            raise
        own = encoder.spellings.names() if hasattr(encoder, "spellings") else []
        return replace(feed, schema=model.schema), own


def _one_source(place: Place, config: Any) -> Source:
    sources = open_sources(place.file, config)
    if len(sources) > 1:
        raise ConfigError(f"--row names {len(sources)} files; name one.")
    return sources[0]


# -- ratings and sentences --------------------------------------------------------------------------------------------


def _of_pairs(model: Model, place: Place, reading: ReadConfig) -> list[Explanation]:
    cut = _cut(_one_source(place, FeedConfig(pipe=reading.pipe)), place, quoted=False)
    plain = replace(reading, cache=False, pipe="")

    def read(data: bytes) -> Any:
        with _excerpt(data, place, cut.numbers) as source:
            return open_pairs(model, cast(Any, [source]), plain, with_ratings=False)

    try:
        first = len(read(cut.first))
    except InputError:  # a header alone
        first = 0
    if cut.is_first and not first:
        raise _no_row(place)
    feed = read(cut.first if cut.is_first else cut.first + cut.rest)
    return [explain_pair(model.program, feed, k) for k in range(0 if cut.is_first else first, len(feed))]


def _of_tokens(model: Model, place: Place, reading: ReadConfig, tag: str) -> list[Explanation]:
    form = reading.format if reading.format != "same" else model.schema.get("format", "conll")
    source = _one_source(place, FeedConfig(pipe=reading.pipe))
    first, lines, wanted = _sentence(source, place, by_lines=form in BY_LINES)
    plain = replace(reading, cache=False, pipe="")

    def read(some: list[bytes]) -> Any:
        with _excerpt(b"".join(some), place, tuple(range(first, first + len(some)))) as excerpt:
            return open_tagged(model, [excerpt], plain, TaggedConfig(), with_tags=False)

    feed = read(lines)
    if len(feed) != 1:
        raise InputError(f"{place} is no sentence with tokens; name a line of one.")
    if form in BY_LINES:
        return [explain_token(model.program, feed, k, tag) for k in range(feed.tokens)]
    before = read(lines[: wanted - 1]).tokens if wanted > 1 else 0
    if read(lines[:wanted]).tokens == before:
        raise InputError(f"{place} is no token, but a comment or the like; name the line of one.")
    return [explain_token(model.program, feed, before, tag)]


def _sentence(source: Source, place: Place, by_lines: bool) -> tuple[int, list[bytes], int]:
    """The sentence that a line is, or is of: the number of its first line, its lines, and which of them was asked for,
    from 1. by_lines: every line is one."""
    lines: list[bytes] = []
    first, last, wanted = 1, 0, 0
    for number, line in _lines(source):
        last = number
        if number == place.line and not line.strip():
            raise InputError(f"{place} is blank; name a line with tokens.")
        if by_lines:
            if number == place.line:
                return number, [line], 1
        elif line.strip():
            first = first if lines else number
            lines.append(line)
            wanted = len(lines) if number == place.line else wanted
        elif wanted:
            break
        else:
            lines = []
    if not wanted:
        raise _not_there(place, last)
    return first, lines, wanted
