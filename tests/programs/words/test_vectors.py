"""Queries over word vectors, beside those of gensim and beside loops that are plainly right."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import ConfigError, InputError, UnknownWordError, Vectors
from hogwild.errors import ModelError
from hogwild.programs.words import similarity
from problems.word_models import gensim_vectors, random_vectors, save_words

WORDS = [f"word{k}" for k in range(300)]
MATRIX = random_vectors(300, 16)


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    return Vectors(WORDS, MATRIX)


@pytest.fixture(scope="module")
def gensim() -> Any:
    made = gensim_vectors()(16)
    made.add_vectors(WORDS, MATRIX)
    return made


def same(ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> None:
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], atol=1e-5)


# -- what there is --


def test_lookups(vectors: Vectors) -> None:
    assert len(vectors) == 300
    assert vectors.dim == 16
    assert vectors.words == tuple(WORDS)
    assert "word7" in vectors
    assert "word300" not in vectors
    assert vectors.row("word7") == 7
    np.testing.assert_array_equal(vectors["word7"], MATRIX[7])
    assert vectors.matrix.dtype == np.float32
    assert "300 words, 16 numbers" in repr(vectors)


def test_a_pickle_has_the_same_words_and_numbers(vectors: Vectors) -> None:
    again = pickle.loads(pickle.dumps(vectors))
    assert again.words == vectors.words
    np.testing.assert_array_equal(again.matrix, vectors.matrix)


def test_lookups_as_in_gensim(vectors: Vectors, gensim: Any) -> None:
    assert list(vectors) == WORDS
    np.testing.assert_array_equal(vectors[["word3", "word1", "word3"]], gensim[["word3", "word1", "word3"]])
    assert vectors[[]].shape == (0, 16)
    assert vectors.get("word300") is None
    assert vectors.get("word300", 5) == 5
    np.testing.assert_array_equal(vectors.get("word2"), gensim["word2"])
    assert vectors.key_to_index == gensim.key_to_index
    assert vectors.index_to_key == gensim.index_to_key
    vectors.key_to_index["new"], vectors.index_to_key[0] = 1, "new"  # copies: nothing else changes
    assert "new" not in vectors
    assert vectors.words[0] == "word0"
    with pytest.raises(UnknownWordError, match="'tea', 'coffee' are not in the vocabulary"):
        vectors[["tea", "word1", "coffee"]]
    for key in (3, [3], None):
        with pytest.raises(InputError, match="is no word"):
            vectors[key]


def test_counts(vectors: Vectors, tmp_path: Path) -> None:
    counted = Vectors(["a", "b"], np.eye(2), counts=[7, 3])
    assert counted.get_vecattr("b", "count") == 3
    assert pickle.loads(pickle.dumps(counted)).counts.tolist() == [7, 3]
    loaded = Vectors.load(save_words(tmp_path / "model", ["a", "b", "c"], np.eye(3)))
    assert loaded.counts.tolist() == [3, 2, 1]
    assert loaded.get_vecattr("a", "count") == 3
    counted.save(tmp_path / "v.vec")
    assert Vectors.load(tmp_path / "v.vec").counts is None
    with pytest.raises(ConfigError, match="nobody knows how often"):
        vectors.get_vecattr("word1", "count")
    with pytest.raises(ConfigError, match="attr is 'sample_int'"):
        counted.get_vecattr("a", "sample_int")
    with pytest.raises(InputError, match="2 words need as many counts"):
        Vectors(["a", "b"], np.eye(2), counts=[1])


@pytest.mark.parametrize(
    ("words", "matrix", "said"),
    [
        (["a", "a"], [[1.0], [2.0]], "`a` stands twice, as number 1 and as number 2"),
        (["a"], [[1.0], [2.0]], "1 words need a matrix of shape"),
        (["a"], [1.0], "1 words need a matrix of shape"),
        (["a"], [[]], "shape"),
        ([], np.zeros((0, 3)), "no words"),
        ([1], [[1.0]], "texts"),
        (["a", "b"], [[1.0], [1.0, 2.0]], "equal length"),
        (["a", "b"], [[1.0], ["x"]], "does not hold numbers"),
        (["a", "b"], [[1.0], [np.nan]], "`b` .row 1. has numbers that are not finite"),
        (["a", "b"], [[np.inf], [1.0]], "`a` .row 0. has numbers that are not finite"),
    ],
)
def test_what_cannot_be_vectors(words: list[str], matrix: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Vectors(words, matrix)


# -- as gensim --


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        ("word3", ()),
        (["word3"], ()),
        (["word3", "word9"], ["word200"]),
        (["word3", "word3"], ["word4", "word5"]),
        ((), "word17"),
        (MATRIX[8] * 3, ()),
        ([MATRIX[8], "word2"], [MATRIX[5], "word1"]),
        (["word3"], ["word3"]),
        ([("word3", 2.0), "word9", (MATRIX[8], 0.5)], [("word200", -0.25)]),
        ([("word3", 1), ("word9", -1.5)], ()),
    ],
)
@pytest.mark.parametrize(("topn", "restrict"), [(10, 0), (1, 0), (400, 0), (10, 50)])
def test_most_similar_is_that_of_gensim(
    vectors: Vectors, gensim: Any, positive: object, negative: object, topn: int, restrict: int
) -> None:
    ours = vectors.most_similar(positive, negative, topn, restrict)
    theirs = gensim.most_similar(
        positive if len(positive) else None, negative if len(negative) else None, topn=topn,
        restrict_vocab=restrict or None,
    )  # fmt: skip
    if negative == ["word3"]:  # the sum is zero: everything is as near
        assert [value for _, value in ours] == [value for _, value in theirs]
    else:
        same(ours, theirs)


def test_similarity_is_that_of_gensim(vectors: Vectors, gensim: Any) -> None:
    for other in ("word1", "word50", "word299"):
        assert vectors.similarity("word1", other) == pytest.approx(float(gensim.similarity("word1", other)), abs=1e-6)


def test_a_word_with_a_weight_needs_no_list(vectors: Vectors) -> None:
    assert vectors.most_similar(("word3", 2.0)) == vectors.most_similar("word3")
    assert vectors.most_similar(negative=["word3"]) == vectors.most_similar([("word3", -1.0)])
    with pytest.raises(InputError, match=r"weight of `word3` in negative is 2, which would add it; write -2"):
        vectors.most_similar("word1", [("word3", 2.0)])


def test_the_odd_word_is_that_of_gensim(vectors: Vectors, gensim: Any) -> None:
    for first in range(0, 300, 7):
        words = WORDS[first : first + 6]
        assert vectors.doesnt_match(words) == gensim.doesnt_match(words)
    assert vectors.doesnt_match(["word5"]) == "word5"


def test_the_similarity_of_sets_is_that_of_gensim(vectors: Vectors, gensim: Any) -> None:
    for one, other in ((WORDS[:3], WORDS[3:9]), (["word1", "word1"], ["word2"]), (WORDS[:5], WORDS[:5])):
        wanted = float(gensim.n_similarity(one, other))
        assert vectors.n_similarity(one, other) == pytest.approx(wanted, abs=1e-6)


def test_ranks_are_those_of_gensim(vectors: Vectors, gensim: Any) -> None:
    for other in WORDS[::11]:
        assert vectors.rank("word4", other) == gensim.rank("word4", other)
    near = vectors.most_similar("word4", topn=3)
    assert [vectors.rank("word4", word) for word, _ in near] == [1, 2, 3]
    assert vectors.rank("word4", "word4") == 1


def test_analogy_is_the_third_side_of_the_fourth(vectors: Vectors, gensim: Any) -> None:
    same(vectors.analogy("word1", "word2", "word3", 5), gensim.most_similar(["word2", "word3"], ["word1"], topn=5))


def test_an_analogy_whose_answer_is_known() -> None:
    king, man, woman = np.eye(5)[:3]
    names = ["king", "man", "woman", "queen", "tea"]
    vectors = Vectors(names, [king + man, man, woman, king + woman, np.eye(5)[4]])
    assert vectors.analogy("man", "king", "woman")[0][0] == "queen"


def test_many_at_once_are_as_one_by_one(vectors: Vectors) -> None:
    found = vectors.neighbors(WORDS[:80], 7)
    for word, ours in zip(WORDS, found, strict=False):
        same(ours, vectors.most_similar(word, topn=7))
    same(vectors.neighbors(["word4"], 5, restrict_vocab=20)[0], vectors.most_similar("word4", (), 5, 20))
    assert vectors.neighbors([]) == []


# -- exact search --


def slow_scores(matrix: np.ndarray, query: np.ndarray) -> list[float]:
    wide, wanted = matrix.astype(np.float64), query.astype(np.float64)
    sizes = [float(np.linalg.norm(row) * np.linalg.norm(wanted)) for row in wide]
    return [float(row @ wanted) / size if size else 0.0 for row, size in zip(wide, sizes, strict=True)]


@pytest.mark.parametrize("queries", [1, 5, 70])
@pytest.mark.parametrize("count", [1, 4, 90, 500])
def test_search_in_small_tiles_is_the_slow_one(queries: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles smaller than what is kept, more parts than one, equal rows, and rows of zeros."""
    monkeypatch.setattr(similarity, "_SCORES", 64)
    monkeypatch.setattr(similarity, "_QUERIES", 3)
    monkeypatch.setattr(similarity, "_WORTH", 1)
    monkeypatch.setattr(similarity, "cores", lambda: 3)
    matrix = random_vectors(257, 6, seed=1)
    matrix[[5, 90, 200]] = matrix[4]
    matrix[[17, 100]] = 0
    wanted = random_vectors(queries, 6, seed=2)
    wanted[0] = matrix[4]
    found = similarity.nearest(matrix, similarity.norms_of(matrix), similarity.units(wanted), count)
    assert found.rows.shape == (queries, min(count, 257))
    for query, rows in zip(wanted, found.rows.tolist(), strict=True):
        scores = slow_scores(matrix, query)
        assert len(set(rows)) == len(rows)
        np.testing.assert_allclose([scores[row] for row in rows], sorted(scores, reverse=True)[:count], atol=1e-6)
    assert found.rows[0, :4].tolist() == [4, 5, 90, 200][:count]  # of equal ones the first


