"""Runs for a report, from the records of a log: what was, as curves and tables of a bounded size.

A log is not trusted: whatever is no number where a number belongs is left out, and whatever is long is cut.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hogwild.errors import InputError
from hogwild.executor.events import Event, Progress
from hogwild.messages import counted, shown
from hogwild.observe.logs import NAME, plain

POINTS = 600  # of a curve: more than a screen shows
_EPOCHS = 2000
_WORKERS = 256
_NODES = 128
_WATCHED = 16
_LETTERS = 4000  # of a string
_LINE = 16_000_000  # bytes of a record
_RUNS = 64
_ABOUT = ("program", "mode", "sharing", "device")

Record = Mapping[str, Any]
Numbers = list[float | None]


@dataclass
class Run:
    """One run as the page shows it."""

    name: str
    about: dict[str, Any] = field(default_factory=dict)
    """program, mode, threads, sharing, command, version, seed, machine, reason."""
    verdict: dict[str, Any] = field(default_factory=dict)
    """score (name, value), loss, held_out (its loss), speed (value, unit), seconds; what is not known is left out."""
    options: dict[str, str] = field(default_factory=dict)
    progress: dict[str, Numbers] = field(default_factory=dict)
    """Curves within epochs: seconds, samples, epochs, loss, lr, speed."""
    epochs: list[dict[str, Any]] = field(default_factory=list)
    balance: list[float] = field(default_factory=list)
    """Mean share of the visits that each worker made."""
    trace: list[dict[str, Any]] = field(default_factory=list)
    """An entry an epoch, with one for each worker."""
    delays: dict[int, int] = field(default_factory=dict)
    """How many gradients were late by how many others."""
    watched: dict[str, dict[str, Numbers]] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    """Curves of each node of a cluster: seconds, sent, received, waited, units_per_second."""
    profile: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    shown: bool = True
    """Whether its curves are there at first."""

    def record(self) -> dict[str, Any]:
        """For the page, as JSON values."""
        return dict(plain(asdict(self)))


class Recorder:
    """A reader of events that keeps what a report needs, of progress about one record a second."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._next = -1.0

    def __call__(self, event: Event) -> None:
        """Keep an event."""
        if isinstance(event, Progress):
            if event.seconds < self._next:
                return
            self._next = event.seconds + max(1.0, event.seconds / POINTS)  # of a long run no more than a curve shows
        self.add(event.record())

    def add(self, record: Record) -> None:
        """Keep a record that is no event."""
        self.records.append(dict(record))


def read_log(path: str | os.PathLike[str]) -> list[Run]:
    """All runs of a log: `events.jsonl`, or the directory that it is in.

    Raises
    ------
    InputError
        If there is no run in it. Lines that are torn or no records are counted, and said in the notes of a run.
    """
    file = Path(path)
    file = file / NAME if file.is_dir() else file
    name = file.parent.name if file.name == NAME else file.stem
    name = name or file.resolve().parent.name
    bad: list[int] = []
    try:
        with open(file, "rb") as stream:
            groups = list(_grouped(_records(stream, bad)))
    except OSError as error:
        raise InputError(
            f"{file}: {error.strerror}; give a directory of --log-dir, or a file of `hogwild experiment`."
        ) from error
    if not groups:
        raise InputError(f"{file}: no run in it; give a directory of --log-dir, or a file of `hogwild experiment`.")
    left_out = len(groups) - _RUNS
    groups = groups[-_RUNS:]
    runs = [run_of(records, name if len(groups) == 1 else f"{name} #{k}") for k, records in enumerate(groups, 1)]
    if bad:
        runs[-1].notes.append(f"{counted(len(bad), 'line')} of {file.name} could not be read: line {bad[0]} first.")
    if left_out > 0:
        runs[0].notes.append(f"The first {left_out} runs of this log are left out.")
    return runs


def _records(stream: Any, bad: list[int]) -> Iterator[dict[str, Any]]:
    """The objects of a file, a line each."""
    number = 0
    while line := stream.readline(_LINE):
        number += 1
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict) and isinstance(record.get("event"), str):
            yield record
        elif line.strip():
            bad.append(number)


