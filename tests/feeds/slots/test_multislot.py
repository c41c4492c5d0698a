"""MultiSlot files against their slow twin, features of slots, and all that can be wrong with a line."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hogwild
from feeds.slots.files import RARE, keys_of, rows_of
from hogwild.arrays import SlotRows, ValuedSlotRows
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.slots.encoder import SlotTextEncoder
from hogwild.feeds.slots.flatten import flattened
from hogwild.feeds.slots.multislot import MultiSlotEncoder
from hogwild.feeds.sparse.feed import Feed
from reference.slots import multislot

SLOTS = """
[[slot]]
name = "price"
type = "float"
dense = true
width = 2
[[slot]]
name = "site"
type = "uint64"
[[slot]]
name = "session"
type = "uint64"
used = false
[[slot]]
name = "ads"
type = "uint64"
[[slot]]
name = "click"
type = "uint64"
label = true
"""
KINDS = [("price", "dense"), ("site", "ids"), ("session", "unused"), ("ads", "ids"), ("click", "label")]
PROTO = """
name: "MultiSlotDataFeed" batch_size: 2
multi_slot_desc {
  slots { name: "price" type: "float" is_dense: true is_used: true }
  slots { name: "site" type: "uint64" is_used: true }
  slots { name: "session" type: "uint64" }
  slots { name: "ads" type: "uint64" is_used: true }
  slots { name: "click" type: "uint64" is_used: true }
}
"""
TEXT = "2 0.5 -1e-3 1 7 2 8 9 2 7 18446744073709551615 1 1\n\n2 .25 3 1 7 0 0 1 0\n2 1 1 2 9 7 1 x 1 7 1 1\n"


class Place:
    """A directory with a description and a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.slots = directory / "slots.toml"
        self.slots.write_text(SLOTS)

    def open(self, text: str | bytes, schema: dict[str, object] | None = None, **options: object) -> Feed:
        path = self.directory / "part.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        settings = {"slots": str(self.slots), "scale": False, "cache": False, **options}
        return open_feed(path, FeedConfig(**settings), schema)  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_rows_are_those_of_the_twin(place: Place) -> None:
    feed = place.open(TEXT)
    assert rows_of(feed) == multislot(TEXT, KINDS)
    assert (feed.slots, feed.dense, feed.features) == (("site", "ads"), ("price1", "price2"), 4)
    assert feed.lines is not None
    assert feed.lines.tolist() == [1, 3, 4]
    assert feed.notes == ("1 blank line skipped.",)
    assert isinstance(feed.samples, SlotRows)
    place.slots.write_text(PROTO)
    again = place.open(TEXT)
    assert rows_of(again) == rows_of(feed)
    assert again.notes[0].endswith("batch_size: 2, which is not followed; flags say how to train.")


def test_blanks_tabs_marks_and_missing_newlines(place: Place) -> None:
    padded = b"2 1 2 1 0000000000000000000000007 0 1 00000005 1 1"
    for text in (b"\xef\xbb\xbf 2\t1  2 1 7 0 01 5 1 1", b"2 1 2 1 7\t0 1 5 1 1 \r\n\r\n", padded):
        assert rows_of(place.open(text)) == [(1.0, [("site", 7, 1.0), ("ads", 5, 1.0)], [1.0, 2.0])]


