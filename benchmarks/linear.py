"""Logistic regression: our sharings at one and two threads against scikit-learn and Vowpal Wabbit, in one run.

Contestants take turns, round after round, and the best time of each counts: compare the ratios, not the seconds.
Times are of training alone; reading, compiling and evaluating stand apart. The time to a loss is the end of the first
epoch whose held-out log loss is at most half a percent above it, which is less than seeds differ by.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from imdb import FEATURES, HOME, Split, load_imdb

import hogwild
from hogwild.config import SparseConfig
from hogwild.feeds.synthetic.sparse import make_rows
from hogwild.feeds.synthetic.truth import Truth

EPOCHS = 5
SAME = 1.005  # losses that differ by less are the same
# Update rule and learning rate of ours, for any number of threads: the best of a few on one thread.
PROBLEMS = {"imdb": ("adagrad", 0.5), "zipf": ("sgd", 2.0), "uniform": ("sgd", 2.0)}
SHARINGS = ("all", "hot", "replica", "auto")


class Point(NamedTuple):
    """Where a model stands at the end of an epoch."""

    seconds: float
    logloss: float
    accuracy: float


@dataclass
class Contestant:
    """One way to train. train() yields a Point for each epoch; the best seconds of all rounds are kept."""

    name: str
    train: Callable[[], Iterator[Point]]
    seconds: list[float] = field(default_factory=lambda: [float("inf")] * EPOCHS)
    losses: list[list[float]] = field(default_factory=lambda: [[] for _ in range(EPOCHS)])
    accuracies: list[float] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def take_turn(self, counts: bool) -> None:
        """Train once; the first turn, which compiles and fills caches, does not count for the time."""
        for epoch, point in enumerate(self.train()):
            if counts:
                self.seconds[epoch] = min(self.seconds[epoch], point.seconds)
                self.losses[epoch].append(point.logloss)
        self.accuracies += [point.accuracy] if counts else []

    @property
    def curve(self) -> list[float]:
        """Held-out log loss at the end of each epoch, the mean of all rounds."""
        return [float(np.mean(losses)) for losses in self.losses]

    def time_to(self, loss: float) -> float:
        """Seconds to the end of the first epoch with a held-out loss this low."""
        reached = [seconds for seconds, here in zip(self.seconds, self.curve, strict=True) if here <= SAME * loss]
        return reached[0] if reached else float("inf")


def judge(scores: Any, labels: Any, seconds: float) -> Point:
    """Held-out quality of raw scores, where labels are -1 and 1."""
    margins = scores.astype(np.float64) * labels
    return Point(seconds, float(np.logaddexp(0, -margins).mean()), float((margins > 0).mean()))


# -- contestants ----------------------------------------------------------------------------------------------------


def ours(split: Split, feeds: tuple[Any, Any], options: dict[str, Any], notes: dict[str, Any]) -> Iterator[Point]:
    """One run of the executor, evaluated where the workers are parked after each epoch."""
    program = hogwild.Linear(loss="logistic", optimizer=options["optimizer"])
    executor = hogwild.AsyncExecutor(threads=options["threads"], sharing=options["sharing"])
    called = time.perf_counter()
    for event in executor.run(program, feeds[0], epochs=EPOCHS, lr=options["lr"], valid=feeds[1]):
        if event.kind == "started":
            notes["lr"], notes["sharing"] = event.lr, event.sharing
            notes["compile_seconds"] = max(event.compile_seconds, notes.get("compile_seconds", 0.0))
            ready = time.perf_counter() - called - event.compile_seconds
            notes["prepare_seconds"] = min(ready, notes.get("prepare_seconds", ready))
        if event.kind == "epoch":
            yield Point(event.seconds, event.metrics["logloss"], event.metrics["accuracy"])


def scikit(split: Split) -> Iterator[Point]:
    """SGDClassifier for one epoch, then for two, and so on: a call for each epoch would check the data each time."""
    from sklearn.linear_model import SGDClassifier

    for epochs in range(1, EPOCHS + 1):
        model = SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=epochs, tol=None, random_state=1)
        began = time.perf_counter()
        model.fit(split.rows, split.labels)
        seconds = time.perf_counter() - began
        yield judge(model.decision_function(split.test_rows), split.test_labels, seconds)


def vowpal(split: Split, folder: Path) -> Iterator[Point]:
    """Vowpal Wabbit from its cache of parsed rows, for one pass, then for two, and so on."""
    from vowpalwabbit import Workspace

    model, scores = folder / "model", folder / "scores"
    source = f"-d {folder / 'train'} --cache_file {folder / 'cache'}"
    options = f"-b {FEATURES.bit_length() - 1} --loss_function logistic --holdout_off --quiet"
    for passes in range(1, EPOCHS + 1):
        began = time.perf_counter()
        Workspace(f"{source} --passes {passes} -f {model} {options}").finish()
        seconds = time.perf_counter() - began
        Workspace(f"-d {folder / 'test'} -t -i {model} -r {scores} --quiet").finish()
        raw = np.array([float(line.split()[0].split(":")[-1]) for line in scores.read_text().splitlines()])
        yield judge(raw, split.test_labels, seconds)


def write_vowpal(path: Path, rows: Any, labels: Any) -> None:
    """Rows in the text form of Vowpal Wabbit; names that are numbers are not hashed."""
    with open(path, "w") as file:
        for row, label in enumerate(labels):
            inside = slice(rows.indptr[row], rows.indptr[row + 1])
            pairs = zip(rows.indices[inside].tolist(), rows.data[inside].tolist(), strict=True)
            file.write(f"{int(label)} | {' '.join(f'{i}:{v:.7g}' for i, v in pairs)}\n")


# -- problems -------------------------------------------------------------------------------------------------------


def synthetic(distribution: Any, rows: int = 50_000, nonzeros: int = 100) -> Split:
    """A problem from a seed, with 10 % of the labels wrong; rows have length one, as those of text."""
    # Where all features are alike there must be few, or nobody sees one often enough to learn it.
    features = FEATURES if distribution == "zipf" else FEATURES >> 5
    parts: list[Any] = []
    for part, count in ((0, rows), (1, rows // 4)):
        config = SparseConfig(count, features, str(nonzeros), distribution, part=part)
        runs = list(make_rows(config, Truth()))
        ids = np.concatenate([run.ids for run in runs]).astype(np.int32)
        values = np.concatenate([run.values for run in runs]).astype(np.float32)
        lengths = np.concatenate([np.diff(run.offsets) for run in runs])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values /= np.repeat(np.sqrt(np.add.reduceat(values * values, offsets[:-1])), lengths)
        parts.append(sp.csr_matrix((values, ids, offsets), shape=(count, FEATURES)))
        parts.append((2 * np.concatenate([run.labels for run in runs]) - 1).astype(np.float32))
    return Split(*parts)


def reading_limit(split: Split) -> float:
    """Nonzeros a second that two threads can merely read: what memory allows."""
    halves = [np.array_split(array.view(np.int32), 2) for array in (split.rows.indices, split.rows.data)]

    def read(half: int) -> None:
        for pieces in halves:
            pieces[half].max()

    best = float("inf")
    for _ in range(5):
        threads = [threading.Thread(target=read, args=(half,)) for half in (0, 1)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - began)
    return float(split.rows.nnz / best)


# -- the comparison -------------------------------------------------------------------------------------------------


def compare(split: Split, arguments: argparse.Namespace, rule: tuple[str, float]) -> dict[str, Any]:
    """All contestants on one problem, in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        test = hogwild.feed_of(split.test_rows, split.test_labels, rank=False)
        feeds = hogwild.feed_of(split.rows, split.labels), test
        load_seconds = time.perf_counter() - began
        contestants = [Contestant("scikit-learn", lambda: scikit(split))]
        if not arguments.without_vw:
            write_vowpal(folder / "train", split.rows, split.labels)
            write_vowpal(folder / "test", split.test_rows, split.test_labels)
            contestants.append(Contestant("Vowpal Wabbit", lambda: vowpal(split, folder)))
        for threads, sharing in ((1, "all"), *((arguments.threads, sharing) for sharing in SHARINGS)):
            options = {"threads": threads, "sharing": sharing, "optimizer": rule[0], "lr": rule[1]}
            contestant = Contestant(f"ours, {threads} thread{'s' * (threads > 1)}, {sharing}", lambda: iter(()))
            contestant.train = lambda o=options, n=contestant.notes: ours(split, feeds, o, n)  # type: ignore[misc]
            contestants.append(contestant)
        for number in range(arguments.rounds + 1):
            for contestant in contestants:
                contestant.take_turn(counts=number > 0)
    return report(split, contestants, load_seconds)


