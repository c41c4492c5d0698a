"""What encoders of text with slots share: blocks parsed by threads and delivered in order, scales, ids, notes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Keys, Slots
from hogwild.config import FeedConfig
from hogwild.errors import InputError, ModelError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Bytes, Source
from hogwild.feeds.slots.ids import SlotIds
from hogwild.feeds.sparse.encoder import Chunk, Summary
from hogwild.feeds.sparse.labels import counted
from hogwild.feeds.tables.scales import scale, scales_of
from hogwild.kernels.ids.keys import drop_unknown
from hogwild.kernels.parse import slots as slotblock
from hogwild.kernels.parse.slots import SlotBlock

BLOCK = 1 << 19            # bytes of text that are parsed at a time: with what becomes of them, they stay in the cache
_ROOM = BLOCK + (1 << 16)  # bytes of text that arrays which are used again can take


class _Block(NamedTuple):
    """A block of text, where it stands, and the arrays that it is parsed into."""

    text: Bytes
    file: int
    line: int
    source: Source
    parsed: SlotBlock


class _Work(NamedTuple):
    """What threads find out of a block. ids: None where they depend on the blocks before it.

    squares, present: of each dense column the sum of squares, and how many numbers are other than 0.
    """

    ids: Ids | None
    unseen: int
    squares: npt.NDArray[np.float64]
    present: npt.NDArray[np.int64]


class SlotFeatures(Protocol):
    """Gives keys of categories their ids, and knows at the end which features there are: see SlotIds."""

    @property
    def in_order(self) -> bool:
        """Whether `ids` must be called in the order of the files, by one thread."""

    @property
    def features(self) -> int:
        """How many features there are."""

    def ids(self, keys: Keys, slots: Slots) -> tuple[Ids, int]:
        """The id of each key, -1 for none, and how many are not known."""

    def finish(self) -> Ids | None:
        """The feature of each id; None if ids are features."""

    def schema(self) -> dict[str, Any]:
        """JSON values from which this is made again."""

    def notes(self, unseen: int) -> list[str]:
        """What to tell the user."""


class SlotTextEncoder(ABC):
    """Reads text with slots into chunks; one subclass a format.

    The arrays of a chunk are used again for later ones: they hold until the next chunk is asked for.
    """

    form = ""
    options: tuple[str, ...] = (
        "categories", "hash_bits", "hash_seed", "shared_ids", "min_count", "scale", "bad_lines", "bad_share",
        "max_line", "pipe", "unlabelled",
    )  # fmt: skip

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        # Only a model can do without labels.
        self.config = config if schema else replace(config, unlabelled=False)
        self.schema = dict(schema or {})
        self.threads = threads
        self.bad = BadLines(config)
        self.counts = np.zeros(slotblock.COUNTS, np.int64)
        self.unseen = 0
        self._free: list[SlotBlock] = []  # arrays that are used again

    # -- what a format is -------------------------------------------------------------------------------------------

    @abstractmethod
    def room(self, size: int) -> SlotBlock:
        """Arrays for a block of that many bytes."""

    @abstractmethod
    def parse(self, text: Bytes, parsed: SlotBlock) -> None:
        """Fill the arrays."""

    @abstractmethod
    def explain(self, code: int, slot: int, token: str) -> str:
        """What is wrong at a token, in one clause."""

    def own_schema(self) -> dict[str, Any]:
        """What the schema of this format has beside all that others have too."""
        return {}

    def open(self, names: Sequence[str], columns: Sequence[str]) -> None:
        """From now on these are the slots and the dense columns."""
        self.names, self.columns = tuple(names), tuple(columns)
        self.slot_ids = self.make_ids()
        count = len(self.columns)
        self.scales = np.array(self.schema.get("scales", [1.0] * count), np.float32).reshape(count)
        self.squares, self.present = np.zeros(count), np.zeros(count, np.int64)

    def make_ids(self) -> SlotFeatures:
        """What gives categories their ids."""
        return SlotIds(self.names, self.config, self.schema)

    # -- reading ----------------------------------------------------------------------------------------------------

    def begin(self, sources: Sequence[Source]) -> None:
        """Look at the files before they are read."""

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        self.begin(sources)
        for block, work in in_order(self._work, self._blocks(sources), self.threads):
            self._report(block)
            self.counts += block.parsed.counts
            self.squares += work.squares
            self.present += work.present
            self.unseen += work.unseen
            if block.parsed.counts[slotblock.ROWS]:
                yield self._chunk(block, work)
            if len(block.text) <= _ROOM:
                self._free.append(block.parsed)

    def _blocks(self, sources: Sequence[Source]) -> Iterator[_Block]:
        for file, source in enumerate(sources):
            for line, text in source.blocks(BLOCK):
                used = self._free and len(text) <= _ROOM
                yield _Block(text, file, line, source, self._free.pop() if used else self.room(max(len(text), _ROOM)))

    def _work(self, block: _Block) -> _Work:
        text, parsed = block.text, block.parsed
        parsed.counts[:] = 0
        with np.errstate(over="ignore", invalid="ignore"):  # only the interpreter, with the compiler off, would say so
            self.parse(text, parsed)
        arrays = {slotblock.OF_DENSE: parsed.dense, slotblock.OF_TARGETS: parsed.targets}
        for kind, index, place in parsed.hard[: parsed.counts[slotblock.HARD]].tolist():
            arrays.get(kind, parsed.values)[index] = np.float32(float(token_at(text, place)))
        dense = _dense(parsed, len(self.columns))
        numbers = dense.astype(np.float64) if not self.schema and self.config.scale else np.zeros((0, dense.shape[1]))
        if self.schema:
            scale(dense, self.scales, lambda row: block.source.place(block.line + int(parsed.lines[row])))
        ids, unseen = None, 0
        if not self.slot_ids.in_order:
            ids, unseen = self.ids(parsed)
        return _Work(ids, unseen, (numbers * numbers).sum(0), np.count_nonzero(numbers, 0))

    def ids(self, parsed: SlotBlock) -> tuple[Ids, int]:
        """The id of each entry, and how many are unknown."""
        count = parsed.counts[slotblock.ENTRIES]
        return self.slot_ids.ids(parsed.keys[:count], parsed.slots[:count])

    def _chunk(self, block: _Block, work: _Work) -> Chunk:
        parsed = block.parsed
        rows, count = int(parsed.counts[slotblock.ROWS]), int(parsed.counts[slotblock.ENTRIES])
        ids = self.ids(parsed)[0] if work.ids is None else work.ids
        lengths, slots = parsed.lengths[:rows], parsed.slots[:count]
        values = parsed.values[: count if parsed.counts[slotblock.VALUED] else 0]
        if work.unseen and len(ids) and ids.min() < 0:
            count = int(drop_unknown(lengths, ids, slots, values))
            ids, slots, values = ids[:count], slots[:count], values[:count]
        return Chunk(
            lengths=lengths,
            ids=ids,
            values=values,
            targets=parsed.targets[:rows],
            lines=parsed.lines[:rows] + block.line,
            file=block.file,
            slots=slots,
            dense=_dense(parsed, len(self.columns)),
        )

    def _report(self, block: _Block) -> None:
        text, counts = block.text, block.parsed.counts
        errors = int(counts[slotblock.BAD])
        for code, place, line, slot in block.parsed.errors[:errors].tolist():
            start = text[:place].tobytes().rfind(b"\n") + 1
            where = block.source.place(block.line + line, place - start + 1)
            self.bad.report(f"{where}: {self.explain(code, slot, token_at(text, place))}")
        self.bad.count += max(0, errors - len(block.parsed.errors))
        self.bad.seen(int(counts[slotblock.ROWS]) + errors)

    # -- at the end -------------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        bad = self.bad.notes()
        remap = self.slot_ids.finish()
        scales = self.measured()
        final = bool(self.schema) or all(scale == 1 for scale in scales)
        schema = {
            "format": self.form,
            "slots": list(self.names),
            "dense": list(self.columns),
            "scales": scales,
            **self.slot_ids.schema(),
            **self.own_schema(),
        }
        return Summary(
            features=self.slot_ids.features,
            schema=schema,
            notes=(*self.notes(scaled=not final), *bad),
            remap=remap,
            dense_scales=() if final else tuple(scales),
        )

    def measured(self) -> list[float]:
        """The factor of each dense column."""
        if self.schema or not self.config.scale:
            return [float(scale) for scale in self.scales]
        return scales_of(self.squares, self.present)

    def notes(self, scaled: bool) -> Iterator[str]:
        """What to tell the user."""
        counts = {place: int(number) for place, number in enumerate(self.counts)}
        if scaled:
            yield "Numbers are divided by the root mean square of their column without its zeros (not with --no-scale)."
        if counts[slotblock.EMPTY]:
            yield f"{counted(counts[slotblock.EMPTY], 'blank line')} skipped."
        if counts[slotblock.NO_NUMBER]:
            yield f"{counted(counts[slotblock.NO_NUMBER], 'empty field')} in columns of numbers read as 0."
        if counts[slotblock.NO_CATEGORY]:
            yield f"{counted(counts[slotblock.NO_CATEGORY], 'empty field')} in columns of categories left out."
        if counts[slotblock.UNSORTED]:
            yield f"{counted(counts[slotblock.UNSORTED], 'row')} with unsorted fields: sorted."
        if counts[slotblock.UNLABELLED]:
            yield f"{counted(counts[slotblock.UNLABELLED], 'row')} without a label, which predictions do not need."
        yield from self.slot_ids.notes(self.unseen)


@contextmanager
def reading_slots(schema: Mapping[str, Any], form: str) -> Iterator[None]:
    """Raise InputError if a schema is that of another format, ModelError if it makes no sense."""
    if schema and schema.get("format") != form:
        known = schema.get("format", "another kind of data")
        raise InputError(f"the model was trained on {known}, but this is {form}; give data of the same kind.")
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        raise ModelError("what the model says of its slots is damaged; copy the model again.") from None


def token_at(text: Bytes, place: int) -> str:
    """The word at a place, as messages show it; empty at the end of a line."""
    line = text[place : place + 4096].tobytes().split(b"\n", 1)[0]
    words = line.split(None, 1) if line[:1].strip() else []
    return words[0].decode("utf-8", "backslashreplace") if words else ""


def _dense(parsed: SlotBlock, columns: int) -> npt.NDArray[np.float32]:
    rows = int(parsed.counts[slotblock.ROWS])
    return parsed.dense[: rows * columns].reshape(rows, columns)
