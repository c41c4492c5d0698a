"""TFRecord files of tf.train.Example. Blocks of records are parsed by threads, delivered in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import BLOCK, Bytes, Source, fill
from hogwild.feeds.slots.description import SlotPlan, known_plan, read_slots
from hogwild.feeds.slots.encoder import reading_slots
from hogwild.feeds.slots.ids import SlotIds
from hogwild.feeds.sparse.encoder import Chunk, Summary
from hogwild.feeds.tables.scales import scale, scales_of
from hogwild.feeds.tfrecord.plan import (
    KINDS,
    SAMPLED,
    ExamplePlan,
    Record,
    features_of,
    find_plan,
    is_binary,
    listed,
    wanted_slots,
    with_widths,
)
from hogwild.kernels.ids.keys import drop_unknown
from hogwild.kernels.tfrecord import examples as kernel
from hogwild.kernels.tfrecord.examples import FOOTER, HEADER, Keyed, Parsed, Terms, Wanted
from hogwild.kernels.tfrecord.records import BROKEN, READ_AHEAD, TOO_LONG, cut_records, parse_records
from hogwild.messages import counted, shown

# -- TFRecord files in blocks of whole records, with the lengths of records checked before memory is taken for them ---


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

    def records(self) -> Iterator[bytes]:
        """The data of each record."""
        at = 0
        while at < len(self.data):
            size = int.from_bytes(self.data[at : at + 8].tobytes(), "little")
            yield self.data[at + HEADER : at + HEADER + size].tobytes()
            at += HEADER + size + FOOTER


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


_LAST_ID = 2**31 - 1
_SIZE = 1 << 19  # bytes of a block: it stays in the nearer caches with all that is made of it
_REMEDY = "Correct the record, or skip such records with --bad-lines skip."
_AGAIN = "Copy or download the file again, or skip such records with --bad-lines skip."


class _Block(NamedTuple):
    """Records, where they stand, and the arrays that they are parsed into."""

    block: RecordBlock
    file: int
    source: Source
    parsed: Parsed
    beside: Keyed


class _Work(NamedTuple):
    """What threads find out of a block with slots. ids: None where they depend on the blocks before it.

    squares, present: of each dense column the sum of squares, and how many numbers are other than 0.
    """

    ids: Ids | None
    unseen: int
    squares: npt.NDArray[np.float64]
    present: npt.NDArray[np.int64]


class TfrecordEncoder:
    """Reads TFRecord files into chunks; the line of a row is the number of its record.

    A list of ids with values beside it (ids stay as they are in the file), or features as a description of slots says.
    The arrays of a chunk are used again for later ones: they hold until the next chunk is asked for.
    """

    options = (
        "features", "indices", "values", "label", "binary", "ignore", "categories", "hash_bits", "hash_seed",
        "shared_ids", "min_count", "scale", "bad_lines", "bad_share", "max_line", "pipe", "unlabelled",
    )  # fmt: skip

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        # Only a model can do without labels.
        self.config = config if schema else replace(config, unlabelled=False)
        self.schema = dict(schema or {})
        self.threads = threads
        self.bad = BadLines(config, "records")
        self.counts = np.zeros(kernel.SIZE, np.int64)
        self.largest = -1
        self.left_out = self.unseen = 0
        self.found: list[str] = []  # notes on what was found out
        self.plan: ExamplePlan | None = None
        self.slots: SlotPlan | None = None
        self.wanted: Wanted | None = None
        self._free: list[tuple[Bytes, Parsed, Keyed]] = []  # memory that is used again
        with reading_slots(self.schema, "tfrecord"):
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
        self.names = [plan.indices, plan.label, plan.values]

    def _follow_slots(self, plan: SlotPlan) -> None:
        self.slots, self.wanted = plan, wanted_slots(plan)
        columns = len(plan.columns)
        binary = is_binary(plan)
        self.terms = Terms(np.uint64(0), columns, True, self.config.unlabelled, binary, self.bad.stop)
        self.names = [slot.name for slot in plan.slots if slot.used]
        self.slot_ids = SlotIds(plan.names, self.config, self.schema)
        self.squares, self.present = np.zeros(columns), np.zeros(columns, np.int64)
        self.scales = np.array(self.schema.get("scales", [1.0] * columns), np.float32).reshape(columns)

    def _find_out(self, block: RecordBlock, source: Source) -> None:
        """Look at the first records."""
        records: list[Record] = []
        for data in islice(block.records(), SAMPLED):
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

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        for item, work in in_order(self._parse, self._blocks(sources), self.threads):
            self._report(item)
            self.counts += item.parsed.counts
            self.largest = max(self.largest, int(item.parsed.counts[kernel.LARGEST]))
            if item.parsed.counts[kernel.ROWS]:
                yield self._chunk(item) if work is None else self._slot_chunk(item, work)
            if item.block.problem:
                raise InputError(item.block.problem)
            if len(item.block.room) == _SIZE + READ_AHEAD:
                self._free.append((item.block.room, item.parsed, item.beside))

    def _blocks(self, sources: Sequence[Source]) -> Iterator[_Block]:
        for file, source in enumerate(sources):
            taken: list[tuple[Bytes, Parsed, Keyed]] = []

            def take(taken: list[tuple[Bytes, Parsed, Keyed]] = taken) -> Bytes:
                taken[:] = [self._free.pop()] if self._free else []
                return taken[0][0] if taken else new_room(_SIZE)

            for block in record_blocks(source, take, _SIZE):
                if self.wanted is None and len(block.data):
                    self._find_out(block, source)
                if taken and taken[0][0] is block.room:
                    _, parsed, beside = taken[0]
                else:
                    count = len(self.wanted.roles) if self.wanted else 0
                    parsed, beside = kernel.room_for(len(block.room), count, self.slots is not None)
                yield _Block(block, file, source, parsed, beside)

    def _parse(self, item: _Block) -> _Work | None:
        parsed, beside = item.parsed, item.beside
        parsed.counts[:] = 0
        if self.wanted is not None:
            with np.errstate(over="ignore"):  # only the interpreter, with the compiler off, would say so
                parse_records(item.block.data, self.wanted, self.terms, parsed, beside)
        if self.wanted is None or self.slots is None:
            return None
        dense = self._dense(item)
        numbers = dense.astype(np.float64)
        if self.schema:
            scale(dense, self.scales, lambda row: item.source.place(item.block.record + int(parsed.records[row])))
        ids, unseen = None, 0
        if not self.slot_ids.in_order:
            ids, unseen = self._ids(item)
        return _Work(ids, unseen, (numbers * numbers).sum(0), np.count_nonzero(numbers, 0))

    def _ids(self, item: _Block) -> tuple[Ids, int]:
        count = item.parsed.counts[kernel.ENTRIES]
        return self.slot_ids.ids(item.beside.keys[:count], item.beside.slots[:count])

    def _dense(self, item: _Block) -> npt.NDArray[np.float32]:
        rows, columns = int(item.parsed.counts[kernel.ROWS]), int(self.terms.columns)
        return item.beside.dense[: rows * columns].reshape(rows, columns)

    def _chunk(self, item: _Block) -> Chunk:
        parsed = item.parsed
        rows, entries = int(parsed.counts[kernel.ROWS]), int(parsed.counts[kernel.ENTRIES])
        lengths, ids = parsed.lengths[:rows], parsed.ids[:entries]
        values = parsed.values[: entries if parsed.counts[kernel.VALUED] else 0]
        if self.schema and len(ids) and int(parsed.counts[kernel.LARGEST]) >= self.known:
            keep = ids < self.known
            self.left_out += int(len(keep) - np.count_nonzero(keep))
            before = np.concatenate(([0], np.cumsum(keep)))
            ends = np.concatenate(([0], np.cumsum(lengths)))
            lengths, ids, values = np.diff(before[ends]), ids[keep], values[keep] if len(values) else values
        return Chunk(lengths, ids, values, parsed.targets[:rows], parsed.records[:rows] + item.block.record, item.file)

    def _slot_chunk(self, item: _Block, work: _Work) -> Chunk:
        parsed = item.parsed
        self.squares += work.squares
        self.present += work.present
        self.unseen += work.unseen
        rows, count = int(parsed.counts[kernel.ROWS]), int(parsed.counts[kernel.ENTRIES])
        ids = self._ids(item)[0] if work.ids is None else work.ids
        lengths, slots = parsed.lengths[:rows], item.beside.slots[:count]
        values = parsed.values[: count if parsed.counts[kernel.VALUED] else 0]
        if work.unseen and len(ids) and ids.min() < 0:
            count = int(drop_unknown(lengths, ids, slots, values))
            ids, slots, values = ids[:count], slots[:count], values[:count]
        lines = parsed.records[:rows] + item.block.record
        return Chunk(lengths, ids, values, parsed.targets[:rows], lines, item.file, slots, self._dense(item))

    # -- what is wrong ----------------------------------------------------------------------------------------------

    def _report(self, item: _Block) -> None:
        counts = item.parsed.counts
        errors = int(counts[kernel.BAD])
        for code, record, place, feature, detail, other in item.parsed.errors[:errors].tolist():
            where = place_of(item.source, item.block.record + record, item.block.offset + place)
            what = self._explain(code, self.names[feature], detail, other)
            if code in (kernel.MISSING, kernel.WRONG_TYPE):
                what += _having(item.block, place)
            self.bad.report(f"{where}: {what}", _AGAIN if code == kernel.CHECKSUM else _REMEDY)
        self.bad.count += max(0, errors - len(item.parsed.errors))
        self.bad.seen(int(counts[kernel.ROWS]) + errors)

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
        bad = self.bad.notes()
        if self.slots is not None and self.wanted is not None:
            return self._slot_summary(self.slots, bad)
        if self.plan is None:
            return Summary(1, notes=bad)
        features = self.known if self.schema else self.config.features or max(self.largest + 1, 1)
        schema = {"format": "tfrecord", **self.plan.schema(), "features": features}
        return Summary(features, (), schema, (*self.found, *self._notes(), *bad))

    def _slot_summary(self, plan: SlotPlan, bad: tuple[str, ...]) -> Summary:
        remap = self.slot_ids.finish()
        measured = not self.schema and self.config.scale
        scales = scales_of(self.squares, self.present) if measured else self.scales.tolist()
        final = bool(self.schema) or all(scale == 1 for scale in scales)
        schema = {
            "format": "tfrecord", "slots": list(plan.names), "dense": list(plan.columns), "scales": scales,
            **self.slot_ids.schema(), "plan": plan.schema(),
        }  # fmt: skip
        notes = [*plan.notes, *self._notes(), *self.slot_ids.notes(self.unseen), *bad]
        if not final:
            notes.insert(0, "Numbers are divided by the root mean square of their column without its zeros (not with"
                            " --no-scale).")
        scaling = () if final else tuple(scales)
        return Summary(self.slot_ids.features, (), schema, tuple(notes), remap=remap, dense_scales=scaling)

    def _notes(self) -> Iterator[str]:
        if self.counts[kernel.ABSENT]:
            yield f"{counted(int(self.counts[kernel.ABSENT]), 'list')} missing in records, read as empty."
        if self.counts[kernel.UNLABELLED]:
            rows = counted(int(self.counts[kernel.UNLABELLED]), "row")
            yield f"{rows} without a label, which predictions do not need."
        if self.left_out:
            yield f"{counted(self.left_out, 'value')} left out: their ids lie past the {self.known:,} known features."


def _having(block: RecordBlock, place: int) -> str:
    """What a record has, for messages."""
    size = int.from_bytes(block.data[place : place + 8].tobytes(), "little")
    start = place + kernel.HEADER
    try:
        return f"; {listed(features_of(block.data[start : start + size].tobytes()))}"
    except ValueError:  # lists that were not packed are moved by now
        return ""
