"""The svmlight parser against its slow twin, against scikit-learn, and on everything that can be wrong with a line."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.sparse import encoder as encoders
from hogwild.feeds.sparse.encoder import Summary
from hogwild.feeds.sparse.svmlight import SvmlightEncoder
from hogwild.kernels.parse import lines
from hogwild.kernels.parse import svmlight as kernel
from reference.svmlight import Row, parse_text


def encode(path: Path, content: bytes | str, schema: dict[str, object] | None = None, **options: object):  # type: ignore[no-untyped-def]
    """Rows, lines and summary of a file with this content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    config = FeedConfig(**options)  # type: ignore[arg-type]
    encoder = SvmlightEncoder(config, schema)
    return *rows_of(encoder, open_sources(path, config)), encoder.summary()


def rows_of(encoder: SvmlightEncoder, sources: list[Source]) -> tuple[list[Row], list[int]]:
    rows: list[Row] = []
    lines: list[int] = []
    for chunk in encoder.chunks(sources):
        values = chunk.values if len(chunk.values) else np.ones(len(chunk.ids), np.float32)
        ends = np.cumsum(chunk.lengths)
        for target, start, end in zip(chunk.targets, ends - chunk.lengths, ends, strict=True):
            rows.append((float(target), chunk.ids[start:end].tolist(), values[start:end].tolist()))
        lines += chunk.lines.tolist()
    return rows, lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.svm"


def test_labels_entries_comments_qids_and_blanks(path: Path) -> None:
    text = (
        "# a file\n+1 1:0.5 3:-2e3 # the first\n\n-1 qid:7 2:.5\t4:7.\n0.25   \n1 10:1\r\n"
        "  2 1:1 qid:3\n3#tight\n4 5:6#tight\n"
    )
    rows, lines, summary = encode(path, text)
    assert rows == parse_text(text)
    assert len(rows) == 7
    assert lines == [2, 4, 5, 6, 7, 8, 9]
    assert summary.features == 10
    assert summary.first_id == 1
    assert summary.notes == (
        "Ids start at 1: no id 0 occurs (--zero-based says otherwise).",
        "2 qid fields skipped.",
        "4 comments and 1 blank line skipped.",
    )


def test_carriage_returns_marks_and_missing_newlines(path: Path) -> None:
    for text in (b"1 1:2\r\n0 2:3\r\n", b"\xef\xbb\xbf1 1:2\n0 2:3", b"1 1:2 # caf\xff\xfe\n0 2:3\n\n\n"):
        rows, lines, _ = encode(path, text)
        assert rows == [(1.0, [1], [2.0]), (0.0, [2], [3.0])]
        assert lines == [1, 2]


def test_ids_from_zero_or_one(path: Path) -> None:
    def first(text: str, schema: dict[str, object] | None = None, **options: object) -> Summary:
        return encode(path, text, schema, **options)[2]

    assert first("1 1:1\n").first_id == 1
    zero = first("1 1:1\n1 0:2\n")
    assert (zero.first_id, zero.features, zero.notes[0][:15]) == (0, 2, "Ids start at 0:")
    forced = first("1 1:1\n", zero_based="yes")
    assert (forced.first_id, forced.features, forced.notes) == (0, 2, ())
    assert first("1 1:1\n", schema=zero.schema).first_id == 0
    with pytest.raises(InputError, match=r"a\.svm:2: id 0, but ids start at 1 here; add 1"):
        first("1 1:1\n1 0:2\n", zero_based="no")


def test_unsorted_ids_are_sorted_and_counted(path: Path) -> None:
    rng = random.Random(1)
    lines = []
    for size in (2, 5, 40, 700):
        ids = sorted(rng.sample(range(1, 10_000), size), key=lambda i: (i % 7, -i))
        lines.append("1 " + " ".join(f"{i}:{i / 8}" for i in ids))
    text = "\n".join([*lines, "1 1:1 2:2"])
    rows, _, summary = encode(path, text)
    assert rows == parse_text(text)
    assert rows[3][1] == sorted(rows[3][1])
    assert "4 rows with unsorted ids: sorted." in summary.notes


def test_values_that_are_all_one_are_left_out(path: Path) -> None:
    path.write_text("1 1:1 2:1.0 3:1e0\n0 4:1\n")
    (chunk,) = SvmlightEncoder(FeedConfig()).chunks(open_sources(path))
    assert len(chunk.values) == 0
    assert len(chunk.ids) == 4


