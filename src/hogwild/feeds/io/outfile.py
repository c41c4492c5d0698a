"""One file, written beside and renamed: under its name stands the old one or the whole new one."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hogwild.errors import SaveError
from hogwild.messages import data_output, output_failed, remedy
from hogwild.ownership import keep_permissions, random_name


@contextlib.contextmanager
def write_file(name: str) -> Iterator[BinaryIO]:
    """A stream for the bytes of the file `name`: `-` is standard output; `.gz`, `.xz` and `.zst` are compressed."""
    if name == "-":
        stream = data_output()
        try:
            yield stream
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SaveError(output_failed(error)) from error
        return
    path = Path(name)
    with _saving(name), contextlib.suppress(FileNotFoundError):
        os.stat(path)  # a loop of links is an error of the system, which realpath keeps for itself
    if path.exists() and not path.is_file():  # a device or a pipe: there is nothing to replace
        if path.is_dir():
            raise SaveError(f"{name} is a directory; give the name of a file.")
        with _saving(name), path.open("wb") as stream:
            yield stream
        return
    with _saving(name):
        path = Path(os.path.realpath(path))  # a link stays, and what it points to is replaced
        old = path.stat() if path.exists() else None
    beside = path.with_name(f".{path.name}.hogwild-{random_name()}")
    # Nobody may read it before it has the rights of the old one.
    opener = partial(os.open, mode=0o666 if old is None else 0o600)
    try:
        with _saving(name), open(beside, "xb", opener=opener) as file:
            with _packed(name, file) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())
        with _saving(name):
            if old is not None:
                keep_permissions(beside, old)
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def _packed(name: str, file: BinaryIO) -> Iterator[BinaryIO]:
    """The stream that compresses into the file as its name says."""
    packer: Any
    if name.endswith(".gz"):
        # No time stamp and no name: the same data gives the same bytes.
        packer = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    elif name.endswith(".xz"):
        packer = lzma.LZMAFile(file, "wb", preset=1)  # noqa: SIM115
    elif name.endswith(".zst"):
        import pyarrow as pa

        # It closes the file that it is given: a second handle of the same file.
        again = os.fdopen(os.dup(file.fileno()), "wb")
        packer = pa.CompressedOutputStream(pa.PythonFile(again, "w"), "zstd")
    else:
        yield file
        return
    with packer:
        yield packer


@contextlib.contextmanager
def _saving(name: str) -> Iterator[None]:
    """Errors of the disk, not those of whoever makes the bytes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"{error.strerror or error}; {remedy(error, 'choose another place')}"
        raise SaveError(f"{name}: {reason}. What stood there is untouched.") from error
