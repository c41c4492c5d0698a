"""Which tests run compiled. `make test` compiles little; `make test-full` compiles all that a user can choose.

What compiles more than `make test` has time for runs there with the compiler off, in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

OFF = os.environ.get("NUMBA_DISABLE_JIT") == "1"
LATER = () if OFF else (pytest.mark.full,)


def compiled_in_full(test: Any) -> Any:
    """A test that is compiled in `make test-full` only."""
    return test if OFF else pytest.mark.full(test)


def cases(whole: Sequence[Any], few: Sequence[Any]) -> list[Any]:
    """Values of one parameter of a test, of which `make test` compiles a few."""
    return [item if item in few else pytest.param(item, marks=LATER) for item in whole]
