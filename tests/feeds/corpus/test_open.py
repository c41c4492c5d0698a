"""Running text as a corpus, compared with str.split and Counter."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from pathlib import Path
from typing import Any

import pytest

from hogwild.config import CorpusConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.corpus import encode
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.corpus.open import corpus_of, open_corpus
from hogwild.feeds.storage import words
from reference import corpus as twin

VERSE = "to be or not to be\n\n  that is the question\r\nTo be\tÜber Straße ÜBER über\n"
BLANKS = [b" ", b"\n", b"\t", b"\r", b"\v", b"\f", b"\0", b"  ", b"\n\n", b" \r\n", b"\x1c", b"\xc2\x85", b"\xc2\xa0"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "text.txt"


def read(path: Path, data: str | bytes, vocabulary: Any = None, threads: int = 2, **options: Any) -> Corpus:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return open_corpus(path, CorpusConfig(**{"min_count": 1, "cache": False, **options}), vocabulary, threads).check()


def check(corpus: Corpus, sentences: twin.Sentences, min_count: int = 1, max_vocab: int = 0) -> None:
    expected = twin.vocabulary_of(sentences, min_count, max_vocab)
    assert corpus.words == tuple(expected)
    assert corpus.counts.tolist() == list(expected.values())
    assert corpus.samples.ids.tolist() == twin.ids_of(sentences, corpus.words)
    assert corpus.total == sum(map(len, sentences))
    assert len(corpus) == sum(expected.values())


def random_text(rng: random.Random, size: int) -> bytes:
    """Words of many lengths, of few letters so that they repeat, between blanks of all kinds."""
    letters = ["a", "b", "A", "é", "É", "Σ", "ß", "水", "🙂", "\x01", "\x1f"]
    parts = []
    for _ in range(size):
        length = rng.choice([1, 1, 1, 2, 2, 3, 7, 8, 9, 15, 16, 17, 30])
        chosen = letters if rng.random() < 0.2 else letters[:2]
        parts.append("".join(rng.choice(chosen) for _ in range(length)).encode())
        parts.append(rng.choice(BLANKS[:2]) if rng.random() < 0.7 else rng.choice(BLANKS))
    return b"".join(parts[: rng.choice([-1, len(parts)])])


@pytest.mark.parametrize("seed", range(12))
def test_random_texts_are_read_as_the_twin_reads_them(
    file: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    data = random_text(rng, rng.choice([5, 50, 800])) + b" b\n"
    monkeypatch.setattr(encode, "BLOCK", rng.choice([40, 64, 1000, 1 << 21]))
    monkeypatch.setattr(words, "_FIRST", rng.choice([2, 64]))
    longest, lowercase = rng.choice([9, 35]), rng.random() < 0.5
    sentences = twin.sentences_of(data, lowercase, longest)
    for threads in (1, 2, 3):
        corpus = read(file, data, threads=threads, lowercase=lowercase, max_token=longest)
        check(corpus, sentences)
    min_count, max_vocab = rng.randint(1, 3), rng.choice([0, 1, 7])
    if any(count >= min_count for count in twin.vocabulary_of(sentences).values()):
        corpus = read(file, data, min_count=min_count, max_vocab=max_vocab, lowercase=lowercase, max_token=longest)
        check(corpus, sentences, min_count, max_vocab)
    chosen = ["not there", "b", *[word for word in twin.vocabulary_of(sentences) if word != "b"][:2]]
    encoded = read(file, data, vocabulary=chosen, lowercase=lowercase, max_token=longest)
    assert encoded.words == tuple(chosen)
    assert encoded.samples.ids.tolist() == twin.ids_of(sentences, chosen)
    assert encoded.total == sum(map(len, sentences))
    assert encoded.counts.tolist() == [twin.vocabulary_of(sentences).get(word, 0) for word in chosen]


def test_a_verse(file: Path) -> None:
    corpus = read(file, VERSE)
    check(corpus, twin.sentences_of(VERSE.encode()))
    assert corpus.words[:2] == ("be", "to")
    assert repr(corpus) == f"<Corpus of {file}: 16 words, 13 different>"
    lowered = read(file, VERSE, lowercase=True)
    assert lowered.words[:3] == ("be", "to", "über")
    assert lowered.counts[:3].tolist() == [3, 3, 3]


def test_many_words_with_equal_beginnings_and_counts(file: Path) -> None:
    names = [f"anticonstitution{k}" for k in range(300)] + [f"word{k}" for k in range(300)] + ["wor", "antic"]
    random.Random(1).shuffle(names)
    check(read(file, " ".join(names)), [names])


@pytest.mark.parametrize("end", ["", "\n", " ", "\n\n"])
def test_an_endless_line_loses_no_word(file: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 32)
    data = " ".join(f"w{k % 17}" for k in range(500)) + end
    for pad in range(4):  # pieces end everywhere, also exactly with the file
        corpus = read(file, "x" * pad + " " + data, max_token=20)
        check(corpus, twin.sentences_of(("x" * pad + " " + data).encode()))
        assert corpus.samples.ids.tolist().count(-1) == 1


def test_files_end_sentences(tmp_path: Path) -> None:
    for name, text in [("a.txt", "one two"), ("b.txt", "two three\n"), ("c.txt", "")]:
        (tmp_path / name).write_text(text)
    corpus = open_corpus(tmp_path / "*.txt", CorpusConfig(min_count=1))
    check(corpus, [["one", "two"], ["two", "three"]])
    assert corpus.source.endswith("a.txt and 2 more")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, bytes])
def test_compressed_texts_and_commands(file: Path, pack: Any) -> None:
    data = b"\xef\xbb\xbf" + VERSE.encode() * 500
    check(read(file, pack(data)), twin.sentences_of(data))
    check(read(file, pack(data), pipe="tr e i") if pack is bytes else read(file, pack(data), pipe="cat"),
          twin.sentences_of(data.replace(b"e", b"i") if pack is bytes else data))  # fmt: skip


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(VERSE.encode())))
    check(open_corpus("-", CorpusConfig(min_count=1)), twin.sentences_of(VERSE.encode()))


def test_lists_of_words() -> None:
    given = [["New York", "is", "big"], [], ["", "is", "it"], ["\x00", "tab\tin", "it", "New York"], ["É", "é"]]
    corpus = corpus_of(iter(given), CorpusConfig(min_count=1, lowercase=True))
    expected = [[word.lower() for word in sentence if word] for sentence in given]
    check(corpus, [sentence for sentence in expected if sentence])
    assert corpus.notes == ("1 empty word left out.",)
    assert corpus.source == "sentences"
    known = corpus_of(given, vocabulary=["it", "is"])
    assert known.samples.ids.tolist() == [1, -1, 1, 0, -1, 0, -1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["to be or not"], r"sentence 0 is a string, not a list of words; give sentence\.split\(\)"),
        ("to be", "the sentences are str; give lists of words"),
        (7, "the sentences are int"),
        ([["a"], 7], "sentence 1 is int; give a list of words"),
        ([["a", 7]], "`7` is int, not a word"),
        ([["a", "\ud800"]], "half a surrogate pair"),
        ([], "the sentences: no words"),
    ],
)
def test_lists_that_are_none(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        corpus_of(given, CorpusConfig(min_count=1))


def test_more_words_than_memory_is_set_aside_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_FIRST", 8)
    rng = random.Random(3)
    text = [f"É{min(int(rng.paretovariate(0.4)), 10**9)}" for _ in range(5000)]
    for read_it in (
        lambda config: read(file, " ".join(text), **config),
        lambda config: corpus_of([text], CorpusConfig(**config)),
    ):
        corpus = read_it({"min_count": 2, "lowercase": True, "max_vocabulary": 100})  # 64 is a power of two
        exact = twin.vocabulary_of([[word.lower() for word in text]], 2)
        (note,) = [note for note in corpus.notes if "read again" in note]
        assert note.startswith("More than 64 different words (--max-vocabulary)")
        lost = int(note.split("more than ")[1].split(" ")[0].replace(",", ""))
        assert 2 <= lost < 1000
        assert "rarer ones may be" in note
        found = dict(zip(corpus.words, corpus.counts.tolist(), strict=True))
        assert all(exact[word] == count for word, count in found.items()), "counts are exact"
        assert all(word in found for word, count in exact.items() if count > lost)
        assert len(found) < len(exact), "the limit is real"
        assert corpus.samples.ids.tolist() == twin.ids_of([[word.lower() for word in text]], corpus.words)
        assert corpus.total == len(text)
    with pytest.raises(InputError, match="an iterator cannot be read twice"):
        corpus_of(iter([text]), CorpusConfig(max_vocabulary=64))
    assert corpus_of(iter([text]), vocabulary=text[:1]).total == len(text), "that needs no counting"


def test_words_to_keep_stay_however_rare_they_are(file: Path) -> None:
    text = "a a a a b b b c c d e"
    keep = ["d", "zebra", "b"]
    for read_it in (
        lambda **config: (file.write_text(text), open_corpus(file, CorpusConfig(cache=False, **config), keep=keep))[1],
        lambda **config: corpus_of([text.split()], CorpusConfig(**config), keep=keep),
    ):
        corpus = read_it(min_count=3)
        assert dict(zip(corpus.words, corpus.counts.tolist(), strict=True)) == {"a": 4, "b": 3, "d": 1}
        assert corpus.samples.ids.tolist() == twin.ids_of([text.split()], corpus.words)
        assert corpus.notes == ("2 words left out that occur fewer than 3 times (--min-count): 3 occurrences.",)
        assert read_it(min_count=9).words == ("b", "d"), "no word but these would be left"
        assert read_it(min_count=1, max_vocab=3).words == ("a", "b", "d"), "others make room"
        assert read_it(min_count=1, max_vocab=1).words == ("b", "d")
    with pytest.raises(InputError, match="no word occurs 9 times"):
        corpus_of([text.split()], CorpusConfig(min_count=9), keep=["zebra"])
    with pytest.raises(InputError, match="give one of the two"):
        corpus_of([text.split()], vocabulary=["a", "b"], keep=["a"])


def test_words_to_keep_are_counted_where_memory_is_short(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_FIRST", 2)
    rng = random.Random(5)
    text = ["once", *(f"w{int(rng.paretovariate(0.6)) % 5000}" for _ in range(6000))]
    config = CorpusConfig(min_count=5, max_vocabulary=64, cache=False)
    assert "once" not in read(file, " ".join(text), **vars(config)).words
    corpus = open_corpus(file, config, keep=["once"])
    assert corpus.words[-1] == "once"
    assert corpus.counts[-1] == 1
    assert corpus.samples.ids.tolist() == twin.ids_of([text], corpus.words)


@pytest.mark.parametrize(("most", "min_count"), [(2, 1), (16, 1), (64, 1), (64, 3), (1024, 2)])
def test_what_is_dropped_does_not_depend_on_threads(
    file: Path, monkeypatch: pytest.MonkeyPatch, most: int, min_count: int
) -> None:
    """Each thread dropped what was rare in the pieces that it came to take."""
    monkeypatch.setattr(words, "_FIRST", 2)
    monkeypatch.setattr(encode, "BLOCK", 256)
    rng = random.Random(most)
    text = [f"w{int(rng.paretovariate(0.6)) % 5000}" for _ in range(6000)]
    file.write_text(" ".join(text))
    config = CorpusConfig(min_count=min_count, max_vocabulary=most, cache=False)
    left, lost = twin.count_within(text, most)
    exact = twin.vocabulary_of([text], min_count)
    for threads in (1, 2, 3):
        corpus = open_corpus(file, config, threads=threads)
        assert dict(zip(corpus.words, corpus.counts.tolist(), strict=True)) == {
            word: count for word, count in exact.items() if word in left
        }
        assert any(f"more than {lost:,} times" in note for note in corpus.notes) == bool(lost)
        assert corpus.samples.ids.tolist() == twin.ids_of([text], corpus.words)


def test_a_limit_that_is_not_reached_changes_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 256)
    text = [f"w{k * k % 61}" for k in range(3000)]
    file.write_text(" ".join(text))
    different = len(set(text))
    assert 16 < different <= 32
    usual, tight = (
        open_corpus(file, CorpusConfig(min_count=1, max_vocabulary=most, cache=False), threads=3)
        for most in (1 << 22, 32)
    )
    assert (tight.words, tight.notes) == (usual.words, usual.notes)
    assert tight.samples.ids.tolist() == usual.samples.ids.tolist()


def test_memory_is_told_before_it_is_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "memory", lambda: 1_500_000)
    file.write_text(" ".join(f"w{k}" for k in range(30_000)))
    with pytest.raises(InputError, match=r"65,536 different words needs 0\.0 GB, .*lower --max-vocabulary"):
        open_corpus(file, CorpusConfig(min_count=1, cache=False), threads=1)
    corpus = open_corpus(file, CorpusConfig(min_count=1, cache=False, max_vocabulary=8192), threads=1)
    assert len(corpus.words) <= 8192


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("", {}, r"text\.txt: no words; is the file empty\?"),
        (" \n \0\n", {}, "no words"),
        ("a b a", {"min_count": 5}, r"no word occurs 5 times; the most frequent one, `a`, occurs 2 times\. Lower"),
        (b"good\nb\xe9d", {}, r"text\.txt:2: byte 0xe9, byte 7 of the text, is not UTF-8; .*--invalid-utf8 replace"),
        (b"a " * 99 + b"\xff", {}, r"text\.txt:1: byte 0xff, byte 199 of the text"),
        ("hello".encode("utf-16"), {}, r"text\.txt: this looks like UTF-16; convert it"),
        (gzip.compress(VERSE.encode() * 99)[:-20], {}, r"text\.txt: the gzip data ends too early"),
        ("a", {"pipe": "echo no >&2; false"}, r"the command `.*` failed with exit code 1: no\. Correct --pipe"),
        ("a b", {"vocabulary": []}, "the vocabulary is empty"),
        ("a b", {"vocabulary": "ab"}, "one string; give a list"),
        ("a b", {"vocabulary": ["a", ""]}, "holds ''; give words"),
        ("a b", {"vocabulary": ["a", 1]}, "holds 1; give words"),
        ("a b", {"vocabulary": ["a", "b", "a"]}, "has `a` twice"),
        ("a b", {"vocabulary": ["a", "\ud800"]}, "the vocabulary holds half a surrogate pair"),
        ("a b", {"vocabulary": ["c"]}, "no word of the text is in the vocabulary"),
        ("", {"vocabulary": ["c"]}, "no words; is the file empty"),
    ],
)
def test_bad_input(file: Path, data: Any, options: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 1100)
    with pytest.raises(InputError, match=message):
        read(file, data, **options)


def test_a_missing_file(file: Path) -> None:
    with pytest.raises(InputError, match=r"text\.txt does not exist; check the path"):
        open_corpus(file)


def test_the_line_of_a_bad_byte_far_inside(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 1100)
    data = b"some words here\n" * 1000 + b"and \xc3( not \xff\n" + b"more words\n" * 500 + b"\xff"
    for threads in (1, 2, 3):
        with pytest.raises(InputError, match=r"text\.txt:1001: byte 0xc3, byte 16,005 of"):
            read(file, data, threads=threads)
        corpus = read(file, data, threads=threads, invalid_utf8="replace")
        assert corpus.notes == ("3 bytes not UTF-8, read as `?`.",)
        check(corpus, twin.sentences_of(data.replace(b"\xc3", b"?").replace(b"\xff", b"?")))


def test_nul_bytes(file: Path) -> None:
    corpus = read(file, b"a\0b\0\0c\n")
    assert corpus.notes == ("3 NUL bytes read as white space.",)
    check(corpus, [["a", "b", "c"]])


@pytest.mark.parametrize("size", [1 << 20, 5 << 20])
def test_a_word_of_megabytes(file: Path, size: int) -> None:
    data = "a b " + "é" * (size // 2) + " c " + "y" * 1001 + " " + "z" * 1000 + "\nd"
    corpus = read(file, data)
    assert corpus.notes == ("2 words longer than 1,000 bytes (--max-token) left out.",)
    check(corpus, [["a", "b", "c", "z" * 1000], ["d"]])


def test_one_word_is_not_enough_to_train(file: Path) -> None:
    with pytest.raises(InputError, match=r"text\.txt: at least two different words are needed \(there is only `a`\)"):
        read(file, "a a a").check_trainable()
    assert len(read(file, "a b").check_trainable().words) == 2


def test_rare_words_are_told(file: Path) -> None:
    corpus = read(file, "a a a b b c c d", min_count=2, max_vocab=2)
    assert corpus.words == ("a", "b")
    assert corpus.notes == (
        "1 word left out that occurs fewer than 2 times (--min-count): 1 occurrence.",
        "1 word left out that occurs less often than the first 2 (--max-vocab): 2 occurrences.",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count"), ({"max_vocab": -1}, "max_vocab"), ({"phrases": -1}, "phrases"),
        ({"phrase_threshold": float("nan")}, "phrase_threshold"), ({"max_token": 0}, "max_token"),
        ({"phrase_min_count": -1}, "phrase_min_count"), ({"invalid_utf8": "skip"}, "invalid_utf8"),
    ],
)  # fmt: skip
def test_options_that_cannot_work(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CorpusConfig(**options)
