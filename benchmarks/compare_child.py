"""One source tree at work for `compare_commits.py`: trains, predicts and runs commands as it is asked to.

The tree is the one that PYTHONPATH names. Requests come as lines of JSON on standard input, and answers go to standard
output. Of hogwild only public names and the command line are used.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import json
import os
import re
import runpy
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from compare_cases import PROGRAMS, RATES, RUNS, WITHOUT_RULES, Kind
from safetensors.numpy import load_file

import hogwild


class Programs:
    """Trains the kinds of a program on data in a folder.

    example: the file of the program that docs/guide-own.md explains.
    """

    def __init__(self, program: str, data: str, example: str) -> None:
        self.program, self.data, self.example = program, Path(data), example

    def train(self, place: str, level: str, compiled: bool) -> dict[str, Any]:
        """Train kinds with update rules in all modes; digests, metrics and losses by name."""
        found: dict[str, Any] = {}
        for kind in PROGRAMS[self.program][1]:
            rules = self.rules(kind, level)
            feed = self.open(kind) if rules else None
            for rule in rules:
                for mode, threads in RUNS if kind.rule else RUNS[::2]:
                    name = f"{self.program}, {kind.name}, {rule}, {mode} {threads}"
                    made = self.make(kind, rule)
                    executor = hogwild.AsyncExecutor(threads=threads, mode=mode, epochs=1 + compiled, seed=3)
                    events = executor.run(made, feed, lr=RATES.get(rule, 0.05))
                    losses = [event.loss for event in events if event.kind == "epoch"]
                    folder = Path(place) / plain(name)
                    hogwild.save_model(folder, made, feed_schema=getattr(feed, "schema", None))
                    found[name] = {**digests_of(folder), **answers_of(made, feed, compiled), "losses": losses}
        return found

    def reopen(self, place: str, level: str) -> dict[str, Any]:
        """Load the models that serial runs of some tree have saved, and predict."""
        found: dict[str, Any] = {}
        for kind in PROGRAMS[self.program][1]:
            for rule in self.rules(kind, level):
                name = f"{self.program}, {kind.name}, {rule}"
                own = self.make(kind, rule) if self.program == "own" else None
                model = hogwild.load_model(Path(place) / plain(f"{name}, serial 1"), own)
                found[name] = answers_of(model.program, self.open(kind), True)
        return found

    def rules(self, kind: Kind, level: str) -> list[str]:
        """Update rules to train a kind with at a level; none, one or all."""
        if level == "all":
            return ["-"] if self.program in WITHOUT_RULES else list(RATES)
        return [kind.rule] if kind.core or (kind.rule and level == "kinds") else []

    def make(self, kind: Kind, rule: str) -> Any:
        """A program without weights."""
        if self.program == "own":
            return self.own().make_program()
        options = kind.options if rule == "-" else {**kind.options, "optimizer": rule}
        return getattr(hogwild, PROGRAMS[self.program][0])(**options)

    def own(self) -> Any:
        """The module of the guide's example."""
        if "own_program" not in sys.modules:
            about: Any = importlib.util.spec_from_file_location("own_program", self.example)
            sys.modules["own_program"] = importlib.util.module_from_spec(about)
            about.loader.exec_module(sys.modules["own_program"])
        return sys.modules["own_program"]

    def open(self, kind: Kind) -> Any:
        """A feed of the kind that the name of its file, and what stands after a colon, call for."""
        file, _, way = kind.data.partition(":")
        path = self.data / file
        if not file:
            return self.own().make_ratings(600, seed=1)
        if file in ("ratings.csv", "lists.txt"):
            return hogwild.open_ratings(path)
        if file == "tagged.txt":
            return hogwild.open_tagging(path)
        if file == "text.txt":
            return hogwild.open_corpus(path, hogwild.CorpusConfig(min_count=2))
        if way == "dense":
            rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
            return hogwild.feed_of(np.array([row[3:] for row in rows], float), [row[0] for row in rows])
        options: dict[str, Any] = {"slots": {"layout": "slots"}, "words": {"ngrams": 1}}.get(way, {})
        return hogwild.open_feed(path, hogwild.FeedConfig(**options, hash_bits=10))


