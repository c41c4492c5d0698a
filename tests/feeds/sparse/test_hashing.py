"""Kernels that read bytes: hashes, words, UTF-8, records; each against its slow twin."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pytest

from hogwild.feeds.io.blocks import check_utf8
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.feeds.tables.delimited import Dialect, as_bytes, sniff
from hogwild.kernels.ids.hashing import hash_bytes, hash_fields, hash_seeded, hash_strings
from hogwild.kernels.ids.tokens import (
    BLANK,
    LONG,
    OK,
    SHORT,
    Layout,
    count_lines,
    find_odd_byte,
    make_lines,
    replace_odd_bytes,
    split_lines,
)
from reference import text as twin

SEED = 99
PIECES = [
    "a", "B", "z9", "Don't", "'tis", "dogs'", "a''b", "O’Neill", "’", "été", "ÉTÉ", "ß", "«bon»", "—", "“x”", "中文",
    "。", "𝔘nicode", "\u00a0", "\u00aa", "\u206f", "\u2070", "\u303f", "\u3041", "x" * 300, "eightchr", "ninechars",
    " ", "  ", "\t", "-", "<br />", "_", "'", "0", "\x7f", "\x01",
]  # fmt: skip
TORN = ["a", ",", '"', '""', "\n", "\r\n", "\r", "b c", '"x"', ',"', '",']


def array_of(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytearray(data), np.uint8)


def bags_of(texts: list[str], hashing: Hashing) -> list[dict[int, float]]:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded])
    bounds = np.stack((ends - [len(text) for text in encoded], ends), axis=1)
    features = hash_texts(hashing.recipe(), array_of(b"".join(encoded)), bounds)
    values = features.values if len(features.values) else np.ones(len(features.ids), np.float32)
    stops = np.cumsum(features.lengths)
    pairs = list(zip(features.ids.tolist(), values.tolist(), strict=True))
    rows = [pairs[stop - length : stop] for stop, length in zip(stops, features.lengths, strict=True)]
    assert all(len(dict(row)) == len(row) for row in rows), "an id stands twice in a row"
    return [dict(row) for row in rows]


def test_hashes_equal_those_of_python() -> None:
    draw = random.Random(1)
    strings = [b"", b"a", b"\0", b"\0a", b"eightchr", b"ninechars", bytes(300)]
    strings += [draw.randbytes(draw.randrange(40)) for _ in range(300)]
    data = array_of(b"".join(strings))
    offsets = np.cumsum([0, *map(len, strings)])
    expected = [twin.hash_bytes(string, SEED) for string in strings]
    with np.errstate(over="ignore"):
        assert [int(hash_bytes(array_of(s), 0, len(s), np.uint64(SEED))) for s in strings] == expected
        for kernel, places in ((hash_strings, offsets), (hash_fields, np.stack((offsets[:-1], offsets[1:]), axis=1))):
            hashes = np.empty(len(strings), np.uint64)
            kernel(data, places, np.uint64(SEED), hashes)
            assert hashes.tolist() == expected
        seeds = np.arange(len(strings), dtype=np.uint64)
        hash_seeded(data, offsets, seeds, hashes)
        assert hashes.tolist() == [twin.hash_bytes(string, seed) for seed, string in enumerate(strings)]
    assert len(set(expected)) == len(set(strings))


def test_hashes_spread_evenly() -> None:
    words = b"".join(b"%06d" % k for k in range(1 << 16))
    hashes = np.empty(1 << 16, np.uint64)
    with np.errstate(over="ignore"):
        hash_strings(array_of(words), np.arange((1 << 16) + 1) * 6, np.uint64(0), hashes)
    for shift in (0, 20, 48):  # of n balls into n boxes a share of 1/e boxes stays empty; sd below 0.0015
        boxes = np.bincount((hashes >> np.uint64(shift)).astype(np.int64) & 0xFFFF, minlength=1 << 16)
        assert abs((boxes == 0).mean() - np.exp(-1)) < 0.01


@pytest.mark.parametrize(
    ("ngrams", "bits", "lowercase", "normalize"), [(1, 20, True, False), (2, 20, True, True), (5, 7, False, False)]
)
def test_bags_of_words_equal_those_of_python(ngrams: int, bits: int, lowercase: bool, normalize: bool) -> None:
    draw = random.Random(ngrams)
    texts = ["", " ", "one", "one one one", "a b a b a b"] + [
        "".join(draw.choices(PIECES, k=draw.randrange(60))) for _ in range(120)
    ]
    hashing = Hashing(bits, SEED, ngrams, lowercase, normalize)
    for text, bag in zip(texts, bags_of(texts, hashing), strict=True):
        expected = twin.bag_of(twin.words_of(text, lowercase), SEED, bits, ngrams, normalize)
        assert list(bag) != [] or not expected
        assert bag == pytest.approx(expected), text


def test_words() -> None:
    assert twin.words_of("Don't — “O’Neill” said: it's 'so' ÉTÉ") == [
        b"don't", b"o'neill", b"said", b"it's", b"so", "ÉtÉ".encode()
    ]


def test_word_order_matters_and_case_does_not() -> None:
    hashing = Hashing(20, SEED, 2, True, False)
    forward, backward, loud = bags_of(["good dog", "dog good", "GOOD Dog"], hashing)
    assert forward == loud
    assert len(forward) == len(backward) == 3
    assert len(set(forward) & set(backward)) == 2


def split(text: bytes, layout: Layout) -> list[tuple[int, int, bytes, bytes]]:
    data = array_of(text)
    lines = make_lines(count_lines(data))
    split_lines(data, layout, lines)
    return [
        (int(status), int(fields), text[a:b], text[c:d])
        for status, fields, (a, b), (c, d) in zip(lines.status, lines.fields, lines.labels, lines.texts, strict=True)
    ]


def test_lines_are_split_into_fields() -> None:
    plain = split(b"pos\tfine film\tindeed\n\n\r\nneg\n neg \t\r\nlast\tone", Layout(0, 1, 2, True))
    assert plain[0] == (OK, 2, b"pos", b"fine film\tindeed")
    assert [line[0] for line in plain] == [OK, BLANK, BLANK, SHORT, OK, OK]
    assert plain[4][2:] == (b"neg", b"\r")
    assert plain[5][2:] == (b"last", b"one")
    inner = split(b"7\tsome text\tpos\r\n7\ttoo\tmany\tfields\n", Layout(2, 1, 3, False))
    assert inner[0] == (OK, 3, b"pos", b"some text")
    assert inner[1][:2] == (LONG, 4)


def odd_place(data: bytes) -> int:
    """Where Python's own decoder stops, or the first NUL."""
    try:
        data.decode("utf-8")
        bad = len(data)
    except UnicodeDecodeError as error:
        bad = error.start
    nul = data.find(b"\0")
    return bad if nul < 0 else min(bad, nul)


