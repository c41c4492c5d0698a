"""A sparse multilayer perceptron against TensorFlow, from the same TFRecord file: samples a second.

The data and the peer are those of shared/peers/tf_sparse_mlp.py: 40,000 records of 10 to 99 nonzeros out of 1,000,000,
a table of 1,000,000 x 128, relu, 64, 10 classes, sgd. TensorFlow reads and parses the file in every epoch, or keeps
parsed batches in memory (`cached`); ours reads it once, and trains from mapped arrays: both are given, and also ours
with the reading counted in. Systems take turns; the best round counts. Memory bandwidth is measured beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from hogwild.executor.events import EpochEnded

PEER = Path(__file__).resolve().parents[2] / "shared" / "peers" / "tf_sparse_mlp.py"
ROWS = 40_000


def tensorflow(place: Path, seconds: float, *words: str) -> float:
    """Samples a second."""
    done = subprocess.run(
        [sys.executable, str(PEER), "--n", str(ROWS), "--seconds", str(seconds), *words],
        capture_output=True, text=True, check=True, env={**os.environ, "PEER_DATA": str(place)},
    )  # fmt: skip
    return float(json.loads(done.stdout.strip().splitlines()[-1])["examples_per_s"])


def ours(feed: Any, threads: int, batch: int, epochs: int = 4) -> float:
    """Samples a second of the best epoch."""
    program = hogwild.SparseMLP(
        dim=128, hidden=(64,), lookup_activation="relu", optimizer="sgd", batch_size=batch, init=0.005,
        features=1_000_000,
    )  # fmt: skip
    executor = hogwild.AsyncExecutor(threads=threads, epochs=epochs, lr=0.001, sharing="all")
    return max(len(feed) / e.epoch_seconds for e in executor.run(program, feed) if isinstance(e, EpochEnded))


def bandwidth(threads: int = 2, rounds: int = 5) -> float:
    """GB a second that this machine copies (read and written), in arrays that no cache holds."""
    size = 1 << 26
    pairs = [(np.ones(size, np.float32), np.zeros(size, np.float32)) for _ in range(threads)]

    def work(pair: Any) -> None:
        np.copyto(pair[1], pair[0])

    best = 0.0
    for _ in range(rounds):
        workers = [threading.Thread(target=work, args=(pair,)) for pair in pairs]
        began = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = max(best, 2 * 4 * size * threads / (time.perf_counter() - began) / 1e9)
    return best


def main() -> None:
    """Run all, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is taken")
    parser.add_argument("--seconds", type=float, default=6, help="of each run of TensorFlow")
    parser.add_argument("--batch", type=int, default=32, help="samples of a visit of ours")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        tensorflow(place, 0.5)  # makes the file
        path = next(place.glob("*.tfrecords"))
        plain = hogwild.FeedConfig(features=1_000_000, cache=False)
        hogwild.open_feed(str(path), plain)  # compiles
        began = time.perf_counter()
        feed = hogwild.open_feed(str(path), plain)
        reading = time.perf_counter() - began
        binary = hogwild.open_feed(str(path), hogwild.FeedConfig(features=1_000_000, cache=False, binary=True))
        for _ in range(options.rounds):
            for name, run in {
                "hogwild, 2 threads": lambda: ours(feed, 2, options.batch),
                "hogwild, 1 thread": lambda: ours(feed, 1, options.batch),
                "hogwild, 2 threads, --binary": lambda: ours(binary, 2, options.batch),
                "TensorFlow, batch 512": lambda: tensorflow(place, options.seconds),
                "TensorFlow, 2 lock-free threads": lambda: tensorflow(place, options.seconds, "--threads", "2"),
                "TensorFlow, 2 threads, parsed batches kept": lambda: tensorflow(
                    place, options.seconds, "--threads", "2", "--source", "cached"
                ),
            }.items():
                rates.setdefault(name, []).append(run())
        speed = max(rates["hogwild, 2 threads"])
        rates["hogwild, 2 threads, one epoch with reading"] = [ROWS / (reading + ROWS / speed)]
        nonzeros = feed.nonzeros / len(feed)
    base = max(rates["TensorFlow, 2 lock-free threads"])
    for name, all_rates in rates.items():
        print(f"{name:45} {max(all_rates):9,.0f} samples/s  {max(all_rates) / base:5.2f}x")
    copied, moved = bandwidth(), speed * nonzeros * 128 * 4 * 2 / 1e9
    print(
        f"rows read and written: {moved:.1f} GB/s, {moved / copied:.0%} of what this machine copies ({copied:.1f} GB/s)"
    )
    if options.json:
        figures = {name: max(all_rates) for name, all_rates in rates.items()}
        Path(options.json).write_text(json.dumps({**figures, "moved": moved, "copied": copied}, indent=2))


if __name__ == "__main__":
    main()
