"""Word vectors in use: looked up, compared, searched, loaded and written."""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import ConfigError, HogwildError, InputError, ModelError, UnknownWordError, brief
from hogwild.feeds.io.source import open_sources
from hogwild.machine import cores
from hogwild.messages import shown
from hogwild.programs.words.fasttext import is_fasttext, read_fasttext, write_fasttext
from hogwild.programs.words.files import Format, format_of_name, read_vectors, write_vectors
from hogwild.programs.words.mapped import Counts, Kind, Opened, open_vectors
from hogwild.programs.words.similarity import Nearest, nearest, norms_of, units
from hogwild.programs.words.subwords import Parts, Spelling, grams_of, mean_vectors

# -- Words and the rows they stand for. Both directions are made when they are first needed, not before ---------------


_SPELT = 24      # letters of the longest word that is spelt anew
_GUESSED = 5     # unknown words for which others are suggested


class WordIndex:
    """Words in the order of their rows, and rows by word.

    Parameters
    ----------
    read
        Gives the words; called once, when they are first needed.
    size
        How many there must be.
    error
        Kind of error for words that cannot be used; `where` begins its message.
    kind
        What they are: words, or tags of documents.
    """

    def __init__(
        self, read: Callable[[], Sequence[str]], size: int, where: str = "words",
        error: type[HogwildError] = InputError, kind: Kind = "words",
    ) -> None:  # fmt: skip
        self._read, self._size, self._where, self._error, self.kind = read, size, where, error, kind

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words, by row."""
        words = tuple(self._read())
        if len(words) != self._size:
            raise self._error(f"{self._where}: {len(words):,} words for {self._size:,} vectors; each needs one.")
        return words

    @cached_property
    def rows(self) -> dict[str, int]:
        """Rows by word."""
        words = self.words
        rows = dict(zip(words, range(len(words)), strict=True))
        if len(rows) < len(words):
            first: dict[str, int] = {}
            for number, word in enumerate(words, 1):
                if first.setdefault(word, number) != number:
                    raise self._error(
                        f"{self._where}: the word `{shown(word)}` stands twice, as number {first[word]:,} and as "
                        f"number {number:,}; leave one of them out."
                    )
        return rows

    def find(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """Rows of the words. Raises UnknownWordError, a KeyError, that names all words which are not there."""
        wanted = list(words)
        odd = [word for word in wanted if not isinstance(word, str)]
        if odd:
            raise InputError(f"{brief(odd[0])} is no word; words are strings. `matrix` has the vectors by row.")
        rows = self.rows
        unknown = list(dict.fromkeys(word for word in wanted if word not in rows))
        if unknown:
            raise UnknownWordError(self._explain(unknown))
        return np.array([rows[word] for word in wanted], np.int64)

    def _explain(self, unknown: list[str]) -> str:
        named = []
        for k, word in enumerate(unknown):
            close = self.suggest(word) if k < _GUESSED else ""
            named.append(f"'{shown(word)}'" + (f" (did you mean {close}?)" if close else ""))
        verb = "is" if len(unknown) == 1 else "are"
        if self.kind == "documents":
            return f"{', '.join(named)} {verb} not among the tags of {len(self.rows):,} documents."
        return f"{', '.join(named)} {verb} not in the vocabulary of {len(self.rows):,} words."

    def suggest(self, word: str) -> str:
        """A known word that is spelt almost alike, the most frequent of them; empty if there is none.

        The neighbours of the spelling are looked up, so the time does not grow with the vocabulary.
        """
        if not 0 < len(word) <= _SPELT:
            return ""
        for spellings in (_forms(word), _neighbours(word.lower())):
            known = [self.rows[other] for other in spellings if other in self.rows]
            if known:
                return self.words[min(known)]
        return ""


def _forms(word: str) -> set[str]:
    """The word in other cases, and as one where it is many."""
    bare = word.strip()
    joined = {sign.join(bare.split()) for sign in ("_", "-", "")} | {bare}
    return {form for one in joined for form in (one, one.lower(), one.capitalize(), one.title(), one.upper())}


def _neighbours(word: str) -> set[str]:
    """All spellings that are one letter away: left out, put in, changed, or two of them exchanged."""
    letters = set(string.ascii_lowercase) | set(word)
    cuts = [(word[:k], word[k:]) for k in range(len(word) + 1)]
    found = {a + b[1:] for a, b in cuts if b}
    found |= {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    found |= {a + c + b[1:] for a, b in cuts if b for c in letters}
    found |= {a + c + b for a, b in cuts for c in letters}
    return found | {spelling.capitalize() for spelling in found}


# -- The vectors: looked up, compared, searched -----------------------------------------------------------------------


AnyFormat = Literal["text", "binary", "fasttext"]
Similar = list[tuple[str, float]]
Plain = str | npt.ArrayLike
Query = Plain | tuple[Plain, float]


class Vectors:
    """A vector for each of many words.

    Parameters
    ----------
    words
        All different, the most frequent first if `restrict_vocab` is to mean anything.
    matrix
        (words, dim), one row a word; kept as float32.
    counts
        How often each word occurred in the text; None where nobody knows, as with vectors from a file.
    parts
        What the words are made of, if they have subwords: then words that are not there have vectors too.
    kind
        `documents` where the words are tags of documents, for messages.

    Examples
    --------
    >>> vectors = Vectors(["cat", "dog", "car"], [[1, 0.2], [1, 0.3], [0, 1]])
    >>> len(vectors), vectors.dim, "cow" in vectors
    (3, 2, False)
    >>> [word for word, _ in vectors.most_similar("cat")]
    ['dog', 'car']
    >>> round(vectors.similarity("cat", "dog"), 3)
    0.996
    >>> list(vectors), vectors[["cat", "car"]].shape, vectors.get("cow")
    (['cat', 'dog', 'car'], (2, 2), None)
    >>> vectors.doesnt_match(["cat", "dog", "car"])
    'car'
    """

    counts: Counts | None

    parts: Parts | None = None

    def __init__(
        self, words: Sequence[str], matrix: npt.ArrayLike, counts: npt.ArrayLike | None = None,
        parts: Parts | None = None, kind: Kind = "words",
    ) -> None:  # fmt: skip
        kept = tuple(words)
        if not all(isinstance(word, str) for word in kept):
            raise InputError("words must be texts; write Vectors(words, matrix).")
        self._fill(WordIndex(lambda: kept, len(kept), kind=kind), _checked(matrix, len(kept)), InputError, "the matrix")
        self.counts, self.parts = None if counts is None else np.asarray(counts, np.int64), parts
        if self.counts is not None and self.counts.shape != (len(kept),):
            raise InputError(f"{len(kept):,} words need as many counts, not an array of shape {self.counts.shape}.")
        self._index.rows  # noqa: B018  # words that stand twice are said now
        self.norms  # noqa: B018  # numbers that are not finite too

    def _fill(self, index: WordIndex, matrix: Floats, error: type[HogwildError], where: str) -> None:
        self._index, self.matrix, self._error, self._where = index, matrix, error, where

    # -- what there is --

    def __len__(self) -> int:
        return len(self.matrix)

    def __contains__(self, word: object) -> bool:
        """Whether a word has a vector; with subwords most have, those of the vocabulary are in `words`."""
        made = self.parts is not None and isinstance(word, str) and self.parts.vectors_of([word])[1][0]
        return word in self._index.rows or made

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __getitem__(self, word: str | Iterable[str]) -> Floats:
        """The vector of a word, a view; or of several words, (words, dim), a copy."""
        if isinstance(word, Iterable) and not isinstance(word, str):
            return self._gather(word)
        known = self.parts is None or word in self._index.rows
        return cast(Floats, self.matrix[self.row(word)] if known else self._gather([word])[0])

    def get(self, word: str, default: Any = None) -> Any:
        """The vector of a word, or the default."""
        row = self._index.rows.get(word)
        if row is None and word in self:
            return self._gather([word])[0]
        return default if row is None else self.matrix[row]

    def _gather(self, words: Iterable[str]) -> Floats:
        """The vectors of words; of those that are not there, by their subwords. Raises UnknownWordError."""
        wanted = list(words)
        rows = self._index.rows
        new = [] if self.parts is None else [word for word in wanted if isinstance(word, str) and word not in rows]
        if not new:
            return self.matrix[self._index.find(wanted)]
        assert self.parts is not None
        vectors, made = self.parts.vectors_of(new)
        if not np.isfinite(vectors).all():
            raise self._error(f"{self._where}: rows of n-grams have numbers that are not finite; train it again.")
        self._index.find([word for word in wanted if word not in rows and not made[new.index(word)]])
        found = np.empty((len(wanted), self.dim), np.float32)
        here = [k for k, word in enumerate(wanted) if word in rows]
        found[here] = self.matrix[self._index.find(wanted[k] for k in here)]
        found[[k for k, word in enumerate(wanted) if word not in rows]] = vectors
        return found

    def __repr__(self) -> str:
        return f"<Vectors of {len(self):,} {self._index.kind}, {self.dim} numbers each>"

    def __reduce__(self) -> tuple[Any, ...]:
        counts = None if self.counts is None else np.array(self.counts)
        return Vectors, (self.words, np.array(self.matrix), counts, self.parts)

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self.matrix.shape[1])

    @property
    def words(self) -> tuple[str, ...]:
        """All words, by row."""
        return self._index.words

    def row(self, word: str) -> int:
        """The row of a word. Raises UnknownWordError, which is a KeyError too."""
        return int(self._index.find([word])[0])

    @cached_property
    def key_to_index(self) -> dict[str, int]:
        """Rows by word, under the name that gensim has for them; a copy."""
        return dict(self._index.rows)

    @cached_property
    def index_to_key(self) -> list[str]:
        """Words by row, under the name that gensim has for them; a copy."""
        return list(self.words)

    def get_vecattr(self, word: str, attr: str) -> int:
        """How often a word occurred, under the name that gensim has for it: `get_vecattr(word, "count")`."""
        if attr != "count":
            raise ConfigError(f"attr is {brief(attr)}; all that is known of words besides their vectors is `count`.")
        if self.counts is None:
            raise ConfigError(f"{self._where}: nobody knows how often its words occurred; a trained model does.")
        return int(self.counts[self.row(word)])

    @cached_property
    def norms(self) -> Floats:
        """Length of each vector; computed once, when first needed."""
        norms = norms_of(self.matrix)
        finite = np.isfinite(norms)
        if not finite.all():
            row = int(np.argmin(finite))
            raise self._error(
                f"{self._where}: the vector of `{shown(self.words[row])}` (row {row:,}) has numbers that are not "
                "finite or too large; train it again with a lower rate, or leave it out."
            )
        return norms

    # -- queries --

    def similarity(self, a: str, b: str) -> float:
        """Cosine of the angle between the vectors of two words; 0 if one of them is all zeros."""
        one, other = units(self._gather([a, b])).astype(np.float64)
        return float(one @ other)

    def most_similar(
        self, positive: Query | Sequence[Query] | None = None, negative: Query | Sequence[Query] | None = None,
        topn: int = 10, restrict_vocab: int = 0,
    ) -> Similar:  # fmt: skip
        """Words nearest to the sum of what is `positive` minus what is `negative`, with their similarities.

        Parameters
        ----------
        positive, negative
            A word, a vector, or several of either. Words count with length 1, vectors with the length that they have.
            The words themselves are not among the answers. `(word, 2.0)` has a weight, which replaces the sign too:
            among `negative` it is below 0.
        topn
            How many.
        restrict_vocab
            Search among so many words only, the first ones, which are the most frequent; 0 stands for all.
        """
        queries = _queries(positive, 1.0) + _queries(negative, -1.0)
        if not queries:
            raise InputError("there is nothing to look for; give most_similar a word or a vector.")
        given = [query for query, _ in queries if isinstance(query, str)]
        unit = dict(zip(given, units(self._gather(given)).astype(np.float64), strict=True)) if given else {}
        total = np.zeros(self.dim, np.float64)
        for query, weight in queries:
            total += weight * self._vector(query, unit)
        found = self._search(total[None].astype(np.float32), topn + len(set(given)), restrict_vocab, topn)
        return self._answers(found, 0, {self._index.rows.get(word, -1) for word in given}, topn)

    def analogy(self, a: str, b: str, c: str, topn: int = 10, restrict_vocab: int = 0) -> Similar:
        """Words that are to `c` as `b` is to `a`: the nearest to b - a + c (3CosAdd)."""
        return self.most_similar([b, c], [a], topn, restrict_vocab)

    def neighbors(self, words: Iterable[str], topn: int = 10, restrict_vocab: int = 0) -> list[Similar]:
        """The words nearest to each of many words. Exact; all are searched together, in bounded memory."""
        asked = list(words)
        found = self._search(self._gather(asked), topn + 1, restrict_vocab, topn)
        return [self._answers(found, k, {self._index.rows.get(word, -1)}, topn) for k, word in enumerate(asked)]

    def doesnt_match(self, words: Iterable[str]) -> str:
        """The word that is farthest from the mean of all of them, each of length 1."""
        asked = _several(words, "doesnt_match")
        unit = units(self[asked]).astype(np.float64)
        similar = unit @ unit.mean(axis=0)
        return min(zip(similar.tolist(), asked, strict=True))[1]

    def n_similarity(self, words: Iterable[str], others: Iterable[str]) -> float:
        """Cosine of the angle between the means of the vectors, as long as they are, of two sets of words."""
        sets = _several(words, "n_similarity"), _several(others, "n_similarity")
        self._gather([*sets[0], *sets[1]])  # unknown ones are named together
        one, other = units(np.array([self[some].mean(axis=0, dtype=np.float64) for some in sets])).astype(np.float64)
        return float(one @ other)

    def rank(self, word: str, other: str) -> int:
        """Which neighbour of `word` the `other` is: 1 if no word is nearer."""
        row, place = self._index.find([word, other]).tolist()
        lengths = np.where(self.norms > 0, self.norms, np.float32(np.inf))
        similar = self.matrix @ units(self.matrix[row : row + 1])[0] / lengths
        nearer = similar > similar[place]
        return int(np.count_nonzero(nearer)) - int(nearer[row]) + 1

    def nearest(self, vectors: npt.ArrayLike, topn: int = 10, restrict_vocab: int = 0) -> Nearest:
        """Rows nearest to each of many vectors, (queries, dim), and their similarities, as two arrays."""
        queries = np.atleast_2d(np.asarray(vectors, np.float32))
        return self._search(queries, topn, restrict_vocab, topn)

    def _search(self, queries: Floats, count: int, restrict_vocab: int, topn: int) -> Nearest:
        if topn < 1:
            raise ConfigError(f"topn is {topn}; it must be at least 1.")
        if restrict_vocab < 0:
            raise ConfigError(f"restrict_vocab is {restrict_vocab}; it must be at least 1, or 0 for all words.")
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise InputError(f"a query of shape {queries.shape} does not fit vectors of {self.dim} numbers.")
        if not np.isfinite(queries).all():
            raise InputError("a query has numbers that are not finite.")
        limit = min(restrict_vocab or len(self), len(self))
        return nearest(self.matrix[:limit], self.norms[:limit], units(queries), count)

    def _vector(self, query: Plain, unit: dict[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        if isinstance(query, str):
            return unit[query]
        vector = np.asarray(query, np.float64)
        if vector.shape != (self.dim,):
            raise InputError(f"a query of shape {vector.shape} does not fit vectors of {self.dim} numbers.")
        return vector

    def _answers(self, found: Nearest, query: int, without: set[int], topn: int) -> Similar:
        pairs = zip(found.rows[query].tolist(), found.similarities[query].tolist(), strict=True)
        return [(self.words[row], value) for row, value in pairs if row not in without][:topn]

    # -- files --

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], format: AnyFormat | Literal["auto"] = "auto", verify: bool = False,
        kind: Kind = "words",
    ) -> Vectors:  # fmt: skip
        """Vectors of a trained model, of a file in the text or binary format of word2vec, or of a model of fastText.

        Parameters
        ----------
        path
            The directory of a model, which is mapped and takes milliseconds; or a file, which is read, compressed or
            not, as text with or without a first line of sizes, or as binary.
        format
            `text`, `binary` or `fasttext` where the file should not be looked at to find out.
        verify
            Compare the checksums of a model too. Its sizes always are.
        kind
            `documents`: of a model of documents those of its documents, by their tags; else those of its words.
        """
        if format not in ("auto", *get_args(AnyFormat)):
            raise ConfigError(f"format is {brief(format)}; choose auto, text, binary or fasttext.")
        if Path(path).is_file():
            found = _read_file(path, format)
            made = _made(found, InputError, str(path))
            made._index.rows  # noqa: B018  # words that stand twice are said now
            return made
        return _made(open_vectors(Path(path), verify, kind), ModelError, str(path), kind)

    def save(self, path: str | os.PathLike[str], format: AnyFormat | Literal["auto"] = "auto") -> int:
        """Write a file in the text or binary format of word2vec, or as a model of fastText, which others open.

        Returns how many words were changed: `_` is written for blanks, ends of lines and NUL, which the formats cannot
        hold. A file of the same name is replaced when the new one is complete; `.gz`, `.xz` and `.zst` are compressed.

        Parameters
        ----------
        format
            `auto`: by the name, `.vec` and `.txt` are text; `.bin` is a model of fastText where words have subwords,
            which it keeps, else binary.
        """
        chosen = self.format_of(path) if format == "auto" else format
        if chosen not in get_args(AnyFormat):
            raise ConfigError(f"{os.fspath(path)}: the name tells no format; let it end in .vec or .bin, or say which.")
        if chosen == "fasttext":
            whole = Parts(Spelling(0, 0, 0), self.matrix, self.matrix[:0])
            write_fasttext(os.fspath(path), self.words, self.counts, self.parts or whole)
            return 0
        return write_vectors(os.fspath(path), self.words, self.matrix, cast(Format, chosen))

    def format_of(self, path: str | os.PathLike[str]) -> AnyFormat | None:
        """The format that `save` takes for a name; None if the name tells none."""
        named = format_of_name(path)
        return "fasttext" if named == "binary" and self.parts is not None else named


def _read_file(path: str | os.PathLike[str], format: str) -> Opened:
    """What is in a file."""
    (source,) = open_sources(Path(path))
    if format != "fasttext" and not (format == "auto" and is_fasttext(source.head(4))):
        words, matrix = read_vectors(path, format)
        return Opened(lambda: words, matrix, None)
    model = read_fasttext(Path(path))
    parts = model.parts()
    matrix = model.inputs[: len(model.words)]
    if parts is not None:
        matrix = mean_vectors(grams_of(model.words, parts.spelling), parts.grams, parts.inputs, cores())
    return Opened(lambda: model.words, matrix, model.counts, parts)


def _made(opened: Opened, error: type[HogwildError], where: str, kind: Kind = "words") -> Vectors:
    made = Vectors.__new__(Vectors)
    made._fill(WordIndex(opened.read, len(opened.matrix), where, error, kind), opened.matrix, error, where)
    made.counts, made.parts = opened.counts, opened.parts
    return made


def _checked(matrix: npt.ArrayLike, words: int) -> Floats:
    try:
        array = np.ascontiguousarray(matrix, np.float32)
    except (TypeError, ValueError):
        raise InputError("the matrix does not hold numbers in rows of equal length.") from None
    if array.ndim != 2 or array.shape[0] != words or array.shape[1] == 0:
        raise InputError(f"{words:,} words need a matrix of shape ({words}, dim), not {np.shape(matrix)}.")
    if not words:
        raise InputError("there are no words.")
    return array


def _several(words: Iterable[str], asker: str) -> list[str]:
    """Words of a list; one string would be taken for its letters."""
    found = [] if isinstance(words, str) else list(words)
    if not found:
        raise InputError(f"{asker} takes a list of words, of at least one; got {brief(words)}.")
    return found


def _queries(given: Query | Sequence[Query] | None, sign: float) -> list[tuple[Plain, float]]:
    """The queries one by one, with their weights: a word, a vector, either with a weight, or a list of them."""
    queries: list[Any]
    if isinstance(given, str) or _is_weighted(given):
        queries = [given]
    elif isinstance(given, np.ndarray):
        queries = [given] if given.ndim == 1 else list(given)
    else:
        queries = [] if given is None else list(given)  # type: ignore[arg-type]
        if queries and isinstance(queries[0], int | float | np.number):
            queries = [queries]
    found: list[tuple[Plain, float]] = [query if _is_weighted(query) else (query, sign) for query in queries]
    for query, weight in found:
        if sign < 0 < weight:
            what = f"`{shown(query)}`" if isinstance(query, str) else "a vector"
            raise InputError(
                f"the weight of {what} in negative is {weight:g}, which would add it; write {-weight:g} to subtract "
                "it, or put it into positive."
            )
    return found


def _is_weighted(query: Any) -> bool:
    """Whether it is a word or a vector with a weight beside it."""
    pair = isinstance(query, tuple) and len(query) == 2
    return pair and isinstance(query[1], Real) and not isinstance(query[0], Real)
