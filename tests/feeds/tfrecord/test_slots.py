"""TFRecord files whose features are slots: ids, words and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.arrays import SlotRows, ValuedSlotRows
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.tfrecord.read import TfrecordEncoder
from reference.tfrecord import example, record

SLOTS = """
[[slot]]
name = "town"
type = "string"

[[slot]]
name = "click"
type = "uint64"
label = true

[[slot]]
name = "ads"
type = "uint64"

[[slot]]
name = "I"
type = "float"
dense = true
"""


def row(towns: Any = (b"Ulm",), click: Any = (1,), ads: Any = (5,), numbers: Any = (1.0, 2.0), **more: Any) -> bytes:
    whole = {"I": numbers, "ads": ads, "town": towns, "click": click, **more}
    return record(example({name: list(values) for name, values in whole.items() if values is not None}))


ROWS = [
    row(), row((b"Bonn", b"Ulm"), (0,), (2**63 + 1, 5), (3, -4)), row((), (1.0,), (-1,), (0.0, 0.0)),
    row(None, (0,), None, other=[7]),
]  # fmt: skip


class Files:
    """A description and a file with these records."""

    def __init__(self, directory: Path) -> None:
        self.path, self.slots = directory / "a.tfrecord", directory / "slots.toml"
        self.slots.write_text(SLOTS)

    def open(self, rows: list[bytes], schema: dict[str, Any] | None = None, **options: Any) -> Feed:
        self.path.write_bytes(b"".join(rows))
        given = {} if schema else {"slots": str(self.slots)}
        return hogwild.open_feed(self.path, FeedConfig(**{"cache": False, **given, **options}), schema)

    def entries(self, feed: Feed) -> list[list[tuple[str, int]]]:
        """For each row the slot and the feature of its entries."""
        samples = feed.samples
        assert isinstance(samples, SlotRows | ValuedSlotRows)
        assert feed.original is not None
        pairs = zip(samples.slots.tolist(), feed.original[samples.ids].tolist(), strict=True)
        whole = [(feed.slots[slot], ident) for slot, ident in pairs]
        return [whole[first:last] for first, last in zip(samples.offsets, samples.offsets[1:], strict=False)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_words_ids_and_numbers(files: Files) -> None:
    feed = files.open(ROWS)
    assert isinstance(feed.samples, SlotRows)
    assert (feed.slots, feed.dense) == (("town", "ads"), ("I1", "I2"))
    # Ulm and Bonn, then the ads 5, 2^63 + 1 and 2^64 - 1 (stored as -1).
    assert files.entries(feed) == [
        [("town", 0), ("ads", 2)], [("town", 1), ("town", 0), ("ads", 3), ("ads", 2)], [("ads", 4)], [],
    ]  # fmt: skip
    assert feed.features == 5
    assert feed.samples.targets.tolist() == [1, 0, 1, 0]
    raw = np.array([[1, 2], [3, -4], [0, 0], [1, 2]])
    assert np.allclose(feed.samples.dense, (raw - raw.mean(0)) / raw.std(0), rtol=1e-6)
    assert feed.notes == (
        "Numbers are centred on the mean of their column and divided by its standard deviation (not with --no-scale).",
        "2 lists missing in records, read as empty.",
    )
    assert feed.place(3) == f"{files.path}:4"


def test_another_file_gets_the_same_ids(files: Files) -> None:
    trained = files.open(ROWS)
    later = [row((b"Ulm", b"Paris"), (1,), (7, 5), (10.0, 10.0)), row((b"Bonn",), None)]
    feed = files.open(later, trained.schema, unlabelled=True)
    assert files.entries(feed) == [[("town", 0), ("ads", 2)], [("town", 1), ("ads", 2)]]
    assert feed.features == trained.features
    raw = np.array([[1, 2], [3, -4], [0, 0], [1, 2]])
    assert np.allclose(feed.samples.dense[0], (10 - raw.mean(0)) / raw.std(0), rtol=1e-6)  # type: ignore[union-attr]
    assert feed.notes == (
        "1 row without a label, which predictions do not need.",
        "2 entries with categories that training never saw left out.",
    )
    with pytest.raises(InputError, match="`click` is missing"):
        files.open(later, trained.schema)
    for damaged in ({"plan": [{"name": 3}]}, {"keys": ["x"]}, {"scales": [1.0]}, {"plan": None}):
        with pytest.raises(ModelError):
            TfrecordEncoder(FeedConfig(), {**trained.schema, **damaged})


def test_hashed_and_shared(files: Files) -> None:
    feed = files.open(ROWS, categories="hash", hash_bits=12, scale=False)
    assert feed.features == 4096
    found = files.entries(feed)
    assert found[0][0] == found[1][1]
    assert found[0][0] != found[1][0]
    assert feed.samples.dense.tolist() == [[1, 2], [3, -4], [0, 0], [1, 2]]  # type: ignore[union-attr]
    again = files.open(ROWS[:1], feed.schema)
    assert files.entries(again) == found[:1]
    files.slots.write_text(SLOTS.replace('name = "town"\ntype = "string"', 'name = "seen"\ntype = "uint64"'))
    assert files.entries(files.open([row(seen=[5, 6])], shared_ids=True)) == [[("seen", 0), ("seen", 1), ("ads", 0)]]


def test_the_description_is_part_of_the_key_of_the_cache(files: Files) -> None:
    assert files.open(ROWS, cache=True).features == 5
    files.slots.write_text(SLOTS.replace('name = "ads"', 'name = "ads"\nused = false'))
    assert files.open(ROWS, cache=True).features == 2
    without = files.open(ROWS, cache=True, ignore=("town",))
    assert (without.slots, without.dense, without.nonzeros) == ((), ("I1", "I2"), 0)


BAD = {
    "feature `I` is missing": row(numbers=None),
    "feature `I` has 3 numbers, but it is dense with 2": row(numbers=(1.0, 2.0, 3.0)),
    "feature `I` has 1 number, but it is dense with 2": row(numbers=(1,)),
    "feature `I` holds a number that is not finite": row(numbers=(1.0, float("nan"))),
    "feature `I` is a list of bytes": row(numbers=(b"1", b"2")),
    "the label feature `click` is neither 0 nor 1": row(click=(2,)),
    "the label feature `click` is neither 0 nor 1 (other": row(click=(0.5,)),
    "feature `click` is missing": row(click=None),
    "feature `ads` is a list of floats": row(ads=(1.0,)),
    "feature `town` is a list of floats": row((1.0,)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_with_a_record(files: Files, what: str) -> None:
    with pytest.raises(InputError) as caught:
        files.open([ROWS[0], BAD[what], ROWS[1]])
    assert str(caught.value).startswith(f"{files.path}: record 2 (byte {len(ROWS[0])}): ")
    assert what in str(caught.value)
    feed = files.open([ROWS[0], BAD[what], ROWS[1]], bad_lines="skip", bad_share=0.5)
    assert files.entries(feed) == files.entries(files.open(ROWS[:2]))
    assert np.allclose(feed.samples.dense, files.open(ROWS[:2]).samples.dense)  # type: ignore[union-attr]


def test_labels_of_any_number_and_values(files: Files) -> None:
    valued = SLOTS.replace("label = true", 'label = "number"').replace('"ads"\n', '"ads"\nvalues = "w"\n')
    files.slots.write_text(valued + '\n[[slot]]\nname = "w"\ntype = "float"\n')
    feed = files.open([row(click=(2.5,), w=(0.5,)), row(ads=(1, 2), w=(3.0, 4.0))])
    assert isinstance(feed.samples, ValuedSlotRows)
    assert feed.samples.values.tolist() == [1, 0.5, 1, 3, 4]
    assert feed.samples.targets.tolist() == [2.5, 1]
    with pytest.raises(InputError, match="feature `ads` has 1 id, but 2 values"):
        files.open([row(w=(0.5, 0.5))])
    with pytest.raises(InputError, match="feature `w` is missing"):
        files.open([row()])
    with pytest.raises(ConfigError, match="--slots describes all features"):
        files.open(ROWS, indices="ads")
