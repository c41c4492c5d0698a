"""JSON lines as frames of a table: which fields its columns are, and what kind of values they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, check_utf8, head_of
from hogwild.feeds.io.source import Source
from hogwild.feeds.objects.read import Wanted, read_columns
from hogwild.feeds.objects.values import (
    NOTHING,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    WHOLES,
    Field,
    MalformedError,
    fields_of,
    object_in,
    texts_of,
    trouble,
)
from hogwild.feeds.tables.columns import CATEGORICAL, NUMERIC, SAMPLE, Plan, Sample, list_columns, place_columns
from hogwild.feeds.tables.fields import FieldRules
from hogwild.feeds.tables.frames import Frame
from hogwild.messages import listed

_LISTS = (TEXTS, WHOLES)
_JUDGED = 16  # lines that are looked at, however long they are


class ObjectShape(NamedTuple):
    """Fields to read, and the column of the plan that each is."""

    wanted: Wanted
    names: Mapping[str, str]


class ObjectFile:
    """The first lines of a file of JSON lines. names: its fields; sample: of them, to judge columns by; labels: kinds
    of labels that a field would be, `numbers`, `words` or `lists`; malformed: these lines, if none of them is right."""

    def __init__(self, source: Source, config: FeedConfig, rules: FieldRules) -> None:
        self.source, self._config, self._rules = source, config, rules
        head = head_of(source, config.invalid_utf8 == "replace", _JUDGED).split("\n")
        lines = [(k, line) for k, line in enumerate(head, 1) if line.strip()][:SAMPLE]
        self._words = frozenset(word.lower() for word in rules.missing)
        self._fields, objects = fields_of(iter(lines), self._words)
        self.malformed = [] if self._fields else lines
        self.names = tuple(self._fields)
        texts = {name: texts_of(objects, name) for name, field in self._fields.items() if field.kind == TEXT}
        kinds = {name: _kind(name, field, source.name) for name, field in self._fields.items()}
        if rules.style != "plain" or rules.dates:
            kinds |= Sample.of(texts, rules).kinds
        self.sample = Sample(kinds, {name: rules.present(fields) for name, fields in texts.items()})

    def report(self, bad: BadLines) -> None:
        """Not one of the first lines is right: there is nothing to go by, and what is wrong with each is told."""
        for line, text in self.malformed:
            bad.report(f"{self.source.place(line)}: {_why_malformed(text)}")
        bad.seen(len(self.malformed))

    def label_kind(self, name: str) -> str:
        """What labels in this field are."""
        kind = self._fields[name].plain if name in self._fields else TEXT
        return "lists" if kind in _LISTS else "numbers" if kind in (NUMBER, WHOLE) else "words"

    def shape(self, plan: Plan, training: bool, weight: str) -> tuple[ObjectShape, list[str]]:
        """How the columns of a plan and the weight are read, and a note on those that no first line has."""
        config, where = self._config, self.source.name
        absent = [name for name in plan.features() if name not in self._fields]
        if len(absent) == len(plan.features()):
            place_columns(plan, self.names, len(self.names), config, where)  # says which are missing
        label = config.label if config.label in self._fields else plan.label
        if label not in self._fields and not config.unlabelled:
            raise InputError(f"{where}: the label `{label}` is missing in the first lines; {list_columns(self.names)}.")
        names = {name: name for name in plan.features()}
        if label in self._fields:
            names[label] = plan.label
        if weight:
            names[weight] = weight
        kinds = {field: self._read_as(field, column, plan) for field, column in names.items()}
        known = frozenset(self._fields) if training else None
        notes = [f"{where}: the first lines have no {listed(absent)}, which is missing then."] if absent else []
        return ObjectShape(Wanted(kinds, self._words, known), names), notes

    def _read_as(self, field: str, column: str, plan: Plan) -> str:
        """The kind of values as which a field is read."""
        found = self._fields.get(field, Field())
        is_label = column == plan.label
        if (why := trouble(field, found, self.source.name)) and not (is_label and found.plain in _LISTS):
            raise InputError(f"{self.source.name}: column `{field}` {why}.")
        if found.kind == NOTHING:
            return TEXT if column in (*plan.categorical, plan.label, plan.text) else NUMBER
        return NUMBER if found.kind == WHOLE and column not in plan.categorical else found.plain


def _why_malformed(line: str) -> str:
    """What is wrong with a line."""
    try:
        object_in(line)
    except MalformedError as problem:
        return str(problem)
    return "an object without fields"


def _kind(name: str, field: Field, where: str) -> str:
    if why := trouble(name, field, where):
        return why
    return CATEGORICAL if field.kind == TEXT else NUMERIC


def read_objects(block: Block, shape: ObjectShape, replace: bool) -> tuple[Frame, frozenset[str]]:
    """The rows of a block, and fields that the first lines do not have."""
    text, replaced = check_utf8(block, replace)
    found = read_columns(text, shape.wanted)
    arrays = {shape.names[name]: array for name, array in found.arrays.items()}
    wrong = {block.line + line: problem for line, problem in found.wrong.items()}
    seen = len(found.lines) + len(wrong)
    return Frame(block.source, block.file, found.lines + block.line, arrays, wrong, seen, replaced), found.late


def late_note(late: frozenset[str]) -> str:
    """What to tell of fields that only later lines have."""
    return f"Fields that the first lines do not have are not read: {listed(sorted(late))}."
