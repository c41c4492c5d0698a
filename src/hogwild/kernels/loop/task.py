"""The seam of every program: what one visit does, as functions chosen by the type of the task.

`gradient(task, samples, visit, weights, scratch)` reads weights, fills scratch and returns the loss;
`apply(task, weights, scratch, step)` writes weights from scratch. A task may register `fused`, one function
that does both, for the lock-free mode where it is faster.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from hogwild.errors import ConfigError, brief
from hogwild.kernels.compiler.jit import choice, open_kernel
from hogwild.kernels.loop.guard import guard, look_at_rows

F = TypeVar("F", bound=Callable[..., Any])


@choice
def gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    """Fill scratch with the gradient of one visit; return its loss."""


@choice
def apply(task: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """Write the gradient in scratch into the weights."""


@choice
def fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """Gradient and apply in one, without the round trip through scratch; return the loss."""


def _pair(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    loss = gradient(task, samples, visit, weights, scratch)
    guard(task, visit, scratch)
    apply(task, weights, scratch, step)
    return loss


fused.otherwise(_pair)


class OneByOne(NamedTuple):
    """A worker makes one visit after the other."""

    visits: int = 1
    window: int = 0


class Together(NamedTuple):
    """A worker makes so many visits at once, which all read the same weights and write one after the other, as so many
    workers would: in mode hogwild. Those of a window of so many that are next to each other by size; most: the size of
    all together."""

    visits: int
    window: int
    most: int


@choice
def visit_size(task: Any, samples: Any, visit: Any) -> Any:
    """How large a visit is: such of equal size go well together."""


@choice
def fused_group(task: Any, samples: Any, visits: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """`fused` for several visits at once; returns the sum of their losses."""


def paced(task: Any, mode: str) -> Any:
    """A task as a mode wants it: only in mode hogwild may visits be made together."""
    return task._replace(pace=OneByOne()) if mode != "hogwild" and group_size(task) > 1 else task


def group_size(task: Any) -> int:
    """Visits of which a worker chooses those that it makes at once."""
    pace = getattr(task, "pace", None)
    return pace.window if isinstance(pace, Together) else 1


# -- Registration of a user's functions, checked at the door ----------------------------------------------------------


def gradient_of(*tasks: type) -> Callable[[F], F]:
    """Register what one visit of tasks of these types computes: `gradient(task, samples, visit, weights, scratch)`."""
    return _register(gradient, tasks, returning=True)


def apply_of(*tasks: type) -> Callable[[F], F]:
    """Register what one visit of tasks of these types writes: `apply(task, weights, scratch, step)`."""
    return _register(apply, tasks)


def fused_of(*tasks: type) -> Callable[[F], F]:
    """Register both as one: `fused(task, samples, visit, weights, scratch, step)`, for the lock-free mode."""
    return _register(fused, tasks, returning=True)


def _register(chosen: Any, tasks: tuple[Any, ...], returning: bool = False) -> Callable[[F], F]:
    name = f"@hogwild.{chosen.__name__}_of"
    for task in tasks or (None,):
        if not is_bundle_type(task):
            made = type(task).__name__ if is_bundle_type(type(task)) else "MyTask"
            raise ConfigError(
                f"{name} takes the class of a task, a NamedTuple, not {brief(task)}: write {name}({made})."
            )

    def keep(fn: F) -> F:
        plain = getattr(fn, "py_func", fn)  # of a function that numba.njit has had already
        if not isinstance(plain, FunctionType):
            raise ConfigError(f"{name} takes a plain Python function, not {brief(fn)}.")
        _check_parameters(chosen, plain)
        if returning:
            _check_return(chosen, plain)
        chosen.of(*tasks)(plain)
        guard.of(*tasks)(look_at_rows)
        return fn

    return keep


def is_users(task: Any) -> bool:
    """Whether the code of a task comes from outside this package."""
    return guard.find(type(task)) is look_at_rows


def is_bundle_type(kind: Any) -> bool:
    """Whether this is the class of NamedTuples."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def place_of(fn: FunctionType, line: int | None = None) -> str:
    """A function of the user's with its file, and a line of it."""
    return f"{fn.__name__} ({Path(fn.__code__.co_filename).name}, line {line or fn.__code__.co_firstlineno})"


def _check_parameters(chosen: Any, fn: FunctionType) -> None:
    wanted = list(inspect.signature(chosen).parameters)
    found = inspect.signature(fn).parameters
    plain = all(parameter.kind == parameter.POSITIONAL_OR_KEYWORD for parameter in found.values())
    if not plain or len(found) != len(wanted):
        raise ConfigError(
            f"{place_of(fn)} takes ({', '.join(map(str, found.values()))}); {chosen.__name__} takes "
            f"({', '.join(wanted)})."
        )


def _check_return(chosen: Any, fn: FunctionType) -> None:
    before: dis.Instruction | None = None
    for now in dis.get_instructions(fn):
        nothing = now if now.opname == "RETURN_CONST" else before if now.opname == "RETURN_VALUE" else None
        if nothing is not None and nothing.opname in ("RETURN_CONST", "LOAD_CONST") and nothing.argval is None:
            line = now.positions.lineno if now.positions else None
            raise ConfigError(
                f"{place_of(fn, line)} ends without a loss; {chosen.__name__} returns the loss of the visit, "
                "before the update, on every way through it."
            )
        before = now


# -- The loss of a program on samples that it does not learn from -----------------------------------------------------


@open_kernel
def total_loss(task: Any, samples: Any, weights: Any, scratch: Any, first: int, stop: int) -> float:
    """The sum over the visits first … stop - 1, in their order."""
    total = 0.0
    for visit in range(first, stop):
        total += gradient(task, samples, visit, weights, scratch)
    return total