def report(split: Split, contestants: list[Contestant], load_seconds: float) -> dict[str, Any]:
    """Speeds, losses and ratios by contestant."""
    by_name = {contestant.name: contestant for contestant in contestants}
    peer, own = by_name["scikit-learn"], by_name["ours, 1 thread, all"]
    found: dict[str, Any] = {
        "rows": split.rows.shape[0], "nonzeros": int(split.rows.nnz), "load_seconds": load_seconds,
        "reading_limit": reading_limit(split), "contestants": {},
    }  # fmt: skip
    for one in contestants:
        speed = EPOCHS * split.rows.nnz / one.seconds[-1]
        found["contestants"][one.name] = {
            "nonzeros_per_second": speed,
            "speed_over_scikit_learn": peer.seconds[-1] / one.seconds[-1],
            "speed_over_own_1_thread": own.seconds[-1] / one.seconds[-1],
            "share_of_reading_limit": speed / found["reading_limit"],
            "seconds": one.seconds, "logloss": one.curve, "accuracy": float(np.mean(one.accuracies)),
            "sooner_than": {other.name: time_gains(other, one) for other in contestants if other is not one},
            **one.notes,
        }  # fmt: skip
    return found


def time_gains(other: Contestant, one: Contestant) -> dict[str, float]:
    """How many times sooner `one` is at the lowest loss of `other`, and at the least at the end of any of its epochs.

    The second is limited by looking at the end of epochs only: who is there after half of the first waits for its end.
    """
    gains, lowest = [], float("inf")
    for seconds, loss in zip(other.seconds, other.curve, strict=True):
        if loss < lowest:
            lowest = loss
            gains.append(seconds / one.time_to(loss))
    return {"to_its_best": gains[-1], "at_the_least": min(gains)}


