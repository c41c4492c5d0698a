"""What all estimators have in common, and what they need of scikit-learn where that is not installed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from hogwild.errors import ConfigError, InputError
from hogwild.executor.readers.display import show_progress
from hogwild.executor.run import AsyncExecutor

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
