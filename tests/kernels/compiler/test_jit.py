"""The cache of machine code: what a user defines or changes is never met by old code."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import hogwild.kernels
from compiling import OFF
from hogwild.kernels.compiler import jit
from hogwild.kernels.compiler.codecache import KernelCache
from hogwild.kernels.compiler.jit import choice, in_package
from hogwild.kernels.optim.losses import Logistic
from hogwild.kernels.optim.penalties import Free
from places import SOURCE

compiled = pytest.mark.skipif(OFF, reason="there is no code to cache")

USER = """
from typing import NamedTuple
import numpy as np
from hogwild.arrays import Step
from hogwild.kernels.compiler.jit import fresh
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import begin_row, counts_visits, slots_of, visits_of

class Mine(NamedTuple):
    scale: np.float32

@slots_of.of(Mine)
@counts_visits.of(Mine)
def nothing(rule):
    return 0

@visits_of.of(Mine)
def visits(rule, table, count_cell):
    return rule.scale * np.float32({factor})

@fresh
def begin(rule, table):
    return begin_row(rule, Free(), table, 0, 1, Step(np.float32(1), np.float32(0), 0, 0, 1))

if __name__ != "__main__":
    print(begin(Mine(np.float32(2)), np.zeros(4, np.float32)))
"""


@compiled
def test_a_users_edit_is_seen_in_the_next_process(tmp_path: Path) -> None:
    """Parts of the package that call a user's function are compiled anew with it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(tmp_path)])
    for factor in (1, 10):
        (tmp_path / "mine.py").write_text(USER.replace("{factor}", str(factor)))
        done = subprocess.run(
            [sys.executable, "-c", "import mine"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{2.0 * factor}\n", done.stderr[-2000:]
    assert not [path for path in tmp_path.rglob("*.nbi") if "begin_row" in path.name]


@compiled
def test_no_cached_kernel_takes_what_may_be_a_users() -> None:
    users = {"task", "rule", "penalty", "loss", "samples", "entries", "weights", "probe", "mode"}
    chosen = {"run_span", "run_virtual", "time_visits"}  # `runner` and its like choose between these and uncached ones
    checked = 0
    for module in pkgutil.walk_packages(hogwild.kernels.__path__, "hogwild.kernels."):
        for name, found in vars(importlib.import_module(module.name)).items():
            cached = isinstance(getattr(found, "_cache", None), KernelCache)
            if cached and name not in chosen:
                checked += 1
                assert not users & set(inspect.signature(found.py_func).parameters), f"{module.name}.{name}"
    assert checked > 20


class Outside(NamedTuple):
    """A type of a user's."""

    loss: object = None


def test_types_from_outside_are_found_at_any_depth() -> None:
    assert in_package(Logistic(), (Free(), 3.0), np.zeros(2))
    assert not in_package(Outside())
    assert not in_package((1, (Free(), Outside())))


def test_a_type_of_the_package_with_a_function_from_outside_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_FOREIGN", set())

    @choice
    def colour(tag):
        """Anything."""

    assert in_package(Free())

    @colour.of(Free)
    def blue(tag):
        return 3

    assert not in_package(Free())
