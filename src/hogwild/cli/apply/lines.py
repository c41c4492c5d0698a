"""`hogwild predict MODEL -`: what comes on standard input becomes feeds line by line, so that answers need not wait."""

from __future__ import annotations

import select
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from hogwild.config import FeedConfig, Format
from hogwild.errors import InputError
from hogwild.feeds.io.source import STDIN, Settings, Source, standard_input
from hogwild.feeds.io.streams import compression_of
from hogwild.feeds.io.workspace import drop_workspace, make_workspace, writing
from hogwild.feeds.open import encoder_for, format_of, open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.store import make_feed

_MOST = 1 << 23  # bytes that are answered together
_MAGIC = (b"PAR1", b"ARROW1")
LINES = ("csv", "tsv", "text", "svmlight", "libfm", "libffm", "multislot", "criteo", "fasttext", "jsonl")
TABLES = ("csv", "tsv")
_SOON = 0.05  # seconds


class _Part(Source):
    """Lines of standard input, of which so many came before."""

    before = 0

    def place(self, line: int, column: int = 0) -> str:
        return super().place(line + self.before, column)


def arriving_feeds(config: FeedConfig, schema: Mapping[str, Any]) -> Iterator[Feed]:
    """Standard input as feeds of whole lines, each as soon as it is there; what is not made of lines as one feed."""
    stream = standard_input()
    first = _until_newline(stream)
    plain = not first.startswith(_MAGIC) and not compression_of(first[:6])
    with written(first) as path:
        form = format_of([Source(STDIN, path, config)], config, schema) if plain else ""
    if form not in LINES:
        with written(first, stream) as path:
            yield open_feed(path, replace(config, cache=False), schema=schema)
        return
    config = replace(config, format=cast(Format, form), bad_share=1.0)  # a share of few lines says nothing
    header, before = b"", 0
    for data, more in _arriving(first, stream, partial(_line_end, quoted=form in TABLES)):
        if before and not data.strip():
            before += data.count(b"\n")
            continue
        try:
            feed = _feed(header + data, before - header.count(b"\n"), config, schema)
        except InputError as error:
            if config.bad_lines == "skip" and "no rows" in str(error):  # all of these are skipped
                before += data.count(b"\n")
                continue
            if not before and more and schema.get("header") and data.count(b"\n") == 1:
                header = data  # perhaps only that has come
                before = 1
                continue
            raise
        if not before and feed.lines is not None:
            header = b"".join(data.splitlines(keepends=True)[: int(feed.lines[0]) - 1])
        before += data.count(b"\n")
        yield feed


def _until_newline(stream: BinaryIO) -> bytes:
    found = b""
    while b"\n" not in found and (data := stream.read1(_MOST)):  # type: ignore[attr-defined]
        found += data
    return found


def arriving_sources(config: Settings, lines: bool, enough: Callable[[bytes], bool] = bool) -> Iterator[Source]:
    """Standard input as sources of whole lines or sentences, each as soon as it is there; what is no text as one.

    lines: a source ends with a line, else with an empty one.
    enough: whether what has come will do as the first source; until it does, more is waited for.
    """
    stream = standard_input()
    first = _until_newline(stream)
    if not first or first.startswith(_MAGIC) or compression_of(first[:6]):
        with written(first, stream) as path:
            yield Source(STDIN, path, config)
        return
    before, held = 0, b""
    for data, _ in _arriving(first, stream, partial(_line_end, quoted=False) if lines else _paragraph_end):
        if not before and not enough(held + data):
            held += data
            continue
        if data.strip() or not before:
            with written(held + data) as path:
                yield _part(path, config, before)
        before, held = before + (held + data).count(b"\n"), b""
    if held:
        with written(held) as path:
            yield _part(path, config, 0)


def _arriving(first: bytes, stream: BinaryIO, end_of: Callable[[bytes], int]) -> Iterator[tuple[bytes, bool]]:
    """What has come, in whole pieces, and whether there is more to come. end_of: where the last whole piece ends."""
    rest, took = first, 0.0
    while True:
        end = end_of(rest)
        if end:
            began = time.perf_counter()
            yield rest[:end], True
            rest, took = rest[end:], time.perf_counter() - began
        data = stream.read1(_MOST)  # type: ignore[attr-defined]
        while data and len(rest) + len(data) < _MOST and _more_within(stream, took / 4):
            further = stream.read1(_MOST)  # type: ignore[attr-defined]
            if not further:
                break
            data += further
        if not data:
            break
        rest += data
    if rest:
        yield rest, False


def _paragraph_end(data: bytes) -> int:
    """Where the last empty line ends."""
    return max(data.rfind(empty) + len(empty) if empty in data else 0 for empty in (b"\n\n", b"\n\r\n"))


def _line_end(data: bytes, quoted: bool) -> int:
    """Where the last whole line ends; with `quoted`, none ends inside quotes."""
    end = data.rfind(b"\n") + 1
    while quoted and end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def _more_within(stream: BinaryIO, seconds: float) -> bool:
    """Whether more comes soon: a full pipe is filled again at once, and is answered in larger parts."""
    try:
        return bool(select.select([stream], [], [], min(seconds, _SOON))[0])
    except (OSError, TypeError, ValueError):  # no stream of the system's
        return False


def _feed(data: bytes, before: int, config: FeedConfig, schema: Mapping[str, Any]) -> Feed:
    """Some lines as a feed; before: so many came earlier."""
    with written(data) as path:
        source = _part(path, config, before)
        return make_feed(encoder_for(config.format, config, schema), [source], "", keep=False)


def _part(path: Path, config: Settings, before: int) -> Source:
    source = _Part(STDIN, path, config)
    source.before = before
    return source


@contextmanager
def written(data: bytes, stream: BinaryIO | None = None) -> Iterator[Path]:
    """A file with these bytes, and all that comes after them."""
    workspace = make_workspace("lines")
    try:
        path = workspace / "lines"
        with writing(path), open(path, "wb") as file:
            file.write(data)
            if stream is not None:
                shutil.copyfileobj(stream, file)
        yield path
    finally:
        drop_workspace(workspace)
