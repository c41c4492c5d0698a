"""TOML from a file that nobody vouches for: no more is read than is of use, and whatever is wrong is a ValueError."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_PART = r"""(?:"[^"\n]*+"|'[^'\n]*+'|(?<![\w-])[\w-]++)[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:{_PART}\.[ \t]*+){{32}}")


def read_start(path: str, limit: int) -> bytes:
    """The bytes of a file; ValueError, before they take memory, for more of them than `limit`."""
    with open(path, "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"more than {limit:,} bytes")
    return content


def parse_toml(text: str) -> dict[str, Any]:
    """The table in a text that nobody vouches for; ValueError for whatever is wrong."""
    if long := _LONG_KEY.search(text):  # the parser takes the square of a key's parts
        raise ValueError(f"a key of that many parts (at line {text.count(chr(10), 0, long.start()) + 1})")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:  # Python's limit
        raise ValueError("a whole number has thousands of digits") from None
