"""libffm files: `label field:id:value …`, one row a line. Fields become slots; ids stay as they are, or are hashed.

The same id in two fields is the same feature, as it is for libffm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.arrays import Ids
from hogwild.config import FeedConfig
from hogwild.feeds.slots.encoder import SlotTextEncoder
from hogwild.feeds.slots.ids import PlainIds, SlotIds
from hogwild.feeds.sparse.encoder import Block, Summary, overflows, reading_schema
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse import libffm as kernel
from hogwild.kernels.parse.lines import ENTRIES, parse_block
from hogwild.kernels.parse.slots import SlotBlock, room_for
from hogwild.messages import counted, shown

_FIELDS = 2**16
_LAST_ID = 2**31 - 2


class LibffmEncoder(SlotTextEncoder):
    """Reads libffm files into chunks. Slots are named after the numbers of the fields that occur."""

    form = "libffm"
    options = (*SlotTextEncoder.options, "features")

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        super().__init__(replace(config, shared_ids=True, min_count=1), schema, threads)
        self.occurs = np.zeros(_FIELDS, np.bool_)
        with reading_schema(self.schema, self.form):
            self.hashed = self.schema.get("categories", config.categories) == "hash"
            self.open(self.schema.get("slots", ()), ())
            self.places = np.full(_FIELDS, -1, np.int32)
            for place, name in enumerate(self.names):
                self.places[int(name)] = place

    def make_ids(self) -> SlotIds | PlainIds:
        """Hashes, or ids as they are."""
        return SlotIds(("field",), self.config, self.schema) if self.hashed else PlainIds(self.config, self.schema)

    def room(self, size: int) -> SlotBlock:
        """Arrays for a block of that many bytes."""
        return room_for(size, 2, 0, valued=True)

    def parse(self, block: Block) -> None:
        """Fill the arrays of a block."""
        limit = np.uint64(2**64 - 1 if self.hashed else _LAST_ID)
        parse = ready(parse_block, len(block.text))
        parse(kernel.Libffm(limit), block.text, block.parsed, self.bad.stop, self.config.unlabelled)
        self.read_hard(block)

    def ids(self, block: Block) -> tuple[Ids, int]:
        """The id of each entry, -1 where it or its field is unknown, and how many are."""
        slots = block.parsed.slots[: block.parsed.counts[ENTRIES]]
        ids, unseen = super().ids(block)
        if not self.schema:
            self.occurs[slots] = True  # threads may write it at once: they write the same
            return ids, unseen
        places = self.places[slots]
        ids[places < 0] = -1
        slots[:] = np.maximum(places, 0)  # still in rising order where they are known
        return ids, int(np.count_nonzero(ids < 0))

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        found = np.flatnonzero(self.occurs)
        if not self.schema:
            self.names = tuple(str(field) for field in found)
        summary = super().summary()
        if self.schema:
            return summary
        final = np.zeros(_FIELDS, np.int64)
        final[found] = np.arange(len(found))
        return replace(summary, remap_slots=tuple(final[: int(found.max(initial=-1)) + 1].tolist()))

    def notes(self, scaled: bool) -> Any:
        """What to tell the user."""
        yield from super().notes(scaled)
        if self.unseen:
            yield f"{counted(self.unseen, 'value')} left out: training never saw their ids or fields."

    def explain(self, code: int, slot: int, token: str) -> str:
        """What is wrong, in one clause."""
        word = shown(token)
        if code in (kernel.LABEL, kernel.VALUE) and overflows(token.rpartition(":")[2]):
            return f"`{word}` is not a finite float32 number"
        return {
            kernel.LABEL: f"the label `{word}` is not a number",
            kernel.NO_LABEL: f"the label is missing: the line begins with `{word}`",
            kernel.ENTRY: f"`{word}` is not field:id:value",
            kernel.FIELD: f"the field of `{word}` is past {_FIELDS - 1}, the largest possible",
            kernel.ID_TOO_LARGE: f"the id of `{word}` is past {_LAST_ID}; hash larger ones with --categories hash",
            kernel.VALUE: f"the value of `{word}` is not a number",
        }[code]
