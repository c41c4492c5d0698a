"""From columns and templates to the arrays of kernels/ids/templates.py: each transform once for a distinct value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError
from hogwild.feeds.tagged.presets import YES
from hogwild.feeds.tagged.taggedtext import TaggedText, TextColumn
from hogwild.feeds.tagged.templates import Atom, Step, Templates
from hogwild.feeds.tagged.transforms import TRANSFORMS
from hogwild.kernels.ids.templates import MISSING, Plan, Values, measure_names, start_hashes, write_names

_ATOM = 5  # cells of an atom, see kernels/ids/templates.py


@dataclass(frozen=True)
class FeaturePlan:
    """All that compiled code needs to make the features of a text. begins: what names begin with, for each template."""

    plan: Plan
    values: Values
    begins: Values

    def names(self, places: Offsets) -> tuple[str, ...]:
        """Names of features, each given by a place (token * templates + template) where it occurs."""
        sentences = np.searchsorted(self.plan.offsets, places // len(self.plan.sizes), side="right") - 1
        sizes, letters = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        measure_names(self.plan, self.values, self.begins.starts, places, sentences, sizes)
        data = np.empty(int(sizes.sum()), np.uint8)
        write_names(self.plan, self.values, self.begins, places, sentences, data, letters)
        return cut_text(data.tobytes().decode(), letters.tolist())


def cut_text(text: str, letters: Iterable[int]) -> tuple[str, ...]:
    """Strings that stand one after another, from the number of their characters."""
    return tuple(text[start:end] for start, end in pairwise(accumulate(letters, initial=0)))


def packed(strings: Sequence[str], what: str, reach: int = 0) -> Values:
    """Strings as bytes."""
    try:
        encoded = [string.encode() for string in strings]
    except UnicodeEncodeError as error:
        raise InputError(f"{what}: a value holds half a surrogate pair ({error.reason}); it is no text.") from None
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
    return Values(np.frombuffer(bytearray(b"".join(encoded)), np.uint8), starts, reach)


def plan_features(text: TaggedText, templates: Templates) -> FeaturePlan:
    """Lay out the templates over a text. Raises InputError for an unknown column."""
    columns = {column.name: column for column in text.columns}
    templates.check_columns(list(columns))
    atoms = [atom for template in templates.items for atom in template.atoms]
    used = list(dict.fromkeys(atom.column for atom in atoms))
    reach = max((abs(atom.offset) for atom in atoms), default=0)
    strings = [f"_B-{k}" for k in range(1, reach + 1)] + [f"_E+{k}" for k in range(1, reach + 1)] + [YES]
    remaps: dict[tuple[str, tuple[Step, ...]], int] = {}
    parts: list[Ids] = []
    size = 0
    for atom in atoms:
        wanted = atom.column, atom.steps
        if wanted not in remaps:
            remaps[wanted] = size
            parts.append(_remap(columns[atom.column], atom, strings))
            size += len(parts[-1])
    table = np.zeros((len(atoms), _ATOM), np.int64)
    for row, atom in zip(table, atoms, strict=True):
        other = atom.other if atom.other is not None else 0
        row[:] = used.index(atom.column), remaps[atom.column, atom.steps], atom.offset, other, atom.other is not None
    codes = np.empty((len(used), text.tokens), np.int32)
    for place, name in enumerate(used):
        codes[place] = _sound(columns[name], text)
    begins = packed([f"{template}=" if template.atoms else str(template) for template in templates.items], text.source)
    hashes = np.zeros((len(templates), 2), np.uint64)
    start_hashes(begins.pool, begins.starts, hashes)
    firsts = np.zeros(len(templates) + 1, np.int64)
    np.cumsum([len(template.atoms) for template in templates.items], out=firsts[1:])
    remap = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    offsets = np.ascontiguousarray(text.offsets, np.int64)
    plan = Plan(codes, offsets, remap, table, firsts, hashes, np.diff(begins.starts))
    return FeaturePlan(plan, packed(strings, text.source, reach), begins)


def _sound(column: TextColumn, text: TaggedText) -> Ids:
    """The codes of a column, after checking all that compiled code will trust."""
    codes = column.codes
    if (
        len(codes) != text.tokens
        or not 0 <= int(codes.min()) <= int(codes.max()) < len(column.values)
        or text.offsets[0] != 0
        or bool((np.diff(text.offsets) < 1).any())
    ):
        raise InputError(f"{text.source}: the column `{column.name}` and the sentences do not fit each other.")
    return codes


def _remap(column: TextColumn, atom: Atom, strings: list[str]) -> Ids:
    """The number in `strings` of what each value of a column becomes; new strings are appended."""
    made: list[str | None] = list(column.values)
    for step in atom.steps:
        make = TRANSFORMS[step.name].make
        made = [make(value, step.number) if value is not None else None for value in made]
    numbers: dict[str, int] = {}
    base = len(strings)
    places = [MISSING if value is None else base + numbers.setdefault(value, len(numbers)) for value in made]
    strings.extend(numbers)
    return np.array(places, np.int32)


