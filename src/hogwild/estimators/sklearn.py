"""What an estimator needs of scikit-learn, where that is not installed: parameters by name, and one exception."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from hogwild.errors import ConfigError, InputError

# -- Mistakes of the user, as users of scikit-learn expect them -------------------------------------------------------


@contextmanager
def value_errors() -> Iterator[None]:
    """Mistakes of the user as ValueError."""
    try:
        yield
    except (ConfigError, InputError, OverflowError) as error:  # the last: whole numbers that no float can hold
        raise ValueError(str(error)) from error


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