def answers_of(program: Any, feed: Any, compiled: bool) -> dict[str, Any]:
    """Predictions, as a digest, and metrics."""
    said: list[Any] = []
    for name in ("predict", "predict_proba") if compiled else ("predict", "predict_proba", "marginals"):
        if hasattr(program, name):
            with contextlib.suppress(hogwild.ConfigError):  # hinge has no chances
                said.append(getattr(program, name)(feed))
    if hasattr(program, "nbest") and not compiled:
        said.append(program.nbest(feed, 2))
    if hasattr(program, "recommend"):
        said.append([program.recommend(user, 3) for user in (*feed.users[:3], "nobody")])
    if hasattr(program, "vectors"):
        said += [program.vectors.matrix, program.vectors.most_similar("w1", topn=3)]
    return {"predictions": digest(said), "metrics": program.evaluate(feed)}


def estimate() -> dict[str, Any]:
    """Estimators and the theory: what is learnt, as digests."""
    from hogwild import theory
    from hogwild.estimators import CRF, HogwildClassifier, HogwildRegressor

    draw, found = np.random.default_rng(5), dict[str, Any]()
    X = draw.normal(size=(50, 6))
    sentences = [[{"w": f"w{k}", "n": 0.5 * int(k)} for k in draw.integers(0, 5, 4)] for _ in range(8)]
    tags = [["AB"[int(token["n"] > 1)] for token in sentence] for sentence in sentences]
    for mode, jobs in RUNS:
        run: dict[str, Any] = {"mode": mode, "epochs": 2, "lr": 0.1, "random_state": 3}
        fits = {
            "two": HogwildClassifier(n_jobs=jobs, **run).fit(X, X[:, 0] > 0),
            "three": HogwildClassifier(n_jobs=jobs, loss="hinge", **run).fit(X, np.digitize(X[:, 1], (-0.5, 0.5))),
            "number": HogwildRegressor(n_jobs=jobs, **run).fit(X, X @ np.arange(6)),
        }
        for name, model in fits.items():
            said = {"weights": digest([model.coef_, model.intercept_]), "predictions": digest([model.predict(X)])}
            found[f"{name}, {mode} {jobs}"] = {**said, "losses": list(model.loss_curve_)}
        tagger = CRF(threads=jobs, **run).fit(sentences, tags)
        tables = tagger.state_features_, tagger.transition_features_
        learnt = [sorted(map(repr, table.items())) for table in tables]
        found[f"crf, {mode} {jobs}"] = {"weights": digest(learnt), "predictions": digest([tagger.predict(sentences)])}
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    objective = theory.objective_of(hogwild.Linear(l2=0.3, bias=False), hogwild.feed_of(X, X[:, 0] > 0))
    known = {"c": 0.1, "q": 0.11, "epsilon": 1e-4}
    terms = {**known, "kappa": 0.6, "tau": 1e-5}
    rates = [theory.learning_rate(**terms), theory.updates(**terms, a0=0.01), theory.largest_tau(**known)]
    check = theory.experiment(theory.Simulated(objective, delay=2, stale=0.5), epsilon=0.005, runs=1)
    return {**found, "theory": {"weights": digest([rates]), "metrics": check.record()}}


# -- the command line -----------------------------------------------------------------------------------------------


