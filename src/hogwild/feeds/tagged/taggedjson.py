"""Read JSON lines: one sentence an object, its columns as lists of equal length."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from hogwild.feeds.io.source import Source
from hogwild.feeds.tagged.columns import Asked, ColumnPlan
from hogwild.feeds.tagged.jsonl import Fields, MalformedError, check_characters, kind_of, lists_in, plan_fields
from hogwild.feeds.tagged.taggedtext import Origin, TextColumn
from hogwild.feeds.tagged.text import Gathering

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

    def columns(self) -> tuple[TextColumn, ...]:
        """All columns."""
        names = self.plan.names if self.plan else ()
        return tuple(self.gathering.column(k, name) for k, name in enumerate(names))

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
