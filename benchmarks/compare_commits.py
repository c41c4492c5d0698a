"""Does a change of the source change anything for users? Two source trees run in turns, and what comes out is compared.

    python benchmarks/compare_commits.py OLD NEW [--work DIR] [--only linear,crf] [--parts compiled,commands]

OLD and NEW are checkouts. Everything goes through public names (`hogwild`, `hogwild.estimators`, `hogwild.theory`) and
the command line, so that the same code runs both (`compare_child.py`, with the cases of `compare_cases.py`). The parts:

surface      public names and their parameters
compiled     programs trained in modes `serial` and `round-robin` (2 and 3 workers): SHA-256 of all saved weights, of
             the saved configuration and of predictions; metrics; models of OLD opened by NEW. Compiling is what takes
             time: --compile core has one or two kinds of each program, `kinds` nearly all, with one update rule each,
             and `all` every rule of every kind
interpreted  the same for every kind, more options and all update rules, without the compiler (NUMBA_DISABLE_JIT);
             estimators; theory
commands     every command with --json: keys, types, values, and the files that are written; errors; flags of --help
models       models, checkpoints of interrupted runs and feed caches that the commands of OLD have made, used by NEW

A line is `equal`, `note` (something was added, or is refused with one line) or `DIFFERENT`, which makes the exit status
1. --work keeps compiled code: the next comparison with the same OLD takes a third less time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare_cases import EPOCHS, HELP, LEVELS, PROGRAMS, TRAINED, WRONG, Command, commands, make_data, write

PARTS = ("surface", "compiled", "interpreted", "commands", "models")
VOLATILE = {"seconds", "throughput", "profile"}  # keys whose values differ from run to run
CHILD = Path(__file__).resolve().with_name("compare_child.py")

Answer = dict[str, Any]


# -- differences ----------------------------------------------------------------------------------------------------


def shape_of(value: Any, path: str = "") -> dict[str, set[str]]:
    """The types that stand at each path of keys; items of a list count as one, and so do keys that are numbers."""
    inner = value.items() if isinstance(value, dict) else [("[]", v) for v in value] if isinstance(value, list) else ()
    found = {path: {type(value).__name__}}
    for key, item in inner:
        for place, types in shape_of(item, f"{path}.{'0' if key.isdecimal() else key}".lstrip(".")).items():
            found.setdefault(place, set()).update(types)
    return found


def lasting(value: Any) -> Any:
    """The same without what differs from run to run."""
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in VOLATILE}
    return [lasting(item) for item in value] if isinstance(value, list) else value


def apart(old: Any, new: Any) -> list[str]:
    """The keys whose values differ."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else ["all"]
    return [key for key in {**old, **new} if lasting({key: old.get(key)}) != lasting({key: new.get(key)})]


def refusal(answer: Answer) -> str:
    """The one line by which a command refuses something, empty if there is more, or less."""
    lines = [line for line in answer.get("err", "").strip().splitlines() if not line.startswith("note: ")]
    return lines[0] if len(lines) == 1 and lines[0].startswith("hogwild: error: ") else ""


def flags_of(answer: Answer) -> set[str]:
    """The flags that a page of help lists, or that a script of completion knows."""
    text = answer.get("out", "")
    listed = "\n".join(line for line in text.splitlines() if line.startswith("│ -"))
    return set(re.findall(r"--[a-z][a-z0-9-]*", listed or text))


