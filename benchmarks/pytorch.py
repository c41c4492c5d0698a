"""Modules by processes without locks, against the usual hand-written Hogwild loop and against plain PyTorch.

Each contender trains the same module from the same start on the same samples, and is measured after every epoch:
seconds of training, and the loss on held-out samples. What is compared is the time until the loss that all reach.

    python benchmarks/pytorch.py --task sentiment
    python benchmarks/pytorch.py --task wide-deep --rows 100000 --epochs 3
    python benchmarks/pytorch.py --bags
"""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import hogwild
from hogwild.arrays import BinaryRows, SlotRows
from hogwild.pytorch import DataFacts, EmbeddingBag, TorchProgram
from hogwild.pytorch.data import rows_of, tensor_feed

WORKERS, BATCH, RATE = 2, 128, 0.05


class Sentiment(nn.Module):
    """A bag of words, and a layer above it."""

    def __init__(self, facts: DataFacts) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.EmbeddingBag(facts.features, 64, mode="mean", sparse=True)
        self.output = nn.Linear(64, 1)

    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        """A logit a text."""
        return self.output(self.words(ids, offsets)).flatten()


class WideDeep(nn.Module):
    """A linear part, and dense layers over embeddings of 26 slots."""

    def __init__(self, facts: DataFacts) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.slots = len(facts.slots)
        self.wide = nn.EmbeddingBag(facts.features, 1, mode="sum", sparse=True)
        self.deep = nn.EmbeddingBag(facts.features, 16, mode="sum", sparse=True)
        nn.init.zeros_(self.wide.weight)
        nn.init.normal_(self.deep.weight, 0.0, 0.05)
        layers = nn.Linear(16 * self.slots + len(facts.dense), 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()
        self.layers = nn.Sequential(*layers, nn.Linear(64, 1))

    def forward(self, ids: Tensor, offsets: Tensor, dense: Tensor) -> Tensor:
        """A logit a sample."""
        wide = self.wide(ids, offsets).view(-1, self.slots).sum(1)
        deep = self.deep(ids, offsets).view(len(dense), -1)
        return self.layers(torch.cat([deep, dense], 1)).flatten() + wide


MODULES = {"sentiment": Sentiment, "wide-deep": WideDeep}


def make_feed(task: str, rows: int, seed: int) -> hogwild.Feed:
    """Samples whose labels a linear model over true weights gives, features as frequent as words are."""
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(7)
    features, each = (30_000, 100) if task == "sentiment" else (26 * 4000, 26)
    if task == "sentiment":
        ids = (features * random.random((rows, each)) ** 4).astype(np.int32)
    else:
        ids = (4000 * random.random((rows, each)) ** 3).astype(np.int32) + 4000 * np.arange(26, dtype=np.int32)
    dense = random.normal(size=(rows, 13)).astype(np.float32)
    scores = truth.normal(size=features)[ids].sum(1) / np.sqrt(each)
    if task == "wide-deep":
        scores = scores + dense @ truth.normal(size=13) / 3
    targets = (random.random(rows) < 1 / (1 + np.exp(-3 * scores))).astype(np.float32)
    offsets, ones = np.arange(rows + 1) * each, np.ones(rows, np.float32)
    if task == "sentiment":
        return hogwild.Feed(BinaryRows(offsets, ids.reshape(-1), targets, ones), features)
    slots = np.tile(np.arange(26, dtype=np.uint16), rows)
    schema = {"format": "", "slots": [f"s{k}" for k in range(26)], "dense": [f"n{k}" for k in range(13)]}
    return hogwild.Feed(SlotRows(offsets, ids.reshape(-1), slots, dense, targets, ones), features, schema=schema)


def memory_of(pids: list[int]) -> float:
    """Megabytes of some processes; what they share is counted once."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            total += int(line.split()[1]) if line.startswith("Pss:") else 0
    return total / 1000


# -- contenders: each returns (seconds so far, held-out loss) an epoch, seconds of start-up, megabytes ----------------


def run_ours(task: str, train: Any, test: Any, epochs: int, compiled: bool = False) -> dict[str, Any]:
    """TorchProgram with two workers."""
    import multiprocessing

    loss = nn.BCEWithLogitsLoss()
    program = TorchProgram(MODULES[task], loss, "adagrad", batch=BATCH, lr=RATE, compile=compiled)
    found: dict[str, Any] = {"course": []}
    for event in hogwild.AsyncExecutor(threads=WORKERS).run(program, train, valid=test, epochs=epochs):
        if event.kind == "started":
            found["startup"] = event.compile_seconds
        if event.kind == "epoch":
            found["course"].append((event.seconds, event.metrics["loss"]))
            found["megabytes"] = memory_of([child.pid for child in multiprocessing.active_children() if child.pid])
    return found


def held_out(module: nn.Module, source: Any) -> float:
    """The mean loss of a source."""
    loss, total = nn.BCEWithLogitsLoss(), 0.0
    with torch.no_grad():
        for visit in range(-(-len(source) // 1000)):
            rows = rows_of(visit, 1000, len(source), 0)
            *inputs, target = source.batch(rows)
            total += len(rows) * float(loss(module(*inputs), target))
    return total / len(source)


def train_epoch(module: nn.Module, optimizer: Any, source: Any, rows: np.ndarray) -> None:
    """The rows, batch by batch."""
    loss = nn.BCEWithLogitsLoss()
    for begin in range(0, len(rows), BATCH):
        *inputs, target = source.batch(rows[begin : begin + BATCH])
        optimizer.zero_grad()
        loss(module(*inputs), target).backward()
        optimizer.step()


def run_plain(task: str, train: Any, test: Any, epochs: int, compiled: bool = False) -> dict[str, Any]:
    """One process, two threads of PyTorch. What the compiler needs, on batches of every size, is not counted."""
    torch.set_num_threads(WORKERS)
    train, test = tensor_feed(train), tensor_feed(test)
    module = MODULES[task](train.facts)
    if compiled:
        torch.compiler.reset()
        module = torch.compile(module)
        start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        still = torch.optim.SGD(module.parameters(), lr=0.0)
        for count in (4 * BATCH, len(train) % BATCH + BATCH):
            train_epoch(module, still, train.source, np.arange(count))
        held_out(module, test.source)
        module.load_state_dict(start)
    optimizer = torch.optim.Adagrad(module.parameters(), lr=RATE)
    course, seconds = [], 0.0
    for epoch in range(epochs):
        rows = np.random.default_rng(epoch).permutation(len(train))
        began = time.perf_counter()
        train_epoch(module, optimizer, train.source, rows)
        seconds += time.perf_counter() - began
        course.append((seconds, held_out(module, test.source)))
    torch.set_num_threads(1)
    return {"course": course, "megabytes": memory_of([os.getpid()])}


def work_by_hand(worker: int, module: nn.Module, source: Any, epochs: int, gate: Any) -> None:
    """A worker of the usual loop: shared parameters, an optimizer of its own."""
    torch.set_num_threads(1)
    optimizer = torch.optim.Adagrad(module.parameters(), lr=RATE)
    gate.wait()
    for epoch in range(epochs):
        rows = np.random.default_rng(epoch).permutation(len(source))[worker::WORKERS]
        gate.wait()
        train_epoch(module, optimizer, source, rows)
        gate.wait()
        gate.wait()  # evaluated


def run_by_hand(task: str, train: Any, test: Any, epochs: int) -> dict[str, Any]:
    """The usual Hogwild loop: torch.multiprocessing, share_memory, an optimizer a worker."""
    import torch.multiprocessing as processes

    train, test = tensor_feed(train), tensor_feed(test)
    module = MODULES[task](train.facts)
    module.share_memory()
    context = processes.get_context("spawn")
    gate = context.Barrier(WORKERS + 1)
    began = time.perf_counter()
    workers = [context.Process(target=work_by_hand, args=(k, module, train.source, epochs, gate), daemon=True)
               for k in range(WORKERS)]  # fmt: skip
    for worker in workers:
        worker.start()
    gate.wait()
    startup, course, seconds = time.perf_counter() - began, [], 0.0
    megabytes = 0.0
    for _ in range(epochs):
        gate.wait()
        began = time.perf_counter()
        gate.wait()
        seconds += time.perf_counter() - began
        course.append((seconds, held_out(module, test.source)))
        megabytes = memory_of([worker.pid for worker in workers if worker.pid])
        gate.wait()
    for worker in workers:
        worker.join()
    return {"course": course, "startup": startup, "megabytes": megabytes}


RUNS = {
    "ours": run_ours, "by hand": run_by_hand, "plain, 2 threads": run_plain,
    "plain, 2 threads, compiled": partial(run_plain, compiled=True), "ours, compiled": partial(run_ours, compiled=True),
}  # fmt: skip


def compare_bags(rounds: int) -> dict[str, float]:
    """Our bag against PyTorch's with sparse=True, forward and back, on one thread, in turns: microseconds a batch."""
    torch.set_num_threads(1)
    found: dict[str, list[float]] = {}
    for task in MODULES:
        feed = tensor_feed(make_feed(task, 40 * BATCH, 1))
        width = 64 if task == "sentiment" else 16
        theirs = nn.EmbeddingBag(feed.facts.features, width, mode="sum", sparse=True)
        bags = {"PyTorch": theirs, "ours": EmbeddingBag(feed.facts.features, width, mode="sum")}
        batches = [feed.source.batch(np.arange(k * BATCH, (k + 1) * BATCH))[:2] for k in range(40)]
        for _ in range(rounds + 1):
            for name, bag in bags.items():
                began = time.process_time()
                for ids, offsets in batches:
                    bag.weight.grad = None
                    bag(ids, offsets).sum().backward()
                    bag.weight.grad = bag.weight.grad.coalesce() if name == "PyTorch" else bag.weight.grad
                seconds = time.process_time() - began
                found.setdefault(f"{task}, {name}", []).append(1e6 * seconds / len(batches))
    return {name: float(np.median(each[1:])) for name, each in found.items()}


def seconds_to(course: list[tuple[float, float]], loss: float) -> float:
    """When a course came to a loss, between two epochs in proportion."""
    before = (0.0, float("inf"))
    for now in course:
        if now[1] <= loss:
            if before[1] == float("inf"):
                return now[0]
            return before[0] + (now[0] - before[0]) * (before[1] - loss) / max(1e-12, before[1] - now[1])
        before = now
    return float("inf")


def _last(course: list[tuple[float, float]]) -> float:
    """Seconds of the last epoch, when all that is compiled is."""
    return course[-1][0] - (course[-2][0] if len(course) > 1 else 0.0)


def main() -> None:
    """Run all contenders, alternating, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=MODULES, default="sentiment")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bags", action="store_true", help="compare bags of embeddings alone")
    options = parser.parse_args()
    if options.bags:
        print(json.dumps(compare_bags(5 * options.repeats), indent=1))
        return
    train, test = make_feed(options.task, options.rows, 1), make_feed(options.task, 5000, 2)
    runs: dict[str, list[Any]] = {name: [] for name in RUNS}
    for _ in range(options.repeats):
        for name, run in RUNS.items():
            runs[name].append(run(options.task, train, test, options.epochs))
    target = max(min(loss for _, loss in run["course"]) for each in runs.values() for run in each)
    found = {}
    for name, each in runs.items():
        times = sorted(seconds_to(run["course"], target) for run in each)
        whole = sorted(run["course"][-1][0] for run in each)
        found[name] = {
            "seconds_to_loss": times, "samples_per_second": options.rows * options.epochs / whole[len(whole) // 2],
            "seconds_of_last_epoch": sorted(_last(run["course"]) for run in each),
            "best_loss": min(loss for run in each for _, loss in run["course"]),
            "startup": [run["startup"] for run in each if "startup" in run],
            "megabytes": each[-1]["megabytes"],
        }  # fmt: skip
    middle = {name: each["seconds_to_loss"][len(each["seconds_to_loss"]) // 2] for name, each in found.items()}
    best = min(seconds for name, seconds in middle.items() if not name.startswith("ours"))
    found["times_the_best"] = best / middle["ours"]
    print(json.dumps({"task": options.task, "loss": target, **found}, indent=1))


if __name__ == "__main__":
    main()
