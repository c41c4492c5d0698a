"""A plugin of pytest: finds the tests that start threads or processes by running each once, then runs those again.

All in one process, so that imports and compiled code are paid for once. What happens is written line by line to a
file (`Record`), which whoever started pytest follows: a test that takes the process with it is then known by name.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from hogwild.machine import cores as usable_cores

QUIET, BUSY = "quiet", "busy"
_LOOPS = max(3, usable_cores() + 1)  # more than there are cores
_STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
_LOOP = """
import os, sys
print(flush=True)
while os.getppid() == int(sys.argv[1]):  # ends with its parent, however that ends
    for _ in range(1_000_000):
        pass
"""


class Plan(NamedTuple):
    """What is left to do. Paths, ids of tests, and `time.time()` when no more runs begin."""

    results: str
    asked: dict[str, int]
    """Runs of a test, quiet and busy."""
    only: list[str]
    deadline: float
    known: list[str]
    """Tests that have been looked at."""
    left: dict[str, dict[str, int]]
    """Those of them that start something, and the runs that are still to be made."""


class Record(NamedTuple):
    """A line of the results. what: collected, begun, ended, found or finished; message: of a failure."""

    what: str
    tests: list[str]
    cores: str = QUIET
    message: str = ""


class Starts:
    """Whether a thread or a process was started since `seen` was last set to False."""

    def __init__(self) -> None:
        self.seen = False
        sys.addaudithook(self._hear)
        for kind in (threading.Thread, BaseProcess):  # of which an audit hears nothing, or not always
            self._wrap(kind)

    def _wrap(self, kind: Any) -> None:
        start = kind.start

        def heard(started: Any) -> None:
            self.seen = True
            start(started)

        kind.start = heard

    def _hear(self, event: str, given: Any) -> None:
        if event in _STARTS:
            self.seen = True


class _TimeIsOverError(Exception):
    """No more runs begin."""


class Repeating:
    """Takes the place of pytest's loop over tests."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._starts = Starts()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Look at each test, then repeat those that were found."""
        if session.testsfailed:
            raise session.Interrupted("not all tests could be collected")
        items = {item.nodeid: item for item in session.items if _asked(item.nodeid, self._plan.only)}
        self._tell("collected", *items)
        with suppress(_TimeIsOverError):
            found = self._look([items[name] for name in items if name not in self._plan.known])
            asked = {QUIET: max(0, self._plan.asked[QUIET] - 1), BUSY: self._plan.asked[BUSY]}  # one has found it
            left = {name: runs for name, runs in self._plan.left.items() if name in items} | dict.fromkeys(found, asked)
            for item, following in _pairs([items[name] for name in left]):
                self._repeat(item, following, left[item.nodeid])
            self._tell("finished")
        return True

    def _look(self, items: list[pytest.Item]) -> list[str]:
        """Run each once; the ids of those that start something, in fixtures or by themselves, the quickest first."""
        seconds = {}
        for item, following in _pairs(items):
            self._starts.seen = False
            began = time.perf_counter()
            self._run(item, following, QUIET)
            if self._starts.seen:
                seconds[item.nodeid] = time.perf_counter() - began
                self._tell("found", item.nodeid)
        return sorted(seconds, key=seconds.__getitem__)

    def _repeat(self, item: pytest.Item, following: pytest.Item | None, runs: dict[str, int]) -> None:
        """The quiet runs, then the busy ones."""
        twin = copy.copy(item)  # comes next, so that fixtures of its module and its session stay
        for left in reversed(range(runs[QUIET])):
            self._run(item, twin if left or runs[BUSY] else following, QUIET)
        if runs[BUSY]:
            with busy_cores():
                for left in reversed(range(runs[BUSY])):
                    self._run(item, twin if left else following, BUSY)

    def _run(self, item: pytest.Item, following: pytest.Item | None, cores: str) -> None:
        if time.time() > self._plan.deadline:
            raise _TimeIsOverError
        self._tell("begun", item.nodeid, cores=cores)
        reports = runtestprotocol(item, log=False, nextitem=following)
        failed = [report for report in reports if report.failed]
        self._tell("ended", item.nodeid, cores=cores, message=_message(failed[0]) if failed else "")

    def _tell(self, what: str, *tests: str, cores: str = QUIET, message: str = "") -> None:
        with open(self._plan.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(Record(what, list(tests), cores, message)) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plan is given as a file."""
    parser.addoption("--steady-plan", required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Take over."""
    plan = Plan(**json.loads(Path(config.getoption("--steady-plan")).read_text(encoding="utf-8")))
    config.pluginmanager.register(Repeating(plan))


@contextmanager
def busy_cores() -> Iterator[list[int]]:
    """Loops that share the cores with whatever runs; their process ids."""
    command = [sys.executable, "-I", "-S", "-c", _LOOP, str(os.getpid())]
    loops = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(_LOOPS)]
    try:
        for loop in loops:
            assert loop.stdout is not None
            loop.stdout.readline()
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
            loop.communicate()


def _asked(name: str, only: list[str]) -> bool:
    return not only or any(part in name for part in only)


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each with the one that follows."""
    yield from zip(items, [*items[1:], None], strict=False)


def _message(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return " ".join(f"{report.when}: {text}".split())[:300]
