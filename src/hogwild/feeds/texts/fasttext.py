"""fastText's lines: `__label__pos __label__short text of the sentence`; labels may stand anywhere in a line."""

from __future__ import annotations

import re
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
from hogwild.feeds.sparse.labels import TEXT_NAME
from hogwild.feeds.sparse.labelsets import Names, SetLabels
from hogwild.feeds.sparse.spellings import Spellings
from hogwild.feeds.tables.columns import Plan
from hogwild.feeds.tables.fields import FieldRules
from hogwild.feeds.texts.lines import text_only
from hogwild.messages import shown

_PLAN = Plan(("label", TEXT_NAME), False, "label", TEXT_NAME)
_NEWLINE, _BLANK = 10, 32
_WORD = rb"[^ \t\r\n\v\f\0]"  # what fastText's words are made of


class _Parsed(NamedTuple):
    """A block in arrays: of each line that is not blank its number in the block and its features; found: the different
    sets of labels; codes: which of them each line has; text, bounds: what is hashed of it."""

    lines: npt.NDArray[np.int64]
    features: Features
    found: list[Names]
    codes: npt.NDArray[np.intp]
    replaced: int
    text: Bytes
    bounds: npt.NDArray[np.int64]


class FastTextEncoder:
    """Reads lines of labels and text. What follows the prefix is the name of a label."""

    options = (
        "label_prefix", "several_labels", "hash_bits", "hash_seed", "ngrams", "lowercase", "normalize", "bad_lines",
        "bad_share", "invalid_utf8", "max_line", "pipe", "unlabelled", "missing",
    )  # fmt: skip

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        schema = schema or {}
        # Only a model can do without labels.
        self.config = config if schema else replace(config, unlabelled=False)
        self.threads = threads
        with reading_schema(schema, "table", "fastText's lines", "columns"):
            self.plan = Plan.known(schema) if schema else _PLAN
            self.hashing = Hashing.of(config, schema)
            absent = FieldRules.of(config, schema).labels()
            self.labels = SetLabels(replace(self.config, label_separator=""), schema.get("labels"), absent)
        self.recipe = self.hashing.recipe()
        if schema and not text_only(config, schema):
            raise InputError("the model was trained on more columns than label and text; give a table with those.")
        prefix = re.escape(config.label_prefix.encode())
        self._label = re.compile(rb"(?<!" + _WORD + rb")" + prefix + _WORD + rb"*")
        self._skip = len(config.label_prefix.encode())
        self.bad = BadLines(config)
        self.replaced = 0
        self.spellings = None if schema else Spellings()

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        for block, parsed in in_order(self._parse, self._blocks(sources), self.threads):
            chunk = self._chunk(block, parsed)
            if len(chunk.targets):
                yield chunk

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        notes = (*self.bad.notes(), *replaced_notes(self.replaced), *self.labels.notes(0))
        schema = {"format": "table", **self.plan.schema(), "labels": self.labels.schema(),
                  "hashing": self.hashing.schema(), "categories": "hash", "vocabulary": [], "scales": [],
                  **(self.spellings.schema() if self.spellings else {})}  # fmt: skip
        return Summary(1 << self.hashing.bits, self.labels.names(), schema, notes, relabel=self.labels.relabel(),
                       sets=self.labels.sets())  # fmt: skip

    def _blocks(self, sources: Sequence[Source]) -> Iterator[Block]:
        for file, source in enumerate(sources):
            head_of(source, self.config.invalid_utf8 == "replace")  # says at once what is no text
            yield from blocks_of(source, file, 0)

    def _parse(self, block: Block) -> _Parsed:
        text, replaced = check_utf8(block, self.config.invalid_utf8 == "replace")
        data, ends = text.tobytes(), np.flatnonzero(text == _NEWLINE)
        starts = np.concatenate(([0], ends[:-1] + 1))
        spans = np.array([match.span() for match in self._label.finditer(data)], np.int64).reshape(-1, 2)
        owners = np.searchsorted(ends, spans[:, 0])
        words = _without(text, spans)
        filled = np.concatenate(([0], np.cumsum((words != _NEWLINE) & (words > _BLANK))))
        there = filled[ends] > filled[starts]
        there[owners] = True
        lines = np.flatnonzero(there)
        of_line: dict[int, Names] = {}
        for line, (start, end) in zip(owners.tolist(), spans.tolist(), strict=True):
            of_line[line] = (*of_line.get(line, ()), data[start + self._skip : end].decode())
        known: dict[Names, int] = {}
        codes = [known.setdefault(of_line.get(line, ()), len(known)) for line in lines.tolist()]
        bounds = np.stack((starts, ends), 1)[lines]
        features = hash_texts(self.recipe, words, bounds)
        return _Parsed(lines, features, list(known), np.array(codes, np.intp), replaced, words, bounds)

    def _chunk(self, block: Block, parsed: _Parsed) -> Chunk:
        self.replaced += parsed.replaced
        if self.spellings:
            self.spellings.next_block(len(parsed.codes))
            self.spellings.add_texts(self.recipe, parsed.text, parsed.bounds)
        targets, problems = self.labels.targets_of_sets(parsed.found, parsed.codes)
        hint = f" (labels begin with `{shown(self.config.label_prefix)}`)"
        wrong = {
            int(parsed.lines[row]): problem + (hint if "missing" in problem else "") for row, problem in problems
        }
        for line in sorted(wrong):
            self.bad.report(f"{block.source.place(block.line + line)}: {wrong[line]}")
        keep = ~np.isin(parsed.lines, list(wrong)) if wrong else np.ones(len(targets), np.bool_)
        self.bad.seen(len(targets))
        lines = parsed.lines[keep] + block.line
        return Chunk(*keep_rows(parsed.features, keep), targets[keep], lines, block.file)


def _without(text: Bytes, spans: npt.NDArray[np.int64]) -> Bytes:
    """The text with blanks in the place of some spans."""
    words = text.copy()
    marks = np.zeros(len(text) + 1, np.int8)
    marks[spans[:, 0]], marks[spans[:, 1]] = 1, -1
    words[np.cumsum(marks[:-1], dtype=np.int8) > 0] = _BLANK
    return words
