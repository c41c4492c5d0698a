"""Counts and numbers of MultiSlot lines that are none, or too large or too small."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from hogwild.arrays import SlotRows
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed

OPEN = '[[slot]]\nname = "click"\ntype = "uint64"\nlabel = true\n[[slot]]\nname = "I"\ntype = "float"\ndense = true\n'


def opened(directory: Path, text: str | bytes, schema: Any = None, cache: bool = False) -> Feed:
    (directory / "part.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    (directory / "part.slots.toml").write_text(OPEN)
    return open_feed(directory / "part.txt", FeedConfig(format="multislot", cache=cache), schema)


@pytest.mark.parametrize("count", [b"\xb2", "²".encode(), "٣".encode(), b"9999999", b"9" * 5000])
def test_a_first_count_that_is_none(tmp_path: Path, count: bytes) -> None:
    with pytest.raises(InputError, match=r"part\.txt:1:5: .*slot `I`.*(is not a count|its count is 9|count is larger)"):
        opened(tmp_path, b"1 1 " + count + b" 0.5\n")


@pytest.mark.parametrize("number", ["1e-45", "-1e-44", "3e-39", "0", "3.4e38"])
def test_columns_that_are_always_the_same_are_zero(tmp_path: Path, number: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feed = opened(tmp_path, f"1 1 1 {number}\n1 0 1 {number}\n")
    samples = feed.check().samples
    assert isinstance(samples, SlotRows)
    assert samples.dense.tolist() == [[0.0], [0.0]]


def test_a_number_that_the_scale_of_training_makes_infinite(tmp_path: Path) -> None:
    small = opened(tmp_path, "1 1 1 1e-20\n1 0 1 3e-20\n")
    with pytest.raises(InputError, match=r"part\.txt:2: a number is too large for float32 once it is scaled"):
        opened(tmp_path, "1 1 1 1e-20\n1 0 1 1e30\n", small.schema, cache=True)
