"""Words of parts as a program and in files: unseen words, models, fastText's `.bin` beside gensim's reader of it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import ConfigError, InputError, UnknownWordError, Vectors, Word2Vec
from hogwild.programs.words.fasttext import read_fasttext
from hogwild.programs.words.subwords import Parts, Spelling, grams_of, mean_vectors
from problems.word_topics import contrast, corpus, made, same, train
from reference import word2vec as twin

SPELLING = Spelling(3, 6, 50)
WORDS = ("tea", "teas", "seat", "größe", "日本語", "the")
UNSEEN = ("teasing", "großes", "日本", "theatre")


def some_vectors(outputs: bool = True) -> Vectors:
    random = np.random.default_rng(0)
    inputs, other = random.normal(size=(2, len(WORDS), 8)).astype(np.float32)
    table = random.normal(size=(SPELLING.buckets, 8)).astype(np.float32)
    matrix = mean_vectors(grams_of(WORDS, SPELLING), table, inputs)
    return Vectors(WORDS, matrix, range(9, 3, -1), Parts(SPELLING, inputs, table, other if outputs else None))


def by_hand(vectors: Vectors, word: str) -> Any:
    assert vectors.parts is not None
    rows = [vectors.parts.grams[gram] for gram in twin.grams(word, *SPELLING)]
    if word in WORDS:
        rows.append(vectors.parts.inputs[WORDS.index(word)])
    return np.mean(rows, axis=0)


def test_words_that_were_never_seen_have_vectors() -> None:
    vectors = some_vectors()
    for word in (*WORDS, *UNSEEN):
        assert word in vectors
        np.testing.assert_allclose(vectors[word], by_hand(vectors, word), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(vectors[["tea", "teasing"]][1], vectors["teasing"])
    np.testing.assert_array_equal(vectors.get("teasing"), vectors["teasing"])
    assert vectors.similarity("teasing", "teasing") == pytest.approx(1, abs=1e-6)
    nearest, _ = vectors.most_similar("teasing", topn=2)
    cosines = [vectors.similarity("teasing", word) for word in WORDS]
    assert nearest == (WORDS[int(np.argmax(cosines))], pytest.approx(max(cosines), abs=1e-6))
    both = vectors.neighbors(["tea", "teasing"], topn=2)[1], vectors.most_similar("teasing", topn=2)
    assert [word for word, _ in both[0]] == [word for word, _ in both[1]]
    assert "teasing" not in vectors.key_to_index
    assert "" not in vectors  # `<>` has no part of three letters
    assert vectors.get("") is None
    with pytest.raises(UnknownWordError, match="''"):
        vectors[["tea", ""]]


def test_gensim_reads_the_models_of_fasttext_that_are_written(tmp_path: Path) -> None:
    """fastText's own library gives the same numbers: `make test-full` has it."""
    from gensim.models.fasttext import load_facebook_model, load_facebook_vectors

    vectors = some_vectors()
    assert vectors.save(tmp_path / "v.bin") == vectors.save(tmp_path / "v.bin.gz") == 0
    theirs = load_facebook_vectors(tmp_path / "v.bin")
    assert tuple(theirs.index_to_key) == WORDS
    again = Vectors.load(tmp_path / "v.bin.gz")
    for word in (*WORDS, *UNSEEN):
        np.testing.assert_allclose(theirs[word], vectors[word], atol=1e-5)
        np.testing.assert_array_equal(again[word], vectors[word])
    assert again.counts is not None
    assert again.counts.tolist() == [9, 8, 7, 6, 5, 4]
    outputs = load_facebook_model(tmp_path / "v.bin").syn1neg
    np.testing.assert_array_equal(outputs, vectors.parts.outputs)  # type: ignore[union-attr]


def test_models_without_subwords_are_written_for_fasttext_too(tmp_path: Path) -> None:
    vectors = Vectors(WORDS, np.arange(12).reshape(6, 2))
    vectors.save(tmp_path / "v.bin", "fasttext")
    again = Vectors.load(tmp_path / "v.bin")
    np.testing.assert_array_equal(again.matrix, vectors.matrix)
    assert again.parts is None
    assert "teasing" not in again


def changed(data: bytes, at: int, form: str, value: Any) -> bytes:
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


