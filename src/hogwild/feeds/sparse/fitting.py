"""Whether the features of a feed are those of a model: by what both say of how data becomes ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hogwild.arrays import DenseRows
from hogwild.config import MISSING
from hogwild.feeds.sparse.feed import Feed
from hogwild.messages import listed

_NUMBERED = ("svmlight", "lists", "tfrecord", "libffm")  # formats whose ids are the numbers of features, as of arrays
_ELSEWHERE = {  # what ids do not depend on
    "columns", "header", "label", "labels", "weight", "features", "indices", "names",
}  # fmt: skip
_BEFORE = {  # what models say that were saved before they said it
    "min_count": 1, "shared_ids": False, "missing": list(MISSING), "missing_numbers": "zero", "number_style": "plain",
    "dates": "", "multi": [], "separators": [],
}  # fmt: skip
_LISTS = {"multi": "columns of several values",
          "numeric": "columns of numbers", "categorical": "columns of categories", "slots": "slots",
          "dense": "dense columns"}  # fmt: skip
_OTHERS = {
    "vocabulary": "its categories have other numbers", "keys": "its categories have other numbers",
    "means": "its missing numbers are others", "scales": "its numbers are scaled otherwise",
    "shifts": "its numbers are centred otherwise",
    "hashing": "it is hashed otherwise",
    "zero_based": "its ids begin elsewhere",
}  # fmt: skip


def misfit(feed: Feed, schema: Mapping[str, Any]) -> str:
    """Why the ids of a feed are not those of data of this schema; nothing if they are.

    Examples
    --------
    >>> import numpy as np
    >>> rows = DenseRows(np.zeros((1, 2), np.float32), np.zeros(1, np.float32), np.ones(1, np.float32))
    >>> table = {"format": "table", "numeric": ["a", "b"], "categorical": [], "text": ""}
    >>> misfit(Feed(rows, 2, schema=table), {**table, "numeric": ["b", "a"]})
    'its columns of numbers are a, b, those of the model b, a'
    """
    one, other = feed.schema, schema
    forms = [str(part.get("format", "")) for part in (one, other)]
    if forms[0] != forms[1]:
        if all(form in ("", *_NUMBERED) for form in forms) and "" in forms:
            return ""
        if not forms[0]:
            return f"it holds arrays without names, and the model was trained on {_called(other)}"
        before = _called(other) if forms[1] else "arrays without names"
        return f"it holds {_called(one)}, and the model was trained on {before}"
    mine, its = _parts(one), _parts(other)
    if isinstance(feed.samples, DenseRows) and not its.get("slots"):  # numbers alone: with or without slots, the same
        its = {name: value for name, value in its.items() if name not in ("slots", "dense")}
    if forms[0] == "libffm" and mine.get("slots") == its.get("slots", [])[: len(mine.get("slots", ()))]:
        mine["slots"] = its["slots"]
    for name in sorted({*mine, *its}, key=lambda name: (name not in _LISTS, name == "means", name)):
        if mine.get(name) != its.get(name):
            return _difference(name, mine.get(name), its.get(name))
    return ""


def _parts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the ids of a schema depend on."""
    parts = {name: value for name, value in schema.items() if name not in _ELSEWHERE}
    if schema.get("format") != "table":
        return parts
    unused = set[str]()
    words = schema.get("categorical") or schema.get("multi")
    if not words:
        unused |= {"categories", "min_count", "rare", "shared_ids"}
    if not schema.get("text") and (not words or schema.get("categories") != "hash"):
        unused.add("hashing")
    if not schema.get("numeric"):
        unused |= {"scales", "shifts", "means", "missing_numbers", "number_style", "dates"}
    if not schema.get("numeric") and not words:
        unused.add("missing")
    parts = {**_BEFORE, **parts}
    for name in ("scales", "shifts", "means"):  # of very many columns they are texts
        if name in parts:
            parts[name] = [float(number) for number in parts[name]]
    return {name: value for name, value in parts.items() if name not in unused}


def _called(schema: Mapping[str, Any]) -> str:
    return "a table" if schema["format"] == "table" else f"{schema['format']} data"


def _difference(name: str, mine: Any, its: Any) -> str:
    if name not in _LISTS:
        return _OTHERS.get(name, f"its `{name}` is another")
    if (mine is None) != (its is None):  # the one is of slots, the other is not
        return "it has plain features, and the model slots" if mine is None else "it has slots, and the model none"
    if sorted(mine) == sorted(its) and len(mine) > 4:
        return f"its {_LISTS[name]} are in another order than those of the model"
    return f"its {_LISTS[name]} are {listed(mine) or 'none'}, those of the model {listed(its) or 'none'}"
