"""`hogwild experiment asyngrad`: read or make the text, show how far it is, save, show a table.

observe/theory/asyngrad.py makes the runs.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.flags import Page
from hogwild.cli.interrupt import Interrupts
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import add_row, make_table, print_json, print_tables
from hogwild.config import AsynGradConfig, File, ShowConfig, TaggerModel, TaggingConfig
from hogwild.config.experiments import AsynGradOptions, AsynGradRuns
from hogwild.config.options import Shown
from hogwild.errors import ConfigError, SaveError
from hogwild.messages import say, show

if TYPE_CHECKING:
    from hogwild.executor.readers.display import Display
    from hogwild.feeds.tagged.feed import TaggingFeed
    from hogwild.observe.theory.asyngrad import Experiment, Run

PAGE = Page(
    "hogwild experiment asyngrad",
    """Repeat the experiment of AsynGrad on your data: train a tagger with one thread (SGD), with threads that wait for
each other (round-robin), and with threads that overwrite each other (AsynGrad); a CRF so with structure regularization
too. With --model bilstm it is a bidirectional LSTM, of which every thread writes every weight at each step.

The JSON object has, for each iteration and thread, how many gradients were wrong and by how much, the score on the
test file, the seconds, and the speed-up for each number of threads. docs/experiments.md describes it.

Without --train the text is made up, and the experiment takes half a minute once all is compiled.

Examples:
  hogwild experiment asyngrad
  hogwild experiment asyngrad --task chunking --train train.txt --test test.txt --output chunking.json
  hogwild experiment asyngrad --task pos --train en.conllu --test en-test.conllu --threads 1 2 4 --output pos.json
  hogwild experiment asyngrad --model bilstm --task chunking --train train.txt --test test.txt --output lstm.json
  hogwild experiment asyngrad --task segmentation --train words.txt --test test.txt --seeds 1 --json""",
)

_MADE_UP = (500, 200)  # sentences to train on and to test with
_SHORT = 1.0  # seconds of a run before which there is no bar
_READY = "getting ready (the first time: compiling)"
_INTERRUPTED = 130


@dataclass(frozen=True)
class ReadConfig(TaggingConfig):
    """How tagged text is read."""

    features: Annotated[str, Shown("PRESET|FILE")] = ""
    """Feature templates: a preset, or a file of templates. Default: those of the task; of a Bi-LSTM words-shapes for
    pos, words-pos for chunking, characters for segmentation."""


@dataclass(frozen=True)
class TextConfig:
    """The text, and where the results go."""

    train: File = ""
    """Tagged text to train on. Default: made up."""
    test: File = ""
    """Tagged text to measure the score on, after each iteration."""
    output: Annotated[str, Shown("FILE.json")] = ""
    """File of the results, written anew after each run. Default: only a table is shown."""

    def __post_init__(self) -> None:
        if bool(self.train) != bool(self.test):
            given, missing = ("train", "test") if self.train else ("test", "train")
            raise ConfigError(f"--{given} is there without --{missing}; give both, or neither for made-up text.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: TaggerModel = "crf"
    """Kind of model: crf (linear-chain conditional random field), or bilstm (embeddings, then a bidirectional LSTM)."""
    text: TextConfig = field(default_factory=TextConfig)
    runs: AsynGradOptions = field(default_factory=AsynGradConfig)
    read: ReadConfig = field(default_factory=ReadConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Make all runs; returns the exit code."""
    from hogwild.executor.readers.display import show_progress
    from hogwild.feeds.tagged.templates import PRESETS
    from hogwild.observe.theory.asyngrad import Experiment

    text, features = options.text, options.read.features
    vectors = getattr(options.runs, "start_vectors", "")
    inputs = (text.train, text.test, options.show.config, "" if features in PRESETS else features, vectors)
    check_outputs([text.output], inputs, [vectors])
    config = options.runs if options.text.train else replace(options.runs, small=True)
    with Interrupts() as interrupts:
        with show_progress(quiet=options.show.quiet, epochs=config.iterations) as display:
            experiment = Experiment(config, *_open(options, config, display))
            for note in experiment.record()["notes"]:
                display.say(f"note: {note}")
            _save(options, experiment)  # before the work: there may be no place to write to
            problem: SaveError | None = None
            try:
                _make_runs(experiment, options, display, interrupts)
            finally:
                try:
                    _save(options, experiment)
                except SaveError as error:
                    problem = error
        found = experiment.record()
        if options.show.json:
            print_json(found)
        elif not options.show.quiet:
            _print_table(found)
            if problem is None:
                show(f"saved to {text.output}" if text.output else "nothing was saved without --output")
    if problem is not None:
        raise problem
    if experiment.complete:
        return 0
    kept = f"what there is stands in {options.text.output}" if options.text.output else "nothing was saved"
    made = sum(record["complete"] for record in experiment.records)
    say(f"hogwild: interrupted after {made} of {len(experiment.plan)} runs; {kept}.")
    return _INTERRUPTED


