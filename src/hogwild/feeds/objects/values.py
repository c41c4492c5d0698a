"""What stands in a line of JSON, and what kind of values a field has: judged by the first lines, one kind a field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hogwild.messages import shown

NOTHING, NUMBER, WHOLE, TEXT, TRUTH, TEXTS, WHOLES, OBJECT, LIST, MIXED = (
    "nothing", "a number", "a whole number", "a text", "true or false", "a list of texts", "a list of whole numbers",
    "an object", "a list", "mixed",
)  # fmt: skip
_BEGINNING = re.compile(rb'\s*\{\s*("|\})')
_NUMBERS = {WHOLE, NUMBER}
_LISTS = {TEXTS, WHOLES}
_EMPTY = "an empty list"


class MalformedError(Exception):
    """What is wrong with a line."""


def is_object(line: bytes) -> bool:
    """Whether a line begins as an object of JSON does."""
    return _BEGINNING.match(line) is not None


def object_in(line: str) -> dict[str, Any]:
    """The fields of a line. Raises MalformedError."""
    try:
        found = json.loads(line, object_pairs_hook=_once)
    except RecursionError:
        raise MalformedError("lists or objects inside each other without end") from None
    except ValueError as error:
        raise MalformedError(f"not JSON ({shown(str(error), 100)}); write one object a line, as `jq -c` does") from None
    if not isinstance(found, dict):
        raise MalformedError(f"{kind_of(found)} instead of an object; write one object a line, as `jq -c` does")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MalformedError(f"the field `{shown(twice)}` stands there twice")
    return found


def kind_of(value: Any) -> str:
    """What a value of JSON is."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int):
        return WHOLE
    if isinstance(value, float):
        return NUMBER if value == value else NOTHING
    if isinstance(value, str):
        return TEXT
    if isinstance(value, dict):
        return OBJECT
    kinds = {kind_of(item) for item in value}
    if not kinds:
        return _EMPTY
    return TEXTS if kinds == {TEXT} else WHOLES if kinds == {WHOLE} else LIST


class Field(NamedTuple):
    """What a field is in the first lines; line: where it is first what no column can be, or of another kind."""

    kind: str = NOTHING
    line: int = 0
    found: str = ""

    def joined(self, kind: str, line: int) -> Field:
        """With one value more."""
        if self.line or kind == NOTHING or kind == self.kind or (kind == _EMPTY and self.kind in (*_LISTS, LIST)):
            return self
        if self.kind == NOTHING or (self.kind == _EMPTY and kind in (*_LISTS, LIST)):
            return Field(kind, line if kind in (OBJECT, LIST) else 0, kind)
        if {self.kind, kind} <= _NUMBERS:
            return Field(NUMBER)
        return Field(MIXED, line, f"{kind} in line {line}, and {self.kind} before")

    @property
    def plain(self) -> str:
        """Its kind, where an empty list may be one of texts."""
        return TEXTS if self.kind == _EMPTY else self.kind


def fields_of(
    lines: Iterator[tuple[int, str]], words: frozenset[str]
) -> tuple[dict[str, Field], list[Mapping[str, Any]]]:
    """The fields of the first lines, in the order in which they come, and the objects; malformed lines are passed over.

    words: texts that stand for a missing value.
    """
    fields: dict[str, Field] = {}
    objects: list[Mapping[str, Any]] = []
    for number, line in lines:
        try:
            found = object_in(line)
        except MalformedError:
            continue
        objects.append(found)
        for name, value in found.items():
            kind = NOTHING if isinstance(value, str) and value.strip().lower() in words else kind_of(value)
            fields[name] = fields.get(name, Field()).joined(kind, number)
    return fields, objects


def trouble(name: str, field: Field, where: str) -> str:
    """Why a field can be no column, as what follows its name; nothing if it can. where: the file."""
    if field.kind == OBJECT:
        return f"is an object ({where}:{field.line}); give each of its parts a field of its own, as `jq` does with" \
               f" `.{shown(name)}_part = .{shown(name)}.part`"
    if field.kind in (LIST, *_LISTS, _EMPTY):
        at = f" ({where}:{field.line})" if field.line else ""
        return f"is a list{at}, which only a label can be; give each part a field of its own"
    if field.kind == MIXED:
        return f"is {field.found} ({where}:{field.line}); write all values as one kind"
    return ""


def texts_of(objects: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The texts of a field."""
    return [value if isinstance(value := each.get(name), str) else "" for each in objects]
