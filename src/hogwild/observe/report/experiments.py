"""Runs for a report, from the object that `hogwild experiment` writes: one for each method and number of threads.

Curves are means over seeds of the runs without a trace; gradient errors come from the traced ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hogwild.errors import InputError
from hogwild.observe.experiments.files import read_object
from hogwild.observe.report.runs import Run, add_delays, flat, number, text, worker_trace

_MOST = 64  # methods and numbers of threads

Key = tuple[str, int]


def read_experiment(path: str | os.PathLike[str]) -> list[Run]:
    """The runs of an experiment's file.

    Raises
    ------
    InputError
        If it is none.
    """
    whole = read_object(path)
    try:
        return runs_of(whole, Path(path).stem)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged, it lacks what an experiment has ({error}).") from error


def runs_of(whole: Mapping[str, Any], name: str) -> list[Run]:
    """One run for each method and number of threads; those with the most threads are shown at first."""
    grouped: dict[Key, list[Mapping[str, Any]]] = {}
    for run in whole["runs"]:
        grouped.setdefault((text(run["method"]), int(run["threads"])), []).append(run)
    methods = {(text(method["method"]), int(method["threads"])): method for method in whole["methods"]}
    most = max((threads for _, threads in grouped), default=1)
    found = []
    for key, runs in list(grouped.items())[:_MOST]:
        run = _run(whole, key, runs, methods.get(key, {}))
        run.name = text(f"{name}: {key[0]}, {key[1]} thread{'s' if key[1] > 1 else ''}")
        run.shown = key[0] == "sgd" or key[1] == most
        found.append(run)
    return found


def speed_ups(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Speed against that of one thread, by method and number of threads, with what an experiment has measured itself.

    Of other runs: those of one program, each mode against a run with one thread, serial if there is one.
    """
    measured = [
        {"method": run.about["method"], "threads": run.about["threads"], "speed_up": run.verdict["speed_up"]}
        for run in runs if run.verdict.get("speed_up") is not None and "method" in run.about
    ]  # fmt: skip
    plain = [run for run in runs if "method" not in run.about and "speed" in run.verdict and "threads" in run.about]
    by_program: dict[str, list[Run]] = {}
    for run in plain:
        by_program.setdefault(run.about.get("program", ""), []).append(run)
    for program, its in by_program.items():
        single = [run for run in its if run.about["threads"] == 1]
        single.sort(key=lambda run: run.about.get("mode") != "serial")
        if not single or len({run.about["threads"] for run in its}) < 2 or not single[0].verdict["speed"]["value"]:
            continue
        base = single[0].verdict["speed"]["value"]
        measured += [
            {"method": f"{program} {run.about.get('mode', '')}".strip(), "threads": run.about["threads"],
             "speed_up": run.verdict["speed"]["value"] / base}
            for run in its
        ]  # fmt: skip
    return measured


def _run(whole: Mapping[str, Any], key: Key, runs: Sequence[Mapping[str, Any]], method: Mapping[str, Any]) -> Run:
    method_name, threads = key
    score = text(whole["score"])
    plain = [run for run in runs if not run["traced"]]
    traced = next((run for run in runs if run["traced"]), None)
    run = Run("")
    run.about = {
        "program": text(whole["model"]), "method": method_name, "threads": threads, "mode": text(runs[0]["mode"]),
        "version": text(whole["hogwild"]), "reason": "done" if whole["complete"] else "not finished",
        "machine": {text(name): text(value) for name, value in dict(whole["machine"]).items()},
        "seeds": len({each["seed"] for each in plain}),
    }  # fmt: skip
    run.options = {**flat(whole["options"]), **flat({"data": whole["data"]}), "task": text(whole["task"])}
    run.epochs = _epochs(plain or runs, score)
    final, loss = method.get("final_score") or {}, method.get("final_loss") or {}
    run.verdict = {"metrics": {}}
    if (value := number(final.get("mean"))) is not None:
        run.verdict |= {"score": {"name": score, "value": value}, "metrics": {score: value}}
    run.verdict |= {} if (value := number(loss.get("mean"))) is None else {"loss": value}
    if run.epochs and (seconds := run.epochs[-1]["seconds"]) is not None:
        run.verdict["seconds"] = seconds
    run.verdict |= {} if (value := number(method.get("speed_up"))) is None else {"speed_up": value}
    if isinstance(paper := method.get("published"), dict):
        named = ", ".join(f"{name} {value}" for name, value in flat(paper).items() if name != "differs")
        run.notes.append(text(f"Published: {named}. What differs: {paper.get('differs')}."))
    for iteration in traced["iterations"] if traced else ():
        run.trace.append({
            "epoch": number(iteration["iteration"]), "workers": [worker_trace(each) for each in iteration["workers"]],
        })  # fmt: skip
        add_delays(run.delays, iteration["errors"]["delay"].get("counts"))
    return run


def _epochs(runs: Sequence[Mapping[str, Any]], score: str) -> list[dict[str, Any]]:
    """Means over seeds of each iteration."""
    found: list[dict[str, Any]] = []
    gone = 0.0
    for entries in zip(*(run["iterations"] for run in runs), strict=False):
        seconds = _mean([entry.get("seconds", entry.get("traced_seconds")) for entry in entries])
        gone += seconds or 0.0
        losses = [entry["test_loss"] for entry in entries]
        metrics = {score: _mean([entry["score"] for entry in entries]), "loss": _mean(losses)}
        found.append({
            "epoch": number(entries[0]["iteration"]), "seconds": gone, "samples": None, "epoch_seconds": seconds,
            "lr": None, "loss": _mean([entry["loss"] for entry in entries]), "best": False,
            "metrics": {name: value for name, value in metrics.items() if value is not None},
        })  # fmt: skip
    return found


def _mean(values: Sequence[Any]) -> float | None:
    known = [value for value in map(number, values) if value is not None]
    return sum(known) / len(known) if known else None
