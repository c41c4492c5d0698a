"""Runs of a report, from logs and from experiments."""

from __future__ import annotations

import json

import pytest

from hogwild.errors import InputError
from hogwild.executor.events import Progress
from hogwild.observe.report.experiments import read_experiment, runs_of, speed_ups
from hogwild.observe.report.page import read_runs
from hogwild.observe.report.runs import POINTS, Recorder, read_log, run_of, thin
from observe.report.made import records


def write_log(place, *lines):
    place.mkdir(parents=True, exist_ok=True)
    (place / "events.jsonl").write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    return str(place)


def test_a_run_has_what_its_log_says():
    run = run_of(records(), "mine")
    assert run.verdict["score"] == {"name": "auc", "value": 0.75}
    assert run.verdict["speed"] == {"value": 1e6, "unit": "nonzeros"}
    assert (run.verdict["loss"], run.verdict["held_out"], run.verdict["seconds"]) == (0.5, 0.6, 12.0)
    assert run.about["command"] == "hogwild train classifier 'a b.svm'"
    assert (run.about["seed"], run.about["threads"], run.about["reason"]) == (7, 3, "done")
    assert run.options == {"train.lr": "0.2"}
    assert [epoch["metrics"]["auc"] for epoch in run.epochs] == pytest.approx([0.71, 0.72, 0.73, 0.74])
    assert run.balance == pytest.approx([1 / 3] * 3)
    assert len(run.trace) == 4
    assert run.trace[0]["workers"][1]["delayed_rate"] == pytest.approx(0.2)
    assert run.delays == {0: 6 * 12, 3: 4 * 12}
    assert run.watched["norm"]["value"] == [float(k) for k in range(12)]
    assert run.watched["w [1]"]["value"][-1] == -11
    assert run.nodes[0]["sent"] == [5.0]
    assert run.profile["phases"] == {"train": 9.0, "load": 1.0}
    assert run.notes == ["learning rate 0.2 was given.", "one more."]
    assert run.progress["epochs"] == pytest.approx([k / 3 for k in range(12)])


def test_a_run_that_was_not_finished_has_what_it_got():
    run = run_of(records()[:12], "cut")
    assert run.about["reason"] == "not finished"
    assert run.verdict["loss"] == run.epochs[-1]["loss"]
    assert run.verdict["score"]["name"] == "auc"


def test_a_log_with_two_runs_and_a_torn_line(tmp_path):
    place = write_log(tmp_path / "log", *records(), *records(2), '{"event": "progress", "sec')
    first, second = read_log(place)
    assert (first.name, second.name) == ("log #1", "log #2")
    assert (first.about["threads"], second.about["threads"]) == (3, 2)
    assert "1 line of events.jsonl could not be read: line " in second.notes[-1]


def test_a_log_of_python_has_no_run_record(tmp_path):
    lines = records()[1:-1]
    runs = read_log(write_log(tmp_path, *lines, *lines))
    assert [run.verdict["loss"] for run in runs] == [0.5, 0.5]


def test_what_is_no_number_is_left_out():
    odd = [
        {"event": "started", "threads": "many", "lr": None, "notes": "no list", "mode": 5},
        {"event": "progress", "seconds": {}, "samples": True, "loss": [], "balance": {"a": 1}, "lr": 10**400},
        {"event": "epoch", "epoch": "one", "metrics": [1], "trace": [5, {"delay": 3, "wrong": [], "looked_at": "x"}]},
        {"event": "watched", "values": {"w": [[1, 2]], "deep": {"a": 1}}},
        {"event": "nodes", "nodes": [3, {"sent": "x"}]},
        {"event": "finished", "reason": None, "metrics": {"auc": "high"}},
        {"event": "summary", "profile": {"phases": 3}, "throughput": "fast", "metrics": None},
        {"event": "unheard of"},
    ]
    run = run_of(odd, "odd")
    assert json.loads(json.dumps(run.record(), allow_nan=False))
    assert run.progress["loss"] == [None]
    assert run.epochs[0]["metrics"] == {}
    assert "threads" not in run.about


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no run in it"),
        ('{"event": 3}\n[]\nnull\n', "no run in it"),
        ("[" * 100_000, "no run in it"),
        (None, "no events.jsonl in it"),
    ],
    ids=["empty", "no events", "deep", "none"],
)
def test_logs_that_are_none(tmp_path, content, said):
    if content is not None:
        write_log(tmp_path, content)
    with pytest.raises(InputError, match=said):
        read_runs([str(tmp_path)])


