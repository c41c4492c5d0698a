"""svmlight / libsvm files: `label [qid:n] id:value … [# comment]`. Blocks are parsed by threads, delivered in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.source import Bytes
from hogwild.feeds.sparse.encoder import Block, BlockEncoder, Chunk, Summary, left_out_notes, overflows, reading_schema
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse import lines
from hogwild.kernels.parse import svmlight as kernel
from hogwild.messages import counted, shown

_AFTER_NUMBER = re.compile(rb"[\s#]")


class SvmlightEncoder(BlockEncoder):
    """Reads svmlight files into chunks. Ids stay as they are in the file; `first_id` of the summary is 0 or 1."""

    form = "svmlight"
    counters = lines
    options = ("features", "zero_based", "bad_lines", "bad_share", "max_line", "pipe", "unlabelled")

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        super().__init__(config, schema, threads)
        with reading_schema(self.schema, self.form, part="features"):
            self.known = int(self.schema["features"]) if self.schema else 0
        self.smallest = kernel.NO_ID
        self.largest = -1
        self.places = {"smallest": "", "largest": ""}
        # What the schema or the user fixes; None while it must be found out.
        known = {"yes": True, "no": False, "auto": self.schema.get("zero_based")}
        self.zero_based: bool | None = known[config.zero_based]

    def room(self, size: int) -> kernel.Parsed:
        """Arrays for a block of that many bytes."""
        return kernel.room_for(size)

    def parse(self, block: Block) -> None:
        """Fill the arrays of a block."""
        text, parsed = block.text, block.parsed
        ready(kernel.parse_block, len(text))(text, parsed, self.bad.stop, self.config.unlabelled)
        for entry, place in parsed.hard[: parsed.counts[lines.HARD]].tolist():
            array, index = (parsed.values, entry) if entry >= 0 else (parsed.targets, -1 - entry)
            array[index] = np.float32(float(_number(text, place)))

    def report(self, block: Block, error: Sequence[int]) -> None:
        """Report a bad line; where an id stands twice, at its second place."""
        code, place, line, ident = error
        if code == kernel.TWICE:
            place = _second(block.text, block.line_start(place), place, ident)
        self.bad.report(f"{block.where(line, place)}: {_explain(code, block.word_at(place), ident)}")

    def note(self, block: Block, work: None) -> None:
        """Keep the smallest and the largest id, and where they stand."""
        smallest, largest = (int(block.parsed.counts[which]) for which in (lines.SMALLEST, lines.LARGEST))
        if smallest < self.smallest:
            self.smallest, self.places["smallest"] = smallest, self._place_of(smallest, block)
        if largest > self.largest:
            self.largest, self.places["largest"] = largest, self._place_of(largest, block)

    def _place_of(self, ident: int, block: Block) -> str:
        """file:line of the first row of a block that has this id."""
        chunk = self.rows(block, block.parsed.ids)
        row = int(np.searchsorted(np.cumsum(chunk.lengths), np.argmax(chunk.ids == ident), side="right"))
        return block.source.place(int(chunk.lines[row]))

    def chunk(self, block: Block, work: None) -> Chunk:
        """The rows of a block; with a schema, without the ids that it does not know."""
        chunk = super().chunk(block, work)
        return self.known_only(chunk, self.known + (0 if self.zero_based else 1)) if self.schema else chunk

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        notes = [*self._notes(), *self.bad.notes()]
        zero_based = self.zero_based if self.zero_based is not None else self.smallest == 0
        first = 0 if zero_based else 1
        if self.zero_based is None:
            found = "an id 0 occurs" if zero_based else "no id 0 occurs"
            notes.insert(0, f"Ids start at {first}: {found} (--zero-based says otherwise).")
        if not zero_based and self.smallest == 0:
            before = "started at 1 in training" if self.schema else "start at 1 here"
            where = self.places["smallest"]
            raise InputError(f"{where}: id 0, but ids {before}; add 1 to all ids, or say --zero-based yes.")
        features = self._features(first)
        schema = {"format": self.form, "zero_based": zero_based, "features": features}
        return Summary(features, (), schema, tuple(notes), first)

    def _features(self, first: int) -> int:
        needed = self.largest + 1 - first
        if self.schema:
            return self.known
        if self.config.features:
            if needed > self.config.features:
                raise InputError(f"{self.places['largest']}: id {self.largest} lies past the {self.config.features}"
                                 f" features that were asked for; set --features {needed} or leave it out.")
            return self.config.features
        return max(needed, 1)

    def _notes(self) -> Iterator[str]:
        def count(which: int) -> int:
            return int(self.counts[which])

        if count(lines.QIDS):
            yield f"{counted(count(lines.QIDS), 'qid field')} skipped."
        skipped = [(count(lines.COMMENTS), "comment"), (count(lines.EMPTY), "blank line")]
        if any(number for number, _ in skipped):
            yield f"{' and '.join(counted(number, noun) for number, noun in skipped if number)} skipped."
        if count(lines.UNSORTED):
            yield f"{counted(count(lines.UNSORTED), 'row')} with unsorted ids: sorted."
        yield from self.label_notes()
        yield from left_out_notes(self.left_out, self.known)


def _number(text: Bytes, place: int) -> bytes:
    """The number at a place, however long; a comment may begin right after it."""
    size = 4096
    while not (ends := _AFTER_NUMBER.search(text[place : place + size].tobytes())):
        size *= 8
    return text[place : place + ends.start()].tobytes()


def _second(text: Bytes, start: int, end: int, ident: int) -> int:
    """Place of the second entry with this id in the line from `start` to `end`."""
    line = text[start:end].tobytes()
    at, seen = 0, 0
    for word in line.split():
        at = line.index(word, at)
        name = word.partition(b":")[0]
        seen += name.isdigit() and (name.lstrip(b"0") or b"0") == b"%d" % ident and b":" in word
        if seen == 2:
            return start + at
        at += len(word)
    return start


def _explain(code: int, token: str, ident: int) -> str:
    """What is wrong, in one clause."""
    token = token.partition("#")[0] or token
    word = shown(token)
    if code in (kernel.LABEL, kernel.VALUE):
        number = token.partition(":")[2] if code == kernel.VALUE or ":" in token else token
        code = kernel.NOT_FINITE if overflows(number) else code
    return {
        kernel.LABEL: f"the label `{word}` is not a number",
        kernel.NO_LABEL: f"the label is missing: the line begins with `{word}`",
        kernel.ID: f"the id of `{word}` is below 0" if token.startswith("-") else f"`{word}` is not id:value",
        kernel.NO_COLON: f"`{word}` has no colon; expected id:value",
        kernel.ID_TOO_LARGE: f"the id of `{word}` is past {2**31 - 1}, the largest possible",
        kernel.VALUE: f"the value of `{word}` is not a number",
        kernel.NOT_FINITE: f"`{word}` is not a finite float32 number",
        kernel.TWICE: f"id {ident} stands twice in one row",
    }[code]
