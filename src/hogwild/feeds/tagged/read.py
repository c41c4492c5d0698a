"""Read files of tagged text: choose the format, take all files, put the columns together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hogwild.arrays import Offsets
from hogwild.config import TaggingConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.io.blocks import head_of
from hogwild.feeds.io.source import Paths, Source, open_sources
from hogwild.feeds.io.streams import uncompressed
from hogwild.feeds.storage.arrayfiles import title_of
from hogwild.feeds.tagged.columns import FIELDS, Asked, ColumnPlan
from hogwild.feeds.tagged.conll import ColumnsReader, layout_of
from hogwild.feeds.tagged.jsonl import JsonReader
from hogwild.feeds.tagged.schemes import convert_codes, kind_of, only_chunks, parts_of, scheme_named
from hogwild.feeds.tagged.segmented import SegmentedReader, TokensReader
from hogwild.feeds.tagged.text import Gathering, Origin, TaggedText, TextColumn
from hogwild.messages import shown

BY_SUFFIX = {".conllu": "conllu", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl", ".conll": "conll"}
CALLED = {"conll": "columns", "conllu": "CoNLL-U", "segmented": "segmented text", "jsonl": "JSON lines",
          "tokens": "lines of tokens"}
_FEW = 4           # columns; lines of segmented text have no fewer words on an average
_MOST = 0.5        # share of lines with the same number of columns, from which on they are columns
_LONG = 1 << 19    # characters of a line that is cut off


class Reader(Protocol):
    """What reads files of one format, one after the other."""

    plan: Any

    def read(self, source: Source) -> None:
        """Take the sentences of a file."""

    def origin(self, columns: tuple[TextColumn, ...]) -> Origin:
        """What the sentences are written with again."""

    def notes(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """What to tell the user."""


def read_tagged(
    paths: Paths,
    config: TaggingConfig | None = None,
    *,
    schema: Mapping[str, Any] | None = None,
    with_tags: bool = True,
) -> TaggedText:
    """Read sentences with their tags: CoNLL columns, CoNLL-U, segmented text or JSON lines.

    Parameters
    ----------
    paths
        Files, compressed or not, globs, or `-` for standard input; all of one format, with the same columns.
    config
        How the files are read.
    schema
        `TaggedText.schema` of the text that a model was trained on: its format, its columns and that of its tags.
        What `config` says of these goes before it.
    with_tags
        False: for prediction; the files may have tags or not, and `TaggedText.tags` is None.

    Examples
    --------
    >>> text = read_tagged("train.txt", TaggingConfig(columns=("w", "pos", "tag")))         # doctest: +SKIP
    """
    config = config or TaggingConfig()
    return read_sources(open_sources(paths, config), config, schema, with_tags)


def read_sources(
    sources: Sequence[Source], config: TaggingConfig, schema: Mapping[str, Any] | None = None, with_tags: bool = True
) -> TaggedText:
    """The same for sources that are open already."""
    form, guessed = format_of(sources, config, schema)
    known = ColumnPlan.known(schema) if schema else None
    same = known if schema and schema.get("format") == form else None
    asked = Asked(config, with_tags, same, tuple(known.features()) if known else ())
    gathering = Gathering(config)
    reader = _reader_of(form, gathering, asked)
    without = [source.name for source in sources if not _take(reader, gathering, source)]
    name = title_of([source.name for source in sources], "sentences")
    notes = gathering.notes()
    plan = reader.plan
    if not gathering.sentences or plan is None:
        raise InputError(f"{name}: no sentences; is the file empty, or is this the right --format?")
    if with_tags and plan.tag < 0:
        raise InputError(f"{name}: which column holds the tags is not known; say so with --tag-column.")
    if without:
        notes.append(f"No sentence in {', '.join(without)}.")
    columns = gathering.columns(plan.names)
    notes += reader.notes(columns)
    if guessed and form != "conll":  # columns are said anyway
        notes.append(f"Read as {CALLED[form]}, to judge by the first lines (--format says otherwise).")
    scheme, offsets = _scheme_of(config, schema or {}), gathering.offsets()
    chunks = _chunks_of(config, schema or {})
    tags = _in_scheme(_only(columns[plan.tag], chunks, name, bool(schema)), offsets, scheme) if with_tags else None
    told = {name: value for name, value in (("scheme", scheme), ("chunks", chunks)) if value}
    return TaggedText(
        columns=tuple(columns[place] for place in asked.places(plan, name)),
        tags=tags,
        offsets=offsets,
        notes=tuple(notes),
        source=name,
        schema=dict(schema) if schema else {**plan.schema(form), **told},
        origin=reader.origin(columns),
    )


def _scheme_of(config: TaggingConfig, schema: Mapping[str, Any]) -> str:
    """The scheme that tags are changed into: as in the text of a model, else as the user says; empty: none."""
    try:
        wanted = schema.get("scheme", "same") if schema else config.scheme
        return "" if wanted == "same" else scheme_named(wanted)
    except (ConfigError, AttributeError):
        raise ModelError("what the model says of the scheme of its tags is damaged; copy the model again.") from None


def _chunks_of(config: TaggingConfig, schema: Mapping[str, Any]) -> list[str]:
    """The types of chunks that are kept: as in the text of a model, else as the user says; none: all."""
    wanted = schema.get("chunks", []) if schema else list(config.chunks)
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise ModelError("what the model says of the chunks that it knows is damaged; copy the model again.")
    return wanted


def _only(column: TextColumn, chunks: Sequence[str], source: str, known: bool) -> TextColumn:
    """The tags with these chunks alone. known: it is text for a model, which may have none of them."""
    if not chunks:
        return column
    there = parts_of(column.values).names if kind_of(column.values) == "chunks" else ()
    missing = [name for name in chunks if name not in there]
    if missing and not known:
        told = f"its types are {', '.join(map(shown, there[:8]))}" if there else "its tags mark no chunks with types"
        raise InputError(f"{source}: no chunk of type {shown(missing[0])}; {told}. --chunks names some of them.")
    return TextColumn(column.name, *only_chunks(column.codes, column.values, chunks))


def _in_scheme(column: TextColumn, offsets: Offsets, scheme: str) -> TextColumn:
    if not scheme:
        return column
    codes, names = convert_codes(offsets, column.codes, column.values, scheme_named(scheme))
    return TextColumn(column.name, codes, names)


def _reader_of(form: str, gathering: Gathering, asked: Asked) -> Reader:
    if form in ("segmented", "tokens"):
        return (SegmentedReader if form == "segmented" else TokensReader)(gathering, asked)
    return JsonReader(gathering, asked) if form == "jsonl" else ColumnsReader(gathering, asked, form)


def _take(reader: Reader, gathering: Gathering, source: Source) -> bool:
    """Read a file; whether it had a sentence."""
    before = gathering.sentences + gathering.bad.count
    reader.read(source)
    return gathering.sentences + gathering.bad.count > before


def format_of(sources: Sequence[Source], config: TaggingConfig, schema: Mapping[str, Any] | None) -> tuple[str, bool]:
    """The format of all sources, and whether it is a guess: as the user says, else the model, the name, the content."""
    if config.format != "auto":
        return config.format, False
    if schema:
        form = schema.get("format")
        if form not in CALLED:
            raise InputError("the model was not trained on tagged text; give data of the kind that it knows.")
        return str(form), False
    named = {source.name: BY_SUFFIX.get(uncompressed(source.name).suffix.lower(), "") for source in sources}
    found = {named[source.name] or _by_content(source, config): source.name for source in reversed(sources)}
    found.pop("", None)
    if len(found) > 1:
        (other, second), (one, first) = list(found.items())[-2:]
        raise InputError(f"{first} looks like {CALLED[one]}, but {second} like {CALLED[other]}; read one format at a"
                         " time, or say which with --format.")
    return next(iter(found), "conll"), not all(named.values())


def _by_content(source: Source, config: TaggingConfig) -> str:
    """The format of a file that begins so; columns when in doubt, "" when there is nothing in it."""
    head = head_of(source, config.invalid_utf8 == "replace")
    first = head.lstrip().partition("\n")[0]
    if first.startswith("{") and _is_json(first):
        return "jsonl"
    layout = layout_of(head, source.name)
    if not layout.columns:
        return ""
    if layout.tabs:
        plain = next(line for line in head.split("\n") if line.strip() and not line.startswith("#"))
        numbered = plain.partition("\t")[0].isdecimal()
        return "conllu" if layout.columns == len(FIELDS) and numbered else "conll"
    # Sentences differ in their numbers of words; lines of columns do not.
    differ = layout.share < _MOST and layout.mean >= _FEW
    return "segmented" if differ and not (config.columns or config.tag_column) else "conll"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return len(line) >= _LONG  # a part of a very long line
    return True
