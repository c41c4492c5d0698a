"""Clicks against PaddlePaddle's `train_from_dataset`: samples a second, AUC, and AUC at one and two threads.

The data and the peer are those of shared/peers (ctr_data.py, paddle_ctr.py): 100,000 rows of MultiSlot text, 26 slots
hashed to 1,000,000 ids in one table of 1,000,001 x 16, 13 numbers, dense layers 400-400-400, batches of 512. Paddle
has a process of its own for each run, in turns with ours; the best epoch of each run counts, then the best run. Both
read the same files, before the clock starts. Paddle's output has two scores, so that a rate of it is worth twice the
same rate of ours: ours with sgd is double.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from hogwild.executor.events import EpochEnded

PEERS = Path(__file__).resolve().parents[2] / "shared" / "peers"
DATA = PEERS.parent / "data"
SLOTS = """
[[slot]]
name = "I"
type = "float"
dense = true
width = 13
[[slot]]
name = "C"
type = "uint64"
repeat = 26
[[slot]]
name = "label"
type = "uint64"
label = true
"""
RATES = {"sgd": (0.1, 0.2), "adam": (0.001, 0.001)}  # Paddle's, ours


def paddle(optimizer: str, threads: int, epochs: int, place: Path, one_slot: bool = False, seed: int = 1) -> Any:
    """Samples a second of the best epoch, and AUC on the test data."""
    words = [sys.executable, str(PEERS / "paddle_ctr.py"), "--threads", str(threads), "--opt", optimizer]
    words += ["--lr", str(RATES[optimizer][0]), "--epochs", str(epochs), "--seed", str(seed)]
    words += ["--one-slot"] if one_slot else []
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, cwd=place, env={**os.environ, "PEER_DATA": str(place)}
    )
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return max(found["examples_per_s"]), found["test_auc"]


def ours(feed: Any, test: Any, optimizer: str, threads: int, epochs: int, seed: int = 1, **options: Any) -> Any:
    """The same of ours, with the loss."""
    program = hogwild.SparseMLP(
        dim=16, hidden=(400, 400, 400), optimizer=optimizer, batch_size=512, init=0.01, features=1_000_001
    )  # fmt: skip
    executor = hogwild.AsyncExecutor(threads=threads, seed=seed, epochs=epochs, lr=RATES[optimizer][1], **options)
    rates = [len(feed) / e.epoch_seconds for e in executor.run(program, feed) if isinstance(e, EpochEnded)]
    return max(rates), program.evaluate(test, threads=2)["auc"]


SHAPE: dict[str, Any] = {"dim": 8, "hidden": (64, 32), "batch_size": 256}
TRIED = [(lr, epochs) for lr in (0.001, 0.003, 0.01) for epochs in (2, 4, 8)]


def tables(place: Path) -> Any:
    """Of Adult and Avazu: name, then (training, test) feeds of four fifths and a fifth of the training data, and of
    the training and test data."""
    for name, files, label in (("adult", ("train", "valid"), "-1"), ("avazu", ("train", "test"), "click")):
        paths = [place / f"{name}-{part}.csv" for part in ("part", "held", *files)]
        for file, path in zip(files, paths[2:], strict=True):
            with lzma.open(DATA / name / f"{file}.csv.xz", "rt") as packed:
                path.write_text(packed.read().replace("K.\n", "K\n"))
        lines = paths[2].read_text().splitlines(keepends=True)
        head, rows = (lines[:1], lines[1:]) if label == "click" else ([], lines)
        order = np.random.default_rng(0).permutation(len(rows)).tolist()
        for path, chosen in zip(paths, (order[len(rows) // 5 :], order[: len(rows) // 5]), strict=False):
            path.write_text("".join([*head, *(rows[k] for k in chosen)]))
        config = hogwild.FeedConfig(layout="slots", label=label, ignore=("id",) if name == "avazu" else (), cache=False)
        feeds = []
        for first, second in ((paths[0], paths[1]), (paths[2], paths[3])):
            feed = hogwild.open_feed(str(first), config)
            feeds.append((feed, hogwild.open_feed(str(second), config, schema=feed.schema)))
        yield name, feeds


def our_auc(feed: Any, test: Any, seed: int, lr: float, epochs: int) -> float:
    """AUC of ours at two threads."""
    program = hogwild.SparseMLP(**SHAPE)
    hogwild.train(program, feed, epochs=epochs, threads=2, lr=lr, seed=seed, quiet=True, schedule="constant")
    return float(program.evaluate(test)["auc"])


def torch_auc(feed: Any, test: Any, seed: int, lr: float, epochs: int) -> float:
    """AUC of the same module as PyTorch trains it, from the same start, with Adam."""
    import torch

    from hogwild.programs.sparse.metrics import auc
    from hogwild.pytorch import module_of

    start = hogwild.SparseMLP(**SHAPE)
    start.startup(feed, seed)
    start.finish(feed)
    module = module_of(start)
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(module.parameters(), lr)
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits

    def given(part: Any, rows: Any) -> dict[str, Any]:
        samples = part.samples
        lengths = np.diff(samples.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(samples.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        arrays = {"ids": part.original[samples.ids[entries]].astype(np.int64), "offsets": offsets}
        arrays |= {"slots": samples.slots[entries].astype(np.int64), "dense": samples.dense[rows]}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def wanted(part: Any) -> Any:
        labels = np.array(part.labels)[part.samples.targets.astype(int)] if part.labels else part.samples.targets
        return labels == np.array(start.classes)[1]

    targets = torch.from_numpy(wanted(feed).astype(np.float32))
    for _ in range(epochs):
        for rows in torch.randperm(len(feed)).split(SHAPE["batch_size"]):
            optimizer.zero_grad()
            loss_of(module(**given(feed, rows.numpy()))[:, 0], targets[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        scores = module(**given(test, np.arange(len(test))))[:, 0].numpy()
    return float(auc(scores, wanted(test)))


def same_shape(place: Path, found: dict[str, Any]) -> None:
    """Print AUC of ours and of PyTorch on Adult and Avazu, rate and epochs of each chosen on training data."""
    for name, (held, final) in tables(place):
        for contestant, run in (("hogwild", our_auc), ("PyTorch of the same shape", torch_auc)):
            scores = {setting: np.mean([run(*held, seed, *setting) for seed in (1, 2)]) for setting in TRIED}
            best = max(scores, key=lambda setting: scores[setting])
            aucs = [run(*final, seed, *best) for seed in (1, 2, 3)]
            found[f"quality: {name}, {contestant}"] = {"held out": scores[best], "setting": best, "test": aucs}
            print(
                f"AUC {name:6} {contestant:26} rate {best[0]}, {best[1]} epochs: held out {scores[best]:.4f}, test"
                f" {np.mean(aucs):.4f} ({min(aucs):.4f} to {max(aucs):.4f})",
                flush=True,
            )


def open_all(place: Path) -> tuple[Any, Any]:
    """Training and test feed, from the peer's files."""
    sys.path.insert(0, str(PEERS))
    os.environ["PEER_DATA"] = str(place)
    import ctr_data

    data = ctr_data.ensure(root=str(place))
    test = place / "test.txt"
    ctr_data.write_multislot(test, data["tids"], data["tdense"], data["tlabel"])
    (place / "slots.toml").write_text(SLOTS)
    config = hogwild.FeedConfig(
        format="multislot", slots=str(place / "slots.toml"), shared_ids=True, scale=False, cache=False
    )
    feed = hogwild.open_feed(data["files"], config)
    return feed, hogwild.open_feed(str(test), config, schema=feed.schema)


