"""`make steady`: tests that start threads or processes pass on quiet and on busy cores, however often they run."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from steady.repeating import BUSY, QUIET, Plan, Record

_LONGEST = 600.0  # seconds of one run of a test, after which it is taken to hang
_SHOWN = 20  # names that are printed of tests that were not run


@dataclass
class Tally:
    """What came of one test's runs, by the state of the cores."""

    runs: dict[str, int] = field(default_factory=lambda: {QUIET: 0, BUSY: 0})
    failures: dict[str, int] = field(default_factory=lambda: {QUIET: 0, BUSY: 0})
    first: str = ""

    def add(self, cores: str, message: str) -> None:
        """One more run; message: empty if it passed."""
        self.runs[cores] += 1
        self.failures[cores] += bool(message)
        self.first = self.first or message


class Search:
    """All tests that were collected, and how far they are."""

    def __init__(self, asked: dict[str, int], only: list[str], seconds: float, journal: Path | None) -> None:
        self._asked, self._only = asked, only
        self._deadline = time.time() + seconds
        self.tests: list[str] = []
        self.found: list[str] = []
        self.tallies: dict[str, Tally] = {}
        self.finished = False
        self._fatal: set[str] = set()  # tests that took pytest along: they are not begun again
        self._running: tuple[str, str] | None = None
        self._journal = journal
        if journal is not None and journal.exists():
            self._go_on(journal)

    def run(self, arguments: list[str]) -> str:
        """Start pytest, again after each test that takes it along; what it printed where it collected nothing."""
        while not self.finished and time.time() < self._deadline:
            with tempfile.TemporaryDirectory(prefix="hogwild-steady-") as place:
                output = self._follow(Path(place), arguments)
            if not self.tests:
                return output
        return ""

    def left(self) -> dict[str, dict[str, int]]:
        """Runs that are still to be made of tests that were found, quiet and busy."""
        to_make = {
            name: {cores: max(0, count - self.tallies[name].runs[cores]) for cores, count in self._asked.items()}
            for name in self.found
            if name not in self._fatal
        }
        return {name: runs for name, runs in to_make.items() if any(runs.values())}

    def _go_on(self, journal: Path) -> None:
        """Take what an earlier search of the same tree wrote there for done."""
        for line in journal.read_text(encoding="utf-8").splitlines():
            self._take(Record(*json.loads(line)))

    def _follow(self, place: Path, arguments: list[str]) -> str:
        results, output = place / "results", place / "output"
        results.touch()
        plan = Plan(str(results), self._asked, self._only, self._deadline, list(self.tallies), self.left())
        (place / "plan").write_text(json.dumps(plan._asdict()), encoding="utf-8")
        command = [
            sys.executable, "-m", "pytest", "-p", "steady.repeating", f"--steady-plan={place / 'plan'}",
            "-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=failed", *arguments,
        ]  # fmt: skip
        with open(output, "wb") as printed, open(results, encoding="utf-8") as lines:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, process_group=0
            )
            try:
                for record in _records(lines, process):
                    self._take(record)
                    self._note(record)
                status = process.poll()
            finally:
                _end(process)
        said = output.read_text(encoding="utf-8", errors="replace")
        if self.tests:
            self._close(status, said)
        return said

    def _take(self, record: Record) -> None:
        if record.what == "collected":
            self.tests = record.tests
        elif record.what == "begun":
            self._running = record.tests[0], record.cores
        elif record.what == "ended":
            self._running = None
            self._count_run(record.tests[0], record.cores, record.message)
        elif record.what == "found":
            self.found += [name for name in record.tests if name not in self.found]
        else:
            self.finished = True

    def _note(self, record: Record) -> None:
        if self._journal is not None and record.what in ("ended", "found"):
            with open(self._journal, "a", encoding="utf-8") as file:
                print(json.dumps(record), file=file)

    def _count_run(self, name: str, cores: str, message: str) -> None:
        self.tallies.setdefault(name, Tally()).add(cores, message)
        if message:
            print(f"{name} failed on {cores} cores: {message}", file=sys.stderr, flush=True)

    def _close(self, status: int | None, said: str) -> None:
        """The process has ended, or hangs: then a test is in the middle of a run."""
        if self._running is not None:
            name, cores = self._running
            why = f"did not end within {_LONGEST:.0f} s" if status is None else f"ended with status {status}"
            message = f"pytest {why}"
            self._count_run(name, cores, message)
            self._note(Record("ended", [name], cores, message))
            self._fatal.add(name)
            self.found += [name] if name not in self.found else []
            self._running = None
        elif not self.finished and time.time() < self._deadline:
            raise SystemExit(f"{said}\npytest ended with status {status} between two tests.")


def _records(lines: IO[str], process: subprocess.Popen[bytes]) -> Iterator[Record]:
    """The results as they come, until the process has ended or nothing has come for too long."""
    last = time.monotonic()
    while time.monotonic() - last < _LONGEST:
        over = process.poll() is not None  # asked first: what it wrote before is then read
        for line in lines:
            last = time.monotonic()
            yield Record(*json.loads(line))
        if over:
            return
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started; nothing where it has ended by itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def table(search: Search) -> list[str]:
    """A line for each test that was found, those that failed first."""
    heads = f"{'runs':>9} {'failed quiet':>12} {'failed busy':>11}  test"
    order = sorted(search.found, key=lambda name: -sum(search.tallies[name].failures.values()))
    lines = [heads]
    for name in order:
        tally = search.tallies[name]
        runs = f"{tally.runs[QUIET]}+{tally.runs[BUSY]}"
        lines.append(f"{runs:>9} {tally.failures[QUIET]:>12} {tally.failures[BUSY]:>11}  {name}")
        if tally.first:
            lines.append(f"{'':>34}  first: {tally.first}")
    return lines


def main() -> int:
    """1 if any run failed."""
    parser = argparse.ArgumentParser(prog="make steady", description=__doc__)
    parser.add_argument("paths", nargs="*", help="for pytest; all tests if none is given")
    parser.add_argument("--count", type=int, default=50, help="runs of each test, quiet and busy each (%(default)s)")
    parser.add_argument("--cores", choices=(QUIET, BUSY), help="runs on these only, besides the one that finds a test")
    parser.add_argument("--journal", type=Path, help="a file of runs that were made: a later search goes on from there")
    parser.add_argument("--only", action="append", default=[], help="a part of the ids of tests; may be repeated")
    parser.add_argument("--minutes", type=float, default=1e6, help="after which no run begins")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and what was started is ended
    counts = {cores: asked.count if asked.cores in (None, cores) else 0 for cores in (QUIET, BUSY)}
    search = Search(counts, asked.only, 60 * asked.minutes, asked.journal)
    output = search.run(["-m", "not full", *asked.paths])
    if not search.tests:
        print(output, f"No tests were collected{' with ' + ', '.join(asked.only) if asked.only else ''}.", sep="\n")
        return 1
    return _tell(search)


def _tell(search: Search) -> int:
    print("\n".join(table(search)))
    failed = [name for name in search.found if search.tallies[name].first]
    looked, found = len(search.tallies), len(search.found)
    print(f"{looked:,} tests looked at, {found:,} start threads or processes, {len(failed):,} of these failed")
    for what, names in (
        ("not looked at", [name for name in search.tests if name not in search.tallies]),
        ("not run as often as asked", list(search.left())),
    ):
        if names:
            print(f"The time was over; {what}: {len(names):,} tests")
            print("\n".join([f"    {name}" for name in names[:_SHOWN]] + (["    …"] if len(names) > _SHOWN else [])))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
