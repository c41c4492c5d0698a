"""Recommenders against PyTorch and implicit: MF-BPR on Gowalla check-ins, the same dimension, one drawn negative each.

All get the same interactions and are measured by the same code: recall@20 and NDCG@20 over all items that a user has
not in training. PyTorch: two embeddings with sparse gradients and item biases, SparseAdam, batches of 2,048, negatives
drawn again where the user has them. implicit: its BPR at its own rate and penalty, which want more epochs; compare its
speed. Epochs take turns, in one process; the rate is that of the best epoch of each.
--tune chooses learning rate and penalty of each by NDCG@20 on a tenth of the training data, held out; the test data are
not looked at. What it chose are the defaults here.
Published for MF-BPR on this split, of 64 numbers (He et al. 2020, LightGCN): recall@20 0.1291, NDCG@20 0.1109.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hogwild
from hogwild.executor.events import EpochEnded
from hogwild.programs.recommender.ranking import Factors, ranking_metrics, relevant_in, seen_in

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "gowalla"
PUBLISHED = {"recall@20": 0.1291, "ndcg@20": 0.1109}


class Epoch(NamedTuple):
    """Seconds of an epoch, and what predicts after it."""

    seconds: float
    factors: Factors


def ours(train: Any, arguments: argparse.Namespace, threads: int) -> Iterator[Epoch]:
    """Train, an epoch at a time."""
    program = hogwild.MatrixFactorization(dim=arguments.dim, loss="bpr", l2=arguments.l2)
    executor = hogwild.AsyncExecutor(threads=threads, seed=arguments.seed, sharing=arguments.sharing)
    for event in executor.run(program, train, epochs=arguments.epochs, lr=arguments.lr):
        if isinstance(event, EpochEnded):
            yield Epoch(event.epoch_seconds, program.factors())


def pytorch(train: Any, arguments: argparse.Namespace) -> Iterator[Epoch]:
    """The same by PyTorch."""
    import torch

    torch.manual_seed(arguments.seed)
    torch.set_num_threads(arguments.threads)
    users = torch.nn.Embedding(len(train.users), arguments.dim, sparse=True)
    items = torch.nn.Embedding(len(train.items), arguments.dim, sparse=True)
    biases = torch.nn.Embedding(len(train.items), 1, sparse=True)
    for table in (users, items):
        torch.nn.init.normal_(table.weight, std=0.1)
    torch.nn.init.zeros_(biases.weight)
    parameters = [users.weight, items.weight, biases.weight]
    optimizer = torch.optim.SparseAdam(parameters, lr=arguments.torch_lr)
    mine, theirs = (torch.from_numpy(np.array(column, np.int64)) for column in train.samples[:2])
    owned = torch.sort(mine * len(train.items) + theirs).values
    for _ in range(arguments.epochs):
        began = time.perf_counter()
        order = torch.randperm(len(mine))
        negatives = torch.randint(len(train.items), (len(mine),))
        for _ in range(10):  # draw again what the user has
            keys = mine[order] * len(train.items) + negatives
            places = torch.searchsorted(owned, keys).clamp(max=len(owned) - 1)
            wrong = owned[places] == keys
            if not wrong.any():
                break
            negatives[wrong] = torch.randint(len(train.items), (int(wrong.sum()),))
        for first in range(0, len(order), arguments.batch):
            part = order[first : first + arguments.batch]
            bad = negatives[first : first + arguments.batch]
            user, good, other = users(mine[part]), items(theirs[part]), items(bad)
            apart = (user * (good - other)).sum(1) + (biases(theirs[part]) - biases(bad))[:, 0]
            squares = (user**2).sum() + (good**2).sum() + (other**2).sum()
            loss = torch.nn.functional.softplus(-apart).mean() + arguments.torch_l2 / 2 * squares / len(part)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds = time.perf_counter() - began
        tables = [table.detach().numpy().copy() for table in parameters]
        nobody = np.zeros(len(train.users), np.float32)
        yield Epoch(seconds, Factors(tables[0], nobody, tables[1], tables[2][:, 0], 0.0))


def by_implicit(train: Any, arguments: argparse.Namespace) -> Iterator[Epoch]:
    """implicit's BPR at its defaults: plain sgd; an epoch has as many draws as there are interactions."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from scipy.sparse import csr_matrix

    mine, theirs = train.samples[:2]
    matrix = csr_matrix((np.ones(len(mine), np.float32), (mine, theirs)), shape=(len(train.users), len(train.items)))
    model = BayesianPersonalizedRanking(
        factors=arguments.dim, iterations=1, num_threads=arguments.threads, random_state=arguments.seed
    )
    nobody = np.zeros(len(train.users), np.float32)
    told: list[float] = []
    for _ in range(arguments.epochs):
        model.fit(matrix, show_progress=False, callback=lambda number, seconds, *rest: told.append(seconds))
        users, items = np.array(model.user_factors), np.array(model.item_factors)
        yield Epoch(told[-1], Factors(users[:, :-1], nobody, items[:, :-1], items[:, -1], 0.0))


