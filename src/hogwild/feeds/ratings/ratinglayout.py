"""How a file of ratings is laid out, from its first lines: lists or columns, what separates them, which is what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hogwild.config import RatingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.labels import number_of
from hogwild.feeds.tables.columns import find_column, numbers_of
from hogwild.kernels.parse.ratings import COLON, COMMA, NONE, SEMICOLON, SPACE, TAB, Layout

SEPARATORS = {"colons": COLON, "tab": TAB, "comma": COMMA, "semicolon": SEMICOLON, "space": SPACE}
_SIGNS = {"colons": "::", "tab": "\t", "comma": ",", "semicolon": ";"}
_SNIFFED = 200  # lines that are looked at
_MOST = 4       # columns that files of ratings have when blanks separate them: user, item, rating, time
_USERS = {"user", "userid", "uid", "userkey", "username", "customer", "customerid", "visitorid", "reviewerid"}
_ITEMS = {
    "item", "itemid", "iid", "movie", "movieid", "product", "productid", "asin", "parentasin", "book", "bookid", "isbn",
    "business", "businessid", "song", "songid", "track", "trackid", "artist", "artistid", "article", "articleid",
}  # fmt: skip
_RATINGS = {"rating", "ratings", "score", "stars", "overall", "bookrating"}
_TIMES = {"time", "timestamp", "date", "datetime", "ts", "unixreviewtime"}


class Found(NamedTuple):
    """Columns of a file, or lists (layout None); skip: lines before the first rating."""

    layout: Layout | None
    skip: int = 0

    @property
    def implicit(self) -> bool:
        """Whether there are no ratings."""
        return self.layout is None or self.layout.rating == NONE


def split(line: str, separator: str) -> list[str]:
    """The fields of a line, as the compiled reader sees them."""
    if separator == "space":
        return line.split()
    return [field.strip().strip('"') for field in line.rstrip("\r").split(_SIGNS[separator])]


def find_layout(head: str, config: RatingConfig, name: str, with_ratings: bool) -> Found:
    """The layout of a file that begins so. name: what messages call it."""
    lines = [(k, line) for k, line in enumerate(head.split("\n")) if line.strip()][:_SNIFFED]
    if not lines:
        return Found(None)  # an empty file: no line will be read
    texts = [line for _, line in lines]
    separator = _separator(texts, config)
    if separator == "":
        return Found(None)
    split_lines = [split(line, separator) for line in texts]
    width = _usual_width(split_lines)[0]
    rows = [row for row in split_lines if len(row) == width]
    header = len(split_lines[0]) == width and _has_header(rows, config)
    names = tuple(rows[0]) if header else numbers_of(width)
    user, item, rating = choose_columns(names, rows[1:] if header else rows, config, name)
    if not with_ratings and config.rating in ("", "none"):
        rating = NONE
    return Found(Layout(SEPARATORS[separator], width, user, item, rating), lines[0][0] + 1 if header else 0)


def _separator(texts: Sequence[str], config: RatingConfig) -> str:
    """The name of the separator; empty for lists.

    It divides most lines into the same number of fields; those that it does not are errors that are told later.
    """
    if config.format == "lists":
        return ""
    if config.separator != "auto":
        return config.separator
    for name in SEPARATORS:
        rows = [split(line, name) for line in texts]
        width, share = _usual_width(rows)
        if width < 2 or share <= 0.5:
            continue
        lists = config.format == "auto" and name in ("space", "tab") and _are_lists(rows, width)
        return "" if lists else name
    return "space" if config.format == "ratings" else ""


def _usual_width(rows: Sequence[Sequence[str]]) -> tuple[int, float]:
    """The most common number of fields, and the share of lines that have it."""
    width, lines = Counter(map(len, rows)).most_common(1)[0]
    return width, lines / len(rows)


def _are_lists(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether lines with the same number of fields are rather lists of items than columns."""
    if sum(_plain(field) in _USERS | _ITEMS for field in rows[0]) > 1:
        return False
    if width > _MOST:
        return True
    return width > 2 and not any(len(row) > 2 and number_of(row[2]) is not None for row in rows)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _has_header(rows: Sequence[Sequence[str]], config: RatingConfig) -> bool:
    if config.header != "auto":
        return config.header == "yes"
    first = rows[0]
    asked = {name for name in (config.user, config.item, config.rating) if name and not name.lstrip("+-").isdigit()}
    if asked & set(first):
        return True
    if any(number_of(field) is not None for field in first):
        return False
    if sum(_plain(field) in _USERS | _ITEMS | _RATINGS for field in first) > 1:
        return True
    return len(first) > 2 and len(rows) > 1 and number_of(first[2]) is None and number_of(rows[1][-1]) is not None


def choose_columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], config: RatingConfig, where: str
) -> tuple[int, int, int]:
    """Which columns are the user, the item and the rating (NONE: there is none); rows: a few, to judge by."""
    if len(names) < 2:
        raise InputError(
            f"{where}: the first line has one column; ratings have a user and an item at least, with a tab, a comma, "
            "`::` or a blank between them (--separator)."
        )
    user = _one(config.user, names, _USERS, 0, ("--user", where))
    item = _one(config.item, names, _ITEMS, 1 if user != 1 else 0, ("--item", where))
    if config.rating == "none":
        rating = NONE
    elif config.rating:
        rating = _one(config.rating, names, _RATINGS, 2, ("--rating", where))
    else:
        rating = _rating(names, rows, (user, item))
    if len({user, item, rating}) < 3:
        raise ConfigError(f"{where}: one column cannot be two of user, item and rating; name each (--user, --item).")
    return user, item, rating


def _one(wanted: str, names: Sequence[str], usual: set[str], otherwise: int, told: tuple[str, str]) -> int:
    if wanted:
        return list(names).index(find_column(wanted, list(names), *told))
    return next((k for k, name in enumerate(names) if _plain(name) in usual), otherwise)


def _rating(names: Sequence[str], rows: Sequence[Sequence[str]], others: tuple[int, int]) -> int:
    named = [k for k, name in enumerate(names) if _plain(name) in _RATINGS]
    if named:
        return named[0]
    free = [k for k in range(len(names)) if k not in others]
    if not free or _plain(names[free[0]]) in _TIMES:
        return NONE
    numeric = any(len(row) > free[0] and number_of(row[free[0]]) is not None for row in rows)
    return free[0] if numeric or not rows else NONE
