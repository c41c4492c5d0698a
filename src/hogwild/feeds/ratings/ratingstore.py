"""A rating feed on disk: ids and ratings, and the names of users and items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hogwild.arrays import Ratings
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.feeds.storage.arrayfiles import ArrayWriter, Damaged, map_arrays, read_header
from hogwild.feeds.tagged.featureplan import cut_text


def write_ratings(directory: Path, feed: RatingFeed, sources: Sequence[str]) -> None:
    """Write a feed. All is on disk when this returns."""
    writer = ArrayWriter(directory)
    try:
        for name, array in feed.samples._asdict().items():
            writer.write(name, array)
        for names in (feed.users, feed.items):
            writer.write("words", np.frombuffer("".join(names).encode(), np.uint8))
            writer.write("letters", np.fromiter(map(len, names), np.int32, len(names)))
        writer.seal(
            {
                "user_names": len(feed.users),
                "implicit": feed.implicit,
                "schema": feed.schema,
                "notes": feed.notes,
                "sources": list(sources),
            }
        )
    finally:
        writer.close()


def map_ratings(directory: Path, names: Sequence[str], fingerprint: str) -> RatingFeed:
    """Map a feed. `names` are those of its sources as they are called now. Raises Damaged."""
    header = read_header(directory)
    try:
        arrays = map_arrays(directory, header)
        text, letters = arrays["words"].tobytes().decode(), arrays["letters"]
        if len(letters) and (int(letters.min()) < 1 or int(letters.sum()) != len(text)):
            raise Damaged("its names do not fit together")
        words, users = cut_text(text, letters.tolist()), int(header["user_names"])
        return RatingFeed(
            Ratings(arrays["users"], arrays["items"], arrays["values"]),
            words[:users],
            words[users:],
            bool(header["implicit"]),
            header["schema"],
            tuple(header["notes"]),
            f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names) or "ratings",
            fingerprint,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(str(error)) from None
