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
from hogwild.feeds.sparse.features import SCALED, TOO_LARGE, Features, Scales, all_ones, join_rows, keep_rows
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.feeds.sparse.labels import Labels
from hogwild.feeds.tables import columns, delimited, frames
from hogwild.feeds.tables.categories import Cut, HashedCategories, Vocabulary
from hogwild.feeds.tables.columns import Plan
from hogwild.feeds.tables.delimited import Shape, WideShape
from hogwild.feeds.tables.frames import WIDE, ArrowFile, Codes, Frame, Numbers
from hogwild.kernels.parse.tables import Cells, fill_rows, make_filled
from hogwild.messages import counted

_JUDGED = 16  # lines that are looked at to judge columns, however long they are
_REMEDY = "Correct the line, or skip such lines with --bad-lines skip."
_NUMBER_REMEDY = "Correct the line, skip such lines with --bad-lines skip, or read words with --categorical."
_ROW_REMEDY = "Correct the row, or skip such rows with --bad-lines skip."


class _Parts(NamedTuple):
    """A frame in arrays. Fields that are no numbers are in `wrong` by row; missing ones are NaN or code -1."""

    frame: Frame
    numbers: Numbers
    categories: list[Codes]
    hashed: Ids
    text: Features | None
    label: Codes | Numbers | None
    wrong: dict[int, str]


_Item = Frame | tuple[Block, Shape | WideShape]