class Report:
    """Prints a line for each comparison, and counts."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.counts = quiet, dict.fromkeys(("equal", "note", "DIFFERENT"), 0)

    def line(self, verdict: str, what: str, detail: str = "") -> None:
        """One line."""
        self.counts[verdict] += 1
        if verdict != "equal" or not self.quiet:
            print(f"{verdict:9}  {what:60} {detail}".rstrip(), flush=True)

    def records(self, part: str, old: Answer, new: Answer) -> None:
        """Digests and numbers by name."""
        if "failed" in old or "failed" in new:
            self.line("DIFFERENT", part, f"{old.get('failed', 'done')} -> {new.get('failed', 'done')}")
            return
        for name in {**old, **new}:
            one = old.get(name, {})
            keys = apart(one, new.get(name, {}))
            shown = one.get("weights") or one.get("predictions", "")
            self.line("DIFFERENT" if keys else "equal", f"{part}: {name}", ", ".join(keys) or shown)

    def shapes(self, what: str, old: Any, new: Any) -> None:
        """Keys and types of JSON values."""
        one, other = shape_of(old), shape_of(new)
        gone, added = sorted(one.keys() - other.keys()), sorted(other.keys() - one.keys())
        changed = sorted(key for key in one.keys() & other.keys() if one[key] != other[key])
        grave = [key for key in changed if one[key] ^ other[key] != {"NoneType"}]
        if gone:
            self.line("DIFFERENT", what, f"keys gone: {', '.join(gone)}")
        if changed:
            told = "; ".join(f"{key} {'|'.join(one[key])} -> {'|'.join(other[key])}" for key in changed)
            self.line("DIFFERENT" if grave else "note", what, f"types: {told}")
        if added:
            self.line("note", what, f"keys added: {', '.join(added)}")
        if not (gone or changed or added):
            self.line("equal", what, f"{len(one)} keys")

    def answers(self, what: str, old: Answer, new: Answer, same: bool = True, refusable: bool = False) -> None:
        """What a command said and wrote; refusable: one line of refusal is no difference."""
        if "failed" in old or "failed" in new or old["code"]:
            told = [one.get("failed") or f"exit code {one['code']}: {one['err'].strip()}" for one in (old, new)]
            self.line("DIFFERENT", what, " -> ".join(told))
            return
        if new["code"]:
            verdict = "note" if refusable and refusal(new) else "DIFFERENT"
            self.line(verdict, what, f"refused: {refusal(new) or new['err'].strip()}")
            return
        one, other = ({**a["files"], **json.loads(a["out"] or "{}")} for a in (old, new))
        keys = apart(one, other) if same else []
        if keys:
            self.line("DIFFERENT", what, f"values: {', '.join(keys)}")
        if not keys or shape_of(one) != shape_of(other):
            self.shapes(what, one, other)


# -- children -------------------------------------------------------------------------------------------------------


class Child:
    """A process that runs one tree. Requests go to it one at a time, and nothing else runs meanwhile."""

    def __init__(self, tree: Path, place: Path, jit: bool) -> None:
        self.tree, self.place = tree, place
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("HOGWILD", "NUMBA", "PYTHON"))}
        self.environment = {
            **plain, "PYTHONPATH": str(tree / "src"), "PYTHONWARNINGS": "ignore", "HOGWILD_CACHE": str(place / "cache"),
            "NUMBA_CACHE_DIR": str(place / "code"), **({} if jit else {"NUMBA_DISABLE_JIT": "1"}),
        }  # fmt: skip
        self.process: subprocess.Popen[str] | None = None

    def ask(self, do: str, **request: Any) -> Answer:
        """The answer to a request."""
        process = self.process or self._start()
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"do": do, **request}), file=process.stdin, flush=True)
        line = process.stdout.readline() if process.stdout else ""
        if line:
            return dict(json.loads(line))
        self.process = None
        return {"failed": f"the process ended with {process.wait()}"}

    def run(self, line: str, folder: Path, cache: Path | None = None) -> Answer:
        """What a command line says and writes."""
        return self.ask("command", line=line, folder=str(folder), cache=str(cache or self.place / "cache"))

    def _start(self) -> subprocess.Popen[str]:
        self.place.mkdir(parents=True, exist_ok=True)
        with open(self.place / "child.log", "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(CHILD)], env=self.environment, text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        home = json.loads((self.process.stdout.readline() if self.process.stdout else "") or '"nowhere"')
        if not Path(home).is_relative_to(self.tree / "src"):
            raise SystemExit(f"hogwild is not imported from {self.tree / 'src'}, but from {home}")
        return self.process

    def interrupt(self, line: str, folder: Path, output: str) -> str:
        """Run a command in a process of its own until it has a checkpoint, and send Ctrl-C; what went wrong, if any."""
        command = [sys.executable, "-m", "hogwild", *line.split()]
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env=self.environment, cwd=folder, text=True, **pipes)
        while process.poll() is None and not (folder / f"{output}.checkpoint").exists():
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1].strip()
        return "" if process.returncode == 130 else f"exit code {process.returncode}: {said[-200:]}"

    def close(self) -> None:
        """End it."""
        if self.process is not None and self.process.stdin:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


# -- the comparison -------------------------------------------------------------------------------------------------


class Comparison:
    """Both trees, and where their files are."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options, self.work, self.report = options, work, Report(options.quiet)
        self.trees = [Path(tree).resolve() for tree in (options.old, options.new)]
        self.wanted = set(options.only.split(",")) if options.only else {*PROGRAMS, "estimators", "other"}

    @contextlib.contextmanager
    def children(self, jit: bool) -> Iterator[list[Child]]:
        """A child for each tree."""
        found = [Child(tree, self.work / side, jit) for tree, side in zip(self.trees, ("old", "new"), strict=True)]
        try:
            yield found
        finally:
            for child in found:
                child.close()

    def surface(self) -> None:
        """Public names and their parameters."""
        with self.children(jit=False) as children:
            old, new = (child.ask("describe") for child in children)
        if "failed" in old or "failed" in new:
            self.report.records("surface", old, new)
            return
        for name in old:
            if old[name] != new.get(name):
                fewer = name not in new or not set(old[name]) <= set(new[name])
                told = f"{old[name]} -> {new.get(name, 'gone')}"
                self.report.line("DIFFERENT" if fewer else "note", f"surface: {name}", told)
        self.report.line("equal", "surface", f"{sum(old[name] == new.get(name) for name in old)} names")
        if added := sorted(new.keys() - old.keys()):
            self.report.line("note", "surface: names added", ", ".join(added))

    def programs(self, compiled: bool) -> None:
        """Weights and predictions."""
        part, level = ("compiled", self.options.compile) if compiled else ("interpreted", "all")
        data, example = self.work / ("data" if compiled else "small"), self.trees[0] / "examples" / "own_program.py"
        with self.children(jit=compiled) as children:
            for program in PROGRAMS:
                if program not in self.wanted:
                    continue
                of = {"program": program, "data": str(data), "example": str(example)}
                places = [child.place / part / program for child in children]
                answers = []
                for child, place in zip(children, places, strict=True):
                    shutil.rmtree(place, ignore_errors=True)
                    answers.append(child.ask("train", of=of, place=str(place), level=level, compiled=compiled))
                self.report.records(part, *answers)
                if compiled:
                    opened = [child.ask("reopen", of=of, place=str(places[0]), level=level) for child in children]
                    self.report.records("model of OLD", *opened)
            if "estimators" in self.wanted and not compiled:
                self.report.records("estimators", *(child.ask("estimate") for child in children))

    def commands(self, parts: set[str]) -> None:
        """Every command; then what OLD has made, in the hands of NEW."""
        with self.children(jit=self.options.compile == "all") as children:
            folders = [child.place / "run" for child in children]
            for child, folder in zip(children, folders, strict=True):
                shutil.rmtree(folder, ignore_errors=True)
                shutil.rmtree(child.place / "cache", ignore_errors=True)
                shutil.copytree(self.work / "small", folder / "data")
                options = ("schedule = 'inverse'", "optimizer = 'sgd'", "categories = 'hash'", "hash-bits = 8")
                write(folder / "options.toml", options)
                write(folder / "pairs.tsv", ["w1\tw2\t8", "w3\tw50\t1", "w4\tw5\t7", "w6\tw40\t2"])
                write(folder / "questions.txt", [": all", "w1 w2 w3 w4", "w5 w6 w7 w8"])
            first: dict[Command, Answer] = {}
            last = [command for command in commands() if command.line.startswith("cache clear")]
            for command in commands():
                if command.program in self.wanted and command not in last:
                    first[command] = children[0].run(command.line, folders[0])
                    if "commands" in parts:
                        new = children[1].run(command.line, folders[1])
                        self.report.answers(command.line, first[command], new, command.same)
            if "models" in parts:
                self.models(children, first, folders[0])
            if "commands" in parts and "other" in self.wanted:
                for command in last:
                    answers = [child.run(command.line, at) for child, at in zip(children, folders, strict=True)]
                    self.report.answers(command.line, *answers, same=False)
                self.words(children, folders)

    def words(self, children: list[Child], folders: list[Path]) -> None:
        """Wrong use is told in the same words; no flag of a help page is gone."""
        pages = [f"{words} --help".strip() for words in HELP]
        for line in (*WRONG, *pages, "completion bash", "completion zsh", "completion fish", "--version"):
            old, new = (child.run(line, folder) for child, folder in zip(children, folders, strict=True))
            flags = flags_of(old), flags_of(new)
            if old == new:
                told = old.get("err", "").strip() or f"{len(flags[0])} flags"
                self.report.line("equal", line, told.splitlines()[0])
            elif line in WRONG or old.get("code") != new.get("code"):
                told = " -> ".join(answer.get("err", answer.get("failed", "")).strip() for answer in (old, new))
                self.report.line("DIFFERENT", line, told)
            elif gone := sorted(flags[0] - flags[1]):
                self.report.line("DIFFERENT", line, f"flags gone: {', '.join(gone)}")
            else:
                added = ", ".join(sorted(flags[1] - flags[0])) or "none"
                self.report.line("note", line, f"other words; flags added: {added}")

    def models(self, children: list[Child], first: dict[Command, Answer], folder: Path) -> None:
        """NEW gets copies of the models, the interrupted runs and the feed cache of OLD."""
        old, new = children
        shutil.rmtree(self.work / "cross", ignore_errors=True)
        cross, cache = self.work / "cross" / "run", self.work / "cross" / "cache"
        long = f"--mode serial --epochs {EPOCHS} --checkpoint-every 1epoch --json"
        longer = {
            model: f"train {words} {long} --output {model}-long"
            for model, (program, words, _) in TRAINED.items() if program in self.wanted
        }  # fmt: skip
        stopped = {model: old.interrupt(line, folder, f"{model}-long") for model, line in longer.items()}
        shutil.copytree(folder, cross)
        shutil.copytree(old.place / "cache", cache)
        before = kept(new.run("cache --feeds --json", cross, cache))
        for command, answer in first.items():
            if command.uses:
                again = new.run(command.line, cross, cache)
                self.report.answers(f"model of OLD: {command.line}", answer, again, refusable=True)
        for model, line in longer.items():
            whole = next(answer for command, answer in first.items() if f"--output {model}-whole " in command.line)
            again = new.run(f"{line} --resume", cross, cache)
            self.resumed(model, whole, again, stopped[model])
        made = len(kept(new.run("cache --feeds --json", cross, cache)) - before)
        told = f"{len(before)} kept by OLD, {made or 'none'} made again by NEW"
        self.report.line("note" if made else "equal", "feed caches of OLD", told)

    def resumed(self, model: str, whole: Answer, again: Answer, trouble: str) -> None:
        """A run that OLD began and NEW has finished gives the weights of one that OLD has made without a break."""
        what = f"checkpoint of OLD: {model}"
        if trouble:
            self.report.line("DIFFERENT", what, f"the run of OLD was not interrupted in its midst: {trouble}")
        elif again.get("code") != 0:
            said = refusal(again)
            self.report.line("note" if said else "DIFFERENT", what, f"refused: {said or again}")
        else:
            weights = whole["files"][f"{model}-whole"]["weights"]
            same = again["files"][f"{model}-long"]["weights"] == weights
            self.report.line("equal" if same else "DIFFERENT", what, weights if same else "other weights than before")


