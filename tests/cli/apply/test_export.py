"""`hogwild export`, read by gensim."""

from __future__ import annotations

import numpy as np
import pytest

from cli.words import MATRIX, WORDS, make_words
from hogwild import Linear, Vectors, feed_of, save_model, train
from problems.word_models import gensim_vectors

WRITTEN = [*WORDS[:-1], "new_york"]


@pytest.fixture
def model(tmp_path):
    return make_words(tmp_path)


@pytest.mark.parametrize(
    ("name", "flags", "binary"),
    [
        ("v.vec", (), False),
        ("v.txt", (), False),
        ("v.bin", (), True),
        ("v.vec.gz", (), False),
        ("v", ("--format", "binary"), True),
        ("v.bin", ("--format", "text"), False),
    ],
)
def test_gensim_opens_what_is_exported(hogwild, model, tmp_path, name, flags, binary):
    said = hogwild("export", model, tmp_path / name, *flags)
    assert said.code == 0
    assert f"8 words, 4 numbers each, {'binary' if binary else 'text'}" in said.out
    assert "note: 1 word with blanks or ends of lines" in said.err
    found = gensim_vectors().load_word2vec_format(tmp_path / name, binary=binary)
    assert found.index_to_key == WRITTEN
    np.testing.assert_array_equal(found.vectors, MATRIX)


def test_one_json_object(hogwild, model, tmp_path):
    found = hogwild("export", model, tmp_path / "v.vec", "--json").json
    assert (found["words"], found["dim"], found["format"], found["changed"]) == (8, 4, "text", 1)
    assert len(found["notes"]) == 1
    assert hogwild("export", model, tmp_path / "v.vec", "--quiet") == (0, "", "")


def test_files_are_converted(hogwild, model, tmp_path):
    hogwild("export", model, tmp_path / "v.bin")
    said = hogwild("export", tmp_path / "v.bin", tmp_path / "v.vec")
    assert said.code == 0
    assert said.err == ""
    assert Vectors.load(tmp_path / "v.vec").words == tuple(WRITTEN)


def test_standard_output(hogwild, model):
    said = hogwild("export", model, "-", "--quiet")
    assert said.out.splitlines()[:2] == ["8 4", "king 1 1 0 0"]
    assert said.err == ""


def test_wrong_usage(refused, model, tmp_path):
    assert "let it end in .vec or .bin, or give --format" in refused("export", model, tmp_path / "v.npy")
    assert "--json and the vectors cannot both" in refused("export", model, "-", "--json")
    assert "FILE is missing" in refused("export", model)
    assert "directory" in refused("export", model, tmp_path, "--format", "text", code=1)
    assert "No such file" in refused("export", model, tmp_path / "none" / "v.vec", code=1)
    linear = train(Linear(), feed_of(np.eye(4), [0, 1, 0, 1]), epochs=1, lr=0.1, threads=1, quiet=True)
    save_model(tmp_path / "linear", linear)
    assert "'linear' has no word vectors" in refused("export", tmp_path / "linear", tmp_path / "v.vec")
    assert not (tmp_path / "v.vec").exists()


def test_a_model_as_a_graph(hogwild, refused, tmp_path, monkeypatch):
    """What it computes: tests/pytorch/test_onnx.py."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("torch")
    save_model(tmp_path / "m", train(Linear(), feed_of(np.eye(3), [0, 1, 1]), epochs=1, mode="serial", quiet=True))
    said = hogwild("export", tmp_path / "m", tmp_path / "m.onnx", "--json")
    assert said.json["format"] == "onnx"
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    assert [node.name for node in session.get_inputs()] == ["ids", "offsets", "values"]
    monkeypatch.setattr("hogwild.pytorch.onnx.find_spec", lambda name: None)
    assert 'pip install "hogwild[onnx]"' in refused("export", tmp_path / "m", tmp_path / "n.onnx")
    assert not (tmp_path / "n.onnx").exists()
