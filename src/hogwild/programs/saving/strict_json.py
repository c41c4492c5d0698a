"""JSON from a file that nobody vouches for: one object, no key twice, no surprise from its depth or its numbers."""

from __future__ import annotations

import json
from typing import Any

from hogwild.errors import ModelError, brief, shorten

_DEPTH = 32
_LEAST, _MOST = -(2**63), 2**64 - 1  # whole numbers that arrays can hold


def parse_object(text: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `text`; `where` begins the error message."""
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_no_key_twice, parse_int=_whole_number)
        deep = _is_deep(found)
    except RecursionError:
        deep = True
    except ValueError as error:  # malformed JSON, invalid UTF-8, an endless number
        raise ModelError(f"{where}: not valid JSON ({shorten(error)}); copy it again from where it was made.") from None
    if deep:
        raise ModelError(f"{where}: nested too deeply to be ours; do not trust this file.")
    if not isinstance(found, dict):
        raise ModelError(f"{where}: holds no JSON object; copy the directory again from where it was made.")
    return found


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {brief(twice)} stands twice")
    return found


def _whole_number(digits: str) -> int:
    number = int(digits) if len(digits) < 24 else _MOST + 1
    if not _LEAST <= number <= _MOST:
        raise ValueError(f"the number {shorten(digits, 24)} has more than 64 bits")
    return number


def _is_deep(found: Any) -> bool:
    """Whether lists and objects are nested deeper than anything of ours: what comes after need not count."""
    level = [found]
    for _ in range(_DEPTH):
        level = [item for value in level for item in _items(value)]
    return bool(level)


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
