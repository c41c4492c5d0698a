"""A text on a cluster: every node's fetcher reads a part of it, and all have one vocabulary."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
import ray

from hogwild.arrays import Offsets, Tokens
from hogwild.cluster.fleet import Fleet
from hogwild.cluster.parted import Files, Parted, same_everywhere
from hogwild.cluster.text.fetcher import TextFetcher, TextSource
from hogwild.config import CorpusConfig
from hogwild.errors import ClusterError, ConfigError
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.corpus.parts import ChosenPairs, Phrasing, WholeText, merged_words, ranked_text
from hogwild.feeds.io.parts import TextPart


@dataclass(frozen=True)
class Texts(Files):
    """Text files for `hogwild.cluster.train`, to be read by the nodes themselves; as for `hogwild.open_corpus`."""

    paths: str | PathLike[str] | Sequence[str | PathLike[str]]
    config: CorpusConfig = field(default_factory=CorpusConfig)
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [self.paths] if isinstance(self.paths, str | PathLike) else self.paths
        object.__setattr__(self, "paths", tuple(map(fspath, given)))

    def read(self, fleet: Fleet, threads: int) -> tuple[PartedCorpus, list[TextSource]]:
        """Each node reads a part, all have one vocabulary."""
        return read_texts(fleet, self, threads)


@dataclass(frozen=True, repr=False)
class PartedCorpus(Corpus, Parted):
    """A text whose ids are with the nodes: here are its words and counts. shares: what each node reads."""

    shares: tuple[tuple[TextPart, ...], ...] = ()
    config: CorpusConfig = field(default_factory=CorpusConfig)
    phrasing: Phrasing | None = None

    def visits_of(self, program: Any, sources: Sequence[TextSource]) -> list[int]:
        """By the ids of each part."""
        sizes = [np.broadcast_to(np.int32(0), source.size) for source in sources]
        return [program.visits(replace(self, samples=Tokens(size))) for size in sizes]

    def read_again(self, fleet: Fleet, ranks: Sequence[int], threads: int) -> list[TextSource]:
        """New fetchers in place of dead ones read their parts, which must be what they were."""
        counts = fleet.count_parts(ranks, self.shares, self.config, threads)
        if not all(len(part.counts) for part in counts):
            raise ClusterError(f"{self.source}: a part that has words had none when it was read again.")
        if self.phrasing is not None:
            shared = self.phrasing.shared
            fleet.ask_fetchers("share_words", ranks, lambda rank: (shared,))
            for chosen in self.phrasing.passes:
                _joined(fleet, ranks, chosen)
        return fleet.begin_text(ranks, self.words, self.counts, _fields(self, self.source))

    def is_as(self, other: Any) -> bool:
        """It has the same words."""
        return self.words == tuple(other.words)


def read_texts(fleet: Fleet, texts: Texts, threads: int) -> tuple[PartedCorpus, list[TextSource]]:
    """Let the nodes read a text; returns what is known of it as a whole, and where each node finds its part."""
    fleet.start_fetchers(TextFetcher)
    ranks = range(fleet.count)
    looks = fleet.ask_fetchers("look", ranks, lambda rank: (texts.paths, texts.config))
    notes: tuple[str, ...] = ()
    apart = 1 if fleet.whole_texts else fleet.count  # nodes that have different parts
    parts: Sequence[Sequence[TextPart]]
    if same_everywhere(looks):
        (cut,) = fleet.ask_fetchers("cut", [0], lambda rank: (texts.paths, apart, texts.config))
        parts, title, notes = list(cut.parts) * (fleet.count // apart), cut.title, cut.notes
    elif fleet.whole_texts:
        raise ConfigError(f"strategy columns needs the same text on all nodes, and {looks[0][0].name} differs.")
    else:
        parts = [[TextPart(f.name, f.path, 0, f.size, f.size) for f in look] for look in looks]
        title = looks[0][0].name
        notes = ("Nodes have different files under these names: each trains on its own.",)
    counts = fleet.count_parts(ranks, parts, texts.config, threads)
    words = merged_words(counts[:apart], title)
    phrasing = _join_phrases(fleet, Phrasing(words, texts.config, texts.keep), apart) if texts.config.phrases else None
    whole = ranked_text(words, counts[:apart], texts.config, title, texts.keep, phrasing)
    sources = fleet.begin_text(ranks, whole.words, whole.counts, _fields(whole, title))
    digest = hashlib.sha256(repr((parts, texts.config, texts.keep)).encode())
    for part in counts[:apart]:
        for array in (part.letters, part.lengths, part.counts):
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    size = sum(source.size for source in sources[:apart])
    nowhere = np.broadcast_to(np.int32(0), size)  # of the right size, in no memory
    corpus = PartedCorpus(
        Tokens(nowhere), whole.words, np.array(whole.counts), whole.total, whole.schema, (*notes, *whole.notes), title,
        digest.hexdigest(), tuple(tuple(part) for part in parts), texts.config, phrasing,
    )  # fmt: skip
    return corpus, sources


def _join_phrases(fleet: Fleet, phrasing: Phrasing, apart: int) -> Phrasing:
    """All parts join the same pairs, chosen by the counts of all."""
    ranks, shared = range(fleet.count), ray.put(phrasing.shared)
    fleet.ask_fetchers("share_words", ranks, lambda rank: (shared,))
    more = True
    while more:
        chosen = phrasing.choose(fleet.ask_fetchers("count_pairs", ranks, lambda rank: ())[:apart])
        more = phrasing.joined(_joined(fleet, ranks, chosen)[:apart])
    return phrasing


def _joined(fleet: Fleet, ranks: Sequence[int], chosen: ChosenPairs) -> list[tuple[Offsets, int]]:
    sent = ray.put(chosen)
    return fleet.ask_fetchers("join_pairs", ranks, lambda rank: (sent,))


def _fields(whole: WholeText | Corpus, title: str) -> dict[str, Any]:
    return {"schema": whole.schema, "source": title}
