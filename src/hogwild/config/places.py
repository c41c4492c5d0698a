"""Where things are kept that can be made again."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from pathlib import Path

from hogwild.errors import ConfigError, HogwildWarning
from hogwild.ownership import SharedError, private_directory

_said: set[str] = set()  # each reason once a process
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LIMIT = 20 * 10**9
_SHARE = 0.1
_REMEDY = "set HOGWILD_CACHE to a directory of your own"


def cache_home() -> Path:
    """Where this package keeps what it can make again: HOGWILD_CACHE, else the user's cache directory."""
    chosen = os.environ.get("HOGWILD_CACHE")
    if chosen:
        return Path(chosen)
    standard = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(standard):  # as its specification says, a relative one is ignored
        try:
            standard = str(Path.home() / ".cache")
        except RuntimeError:
            raise ConfigError(f"the home directory cannot be found; set HOME, or {_REMEDY}.") from None
    return Path(standard) / "hogwild"


def cache_folder(name: str, home: Path | None = None) -> Path | None:
    """A folder of the cache that nobody else can write to, made where it is missing.

    None where there is none: others could have written what is in it, or it cannot be written. A warning says why; what
    would be kept there is made anew.

    home: where else than in the cache it lies; that may belong to other programs.
    """
    try:
        path = (home or private_directory(cache_home())) / name
        path = private_directory(path)
        if os.access(path, os.W_OK | os.X_OK):
            return path
        reason = f"{path} cannot be written"
    except ConfigError as error:
        reason = str(error).split(";")[0]
    except SharedError as error:
        reason = str(error.strerror)
    except OSError as error:
        reason = f"{error.filename or cache_home()} cannot be made ({error.strerror})"
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"{reason}, so that the cache is not used; {_REMEDY}.", HogwildWarning, stacklevel=2)
    return None


def cache_limit(folder: Path) -> int:
    """Bytes that encoded data may take in all: HOGWILD_CACHE_SIZE, else 20 GB, of a small disk a tenth.

    >>> import os, pathlib
    >>> os.environ["HOGWILD_CACHE_SIZE"] = "1.5 GB"
    >>> cache_limit(pathlib.Path.cwd())
    1500000000
    >>> del os.environ["HOGWILD_CACHE_SIZE"]
    """
    chosen = os.environ.get("HOGWILD_CACHE_SIZE", "")
    if not chosen:
        return min(_LIMIT, int(shutil.disk_usage(folder).total * _SHARE))
    match = _SIZE.fullmatch(chosen.strip())
    if match is None:
        raise ConfigError(f"HOGWILD_CACHE_SIZE is {chosen[:40]!r}; write for example 500MB, 20GB or 0.")
    return int(float(match[1]) * _UNITS[match[2].lower()])
