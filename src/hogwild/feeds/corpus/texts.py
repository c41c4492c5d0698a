"""Texts of documents, one after another, with their tags: lines of a file, or rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hogwild.config import DocumentConfig, FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.blocks import blocks_of, check_utf8, head_of
from hogwild.feeds.io.source import Source
from hogwild.feeds.io.streams import uncompressed
from hogwild.messages import shown

_BY_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow",
    ".feather": "arrow", ".ipc": "arrow", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
_BY_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_TEXT = "text"  # the usual name of the column


def form_of(sources: Sequence[Source], config: DocumentConfig) -> str:
    """What all sources are: lines, or tables of one format."""
    if config.format != "auto":
        return config.format
    found = {_form_of(source): source for source in sources}
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise InputError(f"{first.name} is {one}, but {second.name} is {other}; read one format at a time, or say which"
                         " with --format.")  # fmt: skip
    form = next(iter(found))
    for name in ("text", "id"):
        if form == "lines" and getattr(config, name):
            raise ConfigError(f"--{name} is a column of a table, and {sources[0].name} is read as lines, a document"
                              " each; say with --format what it is, or leave it out.")  # fmt: skip
    return form


def _form_of(source: Source) -> str:
    head = source.head(8)
    magic = next((form for sign, form in _BY_MAGIC.items() if head.startswith(sign)), "")
    return magic or _BY_SUFFIX.get(uncompressed(source.name).suffix.lower(), "lines")


class FileTexts:
    """The texts of files, as often as they are iterated over. tags: of those read so far; none where they are numbers.

    Lines are documents, empty ones too, so that the number of a line is that of its document. Of a table a malformed
    row is an error: skipped, it would change the numbers of those behind it. like: has the columns of training, which
    are those of a table where the configuration names none.
    """

    def __init__(self, sources: Sequence[Source], config: DocumentConfig, like: Mapping[str, Any]) -> None:
        self.sources, self.config = sources, config
        self.form = form_of(sources, config)
        given = {"text": config.text, "id": config.id}
        usual = {name: str(like.get(name, "")) for name in given} if self.form != "lines" else {}
        self.columns = {name: column or usual.get(name, "") for name, column in given.items()}
        self._asked = bool(config.id)  # else tags are as in training, if there are any
        self.tags: list[str] = []
        self.replaced = 0

    def __iter__(self) -> Iterator[str]:
        self.tags, self.replaced = [], 0
        for source in self.sources:
            yield from self._lines(source) if self.form == "lines" else self._rows(source)

    @property
    def _replace(self) -> bool:
        return self.config.invalid_utf8 == "replace"

    def _lines(self, source: Source) -> Iterator[str]:
        for block in blocks_of(source, 0, 0):
            text, replaced = check_utf8(block, self._replace)
            self.replaced += replaced
            yield from text.tobytes().decode().removesuffix("\n").split("\n")

    def _rows(self, source: Source) -> Iterator[str]:
        for lines, columns in self._frames(source):
            texts, *tags = (_strings(array, f"{source.name}: column `{shown(name)}`") for name, array in columns)
            for each in tags:
                self._take_tags(source, lines, each)
            yield from ("" if text is None else text for text in texts)

    def _take_tags(self, source: Source, lines: Any, tags: list[str | None]) -> None:
        absent = next((k for k, tag in enumerate(tags) if not tag), None)
        if absent is not None:
            raise InputError(f"{source.place(int(lines[absent]))}: the document has no tag in the column of --id; give"
                             " it one, or leave --id out: then rows are numbered.")  # fmt: skip
        self.tags += [str(tag) for tag in tags]

    def _frames(self, source: Source) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
        """Runs of rows: their lines, and the columns of texts and, if it is asked for, of tags."""
        if self.form in ("parquet", "arrow"):
            return self._arrow(source)
        return self._objects(source) if self.form == "jsonl" else self._delimited(source)

    def _chosen(self, names: Sequence[str], where: str) -> list[str]:
        """The names of the columns of texts and of tags."""
        from hogwild.feeds.tables.columns import find_column, list_columns

        wanted = self.columns["text"] or next((name for name in names if name.lower() == _TEXT), "")
        if not wanted and len(names) > 1:
            raise ConfigError(f"{where}: which column holds the texts? Name it with --text; {list_columns(names)}.")
        found = [find_column(wanted or names[0], names, "--text", where)]
        if self._asked or self.columns["id"] in names:
            found.append(find_column(self.columns["id"], names, "--id", where))
        return found

    def _arrow(self, source: Source) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
        from hogwild.feeds.tables.frames import ArrowFile  # late: pyarrow is slow to import

        file = ArrowFile(source, self.form)
        chosen = self._chosen(file.names, source.name)
        for frame in file.frames(tuple(dict.fromkeys(chosen)), 0):
            yield frame.lines, [(name, frame.arrays[name]) for name in chosen]

    def _delimited(self, source: Source) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
        from hogwild.feeds.tables import columns, delimited  # late: pyarrow is slow to import
        from hogwild.feeds.tables.fields import FieldRules

        head = head_of(source, self._replace)
        dialect = delimited.sniff(head, self.form)
        rows = delimited.sample_rows(head, dialect)
        if not rows:
            return
        asked = FeedConfig(text=self.columns["text"], label=self.columns["id"])
        header = columns.has_header(rows[0], rows[1:], asked, None, FieldRules())
        names = columns.names_of(rows[0]) if header else columns.numbers_of(len(rows[0]))
        chosen = self._chosen(names, source.name)
        places = {name: names.index(name) for name in chosen}
        shape = delimited.Shape(dialect, len(names), places, (), chosen)
        skip = delimited.header_lines(head, dialect) if header else 0
        for block, records in delimited.whole_records(blocks_of(source, 0, skip), dialect):
            frame = delimited.read_block(block, shape, self._replace, records)
            self._sound(source, frame.wrong)
            self.replaced += frame.replaced
            yield frame.lines, [(name, frame.arrays[name]) for name in chosen]

    def _objects(self, source: Source) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
        from hogwild.feeds.objects.read import Wanted, read_columns  # late: pyarrow is slow to import
        from hogwild.feeds.objects.values import NUMBER, TEXT, WHOLE, fields_of, trouble

        head = [(k, line) for k, line in enumerate(head_of(source, self._replace).split("\n"), 1) if line.strip()]
        fields, objects = fields_of(iter(head), frozenset())
        if head and not objects:
            raise InputError(f"{source.place(head[0][0])}: not one of the first lines is a JSON object; write one a"
                             " line, as `jq -c` does.")  # fmt: skip
        if not fields:
            return
        chosen = self._chosen(tuple(fields), source.name)
        for name in chosen:
            if why := trouble(name, fields[name], source.name):
                raise InputError(f"{source.name}: field `{shown(name)}` {why}.")
        kinds = {name: fields[name].kind if fields[name].kind in (WHOLE, NUMBER) else TEXT for name in chosen}
        for block in blocks_of(source, 0, 0):
            text, replaced = check_utf8(block, self._replace)
            self.replaced += replaced
            found = read_columns(text, Wanted(kinds, frozenset()))
            self._sound(source, {block.line + line: problem for line, problem in found.wrong.items()})
            yield found.lines + block.line, [(name, found.arrays[name]) for name in chosen]

    def _sound(self, source: Source, wrong: Mapping[int, str]) -> None:
        if wrong:
            line = min(wrong)
            raise InputError(f"{source.place(line)}: {wrong[line]}; correct the line.")


def _strings(array: Any, where: str) -> list[str | None]:
    """The values of a column as texts; None for those that are missing."""
    import pyarrow as pa

    try:
        found: list[str | None] = array.cast(pa.large_string()).to_pylist()
    except (pa.ArrowException, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{where} cannot be read as text ({reason}); make it text.") from None
    return found