def show(problem: str, found: dict[str, Any]) -> None:
    """A table for people."""
    length = found["nonzeros"] / found["rows"]
    rule = f"ours: {found['optimizer']} at {found['lr']}"
    print(f"\n{problem}: {found['rows']:,} rows, {length:.0f} nonzeros a row, {EPOCHS} epochs; {rule}")
    print(f"{'sooner at the best loss of':>105}{'at any epoch':>14}")
    head = ("", "Mnz/s", "x sklearn", "x 1 thread", "log loss", "accuracy", "sklearn", "VW", "1 thread", "1 thread")
    print("{:26}{:>8}{:>11}{:>12}{:>10}{:>10}{:>9}{:>9}{:>10}{:>14}".format(*head))
    for name, one in found["contestants"].items():
        sooner = one["sooner_than"]
        peers = [sooner.get(peer, {}) for peer in ("scikit-learn", "Vowpal Wabbit", "ours, 1 thread, all")]
        gains = [*(peer.get("to_its_best") for peer in peers), peers[2].get("at_the_least")]
        cells = ["-" if gain is None else f"{gain:.2f}x" if gain else "never" for gain in gains]
        print(
            f"{name:26}{one['nonzeros_per_second'] / 1e6:8.0f}{one['speed_over_scikit_learn']:10.2f}x"
            f"{one['speed_over_own_1_thread']:11.2f}x{one['logloss'][-1]:10.4f}{one['accuracy']:10.4f}"
            f"{cells[0]:>9}{cells[1]:>9}{cells[2]:>10}{cells[3]:>14}"
        )
    compiled = max(one.get("compile_seconds", 0.0) for one in found["contestants"].values())
    chosen = [one["sharing"] for name, one in found["contestants"].items() if name.endswith("auto")]
    print(f"apart: feeds {found['load_seconds']:.2f} s, compiling {compiled:.2f} s; auto chose {chosen[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HOME, help="folder with the IMDB files")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant that count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--optimizer", help="update rule of ours on every problem; give --lr too")
    parser.add_argument("--lr", type=float, help="learning rate of ours on every problem")
    parser.add_argument("--without-vw", action="store_true", help="leave Vowpal Wabbit out, which is slow")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"cores": os.cpu_count(), "rounds": arguments.rounds, "problems": {}}
    for problem in arguments.problems:
        split = load_imdb(arguments.data) if problem == "imdb" else synthetic(problem)
        if split is None:
            print(f"imdb: left out, there is no {arguments.data / 'train.tsv.xz'}")
            continue
        rule = arguments.optimizer or PROBLEMS[problem][0], arguments.lr or PROBLEMS[problem][1]
        found = {"optimizer": rule[0], "lr": rule[1], **compare(split, arguments, rule)}
        show(problem, found)
        results["problems"][problem] = found
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
