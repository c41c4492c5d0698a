"""Sentences of tokens in columns, as they are read from files of tagged text; and their tags as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.config import TaggingConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, check_utf8, replaced_notes
from hogwild.feeds.io.source import Source
from hogwild.messages import counted, shown


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

    def part(self, offsets: Offsets, tokens: Any) -> TaggedText:
        """Some sentences: their offsets, and what chooses their tokens. What would write them again is not kept."""
        columns = tuple(replace(column, codes=column.codes[tokens]) for column in self.columns)
        tags = None if self.tags is None else replace(self.tags, codes=self.tags.codes[tokens])
        return replace(self, columns=columns, tags=tags, offsets=offsets, notes=(), origin=None)


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

    def columns(self, names: Sequence[str]) -> tuple[TextColumn, ...]:
        """The columns over all sentences; fewer than names, where no more were opened."""
        parts = zip(names, self._codes, self.coders, strict=False)
        return tuple(TextColumn(name, np.concatenate(codes), coder.strings()) for name, codes, coder in parts)

    def offsets(self) -> Offsets:
        """Where sentences begin and end."""
        return np.concatenate([np.zeros(1, np.int64), *self._lengths]).cumsum()

    def notes(self) -> list[str]:
        """What to tell the user. Raises InputError when too many sentences were malformed."""
        notes = [f"{counted(number, what)} left out." for what, number in self.left_out.items() if number]
        return [*notes, *replaced_notes(self.replaced), *self.bad.notes()]


# -- tags to numbers: ranked by frequency, or those of a model --------------------------------------------------------

_SHOWN = 5


class EncodedTags(NamedTuple):
    """The tag of each token; names of tags; tags that are not among them, with the number of their tokens."""

    codes: Ids
    names: tuple[str, ...]
    strange: dict[str, int]
    notes: tuple[str, ...] = ()


def encode_tags(column: TextColumn | None, tokens: int, tags: Sequence[str] | None) -> EncodedTags:
    """Encode the tags of so many tokens; all are -1 where there is no column of tags.

    Tags are ranked by falling frequency, those that are equally frequent by their first place. With `tags`, those of a
    model, others become -1.
    """
    if column is None:
        return EncodedTags(np.full(tokens, -1, np.int32), tuple(tags or ()), {})
    counts = np.bincount(column.codes, minlength=len(column.values))
    firsts = np.zeros(len(counts), np.int64)
    firsts[column.codes[::-1]] = np.arange(tokens)[::-1]  # where a code comes twice the last one stays: the first
    final = np.full(len(counts), -1, np.int32)
    if tags is None:
        order = np.lexsort((firsts, -counts))[: int(np.count_nonzero(counts))]
        final[order] = np.arange(len(order), dtype=np.int32)
        return EncodedTags(final[column.codes], tuple(column.values[k] for k in order.tolist()), {})
    check_distinct(tags, "tags")
    places = {tag: place for place, tag in enumerate(tags)}
    strange: dict[str, int] = {}
    for code in np.argsort(firsts, kind="stable").tolist():
        tag = column.values[code]
        if tag in places:
            final[code] = places[tag]
        elif counts[code]:
            strange[tag] = int(counts[code])
    return EncodedTags(final[column.codes], tuple(tags), strange, _strange_note(strange, tokens))


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise InputError if a feature or a tag of a model stands there twice."""
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"the {what} of the model hold `{shown(twice)}` twice; it is damaged.")


def _strange_note(strange: dict[str, int], tokens: int) -> tuple[str, ...]:
    if not strange:
        return ()
    named = ", ".join(f"`{shown(tag)}` ({count:,})" for tag, count in list(strange.items())[:_SHOWN])
    more = f" and {len(strange) - _SHOWN} more" if len(strange) > _SHOWN else ""
    total = counted(sum(strange.values()), "token")
    return (f"{total} of {tokens:,} with a tag that training has not seen: {named}{more}; they are scored as wrong.",)
