"""One call: train a program, under a progress bar."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, Unpack, runtime_checkable

from hogwild.arrays import Room
from hogwild.config import Mode, Sharing, TrainConfig
from hogwild.config.arguments import offering
from hogwild.config.typed import RunOptions, TrainOptions
from hogwild.errors import ConfigError, brief
from hogwild.executor.events import Started, Watched
from hogwild.executor.readers.display import show_progress
from hogwild.executor.readers.watch import make_watch
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.held_out import hold_out
from hogwild.programs.continuing import begin
from hogwild.programs.custom import CustomProgram
from hogwild.programs.program import Program

P = TypeVar("P", bound=Program)


@offering(TrainConfig)
def train(
    program: P, feed: Any, *, valid: Any = None, watch: Any = None, quiet: bool = False,
    start: Any = None, **options: Unpack[TrainOptions],
) -> P:  # fmt: skip
    """Train a program and return it.

    Parameters
    ----------
    feed : what to train on: a feed, (X, y) for `feed_of`, or the path of a file.
    valid : the same, to evaluate after each epoch. The weights returned are then those of the best epoch, by
        `best_by`. With `valid_share` or `valid_last` a part of `feed` is held out for it.
    watch : names, expressions or functions of the weights to show while it runs and at its end; see `Watch`.
    quiet : no progress bar.
    start : a trained model to go on from, with more data: its directory, or a program. What it knows by name (features,
        categories, users, items, words, tags, classes) keeps its weights, what is new begins fresh, and so does what
        the update rule remembers. Options that the program leaves as usual are those of the model.
    options : fields of `TrainConfig`: epochs, lr, threads, mode, schedule, seed, sharing, patience, trace … What is
        left out is as usual for the program, and as `hogwild train` has it.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> feed = hogwild.feed_of(np.array([[0.0], [1.0]]), ["no", "yes"])
    >>> program = hogwild.train(hogwild.Linear(), feed, epochs=20, lr=0.5, threads=1, quiet=True)
    >>> program.predict(feed).tolist()
    ['no', 'yes']
    """
    if not isinstance(program, Program):
        made = f"{program.__name__}()" if isinstance(program, type) else "Linear()"
        raise ConfigError(f"{brief(program)} is no program; give an instance of one, such as {made}.")
    executor = AsyncExecutor(**options)
    if start is not None:
        feed, _ = begin(program, start, feed, executor.config_for(program).seed)
    feed = program.feed_from(feed)
    valid = None if valid is None else program.feed_from(valid, feed)
    config = executor.config_for(program)
    feed, valid, held = hold_out(config, feed, valid)
    look = make_watch(watch)
    best: Any = None
    seen = -1  # samples at which the watched variables were shown last
    with show_progress(quiet=quiet, epochs=config.epochs) as show:
        for event in executor.run(program, feed, valid=valid, watch=look, valid_share=0.0, valid_last=0.0):
            event = event.noting(held) if held and isinstance(event, Started) else event
            seen = event.samples if event.kind == "watched" else seen
            if look is not None and event.kind == "finished" and event.samples != seen:
                show(Watched(event.seconds, event.epoch, event.samples, look.read(program)))
            show(event)
            if event.is_best and valid is not None:
                best = program.kept()
            if event.kind == "finished" and best is not None:
                program.take_back(best)
    return program


class AsyncOptions(RunOptions, total=False):
    """What may be given by name to `async_executor`."""

    valid: Any
    watch: Any
    quiet: bool
    mode: Mode
    sharing: Sharing


@runtime_checkable
class MainProgram(Protocol):
    """A main program that is no compiled task: it says what to train, and what comes back."""

    def program(self, startup_program: Any) -> Program:
        """What is trained."""

    def result(self, program: Any) -> Any:
        """What was trained."""


@offering(TrainConfig)
def async_executor(
    startup_program: Any, main_program: Any, feed: Any, threads: int | None = None,
    room: Room | None = None, **options: Unpack[AsyncOptions],
) -> Any:  # fmt: skip
    """Train the weights that `startup_program()` returns by the task `main_program`; returns them.

    Parameters
    ----------
    startup_program : makes the weights, a NamedTuple of float32 arrays; or makes a PyTorch module, or is one.
    main_program : a NamedTuple whose type has a `gradient` and an `apply` registered (docs/guide-own.md); for a module
        a `hogwild.pytorch.ModuleTask`: then the module comes back, trained.
    feed : a NamedTuple of sample arrays, or a `Feed`; for a module whatever it is trained on.
    room : the scratch that a visit needs at the most; by default one row for each row of weights.
    options : as for `hogwild.train`.
    """
    if isinstance(main_program, MainProgram):
        if room is not None:
            raise ConfigError("room is for compiled tasks; a module needs none.")
        return main_program.result(train(main_program.program(startup_program), feed, threads=threads, **options))
    program = CustomProgram(main_program, startup_program, room=room)
    return train(program, feed, threads=threads, **options).weights