def test_invalid_utf8_is_found_where_python_finds_it() -> None:
    draw = random.Random(5)
    pieces = [c.encode() for c in "aé中𝔘\u07ff\u0800\ud7ff\ue000\uffff\U0010ffff"] + [b"plain ascii text " * 12]
    bad = [b"\x80", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf"]
    bad += [b"\xf4\x90\x80\x80", b"\xf5", b"\xff", b"\xe4\xb8", b"\xf0\x9d\x94", b"\0"]
    cases = [b"", *pieces, *bad]
    for _ in range(400):
        parts = draw.choices(pieces, k=draw.randrange(12))
        if draw.random() < 0.7:
            parts.insert(draw.randrange(len(parts) + 1), draw.choice(bad))
        cases.append(b"".join(parts))
    seconds = (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF)
    cases += [bytes([lead, second, 0x80, 0x80]) for lead in range(0xC0, 0x100) for second in seconds]
    for case in cases:
        assert find_odd_byte(array_of(case), 0) == odd_place(case), case


def test_invalid_bytes_are_replaced_one_by_one() -> None:
    data = array_of("é".encode() + b"\xff\xfe a\x80\0 " + b"\xe4\xb8")
    assert replace_odd_bytes(data, np.uint8(63)) == 6
    assert data.tobytes().decode() == "é?? a?? ??"


def test_valid_text_is_not_copied(tmp_path: object) -> None:
    from hogwild.feeds.io.blocks import Block

    text = array_of(b"plain\n")
    assert check_utf8(Block(None, 0, 1, text), replace=True)[0] is text  # type: ignore[arg-type]


def arrow_fields(text: bytes, dialect: Dialect, count: int) -> list[int]:
    """How many fields pyarrow finds in each record."""
    wrong: list[tuple[int, int]] = []

    def keep(row: pyarrow.csv.InvalidRow) -> str:
        wrong.append((row.number - 1, row.actual_columns))
        return "skip"

    names = [str(k) for k in range(count)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(text),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
        pyarrow.csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char='"' if dialect.quoted else False, newlines_in_values=dialect.quoted,
            invalid_row_handler=keep,
        ),
        pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    fields = [count] * (table.num_rows + len(wrong))
    for row, found in wrong:
        fields[row] = found
    return fields


@pytest.mark.parametrize("quoted", [True, False])
def test_records_are_those_of_the_parser(quoted: bool) -> None:
    draw = random.Random(quoted)
    dialect = Dialect(",", quoted)
    compared = 0
    for _ in range(600):
        text = "".join(draw.choices(TORN, k=draw.randrange(1, 14))) + "\n"
        records, end = dialect.records(array_of(text.encode()))
        if end < len(text):
            continue  # an open quote: refused before the parser sees it
        assert records.fields.tolist() == arrow_fields(text.encode(), dialect, 2), repr(text)
        lines = [text[:start].count("\n") for start in records.starts]
        assert records.lines.tolist() == lines
        compared += 1
    assert compared > 200


@pytest.mark.parametrize(
    ("head", "form", "expected"),
    [
        ("a,b\n1,2\n", "csv", (",", True)),
        ("a;b\n1,5;2,5\n", "csv", (";", True)),
        ("a|b|c\n1|2|3\n", "csv", ("|", True)),
        ("a\tb\n1\t2\n", "csv", ("\t", False)),
        ('a\tb\n"x\ty\n', "tsv", ("\t", False)),
        ('a\tb\n"x"\t"y"\n', "tsv", ("\t", True)),
        ('"a, b; c";d\n"1, 2; 3";4\n', "csv", (";", True)),
        ("", "csv", (",", True)),
    ],
)
def test_the_delimiter_is_sniffed(head: str, form: str, expected: tuple[str, bool]) -> None:
    assert sniff(head, form) == expected
    assert as_bytes(head)[-1] == 10
