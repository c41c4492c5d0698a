"""Tables: CSV and its kin, Parquet, Arrow. Numbers keep their values, categories become ids, text is hashed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets, Slots
from hogwild.config import FeedConfig
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, head_of, replaced_notes
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Source
from hogwild.feeds.sparse.encoder import Chunk, Summary, reading_schema
from hogwild.feeds.sparse.features import SCALED, TOO_LARGE, Features, Fills, Scales, all_ones, join_rows, keep_rows
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.feeds.sparse.labels import Labels
from hogwild.feeds.tables import columns, delimited, frames
from hogwild.feeds.tables.categories import Cut, HashedCategories, Vocabulary
from hogwild.feeds.tables.columns import Plan, Sample
from hogwild.feeds.tables.delimited import Shape, WideShape
from hogwild.feeds.tables.fields import FieldRules
from hogwild.feeds.tables.frames import WIDE, ArrowFile, Codes, Frame, Numbers
from hogwild.kernels.parse.tables import Cells, fill_rows, make_filled
from hogwild.messages import counted, shown

_EMPTY = FieldRules(())
_SLOT = "missing"
_JUDGED = 16  # lines that are looked at to judge columns, however long they are
_REMEDY = "Correct the line, or skip such lines with --bad-lines skip."
_NUMBER_REMEDY = (
    "Correct the line, skip such lines with --bad-lines skip, name words for missing values with --missing, or read"
    " words with --categorical."
)
_ROW_REMEDY = "Correct the row, or skip such rows with --bad-lines skip."


class _Parts(NamedTuple):
    """A frame in arrays. Fields that are no numbers are in `wrong` by row; missing ones are NaN or code -1.

    missing: for each number whether it is."""

    frame: Frame
    numbers: Numbers
    missing: npt.NDArray[np.bool_]
    categories: list[Codes]
    hashed: Ids
    text: Features | None
    label: Codes | Numbers | None
    wrong: dict[int, str]


_Item = Frame | tuple[Block, Shape | WideShape]


class TableEncoder:
    """Reads tables into chunks.

    Ids: first the columns of numbers, then 2^hash_bits hashed ones if there are any, then the categories in order of
    first appearance, and among them one for each column of numbers that says that a number is missing. A row's features
    stand in the same order. Categories that are missing and numbers that are 0 have no feature.

    With the layout `slots` (see `slot_cells`) numbers have no ids, but are columns of the dense matrix.
    """

    options = (
        "label", "text", "numeric", "categorical", "ignore", "header", "hash_bits", "categories", "ngrams", "lowercase",
        "normalize", "scale", "unlabelled", "bad_lines", "bad_share", "invalid_utf8", "max_line", "pipe", "layout",
        "hash_seed", "shared_ids", "min_count", "missing", "missing_numbers", "number_style", "dates",
    )

    def __init__(
        self, config: FeedConfig, schema: Mapping[str, Any] | None = None, form: str = "csv", threads: int = 0
    ) -> None:
        # Only a model can do without labels.
        self.config = config if schema else replace(config, unlabelled=False)
        self.schema = dict(schema or {})
        self.form = form
        self.threads = threads
        self.bad = BadLines(config)
        self.plan: Plan | None = None
        self.doubts: dict[str, str] = {}
        with reading_schema(self.schema, "table", "a table", "columns"):
            self.hashing = Hashing.of(config, self.schema)
            self.rules = FieldRules.of(config, self.schema)
            self.labels = Labels(self.schema.get("labels"), self.config.unlabelled, self.rules.labels())
            if self.schema:
                self._follow(Plan.known(self.schema))
        self.recipe = self.hashing.recipe()
        self.counts = dict.fromkeys(("numbers", "categories", "replaced", "unlabelled files"), 0)
        self.left_out: set[str] = set()  # words that stand for missing categories

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        for _, parts in in_order(self._convert, self._items(sources), self.threads):
            chunk = self._chunk(parts)
            if len(chunk.targets):
                yield chunk

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        notes = list(self.bad.notes())
        if self.plan is None:
            return Summary(1, notes=tuple(notes))
        if not self.schema:
            self._check_categories(self.plan)
        scales, fills, remap = self.scales.final(), self.fills.final(), self.vocabulary.finish()

        # As words where they are many: long lists of those have a file of their own in a model.
        def listed(numbers: list[float]) -> list[float] | list[str]:
            return numbers if len(numbers) < WIDE else [repr(number) for number in numbers]

        schema = {
            "format": "table",
            **self.plan.schema(),
            **(slot_schema(self.plan, bool((self.vocabulary.marks >= 0).any())) if self._slotted else {}),
            **self.rules.schema(),
            "missing_numbers": self.fills.kind,
            **({"means": listed(fills)} if self.fills.kind == "mean" else {}),
            "min_count": self._cut.min_count,
            "shared_ids": self._cut.shared,
            "labels": self.labels.schema(),
            "hashing": self.hashing.schema(),
            "categories": self._categories,
            "vocabulary": self.vocabulary.entries(),
            "scales": listed(scales),
        }
        final = bool(self.schema) or all(scale == 1 for scale in scales)
        scaled, slotted = () if final else tuple(scales), self._slotted
        filled = tuple(fills) if self.fills.measured and self.counts["numbers"] else ()
        return Summary(features=max(self.vocabulary.first + len(self.vocabulary), 1), labels=self.labels.names(),
                       schema=schema, notes=(*notes, *self._notes(scaled=not final)), relabel=self.labels.relabel(),
                       scales=() if slotted else scaled, dense_scales=scaled if slotted else (),
                       fills=() if slotted else filled, dense_fills=filled if slotted else (), remap=remap)  # fmt: skip

    # -- what the columns are ---------------------------------------------------------------------------------------

    def _follow(self, plan: Plan) -> None:
        """From now on all files are read by this plan."""
        self.plan = plan
        count, config = len(plan.numeric), self.config
        self._categories = self.schema.get("categories", config.categories)
        self._cut = Cut(config.min_count, config.shared_ids)
        self._slotted = config.layout == "slots"
        if self.schema:
            self._cut = Cut(self.schema.get("min_count", 1), self.schema.get("shared_ids", False))
            self._slotted = "slots" in self.schema
        hashed = plan.categorical if self._categories == "hash" else ()
        before = 0 if self._slotted else count
        first = before + ((1 << self.hashing.bits) if plan.text or hashed else 0)
        self.hasher = HashedCategories(hashed, before, self.hashing, self._cut.shared)
        listed = () if hashed else plan.categorical
        self.scales = Scales(count, self.schema, config.scale)
        self.fills = Fills(count, self.schema, config.missing_numbers)
        known = self.schema["vocabulary"] if self.schema else None
        self.vocabulary = Vocabulary(listed, first, known, self._cut, plan.numeric)
        self._fields = np.zeros(len(plan.categorical), np.int64)  # of categories that are there, by column

    def _items(self, sources: Sequence[Source]) -> Iterator[_Item]:
        for file, source in enumerate(sources):
            if self.form in ("parquet", "arrow"):
                yield from self._arrow_frames(source, file)
            else:
                yield from self._blocks(source, file)

    def _arrow_frames(self, source: Source, file: int) -> Iterator[Frame]:
        table = ArrowFile(source, self.form)
        if self.plan is None:
            columns.check_names(table.names, source.name)
            sample = table.sample(self.rules)
            plan = self._decide(table.names, True, sample, source.name)
            self.labels.kind = table.label_kinds[table.names.index(plan.label)]
            if sample.kinds[plan.label] == columns.NUMERIC and plan.label in sample.fields:
                self.labels.kind = "numbers"
        names = table.names if self._known_plan().header else None
        yield from table.frames(tuple(self._places(names, len(table.names), source.name)), file)

    def _blocks(self, source: Source, file: int) -> Iterator[tuple[Block, Shape | WideShape]]:
        judged = self._judge(source)
        if judged is None:
            return
        skip, shape = judged
        dialect = shape.shape.dialect if isinstance(shape, WideShape) else shape.dialect
        for block in delimited.whole_records(blocks_of(source, file, skip), dialect):
            yield block, shape

    def _judge(self, source: Source) -> tuple[int, Shape | WideShape] | None:
        """The lines of the header, and how records are read; None if there are none. The first file says what columns
        are."""
        head = head_of(source, self.config.invalid_utf8 == "replace", _JUDGED)
        dialect = delimited.sniff(head, self.form)
        rows = delimited.sample_rows(head, dialect)
        if not rows:
            return None
        header = columns.has_header(rows[0], rows[1:], self.config, self.plan, self.rules)
        count = len(rows[0])
        names = columns.names_of(rows[0]) if header and (self.plan is None or self.plan.header) else None
        if self.plan is None:
            called = names or columns.numbers_of(count)
            columns.check_names(called, source.name)
            fields = zip(*(rows[1:] if header else rows), strict=True)
            sample = columns.Sample.of(dict(zip(called, fields, strict=False)) or dict.fromkeys(called, ()), self.rules)
            plan = self._decide(called, header, sample, source.name)
            self.labels.kind = "numbers" if sample.kinds[plan.label] == columns.NUMERIC else "words"
        plan = self._known_plan()
        places = self._places(names, count, source.name)
        labels = {plan.label} if self.labels.kind == "numbers" else set[str]()
        # Blank lines before the header are no records; a header inside quotes may itself take several lines.
        skip = delimited.header_lines(head, dialect) if header else 0
        plain = self.rules.style != "comma"  # 1.234 is 1234 there
        if count >= WIDE:
            return skip, delimited.wide_shape(Shape(dialect, count, places, labels, (plan.text,), plain), plan)
        return skip, Shape(dialect, count, places, {*plan.numeric, *labels}, (plan.text,), plain)

    def _decide(self, names: tuple[str, ...], header: bool, sample: Sample, where: str) -> Plan:
        plan = columns.make_plan(self.config, names, header, sample, where)
        self._follow(plan)
        self.doubts = columns.doubts_of(sample, plan, self.config, self.rules)
        self._where = where
        return plan

    def _places(self, names: tuple[str, ...] | None, count: int, where: str) -> dict[str, int]:
        places = columns.place_columns(self._known_plan(), names, count, self.config, where)
        self.counts["unlabelled files"] += self._known_plan().label not in places
        return places

    def _known_plan(self) -> Plan:
        assert self.plan is not None
        return self.plan

    # -- in threads: a frame in arrays ------------------------------------------------------------------------------

    def _read(self, block: Block, shape: Shape | WideShape) -> Frame:
        replace = self.config.invalid_utf8 == "replace"
        if isinstance(shape, WideShape):
            return delimited.read_wide(block, shape, replace)
        return delimited.read_block(block, shape, replace)

    def _convert(self, item: _Item) -> _Parts:
        plan = self._known_plan()
        if isinstance(item, Frame):
            frame = frames.joined_columns(item, plan.numeric, plan.categorical)
        else:
            frame = self._read(*item)
        arrays = frame.arrays
        numbers, wrong = frames.read_matrix(frame, plan.numeric, self.rules)
        missing = np.isnan(numbers)
        if self.fills.kind == "error":
            wrong = {**_missing_numbers(missing, plan.numeric), **wrong}
        if self.schema:
            with np.errstate(over="ignore"):
                scaled = numbers.astype(np.float32) * self.scales.factors
            large = np.flatnonzero(np.isinf(scaled).any(1)).tolist()
            wrong.update((row, TOO_LARGE) for row in large if row not in wrong)
        categories = frames.read_categories(frame, plan.categorical, self.rules)
        hashed = self.hasher.ids(categories if self._categories == "hash" else [], len(frame.lines))
        text = hash_texts(self.recipe, *frames.read_texts(arrays[plan.text])) if plan.text else None
        label: Codes | Numbers | None = None
        if plan.label in arrays and self.labels.kind == "numbers":
            label, odd = frames.read_numbers(arrays[plan.label], self.rules)
            if not self.config.unlabelled:
                wrong.update((row, f"the label `{word}` is not a finite number") for row, word in odd.items())
        elif plan.label in arrays:
            label = frames.read_words(arrays[plan.label], _EMPTY)
        return _Parts(frame, numbers, missing, categories, hashed, text, label, wrong)

    # -- in order: ids that depend on what came before --------------------------------------------------------------

    def _chunk(self, parts: _Parts) -> Chunk:
        frame = parts.frame
        targets, wrong = self._targets(parts)
        lines = {int(frame.lines[row]): problem for row, problem in wrong.items()}
        self._report(frame, {**frame.wrong, **lines})
        keep = np.ones(len(targets), np.bool_)
        keep[list(wrong)] = False
        if not keep.all():
            parts = _kept(parts, keep)
        self._count(parts)
        if self._slotted:
            cells = slot_cells(parts.numbers, self._named(parts), parts.text, self.fills.values, self.vocabulary.marks)
            self.scales.add(cells.squares, cells.present)
            dense = cells.dense * self.scales.factors
            return Chunk(*cells.features, targets[keep], frame.lines[keep], frame.file, cells.slots, dense)
        return Chunk(*self._features(parts), targets[keep], frame.lines[keep], frame.file)

    def _targets(self, parts: _Parts) -> tuple[Floats, dict[int, str]]:
        """The target of each row, and what is wrong with the rows that must be left out."""
        wrong = dict(parts.wrong)
        label = parts.label
        if label is None:
            return np.zeros(len(parts.frame.lines), np.float32), wrong
        if isinstance(label, Codes):
            words = [*(word or "" for word in label.words.to_pylist()), ""]  # code -1 is the last place
            codes = label.codes.astype(np.intp)
            codes[codes < 0] = len(words) - 1
            used, codes = np.unique(codes, return_inverse=True)
            targets, problems = self.labels.targets_of([words[k] for k in used.tolist()], codes)
        else:
            targets, problems = self.labels.check_numbers(label)
        for row, problem in problems:
            wrong.setdefault(row, problem)
        return targets, wrong

    def _named(self, parts: _Parts) -> Ids:
        """The id of each category, -1 for none."""
        missing = parts.missing if self.fills.kind == "mean" else None
        if self._categories == "enumerate":
            return self.vocabulary.ids(parts.categories, len(parts.numbers), missing)
        self.vocabulary.ids([], len(parts.numbers), missing)
        return parts.hashed

    def _count(self, parts: _Parts) -> None:
        missing = parts.missing
        there = [np.atleast_1d((column.codes >= 0).sum(0)) for column in parts.categories]
        self.counts["numbers"] += int(np.count_nonzero(missing))
        self.counts["categories"] += len(missing) * len(self._fields) - sum(int(column.sum()) for column in there)
        self.counts["replaced"] += parts.frame.replaced
        self._fields += np.concatenate(there) if there else 0
        self.left_out.update(word for column in parts.categories for word in column.left_out)
        if self.fills.measured:
            self.fills.add(np.where(missing, 0.0, parts.numbers).sum(0), len(missing) - missing.sum(0))

    def _features(self, parts: _Parts) -> Features:
        rows, width = parts.numbers.shape
        named = self._named(parts)
        filled = make_filled(rows, width, named.shape[1], int(np.count_nonzero(parts.missing)))
        marks = self.vocabulary.marks
        total = fill_rows(Cells(parts.numbers, named, self.scales.factors, self.fills.values, marks), filled)
        self.scales.add(filled.squares, filled.present)
        features = Features(filled.lengths, filled.ids[:total], all_ones(filled.values[:total]))
        if parts.text is None:
            return features
        return join_rows(features, parts.text._replace(ids=parts.text.ids + np.int32(width)))

    def _check_categories(self, plan: Plan) -> None:
        """Raise InputError for a column of categories of which nearly every row has its own, unless it is asked for."""
        if self._cut.min_count > 1 or self._cut.shared or self._categories == "hash":
            return
        declared = columns.found_names(self.config.categorical, plan.columns, "--categorical")
        sizes = zip(self._fields.tolist(), self.vocabulary.sizes(), strict=True)
        counts = {name: each for name, each in zip(plan.categorical, sizes, strict=True) if name not in declared}
        columns.check_differing(counts, self.doubts, self._where)

    def _report(self, frame: Frame, wrong: Mapping[int, str]) -> None:
        for line in sorted(wrong):
            remedy = _NUMBER_REMEDY if wrong[line].startswith("column ") else _REMEDY
            remedy = _ROW_REMEDY if self.form in ("parquet", "arrow") else remedy
            self.bad.report(f"{frame.source.place(line)}: {wrong[line]}", remedy)
        self.bad.seen(frame.seen)

    # -- at the end -------------------------------------------------------------------------------------------------

    def _notes(self, scaled: bool) -> Iterator[str]:
        plan, counts = self._known_plan(), self.counts
        if not self.schema:
            yield from columns.describe(plan, self.config)
            for name, doubt in self.doubts.items():
                yield f"Column `{shown(name)}` is read as words: {doubt}."
        if scaled:
            yield SCALED
        if counts["numbers"]:
            fate = "read as 0" if self._slotted else "left out"
            if self.fills.kind == "mean":
                fate = "read as the mean of training, with a feature beside it that says so (see --missing-numbers)"
            yield f"{counted(counts['numbers'], 'missing field')} in columns of numbers {fate}."
        if counts["categories"]:
            words = ", ".join(f"`{shown(word)}`" for word in sorted(self.left_out)[:3])
            named = f" ({words}; see --missing)" if words else ""
            yield f"{counted(counts['categories'], 'missing field')} in columns of categories left out{named}."
        yield from self.vocabulary.notes()
        yield from replaced_notes(counts["replaced"])
        yield from self.labels.notes(counts["unlabelled files"])


def _missing_numbers(missing: npt.NDArray[np.bool_], names: Sequence[str]) -> dict[int, str]:
    """What is wrong with each row that has a missing number, where that is an error."""
    places = zip(*(part.tolist() for part in np.nonzero(missing)), strict=True)
    return {row: f"column `{shown(names[k])}`: the number is missing" for row, k in places}


def _kept(parts: _Parts, keep: npt.NDArray[np.bool_]) -> _Parts:
    """The rows that are marked."""
    return parts._replace(
        numbers=parts.numbers[keep],
        missing=parts.missing[keep],
        categories=[column._replace(codes=column.codes[keep]) for column in parts.categories],
        hashed=parts.hashed[keep],
        text=keep_rows(parts.text, keep) if parts.text is not None else None,
    )


# -- tables as samples of slots ---------------------------------------------------------------------------------------
# Each column of categories is a slot, a column of text the next one, and columns of numbers are those of the dense
# matrix. What says that a number is missing is in the last slot.

class SlotCells(NamedTuple):
    """Rows of a table. squares, present: of each column of numbers, and how many are other than 0."""

    features: Features
    slots: Slots
    dense: Floats
    squares: npt.NDArray[np.float64]
    present: Offsets


def slot_schema(plan: Plan, marked: bool) -> dict[str, Any]:
    """Names of slots and dense columns; marked: whether there are features that say that a number is missing."""
    names = [*plan.categorical, *((plan.text,) if plan.text else ())]
    own = _SLOT
    while own in plan.columns:
        own += " number"
    return {"slots": [*names, own] if marked else names, "dense": list(plan.numeric)}


def slot_cells(
    numbers: npt.NDArray[np.float64], named: Ids, text: Features | None, fills: Floats, marks: Ids
) -> SlotCells:
    """Rows from numbers (NaN: missing), ids of categories (-1: none) and the features of a text column.

    fills: what a missing number of each column is; marks: ids of the features that say so, -1 for none.

    >>> named = np.array([[5, -1], [6, 7]], np.int32)
    >>> cells = slot_cells(np.array([[2.0], [np.nan]]), named, None, np.array([4.0]), np.array([8]))
    >>> cells.features.ids.tolist(), cells.slots.tolist(), cells.dense.tolist()
    ([5, 6, 7, 8], [0, 0, 1, 2], [[2.0], [4.0]])
    """
    missing = np.isnan(numbers)
    present = np.where(missing, 0.0, numbers)
    known = named >= 0
    slots = np.nonzero(known)[1].astype(np.uint16)
    features, owners = _of_ids(named, known), named.shape[1]
    if text is not None:
        features, slots = _with_slot(features, slots, text, owners)
        owners += 1
    marked = missing & (marks >= 0) if len(marks) else missing[:, :0]
    if marked.any():
        features, slots = _with_slot(features, slots, _of_ids(np.broadcast_to(marks, marked.shape), marked), owners)
    dense = np.where(missing, fills, numbers).astype(np.float32)
    return SlotCells(features, slots, dense, (present * present).sum(0), np.count_nonzero(present, 0))


def _of_ids(ids: Ids, there: npt.NDArray[np.bool_]) -> Features:
    """The ids of each row that are there."""
    return Features(there.sum(1).astype(np.int64), ids[there].astype(np.int32), np.empty(0, np.float32))


def _with_slot(left: Features, slots: Slots, right: Features, slot: int) -> tuple[Features, Slots]:
    """Rows with one slot more."""
    features = join_rows(left, right)
    owners = np.full(len(features.ids), slot, np.uint16)
    firsts = np.cumsum(features.lengths) - features.lengths
    within = np.arange(len(owners)) - np.repeat(firsts, features.lengths)
    owners[within < np.repeat(left.lengths, features.lengths)] = slots
    return features, owners
