"""Which features of tf.train.Example are read, and what for: as the user says, else found in the first records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hogwild import messages
from hogwild.config import FeedConfig
from hogwild.config.options import nearest
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.slots.description import SlotPlan
from hogwild.feeds.sparse.labels import NAMES
from hogwild.kernels.tfrecord import examples as kernel
from hogwild.kernels.tfrecord.examples import Wanted, make_wanted
from hogwild.messages import shown

KINDS = {kernel.NO_LIST: "no list", kernel.BYTES: "bytes", kernel.FLOATS: "floats", kernel.INTEGERS: "integers"}
LISTED = 12      # features that a message lists


class Seen(NamedTuple):
    """A feature in one record: its kind of list, and how many items that has."""

    kind: int
    count: int  # type: ignore[assignment]  # not the method of tuples


Record = dict[str, Seen]


def features_of(data: bytes) -> Record:
    """The features of an Example by name. Raises ValueError if it is malformed."""
    found: Record = {}
    for _, features in (field for field in _fields(data) if field[0] == 0x0A):
        for _, entry in (field for field in _fields(features) if field[0] == 0x0A):
            parts = dict(_fields(entry))
            kind, count = kernel.NO_LIST, 0
            for tag, items in _fields(parts.get(0x12, b"")):
                if tag in (0x0A, 0x12, 0x1A):
                    same = kind == tag >> 3
                    kind, count = tag >> 3, (count if same else 0) + _count(items, tag >> 3)
            found[parts.get(0x0A, b"").decode("utf-8", "backslashreplace")] = Seen(kind, count)
    return found


def _fields(data: bytes) -> Iterable[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, begin = {0: (0, at), 1: (8, at), 5: (4, at)}.get(tag & 7, (-1, at))
        if tag & 7 == 2:
            size, begin = _varint(data, at)
        elif tag & 7 == 0:
            _, end = _varint(data, at)
            size = end - at
        if size < 0 or begin + size > len(data):
            raise ValueError("no such field")
        yield tag, data[begin : begin + size]
        at = begin + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(data):
            raise ValueError("cut off")
        value |= (data[at + place] & 127) << 7 * place
        if data[at + place] < 128:
            return value, at + place + 1
    raise ValueError("too long")


def _count(items: bytes, kind: int) -> int:
    count = 0
    for tag, part in _fields(items):
        if kind == kernel.BYTES:
            count += tag == 0x0A
        elif kind == kernel.FLOATS:
            count += len(part) // 4 if tag in (0x0A, 0x0D) else 0
        elif tag in (0x08, 0x0A):
            count += sum(byte < 128 for byte in part)
    return count


def listed(record: Mapping[str, Seen]) -> str:
    """The features of a record, for messages."""
    if not record:
        return "it has no features"
    parts = [f"`{shown(name)}` ({seen.count} {KINDS[seen.kind]})" for name, seen in sorted(record.items())]
    return f"it has {', '.join(parts[:LISTED])}{', …' if len(parts) > LISTED else ''}"


INDICES, VALUES, LABEL = "nz_idx", "nz_values", "label"


class ExamplePlan(NamedTuple):
    """A list of ids, one of values beside it unless all are 1 (then its name is empty), and a label."""

    indices: str
    values: str
    label: str

    def wanted(self) -> Wanted:
        """The same for compiled code."""
        named = [self.indices, self.label, *([self.values] if self.values else ())]
        roles = [kernel.CATEGORIES, kernel.LABEL, kernel.VALUES][: len(named)]
        return make_wanted(named, roles, [0] * 3, [0] * 3, [2 if self.values else -1, -1, -1])

    @classmethod
    def known(cls, schema: Mapping[str, Any], config: FeedConfig) -> ExamplePlan:
        """The plan that an earlier feed was read by; a label that the configuration names stands for the plan's."""
        plan = cls(*(schema[name] for name in cls._fields))
        if not all(isinstance(name, str) for name in plan):
            raise TypeError("no such names")
        return plan._replace(label=config.label or plan.label)


def find_plan(records: Sequence[Record], config: FeedConfig, where: str) -> tuple[ExamplePlan, list[str]]:
    """Decide what the features are, and what to tell the user. records: the first ones, at least one."""
    names = sorted(set().union(*records))
    for name, option in ((config.indices, "--indices"), (config.values, "--values"), (config.label, "--label")):
        if name and name not in names and not (option == "--label" and config.unlabelled):
            raise InputError(f"{where}: there is no feature `{shown(name)}` ({option}){nearest(name, names)};"
                             f" {listed(records[0])}.")
    if config.binary and config.values:
        raise ConfigError("--binary says that values are not read, but --values names them; leave out one of the two.")
    label = config.label or _label(records, names, config, where)
    rest = [name for name in names if name != label]
    indices = config.indices or _indices(records, rest, config, where)
    values = "" if config.binary else config.values or _values(records, rest, indices, where)
    if len({indices, values, label}) < 3:
        raise ConfigError(f"{where}: --indices, --values and --label must be different features.")
    plan = ExamplePlan(indices, values, label)
    return plan, _notes(plan, names, config)


