"""Machine code kept on disk: for each state of our sources a folder of its own, in which nobody else can have written.

What is kept is pickled, so it must be ours: the folder is private (ownership.py), and each file too. A file that is
missing, cut short or changed is as good as none: checksums tell, and the code is compiled again. One that cannot be
written is done without.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import llvmlite
import numba as nb
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

from hogwild.ownership import is_marked, mark, open_private, private_directory, random_name, remove_marked

SAFE_MATH = {"reassoc", "contract", "arcp", "nsz", "afn"}  # never nnan/ninf: we test for NaN
KIND = "hogwild code"
_NAME = re.compile(r"[0-9a-f]{16}")
_FILES = re.compile(r"[^/]+\.(nbi|nbc)(\.[0-9a-f]{16})?")
_DIGEST = hashlib.sha256().digest_size
_KEPT = 4  # folders of other states of the sources
_DAYS_KEPT = 30


def code_folder() -> Path | None:
    """Where compiled code lies: in the cache or, of NUMBA_CACHE_DIR, in a folder of our own; None if it is not kept."""
    from hogwild.config.places import cache_folder  # late: config is light, but only needed here

    if nb.config.CACHE_DIR:
        return cache_folder("hogwild", Path(nb.config.CACHE_DIR))
    return cache_folder("code")


@functools.cache
def code_cache() -> Path | None:
    """A directory of our own for each state of the kernel sources, compiler and flags; None if nothing is kept.

    Numba checks only the file that defines a function, not those of its callees, nor that of the bundles it takes: two
    fields of one type that change places would not be noticed.
    """
    folder = code_folder()
    if folder is None:
        return None
    ours = folder / state_of_sources(Path(__file__).parents[1])
    try:
        private_directory(ours)
        if not os.listdir(ours):
            with suppress(FileExistsError):
                mark(ours, KIND)
        os.utime(ours)  # used now
    except OSError:
        return None
    _prune(folder, ours)
    return ours


def state_of_sources(kernels: Path) -> str:
    """A name for what compiled code is made of."""
    files = [*sorted(kernels.rglob("*.py")), kernels.parent / "arrays.py"]
    sources = b"".join(path.read_bytes() for path in files)
    versions = nb.__version__, llvmlite.__version__, sys.version_info[:2]
    flags = repr((sorted(SAFE_MATH), nb.config.BOUNDSCHECK, versions, nb.config.CPU_FEATURES)).encode()
    return hashlib.sha256(sources + flags).hexdigest()[:16]


class Kept(NamedTuple):
    """The compiled code of one state of our sources; `used` in seconds since 1970."""

    name: str
    bytes: int
    used: float


def kept() -> list[Kept]:
    """All compiled code that is kept, the last used first."""
    folder = code_folder()
    found = []
    for path in _folders(folder) if folder else ():
        with suppress(OSError), os.scandir(path) as files:
            found.append(Kept(path.name, sum(file.stat().st_size for file in files), path.stat().st_mtime))
    return found


def clear() -> tuple[int, int]:
    """Remove all of it; how many states there were, and how many bytes. Processes that use it go on."""
    folder = code_folder()
    found = _folders(folder) if folder else []
    return len(found), sum(remove_marked(directory, KIND, _FILES) for directory in found)


def _prune(folder: Path, ours: Path) -> None:
    """Drop code of old versions; a run that still uses one simply compiles again."""
    with suppress(OSError):  # a cache that cannot be listed is not pruned
        others = [path for path in _folders(folder) if path != ours]
        old = [path for path in others if time.time() - path.stat().st_mtime > _DAYS_KEPT * 86400]
        for directory in {*others[_KEPT:], *old}:
            remove_marked(directory, KIND, _FILES)


def _folders(folder: Path) -> list[Path]:
    """The folders that we made, the last used first."""
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and is_marked(path, KIND)]
    return sorted(found, key=lambda path: -path.stat().st_mtime)


class KernelCache(FunctionCache):
    """The compiled forms of one function on disk, as Numba asks for them."""

    def __init__(self, py_func: Callable[..., Any], directory: Path) -> None:
        line = py_func.__code__.co_firstlineno
        name = f"{py_func.__module__}.{py_func.__qualname__}-{line}{_stamp(py_func)}".replace("<", "").replace(">", "")
        self._name, self._py_func, self._cache_path = repr(py_func), py_func, str(directory)
        self._impl = _Form(line, directory)
        self._cache_file = cast(Any, _Files(directory, name))
        self.enable()

    @property
    def is_kept(self) -> bool:
        """Whether there is code of the function on disk, for whichever types."""
        return bool(cast(Any, self._cache_file).exists())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever is wrong with it, it can be compiled again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for these types, if that is possible."""
        with suppress(OSError):
            super().save_overload(sig, data)


def _stamp(py_func: Callable[..., Any]) -> str:
    """What tells states of a file outside this package from one another: the name of the directory does not."""
    if py_func.__module__.startswith("hogwild."):
        return ""
    return "-" + hashlib.sha256(Path(py_func.__code__.co_filename).read_bytes()).hexdigest()[:16]


class _Form(CompileResultCacheImpl):
    """How compiled code becomes bytes."""

    def __init__(self, line: int, directory: Path) -> None:
        self._lineno = line
        self._py_file = str(directory)
        self._locator = self

    def ensure_cache_path(self) -> None:
        """The directory is there, or what is written to it is lost."""


class _Files:
    """An index, by types and processor, of files that are named by their content: a mix-up is found out.

    Two processes that compile at once may lose entries of each other's index, and compile again.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self._index = directory / f"{name}.nbi"

    def load(self, key: Any) -> Any:
        digest = self._entries().get(key)
        return None if digest is None else pickle.loads(_read(self._file(digest), digest))

    def save(self, key: Any, data: Any) -> None:
        content = dumps(data)
        digest = hashlib.sha256(content).digest()
        _write(self._file(digest), content)
        index = dumps({**self._entries(), key: digest})
        _write(self._index, hashlib.sha256(index).digest() + index)

    def exists(self) -> bool:
        """Whether something was kept."""
        return self._index.exists()

    def flush(self) -> None:
        """Forget all."""
        self._index.unlink(missing_ok=True)

    def _entries(self) -> dict[Any, bytes]:
        try:
            return dict(pickle.loads(_read(self._index)))
        except Exception:  # missing, cut short, not private: there is nothing that could be used
            return {}

    def _file(self, digest: bytes) -> Path:
        return self._directory / f"{self._name}.{digest.hex()[:16]}.nbc"


def _read(path: Path, digest: bytes | None = None) -> bytes:
    """The content of a file of ours, if it has this checksum or, without one, that which it begins with."""
    with open(open_private(path), "rb") as file:
        digest = digest or file.read(_DIGEST)
        content = file.read()
    if hashlib.sha256(content).digest() != digest:
        raise ValueError(f"{path} was changed")
    return content


def _write(path: Path, content: bytes) -> None:
    """Write a file of mode 600 beside, and rename it."""
    beside = path.with_name(f"{path.name}.{random_name()}")
    descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
