"""MultiSlot files: for each slot of a description `count v1 … vn`, one row a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.slots.description import NUMBER, SlotPlan, known_plan, read_slots
from hogwild.feeds.slots.encoder import SlotTextEncoder
from hogwild.feeds.sparse.encoder import Block, overflows, reading_schema
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse import multislot as kernel
from hogwild.kernels.parse.lines import parse_block
from hogwild.kernels.parse.slots import SlotBlock, room_for
from hogwild.messages import shown

_LONGEST = 1 << 26  # bytes in which the first line must end, for widths to be found in it

_DIGITS = 10        # more than a count of values in that line has


class MultiSlotEncoder(SlotTextEncoder):
    """Reads MultiSlot files into chunks. Slots are those of the description, or of the model."""

    form = "multislot"
    options = (*SlotTextEncoder.options, "label", "ignore")

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        super().__init__(config, schema, threads)
        with reading_schema(self.schema, self.form):
            if self.schema:
                self.plan = known_plan(self.schema["plan"])
                self._follow(self.plan)
        if not self.schema:
            self.plan = described_slots(config)
        self.described = self.plan.schema()

    def begin(self, sources: Sequence[Source]) -> None:
        """Find the widths that the description leaves open."""
        if not self.schema:
            self._follow(_with_widths(self.plan, sources))

    def _follow(self, plan: SlotPlan) -> None:
        self.plan = plan
        self.layout, self.row = _layout_of(plan)
        self.open(plan.names, plan.columns)
        self.valued = bool((self.layout.kinds == kernel.VALUES).any())

    def room(self, size: int) -> SlotBlock:
        """Arrays for a block of that many bytes."""
        return room_for(size, self.row, len(self.columns), self.valued)

    def parse(self, block: Block) -> None:
        """Fill the arrays of a block."""
        form = kernel.MultiSlot(self.layout, np.zeros((len(self.layout.kinds), 2), np.int64))
        parse = ready(parse_block, len(block.text))
        parse(form, block.text, block.parsed, self.bad.stop, self.config.unlabelled)
        self.read_hard(block)

    def own_schema(self) -> dict[str, Any]:
        """The plan."""
        return {"plan": self.plan.schema()}

    def notes(self, scaled: bool) -> Any:
        """What to tell the user."""
        yield from self.plan.notes
        yield from super().notes(scaled)

    def explain(self, code: int, slot: int, token: str) -> str:
        """What is wrong, in one clause."""
        which, word = self.plan.slots[slot], shown(token)
        name = f"slot `{shown(which.name)}`"
        if code == kernel.NUMBER:
            what = f"the label `{word}`" if which.label else f"{name}: `{word}`"
            return f"{what} is not a {'finite float32 number' if overflows(token) else 'number'}"
        return {
            kernel.MISSING: f"the line ends before {name}; {len(self.plan.slots)} slots are described",
            kernel.COUNT: f"{name}: `{word}` is not a count; perhaps a count before it is wrong",
            kernel.NEGATIVE: f"{name}: the count {word} is negative",
            kernel.FEW: f"the line ends within {name}, whose count is larger than the number of its values",
            kernel.WIDTH: f"{name}: its count is {word}, but it is dense with {which.width}",
            kernel.ID: f"{name}: `{word}` is not an id, which is a whole number from 0 to {2**64 - 1}",
            kernel.ID_TOO_LARGE: f"{name}: the id {word} is past 64 bits",
            kernel.LABEL: f"the label `{word}` is neither 0 nor 1 (other numbers take label = \"number\")",
            kernel.LABELS: f"the label {name} has the count {word}; it must be 1",
            kernel.PAIRS: f"{name}: its count {word} is not that of the ids whose values it holds",
            kernel.MORE: f"`{word}` stands after the last slot; perhaps a count is wrong, or a slot is not described",
        }[code]


def described_slots(config: FeedConfig) -> SlotPlan:
    """The slots that the configuration describes, if they can be those of MultiSlot lines."""
    if not config.slots:
        raise ConfigError("MultiSlot files need a description of their slots; give it with --slots FILE.")
    plan = read_slots(config.slots, config.label, config.ignore)
    places = {slot.name: place for place, slot in enumerate(plan.slots)}
    for place, slot in enumerate(plan.slots):
        if slot.used and slot.type == "string":
            name = shown(slot.name)
            raise InputError(f"{config.slots}: slot `{name}` holds words; MultiSlot lines have uint64 and float.")
        if slot.sparse and slot.values and places[slot.values] < place:
            name, other = shown(slot.name), shown(slot.values)
            raise InputError(f"{config.slots}: slot `{other}` stands before `{name}`, whose values it holds; in"
                             " MultiSlot lines it must stand after it.")
    return plan


def _layout_of(plan: SlotPlan) -> tuple[kernel.Layout, int]:
    """The plan for compiled code, and the bytes that a row takes at the least."""
    places = {slot.name: place for place, slot in enumerate(plan.slots)}
    owners = {slot.values: places[slot.name] for slot in plan.slots if slot.sparse and slot.values}
    rows: list[tuple[int, int, int]] = []
    number = column = bytes_of_row = 0
    for slot in plan.slots:
        if slot.used and slot.label:
            rows.append((kernel.QUANTITY if slot.label == NUMBER else kernel.CLICK, 0, 1))
            continue  # where labels may be missing, it takes no bytes
        bytes_of_row += 2
        if slot.sparse:
            rows.append((kernel.IDS, number, 0))
            number += 1
        elif slot.used and slot.name in owners:
            rows.append((kernel.VALUES, owners[slot.name], 0))
        elif slot.used and slot.dense:
            rows.append((kernel.DENSE, column, slot.width))
            column += slot.width
            bytes_of_row += 2 * slot.width
        else:
            rows.append((kernel.UNUSED, 0, 0))
    kinds, spots, widths = (np.array(part, np.int64) for part in zip(*rows, strict=True))
    return kernel.Layout(kinds, spots, widths, column), max(bytes_of_row, 2)


def _with_widths(plan: SlotPlan, sources: Sequence[Source]) -> SlotPlan:
    """With the widths of dense slots that have none yet from the first row; 1 where it cannot be read: it is
    malformed, and will be reported."""
    if not any(slot.open for slot in plan.slots):
        return plan
    words = next((words for source in sources if (words := _first_row(source))), [])
    slots, at = [], 0
    for slot in plan.slots:
        whole = at < len(words) and words[at].isdigit() and len(words[at]) < _DIGITS
        count = int(words[at]) if whole and int(words[at]) < len(words) - at else 1
        at += 1 + count
        slots.append(replace(slot, width=max(count, 1)) if slot.open else slot)
    return replace(plan, slots=tuple(slots))


def _first_row(source: Source) -> list[bytes]:
    size = 1 << 16
    while True:
        head = source.head(size)
        lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
        if len(lines) > 1 or len(head) < size or size >= _LONGEST:
            return lines[0].split() if lines else []
        size *= 8
