"""Arrow files are read through by a child before they are used: pyarrow trusts what stands in them, so that a damaged
one can end the process that reads it, or keep it for ever."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import IO

import hogwild
from hogwild.feeds.io.source import Source
from hogwild.machine import memory

_PATIENCE = 30.0  # seconds in which the child must read one more batch
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # variables that the child needs to find its libraries
_sound: weakref.WeakSet[Source] = weakref.WeakSet()


def trust(source: Source) -> None:
    """Spare the check for a file that we have written ourselves."""
    _sound.add(source)


def why_unsound(source: Source, patience: float = _PATIENCE) -> str:
    """Why the file of a source cannot be used, in one clause; empty if it can. A source is read through only once."""
    if source not in _sound:
        path = source.local()
        reason = _judged(path, patience)
        if reason:
            return reason
        _sound.add(source)
    source.check_unchanged()
    return ""


def _judged(path: Path, patience: float) -> str:
    # Half of the memory: lengths that stand in a file may be any number, and true ones leave room for our own.
    limit = memory() // 2 + path.stat().st_size
    # -P: nothing is imported from the working directory.
    command = [sys.executable, "-P", "-m", "hogwild.feeds.tables.arrowchild", str(path), str(limit)]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, bufsize=0, env=_environment()
    ) as child:
        assert child.stdout is not None
        try:
            while select.select([child.stdout], [], [], patience)[0]:
                if not os.read(child.stdout.fileno(), 1 << 16):
                    return _verdict(child.wait(), errors)
            return f"reading it makes no progress for {patience:g} seconds"
        finally:
            if child.poll() is None:
                child.kill()


def _environment() -> dict[str, str]:
    """The same packages as here, and little else."""
    paths = [str(Path(hogwild.__file__).parents[1]), *(path for path in sys.path if path)]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1",
            "ARROW_DEFAULT_MEMORY_POOL": "system"}  # fmt: skip


def _verdict(code: int, errors: IO[bytes]) -> str:
    if code == 0:
        return ""
    if code < 0:
        return f"reading it ends a process with {signal.Signals(-code).name}"
    errors.seek(0)
    said = errors.read(1 << 16).decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"a process that reads it fails with exit code {code}"
