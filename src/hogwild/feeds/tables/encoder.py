"""Tables: CSV and its kin, Parquet, Arrow. Numbers keep their values, categories become ids, text is hashed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, head_of, replaced_notes
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Source
from hogwild.feeds.sparse.encoder import Chunk, Summary, reading_schema
from hogwild.feeds.sparse.features import (
    CENTRED,
    SCALED,
    TOO_LARGE,
    Features,
    Fills,
    Moments,
    Scales,
    Standards,
    all_ones,
    join_rows,
    keep_rows,
    slot_cells,
)
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.feeds.sparse.labelsets import SetLabels, labels_for
from hogwild.feeds.sparse.spellings import Spellings
from hogwild.feeds.tables import columns, delimited, frames, objects
from hogwild.feeds.tables.categories import Cut, HashedCategories, Vocabulary
from hogwild.feeds.tables.columns import Plan, Sample
from hogwild.feeds.tables.crosses import Crosses, block_of, find_pairs, hashed_ids
from hogwild.feeds.tables.delimited import Shape, WideShape
from hogwild.feeds.tables.fields import FieldRules
from hogwild.feeds.tables.frames import WIDE, ArrowFile, Bags, Codes, Frame, Numbers, RowSets, is_labels
from hogwild.feeds.tables.objects import ObjectFile, ObjectShape
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse.tables import Cells, Records, fill_rows, make_filled
from hogwild.messages import counted, shown

_EMPTY = FieldRules(())
_NO_LIST = "the label is missing (an empty list says that a row has none)"
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
    bags: list[Bags]
    text: Features | None
    label: Codes | Numbers | RowSets | None
    wrong: dict[int, str]
    crossed: list[Codes]
    weights: Numbers | None = None


_AnyShape = Shape | WideShape | ObjectShape
_Item = Frame | tuple[Block, _AnyShape, Records | None]


class TableEncoder:
    """Reads tables into chunks.

    Ids: first the columns of numbers, then 2^hash_bits hashed ones if there are any, then the categories in order of
    first appearance, and among them one for each column of numbers that says that a number is missing. A row's features
    stand in the same order. Categories that are missing and numbers that are 0 have no feature. Crossed columns are
    further columns of numbers and of categories, see `Crosses`; hashed ones of a number and a category have 2^hash_bits
    ids of their own each. A row has one feature for each value of a column of several.

    With the layout `slots` (see `slot_cells`) numbers have no ids, but are columns of the dense matrix.
    """

    options = (
        "label", "weight", "text", "numeric", "categorical", "ignore", "header", "hash_bits", "categories", "ngrams",
        "lowercase", "normalize", "scale", "unlabelled", "bad_lines", "bad_share", "invalid_utf8", "max_line", "pipe",
        "layout", "interactions", "hash_seed", "shared_ids", "min_count", "missing", "missing_numbers", "number_style",
        "dates", "multi", "subwords", "label_separator", "several_labels",
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
            self.labels = labels_for(self.config, self.schema.get("labels"), self.rules.labels())
            if self.schema:
                self._follow(Plan.known(self.schema))
        self.recipe = self.hashing.recipe()
        self.spellings = None if schema else Spellings()
        self.counts = dict.fromkeys(("numbers", "categories", "replaced", "unlabelled files", "weightless"), 0)
        self.left_out: set[str] = set()  # words that stand for missing categories
        self.absent: list[str] = []  # notes on fields that files do not have
        self.late: frozenset[str] = frozenset()  # fields that come too late to be columns
        self._weighing: dict[int, str] = {}  # of each file the column of weights, where there is one
        self._weight = (0.0, 0)  # of all rows, and of how many

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
        if self.counts["weightless"] and not self._weight[1]:
            raise InputError("all weights are 0, so that no row counts; is it the right column (--weight)?")
        shifts, scales = self.standards.final() if self._slotted else ([], self.scales.final())
        fills, factors = self.fills.final(), self._spread
        spread = (factors(scales, 1.0), factors(fills, 0.0))  # by ids as they are in the chunks
        remap = self.vocabulary.finish()

        # As words where they are many: long lists of those have a file of their own in a model.
        def listed(numbers: list[float]) -> list[float] | list[str]:
            return numbers if len(numbers) < WIDE else [repr(number) for number in numbers]

        schema = {
            "format": "table",
            **self.plan.schema(),
            **(columns.slot_schema(self.plan, bool((self.vocabulary.marks >= 0).any())) if self._slotted else {}),
            **self.rules.schema(),
            "missing_numbers": self.fills.kind,
            **({"means": listed(fills)} if self.fills.kind == "mean" else {}),
            "min_count": self._cut.min_count,
            **({"rare": list(self.vocabulary.rare)} if self._cut.min_count > 1 and not self._old else {}),
            "shared_ids": self._cut.shared,
            "labels": self.labels.schema(),
            "hashing": self.hashing.schema(),
            "categories": self._categories,
            "vocabulary": self.vocabulary.entries(),
            "scales": listed(scales),
            **({"shifts": listed(shifts)} if self._slotted and self.standards.told else {}),
            **(self.spellings.schema() if self.spellings else {}),
        }
        final = bool(self.schema) or (all(scale == 1 for scale in scales) and not any(shifts))
        slotted = self._slotted
        scaled: Sequence[float] = () if final else spread[0]
        filled: Sequence[float] = spread[1] if self.fills.measured and self.counts["numbers"] else ()
        return Summary(features=max(self.vocabulary.first + len(self.vocabulary), 1), labels=self.labels.names(),
                       schema=schema, notes=(*notes, *self._notes(scaled=not final)), relabel=self.labels.relabel(),
                       sets=self.labels.sets(),
                       scales=() if slotted else scaled, dense_scales=tuple(scaled) if slotted else (),
                       dense_shifts=tuple(shifts) if slotted and not final else (),
                       fills=() if slotted else filled, dense_fills=tuple(filled) if slotted else (), remap=remap,
                       weight=self._weight[1] / self._weight[0] if self._weight[1] else 1.0)  # fmt: skip

    # -- what the columns are ---------------------------------------------------------------------------------------

    def _follow(self, plan: Plan) -> None:
        """From now on all files are read by this plan."""
        self.plan = plan
        config = self.config
        crosses = self.crosses = Crosses(plan.interactions, plan.numeric, plan.categorical, plan.columns)
        numbers = (*plan.numeric, *crosses.product_names)
        words = (*plan.categorical, *crosses.pair_names)
        count = len(numbers)
        self._categories = self.schema.get("categories", config.categories)
        words = (*words, *plan.multi)
        self._cut = Cut.known(self.schema) if self.schema else Cut(config.cut_off, config.shared_ids)
        self._old = bool(self.schema) and "rare" not in self.schema  # of a model from before that was told
        self._slotted = "slots" in self.schema if self.schema else config.layout == "slots"
        hashed = words if self._categories == "hash" else ()
        before = 0 if self._slotted else count
        first = before + hashed_ids(self.hashing, crosses if hashed else None, bool(plan.text or hashed))
        blocks = block_of(crosses, len(plan.categorical))
        self.hasher = HashedCategories(hashed, before, self.hashing, self._cut.shared, blocks)
        listed = () if hashed else words
        self.scales = Scales(count, self.schema, config.scale)
        self.standards = Standards(count, self.schema, config.scale)
        self.fills = Fills(count, self.schema, config.missing_numbers)
        known = self.schema["vocabulary"] if self.schema else None
        self.vocabulary = Vocabulary(listed, first, known, self._cut, numbers)
        self._fields = np.zeros(len(plan.categorical), np.int64)  # of categories that are there, by column
        self._most = [0] * len(plan.multi)  # values of a field

    def _items(self, sources: Sequence[Source]) -> Iterator[_Item]:
        for file, source in enumerate(sources):
            if self.form in ("parquet", "arrow"):
                yield from self._arrow_frames(source, file)
            elif self.form == "jsonl":
                yield from self._object_blocks(source, file)
            else:
                yield from self._blocks(source, file)

    def _arrow_frames(self, source: Source, file: int) -> Iterator[Frame]:
        table = ArrowFile(source, self.form)
        if self.plan is None:
            columns.check_names(table.names, source.name)
            sample = table.sample(self.rules)
            plan = self._decide(table.names, True, sample, source.name)
            own = table.label_kinds[table.names.index(plan.label)]
            self._name_kind("numbers" if sample.kinds[plan.label] == columns.NUMERIC and plan.label in sample.fields
                            else own)  # fmt: skip
        self._take_lists({name: is_labels(kind) for name, kind in zip(table.names, table.types, strict=True)}, file)
        names = table.names if self._known_plan().header else None
        places = self._places(names, len(table.names), source.name, file)
        called = {name: table.names[place] for name, place in places.items()}
        table.check_kinds(self._known_plan(), called)
        for frame in table.frames(tuple(dict.fromkeys(called.values())), file):
            yield frame._replace(arrays={name: frame.arrays[own] for name, own in called.items()})

    def _blocks(self, source: Source, file: int) -> Iterator[_Item]:
        judged = self._judge(source, file)
        if judged is None:
            return
        skip, shape = judged
        dialect = shape.shape.dialect if isinstance(shape, WideShape) else shape.dialect
        for block, records in delimited.whole_records(blocks_of(source, file, skip), dialect):
            yield block, shape, records

    def _object_blocks(self, source: Source, file: int) -> Iterator[_Item]:
        found = ObjectFile(source, self.config, self.rules)
        if not found.names:
            found.report(self.bad)
            return
        if self.plan is None:
            plan = self._decide(found.names, True, found.sample, source.name)
            kind = found.label_kind(plan.label)
            self._name_kind("words" if kind == "lists" else kind)
        self._take_lists({name: found.label_kind(name) == "lists" for name in found.names}, file)
        plan = self._known_plan()
        if weight := columns.weight_column(plan, found.names, self.config, source.name):
            self._weighing[file] = weight
        shape, absent = found.shape(plan, not self.schema, weight)
        self.counts["unlabelled files"] += plan.label not in shape.names.values()
        self.absent += absent
        for block in blocks_of(source, file, 0):
            yield block, shape, None

    def _judge(self, source: Source, file: int) -> tuple[int, Shape | WideShape] | None:
        """The lines of the header, and how records are read; None if there are none. The first file says what columns
        are."""
        head = head_of(source, self.config.invalid_utf8 == "replace", _JUDGED)
        dialect = delimited.sniff(head, self.form, columns.separators_of(self.config, self.plan))
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
            self._name_kind("numbers" if sample.kinds[plan.label] == columns.NUMERIC else "words")
        plan = self._known_plan()
        places = self._places(names, count, source.name, file)
        labels = {plan.label} if self.labels.kind == "numbers" else set[str]()
        if weight := self._weighing.get(file, ""):
            labels.add(weight)
        # Blank lines before the header are no records; a header inside quotes may itself take several lines.
        skip = delimited.header_lines(head, dialect) if header else 0
        plain, texts = self.rules.style != "comma", (plan.text, *plan.multi)  # 1.234 is 1234 there
        if count >= WIDE:
            return skip, delimited.wide_shape(Shape(dialect, count, places, labels, texts, plain), plan)
        return skip, Shape(dialect, count, places, {*plan.numeric, *labels}, texts, plain)

    def _name_kind(self, kind: str) -> None:
        """What labels are, by the first file; those of which a row may have several are always words."""
        if not isinstance(self.labels, SetLabels):
            self.labels.kind = kind

    def _take_lists(self, lists: Mapping[str, bool], file: int) -> None:
        """Where the label is a list, rows have several labels. lists: columns that are."""
        label = self.config.label if self.config.label in lists else self._known_plan().label
        if not lists.get(label, False) or isinstance(self.labels, SetLabels):
            return
        if file and not self.schema:
            raise InputError(f"the label `{shown(label)}` is a list in some files, but not in the first; write all"
                             " files alike.")  # fmt: skip
        self.labels = SetLabels(self.config, self.schema.get("labels"), self.rules.labels())

    def _decide(self, names: tuple[str, ...], header: bool, sample: Sample, where: str) -> Plan:
        plan = columns.make_plan(self.config, names, header, sample, where)
        plan = replace(plan, interactions=find_pairs(self.config.interactions, names, where))
        self._follow(plan)
        self.doubts = columns.doubts_of(sample, plan, self.config, self.rules)
        self._where = where
        return plan

    def _places(self, names: tuple[str, ...] | None, count: int, where: str, file: int) -> dict[str, int]:
        plan = self._known_plan()
        places = columns.place_columns(plan, names, count, self.config, where)
        if weight := columns.weight_column(plan, names or plan.columns, self.config, where):
            self._weighing[file] = weight
        self.counts["unlabelled files"] += self._known_plan().label not in places
        return places

    def _known_plan(self) -> Plan:
        assert self.plan is not None
        return self.plan

    # -- in threads: a frame in arrays ------------------------------------------------------------------------------

    def _read(self, block: Block, shape: _AnyShape, records: Records | None) -> Frame:
        replace = self.config.invalid_utf8 == "replace"
        if isinstance(shape, ObjectShape):
            frame, late = objects.read_objects(block, shape, replace)
            self.late |= late
            return frame
        if isinstance(shape, WideShape):
            return delimited.read_wide(block, shape, replace, records)
        return delimited.read_block(block, shape, replace, records)

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
        if self.crosses.products:
            numbers = self.crosses.multiplied(numbers, wrong)
            missing = np.isnan(numbers)
        if self.schema:
            with np.errstate(over="ignore"):
                single = numbers.astype(np.float32)
                scaled = self.standards.standardized(single) if self._slotted else single * self.scales.factors
            large = np.flatnonzero(np.isinf(scaled).any(1)).tolist()
            wrong.update((row, TOO_LARGE) for row in large if row not in wrong)
        categories = frames.read_categories(frame, plan.categorical, self.rules)
        crossed = self.crosses.combined(categories, numbers, self.fills.kind == "mean")
        hashed = self.hasher.ids([*categories, *crossed] if self._categories == "hash" else [], len(frame.lines))
        text = hash_texts(self.recipe, *frames.read_texts(arrays[plan.text])) if plan.text else None
        label: Codes | Numbers | RowSets | None = None
        if plan.label in arrays and frames.is_labels(arrays[plan.label].type):
            label = frames.read_sets(arrays[plan.label])
        elif plan.label in arrays and self.labels.kind == "numbers":
            label, odd = frames.read_numbers(arrays[plan.label], self.rules)
            if not self.config.unlabelled:
                wrong.update((row, f"the label `{word}` is not a finite number") for row, word in odd.items())
        elif plan.label in arrays:
            label = frames.read_words(arrays[plan.label], _EMPTY)
        split = zip(plan.multi, plan.separators, strict=True)
        bags = [frames.read_bags(arrays[name], separator, self.rules) for name, separator in split]
        parts = _Parts(frame, numbers, missing, categories, hashed, bags, text, label, wrong, crossed)
        weight = self._weighing.get(frame.file, "")
        return _weighed(parts, arrays[weight], self.rules) if weight else parts

    # -- in order: ids that depend on what came before --------------------------------------------------------------

    def _chunk(self, parts: _Parts) -> Chunk:
        frame = parts.frame
        if self.spellings:
            self._spell(parts, self.spellings)
        targets, wrong = self._targets(parts)
        lines = {int(frame.lines[row]): problem for row, problem in wrong.items()}
        self._report(frame, {**frame.wrong, **lines})
        keep = np.ones(len(targets), np.bool_)
        keep[list(wrong)] = False
        weights = None if parts.weights is None else self._add_weights(parts.weights[keep], frame)
        if not keep.all():
            parts = _kept(parts, keep)
        self._count(parts)
        if self._slotted:
            named, others = self._named(parts), [*self._bags(parts), *([] if parts.text is None else [parts.text])]
            cells = slot_cells(parts.numbers, named, others, self.fills.values, self.vocabulary.marks)
            if self.standards.measured:
                self.standards.add(Moments.of(parts.numbers))
            dense = self.standards.standardized(cells.dense)
            return Chunk(*cells.features, targets[keep], frame.lines[keep], frame.file, cells.slots, dense, weights)
        return Chunk(*self._features(parts), targets[keep], frame.lines[keep], frame.file, weights=weights)

    def _spell(self, parts: _Parts, spellings: Spellings) -> None:
        share = spellings.next_block(len(parts.numbers))
        if text := self._known_plan().text:
            spellings.add_texts(self.recipe, *frames.read_texts(parts.frame.arrays[text]))
        if self._categories == "hash":
            words = [*parts.categories, *parts.crossed]
            spellings.add_categories(self.hasher.spelt(words, parts.bags, share))

    def _add_weights(self, weights: Numbers, frame: Frame) -> Floats:
        """The weights of the rows of a frame, which are added to those before."""
        self.counts["weightless"] += len(frame.arrays[self._weighing[frame.file]]) - len(frame.lines)
        found = weights.astype(np.float32)
        self._weight = (self._weight[0] + float(found.sum(dtype=np.float64)), self._weight[1] + len(found))
        return found

    def _targets(self, parts: _Parts) -> tuple[Floats, dict[int, str]]:
        """The target of each row, and what is wrong with the rows that must be left out."""
        wrong = dict(parts.wrong)
        label = parts.label
        if label is None:
            return np.zeros(len(parts.frame.lines), np.float32), wrong
        if isinstance(label, RowSets):
            assert isinstance(self.labels, SetLabels)
            targets, problems = self.labels.targets_of_sets(label.sets, label.codes, empty=True)
            if not self.config.unlabelled:
                wrong |= dict.fromkeys(np.flatnonzero(label.absent).tolist(), _NO_LIST)
        elif isinstance(label, Codes):
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
            return self.vocabulary.ids([*parts.categories, *parts.crossed], len(parts.numbers), missing)
        self.vocabulary.ids([], len(parts.numbers), missing)
        return parts.hashed

    def _bags(self, parts: _Parts) -> list[Features]:
        """The features of the columns of several values."""
        found, first = [], len(self._fields) + len(self.crosses.pair_names)
        ids_of = self.vocabulary.bag if self._categories == "enumerate" else self.hasher.bag
        for k, bags in enumerate(parts.bags):
            ids = ids_of(first + k, bags.items)
            known = ids >= 0
            rows = np.repeat(np.arange(len(bags.lengths)), bags.lengths)
            lengths = np.bincount(rows[known], minlength=len(bags.lengths))
            found.append(Features(lengths, ids[known], np.empty(0, np.float32)))
            self._most[k] = max(self._most[k], int(bags.lengths.max(initial=0)))
        return found

    def _count(self, parts: _Parts) -> None:
        missing = parts.missing
        there = [np.atleast_1d((column.codes >= 0).sum(0)) for column in parts.categories]
        self.counts["numbers"] += int(np.count_nonzero(missing[:, : len(self._known_plan().numeric)]))
        self.counts["categories"] += len(missing) * len(self._fields) - sum(int(column.sum()) for column in there)
        self.counts["replaced"] += parts.frame.replaced
        self._fields += np.concatenate(there) if there else 0
        self.left_out.update(word for column in parts.categories for word in column.left_out)
        if self.fills.measured:
            self.fills.add(np.where(missing, 0.0, parts.numbers).sum(0), len(missing) - missing.sum(0))

    def _features(self, parts: _Parts) -> Features:
        rows, width = parts.numbers.shape
        named = self._named(parts)
        pairs = named[:, len(self._fields) :]
        if self.crosses.pairs:
            named = np.ascontiguousarray(named[:, : len(self._fields)])
        filled = make_filled(rows, width, named.shape[1], int(np.count_nonzero(parts.missing)))
        marks = self.vocabulary.marks
        fill = ready(fill_rows, parts.numbers.size + named.size)
        total = fill(Cells(parts.numbers, named, self.scales.factors, self.fills.values, marks), filled)
        self.scales.add(filled.squares, filled.present)
        features = Features(filled.lengths, filled.ids[:total], all_ones(filled.values[:total]))
        if self.crosses.pairs:
            crossed = self.crosses.features(pairs, parts.numbers, self.fills.values, self.scales.factors)
            features = join_rows(features, crossed._replace(values=all_ones(crossed.values)))
        for bag in self._bags(parts):
            features = join_rows(features, bag)
        if parts.text is None:
            return features
        return join_rows(features, parts.text._replace(ids=parts.text.ids + np.int32(width)))

    def _spread(self, columns: Sequence[float], other: float) -> Sequence[float]:
        """What belongs to columns of numbers, by features: those of a number and a category have the number's."""
        valued = self.crosses.valued
        if not valued:
            return columns
        found = np.full(self.vocabulary.first + len(self.vocabulary.entries()), other, np.float32)
        found[: len(columns)] = columns
        for block, (place, number) in enumerate(valued, 1):
            if self._categories == "hash":
                first = len(columns) + (block << self.hashing.bits)
                found[first : first + (1 << self.hashing.bits)] = columns[number]
            else:
                found[list(self.vocabulary.tables()[len(self._fields) + place].values())] = columns[number]
        return found  # type: ignore[return-value]  # as good as a sequence of floats, and may be long

    def _check_categories(self, plan: Plan) -> None:
        """Raise InputError for a column of categories of which nearly every row has its own, unless it is asked for."""
        if (self.config.min_count or 1) > 1 or self._cut.shared or self._categories == "hash":
            return
        declared = columns.found_names(self.config.categorical, plan.columns, "--categorical")
        sizes = zip(self._fields.tolist(), self.vocabulary.sizes()[: len(self._fields)], strict=True)
        counts = {name: each for name, each in zip(plan.categorical, sizes, strict=True) if name not in declared}
        columns.check_differing(counts, self.doubts, self._where)

    def _report(self, frame: Frame, wrong: Mapping[int, str]) -> None:
        for line in sorted(wrong):
            remedy = _NUMBER_REMEDY if wrong[line].startswith("column ") and self.form != "jsonl" else _REMEDY
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
            for name, separator, most in zip(plan.multi, plan.separators, self._most, strict=True):
                if most < 2:
                    between = f"(with `{shown(separator)}` between them)"
                    yield f"No field of column `{shown(name)}` has several values {between}."
        if scaled:
            yield CENTRED if self._slotted else SCALED
        if counts["numbers"]:
            fate = "read as 0" if self._slotted else "left out"
            if self.fills.kind == "mean":
                fate = "read as the mean of training, with a feature beside it that says so (see --missing-numbers)"
            yield f"{counted(counts['numbers'], 'missing field')} in columns of numbers {fate}."
        if counts["categories"]:
            words = ", ".join(f"`{shown(word)}`" for word in sorted(self.left_out)[:3])
            named = f" ({words}; see --missing)" if words else ""
            yield f"{counted(counts['categories'], 'missing field')} in columns of categories left out{named}."
        yield from self.absent
        if self.late:
            yield objects.late_note(self.late)
        yield from self.vocabulary.notes()
        if counts["weightless"]:
            yield f"{counted(counts['weightless'], 'row')} of weight 0 left out."
        yield from replaced_notes(counts["replaced"])
        yield from self.labels.notes(counts["unlabelled files"])