def _label(records: Sequence[Record], names: list[str], config: FeedConfig, where: str) -> str:
    usual = next((name for want in NAMES for name in names if name.lower() == want), "")
    single = [name for name in names if all(_is_number(record.get(name)) for record in records)]
    left = [name for name in single if name not in (config.indices, config.values, INDICES, VALUES)]
    if usual or len(left) == 1 or config.unlabelled:
        return usual or (left[0] if len(left) == 1 else LABEL)
    raise InputError(f"{where}: which feature is the label? {listed(records[0])}; say --label NAME.")


def _is_number(seen: Seen | None) -> bool:
    return seen is not None and seen.count == 1 and seen.kind in (kernel.INTEGERS, kernel.FLOATS)


def _indices(records: Sequence[Record], names: list[str], config: FeedConfig, where: str) -> str:
    if INDICES in names:
        return INDICES
    integers = [name for name in names if _kinds(records, name) == {kernel.INTEGERS} and name != config.values]
    values = [config.values] if config.values else [name for name in names if _kinds(records, name) == {kernel.FLOATS}]
    paired = [name for name in integers if any(_fits(records, name, other) for other in values)]
    found = paired if paired and not config.binary else integers
    if len(found) != 1:
        raise InputError(f"{where}: which feature holds the ids? {listed(records[0])}; say --indices NAME and --values"
                         " NAME, or describe all of them with --slots FILE.")
    return found[0]


def _values(records: Sequence[Record], names: list[str], indices: str, where: str) -> str:
    if VALUES in names:
        return VALUES
    floats = [name for name in names if _kinds(records, name) == {kernel.FLOATS}]
    found = [name for name in floats if _fits(records, indices, name)]
    if len(found) > 1 or (floats and not found):
        raise InputError(f"{where}: which feature holds the values of `{shown(indices)}`? {listed(records[0])}; say"
                         " --values NAME, or --binary if all are 1.")
    return found[0] if found else ""


def _kinds(records: Sequence[Record], name: str) -> set[int]:
    return {record[name].kind for record in records if name in record and record[name].kind != kernel.NO_LIST}


def _fits(records: Sequence[Record], indices: str, values: str) -> bool:
    """Whether two features have as many items as one another in all records."""
    nothing = Seen(kernel.NO_LIST, 0)
    return all(record.get(indices, nothing).count == record.get(values, nothing).count for record in records)


def _notes(plan: ExamplePlan, names: list[str], config: FeedConfig) -> list[str]:
    notes = []
    if not (config.indices and (config.values or config.binary) and config.label):
        beside = f"values in `{shown(plan.values)}`" if plan.values else "all values 1"
        notes.append(f"Ids are in `{shown(plan.indices)}`, {beside}, the label in `{shown(plan.label)}` (--indices,"
                     " --values and --label choose others).")
    unread = [name for name in names if name not in plan]
    if unread:
        notes.append(f"Features that are not read: {messages.listed(unread)}.")
    return notes


# -- slots ----------------------------------------------------------------------------------------------------------


def wanted_slots(plan: SlotPlan) -> Wanted:
    """The features of a description of slots, for compiled code; all widths must be known."""
    used = [slot for slot in plan.slots if slot.used]
    numbers = {slot.name: number for number, slot in enumerate(used)}
    roles, places, widths, partners = [], [], [], []
    slots = columns = 0
    for slot in used:
        role, place = kernel.VALUES, 0
        if slot.label:
            role = kernel.LABEL
        elif slot.dense:
            role, place = kernel.DENSE, columns
            columns += slot.width
        elif slot.sparse:
            role, place = kernel.CATEGORIES, slots
            slots += 1
        roles.append(role)
        places.append(place)
        widths.append(slot.width)
        partners.append(numbers[slot.values] if slot.sparse and slot.values else -1)
    return make_wanted([slot.name for slot in used], roles, places, widths, partners)


def with_widths(plan: SlotPlan, record: Record) -> SlotPlan:
    """With the widths of dense slots that the description leaves open as they are in a record; 1 if it has none."""
    widths = {slot.name: max(record.get(slot.name, Seen(0, 0)).count, 1) for slot in plan.slots if slot.open}
    return replace(plan, slots=tuple(replace(slot, width=widths.get(slot.name, slot.width)) for slot in plan.slots))
