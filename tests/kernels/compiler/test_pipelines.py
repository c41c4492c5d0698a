"""Parts of kernels that are not compiled by themselves: what they compute, and the errors that they raise."""

from __future__ import annotations

import os
import subprocess
import sys

import numba as nb
import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.jit import inner, kernel
from hogwild.kernels.compiler.pipelines import draft_options, loop_options
from places import ROOT

compiled = pytest.mark.skipif(OFF, reason="nothing is compiled")


@inner
def cube(x):
    return x * x * x


@inner
def root(x):
    if x < 0:
        raise ValueError("no root")
    return cube(x) ** 0.5


@kernel
def roots(x):
    return root(x) + root(x + 1)


@compiled
def test_drafts_are_made_with_the_version_of_numba_that_is_pinned():
    assert "pipeline_class" in draft_options()
    assert "pipeline_class" in loop_options()


@compiled
def test_the_way_into_a_loop_is_not_optimised_and_the_loop_is():
    total, plain = (nb.njit(_total, fastmath=True, **options) for options in (loop_options(), {}))
    numbers = np.arange(1000, dtype=np.float32)
    assert total((numbers, numbers[:10])) == plain((numbers, numbers[:10]))

    def marked(compiled):
        [found] = compiled.inspect_llvm().values()
        return [line for line in found.splitlines() if line.startswith("attributes") and "optnone" in line]

    assert marked(total)
    assert not marked(plain)
    [assembly] = total.inspect_asm().values()
    assert "addps" in assembly, "the loop has vectors"


def _total(arrays):
    found = np.float32(0)
    for k in range(len(arrays[0])):
        found += arrays[0][k]
    return found + arrays[1][0]


def test_python_may_call_a_part_before_and_after_a_kernel_does():
    assert cube(2.0) == 8.0
    assert roots(0.0) == 1.0
    assert cube(3.0) == 27.0
    assert root(4) == 8.0


def test_an_error_in_a_part_reaches_python():
    with pytest.raises(ValueError, match="no root"):
        roots(-3.0)
    with pytest.raises(ValueError, match="no root"):
        root(-3.0)


AGAIN = """
from kernels.compiler.test_pipelines import roots
print(roots(0.0), sum(roots.stats.cache_hits.values()))
try:
    roots(-3.0)
except ValueError as error:
    print(error)
"""


@compiled
def test_code_that_is_read_again_raises_the_same_error(tmp_path):
    root = ROOT
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path)}
    for hits in (0, 1):
        command = [sys.executable, "-c", AGAIN]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == f"1.0 {hits}\nno root\n", done.stderr[-2000:]
