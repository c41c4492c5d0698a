"""Files of word vectors: what we write others read, what others write we read, and what is damaged is said."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from hogwild import ConfigError, InputError, Vectors
from hogwild.errors import SaveError
from hogwild.programs.words import files as vectorbinary
from hogwild.programs.words import files as vectorout
from hogwild.programs.words.files import fitting_words
from problems.word_models import gensim_vectors, random_vectors

WORDS = ["the", "naïve", "北京", "</s>", "1", "-0.5", "e\u0301", "no\u00a0break", "#", '"quoted"', "emoji😀"]
MATRIX = random_vectors(len(WORDS), 7)
MATRIX[0] = [0, -0.0, 1e-38, 3e38, -1e-45, 123456789, 0.1]


@pytest.fixture
def vectors() -> Vectors:
    return Vectors(WORDS, np.clip(MATRIX, -1e37, 1e37))


def equal(found: Vectors, wanted: Vectors) -> None:
    assert found.words == wanted.words
    np.testing.assert_array_equal(found.matrix, wanted.matrix)


@pytest.mark.parametrize("line", [b"\x0c", b"\x0b \x0c", b"\x1c", b"\xc2\x85", b"\x0c 1", b"\x0c 1 2 3 4"])
@pytest.mark.parametrize("head", [b"", b"3 3\n", b"\x0c\n"])
def test_blanks_that_are_none_here(tmp_path: Path, line: bytes, head: bytes) -> None:
    """Compiled code ends fields at spaces, tabs and ends of lines; Python's `split` at more."""
    (tmp_path / "a.vec").write_bytes(head + b"the 1.5 2 3\n" + line + b"\nof 1.5 2 3\n")
    with pytest.raises(InputError, match=r"a\.vec:\d: .* number"):
        Vectors.load(tmp_path / "a.vec")


# -- there and back --


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.bin", "v.vec.gz", "v.bin.gz", "v.txt.xz", "v.vec.zst"])
def test_what_is_written_is_read_bit_for_bit(tmp_path: Path, vectors: Vectors, name: str) -> None:
    assert vectors.save(tmp_path / name) == 0
    equal(Vectors.load(tmp_path / name), vectors)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_what_we_write(tmp_path: Path, vectors: Vectors, binary: bool) -> None:
    vectors.save(tmp_path / "v", format="binary" if binary else "text")
    theirs = gensim_vectors().load_word2vec_format(tmp_path / "v", binary=binary)
    assert tuple(theirs.index_to_key) == vectors.words
    np.testing.assert_array_equal(theirs.vectors, vectors.matrix)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", ["v", "v.vec", "v.bin"])
def test_we_read_what_gensim_writes(tmp_path: Path, vectors: Vectors, binary: bool, name: str) -> None:
    theirs = gensim_vectors()(vectors.dim)
    theirs.add_vectors(list(vectors.words), vectors.matrix)
    theirs.save_word2vec_format(tmp_path / name, binary=binary)
    if name == "v.vec" and binary:  # the name says text: only the format that is given wins over it
        with pytest.raises(InputError, match=r"let its name end in \.bin"):
            Vectors.load(tmp_path / name)
        equal(Vectors.load(tmp_path / name, format="binary"), vectors)
    else:
        equal(Vectors.load(tmp_path / name), vectors)


def test_text_without_a_first_line_of_sizes(tmp_path: Path, vectors: Vectors) -> None:
    theirs = gensim_vectors()(vectors.dim)
    theirs.add_vectors(list(vectors.words), vectors.matrix)
    theirs.save_word2vec_format(tmp_path / "glove.txt", write_header=False)
    equal(Vectors.load(tmp_path / "glove.txt"), vectors)


def test_a_file_of_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorbinary, "_BLOCK", 1000)
    monkeypatch.setattr(vectorout, "_BLOCK", 1000)
    vectors = Vectors([f"word{k}" for k in range(30_000)], random_vectors(30_000, 9))
    for name in ("v.vec", "v.bin", "v.vec.gz"):
        vectors.save(tmp_path / name)
        equal(Vectors.load(tmp_path / name), vectors)


