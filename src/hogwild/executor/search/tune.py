"""One call: search for the options of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hogwild.config.experiments import TuneConfig
from hogwild.config.options import check_names
from hogwild.errors import ConfigError
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.search.halving import Search, check_space
from hogwild.executor.search.space import Space, parse_search, usual_space
from hogwild.executor.search.trial import Subject, Trial, subject_of
from hogwild.feeds.held_out import hold_out
from hogwild.messages import say
from hogwild.programs.program import Metrics, Program


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    program: the best model, trained, of its best epoch. options: those that made it. trials: all that were tried.
    """

    program: Any
    options: dict[str, Any]
    metrics: Metrics
    trials: tuple[Trial, ...]


def tune(
    program: Program, feed: Any, valid: Any = None, *, search: Sequence[str] | Mapping[str, str] = (), trials: int = 0,
    seconds: float = 0.0, quiet: bool = False, **options: Any,
) -> Tuned:  # fmt: skip
    """Search for the options of a program on held-out data, and return the best model.

    Parameters
    ----------
    program : without weights; its options are those of the first trial, and of all that is not searched for.
    feed, valid : as for `hogwild.train`; without `valid` a tenth of the data is held out.
    search : what to try, as `lr=0.01:1:log` or `dim=8,16,32`, or by name {"lr": "0.01:1:log"}. Default: learning rate,
        penalties, sizes and epochs.
    trials, seconds : when to end; 30 trials by default. With the same `seed` so many trials are the same again.
    options : fields of `TrainConfig`; what is given is not searched for.

    Ctrl-C ends the search; the best so far is returned.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> feed, held = (hogwild.feed_of(rows, rows[:, 0] > 0) for rows in (X[:150], X[150:]))
    >>> found = hogwild.tune(hogwild.Linear(), feed, held, search=["lr=0.01:1:log"], trials=3, epochs=3, quiet=True)
    >>> len(found.trials), found.program.evaluate(held)["accuracy"] > 0.8
    (3, True)
    """
    config = TuneConfig(trials=trials, seconds=seconds)
    check_names(program.training, options)
    feed = program.feed_from(feed)
    valid = None if valid is None else program.feed_from(valid, feed)
    train = AsyncExecutor(**options).config_for(program)
    share: dict[str, Any] = {} if valid is not None or train.valid_share or train.valid_last else {"valid_share": 0.1}
    feed, valid, _ = hold_out(replace(train, **share), feed, valid)
    subject = subject_of(program, feed, valid, train)
    lines = [f"{name}={value}" for name, value in search.items()] if isinstance(search, Mapping) else search
    found = Search(subject, space_of(program, subject, lines, tuple(options)), config)
    if not quiet:
        found.tell = lambda trial: say(told(trial, found))
    try:
        best = found.run()
    except KeyboardInterrupt:
        found.halt()
        if found.best is None:
            raise
        best = found.best
    return Tuned(best.program, dict(best.options), best.metrics, tuple(found.trials.values()))


def space_of(program: Program, subject: Subject, search: Sequence[str], given: Sequence[str]) -> Space:
    """What the user wants to try, else what is usual."""
    space: Space = {}
    for text in search:
        name, values = parse_search(text, program)
        if name in space:
            raise ConfigError(f"search names {name} twice; give it one range.")
        space[name] = values
    space = space or usual_space(program, subject.config, given)
    check_space(space)
    return space


def told(trial: Trial, search: Search) -> str:
    """A trial in a line, with the best so far and the time that is left."""
    what = "  ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in trial.options.items()) or "the usual options"  # fmt: skip
    of = f"/{search.most:g}" if search.most < float("inf") else ""
    came = trial.why if trial.status == "failed" else trial.shown
    mark = {"short": " (short run)", "stopped": " (stopped)", "failed": " failed:"}.get(trial.status, "")
    best = f"  best {search.best.shown} of trial {search.best.number + 1}" if search.best else ""
    left = f"  {search.seconds_left:.0f} s left" if search.config.seconds else ""
    return f"trial {trial.number + 1}{of}  {what}{mark}  {came}{best}{left}"
