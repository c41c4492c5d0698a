"""svmlight / libsvm files: `label [qid:n] id:value … [# comment]`. Blocks are parsed by threads, delivered in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.badlines import BadLines
from hogwild.feeds.chunk import Chunk, Summary
from hogwild.feeds.source import BLOCK, Bytes, Source
from hogwild.kernels import svmlight as kernel

_SHOWN = 40  # bytes of a token that a message shows


class _Block(NamedTuple):
    """A block of text and where it stands."""

    text: Bytes
    file: int
    line: int
    source: Source


class SvmlightEncoder:
    """Reads svmlight files into chunks. Ids stay as they are in the file; `first_id` of the summary is 0 or 1.

    The arrays of a chunk are used again for later ones: they hold until the next chunk is asked for.
    """

    options = ("features", "zero_based", "bad_lines", "bad_share", "max_line", "pipe")

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any] | None = None, threads: int = 0) -> None:
        self.config = config
        self.schema = dict(schema or {})
        self.threads = threads or max(2, min(len(_cores()), 8))
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
        free: list[kernel.Parsed] = []
        waiting: deque[tuple[_Block, Future[kernel.Parsed]]] = deque()
        with ThreadPoolExecutor(self.threads, thread_name_prefix="svmlight") as pool:
            try:
                for block in _blocks(sources):
                    fits = len(block.text) <= _ROOM and free
                    room = free.pop() if fits else kernel.room_for(max(len(block.text), _ROOM))
                    waiting.append((block, pool.submit(self._parse, block.text, room)))
                    while len(waiting) > 2 * self.threads:
                        yield from self._deliver(waiting, free)
                while waiting:
                    yield from self._deliver(waiting, free)
            finally:
                for _, future in waiting:
                    future.cancel()

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        notes = [*self._notes(), *self.bad.notes()]
        zero_based = self.zero_based if self.zero_based is not None else self.smallest == 0
        first = 0 if zero_based else 1
        if self.zero_based is None:
            found = "an id 0 occurs" if zero_based else "no id 0 occurs"
            notes.insert(0, f"Ids start at {first}: {found} (--zero-based says otherwise).")
        if not zero_based and self.smallest == 0:
            raise InputError(f"{self.places['smallest']}: id 0, but ids start at 1 here; read with --zero-based yes.")
        features = self._features(first)
        schema = {"format": "svmlight", "zero_based": zero_based, "features": features}
        return Summary(features, (), schema, tuple(notes), first)

    def _parse(self, text: Bytes, room: kernel.Parsed) -> kernel.Parsed:
        room.counts[:] = 0
        with np.errstate(over="ignore"):  # words wrap around when the compiler is off
            kernel.parse_block(text, room, self.bad.stop)
        for entry, place in room.hard[: room.counts[kernel.HARD]].tolist():
            array, index = (room.values, entry) if entry >= 0 else (room.targets, -1 - entry)
            array[index] = np.float32(float(_token(text, place)))
        return room

    def _deliver(
        self, waiting: deque[tuple[_Block, Future[kernel.Parsed]]], free: list[kernel.Parsed]
    ) -> Iterator[Chunk]:
        block, future = waiting.popleft()
        parsed = future.result()
        self._report(block, parsed)
        counts = parsed.counts
        rows, entries = int(counts[kernel.ROWS]), int(counts[kernel.ENTRIES])
        self._note_ids(block, parsed)
        self.counts += counts
        chunk = Chunk(
            lengths=parsed.lengths[:rows],
            ids=parsed.ids[:entries],
            values=parsed.values[: entries if counts[kernel.VALUED] else 0],
            targets=parsed.targets[:rows],
            lines=parsed.lines[:rows] + block.line,
            file=block.file,
        )
        if rows:
            yield self._known_only(chunk)
        if len(block.text) <= _ROOM:
            free.append(parsed)

    def _report(self, block: _Block, parsed: kernel.Parsed) -> None:
        errors = int(parsed.counts[kernel.BAD])
        for code, place, line, ident in parsed.errors[:errors].tolist():
            start = _line_start(block.text, place)
            if code == kernel.TWICE:
                place = _second(block.text, start, place, ident)
            where = block.source.place(block.line + line, place - start + 1)
            self.bad.report(f"{where}: {_explain(code, _token(block.text, place), ident)}")
        self.bad.count += max(0, errors - len(parsed.errors))
        self.bad.seen(int(parsed.counts[kernel.ROWS]) + errors)

    def _note_ids(self, block: _Block, parsed: kernel.Parsed) -> None:
        smallest, largest = int(parsed.counts[kernel.SMALLEST]), int(parsed.counts[kernel.LARGEST])
        if smallest < self.smallest:
            self.smallest = smallest
            self.places["smallest"] = _place_of(smallest, block, parsed)
        if largest > self.largest:
            self.largest = largest
            self.places["largest"] = _place_of(largest, block, parsed)

    def _known_only(self, chunk: Chunk) -> Chunk:
        """With a schema: without the ids that it does not know."""
        if "features" not in self.schema or self.config.features:
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
        if self.config.features:
            if needed > self.config.features:
                raise InputError(
                    f"{self.places['largest']}: id {self.largest} lies past the {self.config.features} features"
                    f" that were asked for; set --features {needed} or leave it out."
                )
            return self.config.features
        return int(self.schema.get("features", max(needed, 1)))

    def _notes(self) -> Iterator[str]:
        counts = {name: int(self.counts[getattr(kernel, name)]) for name in ("QIDS", "COMMENTS", "EMPTY", "UNSORTED")}
        if counts["QIDS"]:
            yield f"{counts['QIDS']} qid fields skipped."
        if counts["COMMENTS"] or counts["EMPTY"]:
            yield f"{counts['COMMENTS']} comments and {counts['EMPTY']} blank lines skipped."
        if counts["UNSORTED"]:
            yield f"{counts['UNSORTED']} rows had unsorted ids; they were sorted."
        if self.left_out:
            yield f"{self.left_out} entries left out: their ids lie past the {self.schema['features']} known features."


_ROOM = BLOCK + (1 << 16)  # bytes of text that a room which is used again can take


def _cores() -> Sequence[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 2)


def _blocks(sources: Sequence[Source]) -> Iterator[_Block]:
    for file, source in enumerate(sources):
        for line, text in source.blocks():
            yield _Block(text, file, line, source)


def _line_start(text: Bytes, place: int) -> int:
    return text[:place].tobytes().rfind(b"\n") + 1


def _token(text: Bytes, place: int) -> str:
    """The word at a place, as messages show it."""
    words = text[place : place + 4096].tobytes().split(b"\n", 1)[0].split(None, 1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""


def _second(text: Bytes, start: int, end: int, ident: int) -> int:
    """Place of the second entry with this id in the line from `start` to `end`."""
    line = text[start:end].tobytes()
    at, seen = 0, 0
    for word in line.split():
        at = line.index(word, at)
        name = word.partition(b":")[0]
        seen += name.isdigit() and int(name) == ident and b":" in word
        if seen == 2:
            return start + at
        at += len(word)
    return start


def _place_of(ident: int, block: _Block, parsed: kernel.Parsed) -> str:
    """file:line of the first row of a block that has this id."""
    rows, entries = int(parsed.counts[kernel.ROWS]), int(parsed.counts[kernel.ENTRIES])
    ids: Ids = parsed.ids[:entries]
    ends: Offsets = np.cumsum(parsed.lengths[:rows])
    row = int(np.searchsorted(ends, np.argmax(ids == ident), side="right"))
    return block.source.place(block.line + int(parsed.lines[row]))


def _explain(code: int, token: str, ident: int) -> str:
    """What is wrong, in one clause."""
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in token)
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    if code in (kernel.LABEL, kernel.VALUE, kernel.NOT_FINITE):
        number = token.partition(":")[2] if code == kernel.VALUE or ":" in token else token
        if _overflows(number):
            return f"`{shown}` is not a finite float32 number"
    return {
        kernel.LABEL: f"the label `{shown}` is not a number",
        kernel.NO_LABEL: f"the label is missing: the line begins with `{shown}`",
        kernel.ID: f"the id of `{shown}` is below 0" if token.startswith("-") else f"`{shown}` is not id:value",
        kernel.NO_COLON: f"`{shown}` has no colon; expected id:value",
        kernel.ID_TOO_LARGE: f"the id of `{shown}` is past {2**31 - 1}, the largest possible",
        kernel.VALUE: f"the value of `{shown}` is not a number",
        kernel.TWICE: f"id {ident} stands twice in one row",
    }[code]


def _overflows(text: str) -> bool:
    try:
        with np.errstate(over="ignore"):
            return not np.isfinite(np.float32(float(text)))
    except ValueError:
        return False
