"""For all tests."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

from hogwild.config import cache_home

# Before the compiler is imported: compiled code stays in one place, for children too, wherever a test has its cache.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_home()))


def pytest_configure() -> None:
    """Take signals as a terminal sends them, also where nobody is to interrupt the tests (nohup, a job in the back)."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
            signal.signal(number, usual)


def pytest_collection_finish(session: Any) -> None:
    """Look for garbage less often, and not in what was imported: compiling makes many objects, and took longer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
