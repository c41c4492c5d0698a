"""Which pairs of neighbouring tags the rich edges of a CRF weigh."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.config.options import nearest
from hogwild.errors import ConfigError, ModelError, brief
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.simd.rows8 import LANES

_LISTED = 40  # templates in a message


@dataclass(frozen=True)
class RichPairs:
    """The pairs former * tags + tag that features weigh; those of feature f are pairs[starts[f]:starts[f + 1]].

    Compiled code has them in chunks of 8, the last of a feature filled up; `slots` is the place of each pair there.
    """

    starts: Offsets
    pairs: Ids
    tags: int

    @property
    def features(self) -> int:
        """Features with rich edges."""
        return len(self.starts) - 1

    @property
    def chunk_starts(self) -> Offsets:
        """First chunk of each feature, and the number of all."""
        chunks = -(-np.diff(self.starts) // LANES)
        return np.concatenate([[0], np.cumsum(chunks)]).astype(np.int64)

    @property
    def slots(self) -> npt.NDArray[np.int64]:
        """Place of each pair among the chunks."""
        owner = np.repeat(np.arange(self.features), np.diff(self.starts))
        return np.arange(len(self.pairs)) - self.starts[owner] + LANES * self.chunk_starts[owner]

    def cells(self, width: int) -> Ids:
        """The pairs in chunks, as cells of a matrix with rows that wide; fillings are the cell after its last row."""
        rows = -(-self.tags // 4) * 4  # see kernels/crf/task.py
        found = np.full(LANES * int(self.chunk_starts[-1]), rows * width, np.int32)
        found[self.slots] = self.pairs // self.tags * width + self.pairs % self.tags
        return found

    def check(self, features: int) -> RichPairs:
        """Raise ModelError unless compiled code may trust it; returns itself."""
        sound = len(self.starts) >= 1 and self.starts[0] == 0 and self.starts[-1] == len(self.pairs)
        sound = sound and bool((np.diff(self.starts) >= 0).all()) and self.features <= features
        if len(self.pairs):
            sound = sound and int(self.pairs.min()) >= 0 and int(self.pairs.max()) < self.tags**2
        if not sound:
            raise ModelError("the pairs of its rich edges do not fit its features and tags.")
        return self


def no_pairs(tags: int) -> RichPairs:
    """No feature has rich edges."""
    return RichPairs(np.zeros(1, np.int64), np.zeros(0, np.int32), tags)


def find_pairs(feed: TaggingFeed, min_count: int, seen_only: bool, templates: Collection[str] = ()) -> RichPairs:
    """The pairs for features that occur at least `min_count` times: those seen with each, or all.

    templates: only features of these have any; of all by default.
    """
    tags = len(feed.tags)
    frequent = feed.counts >= min_count
    if templates:
        frequent &= _made_by(feed, templates)
    rich = int(np.flatnonzero(frequent).max(initial=-1)) + 1  # counts fall, but for a text in the ids of a model
    if not seen_only:
        starts = np.concatenate([[0], np.cumsum(frequent[:rich] * tags**2)]).astype(np.int64)
        return RichPairs(starts, np.tile(np.arange(tags**2, dtype=np.int32), int(frequent.sum())), tags)
    samples = feed.samples
    inside = np.ones(feed.tokens, bool)
    inside[samples.offsets[:-1]] = False  # the first token of a sentence has no neighbour before it
    pairs = np.zeros(feed.tokens, np.int64)
    pairs[1:] = samples.tags[:-1].astype(np.int64) * tags + samples.tags[1:]
    token = np.repeat(np.arange(feed.tokens), np.diff(samples.starts))
    chosen = frequent[samples.ids] & inside[token]
    keys = np.unique(samples.ids[chosen].astype(np.int64) * tags**2 + pairs[token[chosen]])
    starts = np.searchsorted(keys, np.arange(rich + 1, dtype=np.int64) * tags**2)
    return RichPairs(starts.astype(np.int64), (keys % tags**2).astype(np.int32), tags)


def _made_by(feed: TaggingFeed, templates: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which features are of these templates: their names begin with them, up to `=`."""
    owners = [name.partition("=")[0] for name in feed.names]
    known = set(owners)
    for template in templates:
        if template not in known:
            there = ", ".join(sorted(known)[:_LISTED]) + (" …" if len(known) > _LISTED else "")
            raise ConfigError(
                f"no feature is of the template {brief(template)} of rich_edge_templates{nearest(template, known)}; "
                f"there are: {there}."
            )
    return np.fromiter((owner in templates for owner in owners), np.bool_, len(owners))
