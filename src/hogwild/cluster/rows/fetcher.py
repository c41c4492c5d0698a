"""A fetcher of rows: the process beside a node that encodes its part of the files, for the node to map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Offsets
from hogwild.cluster.parted import Fetcher, PartSource
from hogwild.config import FeedConfig
from hogwild.feeds.io.parts import Cut, TextPart, cut_files
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.io.workspace import make_workspace
from hogwild.feeds.parted import EncodedPart, Learned, Outline, check_lines, learn, part_in
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.storage.arrayfiles import title_of


class RowSource(PartSource):
    """Where a node finds its part: the directory of its fetcher, on the same machine."""

    def __init__(self, path: str, names: tuple[str, ...], learned: Learned) -> None:
        self._path, self._names, self._learned = path, names, learned

    def feed(self) -> Feed:
        """The rows of the part."""
        return part_in(Path(self._path), self._names, self._learned)


class PartCount(NamedTuple):
    """How often a part has each id, and what tells whether it was read again as it had been."""

    counts: Offsets
    digest: str


class RowFetcher(Fetcher):
    """Reads rows."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self._part: EncodedPart | None = None

    def check(self, paths: Sequence[str], config: FeedConfig, parts: int) -> None:
        """Raise WholeError for files that are not read in so many parts."""
        check_lines(list(paths), config, parts)

    def cut(self, paths: Sequence[str], parts: int, config: FeedConfig) -> Cut:
        """Divide files that all nodes have."""
        sources = open_sources(list(paths), config)
        return cut_files(sources, title_of([source.name for source in sources], "the data"), parts, lines=True)

    def learn(self, paths: Sequence[str], config: FeedConfig, threads: int) -> Learned:
        """Go through all files once."""
        return learn(list(paths), config, threads)

    def encode(self, parts: Sequence[TextPart], learned: Learned, threads: int) -> PartCount:
        """Read a part."""
        self.close()
        self._place, self._learned = make_workspace("part"), learned
        self._part = EncodedPart(parts, learned, self._place, threads)
        return PartCount(self._part.counts, self._part.digest)

    def order(self, counts: Offsets, ranks: bool) -> tuple[RowSource, Outline]:
        """Number the ids of the part as all do; returns what the node reads, and what the driver knows of it: of the
        ranks, which are those of all parts, where it asks for them."""
        assert self._part is not None
        assert self._place is not None
        outline = self._part.finish(np.array(counts))
        outline = outline if ranks else outline._replace(original=outline.original[:0])
        return RowSource(str(self._place), self._part.names, self._learned), outline

    def close(self) -> None:
        """Nothing of it stays on disk."""
        self._part = None
        super().close()