def test_curves_are_bounded_and_keep_their_end():
    assert thin(list(range(10))) == list(range(10))
    kept = thin(list(range(100_003)))
    assert len(kept) <= POINTS
    assert kept[-1] == 100_002
    recorder = Recorder()
    for k in range(200_000):
        recorder(Progress(k / 2, 0, k, 10**6, 0.5, 0.1, 1.0, 1.0, 1.0, (1.0,)))
    assert len(recorder.records) < 6 * POINTS


# -- experiments -------------------------------------------------------------------------------------------------------


def experiment():
    def iteration(k, **more):
        return {"iteration": k, "loss": 1 / k, "test_loss": 2 / k, "score": k / 10, **more}

    errors = {"delay": {"counts": {"0": 5, "2": 1}}}
    workers = [
        {"worker": 0, "looked_at": 4, "error_rate": 0.5, "delayed": 1, "delay": {"mean": 1}, "wrong": {"mean": 0.2}}
    ]
    trace = {"traced_seconds": 9.0, "errors": errors, "workers": workers}
    plain = {"method": "asyngrad", "mode": "hogwild", "threads": 2, "traced": False}
    return {
        "schema": "hogwild.asyngrad",
        "complete": True,
        "hogwild": "0.1.0",
        "model": "crf",
        "task": "chunking",
        "score": "f1",
        "options": {"lr": 0.1},
        "data": {"train": {"sentences": 5}},
        "machine": {"cores": 2},
        "methods": [
            {
                "method": "asyngrad",
                "threads": 2,
                "speed_up": 1.7,
                "final_score": {"mean": 0.3},
                "final_loss": {"mean": 0.4},
            }
        ],
        "runs": [
            {**plain, "seed": 1, "iterations": [iteration(1, seconds=1.0), iteration(2, seconds=2.0)]},
            {**plain, "seed": 2, "iterations": [iteration(1, seconds=3.0), iteration(2, seconds=4.0)]},
            {**plain, "seed": 1, "traced": True, "iterations": [iteration(1, **trace), iteration(2, **trace)]},
        ],
    }


def test_an_experiment_becomes_a_run_for_each_number_of_threads():
    (run,) = runs_of(experiment(), "chunks")
    assert run.name == "chunks: asyngrad, 2 threads"
    assert [epoch["seconds"] for epoch in run.epochs] == [2.0, 5.0]  # means over seeds, added up
    assert run.epochs[1]["metrics"] == {"f1": 0.2, "loss": 1.0}
    assert run.verdict["score"] == {"name": "f1", "value": 0.3}
    assert run.trace[0]["workers"][0]["error_rate"] == 0.5
    assert run.delays == {0: 10, 2: 2}
    assert speed_ups([run]) == [{"method": "asyngrad", "threads": 2, "speed_up": 1.7}]


def test_speed_ups_of_runs_with_different_threads():
    runs = [run_of(records(threads, speed=speed), "") for threads, speed in ((1, 2.0), (2, 3.0), (4, 5.0))]
    other = run_of(records(8, program="fm"), "")  # nothing to compare with
    assert [(each["threads"], each["speed_up"]) for each in speed_ups([*runs, other])] == [(1, 1.0), (2, 1.5), (4, 2.5)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no JSON object"),
        ("[]", "not what `hogwild experiment` writes"),
        ('{"schema": "hogwild.asyngrad"}', "damaged"),
    ],
)
def test_files_that_are_no_experiment(tmp_path, content, said):
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(InputError, match=said):
        read_experiment(tmp_path / "file.json")
