"""Open files as a feed: choose the encoder, use the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, cast

from hogwild.config import FeedConfig, Format
from hogwild.errors import InputError
from hogwild.feeds import cache
from hogwild.feeds.chunk import Encoder
from hogwild.feeds.feed import Feed
from hogwild.feeds.source import Paths, Source, open_sources
from hogwild.feeds.streams import SUFFIXES
from hogwild.feeds.svmlight import SvmlightEncoder

BY_SUFFIX = {
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".lsvm": "svmlight",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}
BY_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def open_feed(
    paths: Paths,
    config: FeedConfig | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Feed:
    """Open files as samples: encoded once into memory-mapped arrays, found again on the next run.

    Parameters
    ----------
    paths
        Files, globs, or `-` for standard input; all of one format.
    config
        How the files are read.
    schema
        `Feed.schema` of the feed that a model was trained on, so that the same columns and words get the same ids.

    Returns
    -------
    Feed
        Ids are ranked by frequency: `Feed.original` gives the features' own.

    Examples
    --------
    >>> feed = open_feed("train.svm.gz")                                        # doctest: +SKIP
    >>> feed = open_feed(["part-*.csv"], FeedConfig(label="clicked"))           # doctest: +SKIP
    """
    config = config or FeedConfig()
    sources = open_sources(paths, config)
    form = format_of(sources, config, schema)
    encoder = encoder_for(form, config, schema)
    key = cache.key_of(encoder, sources, replace(config, format=cast(Format, form)), dict(schema or {}))
    if config.cache:
        feed = cache.load(key, sources)
        if feed is not None:
            return feed
    return cache.make(encoder, sources, key, keep=config.cache)


def encoder_for(form: str, config: FeedConfig, schema: Mapping[str, Any] | None) -> Encoder:
    """The encoder of a format."""
    if form == "svmlight":
        return SvmlightEncoder(config, schema)
    from hogwild.feeds.text import TextEncoder, text_only  # late: not everyone needs its kernels

    if form == "text" and schema and schema.get("format") == "table" and not text_only(config, schema):
        form = "tsv"  # the model knows more columns
    if form == "text" or (form == "tsv" and text_only(config, schema)):
        return TextEncoder(config, schema)
    from hogwild.feeds.table import TableEncoder  # late: pyarrow is slow to import

    return TableEncoder(config, schema, form)


def format_of(sources: Sequence[Source], config: FeedConfig, schema: Mapping[str, Any] | None = None) -> str:
    """The format of all sources: what the user says, else by name, else by content, else what the model knows."""
    if config.format != "auto":
        return config.format
    found = {_format_of(source, config, schema or {}): source for source in sources}
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise InputError(
            f"{first.name} looks like {one}, but {second.name} like {other}; read one format at a time,"
            " or say which with --format."
        )
    return next(iter(found))


def _format_of(source: Source, config: FeedConfig, schema: Mapping[str, Any]) -> str:
    named, head = _by_name(source), b""
    if not named or named == "tsv":
        head = source.head()
    if named == "tsv" and not (config.numeric or config.categorical) and _is_prose(_lines(head)):
        return "text"
    found = named or _by_content(head)
    if named or schema.get("format") != "table":
        return found or "svmlight"
    from hogwild.feeds.text import text_only  # late: not everyone needs its kernels

    if not text_only(config, schema):
        return found or "csv"
    # Plain text may have commas and the like: it is a table only if its first line names the column.
    titles = _lines(head)[:1] if schema.get("header") else []
    return found if found in BY_MAGIC.values() or any(schema["text"].encode() in line for line in titles) else "text"


def _by_name(source: Source) -> str:
    path = PurePath(source.name)
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return BY_SUFFIX.get(path.suffix.lower(), "")


def _by_content(head: bytes) -> str:
    """The format of a file that begins with these bytes.

    svmlight when the first rows have the form `label id:value`; with a tab in every line, a table if their numbers are
    equal and more than one, else labelled text; a table when the first line has commas or the like; "" for none.
    """
    for magic, form in BY_MAGIC.items():
        if head.startswith(magic):
            return form
    lines = _lines(head)
    rows = [words for line in lines if (words := line.partition(b"#")[0].split())]
    if rows and all(_is_row(words) for words in rows[:3]):
        return "svmlight"
    tabs = {line.count(b"\t") for line in lines}
    if tabs and min(tabs) > 0:
        return "tsv" if len(tabs) == 1 and tabs != {1} else "text"
    return "csv" if lines and any(mark in lines[0] for mark in (b",", b";", b"|")) else ""


def _lines(head: bytes) -> list[bytes]:
    whole = head[: head.rfind(b"\n") + 1] or head  # the last line may be cut off
    return [line for line in whole.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()][:20]


def _is_prose(lines: list[bytes]) -> bool:
    """Whether lines have two fields, and the second mostly several words: `label<TAB>text`."""
    several = sum(b" " in line.partition(b"\t")[2].strip() for line in lines)
    return all(line.count(b"\t") == 1 for line in lines) and 2 * several > len(lines)


def _is_row(words: list[bytes]) -> bool:
    try:
        float(words[0])
    except ValueError:
        return False
    names = [word.partition(b":") for word in words[1:3]]
    return all(colon and (name == b"qid" or name.isdigit()) for name, colon, _ in names)