def test_random_rows_in_small_blocks(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    keys = [rng.randrange(10 ** rng.randrange(1, 20)) for _ in range(300)] + [2**64 - 1, 2**63, 10**19, 0]

    def ids() -> str:
        count = rng.choice([0, 1, 1, 2, 12])
        return " ".join(map(str, [count, *(rng.choice(keys) for _ in range(count))]))

    def number() -> str:
        return rng.choice(["{:.5f}", "{:e}", "{:g}", "{:.25f}"]).format(rng.gauss(0, 10.0 ** rng.randrange(-9, 9)))

    text = "".join(f"2 {number()} {number()} {ids()} {ids()} {ids()} 1 {rng.randrange(2)}\n" for _ in range(3000))
    monkeypatch.setattr(SlotTextEncoder, "block_size", 1 << 12)
    feed = place.open(text)
    assert rows_of(feed) == multislot(text, KINDS)
    counts = np.bincount(feed.samples.ids, minlength=feed.features)  # type: ignore[union-attr]
    assert (np.diff(counts) <= 0).all(), "ids are not ranks"
    hashed = place.open(text, categories="hash", hash_bits=18)
    assert hashed.features == 1 << 18
    enumerated = feed.original[feed.samples.ids]  # type: ignore[index,union-attr]
    pairs = set(zip(enumerated.tolist(), hashed.original[hashed.samples.ids].tolist(), strict=True))  # type: ignore[index,union-attr]
    assert len(pairs) == feed.features, "a category has two hashes"
    assert len({other for _, other in pairs}) > 0.99 * feed.features


def test_values_of_ids(place: Place) -> None:
    place.slots.write_text(
        '[[slot]]\nname="q"\ntype="uint64"\nvalues="w"\n[[slot]]\nname="ad"\ntype="uint64"\n'
        '[[slot]]\nname="w"\ntype="float"\n[[slot]]\nname="y"\ntype="float"\nlabel="number"\n'
    )
    text = "2 4 4 1 9 2 0.5 -2 1 0.123456789012345678\n0 0 0 1 -7\n"
    feed = place.open(text)
    assert isinstance(feed.samples, ValuedSlotRows)
    assert rows_of(feed) == multislot(text, [("q", "ids"), ("ad", "ids"), ("w", "q"), ("y", "label")])
    with pytest.raises(InputError, match=r"part.txt:2:7: slot `w`: its count 2 is not that of the ids"):
        place.open("0 0 0 1 1\n1 4 0 2 1 1 1 1\n")
    assert isinstance(place.open("1 4 0 1 1.0 1 1\n").samples, SlotRows), "values that are all 1 are stored"


def test_slots_have_ids_of_their_own_or_share_them(place: Place) -> None:
    own, shared = place.open(TEXT), place.open(TEXT, shared_ids=True)
    assert (own.features, shared.features) == (4, 3)
    assert rows_of(shared) == rows_of(own)
    for hashed in (place.open(TEXT, categories="hash"), place.open(TEXT, categories="hash", shared_ids=True)):
        ids = hashed.samples.ids.tolist()  # type: ignore[union-attr]
        assert (ids[0] == ids[1]) == hashed.schema["shared_ids"], "the 7 of one slot is that of the other"
    other = place.open(TEXT, categories="hash", hash_seed=1)
    assert set(other.original[other.samples.ids]) != set(hashed.original[hashed.samples.ids])  # type: ignore[index,union-attr]


def test_rare_categories(place: Place) -> None:
    text = "".join(f"2 1 1 1 {k % 5} 0 2 {k % 7} {k} 1 {k % 2}\n" for k in range(35)) + "2 1 1 1 99 0 1 99 1 1\n"
    feed = place.open(text, min_count=3)
    seen = Counter((slot, key) for _, entries, _ in multislot(text, KINDS) for slot, key, _ in entries)
    expected = [
        [(slot, key if seen[slot, key] >= 3 else RARE, value) for slot, key, value in entries]
        for _, entries, _ in multislot(text, KINDS)
    ]
    assert [entries for _, entries, _ in rows_of(feed)] == expected
    assert feed.features == 5 + 7 + 2
    assert "30 categories seen less than 3 times (30 entries) are the rare feature of their slot." in feed.notes
    shared = place.open(text, min_count=3, shared_ids=True)
    assert shared.features == 8 + 1 - (seen["site", 99] + seen["ads", 99] < 3)
    later = place.open("2 1 1 2 4 77 0 1 1 1 0\n", feed.schema)
    assert rows_of(later)[0][1] == [("site", 4, 1.0), ("site", RARE, 1.0), ("ads", 1, 1.0)]
    (note,) = later.notes
    assert note == "1 entry with categories that training saw rarely or never are the rare feature of their slot."


def test_a_schema_gives_the_same_features(place: Place) -> None:
    train = place.open(TEXT, scale=True)
    schema = dict(train.schema)
    text = "2 2 2 2 7 8 0 1 9 1 0\n2 1 1 1 9 0 2 18446744073709551615 7 1 1\n"
    test = place.open(text, schema, slots="", scale=True)
    rows = rows_of(test)
    assert [entries for _, entries, _ in rows] == [
        [("site", 7, 1.0)], [("site", 9, 1.0), ("ads", 2**64 - 1, 1.0), ("ads", 7, 1.0)],
    ]  # fmt: skip
    assert test.features == train.features
    assert test.notes == ("2 entries with categories that training never saw left out.",)
    raw = np.array([dense[0] for _, _, dense in rows_of(place.open(TEXT))])
    assert rows[0][2][0] == pytest.approx((2 - raw.mean()) / raw.std())
    assert rows_of(train)[1][2][0] == pytest.approx((0.25 - raw.mean()) / raw.std())
    assert any("standard deviation" in note for note in train.notes)


def test_many_categories_are_kept_as_few_texts(place: Place) -> None:
    text = "".join(f"2 1 1 1 {k} 0 1 {k * 977} 1 1\n" for k in range(40_000))
    feed = place.open(text)
    assert feed.features == 80_000
    assert len(feed.schema["keys"]) < 400
    again = place.open(text, feed.schema)
    features = again.original[again.samples.ids].tolist()  # type: ignore[index,union-attr]
    assert keys_of(again, features, again.samples.slots.tolist())[-2:] == [39_999, 39_999 * 977]  # type: ignore[union-attr]


def test_damaged_schemas(place: Place) -> None:
    schema = dict(place.open(TEXT).schema)
    for change in ({"keys": ["x"]}, {"sizes": [1, 1]}, {"sizes": [-1, 5]}, {"scales": [1.0]}, {"plan": [{}]},
                   {"hashing": {"bits": 99, "seed": 0}}):  # fmt: skip
        with pytest.raises(ModelError, match="what the model says of its slots is damaged"):
            place.open(TEXT, {**schema, **change})
    with pytest.raises(InputError, match="trained on svmlight, but this is multislot"):
        place.open(TEXT, {"format": "svmlight", "features": 3}, format="multislot")


def test_rows_without_labels_are_for_prediction_only(place: Place) -> None:
    schema = dict(place.open(TEXT).schema)
    bare = "2 1 2 1 7 0 0\n2 1 2 1 7 0 0 0\n2 1 2 1 7 0 0 1 1\n"
    feed = place.open(bare, schema, unlabelled=True)
    assert [row[0] for row in rows_of(feed)] == [0, 0, 1]
    assert feed.notes == ("2 rows without a label, which predictions do not need.",)
    for given in (None, schema):
        with pytest.raises(InputError, match=r"part.txt:1:14: the line ends before slot `click`; 5 slots"):
            place.open(bare, given, unlabelled=given is None)


GOOD = "2 1 2 1 7 0 1 5 1 1\n"
BAD = [
    (GOOD + "2 1 2 -1 7 0 1 5 1 1\n", "2:7", "slot `site`: the count -1 is negative"),
    ("2 1 2 x 7 0 1 5 1 1\n", "1:7", "slot `site`: `x` is not a count; perhaps a count before it is wrong"),
    ("2 1 2 1.5 7 0 1 5 1 1\n", "1:7", "slot `site`: `1.5` is not a count"),
    ("2 1 2 - 7 0 1 5 1 1\n", "1:7", "slot `site`: `-` is not a count"),
    ("2 1 2 1 7 0 9 5 1 1\n", "1:20", "the line ends within slot `ads`, whose count is larger"),
    ("2 1 2 1 7 0 99999999999999999999999 5\n", "1:13", "the line ends within slot `ads`"),
    ("2 1 2 1 7 0 1000000000000000 5\n", "1:31", "the line ends within slot `ads`"),
    ("2 1 2 1 7 3 4\n", "1:14", "the line ends within slot `session`"),
    ("2 1 2 2 7 0 1 5 1 1\n", "1:20", "the line ends before slot `click`"),
    ("2 1 2 1 7 0 0 5 1 1\n", "1:15", "the label slot `click` has the count 5; it must be 1"),
    ("2 1 2 1 7\n", "1:10", "the line ends before slot `session`; 5 slots are described"),
    ("2 1 2 1 7 0 1 5 1 1 1 8\n", "1:21", "`1` stands after the last slot"),
    ("3 1 2 3 1 7 0 1 5 1 1\n", "1:1", "slot `price`: its count is 3, but it is dense with 2"),
    ("2 1 nan 1 7 0 1 5 1 1\n", "1:5", "slot `price`: `nan` is not a finite float32 number"),
    ("2 1 -inf 1 7 0 1 5 1 1\n", "1:5", "slot `price`: `-inf` is not a finite float32 number"),
    ("2 1 1e39 1 7 0 1 5 1 1\n", "1:5", "slot `price`: `1e39` is not a finite float32 number"),
    ("2 1 2x 1 7 0 1 5 1 1\n", "1:5", "slot `price`: `2x` is not a number"),
    ("2 1\n", "1:4", "the line ends within slot `price`"),
    ("2 1 2 1 7 0 1 -5 1 1\n", "1:15", "slot `ads`: `-5` is not an id, which is a whole number from 0"),
    ("2 1 2 1 7 0 1 0.5 1 1\n", "1:15", "slot `ads`: `0.5` is not an id"),
    ("2 1 2 1 7 0 1 word 1 1\n", "1:15", "slot `ads`: `word` is not an id"),
    ("2 1 2 1 7 0 1 18446744073709551616 1 1\n", "1:15", "slot `ads`: the id 18446744073709551616 is past 64 bits"),
    ("2 1 2 1 7 0 1 999999999999999999999 1 1\n", "1:15", "is past 64 bits"),
    ("2 1 2 1 7 0 1 000018446744073709551616 1 1\n", "1:15", "is past 64 bits"),
    ("2 1 2 1 7 0 1 5 1 2\n", "1:19", "the label `2` is neither 0 nor 1"),
    ("2 1 2 1 7 0 1 5 1 -1\n", "1:19", "the label `-1` is neither 0 nor 1"),
    ("2 1 2 1 7 0 1 5 1 yes\n", "1:19", "the label `yes` is not a number"),
    ("2 1 2 1 7 0 1 5 1 nan\n", "1:19", "the label `nan` is not a finite float32 number"),
    ("2 1 2 1 7 0 1 5 0\n", "1:17", "the label slot `click` has the count 0; it must be 1"),
    ("2 1 2 1 7 0 1 5 2 1 1\n", "1:17", "the label slot `click` has the count 2; it must be 1"),
    ("\x00\x01PNG\n", "1:1", "is not a count"),
]


@pytest.mark.parametrize(("text", "where", "what"), BAD)
def test_what_is_wrong_with_a_line(place: Place, text: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        place.open(text)
    message = str(caught.value)
    assert f"part.txt:{where}: " in message
    assert what in message
    assert message.endswith("Correct the line, or skip such lines with --bad-lines skip.")


def test_bad_lines_are_skipped_and_counted(place: Place) -> None:
    text = "".join(line for bad, _, _ in BAD for line in (GOOD, bad))
    feed = place.open(text, bad_lines="skip", bad_share=0.6)
    assert rows_of(feed) == multislot(GOOD, KINDS) * (len(BAD) + 1)
    count = f"{len(BAD)} of {2 * len(BAD) + 1} lines malformed and skipped: "
    assert any(note.startswith(count) for note in feed.notes)
    with pytest.raises(InputError, match=r"more than the share 0\.01"):
        place.open(text, bad_lines="skip")


def test_files_that_cannot_be_read_at_all(place: Place) -> None:
    for text in ("", "\n \n"):
        with pytest.raises(InputError, match="no rows; is the file empty"):
            place.open(text)
    with pytest.raises(ConfigError, match="need a description of their slots; give it with --slots"):
        place.open(TEXT, slots="", format="multislot")
    with pytest.raises(ConfigError, match=r"there is no slot `clicked` \(--label\) .did you mean click"):
        place.open(TEXT, label="clicked")
    with pytest.raises(ConfigError, match=r"there is no slot `sites` \(--ignore\)"):
        place.open(TEXT, ignore=("sites",))
    with pytest.raises(ConfigError, match=r"txt is read as svmlight, but --slots describes multislot and tfrecord"):
        place.open(TEXT, format="svmlight")
    place.slots.write_text('[[slot]]\nname="w"\ntype="string"\n[[slot]]\nname="y"\ntype="float"\nlabel=true\n')
    with pytest.raises(InputError, match="slot `w` holds words; MultiSlot lines have uint64 and float"):
        place.open(TEXT)
    place.slots.write_text(
        '[[slot]]\nname="w"\ntype="float"\n[[slot]]\nname="i"\ntype="uint64"\nvalues="w"\n'
        '[[slot]]\nname="y"\ntype="float"\nlabel=true\n'
    )
    with pytest.raises(InputError, match="slot `w` stands before `i`, whose values it holds"):
        place.open(TEXT)


def test_min_count_needs_categories_that_are_counted() -> None:
    with pytest.raises(ConfigError, match="hashed categories are not counted"):
        FeedConfig(categories="hash", min_count=2)
    with pytest.raises(ConfigError, match="hash_seed is -1"):
        FeedConfig(hash_seed=-1)


def test_compressed_files_globs_pipes_and_standard_input(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows_of(place.open(TEXT + TEXT))
    for name in ("a", "b"):
        (place.directory / f"{name}.gz").write_bytes(gzip.compress(TEXT.encode()))
    config = FeedConfig(slots=str(place.slots), scale=False, cache=False)
    both = open_feed(str(place.directory / "*.gz"), config)
    assert rows_of(both) == expected
    assert both.place(3).endswith("b.gz:1")
    piped = place.open("drop\n" + TEXT + TEXT, pipe="tail -n +2")
    assert rows_of(piped) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((TEXT + TEXT).encode())))
    assert rows_of(open_feed("-", config)) == expected


def test_the_cache_knows_the_description(place: Place) -> None:
    first = place.open(TEXT, cache=True)
    assert place.open(TEXT, cache=True).fingerprint == first.fingerprint
    place.slots.write_text(SLOTS.replace('"ads"', '"adverts"'))
    other = place.open(TEXT, cache=True)
    assert (first.slots, other.slots) == (("site", "ads"), ("site", "adverts"))
    assert place.open(TEXT, cache=True, min_count=2).schema != other.schema


def test_a_model_keeps_its_vocabulary(place: Place) -> None:
    train = place.open("".join(f"2 1 1 1 {k} 0 1 {k % 9} 1 {k % 2}\n" for k in range(9000)))
    program = hogwild.Linear()
    hogwild.train(program, flattened(train), epochs=1, mode="serial", quiet=True)
    path = place.directory / "model"
    hogwild.save_model(path, program, feed_schema=train.schema, feed_config=FeedConfig(slots="gone.toml"))
    model = hogwild.load_model(path)
    assert (path / "vocabulary-1.txt").stat().st_size < 60_000
    text = "2 1 1 1 8999 0 1 3 1 1\n"
    assert rows_of(place.open(text, model.schema, slots="gone.toml")) == multislot(text, KINDS)


def test_the_compiler_may_be_off(place: Place) -> None:
    """The same rows from the interpreter."""
    text = TEXT + "2 123456.789012345678 1e-30 3 12345678 123456789012345678 7 0 0 1 0\n"
    path = place.directory / "part.txt"
    path.write_text(text)
    code = (
        "import sys; from hogwild.feeds.open import open_feed; from hogwild.config import FeedConfig;"
        "from feeds.slots.files import rows_of; path, slots = sys.argv[1:];"
        "make = lambda **more: open_feed(path, FeedConfig(slots=slots, scale=False, cache=False, **more));"
        "print(rows_of(make()) == rows_of(make(shared_ids=True)), rows_of(make(min_count=2))[1:2]);"
        "print(rows_of(make()), make(categories='hash', hash_bits=9).samples.ids.tolist())"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, str(path), str(place.slots)], env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    hashed = place.open(text, categories="hash", hash_bits=9).samples.ids.tolist()  # type: ignore[union-attr]
    cut = rows_of(place.open(text, min_count=2))[1:2]
    assert done.stdout == f"True {cut}\n{multislot(text, KINDS)} {hashed}\n", done.stderr[-2000:]


def test_arrays_are_used_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.directory / "part.txt"
    path.write_text(GOOD * 20_000)
    monkeypatch.setattr(SlotTextEncoder, "block_size", 1 << 14)
    config = FeedConfig(slots=str(place.slots))
    encoder = MultiSlotEncoder(config, threads=2)
    used = [chunk.targets.ctypes.data for chunk in encoder.chunks(open_sources(path, config))]
    assert len(used) > 20
    assert len(set(used)) <= 2 * 2 + 2


def test_slots_that_do_not_rise_are_refused(place: Place) -> None:
    feed = place.open("2 1 1 2 7 8 0 0 1 1\n2 1 1 0 0 0 1 1\n2 1 1 1 7 0 2 5 5 1 1\n")
    feed.check()
    for k in (1, 2):  # within the first row, and within the third after an empty one
        assert isinstance(feed.samples, SlotRows)
        slots = feed.samples.slots.copy()
        slots[k - 1], slots[k] = 1, 0
        broken = replace(feed, samples=feed.samples._replace(slots=slots))
        if k == 2:  # a new row may begin with a smaller slot
            broken.check()
            continue
        with pytest.raises(InputError, match="not in rising order"):
            broken.check()
