"""One call: train a program, under a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hogwild.arrays import Room
from hogwild.executor.events import Watched
from hogwild.executor.readers.display import show_progress
from hogwild.executor.readers.watch import make_watch
from hogwild.executor.run import AsyncExecutor
from hogwild.programs.custom import CustomProgram


def train(
    program: Any, feed: Any, *, valid: Any = None, threads: int | None = None, mode: str = "hogwild",
    watch: Any = None, quiet: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Train a program and return it.

    Parameters
    ----------
    valid : a feed to evaluate after each epoch. The weights returned are then those of the best epoch.
    watch : names, expressions or functions of the weights to show while it runs and at its end; see `Watch`.
    quiet : no progress bar.
    options : fields of `TrainConfig`: epochs, lr, schedule, seed, sharing, patience, trace … What is left out is as
        usual for the program, and as `hogwild train` has it.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> feed = hogwild.feed_of(np.array([[0.0], [1.0]]), ["no", "yes"])
    >>> program = hogwild.train(hogwild.Linear(), feed, epochs=20, lr=0.5, threads=1, quiet=True)
    >>> program.predict(feed).tolist()
    ['no', 'yes']
    """
    executor = AsyncExecutor(threads=threads, mode=mode, **options)
    look = make_watch(watch)
    best: Any = None
    seen = -1  # samples at which the watched variables were shown last
    with show_progress(quiet=quiet, epochs=executor.config_for(program).epochs) as show:
        for event in executor.run(program, feed, valid=valid, watch=look):
            seen = event.samples if event.kind == "watched" else seen
            if look is not None and event.kind == "finished" and event.samples != seen:
                show(Watched(event.seconds, event.epoch, event.samples, look.read(program)))
            show(event)
            if event.is_best and valid is not None:
                best = program.kept()
            if event.kind == "finished" and best is not None:
                program.take_back(best)
    return program


def async_executor(
    startup_program: Callable[[], Any], main_program: Any, feed: Any, threads: int | None = None,
    room: Room | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Train the weights that `startup_program()` returns by the task `main_program`; returns them.

    Parameters
    ----------
    startup_program : makes the weights, a NamedTuple of float32 arrays.
    main_program : a NamedTuple whose type has a `gradient` and an `apply` registered (docs/guide-own.md).
    feed : a NamedTuple of sample arrays, or a `Feed`.
    room : the scratch that a visit needs at the most; by default one row for each row of weights.
    options : as for `hogwild.train`.
    """
    program = CustomProgram(main_program, startup_program, room=room)
    return train(program, feed, threads=threads, **options).weights