def _grouped(records: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The records of one run after the other; one begins with `run`, or with `started` where there is none."""
    group: list[dict[str, Any]] = []
    for record in records:
        begins = record["event"] == "run" or (record["event"] == "started" and not _announced(group))
        if begins and group:
            yield group
            group = []
        if begins or group:
            group.append(record)
    if group:
        yield group


def _announced(group: Sequence[Record]) -> bool:
    return bool(group) and group[0]["event"] == "run" and all(each["event"] != "started" for each in group)


def run_of(records: Iterable[Record], name: str) -> Run:
    """One run from its records.

    Examples
    --------
    >>> epoch = {"event": "epoch", "epoch": 1, "seconds": 2.0, "samples": 10, "loss": 0.5, "metrics": {"auc": 0.75}}
    >>> run = run_of([{"event": "started", "mode": "serial", "threads": 1}, epoch], "first")
    >>> run.verdict["loss"], run.about["mode"], run.epochs[0]["metrics"]
    (0.5, 'serial', {'auc': 0.75})
    """
    run = Run(text(name))
    progress: list[Record] = []
    balances: list[list[float]] = []
    nodes: list[Record] = []
    watched: list[Record] = []
    takers: dict[str, Callable[[Record], None]] = {
        "run": lambda record: _take_about(run, record),
        "started": lambda record: _take_started(run, record),
        "progress": progress.append,
        "nodes": nodes.append,
        "watched": watched.append,
        "epoch": lambda record: _take_epoch(run, record),
        "finished": lambda record: _take_finished(run, record),
        "summary": lambda record: _take_summary(run, record),
    }
    for record in records:
        taker = takers.get(str(record.get("event")))
        if taker is not None:
            taker(record)
    for record in progress:
        shares = [number(share) for share in _list(record.get("balance"))[:_WORKERS]]
        balances.append([share or 0.0 for share in shares])
    run.progress = curves(progress, {**_TIMES, "loss": "loss", "lr": "lr", "speed": "units_per_second"})
    run.progress["epochs"] = _epochs_at(run)
    run.balance = _mean_rows(balances)
    run.watched = _watched(watched)
    run.nodes = _node_curves(nodes)
    _judge(run)
    return run


# -- values ------------------------------------------------------------------------------------------------------------


_TIMES = {"seconds": "seconds", "samples": "samples"}


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def text(value: Any) -> str:
    """A string of a bounded length."""
    return shown(value if isinstance(value, str) else str(value), _LETTERS)


def numbers(values: Any, most: int = 64) -> dict[str, float]:
    """What of an object are numbers, by name."""
    found = {text(name): number(value) for name, value in list(_dict(values).items())[:most]}
    return {name: value for name, value in found.items() if value is not None}


def curves(records: Sequence[Record], columns: Mapping[str, str]) -> dict[str, Numbers]:
    """Columns of records, of so many points at the most; the last one is among them."""
    kept = thin(records)
    return {name: [number(record.get(key)) for record in kept] for name, key in columns.items()}


def thin(records: Sequence[Any], most: int = POINTS) -> list[Any]:
    """Every so-many-th, and the last."""
    step = max(1, math.ceil(len(records) / most))
    return [*records[len(records) - 1 :: -step]][::-1]


def flat(options: Any, before: str = "") -> dict[str, str]:
    """Nested options by dotted names, as people write them."""
    found: dict[str, str] = {}
    for name, value in list(_dict(options).items())[:500]:
        key = f"{before}{text(name)}"
        if isinstance(value, dict) and value and before.count(".") < 4:
            found |= flat(value, f"{key}.")
        else:
            found[key] = text(value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False))
    return found


def _dict(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _mean_rows(rows: Sequence[Sequence[float]]) -> list[float]:
    width = max(map(len, rows), default=0)
    whole = [row for row in rows if len(row) == width]
    return [sum(column) / len(whole) for column in zip(*whole, strict=True)] if whole else []


# -- records -----------------------------------------------------------------------------------------------------------


def _take_about(run: Run, record: Record) -> None:
    for name in ("command", "version", *_ABOUT):
        if record.get(name):
            run.about[name] = text(record[name])
    seed = number(record.get("seed"))
    run.about |= {} if seed is None else {"seed": int(seed)}
    run.about["machine"] = {text(name): text(value) for name, value in list(_dict(record.get("machine")).items())[:20]}
    run.options = flat(record.get("options"))


def _take_started(run: Run, record: Record) -> None:
    run.about |= {name: text(record[name]) for name in _ABOUT if record.get(name)}
    threads = number(record.get("threads"))
    run.about |= {} if threads is None else {"threads": int(threads)}
    rate = number(record.get("lr"))
    run.about |= {} if rate is None else {"lr": rate}
    run.notes += [text(note) for note in _list(record.get("notes"))[:50]]
    if record.get("predicted") is True:
        run.about["predicted"] = "yes"
        run.name = f"{run.name}: {run.about.get('threads', '?')} workers, predicted"


def _take_epoch(run: Run, record: Record) -> None:
    if len(run.epochs) >= _EPOCHS:
        return
    columns = ("epoch", "seconds", "samples", "loss", "lr", "epoch_seconds")
    entry: dict[str, Any] = {name: number(record.get(name)) for name in columns}
    run.epochs.append({**entry, "metrics": numbers(record.get("metrics")), "best": record.get("best") is True})
    workers = [worker for worker in _list(record.get("trace"))[:_WORKERS] if isinstance(worker, dict)]
    if workers:
        run.trace.append({"epoch": entry["epoch"], "workers": [worker_trace(worker) for worker in workers]})
        for worker in workers:
            add_delays(run.delays, _dict(worker.get("delay")).get("counts"))


def worker_trace(worker: Record) -> dict[str, float | None]:
    """Errors, delays and sizes of one worker in one epoch."""
    delay, wrong = _dict(worker.get("delay")), _dict(worker.get("wrong"))
    looked = number(worker.get("looked_at")) or 0.0
    return {
        "worker": number(worker.get("worker")),
        "gradients": number(worker.get("gradients")),
        "error_rate": number(worker.get("error_rate")),
        "delayed_rate": (number(worker.get("delayed")) or 0.0) / looked if looked else None,
        "delay": number(delay.get("mean")), "delay_p99": number(delay.get("p99")),
        "wrong": number(wrong.get("mean")), "wrong_p50": number(wrong.get("p50")),
        "wrong_p99": number(wrong.get("p99")), "wrong_max": number(wrong.get("max")),
    }  # fmt: skip


def add_delays(delays: dict[int, int], counts: Any) -> None:
    """Add counts of delays, whose keys are strings in JSON."""
    for late, count in list(_dict(counts).items())[:5000]:
        if str(late).isdecimal() and len(str(late)) < 16 and (times := number(count)) is not None:
            delays[int(late)] = delays.get(int(late), 0) + int(times)


def _take_finished(run: Run, record: Record) -> None:
    run.about["reason"] = text(record.get("reason", ""))
    loss, speed = number(record.get("loss")), number(record.get("units_per_second"))
    run.verdict |= {} if loss is None else {"loss": loss}
    run.verdict |= {} if speed is None else {"speed": {"value": speed, "unit": "units"}}
    seconds = number(record.get("train_seconds"))
    run.verdict |= {} if seconds is None else {"seconds": seconds}
    run.verdict["metrics"] = numbers(record.get("metrics")) or run.verdict.get("metrics", {})


def _take_summary(run: Run, record: Record) -> None:
    if metrics := numbers(record.get("metrics")):
        run.verdict["metrics"] = metrics
        run.about["judged_by"] = text(record.get("judged_by") or "")
        run.about["evaluated_on"] = text(record.get("evaluated_on") or "")
    unit = _dict(record.get("throughput")).get("unit")
    if isinstance(unit, str) and "speed" in run.verdict:
        run.verdict["speed"]["unit"] = text(unit)
    run.about |= {"program": text(record["program"])} if record.get("program") else {}
    phases = numbers(_dict(record.get("profile")).get("phases"))
    workers = [numbers(each) for each in _list(_dict(record.get("profile")).get("workers"))[:_WORKERS]]
    run.profile = {"phases": phases, "workers": workers} if phases else {}
    said = (text(note) for note in _list(record.get("notes"))[:50])
    run.notes += [note for note in said if note not in run.notes]


_SCORES = ("f1", "auc", "accuracy", "ndcg", "r2", "spearman", "rmse", "mae")  # which one stands in the first line


def _judge(run: Run) -> None:
    """The first line of a run, from what it got as far as it went."""
    last = run.epochs[-1] if run.epochs else {}
    if "loss" not in run.verdict and last.get("loss") is not None:
        run.verdict["loss"] = last["loss"]
    if "seconds" not in run.verdict and last.get("seconds") is not None:
        run.verdict["seconds"] = last["seconds"]
    best = [epoch["metrics"] for epoch in run.epochs if epoch["best"] and epoch["metrics"]]
    metrics = run.verdict.pop("metrics", None) or (best or [last.get("metrics") or {}])[-1]
    run.about.setdefault("reason", "not finished")
    run.verdict |= {"held_out": metrics["loss"]} if "loss" in metrics else {}
    judged = run.about.get("judged_by", "")
    first = [name for name in metrics if name != "loss" and name.split("@")[0] == judged]
    for name in (*first, *_SCORES, *(each for each in metrics if each.startswith(("ndcg", "recall", "spearman")))):
        if name in metrics:
            run.verdict["score"] = {"name": name, "value": metrics[name]}
            break
    run.verdict["metrics"] = metrics


def _epochs_at(run: Run) -> Numbers:
    """How many epochs had been made at each point of the progress, with their fractions."""
    ends = [(epoch["samples"], epoch["epoch"]) for epoch in run.epochs if epoch["samples"] and epoch["epoch"]]
    each = ends[0][0] / ends[0][1] if ends else None  # samples of an epoch
    return [samples / each if each and samples is not None else None for samples in run.progress["samples"]]


def _watched(records: Sequence[Record]) -> dict[str, dict[str, Numbers]]:
    """Curves of watched numbers; of arrays that are not long, one a cell."""
    found: dict[str, dict[str, Numbers]] = {}
    for record in thin(records):
        samples, seconds = number(record.get("samples")), number(record.get("seconds"))
        for name, value in list(_dict(record.get("values")).items())[:_WATCHED]:
            cells = value if isinstance(value, list) else [value]
            for k, cell in enumerate(cells[:_WATCHED]):
                label = text(name) if not isinstance(value, list) else f"{text(name)} [{k}]"
                if label not in found and len(found) >= _WATCHED:
                    continue
                curve = found.setdefault(label, {"samples": [], "seconds": [], "value": []})
                for key, what in (("samples", samples), ("seconds", seconds), ("value", number(cell))):
                    curve[key].append(what)
    return found


def _node_curves(records: Sequence[Record]) -> list[dict[str, Any]]:
    """What each node of a cluster sent, received and waited, since the run began."""
    columns = {"sent": "sent", "received": "received", "waited": "seconds_waited", "speed": "units_per_second"}
    more = {"messages": "messages", "memory": "memory", "cores": "cores"}
    found: dict[str, dict[str, Any]] = {}
    for record in thin(records):
        for entry in _list(record.get("nodes"))[:_NODES]:
            if not isinstance(entry, dict):
                continue
            name = text(entry.get("node", "?"))
            node = found.setdefault(name, {"node": name, "seconds": [], **{key: [] for key in (*columns, *more)}})
            node["seconds"].append(number(record.get("seconds")))
            for key, column in (*columns.items(), *more.items()):
                node[key].append(number(entry.get(column)))
    return list(found.values())
