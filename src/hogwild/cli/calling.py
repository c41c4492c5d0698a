"""The command that was called, so that what it writes can say how to have it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_called: ContextVar[tuple[str, ...]] = ContextVar("called", default=())


@contextmanager
def calling(words: Sequence[str]) -> Iterator[None]:
    """While a command runs: the words after `hogwild`."""
    token = _called.set(tuple(words))
    try:
        yield
    finally:
        _called.reset(token)


def command() -> str:
    """The command line, for a shell; "" where none was called."""
    words = _called.get()
    return shlex.join(("hogwild", *words)) if words else ""
