"""Sentences in memory as the columns that a model reads: tokens, rows or dicts; many as a text, one quickly as ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hogwild.errors import InputError, ModelError
from hogwild.feeds.tagged.columns import ColumnPlan
from hogwild.feeds.tagged.templates import TRANSFORMS, YES, Atom, Step, Templates
from hogwild.feeds.tagged.text import Coder, TaggedText, TextColumn
from hogwild.messages import shown

_KEPT = 1 << 16  # values of which a transform is remembered


class Cells:
    """Takes sentences apart into the columns that the features of a model are made of.

    A sentence is a list of tokens, or a line of tokens with spaces between them. A token is a string where there is one
    column only; else a row of strings in the order of the file, its tag apart or not, or a dict by names of columns. Of
    segmented text tokens are characters, so that a string is a sentence.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.plan = ColumnPlan.known(schema)
        self.places = self.plan.features()
        self.names = tuple(self.places)
        self.letters = schema.get("format") == "segmented"
        if not self.names:
            raise ModelError("the model does not say which columns its features are made of; copy it again.")

    def columns(self, sentence: Any, where: str) -> list[list[str]]:
        """The values of each column; `where` begins messages."""
        if isinstance(sentence, str):
            sentence = "".join(sentence.split()) if self.letters else sentence.split()
        elif isinstance(sentence, (bytes, Mapping)) or not isinstance(sentence, Iterable):
            kind = type(sentence).__name__
            raise InputError(f"{where} is of type {kind}; give a list of tokens, or of rows of {self._named()}.")
        tokens = list(sentence)
        if len(self.names) == 1 and set(map(type, tokens)) <= {str}:
            return [tokens]
        rows = [self._row(token, f"{where}, token {place}") for place, token in enumerate(tokens)]
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in self.names]

    def _row(self, token: Any, where: str) -> list[str]:
        if isinstance(token, Mapping):
            if missing := next((name for name in self.names if name not in token), ""):
                raise InputError(f"{where} has no `{shown(missing)}`; the model looks at {self._named()}.")
            row = [token[name] for name in self.names]
        elif isinstance(token, str):
            row = [token]
        elif isinstance(token, Sequence):
            row = list(token)
            if len(row) != len(self.names):
                whole = len(self.plan.names)
                plan = self.plan.without([self.plan.tag]) if len(row) == whole - 1 and self.plan.tag >= 0 else self.plan
                row = [row[place] for place in plan.features().values()] if len(row) in (whole, whole - 1) else row
        else:
            raise InputError(f"{where} is of type {type(token).__name__}; give {self._named()}.")
        if len(row) != len(self.names):
            values = f"the value `{shown(row[0])}`" if len(row) == 1 else f"{len(row)} values"
            raise InputError(f"{where} has {values}; the model looks at {self._named()}: give a row or a dict of them.")
        odd = next((value for value in row if not isinstance(value, str)), None)
        if odd is not None or None in row:
            raise InputError(f"{where} holds {shown(repr(odd))}; give strings.")
        return row

    def _named(self) -> str:
        return ", ".join(f"`{shown(name)}`" for name in self.names)


def text_of(sentences: Iterable[Any], schema: Mapping[str, Any]) -> TaggedText:
    """Sentences without tags, none of them empty, as a text that was read by this schema.

    >>> schema = {"format": "conll", "columns": ["w", "pos", "tag"], "tag": 2, "fields": []}
    >>> text_of([[("to", "TO"), {"w": "be", "pos": "VB"}]], schema).columns[1].strings()
    ['TO', 'VB']
    """
    cells = Cells(schema)
    coders = [Coder() for _ in cells.names]
    parts: list[list[np.ndarray[Any, Any]]] = [[] for _ in cells.names]
    sizes = [0]
    for place, sentence in enumerate(sentences):
        columns = cells.columns(sentence, f"sentence {place}")
        for part, coder, column in zip(parts, coders, columns, strict=True):
            part.append(coder.codes(column))
        if not columns[0]:
            raise InputError(f"sentence {place} has no tokens; leave it out.")
        sizes.append(len(columns[0]))
    if len(sizes) == 1:
        raise InputError("there are no sentences; give at least one.")
    made = zip(cells.names, parts, coders, strict=True)
    columns_of = tuple(TextColumn(name, np.concatenate(part), coder.strings()) for name, part, coder in made)
    return TaggedText(columns_of, None, np.cumsum(sizes, dtype=np.int64), schema=dict(schema))


