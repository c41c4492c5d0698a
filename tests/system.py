"""What a test asks of the system, where it may: another user, a small disk of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def shared_place(mode: int = 0o777) -> Iterator[Path]:
    """A directory that another user reaches: those of pytest are closed to others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, mode)
        yield Path(name)


def as_another_user(act: Callable[[], object]) -> str:
    """What `act` returns, as text, or the error that it raises, when a user without any rights calls it in a child."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            said = str(act())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException:
            said = traceback.format_exc()
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """An empty disk of this size at `place`, for this user only."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
