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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In `make test-full` (--dist loadgroup), tests that compile the same code stay together: it is compiled once."""
    for item in items if config.getoption("loadgroup", False) else ():
        if item.path.parent.name != "fuzz":
            item.add_marker(pytest.mark.xdist_group(_group_of(item)))


def _group_of(item: pytest.Item) -> str:
    """Its file and, where one of its parameters is an update rule, that. Those that start Ray follow each other."""
    if "cluster" in item.path.parts:
        return "ray"
    given = getattr(item, "callspec", None)
    parts = [str(given.params[name]) for name in ("name", "rule") if name in given.params] if given else []
    return " ".join([item.path.stem, *parts])


def pytest_collection_finish(session: Any) -> None:
    """Look for garbage less often, and not in what was imported: compiling makes many objects, and took longer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
