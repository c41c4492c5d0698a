"""A corpus on disk: the ids of its words, its vocabulary, and a header."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.arrays import Ids, Offsets, Tokens
from hogwild.feeds.corpus.corpus import Corpus
from hogwild.feeds.storage.arrayfiles import ArrayWriter, Damaged, map_arrays, read_header


@dataclass(frozen=True)
class Described:
    """What belongs to a text as a whole; see Corpus for the fields."""

    words: tuple[str, ...]
    counts: Offsets
    total: int
    schema: dict[str, Any]
    notes: tuple[str, ...] = ()
    sources: list[str] = field(default_factory=list)


def write_corpus(directory: Path, ids: Iterable[Ids], described: Described) -> None:
    """Write a corpus; the ids come in pieces. All is on disk when this returns."""
    writer = ArrayWriter(directory)
    try:
        writer.write("ids", np.empty(0, np.int32))
        for piece in ids:
            writer.write("ids", piece)
        writer.write("counts", described.counts)
        writer.write("words", np.frombuffer("".join(described.words).encode(), np.uint8))
        writer.write("letters", np.fromiter(map(len, described.words), np.int32, len(described.words)))
        writer.seal(
            {
                "total": described.total,
                "schema": described.schema,
                "notes": described.notes,
                "sources": described.sources,
            }
        )
    finally:
        writer.close()


def map_corpus(directory: Path, names: Sequence[str], fingerprint: str) -> Corpus:
    """Map a corpus. `names` are those of its sources as they are called now. Raises Damaged."""
    header = read_header(directory)
    try:
        arrays = map_arrays(directory, header)
        text = arrays["words"].tobytes().decode()
        letters = arrays["letters"]
        if len(letters) != len(arrays["counts"]) or int(letters.min()) < 1 or int(letters.sum()) != len(text):
            raise Damaged("its words do not fit together")
        ends = accumulate(letters.tolist(), initial=0)
        words = tuple(text[start:end] for start, end in pairwise(ends))
        return Corpus(
            Tokens(arrays["ids"]),
            words,
            arrays["counts"],
            int(header["total"]),
            header["schema"],
            tuple(header["notes"]),
            f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names) or "sentences",
            fingerprint,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(str(error)) from None
