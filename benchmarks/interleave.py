"""Is one source tree faster than another? Both are timed in turns, round after round, so that what disturbs one of them
disturbs the other too.

    python benchmarks/interleave.py OLD NEW [--rounds 5] [--only linear,crf] [--work DIR] [--json FILE]

OLD and NEW are checkouts. Each has a process for each task, which compiles once and then trains when it is told to; who
goes first changes from round to round. Only public names and the command line are used, so that one script runs both.
Settings are those of the benchmarks beside this file, with data from a seed. Seconds are of training alone, of reading
a file, or of a whole command. Processor seconds of all threads stand beside them: on a machine that others use too they
are the steadier of the two. A ratio whose range over the rounds does not hold 1 is marked (*); do not believe a single
mark, but repeat the task with more rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = 1 << 20
Timing = tuple[float, float]  # seconds by the clock, and of the processor
Work = Callable[[], Timing]


# -- data, made once for both trees -----------------------------------------------------------------------------------


def make_data(folder: Path, tasks: set[str]) -> None:
    """Files of the tasks."""
    random = np.random.default_rng(1)
    (folder / "tiny.svm").write_text("".join(svmlight_rows(random, 1000, 20, 500)))
    if "svmlight" in tasks:
        (folder / "file.svm").write_text("".join(svmlight_rows(random, 30_000, 50, FEATURES)))
    if "word2vec" in tasks:
        words = (30_000 ** random.random(1_000_000)).astype(int)
        lines = [" ".join(map("w{}".format, words[k : k + 1000])) for k in range(0, len(words), 1000)]
        (folder / "text.txt").write_text("\n".join(lines) + "\n")
    if "crf" in tasks:
        (folder / "tagged.txt").write_text("".join(tagged_lines(random, 2000)))


def svmlight_rows(random: np.random.Generator, rows: int, nonzeros: int, features: int) -> Iterator[str]:
    """Ids from a skewed distribution, as words have; values of six digits."""
    for _ in range(rows):
        ids = np.unique((features ** random.random(random.poisson(nonzeros) + 1)).astype(int))
        values = random.normal(size=len(ids)).tolist()
        entries = " ".join(f"{i}:{v:.6g}" for i, v in zip(ids.tolist(), values, strict=True))
        yield f"{'+1' if random.random() < 0.5 else '-1'} {entries}\n"


def tagged_lines(random: np.random.Generator, sentences: int) -> Iterator[str]:
    """Words, parts of speech and tags of phrases, in columns."""
    kinds = ("NP", "VP", "PP", "ADVP", "O")
    for _ in range(sentences):
        before = "O"
        for _ in range(int(random.integers(5, 40))):
            kind = kinds[int(5 * random.random() ** 1.5)]
            tag = kind if kind == "O" else f"{'I' if kind == before else 'B'}-{kind}"
            before = kind
            yield f"{kind.lower()}{int(2000 ** random.random())} {kind[0]}{int(random.integers(4))} {tag}\n"
        yield "\n"


def sparse_matrix(rows: int, nonzeros: tuple[int, int], features: int) -> Any:
    """Rows of length one with features as frequent as words of a text."""
    import scipy.sparse as sp

    random = np.random.default_rng(2)
    lengths = random.integers(*nonzeros, rows)
    ids = (features ** random.random(int(lengths.sum()))).astype(np.int32) - 1
    matrix = sp.csr_matrix((random.random(len(ids)).astype(np.float32), ids, np.append(0, np.cumsum(lengths))),
                           shape=(rows, features))  # fmt: skip
    matrix.sum_duplicates()
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix.data /= np.repeat(norms, np.diff(matrix.indptr)).astype(np.float32)
    return matrix


# -- tasks, inside of a child: the only code that imports hogwild -----------------------------------------------------


def trained(make: Callable[[], Any], feed: Any, **options: Any) -> Work:
    """Training of a new program each time, without what is compiled and prepared."""
    import hogwild

    def work() -> Timing:
        began = seconds = 0.0
        for event in hogwild.AsyncExecutor(**options).run(make(), feed):
            if event.kind == "started":
                began = time.process_time()
            if event.kind == "finished":
                seconds = event.train_seconds
        return seconds, time.process_time() - began

    return work


def linear(folder: Path) -> dict[str, Work]:
    """As benchmarks/linear.py."""
    import hogwild

    matrix = sparse_matrix(50_000, (50, 150), FEATURES)
    truth = np.random.default_rng(3).normal(size=FEATURES)
    feed = hogwild.feed_of(matrix, matrix @ truth > 0)
    found = {}
    for rule, lr in (("adagrad", 0.5), ("sgd", 2.0)):
        make = make_of("Linear", loss="logistic", optimizer=rule)
        found[f"{rule}, 1 thread"] = trained(make, feed, threads=1, sharing="all", epochs=3, lr=lr)
        found[f"{rule}, 2 threads"] = trained(make, feed, threads=2, sharing="hot", epochs=3, lr=lr)
    return found


def word2vec(folder: Path) -> dict[str, Work]:
    """As benchmarks/word2vec.py."""
    import hogwild

    corpus = hogwild.open_corpus(folder / "text.txt")
    common: dict[str, Any] = {"epochs": 1, "lr_end": 0.17, "shuffle": False, "sharing": "all"}
    skip_gram, cbow = make_of("Word2Vec", dim=100), make_of("Word2Vec", dim=100, cbow=True)
    return {
        "skip-gram, 1 thread": trained(skip_gram, corpus, threads=1, lr=0.025, **common),
        "skip-gram, 2 threads": trained(skip_gram, corpus, threads=2, lr=0.025, **common),
        "cbow, 1 thread": trained(cbow, corpus, threads=1, lr=0.15, **common),
        "cbow, 2 threads": trained(cbow, corpus, threads=2, lr=0.15, **common),
    }


def crf(folder: Path) -> dict[str, Work]:
    """As benchmarks/crf.py."""
    import hogwild

    feed = hogwild.open_tagging(folder / "tagged.txt", hogwild.TaggingConfig(features="chunking"))
    found = {}
    for name, rich in (("plain", False), ("rich edges", True)):
        make = make_of("CRF", rich_edges=rich)
        found[f"{name}, 1 thread"] = trained(make, feed, threads=1, epochs=2, lr=0.05)
        found[f"{name}, 2 threads"] = trained(make, feed, threads=2, epochs=2, lr=0.05, sharing="all")
    return found


def sparse_mlp(folder: Path) -> dict[str, Work]:
    """As benchmarks/sparse_mlp.py."""
    import hogwild

    matrix = sparse_matrix(20_000, (10, 100), 1_000_000)
    feed = hogwild.feed_of(matrix, np.random.default_rng(4).integers(0, 10, matrix.shape[0]))
    make = make_of(
        "SparseMLP", dim=128, hidden=(64,), lookup_activation="relu", optimizer="sgd", batch_size=32, init=0.005
    )
    common: dict[str, Any] = {"epochs": 1, "lr": 0.001, "sharing": "all"}
    return {
        "1 thread": trained(make, feed, threads=1, **common),
        "2 threads": trained(make, feed, threads=2, **common),
    }


def svmlight(folder: Path) -> dict[str, Work]:
    """As benchmarks/svmlight.py, by the public door: reading without a cache, and what is found in the cache."""
    import hogwild

    path = folder / "file.svm"
    hogwild.open_feed(path)

    def reading(cache: bool) -> Work:
        return lambda: clocked(lambda: hogwild.open_feed(path, hogwild.FeedConfig(cache=cache)), time.process_time)

    return {"read": reading(False), "open, cached": reading(True)}


def startup(folder: Path) -> dict[str, Work]:
    """As benchmarks/startup.py: processes, with compiled code at hand."""

    def command(*words: str) -> Work:
        line = [sys.executable, *words]
        return lambda: clocked(lambda: subprocess.run(line, capture_output=True, check=True), of_children)

    train = ("-m", "hogwild", "train", "classifier", str(folder / "tiny.svm"), "--epochs", "2", "--json", "--quiet")
    return {
        "python -c 'import hogwild'": command("-c", "import hogwild"),
        "hogwild --help": command("-m", "hogwild", "--help"),
        "hogwild train classifier --help": command("-m", "hogwild", "train", "classifier", "--help"),
        "hogwild train classifier, tiny": command(*train),
    }


def make_of(name: str, **options: Any) -> Callable[[], Any]:
    """Makes programs."""
    import hogwild

    return lambda: getattr(hogwild, name)(**options)


def clocked(call: Callable[[], Any], processor: Callable[[], float]) -> Timing:
    """Seconds of a call."""
    began, busy = time.perf_counter(), processor()
    call()
    return time.perf_counter() - began, processor() - busy


def of_children() -> float:
    """Processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


