"""libffm and libfm files against their slow twins, and all that can be wrong with a line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from feeds.slots.files import rows_of
from feeds.sparse.files import rows_of as sparse_rows_of
from hogwild.arrays import SlotRows, ValuedSlotRows
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.open import open_feed
from hogwild.feeds.slots.encoder import SlotTextEncoder
from hogwild.feeds.sparse.feed import Feed
from reference.slots import libffm


def open_text(directory: Path, text: str, schema: dict[str, object] | None = None, **options: object) -> Feed:
    path = directory / "train.ffm"
    path.write_text(text)
    return open_feed(path, FeedConfig(**{"cache": False, **options}), schema)  # type: ignore[arg-type]


def test_rows_are_those_of_the_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    lines = []
    for _ in range(900):
        fields = [rng.choice([3, 5, 8, 700, 65535]) for _ in range(rng.randrange(12))]
        if rng.random() < 0.7:
            fields.sort()
        values = [rng.choice(["1", "0.5", "-2e-3", "0.1234567890123456789"]) for _ in fields]
        label = rng.choice(["0", "1", "-1", "2.5"])
        entries = [f"{f}:{rng.randrange(3000)}:{v}" for f, v in zip(fields, values, strict=True)]
        lines.append(" ".join([label, *entries]))
    text = "\n".join([*lines[:5], "", *lines[5:]])
    monkeypatch.setattr(SlotTextEncoder, "block_size", 1 << 12)
    feed = open_text(tmp_path, text)
    assert rows_of(feed) == libffm(text)
    assert isinstance(feed.samples, ValuedSlotRows)
    assert feed.slots == ("3", "5", "8", "700", "65535")
    assert feed.features == 1 + max(key for _, entries, _ in libffm(text) for _, key, _ in entries)
    unsorted = sum(
        [slot for slot, *_ in entries] != [word.split(":")[0] for word in line.split()[1:]]
        for line, (_, entries, _) in zip(lines, libffm(text), strict=True)
    )
    assert feed.notes == ("1 blank line skipped.", f"{unsorted} rows with unsorted fields: sorted.")


def test_all_values_one(tmp_path: Path) -> None:
    feed = open_text(tmp_path, "1 0:4:1 1:4:1.0\n0 1:2:1\n")
    assert isinstance(feed.samples, SlotRows)
    assert rows_of(feed)[0][1] == [("0", 4, 1.0), ("1", 4, 1.0)]
    assert feed.samples.ids[0] == feed.samples.ids[1], "the same id in two fields is one feature"


def test_a_schema_gives_the_same_features(tmp_path: Path) -> None:
    schema = dict(open_text(tmp_path, "1 2:9:1 7:3:2\n").schema)
    assert (schema["slots"], schema["features"]) == (["2", "7"], 10)
    test = open_text(tmp_path, "0 2:3:5 5:1:1 7:9:4\n1 2:10:1 9:1:1\n3:3:3 7:1:1\n", schema, unlabelled=True)
    assert rows_of(test) == [(0.0, [("2", 3, 5.0), ("7", 9, 4.0)], []), (1.0, [], []), (0.0, [("7", 1, 1.0)], [])]
    assert test.features == 10
    assert test.notes == (
        "1 row without a label, which predictions do not need.",
        "4 values left out: training never saw their ids or fields.",
    )


def test_hashed_ids(tmp_path: Path) -> None:
    text = f"1 0:{2**64 - 1}:1 1:{2**64 - 1}:1 1:5:1\n"
    feed = open_text(tmp_path, text, categories="hash", hash_bits=9)
    assert feed.features == 512
    first, second, other = feed.samples.ids.tolist()  # type: ignore[union-attr]
    assert first == second != other
    again = open_text(tmp_path, text, dict(feed.schema))
    assert again.original[again.samples.ids].tolist() == feed.original[feed.samples.ids].tolist()  # type: ignore[index,union-attr]


def test_features_that_are_asked_for(tmp_path: Path) -> None:
    assert open_text(tmp_path, "1 0:4:1\n", features=50).features == 50
    with pytest.raises(InputError, match=r"id 4 lies past the 3 features that were asked for; set --features 5"):
        open_text(tmp_path, "1 0:4:1\n", features=3)


BAD = [
    ("1 0:1:1\nx 0:1:1\n", "2:1", "the label `x` is not a number"),
    ("nan 0:1:1\n", "1:1", "`nan` is not a finite float32 number"),
    ("0:1:1 2:2:2\n", "1:1", "the label is missing: the line begins with `0:1:1`"),
    ("1 0:1\n", "1:3", "`0:1` is not field:id:value"),
    ("1 0:1:\n", "1:3", "the value of `0:1:` is not a number"),
    ("1 0::1\n", "1:3", "`0::1` is not field:id:value"),
    ("1 -1:1:1\n", "1:3", "`-1:1:1` is not field:id:value"),
    ("1 0:-1:1\n", "1:3", "`0:-1:1` is not field:id:value"),
    ("1 0:1:1:1\n", "1:3", "the value of `0:1:1:1` is not a number"),
    ("1 0:1:nan\n", "1:3", "`0:1:nan` is not a finite float32 number"),
    ("1 0:1:1e39\n", "1:3", "`0:1:1e39` is not a finite float32 number"),
    ("1 65536:1:1\n", "1:3", "the field of `65536:1:1` is past 65535"),
    ("1 99999999999999999999999:1:1\n", "1:3", "is past 65535"),
    ("1 0:2147483648:1\n", "1:3", "is past 2147483646; hash larger ones with --categories hash"),
    ("1 0:99999999999999999999999:1\n", "1:3", "is past 2147483646"),
]


@pytest.mark.parametrize(("text", "where", "what"), BAD)
def test_what_is_wrong_with_a_line(tmp_path: Path, text: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        open_text(tmp_path, text, format="libffm")
    assert f"train.ffm:{where}: " in str(caught.value)
    assert what in str(caught.value)
    feed = open_text(tmp_path, "0 1:1:1\n" * 20 + text, format="libffm", bad_lines="skip", bad_share=0.5)
    assert len(feed) == 20 + text.count("\n") - 1


def test_libfm_is_svmlight_from_zero(tmp_path: Path) -> None:
    feed = open_text(tmp_path, "4 1:1 3:2\n5 2:1\n", format="libfm")
    assert feed.features == 4
    assert sparse_rows_of(feed) == [{1: 1.0, 3: 2.0}, {2: 1.0}]
    assert feed.notes == ()
    assert open_text(tmp_path, "4 1:1 3:2\n5 2:1\n").features == 3, "svmlight ids start at 1 here"


def test_content_tells_formats_apart(tmp_path: Path) -> None:
    texts = {"1 0:1:1\n": "libffm", "1 0:1\n": "svmlight", "1\n0 3:1:1\n": "libffm", "1\n": "svmlight"}
    for text, form in texts.items():
        assert open_text(tmp_path, text).schema["format"] == form
