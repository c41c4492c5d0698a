"""The fields of JSON lines: which of them are columns, which hold the words and the tags, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.labels import shown
from hogwild.feeds.tables.columns import find_column, list_columns
from hogwild.feeds.tagged.columns import TAGS, UNUSED, WORDS, Asked, ColumnPlan, renaming

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
        raise InputError(
            f"{where}: no field `tokens` or `words`; {list_columns(fields)}. Name those of words and features with"
            " --columns, as in --columns w=FIELD."
        )

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
