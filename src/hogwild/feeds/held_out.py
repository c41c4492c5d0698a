"""A part of the training data held out to validate on, where there is no second file."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from hogwild.config import TrainConfig
from hogwild.errors import ConfigError

Rows = npt.NDArray[np.int64]
_STREAM = 0x5EED  # what is held out has a random stream of its own


@runtime_checkable
class Divisible(Protocol):
    """A feed that can be divided."""

    @property
    def parts(self) -> int:
        """Of how many pieces it is: rows, sentences, ratings."""

    def part(self, rows: Rows, mark: str) -> Self:
        """Some of its pieces, which are numbered from 0 and given in rising order, under the names of all of it.

        mark: what tells this part from others of the same data.
        """


class Held(NamedTuple):
    """What is left to train on, what to validate on, and a sentence for the user."""

    feed: Any
    valid: Any
    note: str = ""


def hold_out(config: TrainConfig, feed: Any, valid: Any = None) -> Held:
    """Divide a feed as `valid_share` or `valid_last` say; all as it is where they say nothing.

    What a share holds depends on the seed and the number of pieces alone.
    """
    name = "valid_share" if config.valid_share else "valid_last" if config.valid_last else ""
    if not name:
        return Held(feed, valid)
    share = float(getattr(config, name))
    if valid is not None:
        raise ConfigError(f"{name} is for runs without validation data, and there are some; leave one of them out.")
    if not isinstance(feed, Divisible):
        raise ConfigError(
            f"{name} divides feeds, and a {type(feed).__name__} is none; give validation data of its own."
        )
    whole = feed.parts
    count = round(share * whole)
    if not 0 < count < whole:
        what = "train" if count else "validate"
        raise ConfigError(f"{name} {share:g} of {whole:,} samples leaves nothing to {what} on; choose another share.")
    if name == "valid_last":
        rows, mark, how = np.arange(whole - count, whole), f"last {share:g}", "The last "
        check = getattr(feed, "check_order", None)
        if check is not None:
            check()
    else:
        random = np.random.default_rng((_STREAM, config.seed))
        rows = np.sort(random.choice(whole, count, replace=False, shuffle=False))
        mark, how = f"share {share:g} seed {config.seed}", "Drawn by the seed, "
    keep = np.ones(whole, bool)
    keep[rows] = False
    note = f"{how}{count:,} of {whole:,} samples are held out to validate on."
    return Held(feed.part(np.flatnonzero(keep), f"{mark} kept"), feed.part(rows, f"{mark} held"), note)


def entries_of(offsets: npt.NDArray[np.int64], rows: Rows) -> tuple[npt.NDArray[np.int64], Any]:
    """New offsets of these rows, and what chooses their entries of an array: a slice where they follow each other."""
    lengths = np.diff(offsets)[rows]
    fresh = np.concatenate([[0], np.cumsum(lengths)]).astype(offsets.dtype)
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        return fresh, slice(int(offsets[rows[0]]), int(offsets[rows[-1] + 1]))
    return fresh, np.repeat(offsets[rows] - fresh[:-1], lengths) + np.arange(int(fresh[-1]))


def chosen(rows: Rows) -> Any:
    """What chooses rows of an array: a slice, which copies nothing, where they follow each other."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def marked(fingerprint: str, mark: str) -> str:
    """The fingerprint of a part; none where the whole has none."""
    return f"{fingerprint}, {mark}" if fingerprint else ""
