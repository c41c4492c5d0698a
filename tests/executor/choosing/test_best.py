"""The best epoch: by which it is told, and on what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.executor.events import EpochEnded, Started
from hogwild.executor.plan import check_best, judged

FEED = hogwild.feed_of(np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32), np.arange(60) % 2)


@pytest.mark.parametrize(
    ("program", "usual"),
    [
        (hogwild.Linear(), "accuracy"), (hogwild.Linear("squared"), "rmse"), (hogwild.TextClassifier(), "accuracy"),
        (hogwild.Linear(class_weight="balanced"), "loss"), (hogwild.MatrixFactorization(loss="bpr"), "ndcg"),
        (hogwild.MatrixFactorization(loss="squared"), "rmse"), (hogwild.CRF(), "f1"), (hogwild.Word2Vec(), "loss"),
    ],
)  # fmt: skip
def test_what_is_usual_for_a_program(program: Any, usual: str) -> None:
    assert program.best_by == usual
    metrics = {"loss": 0.5, "accuracy": 0.9, "auc": 0.8, "f1": 0.7, "ndcg@20": 0.3, "rmse": 1.5}
    value = program.judge(metrics, 9.0)
    expected = {"loss": 0.5, "accuracy": -0.9, "f1": -0.7, "ndcg": -0.3, "rmse": 1.5}[usual]
    assert value == pytest.approx(expected, abs=1e-8)
    assert judged(TrainConfig(best_by="loss"), program, metrics, 9.0) == 0.5


def test_of_equal_accuracies_the_lower_loss_is_better() -> None:
    program = hogwild.Linear()
    assert program.judge({"accuracy": 0.9, "loss": 0.3}, 0) < program.judge({"accuracy": 0.9, "loss": 0.4}, 0)
    assert program.judge({"accuracy": 0.900001, "loss": 9.0}, 0) < program.judge({"accuracy": 0.9, "loss": 0.4}, 0)


def test_plain_tags_have_no_f() -> None:
    assert hogwild.CRF().judge({"accuracy": 0.9, "loss": 1.0}, 0) == pytest.approx(-0.9, abs=1e-8)
    assert hogwild.CRF(best_by="loss").judge({"accuracy": 0.9, "loss": 1.0}, 0) == 1.0


@pytest.mark.parametrize(
    ("program", "options", "valid", "message"),
    [
        (hogwild.Linear(), {"best_by": "auc"}, None, "no data to measure it on"),
        (hogwild.Linear(), {"patience": 2}, None, "patience needs validation data"),
        (hogwild.Linear("squared"), {"best_by": "f1"}, FEED, "choose one of loss, rmse"),
        (hogwild.Word2Vec(), {"best_by": "auc"}, FEED, "choose one of loss"),
        (hogwild.MatrixFactorization(loss="bpr"), {"best_by": "rmse"}, FEED, "choose one of loss, ndcg"),
    ],
)
def test_what_cannot_be_watched(program: Any, options: dict[str, Any], valid: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_best(TrainConfig(**options), program, valid)


def test_a_metric_that_the_data_do_not_give_is_said() -> None:
    with pytest.raises(ConfigError, match="best_by is auc, which the validation data do not give"):
        hogwild.Linear().judge_by("auc", {"loss": 1.0, "accuracy": 1.0}, 0.0)


def test_a_run_holds_out_what_it_is_told_to() -> None:
    executor = hogwild.AsyncExecutor(threads=1, mode="serial", lr=0.5, epochs=4, valid_share=0.25, best_by="auc")
    events = list(executor.run(hogwild.Linear(), FEED))
    assert isinstance(events[0], Started)
    assert "15 of 60 samples" in events[0].notes[0]
    epochs = [event for event in events if isinstance(event, EpochEnded)]
    assert events[-1].samples == 4 * 45
    best, seen = -1.0, []
    for event in epochs:
        seen.append(event.metrics["auc"] > best)
        best = max(best, event.metrics["auc"])
    assert [event.best for event in epochs] == seen


def test_train_keeps_the_best_of_held_out_rows() -> None:
    options: Any = {"threads": 1, "mode": "serial", "lr": 0.5, "epochs": 4, "quiet": True}
    program = hogwild.train(hogwild.Linear(), FEED, valid_last=0.25, best_by="loss", **options)
    last = FEED.part(np.arange(45, 60), "")
    runs = hogwild.AsyncExecutor(threads=1, mode="serial", lr=0.5, epochs=4)
    losses = [
        event.metrics["loss"]
        for event in runs.run(hogwild.Linear(), FEED.part(np.arange(45), ""), valid=last)
        if isinstance(event, EpochEnded)
    ]
    assert program.evaluate(last)["loss"] == min(losses)
