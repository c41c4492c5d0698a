"""CRF taggers against python-crfsuite: seconds an epoch, time to a given F, and quality with the same features.

CoNLL-2000 chunking with the 19 standard templates (the preset `chunking`); POS tags of UD English-EWT; segmentation of
UD Chinese. Both systems get the same features, token by token. Systems take turns in each round, in one process; the
best round counts. Seconds are those of training alone: ours without compiling and reading, CRFsuite's by its own log,
which leaves out reading; its calibration of the learning rate counts towards the time to a given F, as ours has none.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from hogwild.executor.events import EpochEnded
from hogwild.programs.taggers.scores import score_tags

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TASKS = {
    "chunking": ("conll2000/train.txt", "conll2000/test.txt", "f1", {}),
    "pos": ("ud_ewt/train.conll", "ud_ewt/test.conll", "accuracy", {"tag_column": "1"}),
    "segmentation": ("segmentation/udc_train.txt", "segmentation/udc_test.txt", "f1", {"format": "segmented"}),
}
GOAL = 0.935  # F of chunking


class Task:
    """Training and test data of one task, for both systems."""

    def __init__(self, name: str, directory: Path) -> None:
        train, test, self.metric, options = TASKS[name]
        config = hogwild.TaggingConfig(features=name, **options)
        self.name = name
        self.train = hogwild.open_tagging(unpack(train, directory), config)
        self.test = hogwild.open_tagging(
            unpack(test, directory), config, schema=self.train.schema, names=self.train.names, tags=self.train.tags
        )


def unpack(name: str, directory: Path) -> Path:
    """A file of the data, unpacked."""
    path = directory / name.replace("/", "-")
    with lzma.open(DATA / f"{name}.xz") as packed:
        path.write_bytes(packed.read())
    return path


def ours(task: Task, threads: int, epochs: int, score: bool = False, seed: int = 1, **options: Any) -> dict[str, Any]:
    """Seconds of each epoch, the metric after each (if asked for) and at the end."""
    run = {name: options.pop(name) for name in ("lr", "sharing", "mode", "schedule") if name in options}
    program = hogwild.CRF(**options)
    seconds, scores = [], []
    for event in hogwild.AsyncExecutor(threads=threads, seed=seed, **run).run(program, task.train, epochs=epochs):
        if isinstance(event, EpochEnded):
            seconds.append(event.epoch_seconds)
            if score:
                scores.append(program.evaluate(task.test, 2)[task.metric])
    final = scores[-1] if scores else program.evaluate(task.test, 2)[task.metric]
    return {"seconds": seconds, "scores": scores, "score": final}


def items(feed: Any) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Sentences as lists of feature names and tags."""
    samples, tags = feed.samples, [*feed.tags, "?"]
    names = np.array(feed.names, object)
    for first, last in pairwise(samples.offsets):
        starts = samples.starts[first : last + 1]
        yield (
            [names[samples.ids[a:b]].tolist() for a, b in pairwise(starts)],
            [tags[tag] for tag in samples.tags[first:last]],
        )


