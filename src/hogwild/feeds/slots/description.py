"""Descriptions of slots: what stands where in MultiSlot lines and TFRecord examples.

In TOML, a table for each slot in the order of the file:

    [[slot]]
    name = "click"
    type = "uint64"
    label = true        # 0 or 1; "number" allows every finite number

    [[slot]]
    name = "I"
    type = "float"
    dense = true        # numbers: columns of the dense matrix
    width = 13          # how many; left out: as many as the first row has

    [[slot]]
    name = "C"
    type = "uint64"     # ids of categories, any number of them a row
    repeat = 26         # C1 … C26

Further keys: `used = false` passes over a slot; `values = "NAME"` names the slot of floats that has one value for each
id. The data-feed description of the async executor (protobuf text) is read too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args

from hogwild.config.options import nearest
from hogwild.config.tomltext import parse_toml, read_start
from hogwild.errors import ConfigError, InputError, brief, shorten
from hogwild.feeds.sparse.labels import NAMES
from hogwild.messages import listed, shown

Kind = Literal["uint64", "float", "string"]
KINDS: tuple[str, ...] = get_args(Kind)
BINARY, NUMBER = "binary", "number"   # labels: 0 or 1, or every finite number
MOST = 2**16                          # slots that can be told apart in a sample
_WIDEST = 1 << 20
_LARGEST = 64 << 20                   # bytes of a description
_LABELS = (*NAMES, "click")           # slots that hold the label unless the user says otherwise


@dataclass(frozen=True)
class Slot:
    """One slot. Without `dense` and `label` it holds categories: ids, or words if its type is string.

    width: numbers of a dense slot; 0: as many as the first row has. label: "", "binary" or "number".
    values: name of the slot with one value for each id; "": all are 1.
    """

    name: str
    type: Kind = "uint64"
    dense: bool = False
    width: int = 0
    label: str = ""
    used: bool = True
    values: str = ""

    @property
    def sparse(self) -> bool:
        """Whether its categories become features."""
        return self.used and not self.label and not self.dense and self.type != "float"

    @property
    def numbers(self) -> bool:
        """Whether its numbers become dense columns."""
        return self.used and self.dense and not self.label

    @property
    def open(self) -> bool:
        """Whether the first row says how many numbers it has."""
        return self.numbers and not self.width


@dataclass(frozen=True)
class SlotPlan:
    """All slots in the order of the file, and what the user should know of their description.

    >>> plan = SlotPlan((Slot("click", label="binary"), Slot("ad"), Slot("price", "float", dense=True, width=2)))
    >>> plan.names, plan.columns, plan.label.name
    (('ad',), ('price1', 'price2'), 'click')
    """

    slots: tuple[Slot, ...]
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> Slot:
        """The slot with the label."""
        return next(slot for slot in self.slots if slot.label)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the slots of categories: slot k of the samples is the k-th of them."""
        return tuple(slot.name for slot in self.slots if slot.sparse)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the dense columns; of slots whose width is known."""
        return tuple(name for slot in self.slots if slot.numbers for name in columns_of(slot))

    def schema(self) -> list[dict[str, Any]]:
        """JSON values from which `known_plan` makes this again."""
        return [asdict(slot) for slot in self.slots]


def known_plan(schema: Sequence[Mapping[str, Any]]) -> SlotPlan:
    """The plan that an earlier feed was read by. Raises ValueError or TypeError if there can be no such plan."""
    plan = SlotPlan(tuple(Slot(**slot) for slot in schema))
    for slot in plan.slots:
        texts = (slot.name, slot.type, slot.label, slot.values)
        if not all(isinstance(text, str) for text in texts) or type(slot.width) is not int:
            raise TypeError("no such slot")
    try:
        return _checked(plan, "the model")
    except InputError as error:
        raise ValueError(str(error)) from None


def columns_of(slot: Slot) -> list[str]:
    """Names of the columns of a dense slot."""
    return [slot.name] if slot.width == 1 else [f"{slot.name}{k + 1}" for k in range(slot.width)]


def read_slots(path: str, label: str = "", ignore: Sequence[str] = ()) -> SlotPlan:
    """The description in a file: TOML, or the data-feed description of the async executor.

    label: the slot that holds the label, where the file does not say so; ignore: slots to pass over.
    """
    try:
        text = read_start(path, _LARGEST).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; --slots needs a readable description of slots.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8, so no description of slots; check --slots.") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}, too large to be a description of slots; check --slots.") from None
    return parse_slots(text, path, label, ignore)


def parse_slots(text: str, where: str, label: str = "", ignore: Sequence[str] = ()) -> SlotPlan:
    """The same for a text; `where` begins messages."""
    plan = _from_description(text, where) if _is_feed_description(text) else SlotPlan(_from_toml(text, where))
    for name in ignore:
        plan = _changed(plan, name, "--ignore", where, used=False, label="")
    return _checked(_labelled(plan, label, where), where)


# -- from TOML ------------------------------------------------------------------------------------------------------


def _from_toml(text: str, where: str) -> tuple[Slot, ...]:
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise InputError(f"{where}: not valid TOML: {shorten(error)}.") from None
    for key in table:
        if key != "slot":
            raise InputError(f"{where}: unknown key {brief(key)}; a description of slots holds [[slot]] tables only.")
    entries = table.get("slot")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{where}: no slots; write a [[slot]] table with a name and a type for each of them.")
    return tuple(slot for k, entry in enumerate(entries) for slot in _slots_of(entry, f"{where}: slot {k + 1}"))


def _slots_of(entry: dict[str, Any], where: str) -> list[Slot]:
    known = [*(item.name for item in fields(Slot)), "repeat"]
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: unknown key {brief(key)}{nearest(key, known)}; keys are {', '.join(known)}.")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{where} has no name; write name = \"…\".")
    where = f"{where} (`{shown(name)}`)"
    if entry.get("type") not in KINDS:
        raise InputError(f"{where}: the type is {brief(entry.get('type'))}; choose one of {', '.join(KINDS)}.")
    for key in ("dense", "used"):
        if not isinstance(entry.get(key, False), bool):
            raise InputError(f"{where}: {key} is {brief(entry[key])}; write true or false.")
    label = _label_of(entry.get("label", False), where)
    for key, least, most in (("width", 0, _WIDEST), ("repeat", 1, MOST)):
        number = entry.get(key, least)
        if type(number) is not int or not least <= number <= most:
            raise InputError(f"{where}: {key} is {brief(number)}; it must be a whole number from {least} to {most}.")
    if not isinstance(entry.get("values", ""), str):
        raise InputError(f"{where}: values is {brief(entry['values'])}; write the name of a slot of floats.")
    given = {key: value for key, value in entry.items() if key != "repeat"}
    slot = Slot(**{**given, "label": label})
    if "repeat" not in entry:
        return [slot]
    return [replace(slot, name=f"{name}{k + 1}") for k in range(entry["repeat"])]


def _label_of(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return BINARY if value else ""
    if value in (BINARY, NUMBER):
        return str(value)
    raise InputError(f'{where}: label is {brief(value)}; write true (0 or 1) or "number".')


# -- from the data-feed description of the async executor, in protobuf's text format ---------------------------------
#
#     name: "MultiSlotDataFeed"
#     batch_size: 32
#     multi_slot_desc {
#       slots { name: "words" type: "uint64" is_dense: false is_used: true }
#       slots { name: "label" type: "uint64" is_dense: false is_used: true }
#     }
#
# Only this message is understood. Nothing in it is run: a pipe_command is left to --pipe.

_TOKEN = re.compile(r"""(?P<space>[\s,;]+|\#[^\n]*)|(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d+)|(?P<sign>[:{}<>\[\]])
                        |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", re.VERBOSE)
_ESCAPED = re.compile(r"\\(.)")
_CLOSES = {"{": "}", "<": ">"}
# Fields of each message, with their kinds. `*`: may occur several times.
_FEED = {"name": "text", "batch_size": "number", "multi_slot_desc": "slots*", "pipe_command": "text",
         "thread_num": "number"}  # fmt: skip
_SLOTS = {"slots": "slot*", "uid_slot": "text"}
_SLOT = {"name": "text", "type": "text", "is_dense": "flag", "is_used": "flag", "shape": "number*"}
_MESSAGES = {"slots": _SLOTS, "slot": _SLOT}


def _is_feed_description(text: str) -> bool:
    """Whether a text is such a description, or means to be: `name: …`, or a message in braces."""
    plain = re.sub(r"#[^\n]*", "", text)
    return re.match(r"\s*\w+\s*(:|\{|<)", plain) is not None


def _from_description(text: str, where: str) -> SlotPlan:
    feed = _Reader(text, where).message(_FEED, "")
    slots = []
    for entry in (entry for group in feed.get("multi_slot_desc", ()) for entry in group.get("slots", ())):
        for key in ("name", "type"):
            if not entry.get(key):
                raise InputError(f"{where}:{entry['line']}: a slot without {key}; write {key}: \"…\".")
        if entry["type"] not in ("uint64", "float"):
            raise InputError(f"{where}:{entry['line']}: slot `{shown(entry['name'])}` is of type"
                             f" `{shown(entry['type'])}`; MultiSlot data has uint64 and float.")
        # -1 stands for the rows of a batch.
        width = math.prod(max(size, 1) for size in entry["shape"]) if "shape" in entry else 0
        dense, used = entry.get("is_dense", False), entry.get("is_used", False)
        slots.append(Slot(entry["name"], entry["type"], dense, width, used=used))
    if not slots:
        raise InputError(f"{where}: no slots; write multi_slot_desc {{ slots {{ name: \"…\" type: \"uint64\" }} }}.")
    if not any(slot.used for slot in slots):
        raise InputError(f"{where}: no slot is used; write is_used: true into those that are to be read.")
    return SlotPlan(tuple(slots), tuple(_notes(feed, where)))


def _notes(feed: dict[str, Any], where: str) -> Iterator[str]:
    kind = feed.get("name", "MultiSlotDataFeed")
    if kind not in ("MultiSlotDataFeed", "MultiSlotInMemoryDataFeed"):
        yield f"{where} describes a `{shown(kind)}`; its slots are read as MultiSlot text."
    if feed.get("pipe_command", "cat") != "cat":
        yield f"{where} has a pipe_command, which is not run; give it with --pipe."
    for key in ("batch_size", "thread_num"):
        if key in feed:
            yield f"{where} has {key}: {feed[key]}, which is not followed; flags say how to train."


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Reader:
    """Tokens of protobuf text, one after another."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.tokens = list(self._split())
        self.next = 0

    def message(self, fields: dict[str, str], closed: str) -> dict[str, Any]:
        """The fields of a message up to `closed`, or to the end of the text."""
        found: dict[str, Any] = {}
        while True:
            token = self._take()
            if token.text == closed and token.kind in ("sign", "end"):
                return found
            if token.kind != "word":
                self._fail(token, f"expected {'a field' if not closed else f'a field or `{closed}`'}, not")
            if token.text not in fields:
                raise self._error(token, f"unknown field `{shown(token.text)}`; fields here are {', '.join(fields)}.")
            kind = fields[token.text]
            many = kind.endswith("*")
            value = self._value(kind.removesuffix("*"), token)
            if many:
                found.setdefault(token.text, []).extend(value if isinstance(value, list) else [value])
            elif token.text in found:
                raise self._error(token, f"`{token.text}` is given twice; keep one.")
            else:
                found[token.text] = value

    def _value(self, kind: str, field: _Token) -> Any:
        if kind in _MESSAGES:
            token = self._take()
            if token.text == ":":
                token = self._take()
            if token.text not in _CLOSES:
                self._fail(token, f"expected `{{` after {field.text}, not")
            line = self.text.count("\n", 0, field.at) + 1
            return {**self.message(_MESSAGES[kind], _CLOSES[token.text]), "line": line}
        token = self._take()
        if token.text != ":":
            self._fail(token, f"expected `:` after {field.text}, not")
        token = self._take()
        if kind == "number" and token.text == "[":
            return self._numbers(field)
        return self._scalar(kind, token, field)

    def _numbers(self, field: _Token) -> list[int]:
        found = []
        while (token := self._take()).text != "]":
            found.append(self._scalar("number", token, field))
        return found

    def _scalar(self, kind: str, token: _Token, field: _Token) -> Any:
        if kind == "text" and token.kind == "text":
            return _ESCAPED.sub(r"\1", token.text[1:-1])
        if kind == "number" and token.kind == "number" and len(token.text) <= 10:
            return int(token.text)
        if kind == "flag" and token.text in ("true", "false", "1", "0"):
            return token.text in ("true", "1")
        wanted = {"text": "a text in quotes", "number": "a whole number", "flag": "true or false"}[kind]
        return self._fail(token, f"{field.text} must be {wanted}, not")

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                token = _Token("other", self.text[at : at + 1], at)
                self._fail(token, "not protobuf text: unexpected")
            assert match is not None
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], at)
            at = match.end()

    def _take(self) -> _Token:
        if self.next == len(self.tokens):
            return _Token("end", "", len(self.text))
        self.next += 1
        return self.tokens[self.next - 1]

    def _fail(self, token: _Token, what: str) -> Any:
        raise self._error(token, f"{what} {f'`{shown(token.text)}`' if token.text else 'the end'}.")

    def _error(self, token: _Token, problem: str) -> InputError:
        line = self.text.count("\n", 0, token.at) + 1
        column = token.at - (self.text.rfind("\n", 0, token.at) + 1) + 1
        return InputError(f"{self.where}:{line}:{column}: {problem}")


# -- checks ---------------------------------------------------------------------------------------------------------


def _changed(plan: SlotPlan, name: str, option: str, where: str, **change: Any) -> SlotPlan:
    names = [slot.name for slot in plan.slots]
    if name not in names:
        raise ConfigError(f"{where}: there is no slot `{shown(name)}` ({option}){nearest(name, names)};"
                          f" the slots are {listed(names)}.")
    slots = tuple(replace(slot, **change) if slot.name == name else slot for slot in plan.slots)
    return replace(plan, slots=slots)


def _labelled(plan: SlotPlan, label: str, where: str) -> SlotPlan:
    """With one label: the one that the user names, the one that the file marks, else one with a usual name."""
    marked = [slot for slot in plan.slots if slot.label and slot.used]
    if label:
        bare = SlotPlan(tuple(replace(slot, label="") for slot in plan.slots), plan.notes)
        kind = next((slot.label for slot in marked if slot.name == label), BINARY)
        return _changed(bare, label, "--label", where, label=kind, used=True)
    if marked:
        return plan
    used = {slot.name.lower(): slot.name for slot in reversed(plan.slots) if slot.used}
    usual = next((used[name] for name in _LABELS if name in used), "")
    if not usual:
        raise InputError(f"{where}: no slot is the label; write label = true into one, or name it with --label.")
    return _changed(plan, usual, "--label", where, label=BINARY)


def _checked(plan: SlotPlan, where: str) -> SlotPlan:
    slots = plan.slots
    if len(slots) > MOST:
        raise InputError(f"{where}: {len(slots)} slots; at most {MOST} can be told apart.")
    repeated, times = Counter(slot.name for slot in slots).most_common(1)[0]
    if times > 1:
        raise InputError(f"{where}: two slots are named `{shown(repeated)}`; rename one of them.")
    labels = [slot.name for slot in slots if slot.label and slot.used]
    if len(labels) != 1:
        raise InputError(f"{where}: {len(labels)} slots are labels ({listed(labels)}); choose one with --label.")
    by_name = {slot.name: slot for slot in slots}
    values = {slot.values: slot.name for slot in slots if slot.values and slot.used}
    for name, owner in values.items():
        slot = by_name.get(name)
        if slot is None or slot.type != "float" or slot.dense or slot.label or not by_name[owner].sparse:
            raise InputError(f"{where}: `{shown(name)}` cannot hold the values of slot `{shown(owner)}`: that takes a"
                             " slot of categories, and one of type float that is neither dense nor the label.")
    for slot in slots:
        if slot.used and slot.type == "float" and not (slot.dense or slot.label or slot.name in values):
            raise InputError(f"{where}: slot `{shown(slot.name)}` holds floats; write dense = true (is_dense: true) if"
                             " every row has as many, used = false, or name it as the `values` of a slot of ids.")
        if slot.used and slot.type == "string" and (slot.dense or slot.label):
            raise InputError(f"{where}: slot `{shown(slot.name)}` holds words, which are neither numbers nor labels.")
    if not any(slot.sparse or slot.numbers for slot in slots):
        raise InputError(f"{where}: no slot is left for features beside the label `{shown(labels[0])}`.")
    return plan
