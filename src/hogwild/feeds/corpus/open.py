"""Open running text as a corpus: read it in one pass, choose the vocabulary, settle the ids, use the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.feeds.corpus.encode import Odd, Stretch, TextPass, read_texts, settled
from hogwild.feeds.corpus.feed import Corpus, map_corpus, write_corpus
from hogwild.feeds.corpus.phrases import Wanted, join_phrases
from hogwild.feeds.io.blocks import replaced_notes
from hogwild.feeds.io.source import Paths, open_sources
from hogwild.feeds.io.workspace import drop_workspace, make_workspace, writing
from hogwild.feeds.storage import cache
from hogwild.feeds.storage.arrayfiles import write_whole
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.words import END, LONGEST, UNKNOWN, beyond_ascii, prefixes_of
from hogwild.machine import cores
from hogwild.messages import counted, shown

KEPT = ("lowercase", "max_token", "phrases")  # options that another text must be read with
_UNBOUNDED = 1 << 30
_BATCH = 1 << 18  # words of sentences from memory that are encoded together, about: few need to be alive at once


class Sentences:
    """Passes over an iterable of lists of words. An iterator can be read only once."""

    def __init__(self, sentences: Iterable[Iterable[str]], config: CorpusConfig) -> None:
        self._sentences, self._config = sentences, config
        self._read = False

    def __call__(self, tables: list[Words], directory: Path) -> TextPass:
        """Encode all sentences with the first table; the ids go into the directory."""
        if self._read and iter(self._sentences) is self._sentences:
            raise InputError(
                "the sentences have more different words than memory is set aside for (max_vocabulary), and an iterator"
                " cannot be read twice; raise it, give a list, or write the text to a file."
            )
        self._read = True
        words, path = tables[0], directory / "text-0"
        result = TextPass(tables[:1])
        place = 0
        with writing(path), open(path, "wb", buffering=0) as file:
            for number, (tokens, ends) in enumerate(self._batches()):
                ids = self._encode(words, tokens, ends)
                result.empty += tokens.count("")
                if not words.lost:
                    write_whole(file, ids)
                result.stretches[number] = Stretch(path, 0, place, len(ids))
                place += len(ids)
        return result

    def _batches(self) -> Iterator[tuple[list[Any], list[int]]]:
        """Words, and where sentences end among them."""
        tokens: list[str] = []
        ends: list[int] = []
        for number, sentence in enumerate(self._sentences):
            if isinstance(sentence, (str, bytes)):
                raise InputError(f"sentence {number} is a string, not a list of words; give sentence.split().")
            try:
                tokens.extend(sentence)
            except TypeError:
                raise InputError(f"sentence {number} is {type(sentence).__name__}; give a list of words.") from None
            ends.append(len(tokens))
            if len(tokens) >= _BATCH:
                yield tokens, ends
                tokens, ends = [], []
        yield tokens, ends

    def _encode(self, words: Words, tokens: list[Any], ends: list[int]) -> Any:
        try:
            if self._config.lowercase:
                tokens = [token.lower() for token in tokens]
            letters = "".join(tokens)
            joined = letters.encode()
        except (TypeError, AttributeError, UnicodeEncodeError):
            raise _wrong(tokens) from None
        sizes = map(len, tokens) if len(joined) == len(letters) else (len(token.encode()) for token in tokens)
        lengths = np.fromiter(sizes, np.int32, len(tokens))
        return words.encode_joined(joined, np.insert(lengths, ends, END), step=1)


def _wrong(tokens: list[Any]) -> InputError:
    for token in tokens:
        if not isinstance(token, str):
            return InputError(f"`{shown(str(token))}` is {type(token).__name__}, not a word; give strings.")
        try:
            token.encode()
        except UnicodeEncodeError:
            return InputError(f"`{shown(ascii(token))}` holds half a surrogate pair; it is no text.")
    return InputError("the words cannot be joined; give strings.")


Read = Callable[[list[Words], Path], TextPass]


def open_corpus(
    paths: Paths, config: CorpusConfig | None = None, vocabulary: Sequence[str] | None = None, threads: int = 0,
    keep: Sequence[str] = (),
) -> Corpus:  # fmt: skip
    """Open running text, one sentence a line: encoded once into memory-mapped word ids, found again on the next run.

    Parameters
    ----------
    paths
        Text files, compressed or not, globs, or `-` for standard input. Words are separated by ASCII white space.
        A line may be as long as the file.
    config
        How the text is read.
    vocabulary
        Words to encode with, instead of those that the text has often enough; their ids are their places. Other words
        are left out.
    threads
        0: one a core, at least 2, at most 8. The result does not depend on it.
    keep
        Words that are not left out however rare they are in this text: those of a model that goes on with it. What the
        text does not have of them is not in its vocabulary.

    Returns
    -------
    Corpus
        Ids are ranks of frequency; words that occur equally often are in the order of their bytes.

    Examples
    --------
    >>> corpus = open_corpus("text.txt.gz", CorpusConfig(min_count=10, lowercase=True))     # doctest: +SKIP
    """
    config = config or CorpusConfig()
    sources = open_sources(paths, config)
    options = {name: value for name, value in asdict(config).items() if name != "cache"}
    given, kept = wanted_words(vocabulary, keep)
    key = cache.key_from({"corpus": options, "vocabulary": given} | ({"keep": kept} if kept else {}), sources)
    tables = threads or usual_threads()

    def read(words: list[Words], scratch: Path) -> TextPass:
        return read_texts(sources, config, words, scratch)

    def write(directory: Path) -> None:
        Maker(config, [source.name for source in sources], tables, kept).make(read, given, directory)

    return cache.open_entry(write, sources, key, map_corpus, config.cache)


def usual_threads() -> int:
    """Threads that read a text where the user says nothing."""
    return max(2, min(cores(), 8))


def corpus_of(
    sentences: Iterable[Iterable[str]], config: CorpusConfig | None = None, vocabulary: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> Corpus:  # fmt: skip
    """Make a corpus of sentences in memory.

    Parameters
    ----------
    sentences
        Lists of words, which may hold blanks. Read once, a batch at a time, so that a generator will do.
    config
        As for `open_corpus`; what concerns files is ignored.
    vocabulary, keep
        As for `open_corpus`.

    Examples
    --------
    >>> corpus = corpus_of([["to", "be"], ["or", "not", "to", "be"]], CorpusConfig(min_count=1))
    >>> corpus.words, corpus.samples.ids.tolist()
    (('be', 'to', 'not', 'or'), [1, 0, -1, 3, 2, 1, 0, -1])
    """
    config = config or CorpusConfig()
    if isinstance(sentences, (str, bytes)) or not isinstance(sentences, Iterable):
        raise InputError(
            f"the sentences are {type(sentences).__name__}; give lists of words, or open a file with open_corpus."
        )
    given, kept = wanted_words(vocabulary, keep)

    def write(directory: Path) -> None:
        Maker(config, [], 1, kept).make(Sentences(sentences, config), given, directory)

    return cache.make_entry(write, [], "", map_corpus, keep=False)


class Encoded(NamedTuple):
    """A text as ids: where they are, what they stand for, and the words with their counts."""

    stretches: list[Stretch]
    maps: list[Ids]
    words: Words
    total: int


class Maker:
    """The steps from a pass over the text to a directory that holds the corpus."""

    bare = False
    """Whether texts will do in which no word is known: where there is a vocabulary, and nothing to be learnt."""

    def __init__(self, config: CorpusConfig, names: list[str], threads: int, keep: list[str]) -> None:
        self.config, self.names, self.threads, self.keep = config, names, threads, keep
        self.notes: list[str] = []

    def make(self, read: Read, vocabulary: list[str] | None, directory: Path) -> None:
        """Write the corpus."""
        self.scratch = make_workspace("text")
        try:
            self._make(read, vocabulary, directory)
        finally:
            drop_workspace(self.scratch)

    def _make(self, read: Read, vocabulary: list[str] | None, directory: Path) -> None:
        given = known(vocabulary) if vocabulary is not None else None
        if given is not None and not self.config.phrases:
            encoded = self._closed_pass(read, given)
        else:
            encoded = self._open_pass(read)
        if self.config.phrases:
            encoded = self._with_phrases(encoded, given)
        name = ", ".join(self.names) or "the sentences"
        if not encoded.total and not self.bare:
            raise InputError(f"{name}: no words; is the file empty?")
        if given is None:
            chosen = rank(encoded.words, self.config, name, self.keep)
        else:
            chosen = _choose_given(encoded.words, given, vocabulary or [])
            if not chosen.counts.any() and not self.bare:
                raise InputError(f"{name}: no word of the text is in the vocabulary; is it that of another language?")
        self.notes += chosen.notes
        whole = {"total": encoded.total, "schema": schema_of(self.config), "notes": self.notes, "sources": self.names}
        maps = [through(ids, chosen.final) for ids in encoded.maps]
        self.write(directory, encoded._replace(maps=maps), chosen, whole)

    def write(self, directory: Path, encoded: Encoded, chosen: Vocabulary, whole: dict[str, Any]) -> None:
        """Write the text in the ids of the vocabulary; of several ends of sentences one is left."""
        ids = settled(encoded.stretches, encoded.maps, self.threads)
        write_corpus(directory, ids, chosen.words, chosen.counts, whole)

    def _open_pass(self, read: Read) -> Encoded:
        """Count all words; once more, if there were too many of them to be held."""
        found = count_texts(read, self.config, self.threads, self.scratch)
        whole, maps = merge(found.tables, self.config.lowercase)
        if not found.lost:
            self._note(found)
            return Encoded(found.in_order(), maps, whole, found.seen)
        rare = "rarer ones may be" if found.lost >= self.config.min_count else "rarer ones are below --min-count"
        most = most_words(self.config)
        self.notes.append(f"More than {most:,} different words (--max-vocabulary), so that rare ones were dropped while"
                          " they were counted, and the text was read again: counts are exact, and no word that occurs"
                          f" more than {found.lost:,} times is missing; {rare}.")
        whole.encode_strings(word.encode() for word in self.keep)
        return self._closed_pass(read, whole)

    def _closed_pass(self, read: Read, base: Words) -> Encoded:
        """Encode with the words of a table."""
        found = read([base.closed(self.config.max_token) for _ in range(self.threads)], self.scratch)
        self._note(found)
        counted_words = base.closed()
        for table in found.tables:
            counted_words.counts[:] += table.counts
        same = np.arange(len(base), dtype=np.int32)
        return Encoded(found.in_order(), [same] * len(found.tables), counted_words, found.seen)

    def _with_phrases(self, encoded: Encoded, given: Words | None) -> Encoded:
        text = settled(encoded.stretches, encoded.maps, self.threads)
        whole = encoded.words.opened()
        wanted = Wanted(given or known(self.keep), only=given is not None)
        joined = join_phrases(text, whole, self.config, self.scratch, self.threads, wanted)
        self.notes += joined.notes
        same = np.arange(len(whole), dtype=np.int32)
        return Encoded(joined.stretches, [same], whole, encoded.total - joined.joins)

    def _note(self, found: TextPass) -> None:
        self.notes += pass_notes(found.odd, self.config)


def count_texts(read: Read, config: CorpusConfig, threads: int, scratch: Path) -> TextPass:
    """One pass with a table a thread; with one table for all, if there were too many words for these."""
    most = most_words(config)
    share = 1 << (max(2, most // threads).bit_length() - 1)
    found = read([Words(config.max_token, share) for _ in range(threads)], scratch)
    if found.lost and len(found.tables) > 1:
        del found  # gives its memory back. One table in the order of the text: what it drops is always the same
        found = read([Words(config.max_token, most)], scratch)
    return found


def most_words(config: CorpusConfig) -> int:
    """Different words that are held while they are counted."""
    return 1 << (config.max_vocabulary.bit_length() - 1)


def pass_notes(odd: Odd, config: CorpusConfig) -> Iterator[str]:
    """What to tell of a pass over a text."""
    if odd.nuls:
        yield f"{counted(odd.nuls, 'NUL byte')} read as white space."
    yield from replaced_notes(odd.replaced)
    if odd.too_long:
        yield f"{counted(odd.too_long, 'word')} longer than {config.max_token:,} bytes (--max-token) left out."
    if odd.empty:
        yield f"{counted(odd.empty, 'empty word')} left out."


def schema_of(config: CorpusConfig) -> dict[str, Any]:
    """What turns another text into the same ids, with the words."""
    return {"format": "corpus"} | {name: getattr(config, name) for name in KEPT}


def _choose_given(found: Words, given: Words, vocabulary: list[str]) -> Vocabulary:
    """The given words with the counts that they have in the text."""
    final = places_in(given, found)
    counts = np.zeros(len(given), np.int64)
    np.add.at(counts, final[final >= 0], found.counts[final >= 0])
    return Vocabulary(tuple(vocabulary), counts, final)


def places_in(given: Words, found: Words) -> Ids:
    """The ids that the words of one table have in another; UNKNOWN for those that it does not have."""
    joined = found.table.blob[: int(found.starts[-1])].tobytes()
    return given.closed().encode_joined(joined, np.diff(found.starts))


def through(ids: Ids, final: Ids) -> Ids:
    """The final id of each id."""
    return np.where(ids >= 0, final[ids], np.int32(UNKNOWN)).astype(np.int32)


# -- from tables of words to a vocabulary: merged, lower-cased, ranked by frequency, rare words left out --------------

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


def rank(words: Words, config: CorpusConfig, name: str, keep: Sequence[str] = ()) -> Vocabulary:
    """The words that stay, by falling count; equal counts in the order of their bytes, whatever the threads did.

    keep: words that stay if they occur at all.
    """
    counts = words.counts
    safe = np.zeros(len(words), np.bool_)
    places = words.closed().encode_strings(word.encode() for word in keep)
    safe[places[places >= 0]] = True
    safe &= counts > 0
    kept = np.flatnonzero(safe | (counts >= config.min_count))
    if not len(kept):
        most = int(np.argmax(counts))
        raise InputError(f"{name}: no word occurs {counted(config.min_count, 'time')}; the most frequent one,"
                         f" `{shown(words.word(most).decode())}`, occurs {counted(int(counts[most]), 'time')}. Lower"
                         f" --min-count to {counts[most]} or less, or give more text.")
    order = _order(words, kept)
    notes = []
    rare = counts[(counts > 0) & (counts < config.min_count) & ~safe]
    if len(rare):
        notes.append(_left_out(len(rare), int(rare.sum()), f"fewer than {config.min_count} times (--min-count)"))
    if 0 < config.max_vocab < len(order):
        new = ~safe[order]
        stays = ~new | (np.cumsum(new) <= config.max_vocab - np.count_nonzero(~new))
        cut = counts[order[~stays]]
        why = f"less often than the first {config.max_vocab:,} (--max-vocab)"
        notes.append(_left_out(len(cut), int(cut.sum()), why))
        order = order[stays]
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


def wanted_words(vocabulary: Sequence[str] | None, keep: Sequence[str]) -> tuple[list[str] | None, list[str]]:
    """The vocabulary that the caller gave, if any, and the words that are to stay in that of the text."""
    if vocabulary is not None and len(keep):
        raise InputError("there is a vocabulary and there are words to keep; give one of the two.")
    return checked(vocabulary), (checked(keep) or []) if len(keep) else []


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
