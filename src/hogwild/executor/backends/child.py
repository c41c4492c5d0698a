"""The other end of the pipe: what a worker that is a process of its own does, whatever its visits are.

It imports next to nothing, so that a worker starts as quickly as what makes its visits can be imported.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple


class Failure(NamedTuple):
    """An exception of a worker, as texts: the other process need not have its class."""

    kind: str
    text: str
    traceback: str


def serve(pipe: Connection, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Make whoever makes the visits, then do what is asked of it until the pipe is closed.

    A request is the name of a method and its arguments; an answer is what it returned, or a Failure. None is the last.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    visitor = _answer(make, arguments)
    try:
        pipe.send(visitor if isinstance(visitor, Failure) else None)
        while not isinstance(visitor, Failure) and (request := pipe.recv()) is not None:
            name, *given = request
            pipe.send(_answer(getattr(visitor, name), given))
    except (EOFError, OSError):  # the other process has gone
        return


def _answer(function: Callable[..., Any], arguments: Any) -> Any:
    try:
        return function(*arguments)
    except BaseException as error:
        return Failure(type(error).__name__, str(error), traceback.format_exc())


def _end_with_parent() -> None:
    """However the process that started this one ends, and whatever this one is at: it does not outlive it."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
