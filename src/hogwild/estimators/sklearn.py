"""What all estimators have in common, and what they need of scikit-learn where that is not installed."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Self, TypeVar

from hogwild.config.options import nearest, options_of
from hogwild.errors import ConfigError, InputError
from hogwild.executor.readers.display import show_progress
from hogwild.executor.run import AsyncExecutor

Made = TypeVar("Made")
_WIDTH = 112  # columns of a docstring

# -- Mistakes of the user, as users of scikit-learn expect them -------------------------------------------------------


@contextmanager
def value_errors() -> Iterator[None]:
    """Mistakes of the user as ValueError."""
    try:
        yield
    except (ConfigError, InputError, OverflowError) as error:  # the last: whole numbers that no float can hold
        raise ValueError(str(error)) from error


# -- What all of them do ----------------------------------------------------------------------------------------------


def keep_arguments(estimator: object, given: dict[str, Any]) -> None:
    """Keep the arguments of `__init__`, its `locals()`, under their own names, as scikit-learn has it."""
    vars(estimator).update({name: value for name, value in given.items() if name not in ("self", "others")})


def train_for(estimator: Any, executor: AsyncExecutor, program: Any, feed: Any, valid: Any, quiet: bool = True) -> None:
    """Train for an estimator, and let it have what was learnt; with `valid` the weights of the best epoch."""
    estimator.loss_curve_ = []
    best: Any = None
    with show_progress(quiet=quiet, epochs=executor.config_for(program).epochs) as show:
        for event in executor.run(program, feed, valid=valid):
            show(event)
            if event.kind == "started":
                estimator.lr_ = event.lr  # type: ignore[attr-defined]
            elif event.kind == "epoch":
                estimator.loss_curve_.append(event.loss)  # type: ignore[attr-defined]
                if valid is not None and event.is_best:
                    best = program.kept()
            elif event.kind == "finished" and best is not None:
                program.take_back(best)
    estimator.program_, estimator.n_iter_ = program, len(estimator.loss_curve_)


TRAINING: dict[str, tuple[Any, str]] = {
    "epochs": (None, "passes over the data; None: as usual for the program, more for few rows"),
    "lr": (None, "first learning rate; None: as usual for the program, or calibrated on a sample of the data"),
    "schedule": ("linear", "how it falls in `fit`: constant, linear, inverse; `partial_fit` keeps it constant"),
    "n_jobs": (None, "workers, which write without locks; None: 1, -1: one a core"),
    "mode": ("hogwild", "how workers take turns"),
    "sharing": ("auto", "which weights they hold in common"),
    "random_state": (None, "makes first weights and the order of the visits"),
    "verbose": (False, "show how far training is"),
}
"""Parameters that all estimators have, with their defaults and what they mean."""
VALIDATION: dict[str, tuple[Any, str]] = {
    "validation_fraction": (0.0, "share of the rows kept apart in `fit`, to end with the weights of the best epoch"),
    "patience": (3, "with validation_fraction: end when the loss has not fallen for so many epochs; 0: never"),
}

QUANTITY: dict[str, tuple[Any, str]] = {
    "loss": ("squared", "squared, huber, quantile or poisson; see HogwildRegressor"),
    "huber_delta": (1.0, "with huber: errors up to this count by their squares, in the unit of y"),
    "quantile": (0.5, "with quantile: the share of y that is to lie below what is predicted"),
}
"""Parameters of regressors."""


def parameters(
    config: type, own: Mapping[str, tuple[Any, str]], without: Sequence[str] = ()
) -> Callable[[type[Made]], type[Made]]:
    """Give an estimator the options of a program as parameters, but for some, then its own and those of training.

    Signature and docstring name them all; `options` of `program_options` gives those of the program.
    """
    options = {name: option for name, option in options_of(config).items() if name not in {*without, *own}}
    defaults = {item.name: item.default for item in fields(config)}
    taken = {name: (defaults[name], option.help) for name, option in options.items()} | dict(own) | TRAINING

    def __init__(self: Any, **given: Any) -> None:  # noqa: N807
        for name in given:
            if name not in taken:
                raise TypeError(f"there is no parameter {name!r}{nearest(name, taken)}; there are {', '.join(taken)}.")
        vars(self).update({name: given.get(name, default) for name, (default, _) in taken.items()})

    def dress(estimator: type[Made]) -> type[Made]:
        kind = inspect.Parameter.KEYWORD_ONLY
        items = [inspect.Parameter(name, kind, default=default) for name, (default, _) in taken.items()]
        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        dressed: Any = estimator
        __init__.__signature__ = inspect.Signature([this, *items])  # type: ignore[attr-defined]
        dressed.__init__, dressed.program_options = __init__, tuple(options)
        lines = [f"{name} : {text}" for name, (_, text) in taken.items()]
        about = "".join(textwrap.fill(line, _WIDTH, subsequent_indent=" " * 4) + "\n" for line in lines)
        rule = "Parameters\n----------\n"
        dressed.__doc__ = inspect.cleandoc(estimator.__doc__ or "").replace(rule, rule + about)
        return estimator

    return dress


def options_for(estimator: Any) -> dict[str, Any]:
    """The options of the program behind an estimator."""
    return {name: getattr(estimator, name) for name in estimator.program_options}


# -- In the place of scikit-learn's -----------------------------------------------------------------------------------


class BaseEstimator:
    """Parameters are the arguments of `__init__`, kept under their own names."""

    @classmethod
    def _names(cls) -> list[str]:
        named = inspect.signature(cls).parameters.values()
        return sorted(item.name for item in named if item.kind is not inspect.Parameter.VAR_KEYWORD)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"there is no parameter {name!r}; there are {', '.join(self._names())}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = {name: item.default for name, item in inspect.signature(type(self)).parameters.items()}
        own = {name: value for name, value in self.get_params().items() if value != usual.get(name)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in own.items())})"


class NotFittedError(ValueError, AttributeError):
    """The estimator has not been trained yet."""
