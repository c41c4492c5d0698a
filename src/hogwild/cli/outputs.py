"""Where a command writes to, which is none of the files that it reads."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from hogwild.config import File
from hogwild.errors import ConfigError


@dataclass(frozen=True)
class OutputConfig:
    """Where the data goes."""

    output: File = "-"
    """File to write; - is standard output, and names that end in .gz, .xz or .zst are compressed."""


def check_outputs(outputs: Iterable[str], files: Iterable[str], models: Iterable[str] = ()) -> None:
    """Raise ConfigError where an output would take the place of what is read, or of another output, or get into it.

    Names are compared by what they lead to, through links and hard links; "" and - (a standard stream) are no files.
    files: globs are expanded. models: also their directories are closed to outputs.
    """
    written = [Path(os.path.realpath(name)) for name in outputs if name not in ("", "-")]
    for place in written:
        for name in _expanded(files):
            if _holds(place, Path(os.path.realpath(name))):
                raise ConfigError(f"{place}: is an output, and {name} is read; choose another output.")
        for name in models:
            if name and _holds(Path(os.path.realpath(name)), place):
                raise ConfigError(f"{place}: is an output, and the model {name} is read; choose another output.")
    for one, other in combinations(written, 2):
        if _holds(one, other) or _holds(other, one):
            raise ConfigError(f"{one} and {other} are both outputs, and one is in the way of the other; move one.")


def _expanded(files: Iterable[str]) -> Iterator[str]:
    """Plain files only: a device or a pipe can be read and written."""
    for name in files:
        found = glob.iglob(name, recursive=True) if glob.has_magic(name) and not os.path.lexists(name) else [name]
        yield from (each for each in found if each != "-" and os.path.isfile(each))


def _holds(place: Path, other: Path) -> bool:
    """Whether the second, without links, is the first or lies in it."""
    if other.is_relative_to(place):
        return True
    found = _identity(place)
    return found is not None and found in (_identity(each) for each in (other, *other.parents))


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file or directory from all others, whatever its name; None for what is missing or a device."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return (found.st_dev, found.st_ino) if plain else None
