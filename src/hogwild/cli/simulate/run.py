"""One simulation of the command line: read, run one real worker, then the virtual ones, show a table, write a file."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hogwild import __version__
from hogwild.cli.calling import command
from hogwild.cli.interrupt import Interrupts
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import add_row, make_table, print_json, print_tables
from hogwild.cli.train.job import Job
from hogwild.cluster.forecast.nodes import NodesLab, Wire, check_nodes
from hogwild.config.options import flags_of
from hogwild.errors import ConfigError
from hogwild.executor.events import Event, Finished, Progress, Started
from hogwild.executor.readers.display import Display, show_progress
from hogwild.executor.virtual.machine import Machine
from hogwild.executor.virtual.run import check_virtual
from hogwild.executor.virtual.simulate import Lab, Outcome, Simulation, run_lab
from hogwild.feeds.io.outfile import write_file
from hogwild.machine import describe
from hogwild.messages import show
from hogwild.observe.logs import NAME, JsonLines, plain
from hogwild.observe.theory.predicted import bounds_of

_WITHOUT = (
    "threads", "mode", "sharing", "trace", "merge_every", "hot_rows", "device", "checkpoint_every", "resume", "watch",
    "every", "report", "profile", "start", "patience",
)  # fmt: skip
_OURS = '{"simulation": '  # how a file of ours begins: no other is replaced


def run_simulation(options: Any, job: Job) -> int:
    """Simulate; returns the exit code."""
    began, asked = time.perf_counter(), options.simulate
    _check(options, job)
    machine = Machine(1, asked.cores or 0, 0.0, asked.delay, asked.lost, asked.torn)
    with Interrupts(), show_progress(quiet=options.show.quiet, epochs=1) as display, ExitStack() as stack:
        program = job.make_program()
        display.phase("reading")
        feed = job.open(options.files)
        notes = list(feed.notes)
        valid = job.open_valid(options.valid, feed) if options.valid else None
        feed, valid, held = job.hold_out(feed, valid)
        notes += [held] if held else []
        for note in notes:
            display.say(f"note: {note}")
        config = program.adapted(job.train, feed)
        log = JsonLines(options.watch.log_dir) if options.watch.log_dir else None
        if log is not None:
            stack.enter_context(log)
        teller = _Teller(display, log, options, program.name)
        lab = Lab(program, feed, valid, config, teller)
        if options.cluster.cluster:
            wire = Wire((asked.link or 10.0) * 1e9, (asked.latency or 0.2) * 1e-3)
            lab = NodesLab(**vars(lab), cluster=options.cluster, wire=wire)
        found = run_lab(lab, machine, asked.counts, asked.real)
        display.phase("")
        bounds, why = bounds_of(program, feed, found.predictions)
    record = {**found.record(), "bounds": bounds, "notes": [*notes, *([why] if why else [])],
              "seconds": time.perf_counter() - began}  # fmt: skip
    if options.save.output:
        text = json.dumps(plain(record), ensure_ascii=False, allow_nan=False)
        with write_file(options.save.output) as stream:
            stream.write((text + "\n").encode())
    if options.show.json:
        print_json({**record, "output": options.save.output or None})
    elif not options.show.quiet:
        _show(found, bounds, why, options.save.output)
    return 0


def _check(options: Any, job: Job) -> None:
    """All that can be wrong without the data."""
    flags, given = flags_of(type(options)), options.given
    check_virtual({name: getattr(job.train, name) for name in ("mode", "sharing") if name in given})
    for name in _WITHOUT:
        if name in given:
            flag = flags[name].flag if name in flags else f"--{name}"
            raise ConfigError(f"{flag} has no effect on a simulation; leave it out.")
    if options.cluster.cluster:
        check_nodes(options.cluster)
    for name in ("link", "latency", "compare"):
        if name in given and bool(options.cluster.cluster) == (name == "compare"):
            where = "on virtual nodes: take --cluster" if name == "compare" else "on one machine; add --cluster virtual"
            raise ConfigError(f"{flags[name].flag} has no effect {where}, or leave it out.")
    if options.valid and (job.train.valid_share or job.train.valid_last):
        raise ConfigError("--valid and --valid-share or --valid-last: the data to validate on are given twice.")
    output, log_dir = options.save.output, options.watch.log_dir
    logs = str(Path(log_dir) / NAME) if log_dir else ""
    check_outputs((output, logs), (*options.files, *options.valid, options.show.config, *job.inputs()), job.models())
    if output == "-":
        raise ConfigError("--output is the name of a file; for standard output there is --json.")
    if output and os.path.lexists(output) and not _is_ours(output):
        raise ConfigError(f"{output}: is there, and no file of a simulation; choose another --output.")


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_OURS)) == _OURS.encode()
    except OSError:
        return False


class _Teller:
    """Shows how far it is, and logs each run: what is predicted is marked so."""

    def __init__(self, display: Display, log: JsonLines | None, options: Any, program: str) -> None:
        self._display, self._log, self._options, self._program = display, log, options, program

    def __call__(self, event: Event, outcome: Outcome | None) -> None:
        if isinstance(event, Progress):
            return
        if isinstance(event, Started):
            kind = "virtual" if event.predicted else "real"
            workers = f"{event.threads} {kind} worker{'s' if event.threads > 1 else ''}"
            self._display.phase(f"{workers} (the first time: compiling)")
            if self._log is not None:
                self._log.add({
                    "event": "run", "program": self._program, "version": __version__, "command": command(),
                    "seed": self._options.train.seed, "machine": describe(),
                })  # fmt: skip
        if self._log is not None:
            self._log(event)
        if isinstance(event, Finished) and outcome is not None:
            self._display.say(told(outcome))


def told(outcome: Outcome) -> str:
    """An outcome in a line."""
    kind = "predicted" if outcome.simulated else "real"
    nodes = f"nodes {outcome.nodes}  " if outcome.nodes > 1 else ""
    return (
        f"{kind}: {nodes}workers {outcome.workers}  loss {outcome.loss:.4f}  errors {outcome.error_rate:.1%}  "
        f"delay {outcome.delay:.2f}  took {outcome.taken:.1f} s"
    )


def _show(found: Simulation, bounds: list[float | None], why: str, output: str) -> None:
    names = ["predicted for", "workers", "cores", "errors", "late", "delay", "p99", "lost", "loss", "speed-up"]
    nodes = any(outcome.nodes > 1 for outcome in found.predictions)
    table = make_table([*names, *(["bytes"] if nodes else []), *(["bound"] if any(bounds) else [])])
    for outcome, bound in zip(found.predictions, bounds, strict=True):
        more = [f"{outcome.sent:,.3g}"] if nodes else []
        more += [f"{bound:.3g}" if bound is not None else "–"] if any(bounds) else []
        what = f"{outcome.nodes} nodes, each" if nodes else "other machines"
        add_row(table, what, *_cells(outcome), *more)
    tables = [table]
    if found.compared:
        beside = make_table(["this machine", *names[1:], "off: errors", "loss", "speed-up"])
        for pair in found.compared:
            off = [_off(pair.errors[name]) for name in ("error_rate", "loss", "speed_up")]
            add_row(beside, "real", *_cells(pair.real), "", "", "")
            add_row(beside, "predicted", *_cells(pair.predicted), *off)
        tables.append(beside)
    print_tables(tables)
    pace = found.pace
    show(
        f"a visit takes {pace.visit * 1e6:.3g} microseconds, {pace.contention:.0%} more for each other worker that "
        "runs: measured with one thread and two; for more it is assumed"
    )
    if nodes:
        show(
            f"an exchange every {found.predictions[0].every:,} visits of a node; bytes: sent for a visit by the node "
            "that sends most; speed-up: of all nodes against one worker, a bound from above"
        )
    for line in (why, f"saved to {output}" if output else ""):
        if line:
            show(line)


def _cells(outcome: Outcome) -> list[str]:
    return [
        f"{outcome.workers}", f"{outcome.cores}", f"{outcome.error_rate:.1%}", f"{outcome.delayed:.1%}",
        f"{outcome.delay:.2f}", f"{outcome.delay_p99:.0f}", f"{outcome.lost:.3g}", f"{outcome.loss:.4f}",
        f"{outcome.speed_up:.2f}",
    ]  # fmt: skip


def _off(error: float | None) -> str:
    return "–" if error is None else f"{error:+.1%}"
