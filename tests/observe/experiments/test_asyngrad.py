"""The experiment of AsynGrad: which runs are made, what is kept of each, and what they come to."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from hogwild.config import AsynGradBiLSTMConfig, AsynGradConfig, BiLSTMConfig
from hogwild.errors import ConfigError, WorkerError
from hogwild.feeds.synthetic.sentences import make_sentences
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.feeds.tagged.templates import open_templates
from hogwild.observe.experiments.asyngrad import METHODS, Experiment, plan_runs
from hogwild.observe.experiments.comparing import compare
from hogwild.observe.experiments.frame import Run

SETTING = AsynGradConfig(threads=(1, 2), epochs=2, seeds=2, rich_edges=False, seed=5)


@pytest.fixture(scope="module")
def feeds():
    """A little made-up text, with words and parts of speech as features."""
    parts = [list(make_sentences(count, part=part)) for part, count in enumerate((120, 40))]
    X = [[[[f"w={t.word}", f"pos={t.pos}", f"end={t.word[-2:]}"] for t in s] for s in part] for part in parts]
    y = [[[t.tag for t in s] for s in part] for part in parts]
    train = tagging_of(X[0], y[0])
    return train, tagging_of(X[1], y[1], names=train.names, tags=train.tags)


@pytest.fixture(scope="module")
def whole(feeds):
    """The record of a whole experiment, and the events of it."""
    experiment = Experiment(SETTING, *feeds)
    events = list(experiment.run())
    return experiment.record(), events


# -- which runs ------------------------------------------------------------------------------------------------------


def test_the_plan():
    assert plan_runs(AsynGradConfig(threads=(1, 4), seeds=2, seed=7)) == [
        Run("sgd", 1, 7),
        Run("synchronous", 1, 7), Run("asyngrad", 1, 7), Run("synchronous", 4, 7), Run("asyngrad", 4, 7),
        Run("asyngrad+sr", 4, 7),
        Run("asyngrad", 1, 7, traced=True), Run("asyngrad", 4, 7, traced=True), Run("asyngrad+sr", 4, 7, traced=True),
        Run("sgd", 1, 8),
        Run("synchronous", 1, 8), Run("asyngrad", 1, 8), Run("synchronous", 4, 8), Run("asyngrad", 4, 8),
        Run("asyngrad+sr", 4, 8),
    ]  # fmt: skip


def test_a_model_without_structure_regularization_has_no_such_runs():
    own = [run for run in plan_runs(AsynGradConfig(threads=(1, 4), seeds=2)) if run.method != "asyngrad+sr"]
    assert plan_runs(AsynGradBiLSTMConfig(threads=(1, 4), seeds=2)) == own


def test_sizes_and_templates_of_a_bilstm_are_those_of_the_task():
    for task, size in {"pos": 170, "chunking": 280, "segmentation": 220}.items():
        config = AsynGradBiLSTMConfig(task=task)
        assert (config.hidden, config.word_dim, config.batch_size) == (size, size, 1)
        assert open_templates(config.templates)
    own = AsynGradBiLSTMConfig(hidden=20, word_dim=10, batch_size=4)
    assert (own.hidden, own.word_dim, own.batch_size) == (20, 10, 4)
    assert own.program() == vars(BiLSTMConfig(hidden=20, word_dim=10, batch_size=4, together=1))


def test_defaults_and_small():
    usual, small = AsynGradConfig(), AsynGradConfig(small=True)
    assert (usual.counts, usual.iterations, usual.repeats) == (tuple(range(1, 11)), 10, 5)
    assert (small.counts, small.iterations, small.repeats) == ((1, 2, 4), 5, 2)
    own = AsynGradConfig(small=True, threads=(3,), epochs=7, seeds=9)
    assert (own.counts, own.iterations, own.repeats) == ((3,), 7, 9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"threads": (0,)}, {"threads": (2, 2)}, {"threads": ("two",)}, {"threads": (5000,)}, {"epochs": 0},
        {"seeds": 0}, {"seed": -1}, {"lr": 0.0}, {"l2": -1.0}, {"rich_edge_min_count": 0}, {"task": "parsing"},
        {"structure_regularization": 1},
    ],
    ids=str,
)  # fmt: skip
def test_values_that_cannot_work(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        AsynGradConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"threads": (0,)}, {"hidden": -1}, {"word_dim": 5000}, {"batch_size": 0}], ids=str)
def test_values_that_cannot_work_for_a_bilstm(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        AsynGradBiLSTMConfig(**wrong)


# -- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_all_runs_are_there(whole):
    record, events = whole
    assert record["complete"] is True
    assert (record["schema"], record["version"]) == ("hogwild.asyngrad", 1)
    made = [Run(r["method"], r["threads"], r["seed"], r["traced"]) for r in record["runs"]]
    assert made == plan_runs(SETTING)
    assert {r["method"]: r["mode"] for r in record["runs"]} == {
        "sgd": "serial", "synchronous": "round-robin", "asyngrad": "hogwild", "asyngrad+sr": "hogwild",
    }  # fmt: skip
    assert {(r["method"], r["structure_regularization"]) for r in record["runs"]} == {
        ("sgd", 0), ("synchronous", 0), ("asyngrad", 0), ("asyngrad+sr", 4),
    }  # fmt: skip
    kinds = Counter(event.kind for _, event in events)
    assert kinds["finished"] == len(made)
    assert kinds["epoch"] == 2 * len(made)
    assert all(event.sharing == "all" for _, event in events if event.kind == "started")
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_the_rate_and_the_penalty_are_those_of_the_paper(feeds):
    expected = {"pos": (0.02, 1.0), "chunking": (0.05, 0.5), "segmentation": (0.1, 1.0)}
    for task, values in expected.items():
        experiment = Experiment(AsynGradConfig(task=task), *feeds)
        assert (experiment.lr, experiment.l2) == values
    own = Experiment(AsynGradConfig(lr=0.3, l2=0.0), *feeds)
    assert (own.lr, own.l2) == (0.3, 0.0)


@pytest.mark.full
def test_the_rate_is_used(whole):
    rates = [event.lr for _, event in whole[1] if event.kind == "started"]
    assert rates == pytest.approx([0.05] * len(rates))


@pytest.mark.full
def test_seconds_come_from_runs_without_a_trace(whole):
    for run in whole[0]["runs"]:
        assert [found["iteration"] for found in run["iterations"]] == [1, 2]
        for found in run["iterations"]:
            assert ("seconds" in found, "traced_seconds" in found) == (not run["traced"], run["traced"])
            assert ("errors" in found, "workers" in found) == (run["traced"], run["traced"])
            assert found.get("seconds", found.get("traced_seconds")) > 0


@pytest.mark.full
def test_one_thread_is_sgd_whatever_it_is_called(whole):
    """The same visits in the same order: the losses of all that one thread did are those of SGD."""
    runs = [run for run in whole[0]["runs"] if run["threads"] == 1 and run["seed"] == 5]
    assert len(runs) == 4
    losses = [[found["loss"] for found in run["iterations"]] for run in runs]
    for run in losses[1:]:
        assert run == pytest.approx(losses[0], rel=1e-4)
    other = next(run for run in whole[0]["runs"] if run["seed"] == 6)
    assert other["iterations"][0]["loss"] != pytest.approx(losses[0][0], rel=1e-4)


@pytest.mark.full
def test_the_score_is_f1_on_the_test_text(whole):
    record, events = whole
    assert record["score"] == "f1"
    scores = [event.metrics["f1"] for _, event in events if event.kind == "epoch"]
    assert [found["score"] for run in record["runs"] for found in run["iterations"]] == scores
    assert min(scores) > 0.5
    assert max(scores) <= 1


@pytest.mark.full
def test_every_gradient_is_counted_for_its_worker(whole, feeds):
    record, _ = whole
    traced = [run for run in record["runs"] if run["traced"]]
    assert [(run["method"], run["threads"]) for run in traced] == [("asyngrad", 1), ("asyngrad", 2), ("asyngrad+sr", 2)]
    for run in traced:
        for found in run["iterations"]:
            assert [worker["worker"] for worker in found["workers"]] == list(range(run["threads"]))
            assert sum(worker["gradients"] for worker in found["workers"]) == len(feeds[0])
            assert found["errors"]["gradients"] == len(feeds[0])
            assert found["errors"]["errors"] == sum(worker["errors"] for worker in found["workers"])
            assert "counts" in found["errors"]["delay"]
            for worker in found["workers"]:
                assert set(worker["delay"]) == {"mean", "p50", "p99", "max"}
                assert set(worker["wrong"]) == {"samples", "mean", "p50", "p99", "max"}
    assert {found["errors"]["errors"] for found in traced[0]["iterations"]} == {0}


@pytest.mark.full
def test_facts_about_data_and_machine(whole, feeds):
    record, _ = whole
    facts = dict(record["data"]["train"])
    assert re.fullmatch("[0-9a-f]{16}", facts.pop("digest"))  # by which a run that goes on knows its data
    assert facts == {"source": "sentences", "sentences": 120, "tokens": feeds[0].tokens}
    assert record["data"]["features"] == len(feeds[0].names)
    assert record["data"]["tags"] == list(feeds[0].tags)
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["processor"]
    assert record["options"]["seeds"] == [5, 6]
    assert any("features not in the model" in note for note in record["notes"])


def test_more_threads_than_cores_are_told(feeds, monkeypatch):
    monkeypatch.setattr("hogwild.observe.experiments.frame.cores", lambda: 2)
    notes = [Experiment(AsynGradConfig(threads=(1, most)), *feeds).record()["notes"] for most in (2, 10)]
    assert not any("share" in note for note in notes[0])
    assert "10 threads share 2 cores: no speed-up above 2 can be expected." in notes[1]


# -- ends before the end ---------------------------------------------------------------------------------------------


def test_stopped_in_the_middle_of_a_run(feeds):
    experiment = Experiment(AsynGradConfig(threads=(1,), epochs=10**6, seeds=1, rich_edges=False), *feeds)
    for _, event in experiment.run():
        if event.kind == "epoch" and event.epoch == 3:
            experiment.stop()
    record = experiment.record()
    assert record["complete"] is False
    (run,) = record["runs"]
    assert run["complete"] is False
    assert 3 <= len(run["iterations"]) < 10**6
    (entry,) = record["methods"]
    assert (entry["runs"], entry["final_score"]) == (0, None)
    assert entry["seconds"]["median"] > 0


def test_a_run_that_fails_leaves_what_was_there(feeds):
    experiment = Experiment(AsynGradConfig(threads=(1,), epochs=1, seeds=1, rich_edges=False), *feeds)
    runs = experiment.run()
    for run, event in runs:
        if run.method == "synchronous" and event.kind == "started":
            experiment.lr = 1e30
        if run.method == "synchronous" and event.kind == "finished":
            break
    with pytest.raises(WorkerError, match="nan"):
        list(runs)
    record = experiment.record()
    assert record["complete"] is False
    assert [run["complete"] for run in record["runs"]] == [True, True, False]


def test_the_time_that_is_left_goes_by_runs_of_the_same_kind(feeds):
    experiment = Experiment(AsynGradConfig(threads=(1, 2), seeds=2), *feeds)
    assert experiment.seconds_left is None
    experiment.records = [{"compile_seconds": 0.5, "wall_seconds": seconds + 0.5} for seconds in range(1, 9)]
    left = experiment.plan[8:]
    assert [(run.method, run.threads, run.traced) for run in left[:2]] == [("asyngrad+sr", 2, True), ("sgd", 1, False)]
    assert experiment.seconds_left == pytest.approx(4.5 + 1 + 2 + 3 + 4 + 5 + 6)  # the first is of no known kind


def test_before_the_first_run(feeds):
    record = Experiment(SETTING, *feeds).record()
    assert (record["complete"], record["runs"], record["methods"]) == (False, [], [])


# -- what it comes to ------------------------------------------------------------------------------------------------


def made(method, threads, seconds, scores, traced=False, complete=True):
    key = "traced_seconds" if traced else "seconds"
    pairs = zip(seconds, scores, strict=True)
    iterations = [{"iteration": k, key: s, "loss": 1 / k, "score": f} for k, (s, f) in enumerate(pairs, 1)]
    return {"method": method, "threads": threads, "traced": traced, "complete": complete, "iterations": iterations}


def traced_run(method, threads, *epochs):
    """epochs: for each, for each worker (looked at, errors, read, write, mean delay, mean wrong); half are delayed."""
    run = made(method, threads, [9.0] * len(epochs), [0.5] * len(epochs), traced=True)
    for iteration, workers in zip(run["iterations"], epochs, strict=True):
        iteration["workers"] = [
            {"worker": k, "gradients": 64 * w[0], "looked_at": w[0], "errors": w[1], "read_overwrites": w[2],
             "write_overwrites": w[3], "delayed": w[0] // 2}
            for k, w in enumerate(workers)
        ]
        gradients = sum(w[0] for w in workers)
        iteration["errors"] = {
            "gradients": 64 * gradients, "looked_at": gradients,
            "delay": {"mean": sum(w[0] * w[4] for w in workers) / gradients},
            "wrong": {"samples": len(workers), "mean": sum(w[5] for w in workers) / len(workers)},
        }
    return run


def test_speed_ups_and_scores():
    runs = [
        made("asyngrad", 2, [1.0, 3.0], [0.7, 0.9]),
        made("sgd", 1, [4.0, 2.0, 6.0], [0.5, 0.7, 0.8]),
        made("asyngrad", 1, [5.0], [0.82]),
        made("asyngrad", 2, [2.0, 2.0], [0.7, 0.8]),
        made("asyngrad", 2, [8.0], [0.1], complete=False),
        made("sgd", 1, [4.0], [0.84]),
    ]
    sgd, one, two = compare(runs, METHODS)
    assert [(e["method"], e["threads"], e["runs"]) for e in (sgd, one, two)] == [
        ("sgd", 1, 2), ("asyngrad", 1, 1), ("asyngrad", 2, 2),
    ]  # fmt: skip
    assert sgd["seconds"] == {"median": 4.0, "best": 2.0}
    assert two["seconds"] == {"median": 2.0, "best": 1.0}  # of 1, 3, 2, 2, 8
    assert (sgd["speed_up"], one["speed_up"], two["speed_up"]) == (1.0, 0.8, 2.0)
    assert two["speed_up_best"] == 2.0
    assert two["speed_up_own"] == 2.5
    assert two["final_score"]["mean"] == pytest.approx(0.85)
    assert two["final_score"]["deviation"] == pytest.approx(0.05 * 2**0.5)
    assert (two["final_score"]["least"], two["final_score"]["most"]) == (0.8, 0.9)
    assert one["final_score"]["deviation"] is None
    assert two["score_difference"] == pytest.approx(0.85 - 0.82)
    assert two["final_loss"]["mean"] == pytest.approx(0.5)


def test_seconds_and_scores_of_traced_runs_are_no_part_of_it():
    runs = [made("sgd", 1, [4.0], [0.8]), traced_run("asyngrad", 2, [(10, 1, 1, 0, 0.0, 0.0)])]
    entry = compare(runs, METHODS)[1]
    assert (entry["runs"], entry["final_score"], entry["seconds"], entry["speed_up"]) == (0, None, None, None)


def test_error_rates_weigh_gradients():
    run = traced_run(
        "asyngrad", 2,
        [(30, 6, 4, 3, 1.0, 0.1), (10, 0, 0, 0, 0.0, 0.3)],
        [(50, 10, 9, 2, 2.0, 0.5), (10, 4, 4, 0, 5.0, 0.1)],
    )  # fmt: skip
    (entry,) = compare([run], METHODS)
    errors = entry["errors"]
    assert errors["error_rate"] == pytest.approx(20 / 100)
    assert errors["read_overwrite_rate"] == pytest.approx(17 / 100)
    assert errors["write_overwrite_rate"] == pytest.approx(5 / 100)
    assert errors["delayed_rate"] == pytest.approx(1 / 2)
    assert errors["by_worker"] == pytest.approx([16 / 80, 4 / 20])
    assert errors["mean_delay"] == pytest.approx((30 * 1 + 50 * 2 + 10 * 5) / 100)
    assert errors["mean_wrong"] == pytest.approx((0.1 + 0.3 + 0.5 + 0.1) / 4)


def test_without_one_thread_there_is_nothing_to_compare_with():
    (entry,) = compare([made("asyngrad", 4, [1.0], [0.9])], METHODS)
    assert entry["speed_up"] is None
    assert entry["speed_up_own"] is None
    assert entry["score_difference"] is None
