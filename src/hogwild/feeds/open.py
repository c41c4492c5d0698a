"""Open files as a feed: choose the encoder, use the cache."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from hogwild.config import FeedConfig, Format
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Paths, Source, open_sources
from hogwild.feeds.io.streams import uncompressed
from hogwild.feeds.objects.values import is_object
from hogwild.feeds.sparse import store
from hogwild.feeds.sparse.encoder import Encoder
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.svmlight import SvmlightEncoder
from hogwild.feeds.storage import cache

BY_SUFFIX = {
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".lsvm": "svmlight",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".tfrecord": "tfrecord", ".tfrecords": "tfrecord",
}
SLOT_TEXT = ("multislot", "criteo", "libffm")
DESCRIBED = ("multislot", "tfrecord")  # formats whose slots a file describes
BY_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_SURE = ("parquet", "arrow", "fasttext", "jsonl")  # what no text looks like


def open_feed(paths: Paths, config: FeedConfig | None = None, schema: Mapping[str, Any] | None = None) -> Feed:
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
    form, config, told = found_format(sources, config, schema)
    encoders = with_columns(_encoders(form, config, schema), config, f"{sources[0].name} is read as {form}")
    exact, known = replace(config, format=cast(Format, form)), dict(schema or {})
    keys = [store.key_of(encoder, sources, exact, known) for encoder in encoders]
    wanted = keys[: 1 if config.indices else None] if config.cache else []
    kept = (cache.load_entry(key, sources, store.map_feed) for key in wanted)
    feed = next((entry for entry in kept if entry is not None), None)
    if feed is None:  # only now, since files that were read before need not be looked at
        chosen = 0
        if len(encoders) > 1:
            from hogwild.feeds.tables.lists import holds_lists  # late: pyarrow is slow to import

            chosen = 0 if holds_lists(sources, form, config) else 1
        feed = store.make_feed(
            encoders[chosen], sources, keys[chosen], config.cache,
            lambda: with_columns(_encoders(form, config, schema), config, "")[chosen],
        )  # fmt: skip
    if schema:  # by which it was read, whatever the reader of this format says more
        feed = replace(feed, schema=known)
    return replace(feed, notes=(*told, *feed.notes))


class Found(NamedTuple):
    """A format, how its files are then read, and what the user should know of that."""

    form: str
    config: FeedConfig
    notes: tuple[str, ...]


def found_format(sources: Sequence[Source], config: FeedConfig, schema: Mapping[str, Any] | None = None) -> Found:
    """The format of all sources, with a description of their slots that lies beside them."""
    beside = description_path(str(sources[0].path))
    found = not schema and not config.slots and config.format in ("auto", *DESCRIBED) and beside.is_file()
    described = replace(config, slots=str(beside)) if found else config
    form = format_of(sources, described, schema)
    found = found and form in DESCRIBED
    config = described if found else config
    if config.slots and not schema and form not in DESCRIBED:
        raise ConfigError(f"{sources[0].name} is read as {form}, but --slots describes {' and '.join(DESCRIBED)} files;"
                          " say which it is with --format, or leave out --slots.")
    return Found(form, config, (f"Slots are described in {beside}.",) if found else ())


def with_columns(encoders: list[Encoder], config: FeedConfig, where: str) -> list[Encoder]:
    """Those of some encoders that know columns, if columns of weights or pairs of them are asked for."""
    weighed = not config.unlabelled and config.weight not in ("", "none")
    pairs = bool(config.interactions)
    for asked, option, what in ((weighed, "weight", "column for weights"), (pairs, "interactions", "columns")):
        able = [encoder for encoder in encoders if not asked or option in getattr(encoder, "options", ())]
        if not able:
            remedy = f"leave out --{option}, or give a table (CSV, Parquet and the like)"
            raise ConfigError(f"{where}, which has no {what}; {remedy}.")
        encoders = able
    return encoders


def description_path(path: str) -> Path:
    """Where a description of the slots of a file is looked for, and written if the file is made.

    >>> description_path("data/clicks.txt.gz").as_posix()
    'data/clicks.slots.toml'
    """
    bare = uncompressed(path)
    return Path(bare.with_suffix(".slots.toml") if bare.name else bare / ".slots.toml")


def encoder_for(form: str, config: FeedConfig, schema: Mapping[str, Any] | None) -> Encoder:
    """The encoder of a format."""
    if form in ("svmlight", "libfm"):  # ids of libfm start at 0
        zero = form == "libfm" and config.zero_based == "auto"
        return SvmlightEncoder(replace(config, zero_based="yes") if zero else config, schema)
    if form in (*SLOT_TEXT, "tfrecord"):
        return _slot_encoder(form, config, schema)
    from hogwild.feeds.texts.lines import TextEncoder, text_only  # late: not everyone needs its kernels

    if form == "fasttext":
        from hogwild.feeds.texts.fasttext import FastTextEncoder

        return FastTextEncoder(config, schema)
    if form == "text" and schema and schema.get("format") == "table" and not text_only(config, schema):
        form = "tsv"  # the model knows more columns
    if form == "text" or (form == "tsv" and text_only(config, schema)):
        return TextEncoder(config, schema)
    from hogwild.feeds.tables.encoder import TableEncoder  # late: pyarrow is slow to import

    return TableEncoder(config, schema, form)


def _encoders(form: str, config: FeedConfig, schema: Mapping[str, Any] | None) -> list[Encoder]:
    """Those that may read such files: of Parquet and Arrow, lists or tables, unless the model knows."""
    if form not in BY_MAGIC.values():
        return [encoder_for(form, config, schema)]
    from hogwild.feeds.tables.lists import FORM, ListEncoder  # late: pyarrow is slow to import

    if schema:
        lists = schema.get("format") == FORM
        return [ListEncoder(config, schema, form) if lists else encoder_for(form, config, schema)]
    return [ListEncoder(config, None, form), encoder_for(form, config, None)]


def _slot_encoder(form: str, config: FeedConfig, schema: Mapping[str, Any] | None) -> Encoder:
    """Encoders of files with slots. Late imports: not everyone needs their kernels."""
    if form == "tfrecord":
        from hogwild.feeds.tfrecord.read import TfrecordEncoder

        return TfrecordEncoder(config, schema)
    if form == "multislot":
        from hogwild.feeds.slots.multislot import MultiSlotEncoder

        return MultiSlotEncoder(config, schema)
    if form == "criteo":
        from hogwild.feeds.slots.criteo import CriteoEncoder

        return CriteoEncoder(config, schema)
    from hogwild.feeds.slots.libffm import LibffmEncoder

    return LibffmEncoder(config, schema)


def format_of(sources: Sequence[Source], config: FeedConfig, schema: Mapping[str, Any] | None = None) -> str:
    """The format of all sources: what the user says, else by name, else by content, else what the model knows."""
    if config.format != "auto":
        return config.format
    found = {_format_of(source, config, schema or {}): source for source in sources}
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise InputError(f"{first.name} looks like {one}, but {second.name} like {other}; read one format at a time, or"
                         " say which with --format.")
    return next(iter(found))


def _format_of(source: Source, config: FeedConfig, schema: Mapping[str, Any]) -> str:
    named, head = BY_SUFFIX.get(uncompressed(source.name).suffix.lower(), ""), b""
    if not named or named == "tsv":
        head = source.head()
    if named == "tsv" and not (config.numeric or config.categorical) and _is_prose(_lines(head)):
        return "text"
    if not named and _is_record(head):
        return "tfrecord"
    if schema.get("format") in SLOT_TEXT and named in ("", "csv", "tsv", "svmlight"):
        return str(schema["format"])  # a line without a label may look like something else
    if not named and config.slots:
        return "multislot"
    labelled = not named and any(is_labelled(line, config.label_prefix) for line in _lines(head))
    found = named or ("fasttext" if labelled else _by_content(head))
    if named or schema.get("format") != "table":
        return found or "svmlight"
    from hogwild.feeds.texts.lines import text_only  # late: not everyone needs its kernels

    if not text_only(config, schema):
        return found or "csv"
    # Plain text may have commas and the like: it is a table only if its first line names the column.
    titles = _lines(head)[:1] if schema.get("header") else []
    titled = any(schema["text"].encode() in _fields(line) for line in titles)
    return found or "csv" if titled or found in _SURE else "text"


def _fields(line: bytes) -> list[bytes]:
    """The fields of a header, whatever separates them."""
    return [field.strip(b' "') for field in re.split(rb"[,;|\t\r]", line)]


def is_labelled(line: bytes, prefix: str) -> bool:
    """Whether a line begins as fastText's do: with a label."""
    return line.lstrip().startswith(prefix.encode())