def kept(answer: Answer) -> set[str]:
    """The keys of encoded data in a cache."""
    return {entry["key"] for entry in json.loads(answer["out"])["entries"]}


def main() -> None:
    """Compare; exit status 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", type=Path, help="source tree before")
    parser.add_argument("new", metavar="NEW", type=Path, help="source tree after")
    parser.add_argument("--only", default="", help=f"programs, with commas: {','.join(PROGRAMS)},estimators,other")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts, with commas (default: all)")
    parser.add_argument("--compile", default="core", choices=LEVELS, help="how much is compiled; `all`: commands too")
    parser.add_argument("--work", type=Path, help="keep data, models and compiled code in this folder")
    parser.add_argument("--quiet", action="store_true", help="no lines for what is equal")
    options = parser.parse_args()
    parts = set(options.parts.split(","))
    if parts - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        make_data(work / "data", 150)
        make_data(work / "small", 20)
        comparison = Comparison(options, work)
        steps = {
            "surface": comparison.surface,
            "compiled": lambda: comparison.programs(compiled=True),
            "interpreted": lambda: comparison.programs(compiled=False),
            "commands": lambda: comparison.commands(parts),
        }
        for name, step in steps.items():
            if name in parts or (name == "commands" and "models" in parts):
                began = time.perf_counter()
                step()
                print(f"           {name}: {time.perf_counter() - began:.0f} s", flush=True)
    counts = comparison.report.counts
    print(f"{counts['equal']} equal, {counts['note']} notes, {counts['DIFFERENT']} different")
    sys.exit(1 if counts["DIFFERENT"] else 0)


if __name__ == "__main__":
    main()
