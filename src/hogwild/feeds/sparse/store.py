"""A feed on disk: a directory of raw arrays and `feed.json`. Written a chunk at a time, opened by mapping it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyRows, BinaryRows, Rows, SlotRows, ValuedSlotRows
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.parallel import in_all
from hogwild.feeds.io.source import Source
from hogwild.feeds.io.workspace import writing
from hogwild.feeds.sparse.encoder import Chunk, Encoder, Summary
from hogwild.feeds.sparse.features import settle
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.labelsets import check_sets
from hogwild.feeds.storage import cache
from hogwild.feeds.storage.arrayfiles import DTYPES, ArrayWriter, Damaged, map_arrays, read_header, title_of
from hogwild.feeds.storage.ranking import Frequencies
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.ranking import replace_ids
from hogwild.timeline import timed, timed_items

_ARRAYS = ("offsets", "ids", "values", "targets", "importance", "lines", "original", "slots", "dense")
Cells = npt.NDArray[Any]
_PIECE = 1 << 18  # items changed at a time
_ONES = np.ones(1 << 18, np.float32)


class FeedWriter(ArrayWriter):
    """Appends chunks to the files of a directory. Only `finish` makes a feed of it.

    Memory holds one chunk and, a feature, its count and rank.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.sizes.update(dict.fromkeys(_ARRAYS, 0))
        self.seen = Frequencies()  # how often each id occurs
        self._starts: list[tuple[int, int]] = []  # (file, first row of a run of its rows)
        self.write("offsets", np.zeros(1, np.int64))

    def add(self, chunk: Chunk) -> None:
        """Append the rows of a chunk."""
        entries = self.sizes["ids"]
        self.seen.add(chunk.ids)
        if len(chunk.values) and not self.sizes["values"]:
            self._write_ones("values", entries)  # until here all were 1
        if len(chunk.values):
            self.write("values", chunk.values)
        elif self.sizes["values"]:
            self._write_ones("values", len(chunk.ids))
        if not self._starts or self._starts[-1][0] != chunk.file:
            self._starts.append((chunk.file, self.sizes["targets"]))
        self.write("ids", chunk.ids)
        self.write("offsets", np.cumsum(chunk.lengths, dtype=np.int64) + entries)
        self.write("targets", chunk.targets)
        self.write("lines", chunk.lines)
        if chunk.weights is None:
            self._write_ones("importance", len(chunk.targets))
        else:
            self.write("importance", chunk.weights)
        if chunk.slots is not None:
            self.write("slots", chunk.slots)
        if chunk.dense is not None:
            self.write("dense", chunk.dense.reshape(-1))

    def finish(self, summary: Summary, sources: Sequence[Source], seen: Frequencies | None = None) -> None:
        """Rank the ids, and write what belongs to the whole; all is on disk when this returns.

        seen: how often each id occurs in all parts, where these are the rows of one.
        """
        if not self.sizes["targets"]:
            names = ", ".join(source.name for source in sources)
            raise InputError(f"{names}: no rows; is the file empty, or is this the right --format?")
        if len(summary.scales) and not self.sizes["values"]:
            self._write_ones("values", self.sizes["ids"])
        rank, original = (seen or self.seen).rank(summary.features, summary.first_id, summary.remap)
        self.write("original", original)
        header = {"features": summary.features, "labels": summary.labels, "schema": summary.schema,
                  "notes": summary.notes, "starts": self._starts, "sets": summary.sets,
                  "sources": [source.name for source in sources]}  # fmt: skip
        with writing(self.directory):
            self._settle(summary)
            first = summary.first_id
            _rewrite(self.directory / "ids", lambda ids, _, rank: ready(replace_ids, len(ids))(ids, rank, first), rank)
        self.seal(header)

    def _settle(self, summary: Summary) -> None:
        """Targets, values, dense columns and slots that are known only now."""

        def relabel(targets: Cells, place: int, final: Cells) -> None:
            targets[:] = final[targets.astype(np.int64)]

        def scale(values: Cells, place: int, factors: Cells) -> None:
            ids = np.memmap(self.directory / "ids", np.int32, "r", 4 * place, (len(values),))
            settle(values, ids - summary.first_id, np.asarray(summary.fills, np.float32), factors)

        def scale_dense(cells: Cells, place: int, factors: Cells) -> None:
            columns = np.arange(place, place + len(cells)) % len(factors)
            fills, shifts = (np.asarray(part, np.float32) for part in (summary.dense_fills, summary.dense_shifts))
            settle(cells, columns, fills, factors, shifts)

        def weigh(weights: Cells, place: int, factor: Cells) -> None:
            weights *= factor

        def factors_of(scales: Sequence[float], fills: Sequence[float]) -> Sequence[float]:
            return scales if len(scales) else [1.0] * len(fills)

        for name, settled, change in (
            ("targets", summary.relabel, relabel),
            ("values", factors_of(summary.scales, summary.fills), scale),
            ("dense", factors_of(summary.dense_scales, summary.dense_fills), scale_dense),
            ("slots", summary.remap_slots, relabel),
            ("importance", (summary.weight,) if summary.weight != 1 else (), weigh),
        ):
            if len(settled) and self.sizes[name]:
                _rewrite(self.directory / name, change, np.asarray(settled, DTYPES[name]))

    def _write_ones(self, name: str, count: int) -> None:
        for start in range(0, count, len(_ONES)):
            self.write(name, _ONES[: count - start])