def _by_content(head: bytes) -> str:
    """The format of a file that begins with these bytes.

    jsonl when the first line begins an object; criteo when the first ones have its 40 fields; libffm and svmlight
    when the first rows have the form `label field:id:value` or `label id:value`; with a tab in every line, a table if
    their numbers are equal and more than one, else labelled text; a table when the first line has commas or the like;
    "" for none.
    """
    for magic, form in BY_MAGIC.items():
        if head.startswith(magic):
            return form
    lines = _lines(head)
    if lines and is_object(lines[0]):
        return "jsonl"
    if lines and all(_is_click(line) for line in lines[:3]):
        return "criteo"
    rows = [words for line in lines if (words := line.partition(b"#")[0].split())]
    if rows and all(_is_row(words, colons=2) for words in rows[:3]) and any(len(words) > 1 for words in rows[:3]):
        return "libffm"
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


def _is_row(words: list[bytes], colons: int = 1) -> bool:
    """Whether words are a label and `id:value`, or with two colons `field:id:value`."""
    try:
        float(words[0])
    except ValueError:
        return False
    names = [word.split(b":") for word in words[1:3]]
    whole = [parts for parts in names if len(parts) == colons + 1]
    return len(whole) == len(names) and all(
        parts[0] == b"qid" or all(part.isdigit() for part in parts[:-1]) for parts in whole
    )


def _is_record(head: bytes) -> bool:
    """Whether a file begins with a record of TFRecord files: a length, and the masked CRC of it."""
    if len(head) < 16:
        return False
    from hogwild.kernels.ids.crc32c import crc_of, masked  # late: few need it

    return int.from_bytes(head[8:12], "little") == masked(crc_of(head[:8]))


def _is_click(line: bytes) -> bool:
    """Whether a line has the fields of Criteo's click logs."""
    fields = line.rstrip(b"\r").split(b"\t")
    if len(fields) != 40 or fields[0] not in (b"0", b"1"):
        return False
    hexadecimal = all(len(field) in (0, 8) and not field.strip(b"0123456789abcdef") for field in fields[14:])
    counts = [field.removeprefix(b"-") for field in fields[1:14]]
    return hexadecimal and all(not count or count.isdigit() for count in counts)
