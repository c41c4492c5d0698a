"""The time that the compiler takes."""

from __future__ import annotations

import numba as nb
import pytest

from hogwild.kernels.compiler.clock import seconds_compiled


@pytest.mark.skipif(nb.config.DISABLE_JIT, reason="nothing is compiled")
def test_seconds_grow_with_what_is_compiled_and_with_nothing_else() -> None:
    double = nb.njit(lambda x: 2 * x)
    before = seconds_compiled()
    assert double(2) == 4
    after = seconds_compiled()
    assert after > before
    assert double(3) == 6
    assert seconds_compiled() == after
