"""`hogwild train classifier --model fm`: trained, evaluated, predicted with; flags that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hogwild.cli.main import main
from places import DATA

FOLDER = DATA / "adult"

# The compiled form of tests/programs/sparse/test_fm.py, so that nothing is compiled for this file.
FLAGS = ("--model", "fm", "--dim", "4", "--l2", "1e-4", "--l2-factors", "1e-3", "--lr", "0.1", "--mode", "serial")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """The class is whether the sum of two features' numbers is even; values are not 1."""
    path = tmp_path / "pairs.svm"
    rows = [((a + b) % 2, f"{a + 1}:0.9 {b + 6}:1.1") for a in range(5) for b in range(5)] * 8
    path.write_text("".join(f"{label} {words}\n" for label, words in rows))
    return path


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_train_evaluate_and_predict(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = str(tmp_path / "model"), str(pairs)
    trained = _json(
        capsys, "train", "classifier", data, *FLAGS, "--init-scale", "0.1", "--epochs", "25", "--output", model
    )
    assert trained["program"] == "fm"
    assert trained["metrics"]["auc"] > 0.95
    judged = _json(capsys, "evaluate", model, data)
    assert judged["metrics"]["auc"] == pytest.approx(trained["metrics"]["auc"], abs=1e-6)
    assert {"calibration", "logloss", "accuracy"} <= set(judged["metrics"])
    output = tmp_path / "labels.txt"
    assert main(["predict", model, data, "--output", str(output), "--quiet"]) == 0
    labels = output.read_text().split()
    true = [line.split()[0] for line in pairs.read_text().splitlines()]
    right = sum(ours == theirs for ours, theirs in zip(labels, true, strict=True))
    assert right / len(true) == pytest.approx(judged["metrics"]["accuracy"], abs=1e-6)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--l1", "0.1"), "--l1 is for --model"),
        (("--loss", "hinge"), "loss"),
        (("--field-aware",), "its features have no fields"),
        (("--dim", "999"), "between 0"),
    ],
)
def test_flags_that_do_not_fit(
    flags: tuple[str, ...], message: str, pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "classifier", str(pairs), "--model", "fm", *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.data
@pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data")
def test_census_income(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch and xLearn have AUCs of 0.9077 and 0.9074 there (benchmarks/fm.py)."""
    words = ["train", "classifier", str(FOLDER / "train.csv.xz"), "--label", "-1", "--model", "fm", "--mode", "serial"]
    words += ["--lr", "0.05", "--epochs", "6", "--output", str(tmp_path / "model")]
    _json(capsys, *words)
    assert _json(capsys, "evaluate", str(tmp_path / "model"), str(FOLDER / "valid.csv.xz"))["metrics"]["auc"] > 0.9
