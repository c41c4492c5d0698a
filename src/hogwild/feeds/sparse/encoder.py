"""What an encoder is, and what it yields: runs of rows as arrays, and at the end what holds for all of them.

`BlockEncoder` is what encoders share whose files compiled code parses a block at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from hogwild.arrays import Floats, Ids, Offsets, Slots, fits_float32, number_of
from hogwild.config import FeedConfig
from hogwild.errors import InputError, ModelError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import BLOCK, Bytes, Source
from hogwild.messages import counted

_SPARE = 1 << 16  # bytes that a block may be longer than usual, and still fit arrays that are used again


class Chunk(NamedTuple):
    """Rows in the order of one file. `values` is empty when all are 1; lines[i] is the line number of row i.

    file: the place of that file in the sequence of sources.
    slots: the slot of each entry, where samples have several; dense: (rows, columns), the numbers beside them;
    weights: the importance of each row. Either all chunks have them or none.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    targets: Floats
    lines: Offsets
    file: int = 0
    slots: Slots | None = None
    dense: Floats | None = None
    weights: Floats | None = None

    def below(self, limit: int) -> Chunk:
        """The same rows without ids from `limit` on; the chunk itself if it has none. It has no slots."""
        keep = self.ids < limit
        if keep.all():
            return self
        before = np.concatenate(([0], np.cumsum(keep)))
        ends = np.concatenate(([0], np.cumsum(self.lengths)))
        values = self.values[keep] if len(self.values) else self.values
        return self._replace(lengths=np.diff(before[ends]), ids=self.ids[keep], values=values)


