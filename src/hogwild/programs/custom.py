"""A user's own program: a task with two functions, and weights made by a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hogwild.arrays import DenseParameters, Room, Table, has_dense, split_tables
from hogwild.errors import ConfigError, InputError, ModelError, brief
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.loop.task import apply, gradient, is_bundle_type
from hogwild.kernels.optim.rules import SLOTS, dense_tables
from hogwild.programs.program import CompiledProgram, Metrics


class CustomProgram(CompiledProgram):
    """A program from a task and a function that makes its weights.

    Parameters
    ----------
    task : a NamedTuple whose type has functions registered with `@hogwild.gradient_of` and `@hogwild.apply_of`.
    startup : returns the weights, a NamedTuple of float32 arrays whose first axis numbers the rows. Those with the
        fields of `hogwild.DenseParameters` have their gradient in `scratch.dense`, and the task has their `rule`.
    room : the scratch that one visit needs at the most; by default a row of scratch for each row of weights.
    visits : visits in an epoch; by default the length of the feed, or of its arrays, which is then the same for all.
    tables : how arrays are shared, by name; those not named are dense.
    evaluate : metrics of the weights on a feed, by name; `loss` is what early stopping watches. If it has a parameter
        `threads`, it is told by that how many cores it may use.
    visit_seconds : about how long a visit takes; a learning rate is calibrated in as many visits as that allows.
    """

    name = "custom"

    def __init__(
        self, task: Any, startup: Callable[[], Any], *, room: Room | None = None, visits: int | None = None,
        tables: Mapping[str, Table] | None = None, evaluate: Callable[..., Metrics] | None = None,
        visit_seconds: float = CompiledProgram.visit_seconds,
    ) -> None:  # fmt: skip
        _check_task(task)
        if not callable(startup):
            raise ConfigError(f"startup is a {type(startup).__name__}; it is the function that makes the weights.")
        self._task = task
        self._startup = startup
        self._room = room
        self._visits = visits
        self._tables = dict(tables or {})
        self._evaluate = evaluate
        self.visit_seconds = visit_seconds
        self._takes_threads = evaluate is not None and _takes(evaluate, "threads")

    @property
    def task(self) -> Any:
        """The user's task."""
        return self._task

    def startup(self, feed: Any, seed: int) -> None:
        """Call the user's function, once."""
        if self.weights is None:
            self.weights = _checked(self._startup())

    def samples(self, feed: Any) -> Any:
        """The user's arrays as they are."""
        if isinstance(feed, Feed):
            return feed.one_label("a program of your own").samples
        return self._checked_samples(feed)

    def _checked_samples(self, samples: Any) -> Any:
        if not is_bundle_type(type(samples)):
            raise InputError(f"samples are a NamedTuple of arrays, or a feed, not {type(samples).__name__}.")
        lengths = {}
        for name, array in zip(samples._fields, samples, strict=True):
            if isinstance(array, list):
                raise InputError(f"samples.{name} is a list; make it an array: numpy.array({name}).")
            if isinstance(array, np.ndarray) and array.ndim:
                lengths[name] = len(array)
        if self._visits is None and len(set(lengths.values())) != 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InputError(
                f"the arrays of samples differ in length ({told or 'there is none'}); there is one visit for each "
                "entry of all, or give `visits`."
            )
        return samples

    def visits(self, feed: Any) -> int:
        """Visits in an epoch."""
        if self._visits is not None:
            return self._visits
        if isinstance(feed, Feed):
            return len(feed)
        return next(len(array) for array in self.samples(feed) if np.ndim(array))

    def room(self, feed: Any) -> Room:
        """Scratch for every row of weights, unless the user said less, and for all dense parameters."""
        given = self._room or Room(0)
        dense = self.weights.values.size if has_dense(self.weights) else given.dense
        if given.dense not in (0, dense):
            raise ConfigError(f"room has dense={given.dense} for {dense} dense weights; leave it out.")
        if self._room is not None:
            return self._room._replace(dense=dense)
        rows = split_tables(self.tables(), Room(0, dense=dense))[0].values()
        return Room(sum(t.rows for t in rows), max((t.cells for t in rows), default=1), dense)

    def tables(self) -> Mapping[str, Table]:
        """Dense rows, unless the user said otherwise."""
        named = {**self._dense_tables(), **self._tables}
        unsaid = [name for name in self.weights._fields if name not in named]
        if unsaid and (has_dense(self.weights) or (self._room or Room(0)).dense):
            raise ConfigError(
                f"`tables` must name {', '.join(unsaid)}: kind ranked where rows have numbers, dense where gradients "
                "are in scratch.dense."
            )
        return {**super().tables(), **named}

    def _dense_tables(self) -> Mapping[str, Table]:
        if not has_dense(self.weights) or set(DenseParameters._fields) <= set(self._tables):
            return {}
        rule = getattr(self._task, "rule", None)
        if type(rule) not in SLOTS:
            kind = type(self._task).__name__
            raise ConfigError(f"{kind} has no field `rule` with the update rule of its dense parameters; give it one.")
        return dense_tables(rule, self.weights.values.size)

    def evaluate(self, feed: Any, threads: int = 1) -> Metrics:
        """The user's metrics."""
        if self._evaluate is None:
            raise ConfigError("this program has no evaluate function; give one, or train without a validation feed.")
        more = {"threads": threads} if self._takes_threads else {}
        return self._evaluate(self.weights, feed, **more)

    def options(self) -> dict[str, Any]:
        """The name of the task. The rest is code, which no model holds: give `load_model` the program too."""
        return {"task": type(self._task).__name__}

    def arrays(self, state: bool = False) -> dict[str, Any]:
        """The weights by name; update rules of a user's keep their memory there too."""
        if self.weights is None:
            raise ConfigError("this program has no weights yet; train it, or load one.")
        return dict(self.weights._asdict())

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take over weights of the names and shapes that the startup makes."""
        fresh = _checked(self._startup())
        if set(arrays) != set(fresh._fields):
            raise ModelError(f"the arrays are {', '.join(arrays)}; this program has {', '.join(fresh._fields)}.")
        for name, mine in zip(fresh._fields, fresh, strict=True):
            found = arrays[name]
            if found.shape != mine.shape or found.dtype != mine.dtype:
                raise ModelError(f"array {name} is {found.dtype} {found.shape}, not float32 {mine.shape}.")
        self.weights = type(fresh)(**{name: np.array(arrays[name], order="C") for name in fresh._fields})


def _check_task(task: Any) -> None:
    if is_bundle_type(task):
        raise ConfigError(f"the task is the class {task.__name__}; make one: {task.__name__}(…).")
    kind = type(task).__name__
    if not is_bundle_type(type(task)):
        raise ConfigError(f"the task is {brief(task)}; it must be a NamedTuple.")
    for function in (gradient, apply):
        if function.find(type(task)) is None:
            name = function.__name__
            raise ConfigError(f"{kind} has no {name}; register one with @hogwild.{name}_of({kind}).")


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of this name; what does not tell its parameters has none."""
    try:
        found = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)


def _checked(weights: Any) -> Any:
    if not is_bundle_type(type(weights)):
        raise ConfigError(f"startup returned {type(weights).__name__}; it must return a NamedTuple of float32 arrays.")
    for name, array in zip(weights._fields, weights, strict=True):
        plain = isinstance(array, np.ndarray) and array.dtype == np.float32 and array.ndim > 0
        if not (plain and array.flags.c_contiguous):
            raise ConfigError(f"weight array {name} must be a C-contiguous float32 array of one or more dimensions.")
        if has_dense(weights) and name in DenseParameters._fields and array.ndim > 1:
            raise ConfigError(f"dense parameters are flat, but {name} has the shape {array.shape}; use reshape(-1).")
    return weights
