"""One search of the command line: read, try under a line of progress, save the best, show a table of trials."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from hogwild.cli.interrupt import Interrupts
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import add_row, make_table, metrics_text, print_json, print_tables
from hogwild.cli.train.job import Job
from hogwild.config.options import flags_of
from hogwild.errors import ConfigError, SaveError
from hogwild.executor.readers.display import Display, show_progress
from hogwild.executor.search.halving import Search
from hogwild.executor.search.space import known_options
from hogwild.executor.search.trial import Trial, subject_of
from hogwild.executor.search.tune import space_of, told
from hogwild.feeds.held_out import hold_out
from hogwild.messages import say, show
from hogwild.observe.logs import plain
from hogwild.programs.store import check_model_output

_INTERRUPTED = 130
_SHARE = 0.1  # of the data, that is held out where no other data is given
_WITHOUT = (
    "threads", "mode", "sharing", "trace", "merge_every", "hot_rows", "device", "checkpoint_every", "resume", "watch",
    "every", "log_dir", "profile", "cluster", "nodes", "start",
)  # fmt: skip


def run_tuning(options: Any, job: Job) -> int:
    """Search; returns the exit code."""
    began, tune = time.perf_counter(), options.tune
    _check(options, job)
    with Interrupts() as interrupts, show_progress(quiet=options.show.quiet, epochs=1) as display:
        program = job.make_program()
        feed, valid, notes = _open(options, job, display)
        subject = subject_of(program, feed, valid, job.train)
        given = [name for name in options.given if name in known_options(program)]
        space = space_of(program, subject, tune.search, given)
        for note in notes:
            display.say(f"note: {note}")
        display.say(f"note: tries {', '.join(space)}; all else is as given or usual.")
        display.phase("the first trials (the first time: compiling)")
        with _lines(tune.trials_file) as file:
            search = Search(subject, space, tune, asked=lambda: interrupts.asked)
            search.tell = lambda trial: _tell(trial, search, display, file)
            interrupts.arm()
            best = search.run()
        display.phase("")
        if options.save.output:
            job.output(Path(options.save.output), feed, keep_best=True).save(best.program, best.metrics)
    _print(options, search, best, {"notes": notes, "seconds": time.perf_counter() - began})
    if interrupts.asked:
        say("hogwild: interrupted; the best so far was kept.")
        return _INTERRUPTED
    return 0


def _check(options: Any, job: Job) -> None:
    """All that can be wrong without the data."""
    flags = flags_of(type(options))
    for name in _WITHOUT:
        if name in options.given:
            flag = flags[name].flag if name in flags else f"--{name}"
            raise ConfigError(f"{flag} has no effect on a search, whose runs have one thread each; leave it out.")
    inputs = (*options.files, *options.valid, options.show.config, *job.inputs())
    check_outputs((options.save.output, options.tune.trials_file), inputs, job.models())
    if options.save.output:
        check_model_output(options.save.output)


def _open(options: Any, job: Job, display: Display) -> tuple[Any, Any, list[str]]:
    """What is trained on and what is held out, with notes."""
    display.phase("reading")
    feed = job.open(options.files)
    notes = list(feed.notes)
    if options.valid:
        valid = job.open_valid(options.valid, feed)
        return feed, valid, [*notes, *(f"validation: {note}" for note in valid.notes)]
    share: dict[str, Any] = {} if job.train.valid_share or job.train.valid_last else {"valid_share": _SHARE}
    feed, valid, note = hold_out(replace(job.train, **share), feed)
    return feed, valid, [*notes, note]


@contextmanager
def _lines(path: str) -> Iterator[IO[str] | None]:
    """The file of trials, written line by line."""
    if not path:
        yield None
        return
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise SaveError(f"{path}: cannot be written ({error.strerror}); choose another --trials-file.") from error


def _tell(trial: Trial, search: Search, display: Display, file: IO[str] | None) -> None:
    display.say(told(trial, search))
    if file is not None:
        file.write(json.dumps(plain(trial.record()), allow_nan=False) + "\n")
        file.flush()


def _print(options: Any, search: Search, best: Trial, more: dict[str, Any]) -> None:
    trials = list(search.trials.values())
    if options.show.json:
        found = {"best": best.record(), "metrics": best.metrics, "trials": [trial.record() for trial in trials]}
        print_json({"program": search.subject.program.name, **found, "output": options.save.output or None, **more})
    elif not options.show.quiet:
        print_tables([_table(search, trials, best)])
        show(f"the best is trial {best.number + 1}, epoch {best.epoch}: {metrics_text(best.metrics)}")
        if options.save.output:
            show(f"saved to {options.save.output}")


def _table(search: Search, trials: list[Trial], best: Trial) -> Any:
    """All trials, the best first; those that have no score last."""
    names = [*search.space, "epochs"] if "epochs" not in search.space else list(search.space)
    table = make_table(["status", "trial", *names, "score", "epoch", "seconds"])
    for trial in sorted(trials, key=lambda trial: (trial.score, trial.number)):
        values = {"lr": trial.lr, "epochs": trial.epochs, **trial.options}
        cells = [_cell(values.get(name, getattr(search.subject.program.config, name, ""))) for name in names]  # type: ignore[attr-defined]
        numbers = (*cells, trial.shown, f"{trial.epoch}", f"{trial.seconds:.1f}")
        add_row(table, trial.status, f"{trial.number + 1}", *numbers, bold=trial.number == best.number)
    return table


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
