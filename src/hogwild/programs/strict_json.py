"""JSON from a file that nobody vouches for: one object, no key twice, no surprise from its depth or its numbers."""

from __future__ import annotations

import json
from typing import Any

from hogwild.errors import ModelError


def parse_object(text: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `text`; `where` begins the error message."""
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_no_key_twice)
    except RecursionError:
        raise ModelError(f"{where}: nested too deeply to be ours; do not trust this file.") from None
    except ValueError as error:  # malformed JSON, invalid UTF-8, an endless number
        raise ModelError(f"{where}: not valid JSON ({error}); copy it again from where it was made.") from None
    if not isinstance(found, dict):
        raise ModelError(f"{where}: holds no JSON object; copy the directory again from where it was made.")
    return found


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} stands twice")
    return found
