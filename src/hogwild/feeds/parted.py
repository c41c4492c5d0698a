"""Rows of files that several processes read, each a part: one schema, one ranking of ids, the rows of each part.

First all files are gone through once, for what is known only at their end: which columns, words and labels there are,
and how numbers are scaled. Then each part is encoded by that, and its ids are ranked by how often all parts have them.
The rows of all parts one after another are those that `open_feed` gives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.config import FeedConfig, Format
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.parts import TextPart, check_rereadable, source_of
from hogwild.feeds.io.source import Paths, open_sources
from hogwild.feeds.open import encoder_for, found_format, with_columns
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.store import FeedWriter, map_feed
from hogwild.feeds.storage.ranking import Frequencies
from hogwild.messages import counted

FORMATS = ("svmlight", "libfm", "libffm", "criteo", "multislot", "csv", "tsv", "text", "fasttext", "jsonl")
Sets = tuple[tuple[int, ...], ...]


class WholeError(ConfigError):
    """Files that can only be read as a whole, by one process."""


class Learned(NamedTuple):
    """What is known of all files together; each field as that of a Feed. config: with the format that was found;
    weight: what the weights of rows are multiplied by."""

    config: FeedConfig
    features: int
    labels: tuple[str, ...]
    schema: dict[str, Any]
    notes: tuple[str, ...]
    weight: float


def check_lines(paths: Paths, config: FeedConfig, parts: int) -> None:
    """Raise WholeError for files that cannot be cut at the ends of lines into so many parts."""
    try:
        check_rereadable(paths)
    except InputError as error:
        raise WholeError(str(error)) from None
    sources = open_sources(paths, config)
    form = found_format(sources, config).form
    if len(sources) < parts and not any(source.plain() for source in sources):
        raise WholeError(f"{counted(len(sources), 'file')} that cannot be cut (compressed, or read by --pipe).")
    if form not in FORMATS:
        raise WholeError(f"files of the format {form} are not cut at the ends of lines.")


def learn(paths: Paths, config: FeedConfig, threads: int = 0) -> Learned:
    """Go through all files once; nothing of their rows is kept."""
    sources = open_sources(paths, config)
    form, config, notes = found_format(sources, config)
    encoder = encoder_for(form, config, None)
    (encoder,) = with_columns([encoder], config, f"{sources[0].name} is read as {form}")
    encoder.threads = threads  # type: ignore[attr-defined]  # those of all these formats have it
    rows = sum(len(chunk.targets) for chunk in encoder.chunks(sources))
    if not rows:
        names = ", ".join(source.name for source in sources)
        raise InputError(f"{names}: no rows; is the file empty, or is this the right --format?")
    found = encoder.summary()
    for source in sources:
        source.check_unchanged()
    schema = json.loads(json.dumps(found.schema, ensure_ascii=False))  # as a feed has it that was on disk
    exact = replace(config, format=cast(Format, form))
    return Learned(exact, found.features, tuple(found.labels), schema, (*notes, *found.notes), found.weight)


class Outline(NamedTuple):
    """What a process that has no rows knows of a part: the number of features, the label and the weight of each row,
    and the labels of each target where rows have several. valued: whether features have values other than 1."""

    lengths: Offsets
    targets: Floats
    importance: Floats
    sets: Sets
    valued: bool
    original: Ids


class EncodedPart:
    """The rows of a part, in a directory. counts: how often it has each id, by which the ids of all are ranked."""

    def __init__(self, parts: Sequence[TextPart], learned: Learned, directory: Path, threads: int = 0) -> None:
        # Malformed lines were judged when all files were gone through; here they may all be in one part.
        config = replace(learned.config, bad_share=1.0)
        self._sources = [source_of(part, config) for part in parts]
        encoder = encoder_for(config.format, config, learned.schema)
        encoder.threads = threads  # type: ignore[attr-defined]
        self._directory, self._writer, self._learned = directory, FeedWriter(directory), learned
        self._writer.lasting = False
        try:
            for chunk in encoder.chunks(self._sources):
                self._writer.add(chunk)
        except InputError:  # which the whole did not have
            names = ", ".join(dict.fromkeys(part.name for part in parts))
            raise WholeError(f"{names}: a record goes on across the cut of two parts (line ends in quotes).") from None
        self._summary = replace(encoder.summary(), weight=learned.weight, notes=())
        for source in self._sources:
            source.check_unchanged()
        self.counts: Offsets = self._writer.seen.counts.copy()
        digest = hashlib.sha256(self.counts.data)
        digest.update(repr(self._writer.sizes).encode())
        self.digest = digest.hexdigest()
        self.names = tuple(
            f"{source.name} from byte {source.first:,}" if source.first else source.name for source in self._sources
        )

    def finish(self, counts: Offsets) -> Outline:
        """Rank the ids by how often all parts have each; the directory is then one that `part_in` opens."""
        seen = Frequencies()
        seen.add_counts(counts)
        with self._writer as writer:
            writer.finish(self._summary, self._sources, seen)
        feed = part_in(self._directory, self.names, self._learned)
        samples = cast(Any, feed.samples)
        ends = np.array(samples.targets), np.array(samples.importance)
        assert feed.original is not None
        return Outline(np.diff(samples.offsets), *ends, feed.sets, hasattr(samples, "values"), np.array(feed.original))


def part_in(directory: Path, names: Sequence[str], learned: Learned) -> Feed:
    """The rows of a part, in the directory of the process that encoded them; names: what messages call its files."""
    return replace(map_feed(directory, names, ""), schema=learned.schema)
