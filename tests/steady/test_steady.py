"""Made tests of known behaviour: found by what they start, counted, and told by the exit status."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from places import ROOT, SOURCE
from steady.repeating import busy_cores

STARTING = """
import itertools, os, pathlib, subprocess, sys, threading, time
import multiprocessing
import pytest

runs = itertools.count(1)

def start():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
"""
MADE = f"""
{STARTING}
def test_thread():
    start()

def test_third():
    start()
    assert next(runs) % 3, "the third run"

def test_nothing_is_started():
    assert True

def test_process():
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)

def test_fork():
    if os.fork() == 0:
        os._exit(0)
    os.wait()

def test_spawn():
    multiprocessing.get_context("spawn").Process(target=int).start()

@pytest.fixture
def started():
    start()

def test_fixture(started):
    pass

@pytest.mark.parametrize("name", ["a", "b"])
def test_parameter(name, tmp_path):
    start()
    assert not list(tmp_path.iterdir())  # a place of its own in every run
    (tmp_path / name).touch()
"""
FATAL = f"""
{STARTING}
def test_before():
    start()

def test_ends_all():
    start()
    if next(runs) == 3:
        os._exit(7)

def test_after():
    start()
"""
SCOPES = f"""
{STARTING}
@pytest.fixture(scope="module")
def once():
    file = pathlib.Path(__file__).with_suffix(".made")
    file.write_text(file.read_text() + "+" if file.exists() else "+")

def test_first(once):
    start()

def test_last(once):
    start()
"""
LONG = f"""
{STARTING}
def test_never():
    start()
    time.sleep(2)

def test_long():
    start()
    time.sleep(1)

def test_quick():
    start()
"""


def steady(place: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`make steady` on one file of tests."""
    (place / "test_made.py").write_text(text, encoding="utf-8")
    (place / "pytest.ini").write_text("[pytest]\nmarkers =\n    full\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(SOURCE)])}
    command = [sys.executable, "-m", "steady", *options]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=300)


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, int, int]]:
    """Runs and failures by test."""
    lines = re.findall(r"^ *(\d+\+\d+) +(\d+) +(\d+)  test_made\.py::(.*)$", done.stdout, re.MULTILINE)
    return {name: (runs, int(quiet), int(busy)) for runs, quiet, busy, name in lines}


def test_what_starts_something_is_found_and_counted(tmp_path: Path) -> None:
    done = steady(tmp_path, MADE, "--count", "3")
    passing = ["test_thread", "test_process", "test_fork", "test_spawn", "test_fixture"]
    expected = dict.fromkeys([*passing, "test_parameter[a]", "test_parameter[b]"], ("3+3", 0, 0))
    assert rows(done) == {**expected, "test_third": ("3+3", 1, 1)}, done
    assert "first: call: AssertionError: the third run" in done.stdout
    assert "9 tests looked at, 8 start threads or processes, 1 of these failed" in done.stdout
    assert done.returncode == 1


def test_without_a_failure_the_status_is_0(tmp_path: Path) -> None:
    done = steady(tmp_path, MADE, "--count", "1", "--only", "test_thr", "--only", "[b]", "--only", "nothing")
    assert rows(done) == {"test_thread": ("1+1", 0, 0), "test_parameter[b]": ("1+1", 0, 0)}, done
    assert "3 tests looked at, 2 start" in done.stdout
    assert done.returncode == 0


def test_a_test_that_takes_the_process_along_is_named_and_the_others_run(tmp_path: Path) -> None:
    done = steady(tmp_path, FATAL, "--count", "2")
    assert rows(done)["test_before"] == rows(done)["test_after"] == ("2+2", 0, 0), done
    assert rows(done)["test_ends_all"] == ("2+1", 0, 1)
    assert "first: pytest ended with status 7" in done.stdout
    assert done.returncode == 1


def test_fixtures_of_a_module_are_made_once_however_often_its_tests_run(tmp_path: Path) -> None:
    assert steady(tmp_path, SCOPES, "--count", "4").returncode == 0
    assert (tmp_path / "test_made.made").read_text() == "++"  # to find them, and to repeat them


def test_when_the_time_is_over_it_says_what_was_not_run(tmp_path: Path) -> None:
    done = steady(tmp_path, LONG, "--count", "100", "--minutes", "0.1")
    assert done.returncode == 0, done
    assert "The time was over; not " in done.stdout  # run as often as asked, or on slow machines looked at
    assert "    test_made.py::test_never" in done.stdout  # the quickest come first


def test_a_search_goes_on_from_its_journal(tmp_path: Path) -> None:
    options = ("--count", "3", "--journal", "journal", "--only", "test_thread", "--only", "test_third")
    first = steady(tmp_path, MADE, *options, "--cores", "busy")
    assert rows(first) == {"test_thread": ("1+3", 0, 0), "test_third": ("1+3", 0, 1)}, first
    again = steady(tmp_path, MADE, *options)
    assert rows(again) == {"test_thread": ("3+3", 0, 0), "test_third": ("3+3", 0, 1)}, again  # two runs in this process
    before = (tmp_path / "journal").read_text()
    assert rows(steady(tmp_path, MADE, *options)) == rows(again)
    assert (tmp_path / "journal").read_text() == before  # nothing was left to run


def test_what_cannot_be_collected_is_shown(tmp_path: Path) -> None:
    done = steady(tmp_path, "import nothing_of_this_name")
    assert "No module named 'nothing_of_this_name'" in done.stdout
    assert "No tests were collected." in done.stdout
    assert done.returncode == 1
    assert "No tests were collected with test_xyz." in steady(tmp_path, MADE, "--only", "test_xyz").stdout


def test_busy_loops_keep_cores_busy_and_end_with_their_work() -> None:
    with busy_cores() as processes:
        assert len(processes) >= 3
        before = [_seconds(process) for process in processes]
        deadline = time.monotonic() + 60
        while min(_seconds(p) - b for p, b in zip(processes, before, strict=True)) < 0.05:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not [process for process in processes if Path(f"/proc/{process}").exists()]


def _seconds(process: int) -> float:
    """Of work that a process has done."""
    if not Path("/proc").exists():
        pytest.skip("the system does not tell in /proc")
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")