def crfsuite(task: Task, algorithm: str, iterations: int, sentences: list[Any], tests: list[Any]) -> dict[str, Any]:
    """Seconds an iteration and in all, and the metric."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm, {"max_iterations": iterations, "c2": 1.0}, verbose=False)
    for features, tags in sentences:
        trainer.append(features, tags)
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "model")
        begun = time.perf_counter()
        trainer.train(path)
        total = time.perf_counter() - begun
        each = [float(entry["time"]) for entry in trainer.logparser.iterations if "time" in entry]
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        guess = [tagger.tag(features) for features, _ in tests]
    metrics = score_tags([tags for _, tags in tests], guess).metrics()
    return {"seconds": float(np.median(each)) if each else total / iterations, "total": total,
            "score": metrics[task.metric]}  # fmt: skip


def speed(task: Task, rounds: int, iterations: int) -> dict[str, Any]:
    """Best seconds of an epoch of each way, with and without rich edges."""
    sentences, tests = list(items(task.train)), list(items(task.test))
    best: dict[str, float] = {}
    peer: dict[str, Any] = {}
    for _ in range(rounds):
        for rich in (False, True):
            for threads in (1, 2):
                name = f"hogwild, {'rich edges, ' * rich}{threads} thread{'s' * (threads > 1)}"
                seconds = ours(task, threads, 6, rich_edges=rich)["seconds"]
                best[name] = min(best.get(name, np.inf), *seconds)
        for algorithm in ("l2sgd", "lbfgs"):
            found = crfsuite(task, algorithm, iterations, sentences, tests)
            name = f"CRFsuite, {algorithm}"
            best[name] = min(best.get(name, np.inf), found["seconds"])
            peer[name] = found
    return {"seconds": best, "peer": peer}


def time_to(task: Task, goal: float, rounds: int) -> dict[str, float]:
    """Seconds of training until the metric reaches the goal; the best of several rounds."""
    sentences, tests = list(items(task.train)), list(items(task.test))
    best = {"hogwild, 2 threads": np.inf, "CRFsuite, l2sgd": np.inf}
    for _ in range(rounds):
        run = ours(task, 2, 6, score=True, rich_edges=False, lr=0.1)
        reached = [k for k, score in enumerate(run["scores"]) if score >= goal]
        if reached:
            best["hogwild, 2 threads"] = min(best["hogwild, 2 threads"], sum(run["seconds"][: reached[0] + 1]))
        for iterations in (4, 5, 6, 8, 10, 15, 20, 30):
            found = crfsuite(task, "l2sgd", iterations, sentences, tests)
            if found["score"] >= goal:
                best["CRFsuite, l2sgd"] = min(best["CRFsuite, l2sgd"], found["total"])
                break
    return best


def threads_and_seeds(task: Task, counts: list[int], seeds: int, epochs: int) -> dict[str, list[float]]:
    """The metric for each number of threads and seed, with rich edges."""
    return {
        str(count): [
            ours(task, count, epochs, seed=seed, sharing="all")["score"] for seed in range(1, seeds + 1)
        ]
        for count in counts
    }


def quality(task: Task, epochs: int, iterations: int) -> dict[str, float]:
    """The metric of both systems with the same features."""
    sentences, tests = list(items(task.train)), list(items(task.test))
    found = {
        f"hogwild, {'rich' if rich else 'plain'} edges": ours(task, 2, epochs, rich_edges=rich)["score"]
        for rich in (False, True)
    }
    for algorithm in ("l2sgd", "lbfgs"):
        found[f"CRFsuite, {algorithm}"] = crfsuite(task, algorithm, iterations, sentences, tests)["score"]
    return found


def main() -> None:
    """Print tables; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is taken")
    parser.add_argument("--iterations", type=int, default=30, help="of CRFsuite")
    parser.add_argument("--epochs", type=int, default=10, help="of ours, for quality")
    parser.add_argument("--quality", action="store_true", help="all three tasks; and 1 to 10 threads with five seeds")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is not there: this benchmark needs its text.")
    found: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as directory:
        task = Task("chunking", Path(directory))
        ours(task, 1, 1)  # compiles
        ours(task, 1, 1, rich_edges=False)
        found["speed"] = speed(task, options.rounds, options.iterations)
        seconds = found["speed"]["seconds"]
        for name, each in seconds.items():
            print(f"{name:32} {each:7.3f} s an epoch  {seconds['CRFsuite, l2sgd'] / each:6.2f}x CRFsuite's l2sgd")
        found["time to F"] = time_to(task, GOAL, options.rounds)
        for name, total in found["time to F"].items():
            print(f"F {100 * GOAL:.1f}: {name:24} {total:7.2f} s")
        if options.quality:
            found["quality"] = {}
            for name in TASKS:
                other = task if name == task.name else Task(name, Path(directory))
                found["quality"][name] = quality(other, options.epochs, options.iterations)
                for system, score in found["quality"][name].items():
                    print(f"{name:14} {other.metric} {system:24} {100 * score:6.2f}")
            found["threads"] = threads_and_seeds(task, [1, 2, 4, 10], 5, options.epochs)
            for count, scores in found["threads"].items():
                mean, spread = 100 * np.mean(scores), 100 * np.std(scores)
                print(f"chunking, rich edges, {count:>2} threads: F {mean:.2f} ± {spread:.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
