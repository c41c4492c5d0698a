"""What a model says of its data, checked before anything is read by it: names, kinds and sizes of its parts.

Whether the parts fit each other is checked by whoever reads with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hogwild.config.kinds import letters_of
from hogwild.errors import ConfigError, ModelError, brief
from hogwild.feeds.sparse.hashing import Hashing

_MOST = 2**31 - 1  # features that int32 can number
_HALF = re.compile("[\ud800-\udfff]")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ModelError for a part of a schema that no feed of ours writes. Parts of other names are the user's own."""

    def own(value: Any) -> bool:
        return "format" not in schema or _text(json.dumps(value, ensure_ascii=False))

    for name, value in schema.items():
        if not _KINDS.get(name, own)(value):
            raise ModelError(f"the schema is damaged: {name} is {brief(value)}; copy the model again.")
    needed = _NEEDED.get(schema.get("format", ""), ())
    if missing := [name for name in needed if name not in schema]:
        raise ModelError(f"the schema is damaged: {missing[0]} is missing; copy the model again.")


def _text(value: Any) -> bool:
    """A text that a file can hold: not half of a surrogate pair."""
    return isinstance(value, str) and (value.isascii() or _HALF.search(value) is None)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _texts(value: Any) -> bool:
    # All at once: a table may have a million columns.
    return isinstance(value, list) and set(map(type, value)) <= {str} and _text("".join(value))


def _names(value: Any) -> bool:
    return _texts(value) and len(set(value)) == len(value)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _numbers(value: Any, fits: Callable[[Any], Any]) -> bool:
    """A list of numbers that fit; very many of them are texts."""
    kinds = set(map(type, value)) if isinstance(value, list) else {list}
    if not (kinds <= {int, float} or kinds == {str}):
        return False
    try:
        return bool(fits(np.array(value, np.float64)).all())
    except ValueError:
        return False


def _labels(value: Any) -> bool:
    known = isinstance(value, dict) and set(value) == {"kind", "names"}
    return known and value["kind"] in ("words", "numbers", "sets") and _names(value["names"])


def _hashing(value: Any) -> bool:
    if not isinstance(value, dict) or not {"bits", "seed"} <= set(value) <= set(Hashing.__annotations__):
        return False
    bits, seed, ngrams = value["bits"], value["seed"], value.get("ngrams", 1)
    whole = all(type(number) is int for number in (bits, seed, ngrams))
    flags = all(_flag(value[name]) for name in ("lowercase", "normalize") if name in value)
    subwords = value.get("subwords", "")
    try:
        flags = flags and isinstance(subwords, str) and bool(letters_of(subwords))
    except ConfigError:
        return False
    return whole and flags and 1 <= bits <= 30 and 0 <= seed < 2**64 and 1 <= ngrams <= 16


def _plan(value: Any) -> bool:
    """Slots, each of which has texts, flags and a width."""
    each = isinstance(value, list) and all(isinstance(slot, dict) for slot in value)
    return each and all(_flag(part) or _count(part) or _text(part) for slot in value for part in slot.values())


_KINDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("header", "shared_ids", "zero_based", "implicit"), _flag),
    **dict.fromkeys(("label", "text", "weight", "indices", "values", "preset", "dates"), _text),
    **dict.fromkeys(("columns", "keys", "templates", "fields", "missing", "separators", "names"), _texts),
    **dict.fromkeys(("numeric", "categorical", "multi", "slots", "dense", "vocabulary"), _names),
    "interactions": lambda value: isinstance(value, list) and all(_texts(pair) and len(pair) == 2 for pair in value),
    "format": lambda value: _text(value) and len(value) <= 40,
    "labels": _labels,
    "hashing": _hashing,
    "categories": lambda value: value in ("enumerate", "hash"),
    "sizes": lambda value: isinstance(value, list) and all(map(_count, value)) and sum(value) <= _MOST,
    "scales": lambda value: _numbers(value, lambda factors: (factors > 0) & (factors < 1e38)),
    **dict.fromkeys(("means", "shifts"), lambda value: _numbers(value, lambda means: np.abs(means) < 3.5e38)),
    "missing_numbers": lambda value: value in ("mean", "zero", "error"),
    "number_style": lambda value: value in ("plain", "point", "comma"),
    "rare": lambda value: isinstance(value, list) and all(map(_count, value)),
    "min_count": lambda value: type(value) is int and 1 <= value < 2**63,
    "features": lambda value: _count(value) or value == "python",
    "plan": _plan,
    "tag": lambda value: type(value) is int,
}
_NEEDED = {
    "table": ("columns", "header", "label", "text", "numeric", "categorical", "vocabulary", "hashing"),
    "svmlight": ("zero_based", "features"),
}
