"""What taggers train on: sentences as chains of feature ids, with what makes the same ids of others; and on disk."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyChains, Chains, ValuedChains
from hogwild.errors import HogwildWarning, InputError
from hogwild.feeds.held_out import entries_of, marked
from hogwild.feeds.sparse.feed import kept
from hogwild.feeds.storage.arrayfiles import ArrayWriter, Damaged, mapping, read_strings, title_of
from hogwild.feeds.tagged.text import TaggedText, TextColumn
from hogwild.messages import counted, shown


@dataclass(frozen=True, repr=False)
class TaggingFeed:
    """Tagged sentences, in memory or memory-mapped from the cache.

    names: the features, the most frequent first; names[k] is the feature with id k. counts: how often each occurs in
    the training text.
    tags: names of the tags, the most frequent first; -1 in `samples` is a tag that is not among them.
    strange: tags of this text that are not in `tags`, with the number of their tokens (text that is read with the
    tags of a model).
    unknown: features of this text that are not in `names`; they are left out.
    schema: what turns another text into the same ids (format, columns, templates); JSON values only.
    text: the columns as they were read, with their origin unless the cache was asked; None for features from memory.
    """

    samples: AnyChains
    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    tags: tuple[str, ...]
    schema: dict[str, Any] = field(default_factory=dict)
    strange: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    text: TaggedText | None = None
    notes: tuple[str, ...] = ()
    source: str = "sentences"
    fingerprint: str = ""

    def __len__(self) -> int:
        """Sentences."""
        return len(self.samples.offsets) - 1

    def __repr__(self) -> str:
        size = f"{len(self):,} sentences, {self.tokens:,} tokens, {len(self.names):,} features, {len(self.tags)} tags"
        return f"<TaggingFeed of {self.source}: {size}>"

    @property
    def tokens(self) -> int:
        """Tokens of all sentences."""
        return len(self.samples.tags)

    @kept
    def longest(self) -> int:
        """Tokens of the longest sentence."""
        return int(np.diff(self.samples.offsets).max(initial=0))

    @kept
    def most_features(self) -> int:
        """Features of the sentence that has most."""
        return int(np.diff(self.samples.starts[self.samples.offsets]).max(initial=0))

    @property
    def parts(self) -> int:
        """Sentences."""
        return len(self)

    def part(self, rows: npt.NDArray[np.int64], mark: str) -> TaggingFeed:
        """Some of the sentences, with the features and tags of all; counts are those of these sentences."""
        samples = self.samples
        offsets, tokens = entries_of(samples.offsets, rows)
        places = np.arange(self.tokens)[tokens]
        starts, entries = entries_of(samples.starts, places)
        taken = {"offsets": offsets, "starts": starts, "ids": samples.ids[entries], "tags": samples.tags[tokens]}
        if isinstance(samples, ValuedChains):
            taken["values"] = samples.values[entries]
        counts = np.bincount(taken["ids"], minlength=len(self.names)).astype(np.int64)
        return replace(
            self, samples=type(samples)(**taken), counts=counts, notes=(), fingerprint=marked(self.fingerprint, mark),
            text=None if self.text is None else self.text.part(offsets, tokens),
        )  # fmt: skip

    def with_names(self, names: Sequence[str]) -> TaggingFeed:
        """The same text for a model that knows these features too, of which none need occur in it."""
        own = set(self.names)
        more = [name for name in dict.fromkeys(names) if name not in own]
        return replace(self, names=(*self.names, *more), counts=np.append(self.counts, np.zeros(len(more), np.int64)))

    def check(self) -> TaggingFeed:
        """Check all that compiled code will trust; returns the feed itself."""
        offsets, starts, ids, tags = self.samples[:4]
        tokens = len(tags)
        sound = len(offsets) >= 1 and offsets[0] == 0 and offsets[-1] == tokens and bool((np.diff(offsets) > 0).all())
        sound = sound and len(starts) == tokens + 1 and starts[0] == 0 and starts[-1] == len(ids)
        sound = sound and bool((np.diff(starts) >= 0).all()) and len(self.names) == len(self.counts)
        if len(ids):
            sound = sound and int(ids.min()) >= 0 and int(ids.max()) < len(self.names)
            sound = sound and _rise(ids, starts)
        if tokens:
            sound = sound and int(tags.min()) >= -1 and int(tags.max()) < len(self.tags)
        if isinstance(self.samples, ValuedChains):
            sound = sound and len(self.samples.values) == len(ids) and bool(np.isfinite(self.samples.values).all())
        if not sound:
            raise InputError(f"{self.source}: offsets, ids or tags do not fit each other; the data is damaged.")
        return self


def _rise(ids: npt.NDArray[np.int32], starts: npt.NDArray[np.int64]) -> bool:
    """Whether the ids of each token are in order; those of neighbours need not be."""
    falls = ids[1:] < ids[:-1]
    begins = starts[(starts > 0) & (starts < len(ids))]
    falls[begins - 1] = False
    return not falls.any()


def check_known(feed: TaggingFeed, remedy: str, example: str = "", pruned: bool = False) -> TaggingFeed:
    """A feed in the features of a model: raise InputError if it has none of them, warn if it has not even half.

    remedy: what to do then. example: a feature that is not in the model. pruned: the model left out features that weigh
    nothing, so that many are not in it.
    """
    known, unknown = len(feed.samples.ids), feed.unknown
    theirs = f"; the model has such as `{shown(feed.names[0])}`" if feed.names else "; the model has none"
    source = f"{feed.source} (with features such as `{shown(example)}`{theirs})" if example else feed.source
    if unknown and not known:
        what = f"none of its {counted(unknown, 'feature')} is known to the model, which could only guess the tags"
        raise InputError(f"{source}: {what}; {remedy}")
    if unknown > known and not pruned:
        total = known + unknown
        what = f"{100 * unknown / total:.0f} % of its {total:,} features are not known to the model"
        warnings.warn(f"{source}: {what}; {remedy}", HogwildWarning, stacklevel=3)
    return feed


# -- on disk ----------------------------------------------------------------------------------------------------------

def write_tagging(directory: Path, feed: TaggingFeed, sources: Sequence[str]) -> None:
    """Write a feed that was read from text. All is on disk when this returns."""
    with ArrayWriter(directory) as writer:
        for name, array in feed.samples._asdict().items():
            writer.write(name, array)
        writer.write("counts", feed.counts)
        writer.write_strings("words", "letters", feed.names)
        for column in _columns_of(feed.text):
            writer.write("codes", column.codes)
            writer.write_strings("columns", "column_letters", column.values)
        writer.seal({"schema": feed.schema, "tag_names": feed.tags, "strange": feed.strange, "unknown": feed.unknown,
                     "text": _described(feed.text), "notes": feed.notes, "sources": list(sources)})  # fmt: skip


def _columns_of(text: TaggedText | None) -> tuple[TextColumn, ...]:
    if text is None:
        return ()
    return text.columns if text.tags is None else (*text.columns, text.tags)


def _described(text: TaggedText | None) -> dict[str, Any] | None:
    if text is None:
        return None
    return {"columns": [[column.name, len(column.values)] for column in _columns_of(text)],
            "tagged": text.tags is not None, "notes": text.notes, "schema": text.schema}  # fmt: skip


def map_tagging(directory: Path, names: Sequence[str], fingerprint: str) -> TaggingFeed:
    """Map a feed. `names` are those of its sources as they are called now. Raises Damaged."""
    with mapping(directory) as (header, arrays):
        samples = Chains(arrays["offsets"], arrays["starts"], arrays["ids"], arrays["tags"])
        source = title_of(names, "sentences")
        features = read_strings(arrays["words"], arrays["letters"], least=0)
        text, notes = _text(arrays, header["text"], source), tuple(header["notes"])
        return TaggingFeed(samples, features, arrays["counts"], tuple(header["tag_names"]), header["schema"],
                           header["strange"], int(header["unknown"]), text, notes, source, fingerprint)  # fmt: skip


def _text(arrays: dict[str, Any], described: dict[str, Any] | None, source: str) -> TaggedText | None:
    """The columns as they were read; what would write the sentences again is not kept."""
    if described is None:
        return None
    tokens = len(arrays["tags"])
    values = read_strings(arrays["columns"], arrays["column_letters"], least=0)
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