BAD = [
    ("1 1:2\nx 1:2\n", "2:1", "the label `x` is not a number"),
    ("1,2 1:2\n", "1:1", "the label `1,2` is not a number"),
    ("1:2 3:4\n", "1:1", "the label is missing: the line begins with `1:2`"),
    ("nan 3:4\n", "1:1", "`nan` is not a finite float32 number"),
    ("1e39 3:4\n", "1:1", "`1e39` is not a finite float32 number"),
    ("1 3:4 -5:1\n", "1:7", "the id of `-5:1` is below 0"),
    ("1 3:4 x:1\n", "1:7", "`x:1` is not id:value"),
    ("1 3:4 3x:1\n", "1:7", "`3x:1` is not id:value"),
    ("1 3:4 5\n", "1:7", "`5` has no colon; expected id:value"),
    ("1 3:4 :5\n", "1:7", "`:5` is not id:value"),
    ("1 qid: 3:4\n", "1:3", "`qid:` is not id:value"),
    ("1 2147483648:1\n", "1:3", "the id of `2147483648:1` is past 2147483647"),
    ("1 99999999999999999999999:1\n", "1:3", "is past 2147483647"),
    ("1 3:\n", "1:3", "the value of `3:` is not a number"),
    ("1 3: 4\n", "1:3", "the value of `3:` is not a number"),
    ("1 3:1.2.3\n", "1:3", "the value of `3:1.2.3` is not a number"),
    ("1 3:0x10\n", "1:3", "the value of `3:0x10` is not a number"),
    ("1 3:1_0\n", "1:3", "the value of `3:1_0` is not a number"),
    ("1 3:1e\n", "1:3", "the value of `3:1e` is not a number"),
    ("1 3:--1\n", "1:3", "the value of `3:--1` is not a number"),
    ("1 3:.\n", "1:3", "the value of `3:.` is not a number"),
    ("1 3:NaN\n", "1:3", "`3:NaN` is not a finite float32 number"),
    ("1 3:-inf\n", "1:3", "`3:-inf` is not a finite float32 number"),
    ("1 3:1e999\n", "1:3", "`3:1e999` is not a finite float32 number"),
    ("1 3:4 3:5\n", "1:7", "id 3 stands twice in one row"),
    ("# c\n\n1 7:4 3:1 7:5 # x\n", "3:11", "id 7 stands twice in one row"),
    ("1 1:2\n\x00\x01\x7f\x80PNG\n", "2:1", "is not a number"),
]


@pytest.mark.parametrize(("text", "place", "what"), BAD)
def test_a_bad_line_is_named_with_its_column(path: Path, text: str, place: str, what: str) -> None:
    with pytest.raises(InputError) as error:
        encode(path, text)
    message = str(error.value)
    assert f"a.svm:{place}: " in message
    assert what in message
    assert message.endswith("Correct the line, or skip such lines with --bad-lines skip.")
    assert "\n" not in message
    assert message.isprintable()


@pytest.mark.parametrize("text", [text for text, _, _ in BAD])
def test_a_bad_line_is_skipped_and_told(path: Path, text: str) -> None:
    good = "1 1:2 4:5\n"
    rows, _, summary = encode(path, good + text + good, bad_lines="skip", bad_share=0.5)
    assert rows[0] == rows[-1] == (1.0, [1, 4], [2.0, 5.0])
    assert len(rows) in (2, 3)
    assert summary.features == 4
    assert any("1 of " in note and "malformed and skipped: " in note for note in summary.notes)


def test_too_many_bad_lines_stop_the_reading(path: Path) -> None:
    text = "1 1:2\n" * 97 + "oops\n" * 3
    rows, _, summary = encode(path, text, bad_lines="skip", bad_share=0.03)
    assert len(rows) == 97
    assert "3 of 100 lines malformed and skipped: " in summary.notes[-1]
    with pytest.raises(InputError, match=r"3 of 100 lines are malformed, more than the share 0\.02"):
        encode(path, text, bad_lines="skip", bad_share=0.02)
    with pytest.raises(InputError, match="lines are malformed"):  # without reading to the end
        encode(path, bytes(range(11, 256)) * 8000 + b"\nx" * 20_000, bad_lines="skip")