def _rewrite(path: Path, change: Callable[[Cells, int, Cells], None], final: Cells) -> None:
    """Change the array in a file, a piece at a time on all cores: `change(piece, place of its first item, final)` works
    in place, and knows of no other piece."""
    dtype = np.dtype(DTYPES[path.name])
    items = os.path.getsize(path) // dtype.itemsize
    with open(path, "r+b", buffering=0) as file:

        def rewrite(place: int) -> None:
            piece = np.empty(min(_PIECE, items - place), dtype)
            if os.preadv(file.fileno(), [piece.data], place * dtype.itemsize) != piece.nbytes:
                raise OSError(f"{path.name} became shorter")
            change(piece, place, final)
            if os.pwrite(file.fileno(), piece.data, place * dtype.itemsize) != piece.nbytes:
                raise OSError(errno.ENOSPC, f"{path.name} could not be written whole")

        in_all(rewrite, range(0, items, _PIECE))


def _check_header(header: dict[str, Any]) -> None:
    """Raise Damaged unless the sizes of the arrays fit together."""
    try:
        rows, entries = header["arrays"]["targets"][1], header["arrays"]["ids"][1]
        expected = {"offsets": rows + 1, "importance": rows, "lines": rows, "original": header["features"]}
        if any(header["arrays"][name][1] != size for name, size in expected.items()):
            raise Damaged("its arrays do not fit together")
        if header["arrays"]["values"][1] not in (0, entries):
            raise Damaged("values do not fit ids")
        slots, dense = header["arrays"]["slots"][1], header["arrays"]["dense"][1]
        columns = len(header["schema"].get("dense", ()))
        if slots not in (0, entries) or dense != rows * columns:
            raise Damaged("slots or dense columns do not fit the rest")
    except (KeyError, TypeError) as error:
        raise Damaged(str(error)) from None


def _samples_of(arrays: Mapping[str, npt.NDArray[Any]], schema: Mapping[str, Any]) -> AnyRows:
    offsets, ids, values = arrays["offsets"], arrays["ids"], arrays["values"]
    targets, importance = arrays["targets"], arrays["importance"]
    binary = len(values) == 0 and len(ids) > 0
    if "slots" in schema:
        dense = arrays["dense"].reshape(len(targets), len(schema.get("dense", ())))
        slotted = SlotRows(offsets, ids, arrays["slots"], dense, targets, importance)
        return slotted if binary or not len(ids) else ValuedSlotRows(*slotted, values)
    return BinaryRows(offsets, ids, targets, importance) if binary else Rows(offsets, ids, values, targets, importance)


def map_feed(directory: Path, names: Sequence[str], fingerprint: str) -> Feed:
    """Map the arrays of a directory. `names` are those of its sources as they are called now. Raises Damaged."""
    header = read_header(directory)
    _check_header(header)
    arrays = map_arrays(directory, header)
    offsets, ids = arrays["offsets"], arrays["ids"]
    if offsets[0] != 0 or offsets[-1] != len(ids):
        raise Damaged("offsets do not fit ids")
    try:
        sets = check_sets(header.get("sets", ()), len(header["labels"]))
        if sets and not 0 <= arrays["targets"].min(initial=0) <= arrays["targets"].max(initial=0) < len(sets):
            raise ValueError("no such set")
    except (TypeError, ValueError) as error:
        raise Damaged(str(error)) from None
    return Feed(_samples_of(arrays, header["schema"]), features=header["features"], original=arrays["original"],
                labels=tuple(header["labels"]), schema=header["schema"], notes=tuple(header["notes"]),
                source=title_of(names, "rows"), fingerprint=fingerprint, lines=arrays["lines"],
                files=tuple((names[file], row) for file, row in header["starts"]), sets=sets)  # fmt: skip


# -- in the cache -----------------------------------------------------------------------------------------------------

def key_of(encoder: Encoder, sources: Sequence[Source], config: FeedConfig, schema: Mapping[str, Any]) -> str:
    """What identifies an encoded feed: the content of its files, the options that matter, the schema, our format.

    The format in `config` must be the one that was found, not `auto`.
    """
    options = asdict(config)
    del options["cache"]
    wanted = ("format", *getattr(encoder, "options", options))
    content = {"encoder": type(encoder).__name__, "options": {name: options[name] for name in wanted},
               "schema": {name: part for name, part in schema.items() if name != "names"}}  # fmt: skip
    if hasattr(encoder, "described"):
        content["described"] = encoder.described
    return cache.key_from(content, sources)


def make_feed(
    encoder: Encoder, sources: Sequence[Source], key: str, keep: bool = True, again: Callable[[], Encoder] | None = None
) -> Feed:
    """Encode the sources and open the result; see `make_entry`.

    again: makes another such encoder, for when the first has begun and must be left; it remembers what it has seen.
    """
    fresh = [encoder]

    def write(workspace: Path) -> None:
        once = fresh.pop() if fresh or again is None else again()
        with FeedWriter(workspace) as writer:
            writer.lasting = keep
            for chunk in timed_items("parse", once.chunks(sources)):
                writer.add(chunk)
            with timed("rank"):
                writer.finish(once.summary(), sources)

    return cache.make_entry(write, sources, key, map_feed, keep)