def _open(options: Options, config: AsynGradRuns, display: Display) -> tuple[TaggingFeed, TaggingFeed]:
    from hogwild.feeds.synthetic.sentences import make_sentences, write_lines

    text, read = options.text, options.read.with_features(config.templates)
    if text.train:
        display.phase(f"reading {text.train} and {text.test}")
        return _open_both(read, text.train, text.test)
    display.phase("making up text")
    with tempfile.TemporaryDirectory(prefix="hogwild-experiment-") as place:
        paths = [Path(place) / name for name in ("train.txt", "test.txt")]
        for part, (path, count) in enumerate(zip(paths, _MADE_UP, strict=True)):
            lines = write_lines(config.task, make_sentences(count, config.seed, part), config.seed)
            path.write_text(lines, encoding="utf-8")
        read = replace(read, format="segmented" if config.task == "segmentation" else "conll", cache=False)
        train, test = _open_both(read, str(paths[0]), str(paths[1]))
        note = f"made-up text: {len(train):,} sentences to train on, {len(test):,} to test with."
        return replace(train, source="made-up text", notes=(note,)), replace(test, source="made-up text", notes=())


def _open_both(read: ReadConfig, train: str, test: str) -> tuple[TaggingFeed, TaggingFeed]:
    from hogwild.feeds.tagged.open import open_tagging

    feed = open_tagging(train, read)
    return feed, open_tagging(test, read, schema=feed.schema, names=feed.names, tags=feed.tags)


def _make_runs(experiment: Experiment, options: Options, display: Display, interrupts: Interrupts) -> None:
    from hogwild.executor.events import Finished, Progress, Started

    display.phase(_READY)
    for run, event in experiment.run():
        interrupts.arm()
        if interrupts.asked:
            experiment.stop()
        if isinstance(event, Started):
            display.phase("")
        elif isinstance(event, Progress) and event.seconds > _SHORT:
            display(event)
        elif isinstance(event, Finished):
            display.say(f"{len(experiment.records)}/{len(experiment.plan)}  {_outcome(run, experiment)}")
            try:
                _save(options, experiment)
            except SaveError as error:
                display.say(f"note: {error} The results are written again after the next run.")
            display.phase(_READY)
    display.phase("")


def _outcome(run: Run, experiment: Experiment) -> str:
    """What a run came to, in a line."""
    iterations = experiment.records[-1]["iterations"]
    if not iterations:
        return f"{run}: stopped"
    score = f"{experiment.score} {100 * iterations[-1]['score']:.2f}"
    if not run.traced:
        return f"{run}: {score}, {median(found['seconds'] for found in iterations):.3g} s an iteration"
    looked_at = sum(found["errors"]["looked_at"] for found in iterations)
    errors = sum(found["errors"]["errors"] for found in iterations)
    return f"{run}: {score}, gradient errors {errors / max(looked_at, 1):.2%}"


def _save(options: Options, experiment: Experiment) -> None:
    from hogwild.feeds.io.outfile import write_file

    if options.text.output:
        with write_file(options.text.output) as stream:
            text = json.dumps(experiment.record(), ensure_ascii=False, allow_nan=False, indent=1)
            stream.write(text.encode("utf-8", "backslashreplace") + b"\n")  # names of files may not be UTF-8


def _print_table(found: dict[str, Any]) -> None:
    score = {"f1": "test F", "accuracy": "test accuracy"}[found["score"]]
    table = make_table(["method", "threads", score, "s/iteration", "speed-up", "errors"])
    for entry in found["methods"]:
        seconds, errors, speed_up = entry["seconds"], entry["errors"], entry["speed_up"]
        add_row(
            table, entry["method"], str(entry["threads"]), _score_text(entry["final_score"]),
            f"{seconds['median']:.3g}" if seconds else "", f"{speed_up:.2f}x" if speed_up else "",
            f"{errors['error_rate']:.2%}" if errors else "",
        )  # fmt: skip
    print_tables([table])


def _score_text(score: dict[str, Any] | None) -> str:
    """In points of 100, with its deviation where there is one."""
    if not score:
        return ""
    deviation = f" ± {100 * score['deviation']:.2f}" if score["deviation"] is not None else ""
    return f"{100 * score['mean']:.2f}{deviation}"
