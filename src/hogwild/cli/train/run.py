"""One training run of the command line: read, train under the progress bar, save, say how good it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hogwild.cli.interrupt import Interrupts
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import metrics_text, print_json, run_summary
from hogwild.cli.train.job import Job, RunOptions
from hogwild.cli.train.records import Records
from hogwild.errors import ConfigError, RescuedError
from hogwild.executor.events import EpochEnded, Event, Finished, Nodes, Progress, Started, Watched
from hogwild.executor.readers.checkpoint import Checkpointer, checkpoint_path, load_checkpoint, parse_interval
from hogwild.executor.readers.display import COMPILING, Display, show_progress
from hogwild.executor.readers.watch import make_watch, parse_every
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.state import RunState
from hogwild.kernels.compiler.clock import seconds_compiled
from hogwild.machine import cores
from hogwild.messages import say, show
from hogwild.observe.logs import NAME as LOG
from hogwild.observe.profile import Profile
from hogwild.programs.continuing import begin_from
from hogwild.programs.store import check_model_output, metrics_of
from hogwild.timeline import timed


def run_training(options: RunOptions, job: Job) -> int:
    """Train; returns the exit code."""
    profiling = Profiling(options)
    with Interrupts() as interrupts:
        with show_progress(quiet=options.show.quiet, epochs=job.train.epochs) as display, profiling.watching():
            training = Training(options, job, display)
            with training.executing():
                training.load()
                training.train(interrupts)
                summary = training.summary()
        profiling.show()
        summary |= profiling.summary()
        if problem := training.records.end(summary):
            training.note(problem)
        _print(options, summary, training)
    if training.rescued:
        return RescuedError.exit_code
    return 130 if summary["reason"] == "stopped" else 0


class Training:
    """One run. All that can be wrong without the data is found out before it is read."""

    def __init__(self, options: RunOptions, job: Job, display: Display) -> None:
        self.options, self.job, self.display = options, job, display
        self.interval = parse_interval(options.save.checkpoint_every) if options.save.checkpoint_every else None
        parse_every(options.watch.every)
        self.watch = make_watch(options.watch.watch, options.watch.every)
        self.check_outputs()
        self.records = Records(options)
        if options.save.output:
            check_model_output(options.save.output)
        with timed("import"):
            self.program: Any = job.make_program()
            self.program.check_device(job.train)
        self.check_validation()
        self.executor = _executor_of(options, job)
        self.seconds = {"load": 0.0, "compile": 0.0, "train": 0.0, "evaluate": 0.0}
        self.watched_at = -1  # samples
        self.checkpointer: Checkpointer | None = None
        self.rescued: RescuedError | None = None
        self.notes: list[str] = []
        self.epochs: list[EpochEnded] = []
        self.feed: Any
        self.valid: Any = None
        self.started: Started
        self.nodes: Nodes | None = None
        self.finished: Finished

    @contextmanager
    def executing(self) -> Iterator[None]:
        """What the executor started, on other nodes too, ends with this."""
        try:
            yield
        finally:
            if self.options.cluster.cluster:
                self.display.phase("")
                self.executor.close()

    def check_outputs(self) -> None:
        """Nothing that is read may be written."""
        save, watch, inputs = self.options.save, self.options.watch, self.job.inputs()
        logs = str(Path(watch.log_dir) / LOG) if watch.log_dir else ""
        checkpoint = str(checkpoint_path(save.output)) if save.output else ""
        outputs = (save.output, checkpoint, logs, watch.report, trace_path(self.options))
        files = (*self.options.files, *self.options.valid, self.options.show.config, *inputs)
        check_outputs(outputs, files, self.job.models())

    def check_validation(self) -> None:
        """What is to be watched must be there to be measured."""
        train, usual = self.job.train, type(self.job.train).best_by
        shares = {"--valid-share": train.valid_share, "--valid-last": train.valid_last}
        holds = [flag for flag, share in shares.items() if share]
        if holds and self.options.valid:
            raise ConfigError(f"--valid and {holds[0]}: the data to validate on are given twice; leave one out.")
        if train.best_by != usual and not holds and not self.options.valid:
            raise ConfigError(
                f"--best-by {train.best_by} needs data to measure it on; add --valid FILE, or --valid-share 0.1."
            )
        known = self.program.judged_by
        if known and train.best_by not in ("auto", *known):
            measured = ", ".join(known)
            raise ConfigError(f"--best-by {train.best_by} is not measured of this model; it is one of {measured}.")

    def load(self) -> None:
        """Read the files."""
        began, compiled = time.perf_counter(), seconds_compiled()
        cluster = self.options.cluster.cluster
        self.display.phase(f"{f'on {cluster}: ' if cluster else ''}reading {_names(self.options.files)}")
        with timed("load"):
            files = self.options.files
            self.feed = self.job.open_on(self.executor, files) if cluster else self.job.open(files)
        self.note(*self.feed.notes)
        if self.job.old is not None:
            if cluster:
                raise ConfigError("--start is for one machine here; leave --cluster out.")
            self.feed = self.job.join(self.program, self.options.files, self.feed)
        if self.options.valid:
            self.display.phase(f"reading {_names(self.options.valid)}")
            with timed("load"):
                self.valid = self.job.open_valid(self.options.valid, self.feed)
            self.note(*(f"validation: {note}" for note in self.valid.notes))
        self.feed, self.valid, held = self.job.hold_out(self.feed, self.valid)
        self.note(*[held] * bool(held))
        self.seconds["compile"] = seconds_compiled() - compiled  # readers too are compiled, on the first run
        self.seconds["load"] = time.perf_counter() - began - self.seconds["compile"]

    def note(self, *sentences: str) -> None:
        """Sentences for the user."""
        for sentence in sentences:
            self.notes.append(sentence)
            self.display.say(f"note: {sentence}")

    def train(self, interrupts: Interrupts) -> None:
        """Run the executor and pass its events to all readers."""
        with self.records.open(self.program) as logs:
            self.note(*logs.notes)
            known = len(logs.notes)
            start = self.start()
            if start is None and self.job.old is not None:
                self.note(*begin_from(self.program, self.job.old, self.feed, self.job.train.seed))
            self.display.phase(COMPILING)
            for event in self.executor.run(self.program, self.feed, valid=self.valid, watch=self.watch, start=start):
                if isinstance(event, Started):
                    interrupts.arm()
                    self.note(*self.job.started_notes(self.program, self.feed))
                if interrupts.asked:
                    self.executor.stop()
                self.keep(event)
                with nullcontext() if isinstance(event, Progress) else timed("save"):
                    self.save(event)  # before anything that could fail
                if isinstance(event, Finished):
                    self.show_watched(event, logs)
                for reader in (self.display, logs):
                    reader(event)
                if isinstance(event, Started):
                    self.show_watched(event, logs)
            self.note(*logs.notes[known:])

    def start(self) -> RunState | None:
        """Where to go on from, with what will save ready."""
        save = self.options.save
        if not save.output:
            return None
        identity = self.job.identity(self.program, self.feed, self.valid)
        if self.options.cluster.cluster:
            made = {"nodes": self.executor.site.count, "threads": self.executor.threads}
            identity |= {**vars(self.options.cluster), **made}
        found = load_checkpoint(save.output, self.program, identity) if save.resume else None
        start = None
        if found is not None:
            self.program, start = found
            self.note(self.where(start))
        elif save.resume:
            self.note("there is no checkpoint yet (--checkpoint-every writes them): starts from the beginning.")
        output = self.job.output(Path(save.output), self.feed, keep_best=self.valid is not None)
        self.checkpointer = Checkpointer(self.executor, self.program, output, self.interval, identity, start)
        return start

    def save(self, event: Event) -> None:
        """Save what the event asks for; what cannot be written to its place is said, also with --quiet."""
        if self.checkpointer is None:
            return
        try:
            self.checkpointer(event)
        except RescuedError as error:
            self.rescued = error
            self.notes.append(str(error))
            tell = say if self.options.show.quiet else self.display.say
            tell(f"hogwild: error: {error}")
        while self.checkpointer.notes:
            self.note(self.checkpointer.notes.pop(0))

    def where(self, start: RunState) -> str:
        """Where the run goes on from."""
        if 0 < self.job.train.epochs <= start.position.epoch:
            return "this run was finished before; nothing is left to do."
        return f"goes on after {start.position.epoch} epochs and {self.told(start.position.visits)} of the next."

    def told(self, visits: int) -> str:
        """Visits as the user counts them."""
        if not self.program.tells_units:
            return f"{visits:,} samples"
        each = self.program.units(self.feed) / self.program.visits(self.feed)
        return f"{round(visits * each):,} {self.program.unit}"

    def keep(self, event: Event) -> None:
        """Remember what the summary needs."""
        if isinstance(event, Started):
            self.started = event
            self.notes += event.notes  # the display shows them itself
            self.seconds["compile"] += event.compile_seconds
            self.seconds["prepare"] = event.prepare_seconds
        elif isinstance(event, Watched):
            self.watched_at = event.samples
        elif isinstance(event, Nodes):
            self.nodes = event
        elif isinstance(event, EpochEnded):
            self.epochs.append(event)
        elif isinstance(event, Finished):
            self.finished = event
            self.seconds["train"] = event.train_seconds
            self.seconds["evaluate"] = event.evaluate_seconds

    def show_watched(self, event: Event, logs: Callable[[Event], None]) -> None:
        """The watched variables at the beginning, where a wrong name is found out, and at the end."""
        if self.watch is not None and event.samples != self.watched_at:
            self.watched_at = event.samples
            watched = Watched(event.seconds, event.epoch, event.samples, self.watch.read(self.program))
            self.display(watched)
            logs(watched)

    def summary(self) -> dict[str, Any]:
        """The JSON object of the command."""
        metrics = self.metrics()
        return {
            **run_summary(self.program, self.started, self.finished, self.epochs),
            **self.job.counts(self.program, self.feed), "seconds": self.seconds, "metrics": metrics,
            "evaluated_on": "valid" if self.valid is not None else "train",
            "best_epoch": self.executor.state().best_epoch if self.valid is not None else None,
            "output": self.rescued.place if self.rescued else self.options.save.output or None, "notes": self.notes,
            **self.cluster_summary(),
        }  # fmt: skip

    def cluster_summary(self) -> dict[str, Any]:
        """For the JSON object of a run on several nodes: what each sent, received, waited for and took."""
        if self.nodes is None:
            return {}
        cluster = {name: value for name, value in vars(self.options.cluster).items() if value is not None}
        told = {"nodes": list(self.nodes.nodes), "sync_every": self.nodes.every, "samples_again": self.nodes.again}
        return {"cluster": {**cluster, "words": self.finished.units, **told}}

    def metrics(self) -> dict[str, float]:
        """How good the model is: on the validation data (that of the best epoch), else on the training data."""
        if self.valid is None:
            if self.finished.reason == "stopped":
                return {}  # whoever interrupts does not want to wait
            began = time.perf_counter()
            self.display.phase("evaluating on the training data")
            with timed("evaluate"):
                found = self.job.training_metrics(
                    self.program, self.feed, self.finished, min(self.started.threads, cores())
                )
            self.seconds["evaluate"] += time.perf_counter() - began
            return found
        if best := [event.metrics for event in self.epochs if event.best]:
            return best[-1]
        # The best epoch was before this process went on; without an output there is none to go on from.
        return metrics_of(self.options.save.output) if self.options.save.output else {}


def _executor_of(options: RunOptions, job: Job) -> Any:
    """This process, or nodes of a cluster."""
    given = {name: value for name, value in vars(job.train).items() if name != "epochs" or value}  # 0: by the program
    given |= {"valid_share": 0.0, "valid_last": 0.0}  # its data are divided before it begins
    if not options.cluster.cluster:
        return AsyncExecutor(**given)
    if job.train.device:
        raise ConfigError("--device is for one machine; leave it out with --cluster.")
    from hogwild.cluster import ClusterExecutor  # says so where Ray is missing

    if job.train.threads is not None:
        raise ConfigError("--threads is for one machine; with --cluster give --workers-per-node.")
    return ClusterExecutor(options.cluster, **given)


def _names(files: tuple[str, ...]) -> str:
    first = "standard input" if files[0] == "-" else files[0]
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _print(options: RunOptions, summary: dict[str, Any], training: Training) -> None:
    output = summary["output"]
    if options.show.json:
        print_json(summary)
    elif not options.show.quiet:
        if summary["metrics"]:
            data = {"train": "training", "valid": "validation"}[summary["evaluated_on"]]
            show(f"on the {data} data: {metrics_text(summary['metrics'])}")
        if output:
            show(f"saved to {output}")
        if options.watch.report:
            show(f"report in {options.watch.report}")
    if summary["reason"] == "stopped":
        started, how = training.started, _how_to_go_on(training.checkpointer, options.save.output)
        work = f"{round(summary['samples'] * started.each):,} {started.unit}"
        say(f"hogwild: interrupted after {work}; {how}.")


def _how_to_go_on(checkpointer: Checkpointer | None, output: str) -> str:
    if checkpointer is None:
        return "nothing was saved without --output"
    if checkpointer.resumes is None:
        return "no checkpoint could be written to go on from here"
    elsewhere = "" if checkpointer.resumes == Path(output) else f"--output {checkpointer.resumes} "
    return f"run the same command again with {elsewhere}--resume to go on"


# -- --profile: around all that a training command does ----------------------------------------------------------------


class Profiling:
    """The profile of a command, if one is asked for. With `--json` it is part of the object, else a table is shown."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.path = trace_path(options)
        self.profile = Profile(self.path) if self.path else None

    def watching(self) -> AbstractContextManager[Any]:
        """Keep where the time goes; at the end write the file."""
        return self.profile or nullcontext()

    def summary(self) -> dict[str, Any]:
        """For the JSON object."""
        return {"profile": {"file": self.path, **self.profile.report()}} if self.profile else {}

    def show(self) -> None:
        """The table, for people; nothing with --quiet, or with --json, where the object has it."""
        if self.profile is None or self.options.show.quiet or self.options.show.json:
            return
        for line in self.profile.table().splitlines():
            say(line)
        say(f"{self.path} has it span by span: open it in chrome://tracing or ui.perfetto.dev")


def trace_path(options: RunOptions) -> str:
    """The file that is written, "" for none."""
    if options.watch.profile != "auto":
        return options.watch.profile
    output = options.save.output.rstrip("/")
    return f"{output}.profile.json" if output else "hogwild.profile.json"
