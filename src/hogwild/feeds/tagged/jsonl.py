"""JSON lines: one sentence an object, its columns as lists of equal length; which fields are what, and reading them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.tables.columns import find_column, list_columns
from hogwild.feeds.tagged.columns import TAGS, UNUSED, WORDS, Asked, ColumnPlan, renaming
from hogwild.feeds.tagged.text import Gathering, Origin, TextColumn
from hogwild.messages import shown

WORD_FIELDS = (WORDS, "tokens", "words", "form", "forms", "token", "word", "characters", "chars")
TAG_FIELDS = ("tags", "labels", TAGS, "label")
Fields = Mapping[str, Any]
_KINDS = {str: "a text", bool: "true or false", type(None): "null", dict: "an object", list: "a list"}


class MalformedError(Exception):
    """What is wrong with a line."""


def kind_of(value: Any) -> str:
    """What a JSON value is."""
    return _KINDS.get(type(value), "a number")


def plan_fields(objects: Sequence[Fields], asked: Asked, where: str) -> ColumnPlan:
    """Decide by the first objects which fields are columns, and which of them are the words and the tags.

    Without tags their field is not read: objects may have it or not.
    """
    config, known = asked.config, asked.known
    if config.columns:
        columns = _chosen(config.columns)
    elif known is not None and known.fields:
        columns = dict(zip(known.fields, known.names, strict=True))
    else:
        columns = _found(objects, where)
    tag = _tag_field(objects, columns, asked, where)
    if tag:
        columns.setdefault(tag, tag)
    plan = ColumnPlan(tuple(columns.values()), list(columns).index(tag) if tag else -1, tuple(columns))
    return plan if asked.with_tags or not tag else plan.without([plan.tag])


def _chosen(named: Sequence[str]) -> dict[str, str]:
    """Names of columns by field, as the user gives them."""
    columns: dict[str, str] = {}
    for name, field in map(renaming, named):
        if name == UNUSED:
            continue
        if field in columns or name in columns.values():
            raise ConfigError(f"--columns names `{shown(field)}` twice; give each column once.")
        columns[field] = name
    if not columns:
        raise ConfigError("--columns names no column; give the fields of the words and of what else features use.")
    words = next((field for field in WORD_FIELDS if columns.get(field) == field), "")
    if words and WORDS not in columns.values():
        columns[words] = WORDS
    return columns


def _found(objects: Sequence[Fields], where: str) -> dict[str, str]:
    """Names of columns by field: the words, and whatever else is a list as long as theirs in most objects."""
    fields = list(dict.fromkeys(field for each in objects for field in each))
    words = next((field for field in WORD_FIELDS if field in fields), "")
    if not words:
        raise InputError(f"{where}: no field `tokens` or `words`; {list_columns(fields)}. Name those of words and"
                         " features with --columns, as in --columns w=FIELD.")

    def fits(field: str, each: Fields) -> bool:
        value, tokens = each.get(field), each.get(words)
        if not isinstance(value, list) or not isinstance(tokens, list):
            return False
        return len(value) == len(tokens) and set(map(type, value)) <= {str, int}

    lists = [field for field in fields if 2 * sum(fits(field, each) for each in objects) > len(objects)]
    return {field: WORDS if field == words else field for field in fields if field in (words, *TAG_FIELDS, *lists)}


def _tag_field(objects: Sequence[Fields], columns: dict[str, str], asked: Asked, where: str) -> str:
    """The field of the tags; "" if there is none and none is needed."""
    config, known, with_tags = asked.config, asked.known, asked.with_tags
    wanted = config.tag_column
    present = list(dict.fromkeys(field for each in objects for field in each))
    if wanted:
        by_name = {name: field for field, name in columns.items()}
        if wanted in present or wanted in by_name:
            return by_name.get(wanted, wanted)
        if not with_tags and not wanted.lstrip("-").isdigit():
            return ""
        return find_column(wanted, tuple(columns), "--tag-column", where)
    if known is not None and known.fields and known.tag >= 0 and not config.columns:
        return known.fields[known.tag]
    usual = [field for field in (*columns, *present) if field in TAG_FIELDS or columns.get(field) == TAGS]
    if usual:
        return min(usual, key=lambda field: TAG_FIELDS.index(field) if field in TAG_FIELDS else -1)
    if config.columns:
        return list(columns)[-1] if with_tags and len(columns) > 1 else ""
    alike = [field for field in columns if field.endswith(("tags", "labels"))]
    if len(alike) == 1:
        return alike[0]
    if not with_tags:
        return ""
    raise InputError(
        f"{where}: no field `tags`; {list_columns(tuple(columns))}. Say with --tag-column which holds the tags."
    )


def lists_in(fields: Fields, plan: ColumnPlan) -> list[list[str]]:
    """The columns of one sentence. Raises MalformedError."""
    found: list[list[str]] = []
    for place, field in enumerate(plan.fields):
        if field not in fields:
            raise MalformedError(f"no field `{shown(field)}`; {list_columns(tuple(fields))}")
        values = fields[field]
        if not isinstance(values, list):
            raise MalformedError(f"`{shown(field)}` is {kind_of(values)} instead of a list")
        if found and len(values) != len(found[0]):
            raise MalformedError(
                f"`{shown(field)}` has length {len(values)}, but `{shown(plan.fields[0])}` {len(found[0])}"
            )
        if set(map(type, values)) - {str}:
            values = [_text_of(value, field, k) for k, value in enumerate(values)]
        if place == plan.tag and "" in values:
            raise MalformedError(f"`{shown(field)}`[{values.index('')}] is an empty tag")
        found.append(values)
    return found


def _text_of(value: Any, field: str, k: int) -> str:
    if type(value) is str:
        return value
    if type(value) is not int:
        raise MalformedError(f"`{shown(field)}`[{k}] is {kind_of(value)}; texts and whole numbers are read")
    return str(value)


def check_characters(lists: Sequence[Sequence[str]], plan: ColumnPlan) -> None:
    """Raise MalformedError where an escape in JSON makes half a character."""
    for field, values in zip(plan.fields, lists, strict=True):
        try:
            "".join(values).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise MalformedError(f"`{shown(field)}` has `{half}`, which is half of a character") from None


# -- reading ----------------------------------------------------------------------------------------------------------

_SAMPLE = 100    # objects from which the fields are judged
_BATCH = 1000    # sentences that are coded together
_REMEDY = "Correct the line, or skip such sentences with --bad-lines skip."


class _Row(NamedTuple):
    place: str
    line: str
    fields: Fields


class JsonReader:
    """Takes one file after the other; the columns are those of the first objects."""

    def __init__(self, gathering: Gathering, asked: Asked) -> None:
        self.gathering, self.asked = gathering, asked
        self.plan: ColumnPlan | None = None
        self._lines: list[str] = []
        self._places: list[int] = []

    def read(self, source: Source) -> None:
        """Take the sentences of a file."""
        rows = self._rows(source)
        if self.plan is None:
            first = list(islice(rows, _SAMPLE))
            if not first:
                return
            self.plan = plan_fields([row.fields for row in first], self.asked, first[0].place)
            self.asked.places(self.plan, source.name)  # says at once what is missing
            self.gathering.open(len(self.plan.names))
            rows = chain(first, rows)
        while batch := list(islice(rows, _BATCH)):
            self._take(batch, self.plan)

    def origin(self, columns: tuple[TextColumn, ...]) -> Origin:
        """The objects as they were."""
        return Origin("jsonl", (), " ", tuple(self._lines), np.array(self._places, np.int64), len(self._lines))

    def notes(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """What was decided that the user did not say."""
        config, plan = self.asked.config, self.plan
        if plan is None or self.asked.needed or (config.columns and config.tag_column):
            return []
        pairs = zip(plan.names, plan.fields, strict=True)
        names = [name if name == field else f"{name} ({field})" for name, field in pairs]
        tags = f"; tags: {names[plan.tag]}" if plan.tag >= 0 else ""
        used = ", ".join(names[k] for k in plan.features().values())
        return [f"Columns: {used}{tags} (--columns and --tag-column say otherwise)."]

    def _rows(self, source: Source) -> Iterator[_Row]:
        """The objects of a file; malformed lines are reported."""
        for block in self.gathering.blocks(source):
            for number, line in enumerate(block.text.tobytes().decode().split("\n"), block.line):
                if not line or line.isspace():
                    continue
                try:
                    yield _Row(source.place(number), line.strip(), _object_in(line))
                except MalformedError as problem:
                    self._report(source.place(number), problem)

    def _report(self, place: str, problem: MalformedError) -> None:
        self.gathering.report(f"{place}: {problem}", _REMEDY)
        self.gathering.bad.seen(1)

    def _take(self, rows: Sequence[_Row], plan: ColumnPlan) -> None:
        values: list[list[str]] = [[] for _ in plan.names]
        lengths: list[int] = []
        for place, line, fields in rows:
            try:
                lists = lists_in(fields, plan)
                if "\\u" in line:
                    check_characters(lists, plan)
            except MalformedError as problem:
                self._report(place, problem)
                continue
            self.gathering.bad.seen(1)
            if lists[0]:
                self._places.append(len(self._lines))
                lengths.append(len(lists[0]))
                for column, more in zip(values, lists, strict=True):
                    column += more
            else:
                self.gathering.left_out["empty sentence"] += 1
            self._lines.append(line)
        codes = [coder.codes(column) for coder, column in zip(self.gathering.coders, values, strict=True)]
        self.gathering.add(codes, np.array(lengths, np.int64))


def _object_in(line: str) -> Fields:
    try:
        fields = json.loads(line)
    except RecursionError:
        raise MalformedError("lists inside lists without end") from None
    except ValueError as error:
        raise MalformedError(f"not JSON ({error}); write one object a line, as `jq -c` does") from None
    if not isinstance(fields, dict):
        raise MalformedError(f"{kind_of(fields)} instead of an object; write one object a line, as `jq -c` does")
    return fields