def test_zeros_are_similar_to_nothing() -> None:
    vectors = Vectors(["a", "b", "nothing"], [[1, 0], [-1, 0.1], [0, 0]])
    assert vectors.similarity("a", "nothing") == 0
    assert vectors.similarity("nothing", "nothing") == 0
    assert vectors.most_similar("a") == [("nothing", 0.0), ("b", pytest.approx(-0.995, abs=1e-3))]
    assert vectors.most_similar("nothing") == [("a", 0.0), ("b", 0.0)]


@pytest.mark.parametrize("size", [1e-40, 1e-25, 1e-12, 1e15, 1e37])
def test_the_size_of_vectors_does_not_matter(size: float, vectors: Vectors) -> None:
    other = Vectors(WORDS, MATRIX.astype(np.float64) / MATRIX.max() * size)
    tolerance = 1e-2 if size < 1e-38 else 1e-5  # those have few bits
    np.testing.assert_allclose(
        other.nearest(other["word1"], 300).similarities.sum(), vectors.nearest(MATRIX[1], 300).similarities.sum(),
        rtol=tolerance, atol=300 * tolerance,
    )  # fmt: skip


# -- what cannot be asked --


def test_unknown_words_are_all_named_with_words_that_are_close() -> None:
    vectors = Vectors(["the", "king", "Paris", "new_york", "kin"], np.eye(5))
    with pytest.raises(UnknownWordError) as caught:
        vectors.most_similar(["kingg", "the", "paris"], ["new york", "zzzzzz", "kingg"])
    said = str(caught.value)
    assert said == (
        "'kingg' (did you mean king?), 'paris' (did you mean Paris?), 'new york' (did you mean new_york?), 'zzzzzz' "
        "are not in the vocabulary of 5 words."
    )
    with pytest.raises(KeyError, match="is not in the vocabulary"):
        vectors["ming"]
    with pytest.raises(InputError, match=r"xxxx.*yyyy"):
        vectors.neighbors(["xxxx", "yyyy"])
    with pytest.raises(InputError, match=r"'y+…' is not"):
        vectors.row("y" * 1_000_000)


