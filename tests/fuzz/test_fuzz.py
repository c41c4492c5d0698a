"""Every reader and loader against files changed at random: read, or refused in one or two lines."""

from __future__ import annotations

import pytest

from fuzz.harness import run
from fuzz.targets import TARGETS

_FEW, _MANY = 3, 20


def test_a_few_changed_files() -> None:
    assert not [str(finding) for finding in run(list(TARGETS.values()), _FEW)]


@pytest.mark.full
@pytest.mark.parametrize("name", TARGETS)
def test_many_changed_files(name: str) -> None:
    assert not [str(finding) for finding in run([TARGETS[name]], _MANY, seed=1)]
