"""What can go wrong, as a few exceptions. Every message says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LENGTH = 80  # characters of a value that a message shows


def brief(value: Any) -> str:
    """A value as messages show it: on one line and short, whoever gave it.

    >>> brief("spam"), len(brief("x" * 100_000)) < 100
    ("'spam'", True)
    """
    if isinstance(value, str | bytes):
        return repr(value) if len(value) <= _LENGTH else f"{value[:_LENGTH]!r}…"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; lists in lists in lists
        return "more than can be shown"
    return text if len(text) <= _LENGTH else text[:_LENGTH] + "…"


def shorten(message: object, length: int = 300) -> str:
    """What another library, or a file, has to say: as one line, and no more of it than can be read."""
    text = " ".join(str(message).split())
    return text if len(text) <= length else text[:length] + "…"


# -- whose words messages are in --------------------------------------------------------------------------------------

_told_in: Callable[[str], str] | None = None
_flags = False


def word_by(words: Callable[[str], str]) -> None:
    """From now on messages, which name options by their flags, are told in these words outside the command line."""
    global _told_in
    _told_in = words


@contextmanager
def speaking_flags() -> Iterator[None]:
    """What is told meanwhile is for who typed a command: messages name flags."""
    global _flags
    before, _flags = _flags, True
    try:
        yield
    finally:
        _flags = before


def worded(text: str) -> str:
    """A message in the words of who reads it."""
    return text if _flags or _told_in is None or "--" not in text else _told_in(text)


class HogwildError(Exception):
    """Base of all errors that this package raises on purpose. `exit_code` is what the command line returns."""

    exit_code = 1

    def __str__(self) -> str:
        return worded(super().__str__())


class HogwildWarning(UserWarning):
    """Something that the user should know and that stops nothing; the command line shows it as a note."""


class ConfigError(HogwildError):
    """An option has a value that cannot work."""

    exit_code = 2


class InputError(HogwildError):
    """A file or an array of the user's cannot be used as it is."""

    exit_code = 2


class UnknownNameError(InputError, KeyError):
    """Users or items that a model does not know. A KeyError too, so that it can be caught as that of a dictionary."""

    def __str__(self) -> str:
        return worded(Exception.__str__(self))  # a KeyError would put quotes around the message


class UnknownWordError(UnknownNameError):
    """Words that a vocabulary does not hold."""


class ModelError(HogwildError):
    """A model or checkpoint on disk is damaged, hostile, or of another kind."""

    exit_code = 2


class SaveError(HogwildError):
    """Something could not be written. What stood there before is untouched."""

    exit_code = 1


class RescuedError(SaveError):
    """A model could not be written to its place, and stands in another: `place`."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


class DivergedError(HogwildError):
    """The loss or the weights are no longer finite numbers."""

    exit_code = 1


class WorkerError(HogwildError):
    """A worker failed. `worker`, `epoch` and `span` say where; `__cause__` says why."""

    exit_code = 1

    def __init__(self, message: str, worker: int = -1, epoch: int = -1, span: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message)
        self.worker = worker
        self.epoch = epoch
        self.span = span


class ClusterError(HogwildError):
    """Nodes of a cluster could not be started, or do not answer any more."""

    exit_code = 1


class JoinError(ClusterError):
    """A cluster cannot be used as it is: nobody answers at its address, or its nodes are not what a run needs."""

    exit_code = 2