def test_close_words_are_found_in_no_time() -> None:
    words = [f"word{k}" for k in range(200_000)]
    vectors = Vectors(words, np.ones((len(words), 1)))
    began = time.process_time()
    with pytest.raises(UnknownWordError, match="did you mean word12345"):
        vectors.row("wrod12345")
    assert time.process_time() - began < 1  # to compare all words one by one takes many seconds


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda v: v.most_similar("word1", topn=0), "topn is 0"),
        (lambda v: v.most_similar("word1", restrict_vocab=-1), "restrict_vocab is -1"),
        (lambda v: v.most_similar([]), "nothing to look for"),
        (lambda v: v.most_similar(negative=None), "nothing to look for"),
        (lambda v: v.most_similar(np.ones(3)), "shape .3,. does not fit vectors of 16"),
        (lambda v: v.nearest(np.ones((2, 3))), "does not fit vectors of 16"),
        (lambda v: v.most_similar(np.full(16, np.nan)), "not finite"),
        (lambda v: v.doesnt_match("word1"), "doesnt_match takes a list of words, of at least one; got 'word1'"),
        (lambda v: v.doesnt_match([]), "doesnt_match takes a list of words"),
        (lambda v: v.doesnt_match(["word1", "no"]), "'no' is not in the vocabulary"),
        (lambda v: v.n_similarity(["word1"], []), "n_similarity takes a list of words"),
        (lambda v: v.n_similarity(["word1", "no"], ["nil"]), "'no', 'nil' are not in the vocabulary"),
        (lambda v: v.rank("word1", "no"), "'no' is not in the vocabulary"),
    ],
)
def test_wrong_queries(vectors: Vectors, ask: object, said: str) -> None:
    with pytest.raises((InputError, ConfigError), match=said):
        ask(vectors)


