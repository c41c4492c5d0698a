"""Sentences from memory, as lists of words: encoded a batch at a time, so that few of them need to be alive at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.feeds.corpus.encode import Stretch, TextPass, write_ids
from hogwild.feeds.io.workspace import writing
from hogwild.feeds.sparse.labels import shown
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.words import END

_BATCH = 1 << 18  # words, about


class Sentences:
    """Passes over an iterable of lists of words. An iterator can be read only once."""

    def __init__(self, sentences: Iterable[Iterable[str]], config: CorpusConfig, directory: Path) -> None:
        self._sentences, self._config, self._directory = sentences, config, directory
        self._read = False

    def __call__(self, tables: list[Words]) -> TextPass:
        """Encode all sentences with the first table."""
        if self._read and iter(self._sentences) is self._sentences:
            raise InputError(
                "the sentences have more different words than memory is set aside for (max_vocabulary), and an iterator"
                " cannot be read twice; raise it, give a list, or write the text to a file."
            )
        self._read = True
        words, path = tables[0], self._directory / "text-0"
        result = TextPass(tables[:1])
        place = 0
        with writing(path), open(path, "wb", buffering=0) as file:
            for number, (tokens, ends) in enumerate(self._batches()):
                ids = self._encode(words, tokens, ends)
                result.empty += tokens.count("")
                if not words.lost:
                    write_ids(file, ids)
                result.stretches[number] = Stretch(path, 0, place, len(ids))
                place += len(ids)
        return result

    def _batches(self) -> Iterator[tuple[list[str], list[int]]]:
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

    def _encode(self, words: Words, tokens: list[str], ends: list[int]) -> Any:
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
