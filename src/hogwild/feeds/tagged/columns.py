"""Which column of tagged text is what: decided once for the first file, and found again in every other."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hogwild.config import TaggingConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.tables.columns import find_column, list_columns
from hogwild.messages import shown

UNUSED = "-"
WORDS, TAGS = "w", "tag"     # names of the columns of words and tags, unless the user gives others
FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")  # of CoNLL-U
_USUAL_TAG = "upos"
_NAME = re.compile(r"[^\s\[\](),|=]+")  # what templates can name


@dataclass(frozen=True)
class ColumnPlan:
    """names: of all columns in the order of the file, `-` for those that no feature is made of.
    tag: the place of the tags among them; -1: there are none.
    fields: in formats with names of their own (JSON lines), what each column is called there.
    """

    names: tuple[str, ...]
    tag: int = -1
    fields: tuple[str, ...] = ()

    @classmethod
    def known(cls, schema: Mapping[str, Any]) -> ColumnPlan:
        """The plan that an earlier text was read by. Raises ModelError if there can be no such plan."""
        names, tag, fields = schema.get("columns"), schema.get("tag"), schema.get("fields")
        if isinstance(names, list) and isinstance(fields, list) and type(tag) is int:
            texts = all(isinstance(name, str) for name in (*names, *fields))
            if texts and -1 <= tag < len(names) and len(fields) in (0, len(names)):
                return cls(tuple(names), tag, tuple(fields))
        raise ModelError("what the model says of its columns is damaged; copy the model again.")

    def schema(self, form: str) -> dict[str, Any]:
        """JSON values from which `known` makes this plan again."""
        return {"format": form, "columns": list(self.names), "tag": self.tag, "fields": list(self.fields)}

    def features(self) -> dict[str, int]:
        """The places of the columns that features are made of, by name."""
        return {name: k for k, name in enumerate(self.names) if name != UNUSED and k != self.tag}

    def without(self, places: Sequence[int]) -> ColumnPlan:
        """The plan of files that lack these columns."""
        kept = [k for k in range(len(self.names)) if k not in places]
        fields = tuple(self.fields[k] for k in kept) if self.fields else ()
        return ColumnPlan(tuple(self.names[k] for k in kept), kept.index(self.tag) if self.tag in kept else -1, fields)


def narrowed(schema: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    """The schema for a model that looks at these columns only: other text need not have the rest.

    >>> narrowed({"format": "conll", "columns": ["w", "pos", "tag"], "tag": 2, "fields": []}, ["w"])["columns"]
    ['w', '-', 'tag']
    """
    plan = ColumnPlan.known(schema)
    idle = [k for name, k in plan.features().items() if name not in used]
    if len(idle) == len(plan.features()):  # templates that look at nothing
        return dict(schema)
    if plan.fields:
        plan = plan.without(idle)
    names = tuple(UNUSED if k in idle and not plan.fields else name for k, name in enumerate(plan.names))
    return {**schema, **ColumnPlan(names, plan.tag, plan.fields).schema(schema["format"])}


class Asked(NamedTuple):
    """What the user says, what a model says, and whether there must be tags.

    known: the plan of the model's text, if that was of the same format; needed: its features, in their order.
    """

    config: TaggingConfig
    with_tags: bool
    known: ColumnPlan | None = None
    needed: tuple[str, ...] = ()

    def places(self, plan: ColumnPlan, where: str) -> list[int]:
        """The places of the columns that features are made of: those that the model needs, in its order, or all."""
        found = plan.features()
        if not found:
            raise ConfigError(f"{where}: no column is left for features beside the tags; check --columns.")
        for name in self.needed:
            if name not in found:
                raise InputError(f"{where}: the model needs a column `{shown(name)}`; {list_columns(tuple(found))}."
                                 " Name those of the file with --columns.")
        return [found[name] for name in self.needed or found]


def usual_names(count: int) -> tuple[str, ...]:
    """Names of columns before the tags.

    >>> usual_names(4)
    ('w', 'pos', 'c2', 'c3')
    """
    return (WORDS, "pos", *(f"c{k}" for k in range(2, count)))[:count]


def plan_columns(count: int, asked: Asked, where: str) -> ColumnPlan:
    """The plan of a CoNLL file with so many columns."""
    config, known = asked.config, asked.known
    if not config.columns and known is None:
        return _usual_plan(count, asked, where)
    names = config.columns or (known.names if known else ())
    check_names(names)
    tag = _tag_place(names, asked, where)
    if tag >= 0 and names[tag] == UNUSED:  # found by its number
        names = (*names[:tag], TAGS, *names[tag + 1 :])
    plan = ColumnPlan(names, tag)
    if count == len(names):
        return plan
    if not asked.with_tags:
        if plan.tag >= 0 and count == len(names) - 1:
            return plan.without([plan.tag])
        used = plan.features().values()
        if count == len(used):
            return plan.without([k for k in range(len(names)) if k not in used])
    lines = "" if asked.with_tags else " (tokens: a sentence a line)"
    raise InputError(f"{where}: {count} columns found, {len(names)} expected ({', '.join(map(shown, names))}); name all"
                     f" columns with --columns, `-` for those that features shall not use, or check --format{lines}.")


def plan_conllu(asked: Asked, where: str) -> ColumnPlan:
    """That of CoNLL-U: features of the words only, and the tags are upos, unless the user says otherwise."""
    config, known = asked.config, asked.known
    tag = FIELDS.index(_USUAL_TAG)
    if config.tag_column:
        tag = find_place(config.tag_column, FIELDS, where)
    elif known is not None and known.tag >= 0:
        tag = known.tag
    if known is not None and not config.columns:
        if len(known.names) != len(FIELDS):
            raise ModelError("what the model says of its columns is damaged; copy the model again.")
        return ColumnPlan(known.names, tag)
    names = [UNUSED] * len(FIELDS)
    for name, field in map(renaming, config.columns or (WORDS,)):
        if name != UNUSED:
            place = FIELDS.index(find_column("form" if field == WORDS else field, FIELDS, "--columns", where))
            names[place] = WORDS if name == "form" else name
    names[tag] = FIELDS[tag]
    check_names(names)
    return ColumnPlan(tuple(names), tag)


def check_names(names: Sequence[str]) -> None:
    """Raise ConfigError where a name cannot be used in templates, or is given twice."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"--columns: a column cannot be named `{shown(name)}`; use letters, digits and `_`.")
        if name != UNUSED and list(names).count(name) > 1:
            raise ConfigError(f"--columns names `{name}` twice; `{UNUSED}` is for columns that features shall not use.")


