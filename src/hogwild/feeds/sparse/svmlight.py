"""svmlight / libsvm files: `label [qid:n] id:value … [# comment]`. Blocks are parsed by threads, delivered in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import fits_float32, number_of
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import BLOCK, Bytes, Source
from hogwild.feeds.sparse.encoder import Chunk, Summary
from hogwild.kernels.parse import svmlight as kernel
from hogwild.messages import counted, shown

_AFTER_NUMBER = re.compile(rb"[\s#]")
_ROOM = BLOCK + (1 << 16)  # bytes of text that arrays which are used again can take


class _Block(NamedTuple):
    """A block of text, where it stands, and the arrays that it is parsed into."""

    text: Bytes
    file: int
    line: int
    source: Source
    parsed: kernel.Parsed


class SvmlightEncoder:
    """Reads svmlight files into chunks. Ids stay as they are in the file; `first_id` of the summary is 0 or 1.

    The arrays of a chunk are used again for later ones: they hold until the next chunk is asked for.
    """

    options = ("features", "zero_based", "bad_lines", "bad_share", "max_line", "pipe", "unlabelled")

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        self.config = config
        self.schema = dict(schema or {})
        if self.schema and self.schema.get("format") != "svmlight":
            known = self.schema.get("format", "another kind of data")
            raise InputError(f"the model was trained on {known}, but this is svmlight; give data of the same kind.")
        self.threads = threads
        self._free: list[kernel.Parsed] = []  # arrays that are used again
        self.bad = BadLines(config)
        self.counts = np.zeros(kernel.SLOTS, np.int64)
        self.smallest = kernel.NO_ID
        self.largest = -1
        self.places = {"smallest": "", "largest": ""}
        self.left_out = 0
        # What the schema or the user fixes; None while it must be found out.
        known = {"yes": True, "no": False, "auto": self.schema.get("zero_based")}
        self.zero_based: bool | None = known[config.zero_based]

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        for block, _ in in_order(self._parse, self._blocks(sources), self.threads):
            self._report(block)
            self._note_ids(block)
            self.counts += block.parsed.counts
            if block.parsed.counts[kernel.ROWS]:
                yield self._known_only(_chunk(block))
            if len(block.text) <= _ROOM:
                self._free.append(block.parsed)

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
        schema = {"format": "svmlight", "zero_based": zero_based, "features": features}
        return Summary(features, (), schema, tuple(notes), first)

    def _blocks(self, sources: Sequence[Source]) -> Iterator[_Block]:
        for file, source in enumerate(sources):
            for line, text in source.blocks():
                used = self._free and len(text) <= _ROOM
                room = self._free.pop() if used else kernel.room_for(max(len(text), _ROOM))
                yield _Block(text, file, line, source, room)

    def _parse(self, block: _Block) -> None:
        text, parsed = block.text, block.parsed
        parsed.counts[:] = 0
        with np.errstate(over="ignore"):  # words wrap around; only the interpreter, with the compiler off, would say so
            kernel.parse_block(text, parsed, self.bad.stop, self.config.unlabelled)
        for entry, place in parsed.hard[: parsed.counts[kernel.HARD]].tolist():
            array, index = (parsed.values, entry) if entry >= 0 else (parsed.targets, -1 - entry)
            array[index] = np.float32(float(_number(text, place)))

    def _report(self, block: _Block) -> None:
        text, counts = block.text, block.parsed.counts
        errors = int(counts[kernel.BAD])
        for code, place, line, ident in block.parsed.errors[:errors].tolist():
            start = _line_start(text, place)
            if code == kernel.TWICE:
                place = _second(text, start, place, ident)
            where = block.source.place(block.line + line, place - start + 1)
            self.bad.report(f"{where}: {_explain(code, _token(text, place), ident)}")
        self.bad.count += max(0, errors - len(block.parsed.errors))
        self.bad.seen(int(counts[kernel.ROWS]) + errors)

    def _note_ids(self, block: _Block) -> None:
        smallest, largest = (int(block.parsed.counts[which]) for which in (kernel.SMALLEST, kernel.LARGEST))
        if smallest < self.smallest:
            self.smallest, self.places["smallest"] = smallest, _place_of(smallest, block)
        if largest > self.largest:
            self.largest, self.places["largest"] = largest, _place_of(largest, block)

    def _known_only(self, chunk: Chunk) -> Chunk:
        """With a schema: without the ids that it does not know."""
        if not self.schema:
            return chunk
        limit = int(self.schema["features"]) + (0 if self.zero_based else 1)
        keep = chunk.ids < limit
        if keep.all():
            return chunk
        self.left_out += int(len(keep) - np.count_nonzero(keep))
        before = np.concatenate(([0], np.cumsum(keep)))
        ends = np.concatenate(([0], np.cumsum(chunk.lengths)))
        values = chunk.values[keep] if len(chunk.values) else chunk.values
        return chunk._replace(lengths=np.diff(before[ends]), ids=chunk.ids[keep], values=values)

    def _features(self, first: int) -> int:
        needed = self.largest + 1 - first
        if self.schema:
            return int(self.schema["features"])
        if self.config.features:
            if needed > self.config.features:
                raise InputError(
                    f"{self.places['largest']}: id {self.largest} lies past the {self.config.features} features"
                    f" that were asked for; set --features {needed} or leave it out."
                )
            return self.config.features
        return max(needed, 1)

    def _notes(self) -> Iterator[str]:
        def count(which: int) -> int:
            return int(self.counts[which])

        if count(kernel.QIDS):
            yield f"{counted(count(kernel.QIDS), 'qid field')} skipped."
        skipped = [(count(kernel.COMMENTS), "comment"), (count(kernel.EMPTY), "blank line")]
        if any(number for number, _ in skipped):
            yield f"{' and '.join(counted(number, noun) for number, noun in skipped if number)} skipped."
        if count(kernel.UNSORTED):
            yield f"{counted(count(kernel.UNSORTED), 'row')} with unsorted ids: sorted."
        if count(kernel.UNLABELLED):
            yield f"{counted(count(kernel.UNLABELLED), 'row')} without a label, which predictions do not need."
        if self.left_out:
            past = f"past the {self.schema['features']:,} known features"
            yield f"{counted(self.left_out, 'value')} left out: their ids lie {past}."


def _chunk(block: _Block) -> Chunk:
    parsed = block.parsed
    rows, entries = int(parsed.counts[kernel.ROWS]), int(parsed.counts[kernel.ENTRIES])
    return Chunk(
        lengths=parsed.lengths[:rows],
        ids=parsed.ids[:entries],
        values=parsed.values[: entries if parsed.counts[kernel.VALUED] else 0],
        targets=parsed.targets[:rows],
        lines=parsed.lines[:rows] + block.line,
        file=block.file,
    )


def _line_start(text: Bytes, place: int) -> int:
    return text[:place].tobytes().rfind(b"\n") + 1


def _token(text: Bytes, place: int) -> str:
    """The word at a place, as messages show it."""
    words = text[place : place + 4096].tobytes().split(b"\n", 1)[0].split(None, 1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""


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


def _place_of(ident: int, block: _Block) -> str:
    """file:line of the first row of a block that has this id."""
    chunk = _chunk(block)
    row = int(np.searchsorted(np.cumsum(chunk.lengths), np.argmax(chunk.ids == ident), side="right"))
    return block.source.place(int(chunk.lines[row]))


def _explain(code: int, token: str, ident: int) -> str:
    """What is wrong, in one clause."""
    token = token.partition("#")[0] or token
    word = shown(token)
    if code in (kernel.LABEL, kernel.VALUE):
        number = token.partition(":")[2] if code == kernel.VALUE or ":" in token else token
        value = number_of(number)
        if value is not None and not fits_float32(value):
            code = kernel.NOT_FINITE
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
