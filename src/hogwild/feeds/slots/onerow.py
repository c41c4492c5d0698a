"""One row of slots as features: a mapping of slots to ids and of dense columns to numbers, or values in their order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hogwild.config import FeedConfig
from hogwild.errors import InputError, brief
from hogwild.feeds.slots.description import columns_of, known_plan
from hogwild.feeds.slots.ids import PlainIds, SlotIds
from hogwild.feeds.sparse.encoder import reading_schema
from hogwild.feeds.sparse.features import Standards
from hogwild.feeds.sparse.onerow import OneRow, finite
from hogwild.messages import listed, shown

_KEYS = 2**64


class SlotRow:
    """Rows of MultiSlot, Criteo's and libffm files by the schema of a model.

    A slot has an id, several in a list, or {id: value}; what Criteo's logs write as hexadecimal digits may be given so.
    features: how many there are without the dense columns.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._form = str(schema.get("format"))
        with reading_schema(schema, self._form):
            self._slots, dense = tuple(schema["slots"]), tuple(schema.get("dense", ()))
            plain, config = "features" in schema, FeedConfig()
            self._ids = PlainIds(config, schema) if plain else SlotIds(self._slots, config, schema)
            self._standards = Standards(len(dense), schema, asked=False)
            self._dense = dense
            self._wide = {}
            self._order = (*dense, *self._slots)
            if "plan" in schema:
                plan = known_plan(schema["plan"])
                self._wide = {slot.name: columns_of(slot) for slot in plan.slots if slot.numbers and slot.width != 1}
                self._order = tuple(slot.name for slot in plan.slots if slot.sparse or slot.numbers)
        self.features = self._ids.features

    def __call__(self, row: Any) -> OneRow:
        """The features of a row. Raises InputError for a slot or column that it lacks, and ids that are none."""
        if not isinstance(row, Mapping):
            row = self._named(row)
        row = self._spread(row)
        try:
            dense = [self._number(row[name], name) for name in self._dense]
            entries = [(k, *pair) for k, name in enumerate(self._slots) for pair in self._keys(row[name], name)]
        except KeyError as error:
            raise InputError(f"`{shown(str(error.args[0]))}` is missing in the row, which has {listed(self._order)};"
                             " an empty slot is [].") from None  # fmt: skip
        slots = np.array([slot for slot, _, _ in entries], np.uint16)
        found = self._ids.ids(np.array([key for _, key, _ in entries], np.uint64), slots)[0].tolist()
        known = [k for k, ident in enumerate(found) if ident >= 0]
        if dense:
            dense = self._standards.standardized(np.array(dense, np.float32)).tolist()
        return OneRow([found[k] for k in known], [entries[k][2] for k in known], [entries[k][0] for k in known], dense)

    def _named(self, row: Any) -> Mapping[str, Any]:
        if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) != len(self._order):
            asked = f"a row of {len(self._order)} values is asked for"
            raise InputError(f"{asked}, not {brief(row)}: {listed(self._order)}.")
        return dict(zip(self._order, row, strict=True))

    def _spread(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """With a value for each column of a dense slot that has several."""
        for name, columns in self._wide.items():
            if name in row:
                if not hasattr(row[name], "__len__") or len(row[name]) != len(columns):
                    raise InputError(f"slot `{shown(name)}` has {len(columns)} numbers, not {brief(row[name])}.")
                row = {**row, **dict(zip(columns, row[name], strict=True))}
        return row

    def _number(self, value: Any, name: str) -> float:
        number = 0.0 if value is None or value == "" else finite(value, name)
        if self._form != "criteo":
            return number
        return math.log1p(number) if number >= 0 else -math.log1p(-number)

    def _keys(self, given: Any, name: str) -> Iterator[tuple[int, float]]:
        """Keys of one slot, each with its value."""
        if given is None or given == "":
            return
        pairs = given.items() if isinstance(given, Mapping) else ((key, 1.0) for key in _several(given))
        for key, value in pairs:
            try:
                number = int(key, 16 if self._form == "criteo" else 10) if isinstance(key, str) else int(key)
            except (TypeError, ValueError):
                number = -1
            if not 0 <= number < _KEYS:
                raise InputError(f"slot `{shown(name)}`: {brief(key)} is no id, which is a whole number below 2^64.")
            yield number, finite(value, name)


def _several(given: Any) -> Any:
    return given if isinstance(given, list | tuple | np.ndarray) else (given,)