def _missing_numbers(missing: npt.NDArray[np.bool_], names: Sequence[str]) -> dict[int, str]:
    """What is wrong with each row that has a missing number, where that is an error."""
    places = zip(*(part.tolist() for part in np.nonzero(missing)), strict=True)
    return {row: f"column `{shown(names[k])}`: the number is missing" for row, k in places}


def _weighed(parts: _Parts, column: Any, rules: FieldRules) -> _Parts:
    """The rows with their weights; those of weight 0 are as if they were not there."""
    weights, odd = frames.read_numbers(column, rules)
    wrong = {row: f"the weight `{word}` is not a finite number" for row, word in odd.items()}
    negative = np.flatnonzero(weights < 0).tolist()
    wrong |= {row: f"the weight is {weights[row]:g}, and must not be negative" for row in negative}
    missing = np.flatnonzero(np.isnan(weights)).tolist()
    wrong = {**parts.wrong, **dict.fromkeys(missing, "the weight is missing"), **wrong}
    keep = weights != 0
    if keep.all():
        return parts._replace(weights=weights, wrong=wrong)
    label, places = parts.label, np.cumsum(keep) - 1
    label = label._replace(codes=label.codes[keep]) if isinstance(label, Codes | RowSets) else label
    label = label._replace(absent=label.absent[keep]) if isinstance(label, RowSets) else label
    return _kept(parts, keep)._replace(
        frame=parts.frame._replace(lines=parts.frame.lines[keep]), weights=weights[keep],
        label=label[keep] if isinstance(label, np.ndarray) else label,
        wrong={int(places[row]): problem for row, problem in wrong.items() if keep[row]},
    )  # fmt: skip


def _kept(parts: _Parts, keep: npt.NDArray[np.bool_]) -> _Parts:
    """The rows that are marked."""
    return parts._replace(
        numbers=parts.numbers[keep],
        missing=parts.missing[keep],
        categories=[column._replace(codes=column.codes[keep]) for column in parts.categories],
        crossed=[column._replace(codes=column.codes[keep]) for column in parts.crossed],
        hashed=parts.hashed[keep],
        bags=[frames.keep_bags(bags, keep) for bags in parts.bags],
        text=keep_rows(parts.text, keep) if parts.text is not None else None,
    )