def renaming(column: str) -> tuple[str, str]:
    """The name of a column, and of the field that it is read from.

    >>> renaming("pos=xpos"), renaming("lemma")
    (('pos', 'xpos'), ('lemma', 'lemma'))
    """
    name, given, field = column.partition("=")
    return (name, field) if given else (name, name)


def find_place(wanted: str, names: Sequence[str], where: str) -> int:
    """The place of the tags, which the user gives by name or number."""
    unique = tuple(str(k) if name == UNUSED else name for k, name in enumerate(names))
    return unique.index(find_column(wanted, unique, "--tag-column", where))


def _tag_place(names: tuple[str, ...], asked: Asked, where: str) -> int:
    config, known = asked.config, asked.known
    if config.tag_column:
        return find_place(config.tag_column, names, where)
    if known is not None and not config.columns:
        return known.tag
    usual = known.names[known.tag] if known and known.tag >= 0 else TAGS
    if usual in names:
        return names.index(usual)
    if not asked.with_tags:
        return -1
    if names[-1] == UNUSED:
        raise ConfigError(f"--columns: the last column is `{UNUSED}`, and none is named `{TAGS}`; say with --tag-column"
                          " which holds the tags.")
    return len(names) - 1


def _usual_plan(count: int, asked: Asked, where: str) -> ColumnPlan:
    """Tags in the last column, or in the one that the user says; columns after the tags are not used."""
    wanted = asked.config.tag_column
    if not wanted and not asked.with_tags:
        return ColumnPlan(usual_names(count))
    if count == 1:
        raise InputError(f"{where}: there is one column only, so that no tags stand beside the words; check --format"
                         " (segmented: words separated by spaces).")
    tag = find_place(wanted, (*usual_names(count - 1), TAGS), where) if wanted else count - 1
    before = usual_names(tag)
    after = (UNUSED,) * (count - tag - 1)
    return ColumnPlan((*before, TAGS, *after) if before else (TAGS, WORDS, *after[1:]), tag)
