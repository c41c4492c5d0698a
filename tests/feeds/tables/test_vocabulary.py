"""Ids of categories against a dictionary that goes from cell to cell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hogwild.errors import InputError
from hogwild.feeds.tables.categories import Vocabulary
from hogwild.feeds.tables.frames import Codes


def frame_of(rng: np.random.Generator, rows: int, size: int) -> tuple[list[Codes], np.ndarray]:
    """Three columns of words, some of them twice, some nowhere; and a column of numbers of which some are missing."""
    words = pa.array([f"w{k % (size - 1)}" for k in range(size)])
    columns = [Codes(rng.integers(-1, size // 2, rows).astype(np.int32), words) for _ in range(3)]
    return columns, rng.random((rows, 1)) < 0.1


@pytest.mark.parametrize("rows", [0, 1, 40, 900])
def test_ids_are_those_of_a_dictionary(rows: int) -> None:
    rng = np.random.default_rng(rows)
    vocabulary, known, entries = Vocabulary(["a", "b", "c"], 5, numbers=["n"]), dict[str, int](), list[str]()
    for size in (4, 60, 700):
        columns, missing = frame_of(rng, rows, size)
        expected = np.full((rows, 3), -1)
        for row in range(rows):
            for k, column in enumerate(columns):
                if (code := column.codes[row]) >= 0:
                    expected[row, k] = known.setdefault(f"{'abc'[k]}={column.words[code]}", 5 + len(known))
            if missing[row, 0]:
                known.setdefault("n=", 5 + len(known))
        np.testing.assert_array_equal(vocabulary.ids(columns, rows, missing), expected)
        entries = list(known)
        assert vocabulary.entries() == entries
        assert vocabulary.marks.tolist() == [known.get("n=", -1)]
    again = Vocabulary(["a", "b", "c"], 5, entries, numbers=["n"])
    columns, missing = frame_of(rng, rows, 2000)
    expected = [[known.get(f"{'abc'[k]}={c.words[c.codes[row]]}", -1) if c.codes[row] >= 0 else -1 for k, c in
                 enumerate(columns)] for row in range(rows)]  # fmt: skip
    np.testing.assert_array_equal(again.ids(columns, rows, missing), np.reshape(expected, (rows, 3)))
    assert [again.one(0, entry[2:]) for entry in entries if entry.startswith("a=")] == [
        ident for entry, ident in known.items() if entry.startswith("a=")
    ]


def test_two_words_of_one_hash_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary(["a"], 0)
    vocabulary.ids([Codes(np.zeros(1, np.int32), pa.array(["x"]))], 1)
    whole = Vocabulary._keyed

    def colliding(self: Vocabulary, *given: object) -> object:
        found = whole(self, *given)  # type: ignore[arg-type]
        return found._replace(keys=whole(self, [pa.array(["x"])], [np.zeros(1, np.int64)]).keys)

    monkeypatch.setattr(Vocabulary, "_keyed", colliding)
    with pytest.raises(InputError, match="share a hash"):
        vocabulary.ids([Codes(np.zeros(1, np.int32), pa.array(["y"]))], 1)