TASKS: dict[str, Callable[[Path], dict[str, Work]]] = {
    "linear": linear, "word2vec": word2vec, "crf": crf, "sparse_mlp": sparse_mlp, "svmlight": svmlight,
    "startup": startup,
}  # fmt: skip


def serve(task: str, folder: str) -> None:
    """Say what there is, then time what is asked for, a line each."""
    import hogwild

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    works = TASKS[task](Path(folder))
    print(json.dumps([str(Path(str(hogwild.__file__)).resolve()), list(works)]), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(works[line.rstrip("\n")]()), file=answers, flush=True)


# -- the comparison -------------------------------------------------------------------------------------------------


class Child:
    """A process that has one tree at hand for one task."""

    def __init__(self, tree: Path, place: Path, task: str, data: Path) -> None:
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("HOGWILD", "NUMBA", "PYTHON"))}
        environment = {**plain, "PYTHONPATH": str(tree / "src"), "HOGWILD_CACHE": str(place)}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", task, str(data)], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        home, self.names = self._answer()
        if not Path(home).is_relative_to(tree / "src"):
            raise SystemExit(f"hogwild is not imported from {tree / 'src'}, but from {home}")

    def _answer(self) -> Any:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise SystemExit(f"a process ended with exit code {self.process.wait()}")
        return json.loads(line)

    def time(self, name: str) -> Timing:
        """Do it once."""
        print(name, file=self.process.stdin, flush=True)
        clock, processor = self._answer()
        return clock, processor

    def close(self) -> None:
        """End it."""
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


