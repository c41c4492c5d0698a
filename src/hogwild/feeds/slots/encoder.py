"""What encoders of files with slots share: scales of dense columns, ids of categories, notes; and those of text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Ids
from hogwild.config import FeedConfig
from hogwild.feeds.slots.ids import PlainIds, SlotIds
from hogwild.feeds.sparse.encoder import Block, BlockEncoder, Chunk, Summary
from hogwild.feeds.sparse.features import CENTRED, Moments, Standards
from hogwild.feeds.sparse.spellings import Spellings
from hogwild.kernels.ids.keys import drop_unknown
from hogwild.kernels.parse import lines
from hogwild.kernels.parse.slots import OF_DENSE, OF_TARGETS
from hogwild.messages import counted

BLOCK = 1 << 19  # bytes that are parsed at a time: with what becomes of them, they stay in the nearer caches


class _Work(NamedTuple):
    """What threads find out of a block. ids: None where they depend on the blocks before it."""

    ids: Ids | None
    unseen: int
    moments: Moments


class SlotEncoder(BlockEncoder):
    """Reads files whose samples have slots, and dense columns of numbers beside them."""

    block_size = BLOCK
    options: tuple[str, ...] = (
        "categories", "hash_bits", "hash_seed", "shared_ids", "min_count", "scale", "bad_lines", "bad_share",
        "max_line", "pipe", "unlabelled",
    )  # fmt: skip

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        # Only a model can do without labels.
        super().__init__(config if schema else replace(config, unlabelled=False), schema, threads)
        self.unseen = 0
        self.spellings = None if schema else Spellings()

    # -- what a format is -------------------------------------------------------------------------------------------

    def open(self, names: Sequence[str], columns: Sequence[str]) -> None:
        """From now on these are the slots and the dense columns."""
        self.names, self.columns = tuple(names), tuple(columns)
        self.slot_ids = self.make_ids()
        self.standards = Standards(len(self.columns), self.schema, self.config.scale)

    def make_ids(self) -> SlotIds | PlainIds:
        """What gives categories their ids."""
        return SlotIds(self.names, self.config, self.schema)

    def cells(self, block: Block) -> Any:
        """The arrays `keys`, `slots` and `dense` of a block."""
        return block.parsed

    def own_schema(self) -> dict[str, Any]:
        """What the schema of this format has beside all that others have too."""
        return {}

    def own_notes(self) -> Iterator[str]:
        """What to tell the user of what was counted."""
        return self.label_notes()

    # -- reading ----------------------------------------------------------------------------------------------------

    def work(self, block: Block) -> _Work:
        """Parse a block; scale or measure its numbers, and find the ids of its categories, as far as threads can."""
        super().work(block)
        dense = self._dense(block)
        numbers = dense.astype(np.float64) if self.standards.measured else np.zeros((0, dense.shape[1]))
        if self.schema:
            self.standards.apply(dense, lambda row: block.source.place(block.line + int(block.parsed.lines[row])))
        ids, unseen = (None, 0) if self.slot_ids.in_order else self.ids(block)
        return _Work(ids, unseen, Moments.of(numbers))

    def ids(self, block: Block) -> tuple[Ids, int]:
        """The id of each entry, and how many are unknown."""
        count, cells = block.parsed.counts[self.counters.ENTRIES], self.cells(block)
        return self.slot_ids.ids(cells.keys[:count], cells.slots[:count])

    def note(self, block: Block, work: _Work) -> None:
        """Add up what threads found."""
        self.standards.add(work.moments)
        self.unseen += work.unseen
        if self.spellings and isinstance(self.slot_ids, SlotIds) and self.slot_ids.hashed:
            cells = self.cells(block)
            count = self.spellings.next_block(int(block.parsed.counts[self.counters.ENTRIES]))
            self.spellings.add_categories(self.slot_ids.spelt(cells.keys[:count], cells.slots[:count]))

    def chunk(self, block: Block, work: _Work) -> Chunk:
        """The rows of a block, without categories that are not known."""
        ids = self.ids(block)[0] if work.ids is None else work.ids
        chunk, slots = self.rows(block, ids), self.cells(block).slots[: len(ids)]
        if work.unseen and len(ids) and ids.min() < 0:
            count = int(drop_unknown(chunk.lengths, ids, slots, chunk.values))
            chunk, slots = chunk._replace(ids=ids[:count], values=chunk.values[:count]), slots[:count]
        return chunk._replace(slots=slots, dense=self._dense(block))

    def _dense(self, block: Block) -> Floats:
        rows, columns = int(block.parsed.counts[self.counters.ROWS]), len(self.columns)
        dense: Floats = self.cells(block).dense[: rows * columns].reshape(rows, columns)
        return dense

    # -- at the end -------------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        bad = self.bad.notes()
        remap = self.slot_ids.finish()
        shifts, scales = self.standards.final()
        final = not self.standards.measured or not scales
        schema = {"format": self.form, "slots": list(self.names), "dense": list(self.columns),
                  **self.standards.schema(), **self.slot_ids.schema(), **self.own_schema(),
                  **(self.spellings.schema() if self.spellings else {})}  # fmt: skip
        return Summary(features=self.slot_ids.features, schema=schema, notes=(*self.notes(scaled=not final), *bad),
                       remap=remap, dense_scales=() if final else tuple(scales),
                       dense_shifts=() if final else tuple(shifts))  # fmt: skip

    def notes(self, scaled: bool) -> Iterator[str]:
        """What to tell the user."""
        if scaled:
            yield CENTRED
        yield from self.own_notes()
        yield from self.slot_ids.notes(self.unseen)


class SlotTextEncoder(SlotEncoder):
    """Reads text with slots into chunks; one subclass a format."""

    counters = lines

    @abstractmethod
    def explain(self, code: int, slot: int, token: str) -> str:
        """What is wrong at a token, in one clause."""

    def report(self, block: Block, error: Sequence[int]) -> None:
        """Report a bad line."""
        code, place, line, slot = error
        self.bad.report(f"{block.where(line, place)}: {self.explain(code, slot, block.word_at(place))}")

    def read_hard(self, block: Block) -> None:
        """Read the numbers that the parser left to Python."""
        parsed = block.parsed
        arrays = {OF_DENSE: parsed.dense, OF_TARGETS: parsed.targets}
        for kind, index, place in parsed.hard[: parsed.counts[lines.HARD]].tolist():
            arrays.get(kind, parsed.values)[index] = np.float32(float(block.word_at(place)))

    def own_notes(self) -> Iterator[str]:
        """What was skipped, read as something else, or sorted."""
        for place, noun, fate in (
            (lines.EMPTY, "blank line", "skipped"),
            (lines.NO_NUMBER, "empty field", "in columns of numbers read as 0"),
            (lines.NO_CATEGORY, "empty field", "in columns of categories left out"),
            (lines.UNSORTED, "row", "with unsorted fields: sorted"),
        ):
            if count := int(self.counts[place]):
                yield f"{counted(count, noun)} {fate}."
        yield from self.label_notes()