def main() -> None:
    """Run all, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is taken")
    parser.add_argument("--epochs", type=int, default=2, help="of each run")
    parser.add_argument("--quality", action="store_true", help="AUC at one and two threads, sgd and adam, three seeds")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        feed, test = open_all(place)
        for optimizer in ("sgd", "adam"):
            rates: dict[str, list[float]] = {}
            for _ in range(options.rounds):
                for name, run in {
                    "hogwild, 2 threads": lambda o=optimizer: ours(feed, test, o, 2, options.epochs),
                    "hogwild, 1 thread": lambda o=optimizer: ours(feed, test, o, 1, options.epochs),
                    "Paddle, 26 slots, 2 threads": lambda o=optimizer: paddle(o, 2, options.epochs, place),
                    "Paddle, one slot, 2 threads": lambda o=optimizer: paddle(o, 2, options.epochs, place, True),
                }.items():
                    rate, auc = run()
                    rates.setdefault(name, []).append(rate)
                    found[f"{optimizer}: {name}"] = {"rate": max(rates[name]), "auc": auc}
            base = max(rates["Paddle, 26 slots, 2 threads"])
            for name, all_rates in rates.items():
                auc = found[f"{optimizer}: {name}"]["auc"]
                print(
                    f"{optimizer:5} {name:30} {max(all_rates):9,.0f} samples/s  {max(all_rates) / base:5.2f}x"
                    f"  AUC {auc:.4f} after {options.epochs} epochs",
                    flush=True,
                )
        if options.quality:
            for optimizer, epochs in (("sgd", 3), ("adam", 2)):
                for threads in (1, 2):
                    aucs = [ours(feed, test, optimizer, threads, epochs, seed)[1] for seed in (1, 2, 3)]
                    peer = [paddle(optimizer, threads, epochs, place, seed=seed)[1] for seed in (1, 2, 3)]
                    key = f"{optimizer}, {threads} threads, {epochs} epochs"
                    found[f"quality: {key}"] = {"hogwild": aucs, "paddle": peer}
                    print(f"AUC {key}: hogwild {np.mean(aucs):.4f}, Paddle {np.mean(peer):.4f}", flush=True)
            same_shape(place, found)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
