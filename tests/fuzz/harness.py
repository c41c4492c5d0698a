"""Tries targets with changed files, in processes of their own: a crash or a hang costs one case and names it.

A target makes small valid files and has a function that reads one. Each case is a file changed at random, in the same
way whenever its target, seed and number are the same. It must be read, or be refused by a HogwildError of one or two
lines. Anything else is a finding: another exception, a signal, a hang, more memory than is reasonable.
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
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.mutations import TOKENS, mutate
from hogwild.config import cache_home
from hogwild.errors import HogwildError

LIMIT = 60.0        # seconds that a case may take: some models are of a kind that is yet to be compiled
_STARTING = 240.0   # the first one and valid files: they may compile
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
    name) and raises HogwildError only; kept: what was found before, tried first in every run; change: makes another
    file of a valid one.
    """

    name: str
    seeds: Callable[[], dict[str, bytes]]
    try_it: Callable[[Path], object]
    kept: Sequence[Kept] = ()
    tokens: Sequence[bytes] = TOKENS
    change: Callable[[bytes, Random, Sequence[bytes], Sequence[bytes]], bytes] = mutate


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
    return name, target.change(seeds[name], random, list(seeds.values()), target.tokens)


def run(targets: Sequence[Target], count: int, seed: int = 0, first: int | None = None) -> list[Finding]:
    """Try what was kept and `count` cases of each target, or only those from `first` on; returns the findings."""
    ranges = {
        target.name: range(-len(target.kept), count) if first is None else range(first, first + count)
        for target in targets
    }
    findings: list[Finding] = []
    while ranges:
        name, case, what = _batch(ranges, seed, findings)
        if what:
            findings.append(Finding(name, seed, case, what))
        done = list(ranges).index(name) if name else len(ranges)
        left = range(case + 1, ranges[name].stop) if name else range(0)
        ranges = {**({name: left} if left else {}), **dict(list(ranges.items())[done + 1 :])}
    return findings


def _batch(ranges: Mapping[str, range], seed: int, findings: list[Finding]) -> tuple[str, int, str]:
    """Let a worker try all; it is the target and the case that ended it, and how, or nothing."""
    asked = json.dumps([[name, cases.start, cases.stop] for name, cases in ranges.items()])
    command = [sys.executable, "-m", "fuzz", "--worker", str(seed), asked]
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])
    ended = False
    name, case, limit = next(iter(ranges)), next(iter(ranges.values())).start, _STARTING
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PYTHONPATH": paths, "HOGWILD_CACHE": home, "PYTHONFAULTHANDLER": "1",
                       "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(cache_home()))}  # fmt: skip
        worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                  cwd=_ROOT, env=environment, bufsize=0)  # fmt: skip
        assert worker.stdout is not None
        try:
            while select.select([worker.stdout], [], [], limit)[0]:
                line = worker.stdout.readline()
                if not line:
                    code = worker.wait()
                    if code == 0 and ended:
                        return "", 0, ""
                    errors.seek(0)
                    last = errors.read().decode(errors="replace").strip().splitlines()[:12]
                    return name, case, f"the process ended with {code}: {' / '.join(last)}"
                said = json.loads(line)
                if said["what"]:
                    findings.append(Finding(name, seed, case, said["what"]))
                elif not said["name"]:
                    ended = True
                else:
                    limit = LIMIT if said["name"] == name and not said["valid"] else _STARTING
                    name, case = said["name"], said["case"]
            return name, case, f"no end after {limit:g} seconds"
        finally:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
            worker.stdout.close()


def work(targets: Mapping[str, Target], seed: int, asked: str) -> None:
    """In a worker: say each case before it is tried, and what it raised."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error", RuntimeWarning)  # such as a division by zero: what comes of it is no number
    os.fsync = lambda descriptor: None  # nothing here must outlive a power cut
    stream = os.fdopen(os.dup(1), "w")

    def say(name: str, case: int, valid: bool = False, what: str = "") -> None:
        print(json.dumps({"name": name, "case": case, "valid": valid, "what": what}), file=stream, flush=True)

    for name, start, stop in json.loads(asked):
        target = targets[name]
        say(name, start)  # making its files may compile too
        seeds = target.seeds()
        for case in range(start, stop):
            valid = 0 <= case < len(seeds)
            say(name, case, valid)
            file, content = file_of(target, seeds, seed, case)
            what = attempt(target, file, content, valid)
            if what:
                say(name, case, what=what)
    say("", 0)


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
