"""Vectors of documents as a program: topics told apart in every form, inference, held-out loss, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import ConfigError, Doc2Vec, DocumentConfig, InputError, UnknownWordError
from problems.word_topics import COMMON, DIM, TOPICS

ALL = DocumentConfig(min_count=1)
DBOW = {"dbow": True}
COUNT = 120


def texts(count: int = COUNT, seed: int = 0, length: int = 40) -> list[str]:
    """Documents about one topic each, by turns."""
    random = np.random.default_rng(seed)
    found = []
    for k in range(count):
        topic = TOPICS[k % len(TOPICS)]
        words = [topic[place] for place in (random.random(length) ** 1.5 * len(topic)).astype(int)]
        found.append(" ".join(word if random.random() < 0.9 else COMMON[0] for word in words))
    return found


@pytest.fixture(scope="module")
def feed() -> hogwild.Documents:
    return hogwild.documents_of(texts(), ALL)


def made(**options: Any) -> Doc2Vec:
    return Doc2Vec(**{"dim": DIM, "sample": 0, **options})


def train(program: Doc2Vec, feed: Any, **options: Any) -> Doc2Vec:
    chosen = {"epochs": 20, "threads": 1, "mode": "serial", "quiet": True, **options}
    assert hogwild.train(program, feed, **chosen) is program
    return program


def contrast(matrix: Any) -> float:
    """The mean similarity of two documents of one topic, less that of documents of two topics."""
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    alike, topic = unit @ unit.T, np.arange(len(unit)) % len(TOPICS)
    same, others = topic[:, None] == topic, ~np.eye(len(unit), dtype=bool)
    return float(alike[same & others].mean() - alike[~same].mean())


@pytest.fixture(scope="module")
def trained(feed: hogwild.Documents) -> Doc2Vec:
    return train(made(**DBOW), feed)


# -- learning -------------------------------------------------------------------------------------------------------


def test_dbow_tells_the_topics_apart(trained: Doc2Vec, feed: hogwild.Documents) -> None:
    begun = made(**DBOW)
    begun.startup(feed, 1)
    assert abs(contrast(begun.documents.matrix)) < 0.1
    assert contrast(trained.documents.matrix) > 0.4
    nearest = trained.documents.neighbors(trained.names(), topn=3)
    assert np.mean([int(tag) % 2 == k % 2 for k, found in enumerate(nearest) for tag, _ in found]) > 0.95
    assert trained.weights.inputs.shape == (0, trained.weights.outputs.shape[1])
    assert not trained.weights.documents[:, DIM:].any()


@pytest.mark.full
@pytest.mark.parametrize(
    "options",
    [{"window": 1}, {"dm_by": "sum"}, {"dbow": True, "words": True}, {"loss": "hs", "window": 1},
     {"dbow": True, "loss": "hs"},
     {"dbow": True, "words": True, "loss": "hs"}, {"dbow": True, "pair_negatives": True}],
)  # fmt: skip
def test_every_form_tells_the_topics_apart(options: dict[str, Any], feed: hogwild.Documents) -> None:
    for threads, mode in ((1, "serial"), (2, "hogwild")):
        program = train(made(**options), feed, threads=threads, mode=mode, epochs=60)
        assert contrast(program.documents.matrix) > 0.1  # of DM: neighbours tell the topic too
        new, _ = program.infer_all(texts(20, seed=9))
        found = program.documents.nearest(new, topn=5).rows
        assert np.mean(found % 2 == np.arange(20)[:, None] % 2) > 0.8
        if program.has_words:
            similar = program.vectors.neighbors([TOPICS[0][0], TOPICS[1][0]], topn=3)
            assert all(word[:3] == ("sea", "sky")[k] for k, near in enumerate(similar) for word, _ in near)


def test_serial_repeats_bit_for_bit_and_goes_on(trained: Doc2Vec, feed: hogwild.Documents) -> None:
    again = train(made(**DBOW), feed)
    for name, array in trained.arrays().items():
        assert again.arrays()[name].tobytes() == array.tobytes()
    loss = again.evaluate(feed)["loss"]
    train(again, feed, epochs=5)  # from where it was
    assert again.evaluate(feed)["loss"] < loss + 0.05
    with pytest.raises(ConfigError, match="trained on other documents"):
        train(again, hogwild.documents_of(texts(10), ALL))


def test_documents_without_words_are_zeros_and_stay_so() -> None:
    feed = hogwild.documents_of([*texts(20), "", *texts(20, seed=5)], ALL)
    program = train(made(**DBOW), feed, epochs=2)
    assert not program.documents["20"].any()
    assert program.documents["19"].any()
    assert program.documents["21"].any()


# -- new texts --------------------------------------------------------------------------------------------------------


def test_inference_finds_the_topic_and_is_the_same_each_time(trained: Doc2Vec) -> None:
    new = texts(12, seed=7)
    vectors, known = trained.infer_all(new)
    assert known.all()
    found = trained.documents.nearest(vectors, topn=5).rows
    assert np.mean(found % 2 == np.arange(12)[:, None] % 2) > 0.9
    before = {name: array.copy() for name, array in trained.arrays().items()}
    for k in (0, 5):  # alone, with others, by any number of threads
        assert trained.infer(new[k]).tobytes() == vectors[k].tobytes()
    assert trained.infer_all(new[::-1], threads=3)[0][::-1].tobytes() == vectors.tobytes()
    assert trained.infer(new[0].split()).tobytes() == vectors[0].tobytes()
    assert trained.infer(new[0], seed=2).tobytes() != vectors[0].tobytes()
    assert trained.infer(new[0], epochs=3).tobytes() != vectors[0].tobytes()
    for name, array in trained.arrays().items():
        assert array.tobytes() == before[name].tobytes()


def test_texts_that_say_nothing_are_said(trained: Doc2Vec) -> None:
    for text in ("", "  ", "never seen"):
        with pytest.raises(InputError, match="no word of the vocabulary"):
            trained.infer(text)
    vectors, known = trained.infer_all(["never seen", TOPICS[0][0], ""])
    assert known.tolist() == [False, True, False]
    assert not vectors[0].any()
    assert vectors[1].any()
    with pytest.raises(InputError, match="there are no texts"):
        trained.infer_all([])
    with pytest.raises(ConfigError, match="epochs is -1"):
        trained.infer(TOPICS[0][0], epochs=-1)
    with pytest.raises(ConfigError, match="another vocabulary"):
        trained.infer_all(hogwild.documents_of(["a b"], ALL))


def test_the_loss_of_second_halves_falls_and_is_the_same_by_any_number_of_threads(trained: Doc2Vec) -> None:
    held = hogwild.documents_of(texts(40, seed=3), ALL, vocabulary=trained.vocabulary)
    loss = trained.evaluate(held)["loss"]
    assert trained.evaluate(held, threads=3)["loss"] == loss
    begun = made(**DBOW)
    begun.startup(hogwild.documents_of(texts(), ALL), 1)
    assert loss < 0.7 * begun.evaluate(held)["loss"]
    # Second halves of the other topic are a surprise.
    words = [text.split() for text in texts(40, seed=3)]
    crossed = [" ".join(words[k][:20] + words[k ^ 1][20:]) for k in range(40)]
    other = hogwild.documents_of(crossed, ALL, vocabulary=trained.vocabulary)
    assert trained.evaluate(other)["loss"] > loss + 0.3


# -- names, saving ----------------------------------------------------------------------------------------------------


def test_tags_and_what_is_not_there(feed: hogwild.Documents, trained: Doc2Vec) -> None:
    with pytest.raises(UnknownWordError, match=r"'12x' \(did you mean 12\?\) is not among the tags of 120 documents"):
        trained.documents["12x"]
    with pytest.raises(ConfigError, match="learns no word vectors"):
        _ = trained.vectors
    with pytest.raises(ConfigError, match="no vectors yet"):
        _ = made().documents
    with pytest.raises(ConfigError, match="is no feed of documents"):
        train(made(), hogwild.corpus_of([["a", "b"]], hogwild.CorpusConfig(min_count=1)))
    for wrong, said in (
        ({"dim": 0}, "dim is 0"), ({"words": True}, "DM always learns word vectors"),
        ({"dbow": True, "window": 3}, "has no neighbours"), ({"dbow": True, "dm_by": "sum"}, "puts nothing together"),
        ({"loss": "hs", "negatives": 3}, "has no negatives"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            Doc2Vec(**wrong)


@pytest.mark.parametrize("tagged", [False, True])
def test_a_saved_model_is_the_same(tmp_path: Path, trained: Doc2Vec, tagged: bool) -> None:
    program = trained
    if tagged:
        pairs = [(f"text {k}", text) for k, text in enumerate(texts(20))]
        program = train(made(**DBOW), hogwild.documents_of(pairs, ALL), epochs=2)
    hogwild.save_model(tmp_path / "model", program)
    loaded: Any = hogwild.load_model(tmp_path / "model").program
    assert (loaded.names(), loaded.vocabulary, loaded.config) == (program.names(), program.vocabulary, program.config)
    for name, array in program.arrays().items():
        assert loaded.arrays()[name].tobytes() == array.tobytes()
    assert loaded.infer(TOPICS[0][1]).tobytes() == program.infer(TOPICS[0][1]).tobytes()
    mapped = hogwild.Vectors.load(tmp_path / "model", kind="documents")
    assert mapped.words == program.names()
    assert mapped.matrix.tobytes() == np.ascontiguousarray(program.documents.matrix).tobytes()
    with pytest.raises(hogwild.ModelError, match="train with --words"):
        hogwild.Vectors.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"documents": np.zeros((3, DIM), np.float32)}, "documents"),
        ({"counts": np.full(51, -1)}, "less than nothing"),
        ({"outputs": np.full((51, DIM), np.nan, np.float32)}, "finite"),
        ({"more": np.zeros(3, np.float32)}, "more"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(trained: Doc2Vec, changed: dict[str, Any], said: str) -> None:
    other = Doc2Vec(**trained.options())
    with pytest.raises(hogwild.ModelError, match=said):
        other.restore({**trained.arrays(), **changed})


@pytest.mark.peers
@pytest.mark.full
@pytest.mark.parametrize("dm", [0, 1])
def test_topics_are_told_apart_as_well_as_by_gensim(dm: int) -> None:
    models = pytest.importorskip("gensim.models.doc2vec", reason="gensim is not installed")
    documents = texts(400, length=60)
    window = {"window": 1} if dm else {}  # a wide one tells the topic, and leaves nothing to the document
    peer = models.Doc2Vec(
        vector_size=DIM, min_count=1, sample=0, epochs=20, dm=dm, workers=1, seed=1, negative=5, **window
    )
    tagged = [models.TaggedDocument(text.split(), [k]) for k, text in enumerate(documents)]
    peer.build_vocab(tagged)
    peer.train(tagged, total_examples=len(tagged), epochs=20)
    program = train(made(dbow=not dm, **window), hogwild.documents_of(documents, ALL))

    def right(vectors: hogwild.Vectors, new: Any) -> float:
        """Share of the nearest five of new texts that are of their topic."""
        return float(np.mean(vectors.nearest(new, topn=5).rows % 2 == np.arange(40)[:, None] % 2))

    new = texts(40, seed=11, length=60)
    ours = right(program.documents, program.infer_all(new, epochs=20)[0])
    names = [str(k) for k in range(400)]
    theirs = right(hogwild.Vectors(names, peer.dv.vectors), [peer.infer_vector(t.split(), epochs=20) for t in new])
    assert ours > 0.9
    assert ours > theirs - 0.05
