"""TFRecord files of tf.train.Example. Blocks of records are parsed by threads, delivered in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import BLOCK, Bytes, Source, fill
from hogwild.feeds.slots.description import BINARY, SlotPlan, known_plan, read_slots
from hogwild.feeds.slots.encoder import SlotEncoder
from hogwild.feeds.sparse.encoder import Block, BlockEncoder, Chunk, Summary, left_out_notes, reading_schema
from hogwild.feeds.tfrecord.plan import KINDS, ExamplePlan, features_of, find_plan, listed, wanted_slots, with_widths
from hogwild.kernels.tfrecord import examples as kernel
from hogwild.kernels.tfrecord.examples import FOOTER, HEADER, Keyed, Parsed, Terms, Wanted
from hogwild.kernels.tfrecord.records import BROKEN, READ_AHEAD, TOO_LONG, cut_records, parse_records
from hogwild.messages import counted, shown

_LAST_ID = 2**31 - 1
_SAMPLED = 32  # records from which the plan is made
_REMEDY = "Correct the record, or skip such records with --bad-lines skip."
_AGAIN = "Copy or download the file again, or skip such records with --bad-lines skip."
_COPY = "copy or download the file again"


class RecordBlock(NamedTuple):
    """Whole records of a file, the first of which has the number `record` and stands at byte `offset`.

    room: the memory of `data`, with READ_AHEAD bytes after it. problem: why the file cannot be read any further.
    """

    data: Bytes
    room: Bytes
    record: int
    offset: int
    problem: str = ""

    def record_at(self, place: int) -> bytes:
        """The data of the record that begins there."""
        size = int.from_bytes(self.data[place : place + 8].tobytes(), "little")
        return self.data[place + HEADER : place + HEADER + size].tobytes()

    def records(self) -> Iterator[bytes]:
        """The data of each record."""
        at = 0
        while at < len(self.data):
            yield (data := self.record_at(at))
            at += HEADER + len(data) + FOOTER


def new_room(size: int) -> Bytes:
    """Memory for blocks of that many bytes."""
    return np.empty(size + READ_AHEAD, np.uint8)


def record_blocks(source: Source, take: Callable[[], Bytes] | None = None, size: int = BLOCK) -> Iterator[RecordBlock]:
    """The records of a file in blocks of about `size` bytes.

    take: gives memory made by `new_room(size)`, new or used before. A record that is longer than a block has one of its
    own; one longer than `source.max_line` is a problem before memory is taken for it. Such a block is the last.
    """
    take = take or (lambda: new_room(size))
    record, offset = 1, 0
    kept: Bytes = np.zeros(0, np.uint8)  # the beginning of a record that the last block cut off
    wanted = size
    with source.open() as stream:
        while True:
            room = take() if wanted <= size else new_room(wanted)
            room[: len(kept)] = kept
            # One byte more than there is at the end of the file says that it has ended.
            filled = len(kept) + fill(stream, room[len(kept) : len(room) - READ_AHEAD].data)
            ended = filled < len(room) - READ_AHEAD
            end, records, state, length = map(int, cut_records(room, filled, source.max_line))
            problem = ""
            if state in (BROKEN, TOO_LONG) or (ended and end < filled):
                problem = _problem(source, room[end:filled], record + records, offset + end, state)
            if records or problem:
                kept = room[end:filled].copy()  # before the block is given away
                yield RecordBlock(room[:end], room, record, offset, problem)
                record, offset = record + records, offset + end
            else:
                kept = room[:filled].copy()
            if ended or problem:
                return
            # Doubling: memory grows with what the file really has.
            wanted = max(size, min(2 * len(kept), HEADER + length + FOOTER)) if len(kept) >= HEADER else size


def place_of(source: Source, record: int, offset: int) -> str:
    """Where a record stands, for messages."""
    return f"{source.name}: record {record} (byte {offset})"


def _problem(source: Source, rest: Bytes, record: int, offset: int, state: int) -> str:
    where = place_of(source, record, offset)
    length = int.from_bytes(rest[:8].tobytes(), "little")
    if state == BROKEN:
        if record == 1:
            return f"{where}: its length has a wrong checksum; is this a TFRecord file? If so, {_COPY}."
        return f"{where}: its length has a wrong checksum, so that the records after it cannot be found; {_COPY}."
    if state == TOO_LONG:
        most = f"more than the {source.max_line} that a record may have"
        return f"{where}: it is {length} bytes long, {most}; raise --max-line if this is right."
    needed = f"of {HEADER + length + FOOTER} bytes" if len(rest) >= HEADER else f"of at least {HEADER + FOOTER} bytes"
    return f"{where}: the file ends within the record, after {len(rest)} {needed}; {_COPY}."


@dataclass
class _Block(Block):
    """Records, and the arrays of their slots."""

    beside: Keyed
    records: RecordBlock


class TfrecordEncoder(SlotEncoder):
    """Reads TFRecord files into chunks; the line of a row is the number of its record.

    A list of ids with values beside it (ids stay as they are in the file), or features as a description of slots says.
    """

    form = "tfrecord"
    counters = kernel
    things = "records"
    options = (
        "features", "indices", "values", "label", "binary", "ignore", "categories", "hash_bits", "hash_seed",
        "shared_ids", "min_count", "scale", "bad_lines", "bad_share", "max_line", "pipe", "unlabelled",
    )  # fmt: skip

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        super().__init__(config, schema, threads)
        self.largest, self.known = -1, 0
        self.found: list[str] = []  # notes on what was found out
        self.plan: ExamplePlan | None = None
        self.slots: SlotPlan | None = None
        self.wanted: Wanted | None = None
        with reading_schema(self.schema, self.form):
            if "plan" in self.schema:
                self._follow_slots(known_plan(self.schema["plan"]))
            elif self.schema:
                self._follow(ExamplePlan.known(self.schema, config))
                self.known = int(self.schema["features"])
        if not self.schema and config.slots:
            if config.indices or config.values or config.binary:
                raise ConfigError("--slots describes all features; leave out --indices, --values and --binary.")
            self.slots = read_slots(config.slots, config.label, config.ignore)
        self.described = self.slots.schema() if self.slots else []

    # -- what the features are --------------------------------------------------------------------------------------

    def _follow(self, plan: ExamplePlan) -> None:
        self.plan, self.wanted = plan, plan.wanted()
        limited = self.config.features and not self.schema
        most = np.uint64(self.config.features - 1 if limited else _LAST_ID)
        self.terms = Terms(most, 0, False, self.config.unlabelled, False, self.bad.stop)
        self.read = [plan.indices, plan.label, plan.values]

    def _follow_slots(self, plan: SlotPlan) -> None:
        self.slots, self.wanted = plan, wanted_slots(plan)
        columns, binary = len(plan.columns), plan.label.label == BINARY
        self.terms = Terms(np.uint64(0), columns, True, self.config.unlabelled, binary, self.bad.stop)
        self.read = [slot.name for slot in plan.slots if slot.used]
        self.open(plan.names, plan.columns)

    def _find_out(self, block: RecordBlock, source: Source) -> None:
        """Look at the first records."""
        records: list[Any] = []
        for data in islice(block.records(), _SAMPLED):
            try:
                records.append(features_of(data))
            except ValueError:
                continue  # malformed, which will be reported
        if self.slots is not None:
            self._follow_slots(with_widths(self.slots, records[0] if records else {}))
            return
        plan, self.found = find_plan(records or [{}], self.config, source.name)
        self._follow(plan)

    # -- reading ----------------------------------------------------------------------------------------------------

    def blocks(self, sources: Sequence[Source]) -> Iterator[_Block]:
        """All blocks of all sources, in order."""
        for file, source in enumerate(sources):
            taken: list[tuple[Bytes, Parsed, Keyed]] = []

            def take(taken: list[tuple[Bytes, Parsed, Keyed]] = taken) -> Bytes:
                taken[:] = [self._free.pop()] if self._free else []
                return taken[0][0] if taken else new_room(self.block_size)

            for block in record_blocks(source, take, self.block_size):
                if self.wanted is None and len(block.data):
                    self._find_out(block, source)
                used = taken and taken[0][0] is block.room
                parsed, beside = taken[0][1:] if used else self.room(len(block.room))
                yield _Block(block.data, file, block.record, source, parsed, beside, block)

    def room(self, size: int) -> tuple[Parsed, Keyed]:
        """Arrays for a block of that many bytes."""
        return kernel.room_for(size, len(self.wanted.roles) if self.wanted else 0, self.slots is not None)

    def cells(self, block: Block) -> Keyed:
        """The arrays of a block with slots."""
        assert isinstance(block, _Block)
        return block.beside

    def parse(self, block: Block) -> None:
        """Fill the arrays of a block."""
        assert self.wanted is not None
        parse_records(block.text, self.wanted, self.terms, block.parsed, self.cells(block))

    def work(self, block: Block) -> Any:
        """As for all files with slots, if there are any."""
        if self.wanted is None:  # no file has had a record yet
            block.parsed.counts[:] = 0
            return None
        return super().work(block) if self.slots is not None else BlockEncoder.work(self, block)

    def note(self, block: Block, work: Any) -> None:
        """Add up what threads found, or keep the largest id."""
        self.largest = max(self.largest, int(block.parsed.counts[kernel.LARGEST]))
        if work is not None:
            super().note(block, work)

    def chunk(self, block: Block, work: Any) -> Chunk:
        """The rows of a block, without ids and categories that are not known."""
        if work is not None:
            return super().chunk(block, work)
        chunk = self.rows(block, block.parsed.ids)
        return self.known_only(chunk, self.known) if self.schema else chunk

    def finish(self, block: Block) -> None:
        """Stop where the file cannot be read any further."""
        assert isinstance(block, _Block)
        if block.records.problem:
            raise InputError(block.records.problem)
        if len(block.records.room) == self.block_size + READ_AHEAD:
            self._free.append((block.records.room, block.parsed, block.beside))

    # -- what is wrong ----------------------------------------------------------------------------------------------

    def report(self, block: Block, error: Sequence[int]) -> None:
        """Report a bad record."""
        assert isinstance(block, _Block)
        code, record, place, feature, detail, other = error
        where = place_of(block.source, block.line + record, block.records.offset + place)
        what = self._explain(code, self.read[feature], detail, other)
        if code in (kernel.MISSING, kernel.WRONG_TYPE):
            what += _having(block.records, place)
        self.bad.report(f"{where}: {what}", _AGAIN if code == kernel.CHECKSUM else _REMEDY)

    def _explain(self, code: int, name: str, detail: int, other: int) -> str:
        """What is wrong, in one clause."""
        feature = f"feature `{shown(name)}`"
        if code == kernel.PAST:
            limit = f"the {self.config.features} features that were asked for (--features)"
            possible = f"{_LAST_ID}, the largest possible"
            return f"{feature}: id {detail} lies past {limit if self.config.features and not self.schema else possible}"
        if code == kernel.WRONG_TYPE:
            return f"{feature} is a list of {KINDS[detail]}, which it cannot be here"
        return {
            kernel.CHECKSUM: "its data has a wrong checksum",
            kernel.MALFORMED: "its data is not a well-formed tf.train.Example",
            kernel.MISSING: f"{feature} is missing",
            kernel.UNEQUAL: f"{feature} has {counted(detail, 'id')}, but {counted(other, 'value')} beside them",
            kernel.NEGATIVE: f"{feature}: id {detail} is below 0",
            kernel.NOT_FINITE: f"{feature} holds a number that is not finite (NaN or infinity)",
            kernel.NOT_ONE: f"the label {feature} has {counted(detail, 'number')}; it must have one",
            kernel.WIDTH: f"{feature} has {counted(detail, 'number')}, but it is dense with {other}",
            kernel.NOT_BINARY: f'the label {feature} is neither 0 nor 1 (other numbers take label = "number")',
            kernel.NOT_EXACT: f"the label {detail} is past {1 << 24}, up to which float32 has all whole numbers; store"
            " it as a float, or number the classes from 0",
        }[code]

    # -- at the end -------------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        if self.slots is not None and self.wanted is not None:
            return super().summary()
        bad = self.bad.notes()
        if self.plan is None:
            return Summary(1, notes=bad)
        features = self.known if self.schema else self.config.features or max(self.largest + 1, 1)
        schema = {"format": self.form, **self.plan._asdict(), "features": features}
        return Summary(features, (), schema, (*self.found, *self.own_notes(), *bad))

    def own_schema(self) -> dict[str, Any]:
        """The plan of the slots."""
        return {"plan": self.slots.schema() if self.slots else []}

    def own_notes(self) -> Iterator[str]:
        """What the plan says, what is missing and what was left out."""
        yield from self.slots.notes if self.slots else ()
        if self.counts[kernel.ABSENT]:
            yield f"{counted(int(self.counts[kernel.ABSENT]), 'list')} missing in records, read as empty."
        yield from self.label_notes()
        yield from left_out_notes(self.left_out, self.known)


def _having(block: RecordBlock, place: int) -> str:
    """What a record has, for messages."""
    try:
        return f"; {listed(features_of(block.record_at(place)))}"
    except ValueError:  # lists that were not packed are moved by now
        return ""
