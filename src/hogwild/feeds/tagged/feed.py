"""A tagging feed on disk: chains of feature ids, names of features and tags, and the columns as they were read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Chains
from hogwild.errors import InputError
from hogwild.feeds.storage.arrayfiles import ArrayWriter, Damaged, map_arrays, read_header
from hogwild.feeds.tagged.featureplan import cut_text
from hogwild.feeds.tagged.taggedtext import TaggedText, TextColumn
from hogwild.feeds.tagged.tagging import TaggingFeed


def write_tagging(directory: Path, feed: TaggingFeed, sources: Sequence[str]) -> None:
    """Write a feed that was read from text. All is on disk when this returns."""
    writer = ArrayWriter(directory)
    try:
        for name, array in feed.samples._asdict().items():
            writer.write(name, array)
        writer.write("counts", feed.counts)
        _write_strings(writer, "words", "letters", feed.names)
        for column in _columns_of(feed.text):
            writer.write("codes", column.codes)
            _write_strings(writer, "columns", "column_letters", column.values)
        writer.seal(
            {
                "schema": feed.schema,
                "tag_names": feed.tags,
                "strange": feed.strange,
                "unknown": feed.unknown,
                "text": _described(feed.text),
                "notes": feed.notes,
                "sources": list(sources),
            }
        )
    finally:
        writer.close()


def _columns_of(text: TaggedText | None) -> tuple[TextColumn, ...]:
    if text is None:
        return ()
    return text.columns if text.tags is None else (*text.columns, text.tags)


def _described(text: TaggedText | None) -> dict[str, Any] | None:
    if text is None:
        return None
    return {
        "columns": [[column.name, len(column.values)] for column in _columns_of(text)],
        "tagged": text.tags is not None,
        "notes": text.notes,
        "schema": text.schema,
    }


def _write_strings(writer: ArrayWriter, name: str, letters: str, strings: Sequence[str]) -> None:
    try:
        writer.write(name, np.frombuffer("".join(strings).encode(), np.uint8))
    except UnicodeEncodeError as error:
        raise InputError(f"a value holds half a surrogate pair ({error.reason}); it is no text.") from None
    writer.write(letters, np.fromiter(map(len, strings), np.int32, len(strings)))


def map_tagging(directory: Path, names: Sequence[str], fingerprint: str) -> TaggingFeed:
    """Map a feed. `names` are those of its sources as they are called now. Raises Damaged."""
    header = read_header(directory)
    try:
        arrays = map_arrays(directory, header)
        samples = Chains(arrays["offsets"], arrays["starts"], arrays["ids"], arrays["tags"])
        source = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names) or "sentences"
        return TaggingFeed(
            samples,
            _strings(arrays["words"], arrays["letters"]),
            arrays["counts"],
            tuple(header["tag_names"]),
            header["schema"],
            header["strange"],
            int(header["unknown"]),
            _text(arrays, header["text"], source),
            tuple(header["notes"]),
            source,
            fingerprint,
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Damaged(str(error)) from None


def _strings(data: npt.NDArray[Any], letters: npt.NDArray[Any]) -> tuple[str, ...]:
    text = data.tobytes().decode()
    if len(letters) and (int(letters.min()) < 0 or int(letters.sum()) != len(text)):
        raise Damaged("its names do not fit together")
    return cut_text(text, letters.tolist())


def _text(arrays: dict[str, Any], described: dict[str, Any] | None, source: str) -> TaggedText | None:
    """The columns as they were read; what would write the sentences again is not kept."""
    if described is None:
        return None
    tokens = len(arrays["tags"])
    values = _strings(arrays["columns"], arrays["column_letters"])
    columns, first = [], 0
    for place, (name, size) in enumerate(described["columns"]):
        codes = arrays["codes"][place * tokens : (place + 1) * tokens]
        if len(codes) != tokens or int(codes.min()) < 0 or int(codes.max()) >= size or first + size > len(values):
            raise Damaged("its columns do not fit together")
        columns.append(TextColumn(name, codes, values[first : first + size]))
        first += size
    tags = columns.pop() if described["tagged"] else None
    notes, schema = tuple(described["notes"]), described["schema"]
    return TaggedText(tuple(columns), tags, arrays["offsets"], notes, source, schema)
