"""A fetcher: the process beside a node that reads its part of the text, counts its words, and encodes ahead of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.arrays import Offsets, Tokens
from hogwild.cluster.paging.blocks import Block, Need, need_of
from hogwild.cluster.parted import Fetcher, PartSource
from hogwild.cluster.text.textfeed import Appender, TextFeed
from hogwild.cluster.wire.rounds import LONGEST
from hogwild.config import CorpusConfig
from hogwild.errors import ClusterError
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.corpus.parts import (
    ChosenPairs,
    CountedPart,
    JoinedWords,
    PartCounts,
    SettledPart,
    count_part,
    cut_texts,
)
from hogwild.feeds.corpus.phrases import PartPairs
from hogwild.feeds.io.parts import Cut, TextPart
from hogwild.feeds.io.workspace import make_workspace
from hogwild.kernels.word2vec.windows import alias_table

_AHEAD = 1 << 16  # words that are there before they are needed


@dataclass(frozen=True, repr=False)
class CorpusPart(Corpus):
    """The part of a text that a node has, with the words and counts of all of it. own: words of the part."""

    own: int = 0

    def __len__(self) -> int:
        return self.own


class TextSource(PartSource):
    """Where a node finds its part of the text while the fetcher still writes it.

    size: ids of the part; counts: how often it has each word of the vocabulary.
    """

    def __init__(self, path: str, size: int, whole: dict[str, Any], total: int, counts: Offsets) -> None:
        self._path, self.size, self._whole, self._total, self.counts = path, size, whole, total, counts
        self._text: TextFeed | None = None

    def feed(self) -> CorpusPart:
        """The part, as a corpus."""
        self._text = TextFeed.open(Path(self._path))
        return CorpusPart(Tokens(self._text.ids), total=self._total, own=int(self.counts.sum()), **self._whole)

    @property
    def text(self) -> TextFeed:
        """The ids of the part, once it was opened by `feed`."""
        assert self._text is not None
        return self._text

    def wait(self, share: float, longest: float) -> None:
        """Until so much of the part is there."""
        assert self._text is not None
        wanted = int(share * len(self._text)) + _AHEAD
        if not self._text.wait(wanted, longest):
            raise ClusterError(
                f"the fetcher has encoded {self._text.ready:,} of {len(self._text):,} words, and no more within "
                f"{longest:.0f} s."
            )


class TextFetcher(Fetcher):
    """Reads text: counts its words, and encodes ahead of the node."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self._counted: CountedPart | None = None
        self._settled: SettledPart | None = None
        self._appender: Appender | None = None
        self._words: Offsets | None = None  # how often each word occurs in the text of all
        self._text: TextFeed | None = None

    def cut(self, paths: Sequence[str], parts: int, config: CorpusConfig) -> Cut:
        """Divide files that all nodes have."""
        return cut_texts(list(paths), parts, config)

    def count(self, parts: Sequence[TextPart], config: CorpusConfig, threads: int) -> PartCounts:
        """Read a part, and count its words."""
        self.close()
        self._place, self._config = make_workspace("part"), config
        self._counted = count_part(parts, config, self._place, threads)
        return self._counted.counts

    def share_words(self, shared: JoinedWords) -> None:
        """Before phrases are joined: the part in the words of all."""
        assert self._counted is not None
        assert self._place is not None
        self._counted.share_words(shared, self._place)

    def count_pairs(self) -> PartPairs:
        """The pairs of neighbours of the part."""
        assert self._counted is not None
        return self._counted.count_pairs(self._config)

    def join_pairs(self, chosen: ChosenPairs) -> tuple[Offsets, int]:
        """Join pairs to phrases: how often there is each word then, and at how many places."""
        assert self._counted is not None
        return self._counted.join_pairs(chosen)

    def begin(self, words: tuple[str, ...], counts: Offsets, whole: dict[str, Any]) -> TextSource:
        """Make ready to encode with the words of all; returns what the node reads from."""
        assert self._counted is not None
        assert self._place is not None
        self._settled = self._counted.settle(words)
        size = self._settled.size
        self._appender = Appender(self._place / "ids", size)
        self._words, self._text = counts, None
        fields = {"words": words, "counts": np.array(counts), **whole}
        return TextSource(str(self._appender.path), size, fields, self._counted.counts.total, self._settled.counts)

    def fill(self) -> int:
        """Encode all of the part; returns how many ids it has."""
        assert self._settled is not None
        assert self._appender is not None
        with self._appender as appender:
            for ids in self._settled:
                appender.write(ids)
        return appender.ready

    def announce(self, block: Block, pool: int, seed: tuple[int, ...]) -> Need:
        """The rows that a block of the text will touch, before they are needed; a pool of negatives among them."""
        assert self._appender is not None
        assert self._words is not None
        if self._text is None:
            self._text, self._noise = TextFeed.open(self._appender.path), alias_table(self._words)
        if not self._text.wait(block.last, LONGEST):
            raise ClusterError(f"fetcher {self.rank} has not encoded the text to be announced within {LONGEST:.0f} s.")
        return need_of(self._text.ids[block.first : block.last], self._noise, pool, seed)