# -- models --


@pytest.mark.parametrize("count", [3, 300])  # words inside config.json, and in a file of their own
def test_a_model_is_mapped(tmp_path: Path, count: int) -> None:
    path = save_words(tmp_path / "model", WORDS[:count], MATRIX[:count])
    vectors = Vectors.load(path)
    assert len(vectors) == count
    assert not vectors.matrix.flags.writeable
    assert not vectors.matrix.flags.owndata
    assert vectors.words == tuple(WORDS[:count])
    same(vectors.most_similar("word1"), Vectors(WORDS[:count], MATRIX[:count]).most_similar("word1"))
    assert Vectors.load(path, verify=True).words == vectors.words


def test_opening_reads_neither_words_nor_numbers(tmp_path: Path) -> None:
    """A file that is changed but has its size is noticed with `verify` only."""
    path = save_words(tmp_path / "model", WORDS, MATRIX)
    text = (path / "vocabulary-1.txt").read_bytes()
    (path / "vocabulary-1.txt").write_bytes(text.replace(b"word7\n", b"w\xff\xfe\xfd7\n"))
    vectors = Vectors.load(path)
    with pytest.raises(ModelError, match="not a vocabulary"):
        vectors.row("word8")
    with pytest.raises(ModelError, match="wrong checksum"):
        Vectors.load(path, verify=True)
    (path / "vocabulary-1.txt").write_bytes(text[:-8])
    with pytest.raises(ModelError, match="cut short"):
        Vectors.load(path)


def test_models_that_do_not_fit(tmp_path: Path) -> None:
    options = {"dim": 16, "words": WORDS[:50]}
    with pytest.raises(ModelError, match="50 words for 300 vectors"):
        Vectors.load(save_words(tmp_path / "a", WORDS, MATRIX, options=options)).row("word1")
    with pytest.raises(ModelError, match="`word0` stands twice"):
        Vectors.load(save_words(tmp_path / "b", ["word0", *WORDS[:-1]], MATRIX)).row("word1")
    with pytest.raises(ModelError, match="'linear' has no word vectors"):
        Vectors.load(save_words(tmp_path / "c", WORDS, MATRIX, program="linear"))
    with pytest.raises(ModelError, match="lists no words"):
        Vectors.load(save_words(tmp_path / "d", WORDS, MATRIX, options={}))
    with pytest.raises(ModelError, match="no such model"):
        Vectors.load(tmp_path / "none")
    damaged = MATRIX.copy()
    damaged[7, 3] = np.nan
    vectors = Vectors.load(save_words(tmp_path / "e", WORDS, damaged))
    with pytest.raises(ModelError, match="`word7`"):
        vectors.most_similar("word1")


def test_a_model_without_vectors(tmp_path: Path) -> None:
    from hogwild.programs.saving.sealed import write_sealed

    config = {"program": "word2vec", "options": {"words": ["a"]}}
    flat, whole = np.zeros(3, np.float32), np.zeros((1, 2), np.int32)
    for number, arrays in enumerate(({}, {"vectors": flat}, {"vectors": whole})):
        write_sealed(tmp_path / str(number), "model", config, {"weights.safetensors": arrays})
        with pytest.raises(ModelError, match="no matrix `vectors`"):
            Vectors.load(tmp_path / str(number))
