"""`hogwild train classifier`, then `evaluate` and `predict` with what it saved. All parts are the real ones."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import accuracy_score

from hogwild import Linear, open_feed, save_model, train
from hogwild.kernels.compiler import codecache

SERIAL = ("--mode", "serial", "--lr", 0.2, "--epochs", 3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model"


@pytest.fixture
def trained(hogwild, files, model):
    """A model of train.svm, made once."""
    if not model.exists():
        assert hogwild("train", "classifier", files / "train.svm", *SERIAL, "--output", model).code == 0
    return model


def test_the_json_object(hogwild, files, tmp_path):
    said = hogwild("train", "classifier", files / "train.svm", *SERIAL, "--json", "--output", tmp_path / "model")
    found = said.json
    assert said.code == 0
    assert found["program"] == "linear"
    assert found["mode"] == "serial"
    assert found["threads"] == 1
    assert found["epochs"] == 3
    assert found["samples"] == 6000
    assert {"load", "compile", "train", "evaluate"} <= set(found["seconds"])
    assert all(value >= 0 for value in found["seconds"].values())
    assert found["throughput"]["unit"] == "nonzeros"
    assert found["throughput"]["units_per_second"] > found["throughput"]["samples_per_second"] > 0
    assert found["evaluated_on"] == "train"
    assert 0.8 < found["metrics"]["accuracy"] <= 1
    assert found["metrics"]["loss"] == pytest.approx(found["metrics"]["logloss"])
    assert found["trace"] is None
    assert found["output"] == str(tmp_path / "model")
    assert found["lr"] == pytest.approx(0.2)
    assert "epoch 3/3" in said.err


def test_validation_is_what_is_reported_and_the_best_epoch_is_kept(hogwild, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", "--valid", files / "test.svm", "--mode", "serial"]
    found = hogwild(*words, "--lr", 2, "--epochs", 6, "--output", tmp_path / "model", "--json").json
    assert found["evaluated_on"] == "valid"
    assert 1 <= found["best_epoch"] <= 6
    again = hogwild("evaluate", tmp_path / "model", files / "test.svm", "--json").json
    assert again["metrics"] == pytest.approx(found["metrics"])
    assert again["samples"] == 500


def test_without_json_metrics_go_to_standard_output_and_the_rest_does_not(hogwild, files, tmp_path):
    said = hogwild("train", "classifier", files / "train.svm", *SERIAL, "--output", tmp_path / "model")
    assert said.out.startswith("on the training data: loss 0.")
    assert said.out.endswith(f"saved to {tmp_path / 'model'}\n")
    assert "epoch 1/3" in said.err
    quiet = hogwild("train", "classifier", files / "train.svm", *SERIAL, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_trace_in_the_json_object(hogwild, files):
    words = ["train", "classifier", files / "train.svm", "--trace", "--lr", 0.2, "--epochs", 2, "--threads", 2]
    trace = hogwild(*words, "--json").json["trace"]
    assert [epoch["epoch"] for epoch in trace["epochs"]] == [1, 2]
    assert all(len(epoch["workers"]) == 2 for epoch in trace["epochs"])
    assert trace["gradients"] == 4000 == sum(w["gradients"] for epoch in trace["epochs"] for w in epoch["workers"])
    for entry in (trace, trace["epochs"][0]["workers"][0]):
        assert {"looked_at", "errors", "error_rate", "read_overwrites", "write_overwrites", "delayed"} <= set(entry)
        assert {"mean", "max"} <= set(entry["delay"])
        assert {"mean", "samples"} <= set(entry["wrong"])
    assert {"p50", "p99"} <= set(trace["epochs"][0]["workers"][0]["delay"])
    serial = hogwild("train", "classifier", files / "train.svm", "--trace", *SERIAL, "--json").json["trace"]
    assert serial["errors"] == 0


def test_the_command_line_wins_over_toml(hogwild, files, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(f'files = ["{files / "train.svm"}"]\nepochs = 7\nmode = "serial"\nlr = 0.2\njson = true\n')
    found = hogwild("train", "classifier", "--config", path, "--epochs", 2).json
    assert (found["epochs"], found["mode"]) == (2, "serial")
    assert found["samples"] == 4000


def test_toml_with_an_unknown_key(refused, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("epoch = 7\n")
    error = refused("train", "classifier", "x.svm", "--config", path)
    assert f"{path}: unknown key 'epoch' (did you mean epochs?)" in error


def test_serial_repeats_bit_for_bit(hogwild, files, tmp_path):
    for name in ("a", "b"):
        hogwild("train", "classifier", files / "train.svm", *SERIAL, "--output", tmp_path / name)
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("a", "b"))
    assert one == other


def test_more_threads_than_samples(hogwild, files):
    said = hogwild("train", "classifier", files / "few.svm", "--threads", 8, "--epochs", 2, "--lr", 0.1, "--json")
    assert said.code == 0
    assert said.json["samples"] == 6
    assert any("8 workers for 3 samples" in note for note in said.json["notes"])


def test_watching(hogwild, files, tmp_path):
    said = hogwild(
        "train", "classifier", files / "train.svm", *SERIAL, "--watch", "norm(weights)", "--watch", "weights[:2,0]",
        "--every", "1000", "--log-dir", tmp_path / "log",
    )  # fmt: skip
    assert said.code == 0
    assert "norm(weights) = " in said.err
    lines = [json.loads(line) for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[:2] == ["run", "started"]
    assert kinds[-2:] == ["finished", "summary"]
    assert kinds.count("epoch") == 3
    watched = [line for line in lines if line["event"] == "watched"]
    places = [line["samples"] for line in watched]
    assert places == sorted(set(places))    # nothing is shown twice
    assert watched[0]["values"]["norm(weights)"] == 0
    assert watched[-1]["values"]["norm(weights)"] > 0
    assert len(watched[-1]["values"]["weights[:2,0]"]) == 2
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    assert list((tmp_path / "log").glob("events.out.tfevents.*"))


def test_watching_what_does_not_exist(hogwild, files):
    said = hogwild("train", "classifier", files / "train.svm", *SERIAL, "--watch", "norm(wieghts)")
    assert said.code == 2
    assert "did you mean weights" in said.err


def test_what_is_watched_is_in_the_features_own_order(hogwild, files, tmp_path):
    said = hogwild(
        "train", "classifier", files / "train.svm", *SERIAL, "--watch", "weights[:5,0]", "--log-dir", tmp_path / "log",
        "--output", tmp_path / "model",
    )  # fmt: skip
    assert said.code == 0
    lines = [json.loads(line) for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["event"] == "watched"][-1]["values"]["weights[:5,0]"]
    from hogwild.programs.store import load_model

    saved = load_model(tmp_path / "model").program.arrays()["weight"][:5]
    assert last == pytest.approx(saved.tolist())


def test_evaluate_and_predict_agree(hogwild, files, trained):
    y = load_svmlight_file(str(files / "test.svm"))[1]
    found = hogwild("evaluate", trained, files / "test.svm", "--json").json
    metrics, bins = found["metrics"], found["calibration"]
    assert sum(each["rows"] for each in bins) == 500
    assert sum(each["rows"] * each["positive"] for each in bins) == pytest.approx((y > 0).sum())
    promised = sum(each["rows"] * each["predicted"] for each in bins)
    assert metrics["calibration"] == pytest.approx(promised / (y > 0).sum())
    said = hogwild("predict", trained, files / "test.svm")
    predicted = np.array([int(line) for line in said.out.splitlines()])
    assert accuracy_score(y, predicted) == pytest.approx(metrics["accuracy"])
    assert metrics["accuracy"] > 0.8
    told = hogwild("evaluate", trained, files / "test.svm")
    assert f"accuracy {metrics['accuracy']:.4f}" in told.out
    assert len(told.out.splitlines()) == 2 + len(bins)


def test_probabilities(hogwild, files, trained, tmp_path):
    said = hogwild("predict", trained, files / "test.svm", "--proba", "--output", tmp_path / "p.tsv", "--json")
    assert said.json["samples"] == 500
    assert said.json["classes"] == [-1, 1]
    chances = np.loadtxt(tmp_path / "p.tsv", delimiter="\t")
    assert chances.shape == (500, 2)
    assert chances.sum(axis=1) == pytest.approx(np.ones(500), abs=1e-5)
    labels = np.array([int(line) for line in hogwild("predict", trained, files / "test.svm").out.split()])
    assert ((chances[:, 1] > 0.5) == (labels > 0)).all()
    assert any("columns: -1 1" in note for note in said.json["notes"])


def test_predicting_in_pieces_gives_the_same(hogwild, files, trained, monkeypatch):
    before = hogwild("predict", trained, files / "test.svm", "--proba").out
    monkeypatch.setattr("hogwild.cli.apply.rows._AT_ONCE", 7)
    assert hogwild("predict", trained, files / "test.svm", "--proba").out == before


def test_predict_reads_standard_input(hogwild, files, trained, monkeypatch):
    expected = hogwild("predict", trained, files / "test.svm").out
    with (files / "test.svm").open("rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        said = hogwild("predict", trained, "-")
    assert said.out == expected


def test_predicting_refuses_to_mix_outputs(refused, files, trained):
    assert "--output FILE" in refused("predict", trained, files / "test.svm", "--json")


def test_unknown_features_are_counted(hogwild, trained, tmp_path):
    (tmp_path / "new.svm").write_text("+1 3:1 9999:1\n-1 4:1\n")
    said = hogwild("evaluate", trained, tmp_path / "new.svm", "--json").json
    assert any("1 entries" in note or "9999" in note or "left out" in note for note in said["notes"])


def test_words_as_labels_in_a_table(hogwild, tmp_path):
    random = np.random.default_rng(1)
    rows = ["colour,size,verdict"]
    for _ in range(400):
        colour, size = random.choice(["red", "blue"]), random.random()
        rows.append(f"{colour},{size:.3f},{'keep' if (colour == 'red') == (size > 0.2) else 'drop it'}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    words = ["train", "classifier", tmp_path / "t.csv", "--label", "verdict", *SERIAL]
    said = hogwild(*words, "--class-weight", "keep=2", "--output", tmp_path / "model", "--json")
    assert said.json["metrics"]["accuracy"] > 0.6
    predicted = set(hogwild("predict", tmp_path / "model", tmp_path / "t.csv").out.splitlines())
    assert predicted <= {"keep", "drop it"}
    (tmp_path / "new.csv").write_text("colour,size\nred,0.9\nblue,0.1\n")
    bare = hogwild("predict", tmp_path / "model", tmp_path / "new.csv")
    assert len(bare.out.splitlines()) == 2


def test_a_model_that_knows_no_columns_guesses_none(refused, tmp_path):
    (tmp_path / "pets.csv").write_text("label,kind\nyes,cat\nno,dog\n" * 5)
    feed = open_feed(tmp_path / "pets.csv")
    program = train(Linear(), feed, epochs=1, lr=0.1, threads=1, quiet=True)
    program.schema = None  # as of a model of an older version
    save_model(tmp_path / "model", program)
    assert "feed_schema=feed.schema" in refused("evaluate", tmp_path / "model", tmp_path / "pets.csv")


def test_class_weights_that_name_no_class(refused, files):
    assert "spam" in refused("train", "classifier", files / "train.svm", *SERIAL, "--class-weight", "spam=2")


def test_wrong_column(refused, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert "verdict" in refused("train", "classifier", tmp_path / "t.csv", "--label", "verdict")


def test_a_malformed_line_has_a_place(refused, files, tmp_path):
    (tmp_path / "bad.svm").write_text("+1 1:2\n-1 2:x\n")
    error = refused("train", "classifier", tmp_path / "bad.svm", "--output", tmp_path / "model")
    assert "bad.svm:2:" in error
    assert not (tmp_path / "model").exists()


def test_an_output_that_is_no_model_is_not_touched(refused, files, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    error = refused("train", "classifier", files / "train.svm", *SERIAL, "--output", tmp_path / "thesis", code=1)
    assert "thesis" in error
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_the_cache_is_listed_and_cleared(hogwild, files, tmp_path, monkeypatch):
    hogwild("train", "classifier", files / "train.svm", *SERIAL, "--quiet")
    monkeypatch.setattr(codecache.nb.config, "CACHE_DIR", str(tmp_path))  # not that of the tests
    state = codecache.code_folder() / f"{1:016x}"
    state.mkdir()
    codecache.mark(state, codecache.KIND)
    listed = hogwild("cache", "--json").json
    assert [entry["rows"] for entry in listed["entries"]] == [2000]
    assert [code["name"] for code in listed["code"]] == [state.name]
    shown = hogwild("cache").out
    assert "2,000 rows" in shown
    assert "1 encoded data set, " in shown
    assert f"1 state of compiled code, {len(codecache.KIND)}B" in shown
    assert shown == hogwild("cache", "list").out
    assert hogwild("cache", "path").out.strip() == listed["path"]
    assert "entries" not in hogwild("cache", "list", "--code", "--json").json
    cleared = hogwild("cache", "clear", "--feeds", "--json").json
    assert cleared["removed"] == 1
    assert cleared["bytes"] > 1000
    assert state.exists()
    assert hogwild("cache", "clear").out == "removed 0 encoded data sets, 0B\nremoved 1 state of compiled code, 12B\n"
    assert not state.exists()
    assert hogwild("cache", "list", "--feeds").out == "0 encoded data sets, 0B\n"


def test_a_regression_is_asked_for(hogwild, refused, tmp_path):
    path = tmp_path / "flats.csv"
    path.write_text("rooms,price\n" + "".join(f"{k % 9},{k * 1.5}\n" for k in range(1, 40)))
    train = ("train", "classifier", path, "--label", "price", *SERIAL)
    for model in ("linear", "mlp"):
        said = refused(*train, "--quiet", "--model", model)
        assert "39 different numbers (1.5, 3, 4.5, …), so quantities and no classes" in said
        assert "--loss squared" in said
    assert "rmse" in hogwild(*train, "--loss", "squared", "--json").json["metrics"]
    path.write_text("id,rooms\n" + "".join(f"{k},{k % 9}\n" for k in range(500)))
    said = refused("train", "classifier", path, "--label", "id", "--quiet", *SERIAL)
    assert "500 different labels in 500 rows, such as 0: nearly every row has its own" in said
    path.write_text("id,rooms\n" + "".join(f"{k},{k % 9}\n" for k in range(3000)))
    assert "3,000 different numbers" in refused("train", "classifier", path, "--quiet", *SERIAL), "the first column"
