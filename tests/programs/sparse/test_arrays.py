"""Models of arrays without names: rows in whatever form they come, numbers that are missing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import hogwild

PROGRAMS = {
    "linear": hogwild.Linear,
    "fm": lambda: hogwild.FactorizationMachine(dim=2),
    "mlp": lambda: hogwild.SparseMLP(hidden=(4,), dim=2),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def trained(request):
    """A program, and the whole array that it was trained on."""
    whole = np.random.default_rng(0).integers(0, 6, (400, 4))
    program = hogwild.train(
        PROGRAMS[request.param](), (whole, whole[:, 0] > 2), epochs=3, lr=0.05, mode="serial", quiet=True
    )
    return program, whole


def test_one_row_of_whole_numbers_has_values(trained):
    """They were taken for numbers of features."""
    program, whole = trained
    for row, chances in zip(whole[:20], program.predict_proba(whole[:20]), strict=True):
        for given in (row, row.tolist(), row.astype(float)):
            assert program.predict_proba_one(given)[1] == pytest.approx(chances[1], abs=1e-5)


def test_missing_numbers_are_the_mean_of_training(trained, tmp_path):
    program, whole = trained
    gaps = whole[:5].astype(float)
    gaps[1, 0] = gaps[3, 2] = np.nan
    expected = program.predict_proba(np.where(np.isnan(gaps), whole.mean(0), gaps))
    hogwild.save_model(tmp_path / "model", program)
    for each in (program, hogwild.load_model(tmp_path / "model").program):
        nones = [[None if value != value else value for value in row] for row in gaps.tolist()]
        for data in (gaps, gaps.tolist(), nones, pd.DataFrame(gaps), gaps.astype(np.float32)):
            np.testing.assert_allclose(each.predict_proba(data), expected, rtol=1e-5)
        for row, chances in zip((*gaps, nones[1]), (*expected, expected[1]), strict=True):
            assert each.predict_proba_one(row)[1] == pytest.approx(chances[1], abs=1e-5)
        expected_loss = -np.log(expected[np.arange(5), (whole[:5, 0] > 2).astype(int)]).mean()
        assert each.evaluate((gaps, whole[:5, 0] > 2))["logloss"] == pytest.approx(expected_loss, rel=1e-3)
        with pytest.raises(hogwild.InputError, match="does not fit"):
            each.predict(pd.DataFrame(gaps, columns=list("abcd")))


def test_validation_data_may_lack_numbers(trained):
    program, whole = trained
    gaps = whole[:9].astype(float)
    gaps[2, 1] = np.nan
    again = type(program)(**program.options())
    hogwild.train(
        again, (whole, whole[:, 0] > 2), valid=(gaps, whole[:9, 0] > 2), epochs=1, lr=0.05, mode="serial", quiet=True
    )


def test_means_that_are_none_are_refused(tmp_path):
    program = hogwild.train(hogwild.Linear(), ([[1.0], [2.0]], [0, 1]), epochs=1, lr=0.1, mode="serial", quiet=True)
    hogwild.save_model(tmp_path / "model", program)
    config = tmp_path / "model" / "config.json"
    assert json.loads(config.read_text())["means"] == [1.5]
    config.write_text(config.read_text().replace("1.5", '"x"'))
    with pytest.raises(hogwild.ModelError, match="'means' are not finite numbers"):
        hogwild.load_model(tmp_path / "model")


def test_lists_of_rows_with_missing_numbers_train_as_arrays_do():
    rows = np.random.default_rng(1).normal(size=(50, 2))
    rows[::7, 0] = np.nan
    labels = rows[:, 1] > 0
    feeds = [hogwild.feed_of(data, labels) for data in (rows, rows.tolist(), rows.astype(object))]
    for feed in feeds[1:]:
        assert feed.features == feeds[0].features == 3
        np.testing.assert_array_equal(feed.samples.values, feeds[0].samples.values)
