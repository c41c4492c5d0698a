"""Do private copies learn as well as one worker? Held-out loss of every sharing against `serial`, over many seeds.

    python benchmarks/sharing.py [--only crf,mf] [--sizes small,middle,large] [--rules first|others|all] [--seeds 30]
        [--first-seed 1] [--workers 2,4,10] [--sharings auto,hot,replica] [--cores quiet,busy] [--json FILE]

For each program, set and update rule: `serial`, then every sharing with every number of workers, one after the other
for one seed, then the next seed. The learning rate of a seed is that of its serial run (calibrated, or the program's
own), so that only sharing differs. A row is the mean and the 95th percentile of the held-out loss, both as ratios to
those of `serial`, the worst run, and how many runs failed or had more than twice the loss of `serial`. For taggers F
(chunks) is given too, in points below serial. `busy`: three processes that compute share the cores meanwhile.

Sets: `small` 300 to 1,000 samples, `middle` a few thousand to 40,000, `large` all there is. Some are made, the others
are in ../shared/data (left out with a note where they are not).
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from hogwild.errors import HogwildError

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZES = ("small", "middle", "large")
BUSY = 3  # processes that compute
RULES = {"first": slice(1), "others": slice(1, None), "all": slice(None)}  # of those that a case has
TARGETS = {"auto": (1.01, 1.03), "all": (1.01, 1.03), "hot": (1.03, 1.06), "replica": (1.03, 1.06)}


@dataclass(frozen=True)
class Case:
    """A program on a set. make: the program for an update rule; rules: the one that users choose most, then others."""

    name: str
    size: str
    make: Callable[[str], Any]
    rules: tuple[str, ...]
    feeds: Callable[[Path], tuple[Any, Any]]
    epochs: int
    options: dict[str, Any]


# -- sets -----------------------------------------------------------------------------------------------------------


def read(name: str) -> str:
    """A file of the data, unpacked."""
    with lzma.open(DATA / f"{name}.xz", "rt", encoding="utf-8", newline="\n") as file:
        return file.read()


def svmlight(name: str, rows: int) -> Callable[[Path], tuple[Any, Any]]:
    """The first rows of a shuffled set, and a fifth of it held out."""

    def feeds(place: Path) -> tuple[Any, Any]:
        from sklearn.datasets import load_svmlight_file

        path = place / name
        path.write_text(read(f"sparse_linear/{name}"))
        matrix, labels = load_svmlight_file(str(path))
        return held_out(matrix.tocsr(), labels, rows)

    return feeds


def held_out(matrix: Any, labels: Any, rows: int) -> tuple[Any, Any]:
    """The first rows of a shuffled matrix, and the last fifth."""
    order = np.random.default_rng(0).permutation(len(labels))
    test = order[-(len(labels) // 5) :]
    train = order[: min(rows, len(labels) - len(test))]
    whole = sorted(set(np.asarray(labels).tolist()))
    coded = np.searchsorted(whole, labels) if len(whole) < 100 else labels
    return hogwild.feed_of(matrix[train], coded[train]), hogwild.feed_of(matrix[test], coded[test])


def imdb(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    """Film reviews as hashed words and pairs of words."""

    def feeds(place: Path) -> tuple[Any, Any]:
        from imdb import load_imdb

        data = load_imdb()
        assert data is not None
        return (
            hogwild.feed_of(data.rows[:rows], data.labels[:rows] > 0),
            hogwild.feed_of(data.test_rows[:6000], data.test_labels[:6000] > 0),
        )

    return feeds


def dense(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    """Thirty numbers a sample, of which each has a say: every visit touches every weight."""

    def feeds(place: Path) -> tuple[Any, Any]:
        random = np.random.default_rng(3)
        matrix = random.normal(size=(rows * 5 // 4, 30)).astype(np.float32) + 0.5
        labels = matrix @ random.normal(size=30) + 2 * random.normal(size=len(matrix)) > 1
        return held_out(matrix, labels, rows)

    return feeds


def uncentred(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    """Ten numbers a sample that are all well above zero, and much noise: a step along their mean is a step for all."""

    def feeds(place: Path) -> tuple[Any, Any]:
        random = np.random.default_rng(4)
        matrix = (random.normal(size=(rows * 5 // 4, 10)) + 3).astype(np.float32)
        labels = (matrix - 3) @ random.normal(size=10) + 5 * random.normal(size=len(matrix)) > 0
        return held_out(matrix, labels, rows)

    return feeds


def topics(rows: int, classes: int, words: int) -> Callable[[Path], tuple[Any, Any]]:
    """Made texts: each class likes words of its own, most words are anybody's."""

    def feeds(place: Path) -> tuple[Any, Any]:
        random = np.random.default_rng(5)
        likes = random.dirichlet(np.full(words, 0.05), classes)
        common = random.dirichlet(np.full(words, 0.3))
        paths = []
        for name, count in (("train", rows), ("test", max(500, rows // 4))):
            lines = []
            for _ in range(count):
                label = random.integers(classes)
                text = random.choice(words, random.integers(4, 16), p=0.7 * common + 0.3 * likes[label])
                lines.append(f"class{label}\t{' '.join(f'w{word}' for word in text)}\n")
            paths.append(place / f"topics-{rows}-{name}.txt")
            paths[-1].write_text("".join(lines))
        return open_texts(*paths, hash_bits=14)

    return feeds


def open_texts(train: Path, test: Path, **options: Any) -> tuple[Any, Any]:
    """Two files of texts."""
    config = hogwild.FeedConfig(format="text", cache=False, **options)
    feed = hogwild.open_feed([train], config)
    return feed, hogwild.open_feed([test], config, schema=feed.schema)


def reviews(place: Path) -> tuple[Any, Any]:
    """All film reviews as texts."""
    paths = []
    for name in ("train", "test"):
        lines = read(f"imdb/{name}.tsv").rstrip("\n").split("\n")  # not at other ends of lines, inside of texts
        columns = lines[0].split("\t")
        label, text = columns.index("label"), columns.index("text")
        rows = [line.split("\t") for line in lines[1:]]
        order = np.random.default_rng(0).permutation(len(rows))[: 25_000 if name == "train" else 6_000]
        paths.append(place / f"reviews-{name}.txt")
        paths[-1].write_text("".join(f"{rows[k][label]}\t{rows[k][text]}\n" for k in order))
    return open_texts(*paths, ngrams=2)


def adult(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    """Census rows: a slot for each column of categories, numbers beside them."""

    def feeds(place: Path) -> tuple[Any, Any]:
        lines = [line for line in read("adult/train.csv").splitlines() if line.count(",") > 5]
        order = np.random.default_rng(1).permutation(len(lines))
        parts = {"train": order[:rows], "test": order[-6_000:]}
        for name, part in parts.items():
            (place / f"adult-{rows}-{name}.csv").write_text("".join(lines[k].replace(" ", "") + "\n" for k in part))
        names = {"header": "no", "label": "14", "cache": False, "layout": "slots"}
        config = hogwild.FeedConfig(**names)
        feed = hogwild.open_feed([place / f"adult-{rows}-train.csv"], config)
        return feed, hogwild.open_feed([place / f"adult-{rows}-test.csv"], config, schema=feed.schema)

    return feeds


def clicks(rows: int) -> Callable[[Path], tuple[Any, Any]]:
    """Made clicks of many slots."""

    def feeds(place: Path) -> tuple[Any, Any]:
        from hogwild.cli.main import main

        paths = []
        for part, (name, count) in enumerate((("train", rows), ("test", 20_000))):
            paths.append(place / f"clicks-{rows}-{name}.txt")
            flags = ["--rows", str(count), "--part", str(part), "--format", "multislot", "--output", str(paths[-1])]
            main(["make-dataset", "clicks", *flags, "--quiet"])
        feed = hogwild.open_feed([paths[0]], hogwild.FeedConfig(format="multislot", cache=False))
        config = hogwild.FeedConfig(format="multislot", cache=False)
        return feed, hogwild.open_feed([paths[1]], config, schema=feed.schema)

    return feeds


def ratings(count: int, users: int, items: int) -> Callable[[Path], tuple[Any, Any]]:
    """Made ratings of users and items with six hidden numbers each."""

    def feeds(place: Path) -> tuple[Any, Any]:
        random = np.random.default_rng(7)
        left, right = random.normal(size=(users, 6)), random.normal(size=(items, 6))
        who = (random.random(count * 5 // 4) ** 1.5 * users).astype(int)
        what = (random.random(count * 5 // 4) ** 2 * items).astype(int)
        stars = 3 + 0.5 * (left[who] * right[what]).sum(1) + 0.5 * random.normal(size=len(who))
        names = [str(k) for k in who], [str(k) for k in what]
        train = hogwild.ratings_of(names[0][:count], names[1][:count], stars[:count])
        known = (train.users, train.items)
        return train, hogwild.ratings_of(names[0][count:], names[1][count:], stars[count:], names=known)

    return feeds


def gowalla(place: Path) -> tuple[Any, Any]:
    """Check-ins, for BPR."""
    paths = []
    for name in ("train", "test"):
        paths.append(place / f"gowalla-{name}.txt")
        paths[-1].write_text(read(f"gowalla/{name}.txt"))
    train = hogwild.open_ratings(paths[0])
    return train, hogwild.open_ratings(paths[1], users=train.users, items=train.items)


def chunks(sentences: int) -> Callable[[Path], tuple[Any, Any]]:
    """CoNLL-2000, with the standard templates."""

    def feeds(place: Path) -> tuple[Any, Any]:
        train, test = place / f"chunks-{sentences}.txt", place / "chunks-test.txt"
        train.write_text("\n\n".join(read("conll2000/train.txt").strip().split("\n\n")[:sentences]) + "\n")
        test.write_text(read("conll2000/test.txt"))
        feed = hogwild.open_tagging(train, hogwild.TaggingConfig(features="chunking"))
        return feed, hogwild.open_tagging(test, schema=feed.schema, names=feed.names, tags=feed.tags)

    return feeds


def wiki(words: int) -> Callable[[Path], tuple[Any, Any]]:
    """The beginning of the Wikipedia text, and words after it."""

    def feeds(place: Path) -> tuple[Any, Any]:
        with lzma.open(DATA / "wiki" / "wiki100m.txt.xz", "rt") as file:
            text = file.read(8 * words + 500_000).split()
        cut = min(words, len(text) - 50_000)
        parts = {"train": text[:cut], "test": text[cut : cut + 50_000]}
        for name, part in parts.items():
            lines = (" ".join(part[k : k + 1000]) for k in range(0, len(part), 1000))
            (place / f"wiki-{words}-{name}.txt").write_text("\n".join(lines) + "\n")
        config = hogwild.CorpusConfig(min_count=5)
        feed = hogwild.open_corpus(place / f"wiki-{words}-train.txt", config)
        return feed, hogwild.open_corpus(place / f"wiki-{words}-test.txt", config, vocabulary=feed.words)

    return feeds


def _linear(rule: str) -> Any:
    return hogwild.Linear(optimizer=rule)


def _fm(rule: str) -> Any:
    return hogwild.FactorizationMachine(optimizer=rule)


def _text(rule: str) -> Any:
    return hogwild.TextClassifier(optimizer=rule)


def _mlp(rule: str) -> Any:
    return hogwild.SparseMLP(optimizer=rule, dim=8, hidden=(32, 16), batch_size=32)


def _mf(rule: str) -> Any:
    return hogwild.MatrixFactorization(optimizer=rule, dim=16)


def _bpr(rule: str) -> Any:
    return hogwild.MatrixFactorization(optimizer=rule, dim=16, loss="bpr")


def _crf(rule: str) -> Any:
    return hogwild.CRF(optimizer=rule)


def _words(rule: str) -> Any:
    return hogwild.Word2Vec(dim=50)


_LINEAR, _MLP = ("adagrad", "sgd", "adam", "ftrl"), ("adam", "sgd", "adagrad")
CASES = (
    Case("linear", "small", _linear, _LINEAR, svmlight("a9a.svm", 1000), 5, {}),
    Case("linear-dense", "small", _linear, ("adagrad", "sgd"), dense(1000), 5, {}),
    Case("linear", "middle", _linear, _LINEAR, svmlight("w8a.svm", 39_000), 5, {}),
    Case("linear-dense", "middle", _linear, ("adagrad", "sgd"), dense(40_000), 5, {}),
    Case("linear", "large", _linear, _LINEAR, imdb(25_000), 5, {}),
    Case("linear-means", "small", _linear, ("sgd", "adagrad"), uncentred(1000), 5, {}),
    Case("linear-means", "middle", _linear, ("sgd", "adagrad"), uncentred(60_000), 5, {}),
    Case("linear-dense", "large", _linear, ("adagrad", "sgd"), dense(600_000), 2, {}),
    Case("fm", "small", _fm, ("adagrad", "sgd"), svmlight("a9a.svm", 1000), 5, {}),
    Case("fm", "middle", _fm, ("adagrad", "sgd"), svmlight("a9a.svm", 26_000), 5, {}),
    Case("fm", "large", _fm, ("adagrad",), clicks(200_000), 3, {}),
    Case("text", "small", _text, ("sgd", "adagrad"), topics(300, 2, 400), 5, {}),
    Case("text", "middle", _text, ("sgd", "adagrad"), topics(4000, 20, 2000), 5, {}),
    Case("text", "large", _text, ("sgd",), reviews, 5, {}),
    Case("mlp", "small", _mlp, _MLP, adult(1000), 5, {}),
    Case("mlp", "middle", _mlp, _MLP, adult(20_000), 5, {}),
    Case("mlp", "large", _mlp, ("adam",), clicks(200_000), 2, {}),
    Case("mf", "small", _mf, ("adagrad", "sgd"), ratings(1000, 60, 40), 20, {}),
    Case("mf", "middle", _mf, ("adagrad", "sgd"), ratings(40_000, 1500, 800), 20, {}),
    Case("mf", "large", _bpr, ("adagrad",), gowalla, 10, {}),
    Case("crf", "small", _crf, ("sgd", "adagrad"), chunks(500), 10, {}),
    Case("crf", "middle", _crf, ("sgd", "adagrad"), chunks(2500), 10, {}),
    Case("crf", "large", _crf, ("sgd",), chunks(9000), 10, {}),
    Case("word2vec", "small", _words, ("-",), wiki(50_000), 5, {"lr_end": 0.17, "shuffle": False}),
    Case("word2vec", "middle", _words, ("-",), wiki(500_000), 3, {"lr_end": 0.17, "shuffle": False}),
    Case("word2vec", "large", _words, ("-",), wiki(5_000_000), 1, {"lr_end": 0.17, "shuffle": False}),
)


# -- runs -----------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """What came out of one run."""

    loss: float
    score: float
    lr: float
    seconds: float
    sharing: str


def run(case: Case, rule: str, feeds: tuple[Any, Any], seed: int, **options: Any) -> Run:
    """Train and measure; a run that fails has an infinite loss."""
    program = case.make(rule)
    chosen = {"epochs": case.epochs, "seed": seed, **case.options, **options}
    lr, sharing, seconds = 0.0, "", float("nan")
    try:
        for event in hogwild.AsyncExecutor(**chosen).run(program, feeds[0]):
            if event.kind == "started":
                lr, sharing = event.lr, event.sharing
            elif event.kind == "finished":
                seconds = event.train_seconds
        metrics = program.evaluate(feeds[1])
    except HogwildError as error:
        print(f"{case.name} {case.size} {rule} {options}: {error}", file=sys.stderr)
        return Run(float("inf"), 0.0, lr, seconds, sharing)
    metric = "f1" if case.name == "crf" else "accuracy"
    loss = metrics.get("loss", metrics.get("rmse", float("nan")))
    return Run(float(loss), float(metrics.get(metric, float("nan"))), lr, seconds, sharing)


@contextmanager
def load(busy: bool) -> Iterator[None]:
    """Processes that compute beside the runs, until the end of the block or for an hour."""
    crowd = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(BUSY if busy else 0)]
    for process in crowd:
        process.start()
    try:
        yield
    finally:
        for process in crowd:
            process.terminate()
            process.join()


def _spin() -> None:
    until = time.monotonic() + 3600
    while time.monotonic() < until:
        sum(range(100_000))


def compare(case: Case, rule: str, feeds: tuple[Any, Any], arguments: argparse.Namespace, busy: bool) -> list[Any]:
    """All rows of one case."""
    kinds = [(sharing, workers) for workers in arguments.workers for sharing in arguments.sharings]
    found: dict[Any, list[Run]] = {kind: [] for kind in [("serial", 1), *kinds]}
    with load(busy):
        count = arguments.large_seeds if case.size == "large" else arguments.seeds
        for seed in range(arguments.first_seed, arguments.first_seed + count):
            first = run(case, rule, feeds, seed, mode="serial")
            found["serial", 1].append(first)
            for sharing, workers in kinds:
                this = run(case, rule, feeds, seed, threads=workers, sharing=sharing, lr=first.lr)
                found[sharing, workers].append(this)
    serial = found.pop(("serial", 1))
    return [_row(case, rule, busy, kind, runs, serial) for kind, runs in found.items()]


def _row(case: Case, rule: str, busy: bool, kind: Any, runs: list[Run], serial: list[Run]) -> dict[str, Any]:
    losses, base = np.array([r.loss for r in runs]), np.array([r.loss for r in serial])
    mean, high = losses.mean() / base.mean(), np.quantile(losses, 0.95) / np.quantile(base, 0.95)
    most_mean, most_high = TARGETS[kind[0]]
    scores, first = np.array([r.score for r in runs]), np.array([r.score for r in serial])
    return {
        "program": case.name, "size": case.size, "rule": rule, "cores": "busy" if busy else "quiet",
        "sharing": kind[0], "workers": kind[1], "seeds": len(runs), "serial": float(base.mean()),
        "mean": float(mean), "p95": float(high), "worst": float((losses / base).max()),
        "diverged": int((~(losses < 2 * base)).sum()), "points": float(100 * (scores.mean() - first.mean())),
        "speed": float(np.median([s.seconds for s in serial]) / np.median([r.seconds for r in runs])),
        "chosen": {name: sum(r.sharing == name for r in runs) for name in sorted({r.sharing for r in runs})},
        "good": bool(mean <= most_mean and high <= most_high and np.isfinite(losses).all()),
        "losses": losses.tolist(), "serial_losses": base.tolist(),
    }  # fmt: skip


def show(row: dict[str, Any]) -> str:
    """A row for people."""
    return (
        f"{'' if row['good'] else 'X':1} {row['program']:12} {row['size']:6} {row['rule']:8} {row['cores']:5} "
        f"{row['sharing']:7} x{row['workers']:<2}  serial {row['serial']:.4f}  mean {row['mean']:.3f}  "
        f"p95 {row['p95']:.3f}  worst {row['worst']:.2f}  diverged {row['diverged']}  points {row['points']:+.2f}  "
        f"speed {row['speed']:.2f}  {row['chosen'] if row['sharing'] == 'auto' else ''}"
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = {"type": lambda text: tuple(text.split(","))}
    parser.add_argument("--only", default=(), **words)
    parser.add_argument("--sizes", default=SIZES, **words)
    parser.add_argument("--rules", choices=tuple(RULES), default="first")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--large-seeds", type=int, default=10)
    parser.add_argument("--workers", default=(2, 4, 10), type=lambda text: tuple(int(k) for k in text.split(",")))
    parser.add_argument("--sharings", default=("auto", "hot", "replica"), **words)
    parser.add_argument("--cores", default=("quiet", "busy"), **words)
    parser.add_argument("--json", default="")
    arguments = parser.parse_args()
    rows = []
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as place:
        for case in CASES:
            rules = case.rules[RULES[arguments.rules]]
            if (arguments.only and case.name not in arguments.only) or case.size not in arguments.sizes or not rules:
                continue
            try:
                feeds = case.feeds(Path(place))
            except FileNotFoundError as error:
                print(f"{case.name} {case.size}: {error.filename} is not there; left out", flush=True)
                continue
            for rule in rules:
                for cores in arguments.cores:
                    for row in compare(case, rule, feeds, arguments, cores == "busy"):
                        rows.append(row)
                        print(show(row), flush=True)
                        if arguments.json:
                            Path(arguments.json).write_text(json.dumps(rows, indent=1))
    bad = sum(not row["good"] for row in rows)
    print(f"{len(rows)} rows, {bad} past their bounds")


if __name__ == "__main__":
    main()
