"""A sealed directory: its `config.json` vouches for the size and checksum of every other file in it.

Models and checkpoints are sealed directories. Beside `config.json` there are arrays (`*.safetensors`) and long lists
of words, which are taken out of the configuration into text files (`vocabulary-N.txt`).
Reading executes nothing, follows no link, and checks sizes and checksums before anything is made of the bytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.errors import ModelError, SaveError, brief, shorten
from hogwild.programs.saving.directory import Check, check_output, find, remove_directory, replace_directory, stands
from hogwild.programs.saving.tensors import Arrays, Buffer, decode, encode, parse_object

# -- A vocabulary as UTF-8 text: one entry a line; backslash, line feed and carriage return are written \\, \n and \r --


_MEANING = {"\\": "\\", "n": "\n", "r": "\r"}
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.?)")


def encode_entries(entries: Sequence[str]) -> bytes:
    r"""Each entry and a line feed. Half of a surrogate pair, which UTF-8 cannot hold, becomes \udc80.

    >>> encode_entries(["a b", "two\nlines"])
    b'a b\ntwo\\nlines\n'
    """
    joined = "".join(f"{entry}\n" for entry in entries)
    if "\\" not in joined and "\r" not in joined and joined.count("\n") == len(entries):
        return joined.encode("utf-8", errors="backslashreplace")
    lines = (entry.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") + "\n" for entry in entries)
    return "".join(lines).encode("utf-8", errors="backslashreplace")


def decode_entries(mapped: bytes | mmap.mmap, where: str) -> list[str]:
    """The entries that `encode_entries` wrote; `where` begins the error message."""
    text = bytes(mapped)
    try:
        *lines, rest = text.decode("utf-8").split("\n")
        if rest:
            raise ValueError("the last line does not end")
        if b"\\" not in text:
            return lines
        return [_ESCAPED.sub(_unescape, line) if "\\" in line else line for line in lines]
    except ValueError as error:
        raise ModelError(f"{where}: not a vocabulary ({error}); copy it again from where it was made.") from None


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    if code not in _MEANING:
        raise ValueError(f"{match[0]!r} means nothing here")
    return _MEANING[code]


# -- What a directory holds -------------------------------------------------------------------------------------------


VERSION = 2  # since 2 a CRF may leave zeros out
SMALL_VERSION = 3  # of models with small cells: see cells.py
CONFIG = "config.json"
CONFIG_LIMIT = 16 << 20
"""Bytes of the longest config.json that is read or written."""
_WORDS_INSIDE = 16  # a longer list of words becomes a file of its own
_PIECE = 16 << 20  # bytes written and hashed at a time
_MISSES = 10  # times that nothing may be found, 2 ms apart, before it is taken to be missing
_READS = 100  # times that a directory may be replaced while it is read
_NAME = re.compile(r"[a-z]+\.safetensors|vocabulary-\d+\.txt")
T = TypeVar("T")


@dataclass(frozen=True)
class Sealed:
    """What a sealed directory holds: its configuration, and arrays by file and name.

    The arrays are private views of the mapped files: they may be written to, and never change the files.
    """

    config: dict[str, Any]
    arrays: dict[str, dict[str, npt.NDArray[Any]]]


@dataclass(frozen=True)
class Mapped:
    """A sealed directory that is open, but of which only `config.json` has been read.

    arrays: by file and name, views of the mapped files that cannot be written to.
    lists: long lists of words by their place in the configuration, where None stands; each is read when called.
    """

    config: dict[str, Any]
    arrays: dict[str, dict[str, npt.NDArray[Any]]]
    lists: dict[tuple[str | int, ...], Callable[[], list[str]]]


# -- writing ----------------------------------------------------------------------------------------------------


def write_sealed(
    path: Path, kind: str, config: Mapping[str, Any], arrays: Mapping[str, Arrays], version: int = VERSION
) -> None:
    """Replace the directory `path` in one step by one that holds `config` and a file for each group of arrays.

    version: of the format, the oldest that has all that is written, so that older programs read what they can.
    """

    def fill(new: Path) -> None:
        lists: dict[str, Any] = {}
        inside = _take_lists_out(dict(config), [], lists)
        files = {name: _write(new / name, encode(group)) for name, group in arrays.items()}
        for name, (_, entries) in lists.items():
            files[name] = _write(new / name, [encode_entries(entries)])
        places = {name: place for name, (place, _) in lists.items()}
        whole = {"format": _format(kind), "version": version, **inside, "vocabularies": places, "files": files}
        # Half of a surrogate pair, which UTF-8 cannot hold, is escaped as JSON escapes it.
        text = json.dumps(whole, indent=2, ensure_ascii=False, default=plain).encode("utf-8", "backslashreplace")
        if len(text) > CONFIG_LIMIT:
            raise SaveError(f"cannot save to {path}: options and schema take {len(text):,} bytes; use fewer columns.")
        _write(new / CONFIG, [text])

    replace_directory(path, fill, ours_only(path, kind))


def check_sealed_output(path: Path, kind: str) -> None:
    """Raise SaveError before a long training for what would keep `write_sealed` from writing."""
    check_output(path, ours_only(path, kind))


def remove_sealed(path: Path, kind: str) -> None:
    """Remove what `write_sealed` wrote."""
    remove_directory(path, ours_only(path, kind))


def ours_only(path: Path, kind: str) -> Check:
    """The check that all that is in a directory is ours to replace."""
    return lambda directory: _check_ours(directory, path, kind)


def _check_ours(directory: int, path: Path, kind: str) -> None:
    """Raise SaveError unless it is. path: what messages call it."""
    config: dict[str, Any] = {}
    with suppress(OSError, ModelError), open(CONFIG, "rb", opener=partial(_open_plain, directory)) as file:
        config = parse_object(file.read(CONFIG_LIMIT), CONFIG)
    if config.get("format") != _format(kind):
        raise SaveError(f"{path} is not a {kind} of hogwild and stays as it is; choose another place or move it away.")
    files = config.get("files")
    known = {CONFIG, ".DS_Store", *(name for name in files or () if isinstance(files, dict) and _NAME.fullmatch(name))}
    for name in sorted(os.listdir(directory)):
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if name not in known or not stat.S_ISREG(mode):
            raise SaveError(f"{path} also holds {name!r}, which is not part of the {kind}; move it elsewhere first.")


def _open_plain(directory: int, name: str, flags: int) -> int:
    """Open a plain file of a directory: no link is followed, and no pipe's writer waited for."""
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", name)
    return descriptor


