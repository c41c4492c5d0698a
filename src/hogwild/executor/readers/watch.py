"""Variables shown while a run goes on: weight arrays, slices, numbers of them, or a function of the user's.

At a number of samples all workers stand still. By the clock, values are read while workers write, so a slice may hold
cells of different moments; each cell is a number that some worker wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config.options import nearest
from hogwild.errors import ConfigError, brief

MOST_CELLS = 1000  # a watched slice is for a person's eyes
_LONGEST = 60  # characters of an index

Variable = str | Callable[[Any], Any]
Array = npt.NDArray[Any]


def _rms(array: Array) -> float:
    return math.sqrt(float(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def _norm(array: Array) -> float:
    return math.sqrt(float(np.sum(np.square(array, dtype=np.float64))))


NUMBERS: dict[str, Callable[[Array], float]] = {
    "norm": _norm,
    "rms": _rms,
    "min": lambda array: float(array.min(initial=math.inf)),
    "max": lambda array: float(array.max(initial=-math.inf)),
    "mean": lambda array: float(array.mean(dtype=np.float64)) if array.size else 0.0,
    "nonzeros": lambda array: int(np.count_nonzero(array)),
}
"""What an expression may compute of an array."""

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(\s*(.*?)\s*\)\s*")
_PLACE = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(?:\[(.*)\])?\s*")
_INDEX = re.compile(r"\s*(?:([+-]?\d+)|([+-]?\d+)?\s*:\s*([+-]?\d+)?\s*(?::\s*([+-]?\d+)?\s*)?)\s*")


@dataclass(frozen=True)
class Expression:
    """`number(array[index])`; the number and the index may be missing."""

    text: str
    number: str
    array: str
    index: tuple[int | slice, ...]

    def read(self, arrays: Mapping[str, Any]) -> Any:
        """The value now: a number, or a nested list of numbers."""
        if self.array not in arrays:
            raise ConfigError(
                f"watch {brief(self.text)}: there is no {brief(self.array)}{nearest(self.array, arrays)}; "
                f"known names: {', '.join(arrays)}."
            )
        source = arrays[self.array]
        whole = np.asarray(source() if callable(source) else source)
        try:
            part = whole[self.index]
        except IndexError:
            raise ConfigError(f"watch {brief(self.text)}: {self.array} has the shape {_shape(whole)}.") from None
        if self.number:
            return NUMBERS[self.number](np.asarray(part))
        if np.size(part) > MOST_CELLS:
            raise ConfigError(
                f"watch {brief(self.text)}: {np.size(part)} cells are too many to show (at most {MOST_CELLS}); "
                f"take a slice such as {self.array}[{', '.join(['0'] * (whole.ndim - 1) + [':5'])}], "
                f"or norm({self.array})."
            )
        return np.array(part).tolist()


def _shape(array: Array) -> str:
    return " x ".join(str(size) for size in array.shape) or "one number"


def parse(text: str) -> Expression:
    """Read an expression such as `weights[3,:5]` or `norm(weights)`; nothing is evaluated.

    Examples
    --------
    >>> parse("max(table[3,:5])")
    Expression(text='max(table[3,:5])', number='max', array='table', index=(3, slice(None, 5, None)))
    """
    inner, number = text, ""
    call = _CALL.fullmatch(text)
    if call:
        number, inner = call.groups()
        if number not in NUMBERS:
            raise ConfigError(
                f"watch {brief(text)}: there is no {brief(number)}{nearest(number, NUMBERS)}; choose one of "
                f"{', '.join(NUMBERS)}."
            )
    place = _PLACE.fullmatch(inner)
    if not place:
        raise ConfigError(f"watch {brief(text)} is not NAME, NAME[3,:5] or norm(NAME).")
    name, inside = place.groups()
    index: list[int | slice] = []
    for item in inside.split(",") if inside is not None else []:
        match = _INDEX.fullmatch(item)
        if not match:
            raise ConfigError(
                f"watch {brief(text)}: {brief(item)} is no index; write numbers and ranges, as in weights[3,:5]."
            )
        if len(item) > _LONGEST:
            raise ConfigError(f"watch {brief(text)}: no array has so many cells.")
        one, *ends = match.groups()
        low, high, step = (int(end) if end else None for end in ends)
        if step == 0:
            raise ConfigError(f"watch {brief(text)}: a step of 0 goes nowhere; leave it out.")
        index.append(int(one) if one else slice(low, high, step))
    return Expression(text, number, name, tuple(index))


@dataclass(frozen=True)
class Every:
    """A number of samples or of seconds; the other one is 0."""

    samples: int = 0
    seconds: float = 0.0


def parse_every(text: str | int | float) -> Every:
    """`100000` samples, or `5s`, `2m`, `1h`.

    Examples
    --------
    >>> parse_every("100000"), parse_every("1.5m")
    (Every(samples=100000, seconds=0.0), Every(samples=0, seconds=90.0))
    """
    match = re.fullmatch(r"\s*([0-9.]+(?:e\d+)?)\s*([smh]?)\s*", str(text))
    try:
        number = float(match.group(1)) if match else math.nan
    except ValueError:
        number = math.nan
    if not match or not 0 < number < math.inf or (not match.group(2) and number != int(number)):
        raise ConfigError(f"every is {brief(text)}; write a number of samples (100000) or of seconds (5s).")
    if match.group(2):
        return Every(seconds=number * {"s": 1, "m": 60, "h": 3600}[match.group(2)])
    return Every(samples=int(number))


class Watch:
    """What to look at, and how often.

    Parameters
    ----------
    variables : expressions (`weights`, `weights[3,:5]`, `norm(weights)`) and functions of the weights; a mapping
        gives them names of your own.
    every : a number of samples (100000, "100000"), at which all workers stand still to be looked at, or of seconds
        ("5s"), which are looked at ten times a second while they go on.

    Examples
    --------
    >>> watch = Watch(["norm(weights)", lambda weights: len(weights)], every="5s")
    >>> watch.names
    ('norm(weights)', 'function')
    """

    def __init__(
        self,
        variables: str | Sequence[Variable] | Mapping[str, Variable],
        every: str | int | float = "2s",
    ) -> None:
        self._variables: dict[str, Expression | Callable[[Any], Any]] = {}
        if isinstance(variables, Mapping):
            for name, variable in variables.items():
                self._variables[name] = parse(variable) if isinstance(variable, str) else variable
        else:
            for variable in [variables] if isinstance(variables, str) else variables:
                self._add(variable)
        self.every = parse_every(every)
        self._last = 0  # number of the last interval shown

    def __repr__(self) -> str:
        often = f"{self.every.samples:,} samples" if self.every.samples else f"{self.every.seconds:g} s"
        return f"<Watch of {', '.join(self._variables)}, every {often}>"

    def _add(self, variable: Variable) -> None:
        if isinstance(variable, str):
            self._variables[variable] = parse(variable)
            return
        if not callable(variable):
            raise ConfigError(f"watch {variable!r} is neither a text nor a function of the weights.")
        called = getattr(variable, "__name__", "function")
        name = base = "function" if called == "<lambda>" else called
        count = 1
        while name in self._variables:
            count += 1
            name = f"{base} {count}"
        self._variables[name] = variable

    @property
    def names(self) -> tuple[str, ...]:
        """How the values are called, in order."""
        return tuple(self._variables)

    def begin(self, samples: int, seconds: float) -> None:
        """A run begins, or goes on, here."""
        self._last = self._interval(samples, seconds)

    def due(self, samples: int, seconds: float) -> bool:
        """Whether the next interval has begun since this last said so."""
        now = self._interval(samples, seconds)
        if now <= self._last:
            return False
        self._last = now
        return True

    def _interval(self, samples: int, seconds: float) -> int:
        return samples // self.every.samples if self.every.samples else int(seconds // self.every.seconds)

    def read(self, program: Any) -> dict[str, Any]:
        """The values now, by name."""
        arrays = program.watchable()
        return {
            name: variable.read(arrays) if isinstance(variable, Expression) else _call(name, variable, program.weights)
            for name, variable in self._variables.items()
        }


def _call(name: str, function: Callable[[Any], Any], weights: Any) -> Any:
    try:
        value = np.asarray(function(weights))
    except Exception as error:
        raise ConfigError(f"watch {name!r}: the function failed: {type(error).__name__}: {error}.") from error
    if value.dtype.kind not in "biuf" or value.size > MOST_CELLS:
        raise ConfigError(f"watch {name!r}: the function must return at most {MOST_CELLS} numbers, not {value.dtype}.")
    return value.tolist()


def make_watch(
    variables: Watch | str | Sequence[Variable] | Mapping[str, Variable] | None, every: str | int | float = "2s"
) -> Watch | None:
    """A `Watch` of what the user gave; None for nothing."""
    if isinstance(variables, Watch):
        return variables
    return Watch(variables, every) if variables else None