def test_features_that_are_asked_for(path: Path) -> None:
    assert encode(path, "1 1:1 5:1\n", features=9)[2].features == 9
    with pytest.raises(InputError, match=r"a\.svm:2: id 10 lies past the 9 features .*set --features 10"):
        encode(path, "1 1:1 5:1\n1 10:1\n1 4:1\n", features=9)


def test_a_schema_leaves_out_what_it_does_not_know(path: Path) -> None:
    schema = encode(path, "1 1:1 5:2\n")[2].schema
    rows, _, summary = encode(path, "1 4:3 6:1 7:1\n0 9:1\n1 1:1\n1\n", schema)
    assert rows == [(1.0, [4], [3.0]), (0.0, [], []), (1.0, [1], [1.0]), (1.0, [], [])]
    assert summary.features == 5
    assert "3 values left out: their ids lie past the 5 known features." in summary.notes
    assert encode(path, "1 4:3 6:1 7:1\n", schema, features=5)[0] == [(1.0, [4], [3.0])]
    with pytest.raises(InputError, match=r"a\.svm:1: id 0, but ids started at 1 in training"):
        encode(path, "1 0:1\n", schema)


def test_rows_without_labels_where_they_are_allowed(path: Path) -> None:
    rows, _, summary = encode(path, "1:2 3:4\nqid:1 5:1\n7 1:1\n", unlabelled=True)
    assert rows == [(0.0, [1, 3], [2.0, 4.0]), (0.0, [5], [1.0]), (7.0, [1], [1.0])]
    assert "2 rows without a label, which predictions do not need." in summary.notes


def test_a_schema_of_another_format(path: Path) -> None:
    with pytest.raises(InputError, match="the model was trained on table, but this is svmlight"):
        encode(path, "1 1:1\n", {"format": "table"})


def test_small_blocks_give_the_same_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    text = "".join(
        f"{rng.choice('01')} " + " ".join(f"{i}:{rng.random():.4g}" for i in range(1, rng.randrange(2, 30))) + "\n"
        for _ in range(300)
    )
    whole, lines, _ = encode(path, text)
    assert whole == parse_text(text)
    monkeypatch.setattr(SvmlightEncoder, "block_size", 512)
    monkeypatch.setattr(encoders, "_SPARE", 188)  # longer blocks than 700 bytes get a room of their own
    assert encode(path, text)[:2] == (whole, lines)


def test_errors_come_in_the_order_of_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SvmlightEncoder, "block_size", 64)
    with pytest.raises(InputError, match=r"a\.svm:501:3: `x` is not"):
        encode(path, "1 1:1\n" * 500 + "1 x\n" * 500)


def test_several_files_are_told_apart(tmp_path: Path) -> None:
    for name, text in (("a", "1 1:1\n"), ("b", ""), ("c", "# c\n0 2:1\n")):
        (tmp_path / name).write_text(text)
    chunks = list(SvmlightEncoder(FeedConfig()).chunks(open_sources([tmp_path / n for n in "abc"])))
    assert [(chunk.file, chunk.lines.tolist()) for chunk in chunks] == [(0, [1]), (2, [2])]


def random_number(rng: random.Random) -> str:
    """Numbers as files have them, and those that are hard to round."""
    value = rng.choice([-1, 1]) * rng.uniform(0.01, 10)  # large enough to be written without an exponent
    low = np.float32(abs(value))
    middle = (float(low) + float(np.nextafter(low, np.float32(9)))) / 2  # exactly between two float32
    return rng.choice([
        str(rng.randrange(10 ** rng.randrange(1, 12))),
        repr(value),
        f"{value:.6g}",
        f"{value:+.16g}",
        f"{value * 10.0 ** rng.randrange(-44, 38):.{rng.randrange(25)}e}",
        f"{value * 10.0 ** rng.randrange(-5, 12):.{rng.randrange(30)}f}",
        repr(middle),
        repr(middle) + rng.choice(["1", "0000000000000000000000001", "e0", "E-1"]),
        f"{rng.randrange(10**40)}e-{rng.randrange(20, 60)}",
        "0." + "0" * rng.randrange(90) + f"1e{rng.randrange(60, 100)}",
        rng.choice(["+.5", "5.", "-0", "007.250", "1e-46", "-1e-45", "1e-400", "3.4028235e38", "0e999", "1E5"]),
    ])


