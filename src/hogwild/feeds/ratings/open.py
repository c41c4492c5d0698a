"""Open ratings as a feed: read them, rank users and items by frequency, use the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Ratings
from hogwild.config import RatingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Paths, Source, open_sources
from hogwild.feeds.ratings.feed import RatingFeed, map_ratings, write_ratings
from hogwild.feeds.ratings.read import Encoded, Found, Names, RatingReader, tells_layout
from hogwild.feeds.storage import cache
from hogwild.feeds.storage.arrayfiles import title_of
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.ranking import count_ids, ranks_of
from hogwild.messages import counted, shown


def open_ratings(
    paths: Paths,
    config: RatingConfig | None = None,
    *,
    users: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
    with_ratings: bool = True,
) -> RatingFeed:
    """Open ratings or interactions: encoded once into memory-mapped ids, found again on the next run.

    Parameters
    ----------
    paths
        Files, compressed or not, globs, or `-` for standard input: a user, an item and perhaps a rating a line, with
        tabs, commas, `::` or blanks between them; a user and all items a line; Parquet or Arrow.
    config
        How they are read.
    users, items
        Names of a model. Others become -1 and are counted.
    with_ratings
        False for files whose ratings are not known, or not wanted.

    Returns
    -------
    RatingFeed
        Ids are ranks of frequency; those that are equally frequent are in the order of their first places.

    Examples
    --------
    >>> feed = open_ratings("ratings.csv")          # doctest: +SKIP
    """
    config = config or RatingConfig()
    given = _given(users, items)
    sources = open_sources(paths, config)
    content = {
        "ratings": {name: value for name, value in asdict(config).items() if name != "cache"},
        "suffixes": [PurePath(source.name).suffixes for source in sources],
        "names": None if given is None else [cache.digest_of(names) for names in given],
        "with_ratings": with_ratings,
    }
    key = cache.key_from(content, sources)

    def write(directory: Path) -> None:
        write_ratings(directory, _read(sources, config, given, with_ratings), [source.name for source in sources])

    return cache.open_entry(write, sources, key, map_ratings, config.cache)


def ratings_of(
    users: Sequence[str],
    items: Sequence[str],
    ratings: npt.ArrayLike | None = None,
    *,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
) -> RatingFeed:
    """Make a feed of ratings in memory: users[k] gave items[k] the rating ratings[k], or has it.

    names: users and items of a model; others become -1.

    Examples
    --------
    >>> feed = ratings_of(["ann", "bob", "bob"], ["tea", "tea", "jam"], [5, 3, 4])
    >>> feed.users, feed.items, feed.samples.items.tolist()
    (('bob', 'ann'), ('tea', 'jam'), [0, 0, 1])
    """
    given = _given(*names) if names is not None else None
    columns = [[str(name) for name in column] for column in (users, items)]
    values = np.ones(len(columns[0]), np.float32) if ratings is None else _values_of(ratings)
    if not len(columns[0]) == len(columns[1]) == len(values) or values.ndim != 1:
        raise InputError(f"there are {len(columns[0])} users, {len(columns[1])} items and {values.size} ratings.")
    if any(not name for column in columns for name in column):
        raise InputError("a user or an item has an empty name; give every one a name.")
    try:
        encoded = [[name.encode() for name in column] for column in columns]
    except UnicodeEncodeError as error:
        raise InputError(f"the name `{shown(error.object)}` of a user or an item is no text in UTF-8.") from None
    reader = RatingReader(RatingConfig(), given)
    coded = [table.encode_strings(column) for table, column in zip((reader.users, reader.items), encoded, strict=True)]
    part = Encoded(np.maximum(coded[0], -1), np.maximum(coded[1], -1), values)
    return _ranked([part], reader, given, ratings is None, []).check()


def _values_of(ratings: npt.ArrayLike) -> npt.NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, which is refused
            return np.asarray(ratings).astype(np.float32, casting="same_kind" if np.iscomplexobj(ratings) else "unsafe")
    except (ValueError, TypeError, OverflowError):
        raise InputError("ratings are not all numbers; give one a user and item.") from None


def _given(users: Sequence[str] | None, items: Sequence[str] | None) -> Names | None:
    if (users is None) != (items is None):
        raise ConfigError("give the names of both, users and items, or of neither.")
    return None if users is None or items is None else (users, items)


def _read(sources: Sequence[Source], config: RatingConfig, given: Names | None, with_ratings: bool) -> RatingFeed:
    reader = RatingReader(config, given)
    for source in sources:
        reader.read(source, with_ratings)
    name = title_of([source.name for source in sources], "ratings")
    if 0 < reader.rated < len(sources):
        raise InputError(f"{name}: some of the files have ratings, some have none; read them apart, or --rating none.")
    notes = reader.notes()
    implicit = reader.rated == 0
    parts = reader.parts
    if config.min_rating is not None:
        if implicit:
            raise ConfigError(f"{name}: there are no ratings to compare with --min-rating; leave it out.")
        before = sum(len(part.users) for part in parts)
        chosen = [(part, part.values >= config.min_rating) for part in parts]
        parts = [Encoded(part.users[good], part.items[good], part.values[good]) for part, good in chosen]
        dropped = before - sum(len(part.users) for part in parts)
        notes.append(f"{counted(dropped, 'rating')} below {config.min_rating:g} left out (--min-rating).")
    if not sum(len(part.users) for part in parts):
        raise _nothing(name, reader)
    return _ranked(parts, reader, given, implicit, notes)


def _nothing(name: str, reader: RatingReader) -> InputError:
    found = f"{counted(reader.bare, 'line')} with one column only" if reader.bare else "is the file empty?"
    return InputError(f"{name}: no ratings; {found}.".replace("?.", "?"))


def _ranked(
    parts: list[Encoded], reader: RatingReader, given: Names | None, implicit: bool, notes: list[str]
) -> RatingFeed:
    """The feed, in ranks of frequency; with given names in their places."""
    users, items, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    schema = {"format": "ratings", "implicit": implicit}
    if given is not None:
        notes += _strange_notes(*(int(np.count_nonzero(ids < 0)) for ids in (users, items)))
        names = tuple(given[0]), tuple(given[1])
    else:
        users, user_names = _by_frequency(users, reader.users)
        items, item_names = _by_frequency(items, reader.items)
        names = user_names, item_names
    return RatingFeed(Ratings(users, items, values), *names, implicit, schema, tuple(notes))


def _strange_notes(users: int, items: int) -> list[str]:
    """What to tell of ratings whose user, or whose item, a model does not know."""
    found = (("users", users), ("items", items))
    return [f"{counted(count, 'rating')} of {what} that the model does not know." for what, count in found if count]


def _by_frequency(ids: Ids, table: Words) -> tuple[Ids, tuple[str, ...]]:
    """Ids as ranks, and the names of the ranks; names that no rating has are left out."""
    counts = np.zeros(len(table), np.int64)
    count_ids(ids, counts)
    rank, original = ranks_of(counts)
    kept = int(np.count_nonzero(counts))
    return rank[ids], table.texts(original[:kept].astype(np.intp))


# -- as they come -----------------------------------------------------------------------------------------------------


class PairReader:
    """Pairs in the users and items of a model, as they come in several sources: all are read as the first one is."""

    def __init__(self, config: RatingConfig, given: Names) -> None:
        self._given = given
        self._reader = RatingReader(config, given)
        self._found: Found | None = None
        self._name = ""
        self._pairs = self._users = self._items = 0

    def knows_layout(self, first: bytes) -> bool:
        """Whether these first lines are enough to tell how all are read."""
        return tells_layout(first.decode(errors="replace"), self._reader.config, self._given)

    def read(self, source: Source) -> RatingFeed:
        """The pairs of a source."""
        reader = self._reader
        reader.parts.clear()
        if self._found is None:
            self._name, self._found = source.name, reader.read(source, with_ratings=False)
        else:
            reader.read_text(source, self._found._replace(skip=0))
        nothing = Encoded(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
        feed = _ranked([nothing, *reader.parts], reader, self._given, True, [])
        self._pairs += len(feed)
        self._users += int(np.count_nonzero(feed.samples.users < 0))
        self._items += int(np.count_nonzero(feed.samples.items < 0))
        return feed

    def notes(self) -> list[str]:
        """What to tell when all has come. Raises InputError if that was nothing, or too many lines were malformed."""
        notes = self._reader.notes()
        if not self._pairs:
            raise _nothing(self._name, self._reader)
        return [*notes, *_strange_notes(self._users, self._items)]
