"""From tables of words to a vocabulary: merged, lower-cased, ranked by frequency, rare words left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.words import LONGEST, UNKNOWN, beyond_ascii, prefixes_of
from hogwild.messages import counted, shown

_UNBOUNDED = 1 << 30


class Vocabulary(NamedTuple):
    """words: the most frequent first, with their counts. final: the rank of each word of the table, or UNKNOWN."""

    words: tuple[str, ...]
    counts: Offsets
    final: Ids
    notes: tuple[str, ...] = ()


def merge(tables: Sequence[Words], lowercase: bool) -> tuple[Words, list[Ids]]:
    """All words in one table, the first, which grows; and for each table the ids that its words have there."""
    whole, *others = tables
    whole.most, whole.table.state[LONGEST] = _UNBOUNDED, _UNBOUNDED
    maps = [np.arange(len(whole), dtype=np.int32), *(whole.take(table) for table in others)]
    if lowercase:
        alias = _lower(whole)
        maps = [alias[ids] for ids in maps]
    return whole, maps


def _lower(words: Words) -> Ids:
    """Give the counts of words to their lower-case forms; returns the id that each word has then.

    ASCII is in lower case already: only the different words with other letters are looked at.
    """
    flags = np.empty(len(words), np.bool_)
    beyond_ascii(words.table.blob, words.starts, flags)
    alias = np.arange(len(words), dtype=np.int32)
    pairs = [(k, raw, raw.decode().lower().encode()) for k in np.flatnonzero(flags).tolist() for raw in [words.word(k)]]
    changed = [(k, lowered) for k, raw, lowered in pairs if raw != lowered]
    targets = words.encode_strings(lowered for _, lowered in changed)
    for (k, _), target in zip(changed, targets.tolist(), strict=True):
        alias[k] = target
        words.counts[target] += words.counts[k]
        words.counts[k] = 0
    return alias


def rank(words: Words, config: CorpusConfig, name: str) -> Vocabulary:
    """The words that stay, by falling count; equal counts in the order of their bytes, whatever the threads did."""
    counts = words.counts
    kept = np.flatnonzero(counts >= config.min_count)
    if not len(kept):
        most = int(np.argmax(counts))
        raise InputError(
            f"{name}: no word occurs {counted(config.min_count, 'time')}; the most frequent one,"
            f" `{shown(words.word(most).decode())}`, occurs {counted(int(counts[most]), 'time')}. Lower --min-count"
            f" to {counts[most]} or less, or give more text."
        )
    order = _order(words, kept)
    notes = []
    rare = counts[(counts > 0) & (counts < config.min_count)]
    if len(rare):
        notes.append(_left_out(len(rare), int(rare.sum()), f"fewer than {config.min_count} times (--min-count)"))
    if 0 < config.max_vocab < len(order):
        cut = counts[order[config.max_vocab :]]
        why = f"less often than the first {config.max_vocab:,} (--max-vocab)"
        notes.append(_left_out(len(cut), int(cut.sum()), why))
        order = order[: config.max_vocab]
    final = np.full(len(words), UNKNOWN, np.int32)
    final[order] = np.arange(len(order), dtype=np.int32)
    return Vocabulary(words.texts(order), counts[order], final, tuple(notes))


def _order(words: Words, kept: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    prefixes = np.empty(len(kept), np.uint64)
    prefixes_of(words.table.blob, words.starts, kept, prefixes)
    counts = words.counts[kept]
    places = np.lexsort((prefixes, -counts))
    order, prefixes, counts = kept[places], prefixes[places], counts[places]
    # Where counts and first bytes are equal, whole words decide.
    same = (prefixes[1:] == prefixes[:-1]) & (counts[1:] == counts[:-1])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        order[first : last + 1] = sorted(order[first : last + 1].tolist(), key=words.word)
    return order


def _left_out(words: int, occurrences: int, why: str) -> str:
    verb = "occurs" if words == 1 else "occur"
    return f"{counted(words, 'word')} left out that {verb} {why}: {counted(occurrences, 'occurrence')}."


def checked(vocabulary: Sequence[str] | None) -> list[str] | None:
    """The words that the caller gave, if any."""
    if vocabulary is None:
        return None
    if isinstance(vocabulary, str):
        raise InputError("the vocabulary is one string; give a list of words.")
    given = list(vocabulary)
    wrong = next((word for word in given if not isinstance(word, str) or not word), None)
    if wrong is not None:
        raise InputError(f"the vocabulary holds {wrong!r}; give words.")
    if not given:
        raise InputError("the vocabulary is empty; give words.")
    try:
        "".join(given).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the vocabulary holds half a surrogate pair ({error.reason}); it is no text.") from None
    return given


def known(vocabulary: Sequence[str]) -> Words:
    """A table of given words; their ids are their places."""
    words = Words(most=_UNBOUNDED)
    ids = words.encode_strings(word.encode() for word in vocabulary)
    if len(words) < len(ids):
        twice = int(np.flatnonzero(ids != np.arange(len(ids)))[0])
        raise InputError(f"the vocabulary has `{shown(vocabulary[twice])}` twice; give every word once.")
    return words