def test_numbers_are_read_as_numpy_reads_them(path: Path) -> None:
    rng = random.Random(3)
    with np.errstate(over="ignore"):
        texts = [t for t in (random_number(rng) for _ in range(40_000)) if np.isfinite(np.float32(float(t)))]
    rows = [texts[k : k + 50] for k in range(0, len(texts), 50)]
    text = "".join(f"{row[0]} " + " ".join(f"{k}:{t}" for k, t in enumerate(row, 1)) + "\n" for row in rows)
    parsed, _, _ = encode(path, text)
    assert len(parsed) == len(rows)
    for words, (label, _, values) in zip(rows, parsed, strict=True):
        expected = np.array([np.float32(float(t)) for t in words])
        assert np.array_equal(np.array(values, np.float32).view(np.int32), expected.view(np.int32)), words
        assert label == expected[0]


entries = st.dictionaries(
    st.integers(1, 2**31 - 1), st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), entries), min_size=1, max_size=8), st.sampled_from([" ", "\t", "  "]))
def test_random_rows_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list, space: str) -> None:
    text = "".join(
        space.join([str(label), *(f"{i}:{v!r}" for i, v in sorted(found.items()))]) + "\n" for label, found in rows
    )
    parsed, _, _ = encode(tmp_path_factory.mktemp("rows") / "a.svm", text)
    assert parsed == [(float(label), sorted(found), [found[i] for i in sorted(found)]) for label, found in rows]


def test_scikit_learn_reads_the_same(path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = [np.unique(rng.integers(1, 99, 20)) for _ in range(200)]
    text = "".join(f"{rng.integers(3)} {' '.join(f'{i}:{rng.normal():.7g}' for i in row)} # c\n" for row in rows)
    matrix, labels = load_svmlight_file(io.BytesIO(text.encode()), dtype=np.float32, zero_based=False)
    parsed, _, summary = encode(path, text)
    assert summary.features == matrix.shape[1]
    assert [row[0] for row in parsed] == labels.tolist()
    assert np.concatenate([row[1] for row in parsed]).tolist() == (matrix.indices + 1).tolist()
    assert np.concatenate([row[2] for row in parsed]).astype(np.float32).tolist() == matrix.data.tolist()


def test_every_short_text_ends(path: Path) -> None:
    """No text, however cut, makes the parser read past its end or loop: junk is an error or a row."""
    rng = random.Random(5)
    alphabet = b"0123456789.:+-eE#qid \t\r\nx\x00\xff"
    for _ in range(300):
        text = np.frombuffer(bytes(rng.choices(alphabet, k=rng.randrange(1, 40))) + b"\n", np.uint8)
        room = kernel.room_for(len(text))
        with np.errstate(over="ignore"):
            kernel.parse_block(text, room, False, False)
        counts = room.counts
        skipped = counts[lines.EMPTY] + counts[lines.BAD] + counts[lines.ROWS]
        assert counts[lines.LINES] == np.count_nonzero(text == 10)
        assert skipped <= counts[lines.LINES] <= skipped + counts[lines.COMMENTS]
        assert room.lengths[: counts[lines.ROWS]].sum() == counts[lines.ENTRIES]


def test_a_comment_right_after_a_number_that_is_hard_to_read(path: Path) -> None:
    long = "0." + "0" * 5000 + "1e4999"  # longer than what messages look at
    parsed, _, _ = encode(path, f"1e-453#t\n1 1:1e-453#t 2:1\n-1 1:{long}#u\n2e-300 # v\n")
    assert parsed == [(0.0, [], []), (1.0, [1], [0.0]), (-1.0, [1], [float(np.float32(0.01))]), (0.0, [], [])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1e39#t\n", ":1:3: `1:1e39` is not a finite float32 number"),
        ("1e39#t\n", ":1:1: `1e39` is not a finite float32 number"),
        ("1 1:1e300000000000#t\n", ":1:3: `1:1e300000000000` is not a finite float32 number"),
        ("1 1:2 2:1 " + "0" * 5000 + "1:3\n", ":1:11: id 1 stands twice in one row"),
    ],
)
def test_what_is_wrong_before_a_comment(path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode(path, text)
