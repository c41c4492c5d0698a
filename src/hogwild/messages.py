"""Text for people: safe on a terminal, and nothing that a run may die of when nobody can read it any more."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, TextIO, cast

from hogwild.errors import worded

# What a terminal takes for a command, what changes the order of the text around it, what ends a line, and halves of
# characters (a file name that is not UTF-8 has them for its odd bytes).
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_REMEDIES = {
    errno.ENOSPC: "free some space or choose another place",
    errno.EDQUOT: "free some space or choose another place",
    errno.EFBIG: "raise the limit of the size of files (`ulimit -f unlimited`)",
    errno.EMFILE: "raise the limit of open files (`ulimit -n 1024`)",
    errno.ENFILE: "the system has too many open files: close other programs",
}
_LENGTH = 40  # characters of a value that `shown` shows
_DELETED = "the current directory was deleted"


def printable(text: str) -> str:
    """The text with all that a terminal would not simply show written as an escape.

    >>> printable("a\\x1b[31m\\n")
    'a\\\\x1b[31m\\\\n'
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(word: str, length: int = _LENGTH) -> str:
    """A value as messages show it: on one line, not too long."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in word[: length + 1])
    return plain if len(plain) <= length else plain[:length] + "…"


def listed(names: Sequence[str], most: int = 12) -> str:
    """The first of some names for messages.

    >>> listed(["age", "sex", "zip"], most=2)
    'age, sex, …'
    """
    return ", ".join(map(shown, names[:most])) + (", …" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    """A number of things for messages.

    >>> counted(1, "row"), counted(2000, "row"), counted(3, "entry")
    ('1 row', '2,000 rows', '3 entries')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def printable_json(text: str) -> str:
    """The same for JSON, which stays the same JSON."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def remedy(error: OSError, otherwise: str) -> str:
    """What to do about an error of the system: about a limit, whatever was tried; else `otherwise`."""
    if error.errno == errno.ENOENT and here() == _DELETED:
        return f"{_DELETED}: name all files from the root on"
    return _REMEDIES.get(error.errno or 0, otherwise)


def output_failed(error: OSError) -> str:
    """What is said where standard output could not be written to."""
    what = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return f"standard output cannot be written to: {what}; {remedy(error, 'send it to another place')}."


def here() -> str:
    """The working directory, which may have been deleted."""
    try:
        return f"the current directory is {os.getcwd()}"
    except FileNotFoundError:
        return _DELETED


# -- streams ----------------------------------------------------------------------------------------------------------

class Stream(io.TextIOBase):
    """A stream that falls silent at its first failure, which it keeps as `problem`."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.problem: Exception | None = None

    def write(self, text: str) -> int:
        self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self.stream.flush)

    def _try(self, act: Callable[[], Any]) -> None:
        if self.problem is None:
            try:
                act()
            except (OSError, ValueError) as error:  # ValueError: somebody closed it
                self.problem = error

    def isatty(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return self.stream.isatty()
        return False

    def fileno(self) -> int:
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    @property
    def buffer(self) -> BinaryIO:
        """For data: what goes wrong here is raised."""
        return self.stream.buffer


def for_output(text: str) -> str:
    """The text as standard output takes it: escaped on a terminal, as it is elsewhere."""
    return printable(text) if sys.stdout.isatty() else text


def show(line: str = "") -> None:
    """A line on standard output."""
    print(for_output(line))


def say(line: str) -> None:
    """A line on standard error."""
    line = worded(line)
    if sys.stderr is not None:
        print(printable(line) if sys.stderr.isatty() else line, file=sys.stderr, flush=True)


def data_output() -> BinaryIO:
    """Standard output for data: bytes as they are, and text that is safe to look at where it is a terminal."""
    return cast(BinaryIO, _Looked()) if sys.stdout.isatty() else sys.stdout.buffer


class _Looked(io.BufferedIOBase):
    """Bytes that somebody looks at: only tabs and ends of lines mean something to the terminal."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: Any, /) -> int:
        for part in re.split("([\t\n])", self._decoder.decode(bytes(data))):
            sys.stdout.write(part if part in "\t\n" else printable(part))
        return memoryview(data).nbytes

    def flush(self) -> None:
        sys.stdout.flush()