@pytest.mark.parametrize(
    "text",
    [
        b"2 2\na 1 2\nb 3 4",                       # no newline at the end
        b"2 2\r\na 1 2\r\nb 3 4\r\n",
        b"2 2\na 1 2 \nb 3 4 \n",                   # as fastText writes it
        b"2 2\na\t1\t2\nb\t3\t4\n",
        b"\xef\xbb\xbf2 2\na 1 2\nb 3 4\n",
        b"\n\na 1 2\n\nb 3 4\n\n",
        b"a 1e0 2.0\nb 3.0000000000000000001 +4\n",
        b"a  1   2\nb 3 4\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_forms_of_text(tmp_path: Path, text: bytes, pack: object) -> None:
    (tmp_path / "v.txt").write_bytes(pack(text))
    equal(Vectors.load(tmp_path / "v.txt"), Vectors(["a", "b"], [[1, 2], [3, 4]]))


def test_words_with_blanks_inside_as_in_files_of_glove(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n1 7 8\n")
    equal(
        Vectors.load(tmp_path / "v.txt"),
        Vectors(["the", ". . .", "at name@domain.com", "1"], [[1, 2], [3, 4], [5, 6], [7, 8]]),
    )


def test_numbers_in_all_lengths_are_the_nearest_float32(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    numbers = [f"{value:.{digits}{kind}}" for value in rng.normal(size=40) * 10.0 ** rng.integers(-20, 20, 40)
               for digits in (1, 6, 9, 17, 30) for kind in "eg"]  # fmt: skip
    (tmp_path / "v.txt").write_text("a " + " ".join(numbers) + "\n")
    wanted = np.array([np.float32(float(number)) for number in numbers])
    np.testing.assert_array_equal(Vectors.load(tmp_path / "v.txt").matrix[0], wanted)


# -- words that the formats cannot hold --


def test_blanks_in_words_become_underscores_and_are_counted(tmp_path: Path) -> None:
    words = ["new york", "new_york", "a\nb", "", "_", "tab\tbed", "x\u2028y", "half\ud800", "fine"]
    vectors = Vectors(words, random_vectors(len(words), 3))
    written = ["new_york_", "new_york", "a_b", "__", "_", "tab_bed", "x_y", "half_", "fine"]
    for name in ("v.vec", "v.bin"):
        assert vectors.save(tmp_path / name) == 6
        found = gensim_vectors().load_word2vec_format(tmp_path / name, binary=name == "v.bin")
        assert found.index_to_key == written
        np.testing.assert_array_equal(found.vectors, vectors.matrix)
    assert fitting_words(("a", "b")) == (["a", "b"], 0)


# -- saving --


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path, vectors: Vectors) -> None:
    path = tmp_path / "v.vec"
    vectors.save(path)
    before = path.read_bytes()
    broken = Vectors(WORDS, vectors.matrix)
    broken.matrix[5, 2] = np.nan
    with pytest.raises(SaveError, match=r"`-0\.5` has numbers that are not finite"):
        broken.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(SaveError, match="directory"):
        vectors.save(tmp_path, format="text")
    with pytest.raises(SaveError, match="No such file"):
        vectors.save(tmp_path / "none" / "v.vec")
    with pytest.raises(ConfigError, match="the name tells no format"):
        vectors.save(tmp_path / "v.npy")
    with pytest.raises(ConfigError, match="choose auto, text, binary or fasttext"):
        Vectors.load(path, format="npy")


# -- bad text --


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"2 2\n", "ends after 0 of the 2 words"),
        (b"a\n", ":1: `a` has no numbers"),
        (b"a b c\n", ":1: `a` has no numbers"),
        (b"0 5\n", "announces 0 5"),
        (b"-3 5\na 1\n", "announces -3 5"),
        (b"3 -5\na 1\n", "announces 3 -5"),
        (b"99999999999999999999 5\na 1 2 3 4 5\n", "announces 9999"),
        (b"1 4294967296\na 1\n", "announces 1 4294967296"),
        (b"1000000 2\na 1 2\n", "announces 1,000,000 words of 2 numbers, at least 6,000,009 bytes, but has 16"),
        (b"1 2000000000\na 1 2\n", ":2: 2 numbers instead of the 2,000,000,000"),
        (b"3 2\naaaaa 1 2\nbbbbb 3 4 \n", "ends after 2 of the 3 words"),
        (b"1 2\na 1 2\nb 3 4\n", "goes on after the 1 words"),
        (b"a 1 2\nb 3\n", ":2: `b` has 1 number instead of 2"),
        (b"a 1 2\n\nb 3 4 5\n", ":3: `b` has 3 numbers instead of 2"),
        (b"a 1 2\nb 3 x\n", ":2:5: `x` is not a number"),
        (b"a 1 2\nb 3 nan\n", ":2:5: `nan` is not a finite"),
        (b"a 1 2\nb inf 3\n", ":2:3: `inf` is not a finite"),
        (b"a 1 2\nb 1e39 3\n", ":2:3: `1e39` is not a finite"),
        (b"1 2\na 1_0 2\n", ":2:3: `1_0` is not a number"),
        (b"a 1_0 2\nb 3 4\n", ":2: `b` has 2 numbers instead of 1"),  # what stands before the last number is a word
        (b"a 1_0\n", ":1: `a` has no numbers"),
        ("a １ ２\n".encode(), ":1: `a` has no numbers"),
        (b"a 1 2\nb 1,5 3\n", ":2:3: `1,5` is not a number"),
        (b"a 1 2\n 3 4\n", ":2: `3` has 1 number instead of 2"),
        (b"a 1 2\nb 1 2\na 3 4\n", "`a` stands twice, as number 1 and as number 3"),
        (b"a 1 2\nb\xff\xfe 1 2\n", r"word number 2, b.xff.xfe, is not UTF-8"),
        (b"2 2\na 1 2\nb \x00\x00 2\n", r"let its name end in \.bin"),
        (b"\xba\x16\x4f\x2f\x0c", "ends at byte 5 inside the version"),  # of a model of fastText
        (b"\x80\x04\x95", "a pickle"),
        (b"PK\x03\x04", "a zip archive"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_text(tmp_path: Path, text: bytes, said: str, packed: bool) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(gzip.compress(text) if packed else text)
    if packed and "at least" in said:  # nobody knows how long a packed file is before its end
        said = "ends after 1 of the 1,000,000 words"
    with pytest.raises(InputError, match=said) as caught:
        Vectors.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_of_fasttext_is_neither_text_nor_records(tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_bytes(b"\xba\x16\x4f\x2f\x0c\x00\x00\x00")
    for format in ("text", "binary"):
        with pytest.raises(InputError, match=r"v\.vec: .*a model of fastText; .*leave the format out"):
            Vectors.load(path, format=format)


# -- bad records --

RECORDS = b"".join(word + b" " + row.tobytes() + b"\n" for word, row in zip(
    (b"aa", b"bb", b"cc"), np.arange(12, dtype="<f4").reshape(3, 4) + 0.1, strict=True
))  # fmt: skip


def test_every_cut_of_a_binary_file_is_seen(tmp_path: Path) -> None:
    whole = b"3 4\n" + RECORDS
    path = tmp_path / "v.bin"
    for length in range(len(whole) - 1):  # without the last newline it is still whole
        for data in (whole[:length], gzip.compress(whole[:length])):
            path.write_bytes(data)
            with pytest.raises(InputError, match=r"empty|cut short|ends |no line of two numbers|no numbers"):
                Vectors.load(path)
    path.write_bytes(whole[:-1])
    assert len(Vectors.load(path)) == 3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"-1 4\n" + RECORDS, "announces -1 4"),
        (b"3 0\n" + RECORDS, "announces 3 0"),
        (b"2000000000 2000000000\n" + RECORDS, "announces 2,000,000,000 words of 2,000,000,000 numbers"),
        (b"9223372036854775807 4\n" + RECORDS, "announces 9223372036854775807 4"),
        (b"4 4\n" + RECORDS, "announces 4 words of 4 numbers, at least 75 bytes, but has 64"),
        (b"2 4\n" + RECORDS, "goes on at byte 43, after the 2 words"),
        (b"3 3\n" + RECORDS, r"word number 2 at byte 19 is empty|word number \d at byte \d+ has no end|goes on"),
        (b"1 1000\n" + b"x" * 5000, "ends at byte 5,007 inside word number 1"),
        (b"1 1\n" + b"x" * 5000 + b"\n" + b"y" * 5000, "word number 1 at byte 4 has no end"),
        (b"1 1\n" + b"x" * 3_000_000, "word number 1 at byte 4 has no end"),
        (b"1 1\n " + b"abcdef", "word number 1 at byte 4 is empty"),
        (b"3 4\n" + RECORDS.replace(b"bb", b"b\xff"), r"word number 2, b.xff, is not UTF-8"),
        (b"3 4\n" + RECORDS.replace(b"bb", b"aa"), "`aa` stands twice, as number 1 and as number 2"),
        (b"3 4\n" + RECORDS[:-17] + np.array([1, np.nan, 2, 3], "<f4").tobytes(), "number 3, `cc`, has numbers"),
        (b"1 4\nx " + np.array([1, -np.inf, 2, 3], "<f4").tobytes(), "number 1, `x`, has numbers that are not finite"),
        (b"\x00\x01\x02\x03", "no line of two numbers|no numbers"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_records(tmp_path: Path, data: bytes, said: str, packed: bool) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(gzip.compress(data) if packed else data)
    if packed:
        said = said + "|ends " if "announces" in said else said
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=said) as caught:
            Vectors.load(path, format="binary")
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)


def test_noise_is_never_more_than_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = b"3 4\n" + RECORDS
    for trial in range(100):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.integers(0, 256)
        for name in ("v.bin", "v.vec", "v"):
            (tmp_path / name).write_bytes(data)
            said = ""
            try:
                found = Vectors.load(tmp_path / name)
            except InputError as error:
                said = str(error)
            else:
                assert np.isfinite(found.matrix).all()
                assert len(found.words) == len(found)
            assert "\n" not in said, trial


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "v.vec").write_bytes(gzip.compress(b"2 2\na 1 2\nb 3 4\n" * 3)[:-12])
    with pytest.raises(InputError, match="gzip data"):
        Vectors.load(tmp_path / "v.vec")
