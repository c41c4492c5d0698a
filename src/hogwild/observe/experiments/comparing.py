"""What the runs of an experiment come to: scores, speed-ups and error rates of each method and number of threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median, stdev
from typing import Any

from hogwild.executor.trace import KINDS

Record = Mapping[str, Any]


def compare(runs: Sequence[Record], methods: Sequence[str]) -> list[dict[str, Any]]:
    """One entry for each method and number of threads, from the records of runs, against the first method.

    Seconds, scores and losses come from runs without a trace: scores and losses at their ends, seconds from all of
    their iterations. Gradient errors come from traced runs.
    """
    keys = sorted({(methods.index(run["method"]), run["threads"]) for run in runs})
    found = [_entry(methods[place], threads, runs) for place, threads in keys]
    by_key = {(entry["method"], entry["threads"]): entry for entry in found}
    first = by_key.get((methods[0], 1))
    for entry in found:
        own = by_key.get((entry["method"], 1))
        entry["speed_up"] = _ratio(first, entry, "median")
        entry["speed_up_best"] = _ratio(first, entry, "best")
        entry["speed_up_own"] = _ratio(own, entry, "median")
        mine, theirs = entry["final_score"], first["final_score"] if first else None
        entry["score_difference"] = mine["mean"] - theirs["mean"] if mine and theirs else None
    return found


def _entry(method: str, threads: int, runs: Iterable[Record]) -> dict[str, Any]:
    mine = [run for run in runs if (run["method"], run["threads"]) == (method, threads)]
    plain = [run for run in mine if not run["traced"]]
    done = [run["iterations"][-1] for run in plain if run["complete"]]
    seconds = [iteration["seconds"] for run in plain for iteration in run["iterations"]]
    traced = [iteration for run in mine if run["traced"] for iteration in run["iterations"]]
    return {
        "method": method, "threads": threads, "runs": len(done),
        "final_score": spread([last["score"] for last in done]),
        "final_loss": spread([last["loss"] for last in done]),
        "seconds": {"median": median(seconds), "best": min(seconds)} if seconds else None,
        "errors": _errors(traced),
    }  # fmt: skip


def spread(values: Sequence[float]) -> dict[str, Any] | None:
    """deviation: that of a sample (n - 1); None where there is but one value."""
    if not values:
        return None
    deviation = stdev(values) if len(values) > 1 else None
    return {"mean": mean(values), "deviation": deviation, "least": min(values), "most": max(values)}


def _errors(traced: Sequence[Record]) -> dict[str, Any] | None:
    """Shares of the gradients that were looked at in all traced iterations; by_worker: errors of each worker."""
    if not traced:
        return None
    workers = [worker for iteration in traced for worker in iteration["workers"]]
    keys = ("error_rate", "read_overwrite_rate", "write_overwrite_rate", "delayed_rate")
    numbers = sorted({worker["worker"] for worker in workers})
    return {
        **{key: _share(workers, name) for key, name in zip(keys, KINDS, strict=True)},
        "by_worker": [_share([w for w in workers if w["worker"] == number], "errors") for number in numbers],
        "mean_delay": _weighed([(i["errors"]["delay"]["mean"], i["errors"]["looked_at"]) for i in traced]),
        "mean_wrong": _weighed([(i["errors"]["wrong"]["mean"], i["errors"]["wrong"]["samples"]) for i in traced]),
    }


def _share(workers: Sequence[Record], name: str) -> float:
    looked_at = sum(worker["looked_at"] for worker in workers)
    return sum(worker[name] for worker in workers) / looked_at if looked_at else 0.0


def _weighed(pairs: Sequence[tuple[float, int]]) -> float:
    whole = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / whole if whole else 0.0


def _ratio(first: Record | None, entry: Record, which: str) -> float | None:
    if first is None or not first["seconds"] or not entry["seconds"]:
        return None
    return float(first["seconds"][which] / max(entry["seconds"][which], 1e-9))
