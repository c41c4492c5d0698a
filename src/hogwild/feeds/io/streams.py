"""Byte streams: files as they are, decompressed by what their first bytes say, or sent through a user's command."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import signal
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, cast

from hogwild.errors import InputError
from hogwild.messages import here, remedy

BUFFER = 1 << 20
MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
Layers = tuple[io.BufferedIOBase, ...]
SUFFIXES = (".gz", ".xz", ".zst", ".zstd", ".bz2")


def uncompressed(path: str | PurePath) -> PurePath:
    """The name that a file has when it is not compressed.

    >>> uncompressed("data/clicks.txt.gz").as_posix()
    'data/clicks.txt'
    """
    bare = PurePath(path)
    while bare.suffix.lower() in SUFFIXES:
        bare = bare.with_suffix("")
    return bare


def compression_of(head: bytes) -> str:
    """Name of the compression that a file with these first bytes has; empty if none."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


def open_file(path: Path, name: str) -> BinaryIO:
    """Open a file for reading, or say in one line why not."""
    try:
        if path.is_dir():
            raise InputError(f"{name} is a directory; name a file, or the files in it with `{name}/*`.")
        return open(path, "rb", buffering=0)  # the caller closes it
    except FileNotFoundError:
        raise InputError(f"{name} does not exist; check the path ({here()}).") from None
    except PermissionError:
        raise InputError(f"{name} cannot be read: permission denied; change its permissions (chmod +r).") from None
    except OSError as error:
        what = remedy(error, "check the file")
        raise InputError(f"{name} cannot be read: {error.strerror or error}; {what}.") from None


class Stream(io.RawIOBase):
    """Decoded bytes of one file: first `head`, which has been read already, then what `inner` gives.

    What goes wrong inside is an InputError that names the file. Closing it closes `layers` too.
    """

    def __init__(self, inner: IO[bytes], name: str, compression: str = "", head: bytes = b"", layers: Layers = ()):
        self._inner = inner
        self._name = name
        self._compression = compression
        self._head = memoryview(head)
        self._layers = layers

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        if self._head:
            target = memoryview(cast(bytearray, buffer))
            count = min(len(target), len(self._head))
            target[:count] = self._head[:count]
            self._head = self._head[count:]
            return count
        try:
            return self._inner.readinto(buffer)  # type: ignore[attr-defined, no-any-return]
        except EOFError:
            raise self._damaged("ends too early") from None
        except (zlib.error, lzma.LZMAError) as error:
            raise self._damaged(f"is damaged ({error})") from None
        except OSError as error:
            if self._compression:
                early = "truncated" in str(error).lower()
                raise self._damaged("ends too early" if early else f"is damaged ({error})") from None
            raise InputError(f"{self._name} cannot be read: {error.strerror or error}.") from None

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            for layer in self._layers:
                layer.close()
        super().close()

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{self._name}: the {self._compression} data {what}; copy or download the file again.")


def read_fully(stream: IO[bytes], count: int) -> bytes:
    """Up to `count` bytes; fewer only at the end of the stream."""
    parts: list[bytes] = []
    while count > 0 and (part := stream.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def decoded(raw: IO[bytes], name: str) -> BinaryIO:
    """The stream decompressed if its first bytes say that it is compressed, else as it is."""
    head = read_fully(raw, 6)
    compression = compression_of(head)
    whole = Stream(raw, name, head=head)
    if not compression:
        return cast(BinaryIO, whole)
    buffered = io.BufferedReader(whole, BUFFER)
    inner = cast(IO[bytes], _DECODERS[compression](buffered))
    return cast(BinaryIO, Stream(inner, name, compression, layers=(buffered,)))


def _zstd(buffered: Any) -> Any:
    import pyarrow  # late: slow to import, and rarely needed for this

    return pyarrow.CompressedInputStream(buffered, "zstd")


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "gzip": lambda buffered: gzip.GzipFile(fileobj=buffered),
    "xz": lzma.LZMAFile,
    "bz2": bz2.BZ2File,
    "zstd": _zstd,
}


class Piped(io.RawIOBase):
    """Standard output of a shell command that reads one file. Its failure is an InputError at the end of the data."""

    def __init__(self, command: str, file: BinaryIO, name: str) -> None:
        self._command = command
        self._name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        # A session of its own: closing early ends the whole pipeline of the command and nothing else.
        self._process = subprocess.Popen(
            command, shell=True, stdin=file, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0,
            start_new_session=True,
        )
        file.close()
        assert self._process.stdout is not None
        self._output = self._process.stdout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        count: int = self._output.readinto(buffer)  # type: ignore[attr-defined]
        if not count:
            self._check()
        return count

    def close(self) -> None:
        if not self.closed:
            self._output.close()
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()
            self._errors.close()
        super().close()

    def _check(self) -> None:
        code = self._process.wait()
        if code == 0:
            return
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4096))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = f": {lines[-1].strip()}" if lines else ""
        ended = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
        raise InputError(f"{self._name}: the command `{self._command}` {ended}{said}. Correct --pipe.")