class TableEncoder:
    """Reads tables into chunks.

    Ids: first the columns of numbers, then 2^hash_bits hashed ones if there are any, then the categories in order of
    first appearance. A row's features stand in the same order. Fields that are empty or 0 have no feature.

    With the layout `slots` (see `slot_cells`) numbers have no ids, but are columns of the dense matrix.
    """

    options = (
        "label", "text", "numeric", "categorical", "ignore", "header", "hash_bits", "categories", "ngrams", "lowercase",
        "normalize", "scale", "unlabelled", "bad_lines", "bad_share", "invalid_utf8", "max_line", "pipe", "layout",
        "hash_seed", "shared_ids", "min_count",
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
        self.doubts: list[str] = []
        with reading_schema(self.schema, "table", "a table", "columns"):
            self.hashing = Hashing.of(config, self.schema)
            self.labels = Labels(self.schema.get("labels"), optional=self.config.unlabelled)
            if self.schema:
                self._follow(Plan.known(self.schema))
        self.recipe = self.hashing.recipe()
        self.counts = dict.fromkeys(("numbers", "categories", "replaced", "unlabelled files"), 0)

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
        scales, remap = self.scales.final(), self.vocabulary.finish()
        schema = {
            "format": "table",
            **self.plan.schema(),
            **(slot_schema(self.plan) if self._slotted else {}),
            "min_count": self._cut.min_count,
            "shared_ids": self._cut.shared,
            "labels": self.labels.schema(),
            "hashing": self.hashing.schema(),
            "categories": self._categories,
            "vocabulary": self.vocabulary.entries(),
            # As words where they are many: long lists of those have a file of their own in a model.
            "scales": scales if len(scales) < WIDE else [repr(scale) for scale in scales],
        }
        final = bool(self.schema) or all(scale == 1 for scale in scales)
        return Summary(features=max(self.vocabulary.first + len(self.vocabulary), 1), labels=self.labels.names(),
                       schema=schema, notes=(*notes, *self._notes(scaled=not final)), relabel=self.labels.relabel(),
                       scales=() if final or self._slotted else tuple(scales),
                       dense_scales=() if final or not self._slotted else tuple(scales), remap=remap)  # fmt: skip

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
        self.vocabulary = Vocabulary(listed, first, self.schema["vocabulary"] if self.schema else None, self._cut)
        self.scales = Scales(count, self.schema, config.scale)

    def _items(self, sources: Sequence[Source]) -> Iterator[_Item]:
        for file, source in enumerate(sources):
            if self.form in ("parquet", "arrow"):
                yield from self._arrow_frames(source, file)
            else:
                yield from self._blocks(source, file)

    def _arrow_frames(self, source: Source, file: int) -> Iterator[Frame]:
        table = ArrowFile(source, self.form)
        if self.plan is None:
            self._follow(columns.make_plan(self.config, table.names, True, table.kinds, source.name))
            self.labels.kind = table.label_kinds[table.names.index(self._known_plan().label)]
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
        header = columns.has_header(rows[0], rows[1:], self.config, self.plan)
        count = len(rows[0])
        names = columns.names_of(rows[0]) if header and (self.plan is None or self.plan.header) else None
        if self.plan is None:
            kinds = columns.kinds_of(rows[1:] if header else rows, count)
            called = names or columns.numbers_of(count)
            self._follow(columns.make_plan(self.config, called, header, kinds, source.name))
            self.doubts = columns.doubts_of(rows[1:] if header else rows, self._known_plan(), self.config)
            kind = kinds[called.index(self._known_plan().label)]
            self.labels.kind = "numbers" if kind == columns.NUMERIC else "words"
        plan = self._known_plan()
        places = self._places(names, count, source.name)
        labels = {plan.label} if self.labels.kind == "numbers" else set[str]()
        # Blank lines before the header are no records; a header inside quotes may itself take several lines.
        skip = delimited.header_lines(head, dialect) if header else 0
        if count >= WIDE:
            return skip, delimited.wide_shape(Shape(dialect, count, places, labels, (plan.text,)), plan)
        return skip, Shape(dialect, count, places, {*plan.numeric, *labels}, (plan.text,))

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
        numbers, wrong = frames.read_matrix(frame, plan.numeric)
        if self.schema:
            with np.errstate(over="ignore"):
                scaled = numbers.astype(np.float32) * self.scales.factors
            large = np.flatnonzero(np.isinf(scaled).any(1)).tolist()
            wrong.update((row, TOO_LARGE) for row in large if row not in wrong)
        categories = frames.read_categories(frame, plan.categorical)
        hashed = self.hasher.ids(categories if self._categories == "hash" else [], len(frame.lines))
        text = hash_texts(self.recipe, *frames.read_texts(arrays[plan.text])) if plan.text else None
        label: Codes | Numbers | None = None
        if plan.label in arrays and self.labels.kind == "numbers":
            label, odd = frames.read_numbers(arrays[plan.label])
            if not self.config.unlabelled:
                wrong.update((row, f"the label `{word}` is not a finite number") for row, word in odd.items())
        elif plan.label in arrays:
            label = frames.read_words(arrays[plan.label])
        return _Parts(frame, numbers, categories, hashed, text, label, wrong)

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
            cells = slot_cells(parts.numbers, self._named(parts), parts.text)
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
        if self._categories == "enumerate":
            return self.vocabulary.ids(parts.categories, len(parts.numbers))
        return parts.hashed

    def _count(self, parts: _Parts) -> None:
        self.counts["numbers"] += int(np.count_nonzero(np.isnan(parts.numbers)))
        self.counts["categories"] += sum(int(np.count_nonzero(column.codes < 0)) for column in parts.categories)
        self.counts["replaced"] += parts.frame.replaced

    def _features(self, parts: _Parts) -> Features:
        rows, width = parts.numbers.shape
        named = self._named(parts)
        filled = make_filled(rows, width, named.shape[1])
        total = fill_rows(Cells(parts.numbers, named, self.scales.factors), filled)
        self.scales.add(filled.squares, filled.present)
        features = Features(filled.lengths, filled.ids[:total], all_ones(filled.values[:total]))
        if parts.text is None:
            return features
        return join_rows(features, parts.text._replace(ids=parts.text.ids + np.int32(width)))

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
            yield from self.doubts
        if scaled:
            yield SCALED
        if counts["numbers"]:
            fate = "read as 0" if self._slotted else "left out"
            yield f"{counted(counts['numbers'], 'empty field')} in columns of numbers {fate}."
        if counts["categories"]:
            yield f"{counted(counts['categories'], 'empty field')} in columns of categories left out."
        yield from self.vocabulary.notes()
        yield from replaced_notes(counts["replaced"])
        yield from self.labels.notes(counts["unlabelled files"])


def _kept(parts: _Parts, keep: npt.NDArray[np.bool_]) -> _Parts:
    """The rows that are marked."""
    return parts._replace(
        numbers=parts.numbers[keep],
        categories=[column._replace(codes=column.codes[keep]) for column in parts.categories],
        hashed=parts.hashed[keep],
        text=keep_rows(parts.text, keep) if parts.text is not None else None,
    )


# -- tables as samples of slots ---------------------------------------------------------------------------------------
# Each column of categories is a slot, a column of text the last one, and columns of numbers are those of the dense
# matrix, where a missing number is 0.

class SlotCells(NamedTuple):
    """Rows of a table. squares, present: of each column of numbers, and how many are other than 0."""

    features: Features
    slots: Slots
    dense: Floats
    squares: npt.NDArray[np.float64]
    present: Offsets


def slot_schema(plan: Plan) -> dict[str, Any]:
    """Names of slots and dense columns."""
    return {"slots": [*plan.categorical, *((plan.text,) if plan.text else ())], "dense": list(plan.numeric)}


def slot_cells(numbers: npt.NDArray[np.float64], named: Ids, text: Features | None) -> SlotCells:
    """Rows from numbers (NaN: missing), ids of categories (-1: none) and the features of a text column.

    >>> cells = slot_cells(np.array([[2.0], [np.nan]]), np.array([[5, -1], [6, 7]], np.int32), None)
    >>> cells.features.ids.tolist(), cells.slots.tolist(), cells.dense.tolist()
    ([5, 6, 7], [0, 0, 1], [[2.0], [0.0]])
    """
    filled = np.where(np.isnan(numbers), 0.0, numbers)
    known = named >= 0
    slots = np.nonzero(known)[1].astype(np.uint16)
    features = Features(known.sum(1).astype(np.int64), named[known], np.empty(0, np.float32))
    if text is not None:
        lengths = features.lengths
        features = join_rows(features, text)
        owners = np.full(len(features.ids), named.shape[1], np.uint16)
        firsts = np.cumsum(features.lengths) - features.lengths
        within = np.arange(len(owners)) - np.repeat(firsts, features.lengths)
        owners[within < np.repeat(lengths, features.lengths)] = slots
        slots = owners
    return SlotCells(features, slots, filled.astype(np.float32), (filled * filled).sum(0), np.count_nonzero(filled, 0))
