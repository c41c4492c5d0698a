"""For all tests."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hogwild.config import cache_home
from hogwild.errors import speaking_flags

# Before the compiler is imported: compiled code stays in one place, for children too, wherever a test has its cache.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_home()))


@pytest.fixture(scope="session", autouse=True)
def _flags() -> Iterator[None]:
    """Tests look at messages as they stand in the source; test_wording.py has those that Python gives."""
    with speaking_flags():
        yield


def pytest_configure() -> None:
    """Take signals as a terminal sends them, also where nobody is to interrupt the tests (nohup, a job in the back)."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
            signal.signal(number, usual)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """In `make test-full` (--dist loadgroup), tests that start Ray follow each other: two at a time take longer.

    By a scheduler: groups are told to xdist by names of tests, which pytest 9.2 does not let it change.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class RayTogether(LoadScopeScheduling):
        """All others one by one."""

        def _split_scope(self, nodeid: str) -> str:
            return "ray" if nodeid.startswith("tests/cluster/") else nodeid

    return RayTogether(config, log)


def pytest_collection_finish(session: Any) -> None:
    """Look for garbage less often, and not in what was imported: compiling makes many objects, and took longer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
