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


# -- smaller models ---------------------------------------------------------------------------------------------------


def test_a_small_model_is_used_as_any_other(hogwild, files, tmp_path):
    whole, small, test = tmp_path / "whole", tmp_path / "small", files / "test.svm"
    hogwild("train", "classifier", files / "train.svm", "--lr", 0.2, "--threads", 1, "--output", whole, "--quiet")
    said = hogwild("export", whole, small, "--int8", "--pruned", 0.2, "--valid", test, "--json").json
    assert (said["int8"], said["half"], said["pruned"], said["program"]) == (True, False, 0.2, "linear")
    assert said["bytes"]["after"] == sum(file.stat().st_size for file in small.iterdir())
    for model, when in ((whole, "before"), (small, "after")):
        measured = hogwild("evaluate", model, test, "--json").json["metrics"]
        assert measured == said["metrics"][when]
    assert abs(said["metrics"]["after"]["accuracy"] - said["metrics"]["before"]["accuracy"]) < 0.1
    both = [hogwild("predict", model, test).out.split() for model in (whole, small)]
    assert len(both[1]) == 500
    assert np.mean([one == other for one, other in zip(*both, strict=True)]) > 0.9
    table = hogwild("export", whole, small, "--half", "--valid", test).out  # our own directory is replaced
    assert f"{said['bytes']['before']:,}" in table
    assert "accuracy" in table
    assert hogwild("export", whole, small, "--half", "--quiet") == (0, "", "")
    again = ("--start", small, "--lr", 0.1, "--epochs", 1, "--json")
    on = hogwild("train", "classifier", files / "train.svm", *again).json
    assert any("is small (float16): training begins at its rounded weights" in note for note in on["notes"])


def test_fewer_words_are_known(hogwild, model, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    said = hogwild("export", model, tmp_path / "small", "--pruned", 3, "--valid", pairs, "--json").json
    assert said["metrics"]["before"]["known"] == 0.75
    assert said["metrics"]["after"]["known"] == 0.75
    said = hogwild("export", model, tmp_path / "small", "--pruned", 5, "--valid", pairs, "--json").json
    assert said["metrics"]["after"]["known"] == 0
    assert said["metrics"]["after"]["spearman"] is None
    assert Vectors.load(tmp_path / "small").words == ("king", "man", "woman")
    assert "woman" in hogwild("neighbors", tmp_path / "small", "king").out


def test_flags_of_small_models_where_they_mean_nothing(refused, model, tmp_path):
    small = tmp_path / "small"
    for name in ("v.bin", "v.vec.gz", "v.safetensors", "v.onnx"):
        assert "--int8 writes a model directory" in refused("export", model, tmp_path / name, "--int8")
    assert "--half writes a model directory" in refused("export", model, "-", "--half")
    assert "--format is for files" in refused("export", model, small, "--half", "--format", "text")
    assert "--words is for files" in refused("export", model, small, "--half", "--words", "w.txt")
    assert "--valid tells what" in refused("export", model, tmp_path / "v.vec", "--valid", "w.txt")
    assert "leave --half or --int8 out" in refused("export", model, small, "--half", "--int8")
    assert "a share below 1" in refused("export", model, small, "--pruned", 1.5)
    assert "the model has 8 words; leave out fewer" in refused("export", model, small, "--pruned", 8)
    assert "is an output, and the model" in refused("export", model, model, "--half")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert "stays as it is" in refused("export", model, tmp_path / "mine", "--half", code=1)
    assert not small.exists()
