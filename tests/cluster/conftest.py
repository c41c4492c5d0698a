"""One Ray for the tests of a module: a start takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hogwild.cluster.session import Session, open_session
from places import ROOT


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Two nodes of Ray's, whose processes find the problems of the tests."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), *([before] if before else [])])
    try:
        with open_session("local", nodes=2, workers_per_node=1) as opened:
            yield opened
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
