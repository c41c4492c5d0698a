"""Tries targets with changed files, in processes of their own: a crash or a hang costs one case and names it.

A target makes small valid files and has a function that reads one. Each case is a file changed at random, in the same way
whenever its target, seed and number are the same. It must be read, or be refused by a HogwildError of one or two lines.
Anything else is a finding: another exception, a signal, a hang, more memory than is reasonable.
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.mutations import TOKENS, mutate
from hogwild.errors import HogwildError

LIMIT = 20.0        # seconds that a case may take
_STARTING = 240.0   # the first one: it may compile
_MEMORY = 6 << 30   # bytes of address space of a worker
_LINES, _LONGEST = 2, 2000  # lines and characters of an error
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Kept:
    """An input that was a finding: the bytes of a file of this name, or changes to the target's own file.

    edits: (place, bytes put over what stands there); size: what is left after them, if it was cut.
    """

    name: str
    data: bytes = b""
    edits: tuple[tuple[int, bytes], ...] = ()
    size: int = -1

    def content(self, seeds: Mapping[str, bytes]) -> bytes:
        """The file."""
        if not self.edits and self.size < 0:
            return self.data
        text = bytearray(seeds[self.name])
        for place, change in self.edits:
            text[place : place + len(change)] = change
        return bytes(text[: self.size] if self.size >= 0 else text)


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    seeds: makes valid files, name -> bytes; try_it: reads the file at a path (a directory of its own, the file has its
    name) and raises HogwildError only; kept: what was found before, tried first in every run.
    """

    name: str
    seeds: Callable[[], dict[str, bytes]]
    try_it: Callable[[Path], object]
    kept: Sequence[Kept] = ()
    tokens: Sequence[bytes] = TOKENS


@dataclass(frozen=True)
class Finding:
    """What went wrong in a case, and the command that repeats it."""

    target: str
    seed: int
    case: int
    what: str

    def __str__(self) -> str:
        command = f"make fuzz TARGET={self.target} SEED={self.seed} FIRST={self.case} COUNT=1"
        return f"{self.target}, case {self.case}: {self.what}\n  again: {command}"


def file_of(target: Target, seeds: Mapping[str, bytes], seed: int, case: int) -> tuple[str, bytes]:
    """Name and content of the file of a case: those below 0 are what was kept, 0 to n - 1 the valid files."""
    if case < 0:
        kept = target.kept[-1 - case]
        return kept.name, kept.content(seeds)
    names = sorted(seeds)
    if case < len(names):
        return names[case], seeds[names[case]]
    random = Random(f"{target.name}:{seed}:{case}")
    name = names[case % len(names)]
    return name, mutate(seeds[name], random, list(seeds.values()), target.tokens)


def run(target: Target, count: int, seed: int = 0, first: int | None = None) -> list[Finding]:
    """Try what was kept and `count` cases, or only those from `first` on; returns the findings."""
    start = -len(target.kept) if first is None else first
    end = (count if first is None else first + count) if count else 0
    findings: list[Finding] = []
    while start < end:
        found, start = _batch(target.name, seed, start, end)
        findings += found
    return findings


def _batch(name: str, seed: int, start: int, end: int) -> tuple[list[Finding], int]:
    """Findings of one worker, and the case to go on with: after one that ended it."""
    command = [sys.executable, "-m", "fuzz", "--worker", name, str(seed), str(start), str(end)]
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])
    findings: list[Finding] = []
    case, limit = start, _STARTING
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PYTHONPATH": paths, "HOGWILD_CACHE": home, "PYTHONFAULTHANDLER": "1"}
        worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                  cwd=_ROOT, env=environment, bufsize=0)  # fmt: skip
        assert worker.stdout is not None
        try:
            while True:
                if not select.select([worker.stdout], [], [], limit)[0]:
                    worker.kill()
                    worker.wait()
                    return [*findings, Finding(name, seed, case, f"no end after {limit:g} seconds")], case + 1
                line = worker.stdout.readline()
                if not line:
                    break
                said = json.loads(line)
                if "what" in said:
                    findings.append(Finding(name, seed, case, said["what"]))
                else:
                    limit = LIMIT if said["case"] > start else _STARTING
                    case = said["case"]
        finally:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
            worker.stdout.close()
        if worker.returncode == 0 and case == end:
            return findings, end
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
        return [*findings, Finding(name, seed, case, f"ended with {worker.returncode}: {' / '.join(said[:12])}")], case + 1


def work(target: Target, seed: int, start: int, end: int) -> None:
    """In a worker: say each case before it is tried, and what it raised."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seeds = target.seeds()
    said = os.fdopen(os.dup(1), "w")
    for case in range(start, end):
        print(json.dumps({"case": case}), file=said, flush=True)
        name, content = file_of(target, seeds, seed, case)
        what = attempt(target, name, content, valid=0 <= case < len(seeds))
        if what:
            print(json.dumps({"what": what}), file=said, flush=True)
    print(json.dumps({"case": end}), file=said, flush=True)


def attempt(target: Target, name: str, content: bytes, valid: bool = False) -> str:
    """What is wrong with how a file is taken; empty if nothing is."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(content)
        try:
            target.try_it(path)
        except HogwildError as error:
            message = str(error).replace(directory, "")
            if valid:
                return f"the valid file is refused: {message}"
            if len(message) > _LONGEST or len(message.split("\n")) > _LINES:
                return f"an error of {len(message)} characters: {message[:200]!r}"
        except BaseException:
            return traceback.format_exc()[-1500:]
    return ""