def run_command(line: str, folder: str, cache: str) -> dict[str, Any]:
    """`python -m hogwild LINE`, in this process: importing everything anew would take most of the time."""
    os.chdir(folder)
    os.environ["HOGWILD_CACHE"] = cache
    code = 0
    with caught() as said:
        sys.argv = ["hogwild", *line.split()]
        try:
            runpy.run_module("hogwild", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = int(end.code or 0)
    written = re.findall(r"--(?:output|profile|log-dir) (\S+)|^export \S+ (\S+)", line)
    paths = [Path(first or second) for first, second in written]
    told = {name: text.replace(folder, ".") for name, text in said.items()}
    return {"code": code, **told, "files": {str(path): kept_in(path) for path in paths if path.exists()}}


@contextlib.contextmanager
def caught() -> Iterator[dict[str, str]]:
    """What goes to standard output and standard error inside."""
    said: dict[str, str] = {}
    before = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            yield said
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, kept in zip((1, 2), before, strict=True):
                os.dup2(kept, number)
                os.close(kept)
            for name, file in (("out", out), ("err", err)):
                file.seek(0)
                said[name] = file.read().decode()


def kept_in(path: Path) -> Any:
    """What stands in a file or a directory: digests, or JSON as it is."""
    if (path / "config.json").is_file():
        return digests_of(path)
    if path.is_dir():
        events = map(json.loads, (path / "events.jsonl").read_text().splitlines())
        return {event["event"]: event for event in events}  # the last of each kind
    if path.suffix == ".json":
        return json.loads(path.read_text())
    return digest([path.read_bytes()])


def describe() -> dict[str, Any]:
    """Public names, with the names, kinds and defaults of their parameters."""
    from hogwild import estimators, theory

    found: dict[str, Any] = {}
    for title, module in {"hogwild": hogwild, "estimators": estimators, "theory": theory}.items():
        for name in module.__all__:
            value = getattr(module, name)
            inner = [key for key in dir(value) if not key.startswith("_")] if inspect.isclass(value) else []
            for key, member in ((name, value), *((f"{name}.{key}", getattr(value, key)) for key in inner)):
                known: list[inspect.Parameter] = []
                with contextlib.suppress(TypeError, ValueError):  # no function, or one of Python's own
                    known = list(inspect.signature(member).parameters.values())
                kinds = [f"{one.kind.name} {one.name} {one.default!r}" for one in known]
                found[f"{title}.{key}"] = [re.sub(r" at 0x\w+|[\w.]+\.(?=[A-Z])", "", kind) for kind in kinds]
    return found


# -- digests --------------------------------------------------------------------------------------------------------


def digest(values: Iterable[Any]) -> str:
    """SHA-256 of arrays, bytes, and what JSON can hold."""
    whole = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype != object:
            whole.update(f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        else:
            whole.update(value if isinstance(value, bytes) else json.dumps(value, default=listed).encode())
    return whole.hexdigest()


def digests_of(model: Path) -> dict[str, str]:
    """Of the directory of a model: all arrays by name and all vocabularies; and its configuration."""
    parts: list[Any] = []
    for path in sorted(model.iterdir()):
        if path.suffix == ".safetensors":
            parts += [part for name, array in sorted(load_file(path).items()) for part in (name, array)]
        elif path.suffix == ".txt":
            parts += [path.name, path.read_bytes()]
    options = json.loads((model / "config.json").read_text())
    del options["files"]  # digests of the others
    return {"weights": digest(parts), "configuration": digest([json.dumps(options, sort_keys=True)])}


def listed(value: Any) -> Any:
    """Arrays and NumPy's numbers for JSON."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def plain(name: str) -> str:
    """A name for a directory."""
    return re.sub(r"\W+", "-", name)


def main() -> None:
    """Answer until standard input ends."""
    if os.environ.get("NUMBA_DISABLE_JIT"):  # what is not compiled returns NumPy's numbers, which JSON does not know
        json.JSONEncoder.default = lambda self, value: listed(value)  # type: ignore[method-assign]
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    doing = {
        "train": lambda of, **how: Programs(**of).train(**how),
        "reopen": lambda of, **how: Programs(**of).reopen(**how),
        "estimate": estimate, "command": run_command, "describe": describe,
    }  # fmt: skip
    print(json.dumps(str(Path(str(hogwild.__file__)).resolve())), file=answers, flush=True)
    for line in requests:
        request = json.loads(line)
        try:
            answer = doing[request.pop("do")](**request)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=listed), file=answers, flush=True)


if __name__ == "__main__":
    main()
