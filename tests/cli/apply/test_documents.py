"""`hogwild train doc2vec`, then `neighbors`, `predict`, `evaluate` and `export` with what it saved."""

from __future__ import annotations

import io
import signal

import numpy as np
import pytest

from cli.test_interrupt import read_until, start
from cli.topics import TOPICS as NAMED
from hogwild import Vectors, load_model
from problems.word_models import gensim_vectors

TOPICS = list(NAMED.values())
SERIAL = ("--dbow", "--dim", 16, "--mode", "serial", "--sample", 0, "--epochs", 4)  # each layout is compiled for itself


def write_texts(path, count, seed=0):
    """Documents of thirty words, about one topic each, by turns."""
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(TOPICS[k % len(TOPICS)], 30)) for k in range(count)]
    path.write_text("\n".join(texts) + "\n")
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("text") / "docs.txt", 200)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model"


@pytest.fixture
def trained(hogwild, text, model):
    """A model of the text, made once."""
    if not model.exists():
        assert hogwild("train", "doc2vec", text, *SERIAL, "--output", model).code == 0
    return model


def test_the_json_object(hogwild, text, tmp_path):
    found = hogwild("train", "doc2vec", text, *SERIAL, "--json", "--output", tmp_path / "model").json
    assert (found["program"], found["documents"], found["words"], found["dim"]) == ("doc2vec", 200, 6000, 16)
    assert (found["mode"], found["epochs"], found["lr"], found["reason"]) == ("serial", 4, 0.025, "done")
    assert found["metrics"] == {"loss": found["loss"]}
    assert found["throughput"]["unit"] == "words"


def weights_in(model):
    return (model / "weights.safetensors").read_bytes()


def test_serial_repeats_bit_for_bit(hogwild, refused, text, trained, tmp_path):
    words = ["train", "doc2vec", text, *SERIAL, "--output", tmp_path / "again", "--checkpoint-every", "1epoch"]
    assert hogwild(*words).code == 0
    assert weights_in(tmp_path / "again") == weights_in(trained)
    assert "nothing is left to do" in hogwild(*words, "--resume").err
    assert "negatives was 5, is 3" in refused(*words, "--negatives", 3, "--resume")
    words[2] = write_texts(tmp_path / "other.txt", 100)
    assert "the training data is not the same" in refused(*words, "--resume")


@pytest.mark.full
@pytest.mark.parametrize("more", [(), ("--words",)])
def test_resume_after_a_signal_equals_a_run_without(hogwild, text, tmp_path, more):
    words = ("train", "doc2vec", text, *SERIAL[:-1], 400, *more)
    process = start(*words, "--output", tmp_path / "stopped")
    read_until(process, "epoch 2/")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    if process.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert process.returncode == 130, err
    assert hogwild(*words, "--output", tmp_path / "stopped", "--resume", "--quiet").code == 0
    assert hogwild(*words, "--output", tmp_path / "whole", "--quiet").code == 0
    assert weights_in(tmp_path / "stopped") == weights_in(tmp_path / "whole")


def test_documents_of_a_topic_are_neighbours(hogwild, refused, trained):
    found = hogwild("neighbors", trained, 0, 1, "--documents", "--topn", 5, "--json").json
    assert found["documents"] == 200
    for k, query in enumerate(found["queries"]):
        assert [int(near["word"]) % len(TOPICS) for near in query["neighbors"]].count(k) >= 4
    said = hogwild("neighbors", trained, 0, "17x", "--documents")
    assert said.code == 2
    assert "'17x' (did you mean 17?) is not among the tags of 200 documents." in said.err
    assert "train with --words" in refused("neighbors", trained, TOPICS[0][0])
    assert "see hogwild neighbors" in refused("similar", trained, 0)


def test_vectors_of_new_texts(hogwild, refused, trained, tmp_path, monkeypatch):
    new = write_texts(tmp_path / "new.txt", 6, seed=5)
    with open(new, "a") as file:
        file.write("\nnobody knows\n")
    said = hogwild("predict", trained, new)
    assert said.out.splitlines()[0] == "8 16"
    assert "2 documents without a word that the model knows, whose vectors are all zeros: 6, 7." in said.err
    found = hogwild("predict", trained, new, "--output", tmp_path / "new.bin", "--json").json
    assert (found["samples"], found["unknown"], found["format"]) == (8, 2, "binary")
    vectors = Vectors.load(tmp_path / "new.bin")
    program = load_model(trained).program
    for k, line in enumerate(new.read_text().splitlines()[:6]):
        assert vectors[str(k)].tobytes() == program.infer(line).tobytes()
    assert not vectors["7"].any()
    assert hogwild("predict", trained, new, "--seed", 2).out != said.out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(new.read_bytes())))
    assert hogwild("predict", trained, "-").out == said.out
    assert "--top is not for models of documents" in refused("predict", trained, new, "--top", 3)
    assert "--label is not for models of documents" in refused("predict", trained, new, "--label", "x")
    assert "--format svmlight is not for documents" in refused("predict", trained, new, "--format", "svmlight")
    (tmp_path / "empty.txt").write_text("")
    assert "no documents; is it empty?" in refused("predict", trained, tmp_path / "empty.txt")


