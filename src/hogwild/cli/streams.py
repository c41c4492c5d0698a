"""The standard streams of a command: whole, whatever the caller made of them, and never what a run dies of."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO, cast

from hogwild.errors import HogwildWarning
from hogwild.messages import Stream, say


@contextlib.contextmanager
def standard_streams() -> Iterator[Stream]:
    """Gives standard output. Both streams fall silent when they fail; what cannot be encoded is escaped."""
    before = sys.stdout, sys.stderr
    _fill_gaps()
    # A closed standard output must fail: /dev/null that can only be read does.
    out = Stream(_escaping(sys.stdout or os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")))
    err = Stream(_escaping(sys.stderr or open(os.devnull, "w", encoding="utf-8")))  # noqa: SIM115
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        with _warnings_as_notes():
            yield out
    finally:
        for stream in (out, err):
            stream.flush()
            _discard(stream)
        sys.stdout, sys.stderr = before


def _fill_gaps() -> None:
    """Nothing that is opened later may get the number of a standard stream, and be written to in its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)  # the lowest number that is free


def stay_usable() -> None:
    """In a working directory that was deleted, import now what asks for it, from a place that is there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        deleted = os.open(".", os.O_RDONLY)
        os.chdir("/")
        try:
            importlib.import_module("hogwild.kernels.compiler.jit")  # the compiler, by way of its tools
        finally:
            os.fchdir(deleted)  # names without a directory still mean nothing
            os.close(deleted)


def _escaping(stream: TextIO) -> TextIO:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _discard(stream: Stream) -> None:
    """What a failed stream still holds: Python would try it again when it ends, and complain."""
    with contextlib.suppress(OSError, ValueError):
        if stream.problem is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        otherwise, told = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, HogwildWarning):
                otherwise(message, category, *where, **more)
            elif str(message) not in told:
                told.add(str(message))
                say(f"note: {message}")

        warnings.simplefilter("always", HogwildWarning)
        warnings.showwarning = show
        yield
