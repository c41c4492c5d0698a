"""CoNLL-U: ten columns with names, words that stand for several tokens, and empty nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hogwild.errors import ModelError
from hogwild.feeds.sparse.labels import shown
from hogwild.feeds.tables.columns import find_column
from hogwild.feeds.tagged.columns import UNUSED, WORDS, Asked, ColumnPlan, check_names, find_place, renaming

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
USUAL_TAG = "upos"
REAL, RANGE, EMPTY = "token", "multiword line", "empty node"
_NUMBER = re.compile(rb"\d+(?:[-.]\d+)?")


def plan_conllu(asked: Asked, where: str) -> ColumnPlan:
    """Features of the words only, unless the user names columns; the tags are upos, unless the user says otherwise."""
    config, known = asked.config, asked.known
    tag = FIELDS.index(USUAL_TAG)
    if config.tag_column:
        tag = find_place(config.tag_column, FIELDS, where)
    elif known is not None and known.tag >= 0:
        tag = known.tag
    if known is not None and not config.columns:
        if len(known.names) != len(FIELDS):
            raise ModelError("what the model says of its columns is damaged; copy the model again.")
        return ColumnPlan(known.names, tag)
    names = [UNUSED] * len(FIELDS)
    for name, field in map(renaming, config.columns or (WORDS,)):
        if name != UNUSED:
            place = FIELDS.index(find_column("form" if field == WORDS else field, FIELDS, "--columns", where))
            names[place] = WORDS if name == "form" else name
    names[tag] = FIELDS[tag]
    check_names(names)
    return ColumnPlan(tuple(names), tag)


def wrong_numbers(numbers: Sequence[bytes]) -> dict[int, str]:
    """What is wrong with the column `id`, by row."""
    if b"".join(numbers).isdigit() and b"" not in numbers:
        return {}
    return {
        row: f"`{shown(number.decode())}` is no number of a token (column id)"
        for row, number in enumerate(numbers)
        if not _NUMBER.fullmatch(number)
    }


def kinds_of(numbers: Sequence[bytes]) -> npt.NDArray[np.str_]:
    """What rows are: `1-2` stands for two tokens that follow, `1.1` for none at all."""
    if b"".join(numbers).isdigit():
        return np.full(len(numbers), REAL)
    return np.array([RANGE if b"-" in number else EMPTY if b"." in number else REAL for number in numbers])
