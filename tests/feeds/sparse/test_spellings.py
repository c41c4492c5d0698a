"""Names of what is hashed: the most frequent, counted as a slow twin counts them."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from hogwild.feeds.sparse import spellings
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.feeds.sparse.spellings import Spellings, hashes_of, hashes_of_parts
from reference import text as twin

PIECES = ["a", "B", "z9", "Don't", "'tis", "O’Neill", "été", "«bon»", "—", "中文", " ", "  ", ".", "-", "eightchr", "0"]


def joined(texts):
    """Texts one after another, and where each begins and ends."""
    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)])
    return np.frombuffer(b"".join(parts) + b" ", np.uint8), np.stack((ends[:-1], ends[1:]), 1)


def counted(texts, ngrams, lowercase):
    """The n-grams of texts, the plain way."""
    found = Counter()
    for text in texts:
        words = [word.decode() for word in twin.words_of(text, lowercase)]
        for n in range(1, ngrams + 1):
            found.update(" ".join(words[k : k + n]) for k in range(len(words) - n + 1))
    return found


@pytest.mark.parametrize(("ngrams", "lowercase"), [(1, True), (3, False)])
def test_the_most_frequent_n_grams(ngrams, lowercase):
    draw = random.Random(ngrams)
    texts = ["", *("".join(draw.choices(PIECES, k=draw.randrange(60))) for _ in range(60)), "last"]
    recipe = Hashing(20, 5, ngrams, lowercase, False).recipe()
    found = Spellings()
    for part in (texts[:30], texts[30:]):
        found.add_texts(recipe, *joined(part))
    expected = counted(texts, ngrams, lowercase)
    short = {name: count for name, count in expected.items() if len(name.encode()) <= spellings.LONGEST}
    names = found.names()
    assert set(names) == set(short)
    assert [short[name] for name in names] == sorted(short.values(), reverse=True)
    ids = set(hash_texts(recipe, *joined(texts)).ids.tolist())
    assert {int(h) >> 44 for h in hashes_of(list(expected), 5)} == ids


def test_only_so_many_are_kept_and_counted(monkeypatch):
    monkeypatch.setattr(spellings, "_FEW", 16)
    monkeypatch.setattr(spellings, "_PLACES", 64)
    recipe = Hashing(20, 5, 1, True, False).recipe()
    found = Spellings()
    for k in range(40):
        found.add_texts(recipe, *joined([f"often often word{k} other{k} third{k}"] * 3))
    assert found.names(1) == ["often"]
    assert 1 < len(found.names()) < 64
    found.add_categories({"town=Rome": 1000, f"town={'x' * 200}": 5000})
    assert found.names(2) == ["town=Rome", "often"]


def test_later_blocks_are_looked_at_less(monkeypatch):
    found = Spellings()
    assert [found.next_block(1000) for _ in range(3)] == [1000, 1000, 1000]
    monkeypatch.setattr(spellings, "_ROWS", 3100)
    assert [found.next_block(1000) for _ in range(3)] == [250, 200, 167]
    monkeypatch.setattr(spellings, "_SAMPLED", 40)
    recipe = Hashing(20, 5, 1, True, False).recipe()
    found.add_texts(recipe, *joined([f"word{k}" for k in range(100)]))
    found.add_texts(recipe, *joined([f"other{k}" for k in range(100)]))
    assert sorted(found.names()) == ["other0", "other1", *(f"word{k}" for k in range(9))]


def test_parts_of_words():
    hashing = Hashing(20, 5, 1, True, False, "3:4")
    features = set(hash_texts(hashing.recipe(), *joined(["été"])).ids.tolist())
    parts = ["<ét", "<été", "été", "été>", "té>"]
    assert features == {int(h) >> 44 for h in [*hashes_of(["été"], 5), *hashes_of_parts(parts, 5)]}