# -- one sentence -----------------------------------------------------------------------------------------------------


class SentenceFeatures:
    """The ids of the features of one sentence: for one, Python is quicker than the arrays that compiled code needs."""

    def __init__(self, schema: Mapping[str, Any], templates: Templates, places: Mapping[str, int]) -> None:
        self.cells = Cells(schema)
        templates.check_columns(self.cells.names)
        atoms = [atom for template in templates.items for atom in template.atoms]
        reach = max((abs(atom.offset) for atom in atoms), default=0)
        self._before = [f"_B-{k}" for k in range(reach, 0, -1)]
        self._after = [f"_E+{k}" for k in range(1, reach + 1)]
        self._templates = [
            (f"{template}=" if template.atoms else str(template), template.atoms) for template in templates.items
        ]
        self._atoms = list(dict.fromkeys(atoms))
        self._find = places.get
        self._known: dict[tuple[Step, ...], dict[str, str | None]] = {atom.steps: {} for atom in atoms}

    def rows(self, sentence: Any) -> tuple[list[list[int]], int]:
        """For each token the ids of the features that are known, in order; and how many are not."""
        columns = dict(zip(self.cells.names, self.cells.columns(sentence, "the sentence"), strict=True))
        tokens = len(columns[self.cells.names[0]])
        made: dict[Any, list[str | None]] = {}
        values = {atom: self._values(atom, columns[atom.column], made) for atom in self._atoms}
        find, found, total = self._find, [], 0
        for begin, atoms in self._templates:
            if len(atoms) == 1:
                names = [None if value is None else begin + value for value in values[atoms[0]]]
            elif atoms:
                parts = zip(*(values[atom] for atom in atoms), strict=True)
                names = [None if None in part else begin + "|".join(part) for part in parts]
            else:
                names = [begin] * tokens
            total += tokens - names.count(None)
            found.append([find(name, -1) for name in names])  # type: ignore[arg-type]
        rows = [sorted([place for place in row if place >= 0]) for row in zip(*found, strict=True)]
        return rows, total - sum(map(len, rows))

    def words(self, sentence: Any, column: str) -> list[str]:
        """What the tokens have in a column."""
        return self.cells.columns(sentence, "the sentence")[self.cells.names.index(column)]

    def _values(self, atom: Atom, column: list[str], made: dict[Any, list[str | None]]) -> list[str | None]:
        """What an atom gives at each token."""
        wanted = atom.column, atom.steps
        if wanted not in made:
            known = self._known[atom.steps]
            changed = [known[value] if value in known else self._changed(value, atom.steps) for value in column]
            made[wanted] = [*self._before, *changed, *self._after]
        padded, reach, tokens = made[wanted], len(self._before), len(column)
        if atom.other is None:
            return padded[reach + atom.offset : reach + atom.offset + tokens]
        inside = padded[reach : reach + tokens]
        return [self._same(inside, place + atom.offset, place + atom.other) for place in range(tokens)]

    def _changed(self, value: str, steps: tuple[Step, ...]) -> str | None:
        """What transforms make of a value that is met for the first time, or after too many others."""
        made: str | None = value
        for step in steps:
            made = None if made is None else TRANSFORMS[step.name].make(made, step.number)
        known = self._known[steps]
        if len(known) < _KEPT:
            known[value] = made
        return made

    @staticmethod
    def _same(values: list[str | None], one: int, other: int) -> str | None:
        if min(one, other) < 0 or max(one, other) >= len(values) or values[one] is None:
            return None
        return YES if values[one] == values[other] else None

