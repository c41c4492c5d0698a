"""Names of rows of weights: the same for the same thing, however often it occurs here, and for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse

import hogwild
from hogwild.errors import ConfigError
from hogwild.programs.row_ids import _SEED, hash_names
from test_own_program import TRAIN, own

FEATURES = 30


def _rows(seed: int) -> hogwild.Feed:
    """All features occur, each feed's own ones most."""
    random = np.random.default_rng(seed)
    often = random.permutation(FEATURES)
    matrix = (random.random((200, FEATURES)) < (often + 1) / (2 * FEATURES)).astype(np.float32)
    matrix[0] = 1
    return hogwild.feed_of(sparse.csr_array(matrix), ["no", "yes"] * 100)


def _started(program: Any, feed: Any) -> Any:
    program.startup(feed, 1)
    return program


MADE = {
    "weight": (hogwild.Linear, {"optimizer": "adam", "l2": 0.1}), "factors": (hogwild.FactorizationMachine, {"dim": 3}),
    "embedding": (hogwild.SparseMLP, {"dim": 4, "hidden": (8,)}), "output": (hogwild.TextClassifier, {"dim": 8}),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_rows_of_features_are_named_by_the_features_own_ids(name: str) -> None:
    make, options = MADE[name]
    first, second = (_started(make(**options), _rows(seed)) for seed in (1, 2))
    assert not np.array_equal(first.row_ids("table"), second.row_ids("table"))
    for program in (first, second):
        ids = program.row_ids("table")
        assert ids.dtype == np.int64
        program.weights.table.reshape(len(ids), -1)[:, 0] = ids
        plain = program.arrays(state=True)["weight" if name in ("weight", "factors") else "embedding"]
        assert plain.reshape(FEATURES, -1)[:, 0].tolist() == list(range(FEATURES))  # in the features' own order
        assert all(program.row_ids(table) is None for table in program.tables() if table != "table")
        program.finish(_rows(1))
        assert program.row_ids("table").tolist() == list(range(FEATURES))


def _same(names: tuple[Any, Any], ids: tuple[Any, Any]) -> None:
    """The same things in another order, each with the same name of its own in both."""
    one, other = (dict(zip(things, found.tolist(), strict=True)) for things, found in zip(names, ids, strict=True))
    assert names[0] != names[1]
    assert one == other
    assert len(set(one.values())) == len(one) == len(names[0])


def test_users_and_items_are_named_by_their_names() -> None:
    users, items = [f"user {k}" for k in range(40)], ["é" * k for k in range(1, 60)]
    started = []
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        pairs = [*random.choice(users, 300).tolist(), *users], [*random.choice(items, 281).tolist(), *items]
        started.append(_started(hogwild.MatrixFactorization(dim=2), hogwild.ratings_of(*pairs)))
    for table in ("users", "items"):
        _same(tuple(getattr(p, table) for p in started), tuple(p.row_ids(table) for p in started))  # type: ignore[arg-type]


def test_words_are_named_by_their_bytes() -> None:
    started = []
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        words = [f"w{k}" for k in range(500)] + [f"w{k}" for k in random.geometric(0.02, 5000) % 500]
        corpus = hogwild.corpus_of([random.permutation(words).tolist()], hogwild.CorpusConfig(min_count=1))
        started.append(_started(hogwild.Word2Vec(dim=4), corpus))
    for table in ("inputs", "outputs"):
        _same((started[0].words, started[1].words), (started[0].row_ids(table), started[1].row_ids(table)))
    started[0].startup(hogwild.corpus_of([["new", "w1", "w1", "w2"] * 5], hogwild.CorpusConfig(min_count=1)), 1)
    known = dict(zip(started[0].words, started[0].row_ids("inputs").tolist(), strict=True))
    old = dict(zip(started[1].words, started[1].row_ids("inputs").tolist(), strict=True))
    assert {word: known[word] for word in old} == old


def _chunks_of(program: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Of each row of rich edges its feature and its pairs of tags."""
    arrays, found = program.arrays(), []
    for feature in range(len(arrays["rich_starts"]) - 1):
        mine = arrays["rich_pairs"][arrays["rich_starts"][feature] : arrays["rich_starts"][feature + 1]].tolist()
        found += [(program.names[feature], tuple(mine[at : at + 8])) for at in range(0, len(mine), 8)]
    return found


@pytest.mark.parametrize("pairs", ["all", "seen"])
def test_features_of_taggers_are_named_by_their_names_and_pairs(pairs: str) -> None:
    tags, started = ("A", "B", "C"), []
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        words = [[f"w{k}" for k in range(20)]] + [[f"w{k}" for k in random.geometric(0.2, 6) % 20] for _ in range(40)]
        codes = [[tags[k] for k in random.integers(0, 3, len(line))] for line in words]
        feed = hogwild.tagging_of([[[word] for word in line] for line in words], codes, tags=tags)
        options = {"rich_edges": True, "rich_edge_min_count": 1, "rich_edge_pairs": pairs}
        started.append(_started(hogwild.CRF(**options), feed))
    first, second = started
    _same((first.names, second.names), (first.row_ids("nodes"), second.row_ids("nodes")))
    assert first.row_ids("edges") is None
    chunks = _chunks_of(first), _chunks_of(second)
    ids = first.row_ids("rich"), second.row_ids("rich")
    assert [len(found) for found in ids] == [first.tables()["rich"].rows, second.tables()["rich"].rows]
    if pairs == "all":
        _same(chunks, ids)
    one, other = (dict(zip(things, found.tolist(), strict=True)) for things, found in zip(chunks, ids, strict=True))
    shared = set(one) & set(other)
    assert shared
    assert all(one[chunk] == other[chunk] for chunk in shared)
    everything = {**one, **other}
    assert len(set(everything.values())) == len(everything)  # rows that weigh other pairs have other names


def test_rows_of_a_users_own_have_the_users_numbers() -> None:
    program = _started(own.make_program(), TRAIN)
    assert program.row_ids("users").tolist() == list(range(own.USERS))
    dense = _started(hogwild.CustomProgram(program.task, own.make_vectors), TRAIN)
    assert dense.row_ids("users") is None


def _fold(state: int, word: int) -> int:
    """The twin of kernels/ids/hashing.py, in Python's whole numbers."""
    every = (1 << 64) - 1
    z = (state * 0xD6E8FEB86659FD93 & every) ^ word
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & every
    z = (z ^ z >> 27) * 0x94D049BB133111EB & every
    return z ^ z >> 31


def _collision() -> tuple[str, str]:
    """Two names of 16 letters with the same hash: the second halves make up for the first ones."""
    random = np.random.default_rng(1)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    while True:
        one, other = (bytes(random.choice(letters, 8)) for _ in range(2))
        states = (_fold(int(_SEED), int.from_bytes(half)) for half in (one, other))
        a, b = (state * 0xD6E8FEB86659FD93 & (1 << 64) - 1 for state in states)
        apart = (a ^ b).to_bytes(8)
        if max(apart) < 128:
            ends = [next((c for c in range(33, 127) if 33 <= c ^ byte < 127), 0) for byte in apart]
            if all(ends):
                others = bytes(end ^ byte for end, byte in zip(ends, apart, strict=True))
                return (one + bytes(ends)).decode(), (other + others).decode()


def test_names_with_the_same_hash_are_refused_in_one_line() -> None:
    one, other = _collision()
    assert one != other
    assert hash_names([one], "users") == hash_names([other], "users")
    feed = hogwild.ratings_of([one, other, "c"], ["x", "y", "z"])
    program = _started(hogwild.MatrixFactorization(dim=2), feed)
    with pytest.raises(ConfigError, match=r"the users .* have the same hash of 64 bits; rename one of them") as caught:
        program.row_ids("users")
    assert repr(one) in str(caught.value)
    assert repr(other) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(program.row_ids("items")) == 3


def test_hashes_are_those_of_the_twin() -> None:
    for name in ("", "a", "to be or", "to be or not", "日本語 + more than eight"):
        data = name.encode()
        state, word = int(_SEED), 0
        for place, byte in enumerate(data):
            word = (word << 8) | byte
            if place % 8 == 7:
                state, word = _fold(state, word), 0
        wanted = _fold(state, word ^ ((len(data) & 255) << 56))
        assert hash_names([name], "words").view(np.uint64).tolist() == [wanted]