def _format(kind: str) -> str:
    return f"hogwild {kind}"


def _take_lists_out(value: Any, place: list[str | int], lists: dict[str, Any]) -> Any:
    """`value` with None for each long list of words; `lists` gets place and list by file name."""
    if isinstance(value, Mapping):
        return {key: _take_lists_out(item, [*place, key], lists) for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if len(value) > _WORDS_INSIDE and all(isinstance(item, str) for item in value):
        lists[f"vocabulary-{len(lists) + 1}.txt"] = (place, value)
        return None
    return [_take_lists_out(item, [*place, number], lists) for number, item in enumerate(value)]


def plain(value: Any) -> Any:
    """A JSON value for a number or array of NumPy's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    kind = type(value).__name__
    raise SaveError(f"cannot save a {kind}, {value!r:.80}; options and schema of a program hold JSON values only.")


def _write(path: Path, buffers: Iterable[Buffer]) -> dict[str, Any]:
    """Write a file through to the disk; returns its size and checksum."""
    digest, size = hashlib.sha256(), 0
    with open(path, "xb") as file:
        for buffer in buffers:
            for begin in range(0, len(buffer), _PIECE):
                piece = buffer[begin : begin + _PIECE]
                digest.update(piece)
                file.write(piece)
            size += len(buffer)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": size, "sha256": digest.hexdigest()}


# -- reading ----------------------------------------------------------------------------------------------------


def read_sealed(path: Path, kind: str) -> Sealed:
    """Read and check a directory that `write_sealed` made. Raises FileNotFoundError when nothing is there."""
    mapped = _opened(path, kind, lambda directory: _map_all(directory, path, kind, mmap.ACCESS_COPY, verify=True))
    _put_lists_back(mapped)
    return Sealed(mapped.config, mapped.arrays)


def map_sealed(path: Path, kind: str, verify: bool = False) -> Mapped:
    """Open a directory that `write_sealed` made without reading it: milliseconds, however large it is.

    All sizes are checked, those in the headers of arrays too; checksums only with `verify`.
    """
    return _opened(path, kind, lambda directory: _map_all(directory, path, kind, mmap.ACCESS_READ, verify))


def _opened(path: Path, kind: str, read: Callable[[int], T]) -> T:
    """What `read` makes of the open directory, tried again where a save replaces it meanwhile."""
    for attempt in range(_READS):
        place = find(path)
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if attempt >= _MISSES:
                raise
            time.sleep(0.002)  # perhaps between two renames of a save: the new one is about to stand there
            continue
        except NotADirectoryError:
            raise ModelError(f"{path}: is a file, not the directory of a {kind}.") from None
        except PermissionError:
            raise ModelError(f"{path}: may not be read by you; ask its owner.") from None
        except (OSError, ValueError) as error:  # a name that no file can have, a loop of links
            raise ModelError(f"{shorten(path)}: cannot be opened: {getattr(error, 'strerror', error)}.") from None
        try:
            return read(descriptor)
        except FileNotFoundError as error:
            if stands(find(path), descriptor, follow=True):
                raise ModelError(
                    f"{path}: {error.filename} is missing, so this is no complete {kind}; give the directory of one."
                ) from None
            # Replaced while we read: the old files are gone, the new ones are complete.
        finally:
            os.close(descriptor)
    raise ModelError(f"{path}: is replaced faster than it can be read; try again.")


def _map_all(directory: int, path: Path, kind: str, access: int, verify: bool) -> Mapped:
    config = parse_object(bytes(_map(directory, CONFIG, path, limit=CONFIG_LIMIT)), f"{path / CONFIG}")
    _check_format(config, path / CONFIG, kind)
    arrays, texts = {}, {}
    for name, seal in _files(config, path / CONFIG).items():
        where = f"{path / name}"
        content = _map(directory, name, path, expected=seal["bytes"], access=access)
        if verify and hashlib.sha256(content).hexdigest() != seal["sha256"]:
            raise ModelError(f"{where}: wrong checksum, so the file was changed; copy it again from where it was made.")
        if name.endswith(".safetensors"):
            arrays[name] = decode(content, where)
        else:
            texts[name] = content
    places = config.pop("vocabularies", None)
    if not isinstance(places, dict) or set(places) != set(texts):
        raise ModelError(f"{path / CONFIG}: `vocabularies` does not fit `files`; copy the directory again.")
    lists: dict[tuple[str | int, ...], Callable[[], list[str]]] = {}
    for name, place in places.items():
        if not _is_free(place, config) or tuple(place) in lists:
            raise ModelError(f"{path / CONFIG}: there is no place for {name}; copy the directory again.")
        lists[tuple(place)] = partial(decode_entries, texts[name], f"{path / name}")
    return Mapped(config, arrays, lists)


def _is_free(place: Any, config: dict[str, Any]) -> bool:
    """Whether None stands at this place of the configuration, which is a list of keys."""
    try:
        value: Any = config
        for key in place:
            value = value[key]
    except (LookupError, TypeError):
        return False
    return isinstance(place, list) and value is None


def _check_format(config: dict[str, Any], where: Path, kind: str) -> None:
    found, version = config.get("format"), config.get("version")
    if not isinstance(found, str) or not found.startswith("hogwild "):
        raise ModelError(f"{where}: not written by hogwild; give the directory of a {kind}.")
    if found != _format(kind):
        raise ModelError(f"{where}: this is a {found.removeprefix('hogwild ')[:40]}, not a {kind}.")
    if type(version) is not int or version < 1:
        raise ModelError(f"{where}: the format version is {brief(version)}; copy the file again.")
    if version > SMALL_VERSION:
        known = f"but this hogwild reads up to {SMALL_VERSION}; upgrade hogwild"
        raise ModelError(f"{where}: format version {version}, {known}.")


def _files(config: dict[str, Any], where: Path) -> dict[str, dict[str, Any]]:
    """The files that config.json vouches for, after a check that they are plain names with a size and a checksum."""
    files = config.get("files")
    for name, seal in files.items() if isinstance(files, dict) else [("", None)]:
        sealed = isinstance(seal, dict) and type(seal.get("bytes")) is int and isinstance(seal.get("sha256"), str)
        if not _NAME.fullmatch(name) or not sealed:
            raise ModelError(f"{where}: the file {brief(name)} cannot be one of ours; do not trust this directory.")
    return files or {}


def _map(
    directory: int, name: str, path: Path, limit: int | None = None, expected: int | None = None,
    access: int = mmap.ACCESS_COPY,
) -> mmap.mmap | bytes:  # fmt: skip
    """The bytes of a regular file of the directory, mapped so that nothing can be written to the file."""
    where = path / name
    try:
        # O_NONBLOCK: opening a pipe must not wait for its writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        link = stat.S_ISLNK(os.lstat(name, dir_fd=directory).st_mode)
        reason = "is a link; models hold plain files" if link else f"cannot be read: {error.strerror}"
        raise ModelError(f"{where}: {reason}.") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ModelError(f"{where}: is not a plain file; do not trust this directory.")
        if limit is not None and found.st_size > limit:
            raise ModelError(f"{where}: {found.st_size:,} bytes are too many to be ours; do not trust this directory.")
        if expected is not None and found.st_size != expected:
            raise ModelError(
                f"{where}: {found.st_size:,} bytes where {CONFIG} says {expected:,}, so the file was cut short or "
                "changed; copy it again from where it was made."
            )
        return mmap.mmap(descriptor, found.st_size, access=access) if found.st_size else b""
    finally:
        os.close(descriptor)


def _put_lists_back(mapped: Mapped) -> None:
    """Undo `_take_lists_out`."""
    for (*parents, last), entries in mapped.lists.items():
        parent: Any = mapped.config
        for key in parents:
            parent = parent[key]
        parent[last] = entries()
