"""Words and the rows they stand for. Both directions are made when they are first needed, not before."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hogwild.errors import HogwildError, InputError, UnknownWordError
from hogwild.feeds.sparse.labels import shown

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
    """

    def __init__(
        self,
        read: Callable[[], Sequence[str]],
        size: int,
        where: str = "words",
        error: type[HogwildError] = InputError,
    ) -> None:
        self._read = read
        self._size = size
        self._where = where
        self._error = error

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