def test_sizes_of_hostile_models_are_not_believed(tmp_path: Path) -> None:
    """All that a file announces: version, dimension, words, buckets, shapes; each is one line, and no memory."""
    some_vectors().save(tmp_path / "good.bin")
    good = (tmp_path / "good.bin").read_bytes()
    sizes = 8 + 56  # magic and version, then the arguments
    matrix = good.index(struct.pack("<2q", 56, 8))
    odd = {
        "version": (changed(good, 4, "<i", 99), "version 99"),
        "dim": (changed(good, 8, "<i", 1 << 30), "rows of inputs announce"),
        "no dim": (changed(good, 8, "<i", 0), "arguments cannot be"),
        "buckets": (changed(good, 8 + 32, "<i", (1 << 31) - 1), "rows of inputs announce"),
        "letters": (changed(good, 8 + 40, "<i", 1000), "letters"),
        "words": (changed(changed(good, sizes, "<i", 1 << 30), sizes + 4, "<i", 1 << 30), "announces 1,073,741,824"),
        "labels": (changed(good, sizes + 8, "<i", 3), "do not fit together"),
        "pruned": (changed(good, sizes + 20, "<q", 5), "pruned"),
        "rows": (changed(good, matrix, "<q", 1 << 40), "announce 1,099,511,627,776 rows"),
        "quantized": (good[: matrix - 1] + b"\1" + good[matrix:], "quantized"),
        "nan": (changed(good, matrix + 16, "<f", float("nan")), "not finite"),
        "longer": (good + b"\0", "goes on"),
    }  # fmt: skip
    for name, (data, said) in odd.items():
        path = tmp_path / "odd.bin"
        path.write_bytes(data)
        with pytest.raises(InputError, match=said):
            read_fasttext(path)
        assert name
    for cut in range(4, len(good), 61):
        path.write_bytes(good[:cut])
        with pytest.raises(InputError, match=r"ends|announces"):
            Vectors.load(path)


# -- training --


@pytest.mark.full
@pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])
@pytest.mark.parametrize("options", [{"subwords": "3:6", "buckets": 400}, {"loss": "hs"}], ids=["subwords", "tree"])
def test_topics_are_learnt_saved_and_gone_on_with(tmp_path: Path, cbow: bool, options: dict[str, Any]) -> None:
    text = corpus()
    program = train(made(cbow, **options), text, threads=2)
    assert contrast(program.vectors) > 0.5
    hogwild.save_model(tmp_path / "m", program, feed_schema=text.schema)
    again = hogwild.load_model(tmp_path / "m").program
    assert same(program, again)
    assert again.evaluate(text)["loss"] == pytest.approx(program.evaluate(text)["loss"], rel=1e-6)
    opened = Vectors.load(tmp_path / "m")
    np.testing.assert_array_equal(opened.matrix, program.vectors.matrix)
    if "subwords" in options:
        np.testing.assert_array_equal(opened["sea999"], program.vectors["sea999"])
        assert opened.similarity("sea999", "sea1") > opened.similarity("sea999", "sky1")
    more = hogwild.corpus_of([["sea1", "sea2", "newcomer", "sea3"]] * 20, keep=again.words)
    grown = train(again, more, epochs=1)
    assert "newcomer" in grown.words
    one, other = (train(made(cbow, **options), text, mode="serial", epochs=2) for _ in range(2))
    assert same(one, other)


def test_options_without_effect_are_refused() -> None:
    for options, said in (
        ({"buckets": 10}, "add subwords"), ({"cbow_by": "sum"}, "add cbow"), ({"subwords": "6:3"}, "shorter first"),
        ({"subwords": "3"}, "as 3:6"), ({"loss": "hs", "negatives": 9}, "has no negatives"),
        ({"negative_exponent": float("nan")}, "negative_exponent"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            Word2Vec(**options)


def test_negatives_are_drawn_by_the_exponent() -> None:
    text = corpus(20)
    for power in (0.0, 1.0):
        drawn = made(negative_exponent=power).samples(text)
        chance, alias = drawn.chance / 2**32, drawn.alias
        share = np.bincount(alias, 1 - chance, minlength=len(chance)) + chance
        weight = text.counts**power
        np.testing.assert_allclose(share / share.sum(), weight / weight.sum(), atol=1e-6)


@pytest.mark.peers
def test_fasttext_itself_gives_the_same_vectors(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("fasttext")
    vectors = some_vectors()
    vectors.save(tmp_path / "ours.bin")
    theirs = fasttext.load_model(str(tmp_path / "ours.bin"))
    for word in (*WORDS, *UNSEEN):
        np.testing.assert_allclose(theirs.get_word_vector(word), vectors[word], atol=1e-5)
    lines = [" ".join(np.random.default_rng(k).choice(WORDS, 8)) for k in range(200)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    trained = fasttext.train_unsupervised(str(tmp_path / "text.txt"), dim=8, bucket=50, minCount=1, epoch=2, thread=1)
    trained.save_model(str(tmp_path / "theirs.bin"))
    opened = Vectors.load(tmp_path / "theirs.bin")
    for word in (*WORDS, *UNSEEN, "</s>"):
        np.testing.assert_allclose(trained.get_word_vector(word), opened[word], atol=1e-5)