def tune(train: Any, arguments: argparse.Namespace) -> None:
    """Print NDCG@20 on a tenth of the training data, for some settings of both trained on the rest."""
    held = np.random.default_rng(0).random(len(train)) < 0.1
    parts = [replace(train, samples=type(train.samples)(*(c[rows] for c in train.samples))) for rows in (~held, held)]
    seen = seen_in(parts[0].samples, len(train.users), len(train.items))
    relevant, _ = relevant_in(parts[1].samples, seen, len(train.items))
    runs = [(lr, l2, "hogwild") for lr in (0.05, 0.1, 0.2) for l2 in (0.01, 0.02, 0.04)]
    runs += [(lr, l2, "pytorch") for lr in (0.002, 0.005, 0.01) for l2 in (0.002, 0.005, 0.01)]
    for lr, l2, name in runs:
        given = argparse.Namespace(**{**vars(arguments), "lr": lr, "l2": l2, "torch_lr": lr, "torch_l2": l2})
        epochs = ours(parts[0], given, arguments.threads) if name == "hogwild" else pytorch(parts[0], given)
        *_, last = epochs
        score = ranking_metrics(last.factors, seen, relevant, 20)["ndcg@20"]
        print(f"{name:8} rate {lr:<6} L2 {l2:<6} NDCG@20 {score:.4f}", flush=True)


def main() -> None:
    """Run and print; with --json also write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sharing", default="auto")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--l2", type=float, default=0.04)
    parser.add_argument("--torch-lr", type=float, default=0.002)
    parser.add_argument("--torch-l2", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=10, help="measure rankings after so many epochs")
    parser.add_argument("--tune", action="store_true", help="only try settings, on held-out training data")
    parser.add_argument("--without", nargs="+", default=[], choices=["pytorch", "implicit"], help="peers to leave out")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    arguments = parser.parse_args()
    train = hogwild.open_ratings(DATA / "train.txt.xz")
    if arguments.tune:
        tune(train, arguments)
        return
    test = hogwild.open_ratings(DATA / "test.txt.xz", users=train.users, items=train.items)
    seen = seen_in(train.samples, len(train.users), len(train.items))
    relevant, _ = relevant_in(test.samples, seen, len(train.items))
    turns: dict[str, Iterator[Epoch]] = {
        "hogwild": ours(train, arguments, arguments.threads),
        "hogwild, 1 thread": ours(train, arguments, 1),
        "pytorch": pytorch(train, arguments),
        "implicit": by_implicit(train, arguments),
    }
    turns = {name: turn for name, turn in turns.items() if name not in arguments.without}
    found: dict[str, dict[str, Any]] = {name: {"rates": [], "metrics": {}} for name in turns}
    for epoch in range(1, arguments.epochs + 1):
        for name, contestant in turns.items():
            done = next(contestant)
            found[name]["rates"].append(len(train) / done.seconds)
            if epoch % arguments.every == 0 or epoch == arguments.epochs:
                metrics = ranking_metrics(done.factors, seen, relevant, 20)
                found[name]["metrics"][epoch] = metrics
                shown = "  ".join(f"{metric} {value:.4f}" for metric, value in metrics.items())
                rate = max(found[name]["rates"]) / 1e3
                print(f"epoch {epoch:3} {name:18} {rate:8.0f} thousand/s  {shown}", flush=True)
    rates = {name: max(result["rates"]) for name, result in found.items()}
    ratios = {name: rates["hogwild"] / rates[name] for name in rates if name in ("pytorch", "implicit")}
    for name, ratio in ratios.items():
        print(f"{ratio:.2f} times the interactions a second of {name}")
    print(f"published {PUBLISHED}")
    if arguments.json:
        where = {"machine": platform.processor(), "cores": os.cpu_count(), "arguments": vars(arguments)}
        arguments.json.write_text(json.dumps({**where, "ratios": ratios, **found}, indent=2, default=str))


if __name__ == "__main__":
    main()
