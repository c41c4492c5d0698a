"""What may be tried: for each option a range of numbers or a few values, and how one is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.config import TrainConfig
from hogwild.config.options import Option, convert, nearest, options_of
from hogwild.errors import ConfigError, brief
from hogwild.programs.program import Program

_STEP = 0.15  # of a range, by which a value near another one differs, about
_STAY = 0.6  # chance that a value out of several stays
_RATES = {"sgd": 0.1, "momentum": 0.02, "adagrad": 0.1, "adam": 0.003, "ftrl": 0.1}  # where programs calibrate theirs


@dataclass(frozen=True)
class Range:
    """Numbers from low to high; log: on a logarithmic scale; whole: whole numbers only."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def draw(self, random: np.random.Generator) -> float | int:
        """Any of them."""
        return self._at(random.random())

    def near(self, value: Any, random: np.random.Generator) -> float | int:
        """One that is near a value, which may be none of them."""
        place = self._place(float(value)) if value is not None else 0.5
        return self._at(min(1.0, max(0.0, place + _STEP * random.standard_normal())))

    def _at(self, place: float) -> float | int:
        low, high = (math.log(end) if self.log else end for end in (self.low, self.high))
        found = low + place * (high - low)
        found = min(self.high, max(self.low, math.exp(found) if self.log else found))
        return round(found) if self.whole else float(f"{found:.4g}")

    def _place(self, value: float) -> float:
        value = min(self.high, max(self.low, value))
        if self.low == self.high:
            return 0.5
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def draw(self, random: np.random.Generator) -> Any:
        """Any of them."""
        return self.values[int(random.integers(len(self.values)))]

    def near(self, value: Any, random: np.random.Generator) -> Any:
        """The same, or another."""
        return value if value in self.values and random.random() < _STAY else self.draw(random)


Space = dict[str, Range | Choice]


def draw(space: Space, number: int, seed: int, best: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of a trial, which depend on its number, the seed and the best so far alone: every other one is near
    the best."""
    random = np.random.default_rng((seed, number))
    if best is None or number % 2:
        return {name: values.draw(random) for name, values in space.items()}
    return {name: values.near(best.get(name), random) for name, values in space.items()}


def parse_search(text: str, program: Program) -> tuple[str, Range | Choice]:
    """What `lr=0.01:1:log`, `epochs=2:10` or `dim=8,16,32` say of an option of this program.

    >>> import hogwild
    >>> parse_search("l2=1e-6:1e-2:log", hogwild.Linear())
    ('l2', Range(low=1e-06, high=0.01, log=True, whole=False))
    """
    name, sign, values = (part.strip() for part in text.partition("="))
    name = name.lstrip("-").replace("-", "_")
    known = known_options(program)
    if not sign or not values:
        raise ConfigError(f"search is {brief(text)}; write for example lr=0.01:1:log, epochs=2:10 or dim=8,16,32.")
    if name not in known:
        raise ConfigError(
            f"search names {brief(name)}, which is no option of {program.name} or of training"
            f"{nearest(name, known)}; there are {', '.join(sorted(known))}."
        )
    if ":" not in values:
        parts = values.split(";") if ";" in values else values.split(",")
        return name, Choice(tuple(_value(known[name], part.strip(), text) for part in parts))
    low, _, rest = values.partition(":")
    high, _, scale = rest.partition(":")
    ends = [_value(known[name], end.strip(), text) for end in (low, high)]
    if scale not in ("", "log") or not all(type(end) in (int, float) for end in ends):
        raise ConfigError(f"search is {brief(text)}; a range is LOW:HIGH or LOW:HIGH:log, of numbers.")
    if not ends[0] <= ends[1] or (scale == "log" and not ends[0] > 0):
        positive = ", above 0 on a logarithmic scale" if scale else ""
        raise ConfigError(f"search is {brief(text)}; the first number is the lower one{positive}.")
    return name, Range(ends[0], ends[1], scale == "log", type(ends[0]) is int)


def known_options(program: Program) -> dict[str, Option]:
    """Options of a program and of its training that may be searched for."""
    fixed = ("threads", "mode", "sharing", "device", "trace", "seed", "start_vectors", "best_by", "valid_share",
             "valid_last")  # fmt: skip
    kinds: list[Any] = [program.training, type(getattr(program, "config", None))]
    both = {name: option for kind in kinds if kind is not type(None) for name, option in options_of(kind).items()}
    return {name: option for name, option in both.items() if name not in fixed}


def _value(option: Option, text: str, whole: str) -> Any:
    try:
        return convert(option, text, option.name)
    except ConfigError as error:
        raise ConfigError(f"search is {brief(whole)}: {error}") from None


def usual_space(program: Program, config: TrainConfig, given: Sequence[str] = ()) -> Space:
    """What is worth trying for a program, without options that are given: rate, penalties, sizes and epochs."""
    rate = config.lr or _rate_of(program)
    wide = 30.0 if program.rate is None else 6.0
    epochs = Range(max(1, config.epochs // 2), 4 * config.epochs, log=True, whole=True)
    space: Space = {"lr": Range(rate / wide, rate * wide, log=True), **_SPACES.get(program.name, {}), "epochs": epochs}
    known = known_options(program)
    return {name: values for name, values in space.items() if name in known and name not in given}


def _rate_of(program: Program) -> float:
    optimizer = getattr(getattr(program, "config", None), "optimizer", "sgd")
    return program.rate or _RATES.get(str(optimizer), 0.05)


_SIZES = Choice((8, 16, 32))
_SPACES: dict[str, Space] = {
    "linear": {"l2": Range(1e-8, 1e-2, log=True)},
    "fm": {"dim": Choice((4, 8, 16)), "l2": Range(1e-8, 1e-2, log=True), "l2_factors": Range(1e-8, 1e-2, log=True)},
    "sparse_mlp": {"dim": _SIZES, "l2": Range(1e-8, 1e-3, log=True)},
    "text_classifier": {"dim": _SIZES},
    "matrix-factorization": {"dim": Choice((16, 32, 64)), "l2": Range(0.003, 0.3, log=True)},
    "crf": {"l2": Range(0.05, 5.0, log=True)},
    "bilstm": {"dropout": Range(0.0, 0.6)},
}
"""Of word vectors only rate and epochs: losses of other windows and negatives cannot be compared."""
