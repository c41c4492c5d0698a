"""Encode tagged text with feature templates: features to ranks of frequency, tags to ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Chains, Ids, Keys, Offsets
from hogwild.errors import InputError
from hogwild.feeds.storage.arrayfiles import cut_text
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.templates import TRANSFORMS, YES, Atom, Step, Templates, preset_of
from hogwild.feeds.tagged.text import Coder, TaggedText, TextColumn, check_distinct, encode_tags
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids import keys as key_kernel
from hogwild.kernels.ids import templates as template_kernel
from hogwild.kernels.ids.keys import KeyCounts, KeyTable
from hogwild.kernels.ids.templates import Plan, Values
from hogwild.machine import cores
from hogwild.messages import counted, shown

# -- the arrays of kernels/ids/templates.py: each transform once for a distinct value ---------------------------------

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
        template_kernel.measure_names(self.plan, self.values, self.begins.starts, places, sentences, sizes)
        data = np.empty(int(sizes.sum()), np.uint8)
        template_kernel.write_names(self.plan, self.values, self.begins, places, sentences, data, letters)
        return cut_text(data.tobytes().decode(), letters.tolist())


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
    ready(template_kernel.start_hashes, len(begins.pool))(begins.pool, begins.starts, hashes)
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
    numbers, base, missing = Coder(), len(strings), template_kernel.MISSING
    places = [missing if value is None else base + numbers[value] for value in made]
    strings.extend(numbers)
    return np.array(places, np.int32)


# -- encoding ---------------------------------------------------------------------------------------------------------

MOST = 2**31 - 1   # numbers that features can have
_PIECE = 1 << 20   # keys that are held at a time
_ROOM = 1 << 12    # keys that a table has room for at first
_WASTE = 0.75      # of an array in use, below which it is copied to one of its size
_SHOWN = 5
_BYTES = 16         # that a key is hashed from, about
_ONE_GROUP, _NO_NUMBER = np.zeros(1, np.uint16), np.full(1, -1, np.int32)


def encode(
    text: TaggedText, templates: Templates, *, min_count: int = 1,
    names: Sequence[str] | None = None, tags: Sequence[str] | None = None, threads: int = 0,
) -> TaggingFeed:  # fmt: skip
    """Make chains of features of a text.

    Parameters
    ----------
    text
        Sentences in columns.
    templates
        What the features are.
    min_count
        Features that occur less often are left out. Not with `names`.
    names, tags
        Those of a model. Other features are left out and counted; other tags become -1.
    threads
        0: one a core, at most 8. The result does not depend on it.
    """
    if not text.tokens:
        raise InputError(f"{text.source}: no tokens; is the file empty?")
    layout = plan_features(text, templates)
    threads = threads or min(cores(), 8)
    if names is None:
        chosen = _count(layout, templates, text, min_count, threads)
    else:
        chosen = _look_up(layout, text, names, threads)
    tagged = encode_tags(text.tags, text.tokens, tags)
    samples = Chains(layout.plan.offsets, chosen.starts, chosen.ids, tagged.codes)
    schema = {"templates": templates.lines(), "preset": preset_of(templates), "min_count": min_count}
    notes = (*text.notes, *templates.notes, *chosen.notes, *tagged.notes)
    return TaggingFeed(samples, chosen.names, chosen.counts, tagged.names, schema, tagged.strange, chosen.unknown, text,
                       notes, text.source)  # fmt: skip


class _Chosen(NamedTuple):
    """The features of a text as ids, and what they are."""

    starts: Offsets
    ids: Ids
    names: tuple[str, ...]
    counts: Offsets
    unknown: int = 0
    notes: tuple[str, ...] = ()


def _each(threads: int, work: Callable[[int], Any]) -> list[Any]:
    """work(0), work(1), … one a thread."""
    if threads == 1:
        return [work(0)]
    with ThreadPoolExecutor(threads, thread_name_prefix="features") as pool:
        return list(pool.map(work, range(threads)))


def _keys_of(layout: FeaturePlan, tokens: int, threads: int) -> Iterator[tuple[int, Keys]]:
    """The keys of all tokens, a piece at a time, each with its place among them; the next one takes its memory."""
    width = len(layout.plan.sizes)
    size = max(1, _PIECE // width)
    room = np.empty((min(tokens, size), width), np.uint64)
    for first in range(0, tokens, size):
        keys = room[: tokens - first]
        _fill(layout, first, keys, threads)
        yield first * width, keys.reshape(-1)


def _fill(layout: FeaturePlan, first: int, keys: Keys, threads: int) -> None:
    """The keys of the tokens from `first` on, each thread a stretch of them."""
    bounds = np.linspace(0, len(keys), threads + 1).astype(np.int64)
    sentences = np.searchsorted(layout.plan.offsets, first + bounds[:-1], side="right") - 1

    def work(k: int) -> None:
        start, stop = int(bounds[k]), int(bounds[k + 1])
        if start < stop:
            write = ready(template_kernel.write_keys, keys[start:stop].size * _BYTES)
            write(layout.plan, layout.values, int(sentences[k]), first + start, keys[start:stop])

    _each(threads, work)


def _settled(numbers: Ids, width: int, final: Ids) -> tuple[Offsets, Ids]:
    """Where the features of each token begin, and their final ids, sorted, in the memory of their numbers."""
    starts = np.empty(len(numbers) // width + 1, np.int64)
    ids = numbers[: int(ready(key_kernel.settle, len(numbers))(numbers, width, final, starts))]
    return starts, ids.copy() if len(ids) < _WASTE * len(numbers) else ids


# -- training: features are counted and ranked ------------------------------------------------------------------------


def _count(layout: FeaturePlan, templates: Templates, text: TaggedText, min_count: int, threads: int) -> _Chosen:
    numbers = np.empty(text.tokens * len(templates), np.int32)
    tables = [key_kernel.make_counts(_ROOM) for _ in range(threads)]
    for place, keys in _keys_of(layout, text.tokens, threads):
        out = numbers[place : place + len(keys)]

        def work(k: int, keys: Keys = keys, place: int = place, out: Ids = out) -> None:
            done = 0
            while (done := int(key_kernel.count_keys(tables[k], keys, done, place, k, threads, out))) < len(keys):
                tables[k] = key_kernel.grown_counts(tables[k])

        _each(threads, work)
    ranked = _rank(tables, min_count, len(templates))
    notes = _notes(ranked, templates, text.source, min_count)
    starts, ids = _settled(numbers, len(templates), ranked.final)
    return _Chosen(starts, ids, layout.names(ranked.firsts), ranked.counts, 0, notes)


class _Ranked(NamedTuple):
    """Features by falling count, with their first places; final: the rank of each number, or -1.

    seen, kept: how many different features each template has, and how many of them stay. rare: features that are left
    out, and their occurrences.
    """

    counts: Offsets
    firsts: Offsets
    final: Ids
    seen: Offsets
    kept: Offsets
    rare: tuple[int, int]


def _rank(tables: Sequence[KeyCounts], min_count: int, width: int) -> _Ranked:
    sizes = [int(counted.table.size[0]) for counted in tables]
    if max(sizes) * len(tables) > MOST:
        raise InputError(f"there are {sum(sizes):,} different features; at most {MOST:,} can be numbered.")
    counts = np.concatenate([table.counts[:size] for table, size in zip(tables, sizes, strict=True)])
    firsts = np.concatenate([table.firsts[:size] for table, size in zip(tables, sizes, strict=True)])
    numbers = np.concatenate([np.arange(size) * len(tables) + part for part, size in enumerate(sizes)])
    often = counts >= min_count
    order = np.flatnonzero(often)
    order = order[np.lexsort((firsts[order], -counts[order]))]
    final = np.full(max(sizes) * len(tables), -1, np.int32)
    final[numbers[order]] = np.arange(len(order), dtype=np.int32)
    seen = np.bincount(firsts % width, minlength=width)
    kept = np.bincount(firsts[order] % width, minlength=width)
    rare = len(counts) - len(order), int(counts[~often].sum())
    return _Ranked(counts[order], firsts[order], final, seen, kept, rare)


def _notes(ranked: _Ranked, templates: Templates, source: str, min_count: int) -> tuple[str, ...]:
    """What is to be said of templates that gave nothing, and of rare features."""
    if not ranked.seen.any():
        raise InputError(f"{source}: no template matches anything, so that there are no features; check --features.")
    if not ranked.kept.any():
        most = "--min-count 1 keeps all"
        raise InputError(f"{source}: no feature occurs {counted(min_count, 'time')}; lower --min-count ({most}).")
    notes = []
    lines = templates.lines()
    for flags, what in (
        (ranked.seen == 0, "matches nothing in this text"),
        ((ranked.seen > 0) & (ranked.kept == 0), f"gives no feature that occurs {counted(min_count, 'time')}"),
    ):
        empty = [lines[k] for k in np.flatnonzero(flags).tolist()]
        if empty:
            named = ", ".join(f"`{shown(line)}`" for line in empty[:_SHOWN])
            more = f" and {len(empty) - _SHOWN} more" if len(empty) > _SHOWN else ""
            notes.append(f"{'The template' if len(empty) == 1 else 'Each of the templates'} {named}{more} {what}.")
    return (*notes, *rare_note(*ranked.rare, min_count))


def rare_note(features: int, occurrences: int, min_count: int) -> tuple[str, ...]:
    """What is to be said of features that are left out because they are rare."""
    if not features:
        return ()
    verb = "occurs" if features == 1 else "occur"
    return (
        f"{counted(features, 'feature')} left out that {verb} fewer than {min_count} times (--min-count):"
        f" {counted(occurrences, 'occurrence')}.",
    )


# -- with the features of a model -------------------------------------------------------------------------------------


def unknown_note(unknown: int, total: int) -> tuple[str, ...]:
    """What is to be said of features that a model does not have."""
    return (f"{unknown:,} of {counted(total, 'feature')} not in the model, left out.",) if unknown else ()


def _look_up(layout: FeaturePlan, text: TaggedText, names: Sequence[str], threads: int) -> _Chosen:
    width, table = len(layout.plan.sizes), _table_of(names)
    numbers = np.empty(text.tokens * width, np.int32)
    unknown = 0
    for place, keys in _keys_of(layout, text.tokens, threads):
        out = numbers[place : place + len(keys)]
        bounds = np.linspace(0, len(keys), threads + 1).astype(np.int64).tolist()

        def work(k: int, keys: Keys = keys, out: Ids = out, bounds: list[int] = bounds) -> int:
            mine, homes = slice(bounds[k], bounds[k + 1]), np.empty(key_kernel.AHEAD, np.int64)
            part = keys[mine]
            find = ready(key_kernel.find_keys, len(part))
            missing = int(find(table, part, _ONE_GROUP, _NO_NUMBER, out[mine], homes))
            return missing - int(np.count_nonzero(part == key_kernel.NONE))

        unknown += sum(_each(threads, work))
    starts, ids = _settled(numbers, width, np.arange(len(names), dtype=np.int32))
    counts = np.bincount(ids, minlength=len(names))
    return _Chosen(starts, ids, tuple(names), counts, unknown, unknown_note(unknown, unknown + len(ids)))


def _table_of(names: Sequence[str]) -> KeyTable:
    """A table in which the number of each name is its place."""
    check_distinct(names, "features")
    strings = packed(names, "the features of the model")
    keys = np.empty(len(names), np.uint64)
    ready(template_kernel.keys_of_names, len(strings.pool))(strings.pool, strings.starts, keys)
    return key_kernel.table_of(keys, np.zeros(len(names), np.uint16))
