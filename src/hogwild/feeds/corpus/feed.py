"""A corpus: running text as word ids with its vocabulary, and how it stands on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets, Tokens
from hogwild.errors import InputError
from hogwild.feeds.held_out import entries_of, marked
from hogwild.feeds.storage.arrayfiles import ArrayWriter, Damaged, mapping, read_strings, title_of

_PIECE = 1000  # words of a sentence that are held out together


@dataclass(frozen=True, repr=False)
class Corpus:
    """Text that word vectors are trained on, in memory or memory-mapped from the cache.

    words: the vocabulary, the most frequent first; words[k] is the word with id k. counts: how often each occurs.
    total: words of the text, those that are not in the vocabulary included.
    schema: what turns another text into the same ids; JSON values only.
    notes: what the reader should know, one sentence each, with counts.
    fingerprint: identifies content and options; empty for text from memory.
    """

    samples: Tokens
    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    total: int
    schema: dict[str, Any]
    notes: tuple[str, ...] = ()
    source: str = "sentences"
    fingerprint: str = ""

    def __len__(self) -> int:
        """Words in the vocabulary's ids (ends of sentences are no words)."""
        return int(self.counts.sum())

    def __repr__(self) -> str:
        return f"<Corpus of {self.source}: {self.total:,} words, {len(self.words):,} different>"

    def check(self) -> Corpus:
        """Check all that compiled code will trust; returns the corpus itself."""
        ids = self.samples.ids
        if len(self.words) != len(self.counts):
            raise InputError(f"{self.source}: {len(self.words)} words have {len(self.counts)} counts; data is damaged.")
        if len(ids) and not (int(ids.min()) >= -1 and int(ids.max()) < len(self.words)):
            raise InputError(f"{self.source}: a word id lies outside 0 … {len(self.words) - 1}; the data is damaged.")
        return self

    @property
    def parts(self) -> int:
        """Sentences, of which longer ones count as several."""
        return len(self._bounds) - 1

    @property
    def _bounds(self) -> Offsets:
        ids = self.samples.ids
        ends = np.concatenate([[0], np.flatnonzero(ids == -1) + 1, [len(ids)]])
        cuts = np.arange(0, len(ids), _PIECE)
        return np.union1d(ends, cuts[np.diff(ends)[np.searchsorted(ends, cuts, side="right") - 1] > _PIECE])

    def part(self, rows: Offsets, mark: str) -> Corpus:
        """Some of the pieces, in the vocabulary of all; counts are those of these pieces."""
        ids = self.samples.ids
        bounds = self._bounds
        begins, ends = bounds[rows], bounds[rows + 1]
        if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows):
            taken = ids[begins[0] : ends[-1]]
        else:
            _, tokens = entries_of(bounds, rows)
            taken = ids[tokens]
            # Where the next piece is not the neighbour and no sentence ends, one must: no window reaches across.
            stops = np.cumsum(ends - begins)
            apart = np.append(rows[1:] != rows[:-1] + 1, False) & (ids[ends - 1] != -1)
            taken = np.insert(taken, stops[apart], -1).astype(ids.dtype)
        counts = np.bincount(taken[taken >= 0], minlength=len(self.words)).astype(self.counts.dtype)
        total = round(self.total * int(counts.sum()) / max(1, len(self)))
        return replace(
            self, samples=Tokens(taken), counts=counts, total=total, notes=(),
            fingerprint=marked(self.fingerprint, mark),
        )  # fmt: skip

    def check_trainable(self) -> Corpus:
        """Raise InputError unless there are two words to tell apart; returns the corpus itself."""
        if len(self.words) < 2:
            only = f" (there is only `{self.words[0]}`)" if self.words else ""
            raise InputError(
                f"{self.source}: at least two different words are needed{only}; give more text, or lower --min-count."
            )
        return self


# -- on disk ----------------------------------------------------------------------------------------------------------

def write_corpus(
    directory: Path, ids: Iterable[Ids], words: Sequence[str], counts: Offsets, whole: dict[str, Any]
) -> None:
    """Write a corpus; the ids come in pieces. All is on disk when this returns.

    whole: `total`, `schema` and `notes` of the corpus, and the names of its `sources`.
    """
    with ArrayWriter(directory) as writer:
        writer.write("ids", np.empty(0, np.int32))
        for piece in ids:
            writer.write("ids", piece)
        writer.write("counts", counts)
        writer.write_strings("words", "letters", words)
        writer.seal(whole)


def map_corpus(directory: Path, names: Sequence[str], fingerprint: str) -> Corpus:
    """Map a corpus. `names` are those of its sources as they are called now. Raises Damaged."""
    with mapping(directory) as (header, arrays):
        words = read_strings(arrays["words"], arrays["letters"])
        if len(words) != len(arrays["counts"]):
            raise Damaged("its words do not fit together")
        return Corpus(Tokens(arrays["ids"]), words, arrays["counts"], int(header["total"]), header["schema"],
                      tuple(header["notes"]), title_of(names, "sentences"), fingerprint)  # fmt: skip
