"""Factorization machines, plain and field-aware, against PyTorch, xLearn, libffm and fastFM, in one run.

a9a, Adult and Avazu are judged by AUC on data that nobody trained on; rates, penalties and epochs of each contestant
are the best of a few on a fifth of the training data (--tune tries them again). Made clicks are judged by seconds an
epoch: contestants take turns, round after round, and the best time of each counts. Compare the ratios, not seconds.
xLearn, libffm (pylibffm) and fastFM are left out where they are not installed (xLearn needs the variable USER to be
set).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import lzma
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fm_peers import MOST_EPOCHS, PEERS, SETTING, Split

import hogwild
from hogwild.arrays import SlotRows
from hogwild.cli.main import main as command
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.metrics import auc

HOME = Path(__file__).parents[2] / "shared" / "data"
SEEDS = (1, 2, 3)
FOLDS = 5
EPOCHS = 3  # on made clicks
BINS = 16  # of a column of numbers
ADULT_NUMBERS = (0, 2, 4, 10, 11, 12)


class Choice(NamedTuple):
    """What a contestant is trained with."""

    lr: float
    l2: float
    epochs: int


# By held-out log loss on a fifth of the training data. Those of Avazu are of its training file, before it had folds,
# and ours (plain) is of a wider grid than the peers': docs/performance.md.
CHOICES: dict[str, dict[str, Choice]] = {
    "a9a": {},
    "adult": {
        "ours": Choice(0.02, 1e-3, 6), "PyTorch": Choice(0.003, 1e-4, 5), "xLearn": Choice(0.05, 2e-4, 6),
        "fastFM": Choice(0.001, 1e-3, 1),
    },
    "avazu": {
        "ours": Choice(0.01, 1e-4, 6), "PyTorch": Choice(0.003, 0.0, 4), "xLearn": Choice(0.02, 0.0, 5),
        "fastFM": Choice(0.001, 1e-3, 1),
    },
    "avazu-ffm": {
        "ours": Choice(0.05, 1e-3, 6), "PyTorch": Choice(0.001, 0.0, 4), "xLearn": Choice(0.02, 2e-4, 6),
    },
}  # fmt: skip
GRID = {
    "ours": ((0.01, 0.02, 0.05, 0.1), (0.0, 1e-4, 1e-3)),
    "PyTorch": ((0.001, 0.003, 0.01), (0.0, 1e-5, 1e-4)),
    "xLearn": ((0.02, 0.05, 0.1), (0.0, 2e-5, 2e-4)),
    "fastFM": ((0.001, 0.003, 0.01), (0.0, 1e-4, 1e-3)),
}


# -- data -----------------------------------------------------------------------------------------------------------


def read_lines(path: Path) -> list[str]:
    """Lines of a compressed file."""
    with lzma.open(path, "rt") as file:
        return file.read().splitlines()


def read_a9a(home: Path) -> tuple[Split, Split]:
    """Every fifth row is for testing; all features are of one field."""
    lines = read_lines(home / "sparse_linear" / "a9a.svm.xz")
    labels = np.array([line.startswith(("+1", "1")) for line in lines])
    rows = [[int(word.partition(":")[0]) - 1 for word in line.split()[1:]] for line in lines]
    whole = Split.of(rows, [[0] * len(row) for row in rows], labels, 123, 1)
    test = np.arange(len(lines)) % 5 == 4
    return whole.take(~test), whole.take(test)


def read_table(
    files: list[Path], label: int, positive: str, skip: tuple[int, ...], numbers: tuple[int, ...]
) -> list[Split]:
    """Each column a field: categories that occur twice at least in the first file, and bins of numbers."""
    read = [[row for row in csv.reader(read_lines(file)) if len(row) > 5] for file in files]
    tables = [[[cell.strip().rstrip(".") for cell in row] for row in table] for table in read]
    if tables[0][0][label] == "click":
        tables = [table[1:] for table in tables]
    label %= len(tables[0][0])
    columns = [c for c in range(len(tables[0][0])) if c != label and c not in skip]
    ids: list[list[Any]] = [[] for _ in files]
    first = 0
    for c in columns:
        column = [row[c] for row in tables[0]]
        if c in numbers:
            edges = np.unique(np.quantile(np.array(column, float), np.linspace(0, 1, BINS + 1)[1:-1]))
            size = len(edges) + 1
            found = [np.searchsorted(edges, [float(row[c]) for row in table]) for table in tables]
        else:
            known = {name: k for k, (name, count) in enumerate(Counter(column).most_common()) if count > 1}
            size = len(known) + 1
            found = [np.array([known.get(row[c], size - 1) for row in table]) for table in tables]
        for part, numbered in zip(ids, found, strict=True):
            part.append(first + numbered)
        first += size
    fields = list(range(len(columns)))
    return [
        Split.of(
            np.column_stack(part).tolist(), [fields] * len(table), [row[label] == positive for row in table], first,
            len(fields),
        )
        for part, table in zip(ids, tables, strict=True)
    ]  # fmt: skip


Runs = list[tuple[Split, Split, int]]


def problems(home: Path) -> Iterator[tuple[str, Runs]]:
    """Name, and training data, test data and seed of each run, of each problem that is there."""
    if (home / "sparse_linear").exists():
        yield "a9a", [(*read_a9a(home), seed) for seed in SEEDS]
    if (home / "adult").exists():
        files = [home / "adult" / f"{name}.csv.xz" for name in ("train", "valid")]
        train, test = read_table(files, -1, ">50K", (), ADULT_NUMBERS)
        yield "adult", [(train, test, seed) for seed in SEEDS]
    if (home / "avazu").exists():
        files = [home / "avazu" / f"{name}.csv.xz" for name in ("train", "dev", "test")]
        whole = Split.join(read_table(files, 1, "1", (0,), ()))
        fold = np.random.default_rng(7).permutation(len(whole.labels)) % FOLDS  # its test files are too small
        yield "avazu", [(whole.take(fold != k), whole.take(fold == k), 1) for k in range(FOLDS)]


def feed_from(split: Split) -> Feed:
    """The rows of a split as a feed with slots, its ids ranked by frequency as those of files are."""
    rows = len(split.labels)
    order = np.argsort(-np.bincount(split.ids, minlength=split.features), kind="stable").astype(np.int32)
    rank = np.empty_like(order)
    rank[order] = np.arange(split.features, dtype=np.int32)
    samples = SlotRows(
        split.offsets, rank[split.ids], split.fields.astype(np.uint16), np.zeros((rows, 0), np.float32),
        split.labels.astype(np.float32), np.ones(rows, np.float32),
    )  # fmt: skip
    schema = {"slots": [str(f) for f in range(split.slots)], "dense": []}
    return Feed(samples, split.features, original=order, schema=schema)


# -- ours -----------------------------------------------------------------------------------------------------------


class Ours:
    """Ours, with adagrad."""

    def __init__(self, l2_form: str = "time") -> None:
        self.l2_form = l2_form

    def train(
        self, train: Split, test: Split, choice: Choice, dim: int, ffm: bool, seed: int
    ) -> tuple[Any, list[float]]:
        """Scores of the test rows after each epoch, and the seconds of each epoch."""
        form = {"l2_form": self.l2_form} if choice.l2 else {}
        program = hogwild.FactorizationMachine(dim, l2=choice.l2 / 10, l2_factors=choice.l2, field_aware=ffm, **form)
        executor = hogwild.AsyncExecutor(threads=SETTING.threads)
        feed, held_out = feed_from(train), feed_from(test)
        scores, seconds, before = [], [], 0.0
        for event in executor.run(program, feed, epochs=choice.epochs, lr=choice.lr, schedule="constant", seed=seed):
            if event.kind == "started":
                before = SETTING.clock()
            if event.kind == "epoch":
                seconds.append(SETTING.clock() - before)
                scores.append(program.scores(held_out))
                before = SETTING.clock()
        return scores, seconds


# -- comparisons ----------------------------------------------------------------------------------------------------


def loss_of(scores: Any, labels: Any) -> float:
    """Log loss of raw scores."""
    return float(np.logaddexp(0, np.where(labels, -1, 1) * scores.astype(np.float64)).mean())


def tune(contestant: Any, name: str, train: Split, dim: int, ffm: bool) -> Choice:
    """The choice with the least log loss on a fifth of the training data."""
    held = np.random.default_rng(0).permutation(len(train.labels)) % 5 == 0
    part, rest = train.take(~held), train.take(held)
    best = (float("inf"), Choice(0.0, 0.0, 0))
    for lr, l2 in itertools.product(*GRID[name]):
        scores, _ = contestant.train(part, rest, Choice(lr, l2, MOST_EPOCHS), dim, ffm, 1)
        losses = [loss_of(found, rest.labels) for found in scores]
        epoch = int(np.argmin(losses))
        best = min(best, (losses[epoch], Choice(lr, l2, epoch + 1)))
    return best[1]


def compare_quality(arguments: argparse.Namespace, contestants: dict[str, Any]) -> dict[str, Any]:
    """AUC of each contestant on each problem, the mean over seeds or folds."""
    found: dict[str, Any] = {}
    for problem, runs in problems(arguments.data):
        if problem not in arguments.problems or (arguments.ffm and runs[0][0].slots == 1):
            continue
        key = f"{problem}-ffm" if arguments.ffm else problem
        found[problem] = {}
        for name, contestant in contestants.items():
            if name == ("fastFM" if arguments.ffm else "libffm"):
                continue
            known = CHOICES.get(key, {}).get(name)
            tuned = known is None or arguments.tune
            choice = tune(contestant, name, runs[0][0], arguments.dim, arguments.ffm) if tuned else known
            areas, losses = [], []
            for train, test, seed in runs:
                scores, _ = contestant.train(train, test, choice, arguments.dim, arguments.ffm, seed)
                areas.append(auc(scores[-1].astype(np.float32), test.labels))
                losses.append(loss_of(scores[-1], test.labels))
            found[problem][name] = {
                "auc": float(np.mean(areas)), "spread": float(np.ptp(areas)), "logloss": float(np.mean(losses)),
                **choice._asdict(),
            }  # fmt: skip
            print(
                f"{key:10} {name:8} AUC {np.mean(areas):.4f} (+-{np.ptp(areas) / 2:.4f})  "
                f"log loss {np.mean(losses):.4f}  {tuple(choice)}", flush=True,
            )  # fmt: skip
    return found


def compare_speed(arguments: argparse.Namespace, contestants: dict[str, Any]) -> dict[str, Any]:
    """Seconds an epoch on made clicks, the best of all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/clicks.ffm"
        made = ["make-dataset", "clicks", "--rows", str(arguments.rows), "--features", str(arguments.features)]
        assert command([*made, "--numbers", "0", "--format", "libffm", "--output", path, "--quiet"]) == 0
        feed = hogwild.open_feed(path, hogwild.FeedConfig(format="libffm"))
    rows = feed.samples
    fields, labels = rows.slots.astype(np.int32), rows.targets > 0.5
    split = Split(rows.offsets, rows.ids, fields, labels, feed.features, len(feed.slots))
    test = split.take(np.arange(len(split.labels)) < 1000)
    best = dict.fromkeys(contestants, float("inf"))
    for number in range(arguments.rounds + 1):
        for name, contestant in contestants.items():
            if name == ("fastFM" if arguments.ffm else "libffm"):
                continue
            whole = name in ("xLearn", "libffm")  # they tell no single epoch
            choice = Choice(0.05, arguments.l2, 11 if whole else EPOCHS)
            _, seconds = contestant.train(split, test, choice, arguments.dim, arguments.ffm, 1)
            if number:  # the first round compiles and fills caches
                best[name] = min(best[name], *seconds)
    for name, seconds in best.items():
        speed, gain = len(split.labels) / seconds / 1e3, seconds / best["ours"]
        print(f"clicks {name:16} {seconds:.3f} s an epoch, {speed:.0f} thousand rows/s; ours is {gain:.2f}x")
    return {"rows": len(split.labels), "entries": len(split.ids), "seconds": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HOME, help="folder with a9a, Adult and Avazu")
    parser.add_argument("--ffm", action="store_true", help="field-aware machines")
    parser.add_argument("--dim", type=int, help="factors; default 8, field-aware 4")
    parser.add_argument("--rows", type=int, default=100_000, help="made clicks")
    parser.add_argument("--features", type=int, default=200_000, help="categories of the made clicks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tune", action="store_true", help="try rates and penalties again")
    parser.add_argument("--problems", nargs="+", default=["a9a", "adult", "avazu"])
    parser.add_argument("--l2", type=float, default=0.0, help="penalty on factors with the made clicks")
    parser.add_argument("--threads", type=int, default=2, help="of everybody but fastFM, which has one")
    parser.add_argument("--cpu", action="store_true", help="seconds of processor, not of the clock: on a busy machine")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), help="default: all that are installed")
    parser.add_argument("--only", choices=("quality", "speed"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    arguments = parser.parse_args()
    arguments.dim = arguments.dim or (4 if arguments.ffm else 8)
    os.environ.setdefault("USER", "nobody")
    SETTING.threads, SETTING.clock = arguments.threads, time.process_time if arguments.cpu else time.perf_counter
    contestants: dict[str, Any] = {"ours": Ours()}
    if arguments.only == "speed" and arguments.l2:
        contestants["ours, touched"] = Ours("touched")
    peers = PEERS if arguments.peers is None else {name: PEERS[name] for name in arguments.peers}
    contestants |= {name: peer() for name, peer in peers.items()}
    results: dict[str, Any] = {"cores": os.cpu_count(), "threads": arguments.threads, "cpu": arguments.cpu}
    results |= {"ffm": arguments.ffm, "dim": arguments.dim}
    if arguments.only != "speed":
        results["quality"] = compare_quality(arguments, contestants)
    if arguments.only != "quality":
        results["speed"] = compare_speed(arguments, contestants)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    began = time.perf_counter()
    main()
    print(f"{time.perf_counter() - began:.0f} s in all")
