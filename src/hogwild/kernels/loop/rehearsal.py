"""Some visits of a user's task with every index checked, before the run: compiled code that goes out of bounds reads
and writes whatever lies there.

Gradients are computed at the run's weights; what is applied goes to zeros of their shapes, which nobody reads: the run
itself is what it would be without. Where an index is wrong the visit is made once more by plain Python, which knows the
line.
"""

from __future__ import annotations

import linecache
import math
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import (
    FAULT,
    FAULT_COUNT,
    FAULT_ROW,
    ORDER_KEY,
    ORDER_SHIFT,
    Room,
    Scratch,
    Step,
    Table,
    make_scratch,
    numbered_rows,
)
from hogwild.errors import ConfigError
from hogwild.kernels.compiler.jit import checked, spelled_out
from hogwild.kernels.loop.order import Order, locate
from hogwild.kernels.loop.task import apply, fused, gradient, place_of

_SECONDS = 0.05  # after which no further visit is rehearsed
_STEP = Step(np.float32(1e-3), np.float32(0), 0, 0, 1)
_LIBRARIES = tuple(str(Path(file).parent) for file in (Path(__file__).parents[1], np.__file__))


class Act(NamedTuple):
    """What the visits of a task are given, and what they must keep to."""

    task: Any
    samples: Any
    weights: Any
    tables: Mapping[str, Table]
    room: Room

    @property
    def rows(self) -> int:
        """Rows that have numbers."""
        return numbered_rows(self.tables, self.room)


def rehearse(act: Act, order: Order, visits: Iterable[int], seconds: float = _SECONDS) -> None:
    """Make visits with every index checked; ConfigError with the user's file and line for the first that is wrong.

    seconds: after which no further one is made.
    """
    stage, began = _Stage(act, order, checked), 0.0
    for visit in visits:
        random = stage.scratch.random[0]
        try:
            stage.make(visit)
        except IndexError:
            raise ConfigError(_told(act, order, visit, random)) from None
        except Exception:
            return  # the run will meet it, and say where
        began = began or time.perf_counter()  # the first visit compiles
        if time.perf_counter() - began > seconds:
            return


def check_visits(act: Act, order: Order, positions: range, scratch: Scratch) -> None:
    """After visits of a run: ConfigError if one has listed rows that are not there (none of them was written), or has
    written behind its room, where some cells are kept free."""
    for name, size in _sizes(act.room).items():
        if getattr(scratch, name)[size:].any():
            rehearse(act, order, (int(locate(order, position)) for position in positions), math.inf)
            where = f"{type(act.task).__name__}, one of the visits {positions.start} to {positions.stop - 1}"
            place = place_of(gradient.find(type(act.task)))
            raise ConfigError(f"{where}: {place}: scratch.{name} was written behind its end. {_limits(act.room)}")
    if scratch.count[FAULT]:
        visit = int(scratch.count[FAULT]) - 1
        what = _fault(act, int(scratch.count[FAULT_COUNT]), int(scratch.count[FAULT_ROW]))
        raise ConfigError(_told(act, order, visit, scratch.random[0], what or ""))


class _Stage:
    """The functions of a task, made ready in some way, on scratch of no more than its room."""

    def __init__(self, act: Act, order: Order, ready: Callable[[Any], Any]) -> None:
        self.act, kind = act, type(act.task)
        self.zeros = type(act.weights)(*(np.zeros(array.shape, array.dtype) for array in act.weights))
        self.scratch = _exact(act.room)
        self.scratch.count[ORDER_KEY], self.scratch.count[ORDER_SHIFT] = order.key, order.shift
        both = fused.find(kind)
        self.gradient, self.apply = ready(gradient.find(kind)), ready(apply.find(kind))
        self.fused = ready(both) if both is not fused.find(None) else None

    def make(self, visit: int) -> None:
        """One visit. IndexError: something is out of bounds."""
        task, samples, weights = self.act.task, self.act.samples, self.act.weights
        self.gradient(task, samples, visit, weights, self.scratch)
        count = int(self.scratch.count[0])
        if (what := _fault(self.act, count, *_extremes(self.scratch.rows[: max(count, 0)]))) is not None:
            raise IndexError(what)
        self.apply(task, self.zeros, self.scratch, _STEP)
        if self.fused is not None:
            self.fused(task, samples, visit, self.zeros, self.scratch, _STEP)


def _exact(room: Room) -> Scratch:
    """Scratch with nothing behind its room."""
    scratch = make_scratch(room, np.uint64(1))
    return scratch._replace(**{name: getattr(scratch, name)[:size] for name, size in _sizes(room).items()})


def _sizes(room: Room) -> dict[str, int]:
    """How long the arrays of scratch are for visits."""
    return {"rows": room.rows, "grads": room.rows, "floats": room.floats, "ints": room.ints}


def _extremes(rows: Any) -> tuple[int, ...]:
    return (int(rows.min()), int(rows.max())) if len(rows) else ()


def _fault(act: Act, count: int, *rows: int) -> str | None:
    if not 0 <= count <= act.room.rows:
        return f"scratch.count[0] is {count}, but Room(rows={act.room.rows}) is the most that a visit may list"
    for row in rows:
        if not 0 <= row < act.rows:
            return f"row {row} is in scratch.rows, but the rows of the weights go from 0 to {act.rows - 1}"
    return None


# -- Where it went wrong: the visit once more, by plain Python --------------------------------------------------------


class _Guarded(np.ndarray):
    """Cells that say at once when something is written into them that must not be."""

    check: Callable[[Any, Any], str | None] = staticmethod(lambda where, value: None)

    def __array_finalize__(self, source: Any) -> None:
        self.check = getattr(source, "check", self.check)

    def __setitem__(self, where: Any, value: Any) -> None:
        what = self.check(where, value)
        if what is not None:
            raise IndexError(what)
        super().__setitem__(where, value)


def _told(act: Act, order: Order, visit: int, random: np.uint64, what: str = "an index is out of bounds") -> str:
    """What is wrong with a visit, and in which line of the user's."""
    stage = _Stage(act, order, spelled_out)
    stage.scratch.random[0] = random
    rows, count = stage.scratch.rows.view(_Guarded), stage.scratch.count.view(_Guarded)
    rows.check = lambda where, value: _fault(act, 0, *_extremes(np.asarray(value).reshape(-1)))
    count.check = lambda where, value: _fault(act, int(value)) if np.ndim(where) == 0 and where == 0 else None
    stage.scratch = stage.scratch._replace(rows=rows, count=count)
    function = gradient.find(type(act.task))
    place, line = place_of(function), ""
    try:
        with np.errstate(all="ignore"):
            stage.make(visit)
    except IndexError as error:
        steps = [step for step in traceback.extract_tb(error.__traceback__) if not step.filename.startswith(_LIBRARIES)]
        what = str(error)
        if steps:
            place = f"{steps[-1].name} ({Path(steps[-1].filename).name}, line {steps[-1].lineno})"
            line = f" in `{linecache.getline(steps[-1].filename, steps[-1].lineno or 0).strip()}`"
    except Exception:
        pass  # what Python does otherwise than compiled code: then the line stays unknown
    return f"{type(act.task).__name__}, visit {visit}: {place}: {what}{line}. {_limits(act.room)}"


def _limits(room: Room) -> str:
    given = ", ".join(f"{name}={value}" for name, value in room._asdict().items() if value)
    return f"Scratch has Room({given}); samples and weights have the shapes of their arrays."
