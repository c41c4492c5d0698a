"""Click logs of Criteo: a label, 13 counts and 26 categories a line, with tabs between; fields may be empty.

A count x becomes log1p(x), a negative one -log1p(-x), an empty one 0. Categories are hexadecimal numbers of up to 64
bits; an empty one has no feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hogwild.config import FeedConfig
from hogwild.feeds.slots.encoder import SlotTextEncoder
from hogwild.feeds.sparse.encoder import Block, overflows, reading_schema
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse import criteo as kernel
from hogwild.kernels.parse.lines import parse_block
from hogwild.kernels.parse.slots import SlotBlock, room_for
from hogwild.messages import shown

COLUMNS = tuple(f"I{k + 1}" for k in range(kernel.NUMBERS))
SLOTS = tuple(f"C{k + 1}" for k in range(kernel.CATEGORIES))
FIELDS = ("label", *COLUMNS, *SLOTS)


class CriteoEncoder(SlotTextEncoder):
    """Reads click logs into chunks."""

    form = "criteo"

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        super().__init__(config, schema, threads)
        with reading_schema(self.schema, self.form):
            self.open(SLOTS, COLUMNS)

    def room(self, size: int) -> SlotBlock:
        """Arrays for a block of that many bytes; a row has a tab or a newline for each field but the label's."""
        return room_for(size, len(COLUMNS) + len(SLOTS), len(COLUMNS), valued=False)

    def parse(self, block: Block) -> None:
        """Fill the arrays of a block."""
        parse = ready(parse_block, len(block.text))
        parse(kernel.Criteo(), block.text, block.parsed, self.bad.stop, self.config.unlabelled)

    def explain(self, code: int, slot: int, token: str) -> str:
        """What is wrong, in one clause."""
        field, word = FIELDS[min(slot, len(FIELDS) - 1)], shown(token)
        if code == kernel.NUMBER:
            return f"{field}: `{word}` is not a {'finite float32 number' if overflows(token) else 'number'}"
        return {
            kernel.LABEL: f"the label `{word}` is neither 0 nor 1" if word else "the label is missing",
            kernel.HEX: f"{field}: `{word}` is not a hexadecimal number of up to 16 digits",
            kernel.FEW: f"the line ends after {slot + 1} of {len(FIELDS)} fields",
            kernel.MORE: f"the line has more than {len(FIELDS)} fields",
        }[code]
