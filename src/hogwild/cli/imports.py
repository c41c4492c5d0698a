"""Packages that others would import though no command needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(MetaPathFinder):
    """Finds that a package is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for the package."""
        if fullname == self.name:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)
        return None


def leave_out(name: str) -> None:
    """From now on a package is as if it were not installed."""
    sys.meta_path.insert(0, _Absent(name))


def leave_nothing_out() -> None:
    """Packages that were left out may be imported again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Absent)]