def test_evaluation_of_documents(hogwild, trained, tmp_path):
    new = write_texts(tmp_path / "new.txt", 40, seed=5)
    found = hogwild("evaluate", trained, new, "--json").json
    assert (found["program"], found["samples"]) == ("doc2vec", 40)
    assert 0 < found["metrics"]["loss"] < 4.1  # six chances of one half, where nothing is learnt: 4.16
    assert hogwild("evaluate", trained, new).out == f"40 documents: loss {found['metrics']['loss']:.4f}\n"


def test_the_best_epoch_on_validation_documents_is_kept(hogwild, text, tmp_path):
    other = write_texts(tmp_path / "valid.txt", 30, seed=8)
    words = ("train", "doc2vec", text, *SERIAL)
    found = hogwild(*words, "--valid", other, "--output", tmp_path / "model", "--json").json
    assert found["evaluated_on"] == "valid"
    measured = hogwild("evaluate", tmp_path / "model", other, "--json").json["metrics"]["loss"]
    assert measured == pytest.approx(found["metrics"]["loss"])
    held = hogwild(*words, "--valid-share", 0.2, "--json").json
    assert held["documents"] == 160


def test_gensim_opens_what_is_exported(hogwild, refused, trained, tmp_path):
    said = hogwild("export", trained, tmp_path / "docs.bin", "--documents")
    assert said.out == f"{tmp_path / 'docs.bin'}: 200 documents, 16 numbers each, binary\n"
    ours = load_model(trained).program.documents
    peer = gensim_vectors().load_word2vec_format(str(tmp_path / "docs.bin"), binary=True)
    assert peer.index_to_key == list(ours.words)
    assert peer.vectors.tobytes() == np.ascontiguousarray(ours.matrix).tobytes()
    assert "train with --words" in refused("export", trained, tmp_path / "words.bin")
    assert "does not know documents" in refused("export", tmp_path / "docs.bin", tmp_path / "d.vec", "--documents")
    assert "leave it out" in refused("export", trained, tmp_path / "d.safetensors", "--documents")


@pytest.mark.full
def test_words_are_learnt_too(hogwild, text, tmp_path):
    for more in (("--dbow", "--words"), ()):
        model = tmp_path / f"model{len(more)}"
        words = ("--dim", 16, "--sample", 0, "--epochs", 30, "--threads", 2)
        assert hogwild("train", "doc2vec", text, *more, *words, "--output", model).code == 0
        found = hogwild("neighbors", model, TOPICS[0][0], "--topn", 3, "--json").json
        assert {near["word"] for near in found["queries"][0]["neighbors"]} <= set(TOPICS[0])
        assert hogwild("export", model, tmp_path / "words.vec").code == 0
        assert set(Vectors.load(tmp_path / "words.vec").words) == {word for topic in TOPICS for word in topic}


def test_tables(hogwild, refused, text, tmp_path):
    lines = text.read_text().splitlines()
    table = tmp_path / "docs.csv"
    table.write_text("name,body\n" + "".join(f"d{k},{line}\n" for k, line in enumerate(lines)))
    words = ("train", "doc2vec", table, *SERIAL)
    assert hogwild(*words, "--text", "body", "--id", "name", "--output", tmp_path / "model").code == 0
    assert hogwild("neighbors", tmp_path / "model", "d7", "--documents").code == 0
    (tmp_path / "new.csv").write_text(f"body\n{lines[0]}\n")
    assert hogwild("predict", tmp_path / "model", tmp_path / "new.csv").out.startswith("1 16\n0 ")
    assert hogwild("predict", tmp_path / "model", text).out.startswith("200 16\n0 ")  # lines will do
    assert "which column holds the texts" in refused(*words)


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        ("", (), "no words; is the file empty?"), ("a b\n", (), "Lower --min-count to 1"),
        ("a a a a a\n", (), "at least two different words"), ("a b\n", ("--dim", 0), "dim is 0"),
        ("a b\n", ("--window", 2), "DBOW without words has no neighbours"),
        ("a b\n", ("--text", "body"), "is read as lines"), ("a b\n", ("--best-by", "auc"), "needs data to measure"),
    ],
)  # fmt: skip
def test_wrong_input(refused, tmp_path, content, more, said):
    (tmp_path / "docs.txt").write_text(content)
    assert said in refused("train", "doc2vec", tmp_path / "docs.txt", "--dbow", *more)


def test_one_document_is_enough(hogwild, tmp_path):
    (tmp_path / "docs.txt").write_text("a b a\n")
    words = ("train", "doc2vec", tmp_path / "docs.txt", *SERIAL, "--min-count", 1, "--output", tmp_path / "model")
    assert hogwild(*words).code == 0
    assert load_model(tmp_path / "model").program.names() == ("0",)
