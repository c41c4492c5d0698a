"""make-dataset: well-formed files, the law that was asked for, and a truth that can be learned."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import time

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

from hogwild.config import SparseConfig
from hogwild.feeds.slots.description import read_slots
from hogwild.feeds.synthetic.lines import svmlight
from hogwild.feeds.synthetic.sparse import MadeRows, make_rows, true_weights
from hogwild.feeds.synthetic.truth import Truth


def whole(config):
    """All rows of a problem at once, and the truth about them."""
    truth = Truth(config.classes)
    return list(make_rows(config, truth)), truth


def slow_svmlight(rows):
    """The obvious twin of `svmlight`."""
    lines = []
    values = ["1" if value == 10_000 else f"0.{value:04}" for value in rows.values]
    for i, label in enumerate(rows.labels):
        entries = range(rows.offsets[i], rows.offsets[i + 1])
        words = [f"{rows.ids[k] + 1}:{values[k]}" for k in entries]
        lines.append(" ".join(["+1" if label else "-1", *words]) + "\n")
    return "".join(lines).encode()


@pytest.mark.parametrize("features", [1, 9, 10, 9_999, 10_000, 100_000_000, 2**31 - 1])
def test_the_writer_equals_its_twin(features):
    random = np.random.default_rng(features)
    lengths = random.integers(1, 6, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = random.integers(0, features, offsets[-1])
    ids[-1] = features - 1
    values = random.integers(1, 10_001, len(ids))
    values[:2] = 1, 10_000
    rows = MadeRows(offsets, ids, values, random.integers(0, 2, 50))
    assert svmlight(rows) == slow_svmlight(rows)


@pytest.mark.parametrize("distribution", ["zipf", "uniform"])
@pytest.mark.parametrize(("features", "nonzeros"), [(3000, "2:9"), (40, "1:40"), (40, "40"), (1, "1"), (12, "3")])
def test_rows_have_distinct_ascending_ids_and_the_lengths_asked_for(distribution, features, nonzeros):
    config = SparseConfig(rows=300, features=features, nonzeros=nonzeros, distribution=distribution)
    (rows,), truth = whole(config)
    low, high = config.lengths
    lengths = np.diff(rows.offsets)
    assert lengths.min() >= low
    assert lengths.max() <= high
    assert low == high or len(set(lengths)) > 1
    for i in range(300):
        ids = rows.ids[rows.offsets[i] : rows.offsets[i + 1]]
        assert (np.diff(ids) > 0).all()
        assert ids[0] >= 0
        assert ids[-1] < features
    assert truth.rows == 300
    assert truth.nonzeros == len(rows.ids)


def test_uniform_and_zipf_frequencies():
    def counts(distribution):
        config = SparseConfig(rows=20_000, features=1000, nonzeros="3", distribution=distribution)
        ids = np.concatenate([rows.ids for rows in whole(config)[0]])
        return np.sort(np.bincount(ids, minlength=1000))[::-1]

    uniform = counts("uniform")
    assert uniform.max() < 60 + 6 * math.sqrt(60)      # 60 expected each
    assert uniform.min() > 60 - 6 * math.sqrt(60)
    zipf = counts("zipf")
    # Rank k has the probability log((k + 2) / (k + 1)) / log(1001); the first is drawn 3 times a row, once at the most.
    first = 1 - (1 - math.log(2) / math.log(1001)) ** 3
    assert zipf[0] == pytest.approx(20_000 * first, rel=0.05)
    assert zipf[9] == pytest.approx(60_000 * math.log(11 / 10) / math.log(1001), rel=0.25)


def test_the_same_seed_gives_the_same_bytes_and_parts_share_the_weights():
    def text(**changes):
        config = SparseConfig(rows=500, features=999, nonzeros="7", **changes)
        return b"".join(svmlight(rows) for rows in whole(config)[0])

    assert text() == text()
    assert len({text(), text(seed=2), text(part=1), text(noise=0.3)}) == 4
    ids = np.arange(999)
    one, other = SparseConfig(features=999), SparseConfig(features=999, part=1)
    assert (true_weights(one, ids) == true_weights(other, ids)).all()
    assert (true_weights(one, ids) != true_weights(SparseConfig(features=999, seed=2), ids)).any()


def test_true_weights_are_nearly_normal():
    weights = true_weights(SparseConfig(distribution="uniform"), np.arange(200_000))
    assert weights.mean() == pytest.approx(0, abs=0.01)
    assert weights.std() == pytest.approx(1, abs=0.01)
    assert (np.abs(weights) < 1).mean() == pytest.approx(0.683, abs=0.03)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2, 0.4])
def test_the_truth_errs_as_often_as_asked(noise):
    _, truth = whole(SparseConfig(rows=20_000, features=2000, nonzeros="20", noise=noise))
    assert 1 - truth.right / truth.rows == pytest.approx(noise, abs=0.02)
    assert truth.positive / truth.rows == pytest.approx(0.5, abs=0.1)
    assert (truth.log_loss == 0) == (noise == 0)


@pytest.mark.parametrize("binary", [False, True])
def test_the_problem_can_be_learned(binary):
    def load(**changes):
        config = SparseConfig(rows=8000, features=200, nonzeros="10", noise=0.1, binary=binary, **changes)
        rows, truth = whole(config)
        text = b"".join(svmlight(part) for part in rows)
        return *load_svmlight_file(io.BytesIO(text), n_features=200, zero_based=False), truth

    x, y, _ = load()
    x_test, y_test, truth = load(part=1)
    assert not binary or set(x.data) == {1.0}
    accuracy = LogisticRegression(max_iter=1000).fit(x, y).score(x_test, y_test)
    assert truth.right / truth.rows - 0.02 < accuracy < truth.right / truth.rows + 0.01


def test_the_command_writes_what_it_says(hogwild, tmp_path):
    path = tmp_path / "data.svm"
    words = ["make-dataset", "sparse", "--rows", 100, "--features", 50, "--nonzeros", "2:5", "--binary", "--noise", 0]
    said = hogwild(*words, "--output", path, "--json")
    assert said.code == 0
    x, y = load_svmlight_file(str(path))
    assert said.json["rows"] == len(y) == 100
    assert said.json["nonzeros"] == x.nnz
    assert said.json["bytes"] == path.stat().st_size
    assert said.json["truth"] == said.json["bayes"] == {"accuracy": 1.0, "logloss": 0.0, "auc": 1.0}
    assert said.json["positive"] == (y > 0).mean()
    told = hogwild(*words, "--output", path)
    assert "best possible on these rows, expected under the true chances: AUC 1.0000, log loss 0.0000" in told.err
    assert told.out == ""
    quiet = hogwild(*words, "--quiet")
    assert quiet.err == ""
    assert quiet.out.encode() == path.read_bytes()


def test_clicks_with_their_description(hogwild, refused, tmp_path):
    path = tmp_path / "clicks.txt.gz"
    words = ["make-dataset", "clicks", "--rows", 50, "--dense-size", 60, "--slots", 3, "--numbers", 2]
    said = hogwild(*words, "--output", path, "--json").json
    assert (said["rows"], said["features"], said["slots"], said["numbers"]) == (50, 60, 3, 2)
    assert said["description"] == str(tmp_path / "clicks.slots.toml")
    plan = read_slots(said["description"])
    assert (plan.names, plan.columns) == (("C1", "C2", "C3"), ("I1", "I2"))
    with gzip.open(path, "rt") as file:
        lines = file.readlines()
    assert len(lines) == 50
    assert sum(line.startswith("1 1 2 ") for line in lines) == round(50 * said["positive"])
    assert set(said["bayes"]) == set(said["truth"]) == {"accuracy", "logloss", "auc"}
    told = hogwild(*words, "--output", path)
    assert "describes the slots; keep it beside the data." in told.err
    assert f"AUC {said['bayes']['auc']:.4f}" in told.err
    assert "no description of the slots" in hogwild(*words).err
    assert "use multislot" in refused(*words, "--nonzeros", "0:2", "--format", "csv")


def test_ten_classes(hogwild, tmp_path):
    path = tmp_path / "ten.tfrecord"
    words = ["--dense-size", 1000, "--nonzeros", "10:99", "--classes", 10, "--format", "tfrecord", "--noise", 0.3]
    said = hogwild("make-dataset", "sparse", "--rows", 400, *words, "--output", path, "--json").json
    assert said["bytes"] == path.stat().st_size
    assert said["description"] is None
    assert len(said["shares"]) == 10
    assert min(said["shares"]) > 0
    assert said["bayes"]["accuracy"] == pytest.approx(0.7, abs=0.04)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("ending", "opened"), [("gz", gzip.open), ("xz", lzma.open), ("zst", pa.input_stream)])
def test_compressed_by_name_and_the_same_bytes_each_time(ending, opened, hogwild, tmp_path):
    plain, packed = tmp_path / "a.svm", tmp_path / f"a.svm.{ending}"
    for path in (plain, packed):
        assert hogwild("make-dataset", "sparse", "--rows", 20, "--output", path).code == 0
    assert packed.stat().st_size < plain.stat().st_size
    with opened(packed) as file:
        assert file.read() == plain.read_bytes()
    before = packed.read_bytes()
    hogwild("make-dataset", "sparse", "--rows", 20, "--output", packed)
    assert packed.read_bytes() == before


def test_an_old_file_stays_when_the_new_one_cannot_be_made(hogwild, refused, tmp_path, monkeypatch):
    path = tmp_path / "data.svm"
    path.write_text("old")

    def fail(rows, classes):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hogwild.feeds.synthetic.lines.svmlight", fail)
    assert "No space left" in refused("make-dataset", "sparse", "--rows", 5, "--output", path, code=1)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.svm"]


def test_places_that_cannot_be_written(refused, tmp_path):
    assert "directory" in refused("make-dataset", "sparse", "--rows", 5, "--output", tmp_path, code=1)
    assert "No such file" in refused("make-dataset", "sparse", "--rows", 5, "--output", tmp_path / "no" / "x", code=1)
    assert "No space left" in refused("make-dataset", "sparse", "--rows", 5, "--output", "/dev/full", code=1)


def test_a_link_stays_a_link(hogwild, tmp_path):
    (tmp_path / "real.svm").write_text("old")
    (tmp_path / "link.svm").symlink_to("real.svm")
    hogwild("make-dataset", "sparse", "--rows", 5, "--output", tmp_path / "link.svm")
    assert (tmp_path / "link.svm").is_symlink()
    assert (tmp_path / "real.svm").read_text().count("\n") == 5


def test_options_from_toml(hogwild, tmp_path):
    (tmp_path / "problem.toml").write_text('rows = 7\nnonzeros = "2"\ndense-size = 30\n')
    said = hogwild("make-dataset", "sparse", "--config", tmp_path / "problem.toml", "--features", 9)
    lines = said.out.splitlines()
    assert len(lines) == 7
    assert all(len(line.split()) == 3 for line in lines)
    assert max(int(word.split(":")[0]) for line in lines for word in line.split()[1:]) <= 9


def test_a_million_nonzeros_are_quick(tmp_path):
    # Ratio to a plain Python writer, so that a busy machine does not matter.
    config = SparseConfig(rows=4000, features=100_000, nonzeros="50")
    rows, _ = whole(config)
    began = time.perf_counter()
    fast = b"".join(svmlight(part) for part in rows)
    middle = time.perf_counter()
    slow = b"".join(slow_svmlight(part) for part in rows)
    assert fast == slow
    assert middle - began < (time.perf_counter() - middle) / 2