def compare(children: list[Child], name: str, rounds: int) -> dict[str, Any]:
    """Seconds of both trees in turns; the first turn of each, which compiles, does not count."""
    timings: list[list[Timing]] = [[child.time(name)] for child in children]
    for number in range(rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            timings[side].append(children[side].time(name))
    found: dict[str, Any] = {}
    for place, clock in enumerate(("seconds", "processor")):
        old, new = ([timing[place] for timing in one[1:]] for one in timings)
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        found[clock] = {
            "old": statistics.median(old), "new": statistics.median(new), "ratio": statistics.median(ratios),
            "least": min(ratios), "most": max(ratios), "all": {"old": old, "new": new},
        }  # fmt: skip
    return found


def show(title: str, found: dict[str, Any]) -> None:
    """One line."""
    cells = []
    for clock in ("seconds", "processor"):
        one = found[clock]
        mark = " " if one["least"] <= 1 <= one["most"] else "*"
        cells.append(f"{one['ratio']:6.3f} ({one['least']:.3f}..{one['most']:.3f}){mark}")
    seconds = found["seconds"]
    print(f"{title:42}{seconds['old']:9.4f}{seconds['new']:9.4f}  {cells[0]:24}  {cells[1]}", flush=True)


def main() -> None:
    """Print a table; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", type=Path, help="source tree before")
    parser.add_argument("new", metavar="NEW", type=Path, help="source tree after")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each that count")
    parser.add_argument("--only", default=",".join(TASKS), help="tasks, with commas (default: all)")
    parser.add_argument("--work", type=Path, help="keep compiled code in this folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    options = parser.parse_args()
    tasks = options.only.split(",")
    if set(tasks) - set(TASKS):
        parser.error(f"tasks are {', '.join(TASKS)}")
    results: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg(), "rounds": options.rounds, "tasks": {}}
    print(f"{'median seconds':>60}\n{'':42}{'OLD':>9}{'NEW':>9}  {'NEW / OLD':24}  NEW / OLD, processor")
    with tempfile.TemporaryDirectory() as temporary:
        work, data = (options.work or Path(temporary)).resolve(), Path(temporary)
        make_data(data, set(tasks))
        for task in tasks:
            trees = {"old": options.old.resolve(), "new": options.new.resolve()}
            children = [Child(tree, work / f"interleave-{side}", task, data) for side, tree in trees.items()]
            try:
                for name in children[0].names:
                    found = results["tasks"][f"{task}: {name}"] = compare(children, name, options.rounds)
                    show(f"{task}: {name}", found)
            finally:
                for child in children:
                    child.close()
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