@dataclass(frozen=True)
class Summary:
    """What an encoder knows when all files are read; see Feed for the meaning of the fields.

    first_id: the id in the chunks that stands for feature 0 (known only at the end for svmlight files); smaller
    ids must not occur.
    relabel: where the order of the labels is known only at the end, the final target of each target in the chunks
    (0, 1, …); empty: the targets are final. Names of slots and of dense columns stand in the schema under `slots` and
    `dense`. scales: factors for the values of the features 0, 1, … that it covers,
    known only at the end; empty: the values are final. dense_scales: the same for the columns of the dense matrix, and
    dense_shifts what is taken from them before that; they cover all columns.
    fills, dense_fills: what stands there instead of NaN, before it is scaled; empty: there is none.
    remap: the feature of each id in the chunks, where ids are given before it is known which features there are (then
    first_id is 0). remap_slots: the same for slots, in rising order.
    sets: where rows have several labels, those of each target.
    weight: what the weights of the rows are multiplied by, so that their mean is 1.
    """

    features: int
    labels: tuple[str, ...] = ()
    schema: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    first_id: int = 0
    relabel: tuple[int, ...] = ()
    scales: Sequence[float] = ()
    dense_scales: tuple[float, ...] = ()
    dense_shifts: tuple[float, ...] = ()
    fills: Sequence[float] = ()
    dense_fills: tuple[float, ...] = ()
    remap: Ids | None = None
    remap_slots: tuple[int, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    weight: float = 1.0


class Encoder(Protocol):
    """Turns sources of one format into chunks. Made as `SomeEncoder(config: FeedConfig, schema: dict | None)`.

    The schema is that of an earlier feed (empty or None for a first one): then the same words get the same ids.
    `summary` is called once, after `chunks` is exhausted. Chunks hold one to a few megabytes, so that memory
    stays bounded; a chunk never spans two files. Its arrays belong to the encoder, which may write to them when the
    next chunk is asked for: copy what must last. `options` names the fields of FeedConfig that change the result;
    an encoder that has no such attribute depends on all of them. `described`, if there is one, is what it read
    elsewhere, as JSON values.
    """

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""


@dataclass
class Block:
    """A block of lines or records, where it stands, and the arrays that it is parsed into.

    line: the number of its first line or record. parsed: what the format's `room` gives.
    """

    text: Bytes
    file: int
    line: int
    source: Source
    parsed: Any

    def where(self, line: int, place: int) -> str:
        """`file:line:column` of a byte of the text; `line` counts from 0 in the block."""
        return self.source.place(self.line + line, place - self.line_start(place) + 1)

    def line_start(self, place: int) -> int:
        """Where the line of a byte begins."""
        return self.text[:place].tobytes().rfind(b"\n") + 1

    def word_at(self, place: int) -> str:
        """The word at a place, as messages show it; empty at a blank or the end of a line."""
        line = self.text[place : place + 4096].tobytes().split(b"\n", 1)[0]
        words = line.split(None, 1) if line[:1] not in (b" ", b"\t", b"\r") else []
        return words[0].decode("utf-8", "backslashreplace") if words else ""


class BlockEncoder(ABC):
    """Reads files into chunks: blocks are parsed by threads and delivered in order; one subclass a format.

    The arrays of a chunk are used again for later ones: they hold until the next chunk is asked for.

    counters: the module of the parser, whose ROWS, ENTRIES, VALUED, BAD and so on are the places in `parsed.counts`.
    """

    form = ""
    counters: Any
    things = "lines"
    block_size = BLOCK  # bytes of text that are parsed at a time

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        self.config = config
        self.schema = dict(schema or {})
        self.threads = threads
        self.bad = BadLines(config, self.things)
        self.counts = np.zeros(self.counters.COUNTS, np.int64)
        self.left_out = 0  # values whose ids the schema does not know
        self._free: list[Any] = []  # arrays that are used again

    # -- what a format is -------------------------------------------------------------------------------------------

    @abstractmethod
    def room(self, size: int) -> Any:
        """Arrays for a block of that many bytes."""

    @abstractmethod
    def parse(self, block: Block) -> None:
        """Fill the arrays of a block; called by threads."""

    @abstractmethod
    def report(self, block: Block, error: Sequence[int]) -> None:
        """Report to `bad` what is wrong; the numbers are a row of `parsed.errors`."""

    @abstractmethod
    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""

    def begin(self, sources: Sequence[Source]) -> None:
        """Look at the files before they are read."""

    def note(self, block: Block, work: Any) -> None:
        """Take what a block says of the whole; called in order, before its chunk is made."""

    def chunk(self, block: Block, work: Any) -> Chunk:
        """The rows of a block. work: what `work` gave for it."""
        return self.rows(block, block.parsed.ids)

    # -- reading ----------------------------------------------------------------------------------------------------

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        self.begin(sources)
        for block, work in in_order(self.work, self.blocks(sources), self.threads):
            self._report(block)
            self.counts += block.parsed.counts
            self.note(block, work)
            if block.parsed.counts[self.counters.ROWS]:
                yield self.chunk(block, work)
            self.finish(block)

    def blocks(self, sources: Sequence[Source]) -> Iterator[Block]:
        """All blocks of all sources, in order."""
        for file, source in enumerate(sources):
            for line, text in source.blocks(self.block_size):
                most = self.block_size + _SPARE
                used = self._free and len(text) <= most
                yield Block(text, file, line, source, self._free.pop() if used else self.room(max(len(text), most)))

    def work(self, block: Block) -> Any:
        """What threads do with a block."""
        block.parsed.counts[:] = 0
        with np.errstate(over="ignore", invalid="ignore"):  # only the interpreter, with the compiler off, would say so
            self.parse(block)

    def finish(self, block: Block) -> None:
        """The rows of a block have been used."""
        if len(block.text) <= self.block_size + _SPARE:
            self._free.append(block.parsed)

    def rows(self, block: Block, ids: Ids) -> Chunk:
        """The rows of a block whose entries have these ids."""
        parsed, counts = block.parsed, block.parsed.counts
        rows, entries = int(counts[self.counters.ROWS]), int(counts[self.counters.ENTRIES])
        values = parsed.values[: entries if counts[self.counters.VALUED] else 0]
        lines = parsed.lines[:rows] + block.line
        return Chunk(parsed.lengths[:rows], ids[:entries], values, parsed.targets[:rows], lines, block.file)

    def known_only(self, chunk: Chunk, limit: int) -> Chunk:
        """A chunk without ids from `limit` on, which the schema does not know."""
        known = chunk.below(limit)
        self.left_out += len(chunk.ids) - len(known.ids)
        return known

    def _report(self, block: Block) -> None:
        counts, told = block.parsed.counts, block.parsed.errors
        errors = int(counts[self.counters.BAD])
        for error in told[:errors].tolist():
            self.report(block, error)
        self.bad.count += max(0, errors - len(told))
        self.bad.seen(int(counts[self.counters.ROWS]) + errors)

    def label_notes(self) -> Iterator[str]:
        """What to tell of rows without a label."""
        if rows := int(self.counts[self.counters.UNLABELLED]):
            yield f"{counted(rows, 'row')} without a label, which predictions do not need."


def left_out_notes(left_out: int, features: int) -> Iterator[str]:
    """What to tell of values whose ids a model does not know."""
    if left_out:
        yield f"{counted(left_out, 'value')} left out: their ids lie past the {features:,} known features."


def rare_notes(rare: tuple[int, int], unseen: int, min_count: int, what: tuple[str, str]) -> list[str]:
    """What to tell of categories that are rare, with how often they occur, and of those that a model does not know.

    what: a place where a category stands, and where it belongs, as `("field", "column")`.
    """
    noun, home = what
    told = f"are the rare feature of their {home}"
    notes = []
    if rare[0]:
        seen = f"seen less than {min_count} times ({counted(rare[1], noun)})"
        notes.append(f"{counted(rare[0], 'category')} {seen} {told}.")
    if unseen:
        fate = f"saw rarely or never {told}" if min_count > 1 else "never saw left out"
        notes.append(f"{counted(unseen, noun)} with categories that training {fate}.")
    return notes


@contextmanager
def reading_schema(schema: Mapping[str, Any], form: str, called: str = "", part: str = "slots") -> Iterator[None]:
    """Raise InputError if a schema is that of another format, ModelError if it makes no sense.

    called: what messages call the format; part: what the schema says of it.
    """
    if schema and schema.get("format") != form:
        known = schema.get("format", "another kind of data")
        raise InputError(f"the model was trained on {known}, but this is {called or form}; give data of the same kind.")
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        raise ModelError(f"what the model says of its {part} is damaged; copy the model again.") from None


def overflows(word: str) -> bool:
    """Whether a word is a number, but none that float32 has as a finite one."""
    number = number_of(word)
    return number is not None and not fits_float32(number)
