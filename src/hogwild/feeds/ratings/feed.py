"""A rating feed: what users think of items, as ids, with the names of both; and how it stands on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.arrays import Ratings
from hogwild.errors import ConfigError, InputError, worded
from hogwild.feeds.held_out import chosen, marked
from hogwild.feeds.storage.arrayfiles import ArrayWriter, mapping, read_strings, title_of


@dataclass(frozen=True, repr=False)
class RatingFeed:
    """Ratings, or interactions without ratings, in memory or memory-mapped from the cache; in the order of the files.

    users, items: their names, the most frequent first; users[k] is the user with id k. With the names of a model, -1 in
    `samples` is one that is not among them.
    implicit: there are no ratings; all values are 1.
    schema: what reads another file in the same way; JSON values only.
    notes: what the reader should know, one sentence each, with counts.
    fingerprint: identifies content and options; empty for ratings from memory.
    """

    samples: Ratings
    users: tuple[str, ...]
    items: tuple[str, ...]
    implicit: bool = False
    schema: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = "ratings"
    fingerprint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(worded(note) for note in self.notes))

    def __len__(self) -> int:
        """Ratings."""
        return len(self.samples.users)

    def __repr__(self) -> str:
        what = "interactions" if self.implicit else "ratings"
        sizes = f"{len(self):,} {what}, {len(self.users):,} users, {len(self.items):,} items"
        return f"<RatingFeed of {self.source}: {sizes}>"

    @property
    def parts(self) -> int:
        """Ratings."""
        return len(self)

    def part(self, rows: Any, mark: str) -> RatingFeed:
        """Some of the ratings, of the same users and items."""
        pick = chosen(rows)
        samples = Ratings(*(array[pick] for array in self.samples))
        return replace(self, samples=samples, notes=(), fingerprint=marked(self.fingerprint, mark))

    def check_order(self) -> None:
        """ConfigError where the order of the ratings says nothing: of lists, a user's items all stand together."""
        users = self.samples.users
        changes = int(np.count_nonzero(users[1:] != users[:-1]))
        if len(users) and changes + 1 == len(np.unique(users)) < len(users):
            raise ConfigError(
                f"{self.source}: all that a user has stands together, so that the last share of it would be users that "
                "training knows nothing of; sort it by time, or use valid_share (--valid-share)."
            )

    def check(self) -> RatingFeed:
        """Check all that compiled code will trust; returns the feed itself."""
        users, items, values = self.samples
        sound = len(users) == len(items) == len(values)
        if len(users) and sound:
            sound = int(users.min()) >= -1 and int(users.max()) < len(self.users)
            sound = sound and int(items.min()) >= -1 and int(items.max()) < len(self.items)
        if not sound:
            raise InputError(f"{self.source}: users, items and ratings do not fit each other; the data is damaged.")
        if not np.isfinite(values).all():
            place = int(np.argmin(np.isfinite(values)))
            raise InputError(f"{self.source}: rating {place} is {values[place]}; leave it out, or correct it.")
        return self

    @property
    def known(self) -> Any:
        """Which ratings are of a user and an item that have names here."""
        return (self.samples.users >= 0) & (self.samples.items >= 0)


# -- on disk ----------------------------------------------------------------------------------------------------------

def write_ratings(directory: Path, feed: RatingFeed, sources: Sequence[str]) -> None:
    """Write a feed. All is on disk when this returns."""
    with ArrayWriter(directory) as writer:
        for name, array in feed.samples._asdict().items():
            writer.write(name, array)
        for names in (feed.users, feed.items):
            writer.write_strings("words", "letters", names)
        writer.seal({"user_names": len(feed.users), "implicit": feed.implicit, "schema": feed.schema,
                     "notes": feed.notes, "sources": list(sources)})  # fmt: skip


def map_ratings(directory: Path, names: Sequence[str], fingerprint: str) -> RatingFeed:
    """Map a feed. `names` are those of its sources as they are called now. Raises Damaged."""
    with mapping(directory) as (header, arrays):
        words, users = read_strings(arrays["words"], arrays["letters"]), int(header["user_names"])
        return RatingFeed(Ratings(arrays["users"], arrays["items"], arrays["values"]), words[:users], words[users:],
                          bool(header["implicit"]), header["schema"], tuple(header["notes"]),
                          title_of(names, "ratings"), fingerprint)  # fmt: skip
