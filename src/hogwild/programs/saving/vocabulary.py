r"""A vocabulary as UTF-8 text: one entry a line; backslash, line feed and carriage return are written \\, \n and \r."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hogwild.errors import ModelError

_MEANING = {"\\": "\\", "n": "\n", "r": "\r"}
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.?)")


def encode_entries(entries: Sequence[str]) -> bytes:
    r"""Each entry and a line feed. Half of a surrogate pair, which UTF-8 cannot hold, becomes \udc80.

    >>> encode_entries(["a b", "two\nlines"])
    b'a b\ntwo\\nlines\n'
    """
    joined = "".join(f"{entry}\n" for entry in entries)
    if "\\" not in joined and "\r" not in joined and joined.count("\n") == len(entries):
        return joined.encode("utf-8", errors="backslashreplace")
    lines = (entry.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") + "\n" for entry in entries)
    return "".join(lines).encode("utf-8", errors="backslashreplace")


def decode_entries(text: bytes, where: str) -> list[str]:
    """The entries that `encode_entries` wrote; `where` begins the error message."""
    try:
        *lines, rest = text.decode("utf-8").split("\n")
        if rest:
            raise ValueError("the last line does not end")
        if b"\\" not in text:
            return lines
        return [_ESCAPED.sub(_unescape, line) if "\\" in line else line for line in lines]
    except ValueError as error:
        raise ModelError(f"{where}: not a vocabulary ({error}); copy it again from where it was made.") from None


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code.startswith("u"):
        return chr(int(code[1:], 16)) if len(code) == 5 else _unknown(match)
    return _MEANING[code] if code in _MEANING else _unknown(match)


def _unknown(match: re.Match[str]) -> str:
    raise ValueError(f"{match[0]!r} means nothing here")
