"""Mistakes of the user, as users of scikit-learn expect them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hogwild.errors import ConfigError, InputError


@contextmanager
def value_errors() -> Iterator[None]:
    """Mistakes of the user as ValueError."""
    try:
        yield
    except (ConfigError, InputError, OverflowError) as error:  # the last: whole numbers that no float can hold
        raise ValueError(str(error)) from error
