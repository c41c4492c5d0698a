"""Tagged sentences of a language that does not exist, from a small grammar: for trials without data at hand.

Many words can be of two parts of speech, and two nouns in a row can be one phrase or two: what decides is what stands
around them, so that a tagger must look at its own tags. No tagger gets all of it right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np

Task = Literal["chunking", "pos", "segmentation"]

_SIZES = {"DET": 6, "PRON": 8, "ADP": 14, "ADV": 60, "ADJ": 160, "VERB": 260, "NOUN": 420, "PUNCT": 2}
_ENDINGS = {"ADV": "li", "ADJ": "os", "VERB": "et", "NOUN": "un"}
_TWINS = (("NOUN", "VERB", 90), ("NOUN", "ADJ", 60), ("VERB", "ADV", 12), ("DET", "PRON", 3), ("ADP", "ADV", 5))
_MARKED = 0.5   # share of words with the ending of their part of speech
_WRONG = 0.04   # share of the parts of speech, as columns of a text, that are wrong: as if a tagger had found them
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


class Token(NamedTuple):
    """A word, its part of speech, and the tag of its phrase."""

    word: str
    pos: str
    tag: str


def make_sentences(count: int, seed: int = 1, part: int = 0) -> Iterator[list[Token]]:
    """So many sentences. The seed makes the language; another part has other sentences of it, for testing.

    Examples
    --------
    >>> sentence = next(make_sentences(1))
    >>> sentence[0].tag, sentence[-1].pos
    ('B-NP', 'PUNCT')
    """
    lexicon = _lexicon(np.random.default_rng([seed, 0]))
    random = np.random.default_rng([seed, 1, part])
    for _ in range(count):
        tokens: list[Token] = []
        for name, phrase in _sentence(random):
            for place, pos in enumerate(phrase):
                tag = f"{'I' if place else 'B'}-{name}" if name else "O"
                tokens.append(Token(_pick(lexicon[pos], random), pos, tag))
        yield tokens


def write_lines(task: Task, sentences: Iterable[list[Token]], seed: int = 1) -> str:
    """Sentences as a file for the task: columns `w pos tag` or `w tag`, or words with spaces between them.

    For chunking some parts of speech are wrong, as those that a tagger has found are.
    """
    if task == "segmentation":
        return "".join(" ".join(token.word for token in sentence) + "\n" for sentence in sentences)
    random = np.random.default_rng([seed, 2])
    kinds = list(_SIZES)
    lines: list[str] = []
    for sentence in sentences:
        for word, pos, tag in sentence:
            if task == "pos":
                lines.append(f"{word} {pos}")
                continue
            found = kinds[int(random.integers(len(kinds)))] if random.random() < _WRONG else pos
            lines.append(f"{word} {found} {tag}")
        lines.append("")
    return "\n".join(lines) + "\n"


def _lexicon(random: np.random.Generator) -> dict[str, list[str]]:
    """The words of each part of speech, the most frequent first; some words stand in two."""
    taken: set[str] = set()
    words: dict[str, list[str]] = {}
    for pos, size in _SIZES.items():
        made: list[str] = []
        while len(made) < size:
            word = _word(pos, random) if pos != "PUNCT" else ".;"[len(made)]
            if word not in taken:
                taken.add(word)
                made.append(word)
        words[pos] = made
    for one, other, count in _TWINS:
        for place in random.choice(min(len(words[one]), len(words[other])), count, replace=False):
            words[other][place] = words[one][place]
    return words


def _word(pos: str, random: np.random.Generator) -> str:
    syllables = int(random.integers(1, 3)) + (pos in ("NOUN", "VERB", "ADJ"))
    letters = [
        _CONSONANTS[int(random.integers(len(_CONSONANTS)))] + _VOWELS[int(random.integers(len(_VOWELS)))]
        for _ in range(syllables)
    ]
    marked = pos in _ENDINGS and random.random() < _MARKED
    return "".join(letters) + (_ENDINGS[pos] if marked else "")


def _pick(words: list[str], random: np.random.Generator) -> str:
    """Rank k with a probability of about 1 / (k + 1), as words of a text."""
    rank = int(np.expm1(random.random() * np.log(len(words) + 1)))
    return words[min(rank, len(words) - 1)]


def _sentence(random: np.random.Generator) -> list[tuple[str, list[str]]]:
    """Phrases: their names, and the parts of speech of their words."""
    found = [("NP", _noun_phrase(random)), ("VP", ["VERB"] * int(random.integers(1, 4)))]
    found += [("NP", _noun_phrase(random)) for _ in range(int(random.integers(0, 3)))]  # objects, in a row
    while random.random() < 0.5:
        found += [("PP", ["ADP"]), ("NP", _noun_phrase(random))]
    if random.random() < 0.4:
        found.insert(int(random.integers(1, len(found) + 1)), ("ADVP", ["ADV"] * int(random.integers(1, 3))))
    return [*found, ("", ["PUNCT"])]


def _noun_phrase(random: np.random.Generator) -> list[str]:
    if random.random() < 0.2:
        return ["PRON"]
    determiner = ["DET"] if random.random() < 0.5 else []
    return determiner + ["ADJ"] * int(random.integers(0, 3)) + ["NOUN"] * int(random.integers(1, 3))
