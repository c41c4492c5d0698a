"""A feed on disk: a directory of raw arrays and `feed.json`. Written a chunk at a time, opened by mapping it."""

from __future__ import annotations

import errno
import json
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.arrays import BinaryRows, Rows
from hogwild.errors import HogwildError, InputError
from hogwild.feeds.chunk import Chunk, Summary
from hogwild.feeds.feed import Feed
from hogwild.feeds.ranking import Frequencies
from hogwild.feeds.source import Source
from hogwild.feeds.workspace import writing
from hogwild.kernels.ranking import replace_ids

VERSION = 1
HEADER = "feed.json"
DTYPES = {
    "offsets": "int64", "ids": "int32", "values": "float32", "targets": "float32", "importance": "float32",
    "lines": "int64", "original": "int32",
}
_PIECE = 1 << 20  # items changed at a time
_ONES = np.ones(1 << 18, np.float32)
# Linux: pages that are never written need no memory set aside, so that data may be larger than memory.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


class FeedWriter:
    """Appends chunks to the files of a directory. Only `finish` makes a feed of it.

    Memory holds one chunk and, a feature, its count and rank.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._files: dict[str, BinaryIO] = {}
        self._sizes = dict.fromkeys(DTYPES, 0)
        self._seen = Frequencies()
        self._starts: list[tuple[int, int]] = []  # (file, first row of a run of its rows)
        self._write("offsets", np.zeros(1, np.int64))

    def add(self, chunk: Chunk) -> None:
        """Append the rows of a chunk."""
        entries = self._sizes["ids"]
        self._seen.add(chunk.ids)
        if len(chunk.values) and not self._sizes["values"]:
            self._write_ones("values", entries)  # until here all were 1
        if len(chunk.values):
            self._write("values", chunk.values)
        elif self._sizes["values"]:
            self._write_ones("values", len(chunk.ids))
        if not self._starts or self._starts[-1][0] != chunk.file:
            self._starts.append((chunk.file, self._sizes["targets"]))
        self._write("ids", chunk.ids)
        self._write("offsets", np.cumsum(chunk.lengths, dtype=np.int64) + entries)
        self._write("targets", chunk.targets)
        self._write("lines", chunk.lines)
        self._write_ones("importance", len(chunk.targets))

    def finish(self, summary: Summary, sources: Sequence[Source]) -> None:
        """Rank the ids, and write what belongs to the whole; all is on disk when this returns."""
        if not self._sizes["targets"]:
            names = ", ".join(source.name for source in sources)
            raise InputError(f"{names}: no rows; is the file empty, or is this the right --format?")
        if len(summary.scales) and not self._sizes["values"]:
            self._write_ones("values", self._sizes["ids"])
        rank, original = self._seen.rank(summary.features, summary.first_id)
        self._write("original", original)
        header = {
            "version": VERSION,
            "arrays": {name: [DTYPES[name], size] for name, size in self._sizes.items()},
            "features": summary.features,
            "labels": summary.labels,
            "schema": summary.schema,
            "notes": summary.notes,
            "starts": self._starts,
            "sources": [source.name for source in sources],
        }
        with writing(self.directory):
            self._settle(summary)
            _rewrite(self.directory / "ids", DTYPES["ids"], lambda ids, _: replace_ids(ids, rank, summary.first_id))
            self.close(sync=True)
            with open(self.directory / HEADER, "w", encoding="utf-8") as file:
                json.dump(header, file, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())

    def _settle(self, summary: Summary) -> None:
        """Targets and values that are known only now."""
        if len(summary.relabel):
            final = np.asarray(summary.relabel, np.float32)

            def relabel(targets: npt.NDArray[Any], place: int) -> None:
                targets[:] = final[targets.astype(np.int64)]

            _rewrite(self.directory / "targets", DTYPES["targets"], relabel)
        if len(summary.scales):
            factors = np.asarray(summary.scales, np.float32)
            ids = np.memmap(self.directory / "ids", np.int32, "r")

            def scale(values: npt.NDArray[Any], place: int) -> None:
                features = ids[place : place + len(values)] - summary.first_id
                covered = features < len(factors)
                values[covered] *= factors[features[covered]]

            _rewrite(self.directory / "values", DTYPES["values"], scale)

    def close(self, sync: bool = False) -> None:
        """Close the files."""
        for file in self._files.values():
            if sync:
                os.fsync(file.fileno())
            file.close()
        self._files = {}

    def _write(self, name: str, array: npt.NDArray[Any]) -> None:
        data = np.ascontiguousarray(array, dtype=DTYPES[name])
        with writing(self.directory):
            if name not in self._files:
                self._files[name] = open(self.directory / name, "wb", buffering=0)  # noqa: SIM115
            rest = data.data.cast("B")
            while len(rest):
                rest = rest[self._files[name].write(rest) :]
        self._sizes[name] += len(data)

    def _write_ones(self, name: str, count: int) -> None:
        for start in range(0, count, len(_ONES)):
            self._write(name, _ONES[: count - start])


def _rewrite(path: Path, dtype: str, change: Callable[[npt.NDArray[Any], int], None]) -> None:
    """Change the array in a file, a piece at a time: `change(piece, place of its first item)` works in place."""
    room = np.empty(_PIECE, dtype)
    items = os.path.getsize(path) // room.itemsize
    with open(path, "r+b") as file:
        for place in range(0, items, _PIECE):
            piece = room[: items - place]
            file.seek(place * room.itemsize)
            if file.readinto(piece.data) != piece.nbytes:
                raise OSError(f"{path.name} became shorter")
            change(piece, place)
            file.seek(place * room.itemsize)
            file.write(piece.data)


def write_feed(chunks: Iterable[Chunk], directory: Path) -> FeedWriter:
    """Write all chunks; the caller calls `finish` with the summary."""
    writer = FeedWriter(directory)
    try:
        for chunk in chunks:
            writer.add(chunk)
    except BaseException:
        writer.close()
        raise
    return writer


class Damaged(Exception):
    """A directory is not a complete feed."""


def read_header(directory: Path) -> dict[str, Any]:
    """The contents of feed.json after checking that every array has its size. Raises Damaged."""
    try:
        header: dict[str, Any] = json.loads((directory / HEADER).read_text(encoding="utf-8"))
        if header["version"] != VERSION:
            raise Damaged(f"it has version {header['version']}, not {VERSION}")
        for name, (dtype, size) in header["arrays"].items():
            if dtype != DTYPES[name]:
                raise Damaged(f"{name} is {dtype}")
            if size and os.path.getsize(directory / name) != size * np.dtype(dtype).itemsize:
                raise Damaged(f"{name} has the wrong size")
        rows, entries = header["arrays"]["targets"][1], header["arrays"]["ids"][1]
        expected = {"offsets": rows + 1, "importance": rows, "lines": rows, "original": header["features"]}
        if any(header["arrays"][name][1] != size for name, size in expected.items()):
            raise Damaged("its arrays do not fit together")
        if header["arrays"]["values"][1] not in (0, entries):
            raise Damaged("values do not fit ids")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(str(error)) from None
    return header


def map_feed(directory: Path, names: Sequence[str], fingerprint: str) -> Feed:
    """Map the arrays of a directory. `names` are those of its sources as they are called now. Raises Damaged."""
    header = read_header(directory)
    try:
        arrays = {name: _map(directory / name, dtype, size) for name, (dtype, size) in header["arrays"].items()}
    except OSError as error:
        if error.errno == errno.ENOMEM:  # the entry is whole, and must stay
            size = sum(size * np.dtype(dtype).itemsize for dtype, size in header["arrays"].values())
            raise HogwildError(
                f"{size / 1e9:.1f} GB of encoded data do not fit the addresses that this process may use; raise the "
                "limit (`ulimit -v unlimited`)."
            ) from error
        raise Damaged(str(error)) from None
    offsets, ids, values = arrays["offsets"], arrays["ids"], arrays["values"]
    targets, importance = arrays["targets"], arrays["importance"]
    if offsets[0] != 0 or offsets[-1] != len(ids):
        raise Damaged("offsets do not fit ids")
    binary = len(values) == 0 and len(ids) > 0
    return Feed(
        BinaryRows(offsets, ids, targets, importance) if binary else Rows(offsets, ids, values, targets, importance),
        features=header["features"],
        original=arrays["original"],
        labels=tuple(header["labels"]),
        schema=header["schema"],
        notes=tuple(header["notes"]),
        source=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
        fingerprint=fingerprint,
        lines=arrays["lines"],
        files=tuple((names[file], row) for file, row in header["starts"]),
    )


def _map(path: Path, dtype: str, size: int) -> npt.NDArray[Any]:
    """Map a file privately: what is written to the array never reaches the file.

    Not read-only, because compiled code would then be compiled once more for read-only arrays.
    """
    if not size:
        return np.empty(0, dtype)
    length = size * np.dtype(dtype).itemsize
    with open(path, "rb") as file:
        private = mmap.MAP_PRIVATE | _NO_RESERVE
        try:
            memory = mmap.mmap(file.fileno(), length, flags=private, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except OSError:  # a system that sets memory aside all the same
            memory = mmap.mmap(file.fileno(), length, prot=mmap.PROT_READ)
    return np.frombuffer(memory, dtype)
