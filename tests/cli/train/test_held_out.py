"""A part of the training file to validate on, and what the best epoch is told by, from the command line."""

from __future__ import annotations

import pytest

from cli.conftest import SERIAL

TRAIN = ("train", "classifier")


def epochs_of(found):
    return [line for line in found.err.splitlines() if line.startswith("epoch ")]


@pytest.mark.parametrize("flag", ["--valid-share", "--valid-last"])
def test_a_tenth_is_held_out_and_the_model_is_that_of_the_best_epoch(hogwild, files, tmp_path, flag):
    flags = (files / "train.svm", *SERIAL, "--lr", 0.2, flag, 0.1, "--best-by", "auc", "--output", tmp_path / "model")
    found = hogwild(*TRAIN, *flags, "--json").json
    assert found["evaluated_on"] == "valid"
    assert found["samples"] == 3 * 1800  # of 2,000 rows
    assert any("200 of 2,000 samples are held out" in note for note in found["notes"])
    assert 1 <= found["best_epoch"] <= 3
    again = hogwild(*TRAIN, *flags[:-2], "--json").json
    assert again["metrics"] == found["metrics"]  # the same rows, by the seed or by their order


def test_the_last_rows_are_held_out_as_they_stand(hogwild, files, tmp_path):
    lines = (files / "train.svm").read_text().splitlines(keepends=True)
    (tmp_path / "first.svm").write_text("".join(lines[:1600]))
    (tmp_path / "last.svm").write_text("".join(lines[1600:]))
    flags = (*SERIAL, "--lr", 0.2, "--features", 501, "--json")
    held = hogwild(*TRAIN, files / "train.svm", "--valid-last", 0.2, *flags).json
    apart = hogwild(*TRAIN, tmp_path / "first.svm", "--valid", tmp_path / "last.svm", *flags).json
    assert held["metrics"]["accuracy"] == pytest.approx(apart["metrics"]["accuracy"], abs=0.02)
    assert held["samples"] == apart["samples"]


def test_the_best_epoch_is_that_of_the_metric(hogwild, files):
    for name, best in (("loss", min), ("accuracy", max), ("auc", max)):
        flags = (
            files / "train.svm",
            *SERIAL[:2],
            "--epochs",
            6,
            "--lr",
            0.8,
            "--valid",
            files / "test.svm",
            "--best-by",
            name,
        )
        shown = hogwild(*TRAIN, *flags)
        values = [
            float(line.split(f" valid {name} " if name == "loss" else f" {name} ")[1].split()[0])
            for line in epochs_of(shown)
        ]
        told = hogwild(*TRAIN, *flags, "--json").json
        assert values[told["best_epoch"] - 1] == best(values)


def test_mistakes_are_a_line(refused, files):
    for flags, said in (
        (("--valid", files / "test.svm", "--valid-share", 0.1), "given twice"),
        (("--valid-share", 0.1, "--valid-last", 0.1), "it cannot be joined with valid_share"),
        (("--valid-last", 1.5), "a share of the training data"),
        (("--best-by", "auc"), "needs data to measure it on"),
        (("--valid", files / "test.svm", "--best-by", "rmse"), "it is one of loss, accuracy, auc, f1"),
    ):
        assert said in refused(*TRAIN, files / "train.svm", *SERIAL, "--lr", 0.2, *flags)
