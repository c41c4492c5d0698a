"""`label<TAB>text` lines, with or without a header and more columns: hashed word n-grams, by threads over blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, check_utf8, head_of, replaced_notes
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Bytes, Source
from hogwild.feeds.sparse.encoder import Chunk, Summary, reading_schema
from hogwild.feeds.sparse.features import Features, keep_rows
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.feeds.sparse.labels import NAMES, TEXT_NAME
from hogwild.feeds.sparse.labelsets import labels_for
from hogwild.feeds.sparse.spellings import Spellings
from hogwild.feeds.tables.columns import (
    NO_WEIGHT,
    Plan,
    describe,
    find_column,
    has_header,
    names_of,
    numbers_of,
    place_columns,
)
from hogwild.feeds.tables.fields import FieldRules
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.hashing import hash_fields
from hogwild.kernels.ids.tokens import OK, SHORT, Layout, Lines, count_lines, make_lines, split_lines


class _Item(NamedTuple):
    """A block and how its lines are divided."""

    block: Block
    layout: Layout


class _Parsed(NamedTuple):
    """A block in arrays. words: the distinct labels; codes: for each good row, which one it has; text: in UTF-8."""

    lines: Lines
    good: npt.NDArray[np.intp]
    features: Features
    words: list[str]
    codes: npt.NDArray[np.intp]
    replaced: int
    text: Bytes


def text_only(config: FeedConfig, schema: Mapping[str, Any] | None) -> bool:
    """Whether nothing but label and text is read from a table: then tab-separated files need no table reader."""
    if not config.unlabelled and (config.weight or (schema or {}).get("weight", NO_WEIGHT)) != NO_WEIGHT:
        return False
    if config.interactions or (schema or {}).get("interactions"):
        return False
    if schema and schema.get("format") == "table":
        return bool(schema.get("text")) and not schema.get("numeric") and not schema.get("categorical")
    return bool(config.text) and not config.numeric and not config.categorical


class TextEncoder:
    """Reads tab-separated lines of which one field is the label and one the text. Quotes mean nothing here.

    A text column that is the last one goes on to the end of the line, tabs included.
    """

    options = (
        "label", "text", "header", "hash_bits", "hash_seed", "ngrams", "subwords", "lowercase", "normalize",
        "bad_lines", "bad_share", "invalid_utf8", "max_line", "pipe", "unlabelled", "missing",
        "label_separator", "several_labels",
    )

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        schema = schema or {}
        # Only a model can do without labels.
        self.config = config if schema else replace(config, unlabelled=False)
        self.threads = threads
        self.trained = bool(schema)
        with reading_schema(schema, "table", "labelled text", "columns"):
            self.plan = Plan.known(schema) if schema else None
            self.hashing = Hashing.of(config, schema)
            absent = FieldRules.of(config, schema).labels()
            self.labels = labels_for(self.config, schema.get("labels"), absent)
        self.recipe = self.hashing.recipe()
        if schema and not text_only(config, schema):
            raise InputError("the model was trained on more columns than label and text; give a table with those.")
        self.bad = BadLines(config)
        self.replaced = 0
        self.unlabelled_files = 0
        self.spellings = None if schema else Spellings()

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        for item, parsed in in_order(self._parse, self._items(sources), self.threads):
            chunk = self._chunk(item, parsed)
            if len(chunk.targets):
                yield chunk

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        notes = list(self.bad.notes())
        if self.plan is not None and not self.trained:
            notes += describe(self.plan, self.config) if self.plan.header else []
        notes += [*replaced_notes(self.replaced), *self.labels.notes(self.unlabelled_files)]
        schema = {"format": "table", **(self.plan.schema() if self.plan else {}), "labels": self.labels.schema(),
                  "hashing": self.hashing.schema(), "categories": "hash", "vocabulary": [], "scales": [],
                  **(self.spellings.schema() if self.spellings else {})}  # fmt: skip
        features = 1 << self.hashing.bits
        return Summary(features, self.labels.names(), schema, tuple(notes), relabel=self.labels.relabel(),
                       sets=self.labels.sets())  # fmt: skip

    def _items(self, sources: Sequence[Source]) -> Iterator[_Item]:
        for file, source in enumerate(sources):
            skip, layout = self._layout(source)
            for block in blocks_of(source, file, skip):
                yield _Item(block, layout)

    def _layout(self, source: Source) -> tuple[int, Layout]:
        """How many lines of a file come before its rows, and how these are divided."""
        lines = head_of(source, self.config.invalid_utf8 == "replace").split("\n")
        blank = next((k for k, line in enumerate(lines) if line.strip("\r")), len(lines))
        rows = [line.rstrip("\r").split("\t") for line in lines[blank : blank + 1000] if line.strip("\r")]
        if not rows:
            return 0, Layout(0, 1, 2, True)
        header = has_header(rows[0], rows[1:], self.config, self.plan, FieldRules())
        names = names_of(rows[0]) if header and (self.plan is None or self.plan.header) else None
        if self.plan is None:
            self.plan = self._plan(names, len(rows[0]), source.name)
        if self.config.unlabelled and names is None and len(rows[0]) == 1:
            self.unlabelled_files += 1
            return 0, Layout(-1, 0, 1, True)  # lines of nothing but text, whatever columns there were in training
        count = len(self.plan.columns)
        if self.config.unlabelled and len(rows[0]) == count - 1:
            count -= 1
        places = place_columns(self.plan, names, count, self.config, source.name)
        fields = len(names) if names is not None else count
        label, text = places.get(self.plan.label, -1), places[self.plan.text]
        self.unlabelled_files += label < 0
        return (blank + 1 if header else 0), Layout(label, text, fields, text == fields - 1)

    def _plan(self, names: tuple[str, ...] | None, count: int, where: str) -> Plan:
        label, text = self.config.label, self.config.text
        if names is None:
            label, text = label or "0", text or "1"
            given = [int(each) for each in (label, text) if each.lstrip("+-").isdigit()]
            if len(given) == 2 and 0 <= given[0] < given[1]:
                count = given[1] + 1  # whatever follows belongs to the text
        else:
            label = label or next((name for name in names if name.lower() in NAMES), names[0])
            text = text or next((name for name in names if name.lower() == TEXT_NAME), names[-1])
        columns = names if names is not None else numbers_of(count)
        chosen = find_column(label, columns, "--label", where)
        other = find_column(text, columns, "--text", where)
        if chosen == other:
            raise InputError(f"{where}: column `{other}` cannot be both label and text; see --label and --text.")
        return Plan(columns, names is not None, chosen, other)

    def _parse(self, item: _Item) -> _Parsed:
        text, replaced = check_utf8(item.block, self.config.invalid_utf8 == "replace")
        lines = make_lines(ready(count_lines, len(text))(text))
        ready(split_lines, len(text))(text, item.layout, lines)
        good = np.flatnonzero(lines.status == OK)
        whole = len(good) == len(lines.status)
        features = hash_texts(self.recipe, text, lines.texts if whole else lines.texts[good])
        if item.layout.label < 0:
            return _Parsed(lines, good, features, [], np.zeros(len(good), np.intp), replaced, text)
        bounds = lines.labels[good]
        hashes = np.empty(len(good), np.uint64)
        with np.errstate(over="ignore"):
            hash_fields(text, bounds, self.recipe.seed, hashes)
        _, first, codes = np.unique(hashes, return_index=True, return_inverse=True)
        words = [text[start:end].tobytes().decode() for start, end in bounds[first].tolist()]
        return _Parsed(lines, good, features, words, codes, replaced, text)

    def _chunk(self, item: _Item, parsed: _Parsed) -> Chunk:
        block = item.block
        self.replaced += parsed.replaced
        if self.spellings:
            self.spellings.next_block(len(parsed.codes))
            self.spellings.add_texts(self.recipe, parsed.text, parsed.lines.texts[parsed.good])
        odd = np.flatnonzero(parsed.lines.status >= SHORT)
        wrong = {int(k): _explain(int(parsed.lines.fields[k]), item.layout) for k in odd}
        good, features = parsed.good, parsed.features
        if item.layout.label < 0:
            targets = np.zeros(len(good), np.float32)
        else:
            targets, problems = self.labels.targets_of(parsed.words, parsed.codes)
            wrong.update((int(good[row]), problem) for row, problem in problems)
            keep = ~np.isnan(targets)
            good, targets, features = good[keep], targets[keep], keep_rows(features, keep)
        for line in sorted(wrong):
            self.bad.report(f"{block.source.place(block.line + line)}: {wrong[line]}")
        self.bad.seen(len(good) + len(wrong))
        return Chunk(*features, targets, good + block.line, block.file)


def _explain(found: int, layout: Layout) -> str:
    if layout.fields == 2 and found == 1:
        return "there is no tab; expected label<TAB>text"
    return f"expected {layout.fields} tab-separated fields, found {found}"
