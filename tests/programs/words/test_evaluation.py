"""Tests of words: the values of gensim, all forms of files, and what is wrong with a file."""

from __future__ import annotations

import gzip
import lzma
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import InputError, Vectors
from hogwild.programs.words import evaluation
from hogwild.programs.words.evaluation import correlation, evaluate_test, notes_of, ranks, read_tests, try_tests
from places import DATA
from problems.word_models import gensim_vectors, random_vectors

FOLDER = DATA / "wordsim"

# Of some words there are several forms; the first one counts.
WORDS = ["tiger", "cat", "Paris", "france", "ROME", "italy", "paris", "Rome", "CAT", "berlin", "germany", "king", "man"]
WORDS += ["queen", "woman", "King", "KING", *(f"word{k}" for k in range(40))]
PAIRS = "tiger\tcat\t7.35\nTiger\ttiger\t10\nparis\trome\t6\nKING\tqueen\t8.5\nking\tunicorn\t3\nman\tword7\t0.5\n"
QUESTIONS = """: capitals
Paris France Rome Italy
rome italy berlin germany
Berlin Germany PARIS France
paris france london england
: family
king queen man woman
man woman king queen
king king king king
word1 word2 word3 word39
"""


def related(words: list[str], seed: int = 0) -> np.ndarray:
    """Random vectors in which some analogies hold, and the forms of a word are alike."""
    rng = np.random.default_rng(seed)
    matrix = random_vectors(len(words), 12, seed)
    rows = {word: k for k, word in enumerate(words)}
    for one, other, step in [("paris", "france", 0), ("Rome", "italy", 0), ("berlin", "germany", 0), ("man", "king", 1),
                             ("woman", "queen", 1)]:  # fmt: skip
        offset = np.random.default_rng(step).normal(size=12) * 2
        matrix[rows[other]] = matrix[rows[one]] + offset + rng.normal(size=12) * 0.1
    for first, second in (("Paris", "paris"), ("ROME", "Rome"), ("king", "King"), ("king", "KING"), ("cat", "CAT")):
        matrix[rows[first]] = matrix[rows[second]] + rng.normal(size=12) * 0.01
    return matrix


def both(words: list[str], matrix: np.ndarray) -> tuple[Vectors, Any]:
    theirs = gensim_vectors()(matrix.shape[1])
    theirs.add_vectors(words, matrix)
    return Vectors(words, matrix), theirs


def compare_pairs(ours: Vectors, theirs: Any, path: Path) -> None:
    (test,) = read_tests(path)
    score = evaluate_test(ours, test).pairs
    pearson, spearman, oov = theirs.evaluate_word_pairs(str(path))
    assert score.spearman == pytest.approx(spearman[0], abs=1e-4)
    assert score.pearson == pytest.approx(pearson[0], abs=1e-4)
    assert score.oov == pytest.approx(oov / 100)


def compare_analogies(ours: Vectors, theirs: Any, path: Path, restrict: int) -> float:
    (test,) = read_tests(path)
    score = evaluate_test(ours, test, restrict)
    accuracy, sections = theirs.evaluate_word_analogies(str(path), restrict_vocab=restrict)
    assert score.total.accuracy == pytest.approx(accuracy, abs=1e-4)
    assert [section.section for section in score.sections] == [section["section"] for section in sections[:-1]]
    assert [section.correct for section in score.sections] == [len(section["correct"]) for section in sections[:-1]]
    known = [len(section["correct"]) + len(section["incorrect"]) for section in sections[:-1]]
    assert [section.known for section in score.sections] == known
    return score.total.accuracy


# -- as gensim --


@pytest.mark.parametrize("seed", range(5))
def test_similarity_is_that_of_gensim(tmp_path: Path, seed: int) -> None:
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    compare_pairs(*both(WORDS, related(WORDS, seed)), tmp_path / "pairs.tsv")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("restrict", [14, 30, 30_000])
def test_analogies_are_those_of_gensim(tmp_path: Path, seed: int, restrict: int) -> None:
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    compare_analogies(*both(WORDS, related(WORDS, seed)), tmp_path / "questions.txt", restrict)


def test_some_analogies_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the comparison above is not one of zeros; in groups of one question too."""
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    (test,) = read_tests(tmp_path / "questions.txt")
    vectors = Vectors(WORDS, related(WORDS))
    score = evaluate_test(vectors, test)
    assert score.sections[0].correct >= 2
    assert score.total.questions == 8
    assert score.total.known == 7
    monkeypatch.setattr(evaluation, "_SCORES", 1)
    assert evaluate_test(vectors, test) == score
    assert evaluate_test(vectors, test, 0) == score


@pytest.mark.data
@pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data/wordsim")
def test_real_tests_of_words(tmp_path: Path) -> None:
    with lzma.open(FOLDER / "questions-words.txt.xz", "rt") as stream:
        lines = stream.readlines()
    few = [line for k, line in enumerate(lines) if line.startswith(":") or k % 40 == 0]
    (tmp_path / "questions-words.txt").write_text("".join(few))
    words = list(dict.fromkeys(word.lower() for line in few if line[0] != ":" for word in line.split()))
    files = sorted(FOLDER.glob("EN-*.txt"))
    for path in files:
        words += [word.lower() for line in path.read_text().splitlines() for word in line.split()[:2]]
    words = [word for k, word in enumerate(dict.fromkeys(words)) if k % 10]  # a tenth is unknown
    matrix, rng = random_vectors(len(words), 25), np.random.default_rng(0)
    rows = {word: k for k, word in enumerate(words)}
    for line in few:
        pair = line.lower().split()[:2]
        if line[0] != ":" and all(word in rows for word in pair):
            # Noise: of two equal vectors gensim takes either.
            matrix[rows[pair[1]]] = 0.9 * matrix[rows[pair[0]]] + 0.5 * matrix[0] + 0.1 * rng.normal(size=25)
    vectors, theirs = both(words, matrix)
    assert len(files) == 5
    for path in files:
        compare_pairs(vectors, theirs, path)
    assert 0.01 < compare_analogies(vectors, theirs, tmp_path / "questions-words.txt", 3000) < 0.99
    (whole,) = read_tests(FOLDER / "questions-words.txt.xz")
    assert sum(len(questions) for questions in whole.sections.values()) == 19_544
    assert len(whole.sections) == 14


def test_ranks_and_correlation() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 6, (2, 15)).astype(float)
        np.testing.assert_array_equal(ranks(a), stats.rankdata(a))
        assert correlation(ranks(a), ranks(b)) == pytest.approx(stats.spearmanr(a, b)[0])
    assert math.isnan(correlation(np.ones(1), np.ones(1)))
    assert math.isnan(correlation(np.ones(5), np.arange(5.0)))


# -- files --


@pytest.mark.parametrize(
    "text",
    [
        "tiger\tcat\t7.35\nking\tqueen\t8.5\n",
        "tiger,cat,7.35\nking,queen,8.5",
        "tiger;cat;7.35\nking;queen;8.5",
        "tiger cat 7.35\r\nking  queen 8.5\r\n",
        "\ufeff# a comment\n\nWord 1,Word 2,Human (mean)\ntiger, cat, 7.35\n# more\nking,queen,8.5\n",
        "word1 word2 score\ntiger cat 7.35\nking queen 8.5\n",
        "tiger\tcat\t7.35\t7\t8\nking\tqueen\t8.5\t8\t9\n",
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_forms_of_similarity_files(tmp_path: Path, text: str, pack: object) -> None:
    (tmp_path / "pairs").write_bytes(pack(text.encode()))
    (test,) = read_tests(tmp_path / "pairs")
    assert test.pairs == [("tiger", "cat", 7.35), ("king", "queen", 8.5)]
    assert ("taken for a line of names" in "".join(test.notes)) == ("word1" in text or "Word 1" in text)
    assert ("past the third" in "".join(test.notes)) == ("\t7\t" in text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no word test"),
        ("# only a comment\n", "holds no word test"),
        ("a b 1\nc d\n", r":2: 2 fields where a pair has 3"),
        ("a b 1\n\n# x\nc d high\n", r":4: the score `high` is not a finite number"),
        ("a b 1\nc d nan\n", r":2: the score `nan` is not"),
        ("a,b,1\n,d,2\n", r":2: a word is missing"),
        ("a b c\n", r":1: the score `c` is not a finite number \(the file is read as similarities, `word"),
        (": one\na b c d\na b c\n", r":3: 3 words where a question has 4 \(the file is read as analogies, `a b c d`\)"),
        ("a b c d\na b c d\na b 7\n", r":3: 3 words where a question has 4 \(the file is read as analogies"),
        (": one\n: two\n", "no question"),
        ("a b 1\nc\udcff d 2\n", r":2: is not UTF-8"),
    ],
)
def test_malformed_files_are_named_with_the_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "test.txt"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=said) as caught:
        read_tests(path)
    assert str(path) in str(caught.value)


def test_malformed_lines_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("a b 1\nc d\ne f 2\n")
    (tmp_path / "questions.txt").write_text(": one\na b c d\na b c\n")
    pairs, questions = read_tests([tmp_path / "pairs.txt", tmp_path / "questions.txt"], bad_lines="skip")
    assert len(pairs.pairs) == 2
    assert pairs.notes[0] == f"{tmp_path / 'pairs.txt'}: read as similarities, 2 pairs."
    assert "1 of 3 lines malformed and skipped" in pairs.notes[1]
    assert questions.sections == {"one": [("a", "b", "c", "d")]}
    assert questions.notes[0] == f"{tmp_path / 'questions.txt'}: read as analogies, 1 question in 1 section."
    assert "1 of 3 lines malformed and skipped" in questions.notes[1]


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("Athens Greece Rome Italy\nParis France Rome Italy\n", [2]),
        ("athens\tgreece\trome\titaly\n", [1]),
        ("athens, greece, rome, italy\nparis, france, rome, italy\n", [2]),
        ("# made here\none 1 two 2\na b c d\ne f g h\n", [3]),
        ("a b c d\ne f g h\n: more\na b c d\n", [2, 1]),
    ],
)
def test_analogies_without_sections(tmp_path: Path, text: str, sections: list[int]) -> None:
    (tmp_path / "questions").write_text(text)
    (test,) = read_tests(tmp_path / "questions")
    assert list(map(len, test.sections.values())) == sections
    assert next(iter(test.sections)) == "unnamed"
    assert not test.pairs
    assert "read as analogies" in test.notes[0]


def test_analogies_without_sections_score_as_with_them(tmp_path: Path) -> None:
    vectors = Vectors(WORDS, related(WORDS))
    (tmp_path / "with.txt").write_text(QUESTIONS)
    (tmp_path / "bare.txt").write_text("".join(f"{line}\n" for line in QUESTIONS.splitlines() if line[0] != ":"))
    with_sections, bare = (evaluate_test(vectors, test) for test in read_tests(sorted(tmp_path.iterdir())[::-1]))
    assert bare.total == with_sections.total
    assert bare.total.correct > 0


def test_the_other_files_are_read_when_one_is_wrong(tmp_path: Path) -> None:
    for name, text in {"1": "a b 1\n", "2": "a b\n", "3": "a b c d\n"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    tests, wrong = try_tests([tmp_path / "none.txt", str(tmp_path / "*.txt")])
    assert [Path(test.name).name for test in tests] == ["1.txt", "3.txt"]
    assert ["none.txt does not exist" in str(wrong[0]), "2.txt" in str(wrong[1]), len(wrong)] == [True, True, 2]
    with pytest.raises(InputError, match=r"none\.txt"):
        read_tests([tmp_path / "none.txt", tmp_path / "1.txt"])
    (tmp_path / "4.txt").write_text("a b c d\nc d\n")
    with pytest.raises(InputError, match=r"no pair of words with a score .*, and no analogies either"):
        read_tests(tmp_path / "4.txt", bad_lines="skip")
    with pytest.raises(InputError, match="no input file is given"):
        read_tests([])


def test_nothing_known_is_said(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("x y 1\ny z 2\n")
    (tmp_path / "questions.txt").write_text(": one\na b c d\n")
    vectors = Vectors(["other", "words"], np.eye(2))
    for test in read_tests([tmp_path / "pairs.txt", tmp_path / "questions.txt"]):
        score = evaluate_test(vectors, test)
        (note,) = notes_of(vectors, score)
        assert str(tmp_path) in note
        part = score.pairs or score.total
        assert part.known == 0
        assert part.oov == 1
        assert math.isnan(part.spearman if score.pairs else part.accuracy)
