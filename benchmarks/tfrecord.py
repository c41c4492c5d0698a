"""Reading TFRecord files of sparse examples: ours against TensorFlow's reader, interleaved, the best of several rounds.

The file: `nz_idx` (10 to 99 ids below 1,000,000), `nz_values` and `label`. TensorFlow: TFRecordDataset, batches, and
tf.io.parse_example with VarLen features, in two threads and with AUTOTUNE. `parse` makes arrays of the file, as
TensorFlow does; both verify checksums. `open, cold` is all that a first run pays: hash of the content, parsing,
ranking, and writing to the cache with fsync; `open, warm` is what every later run pays. `write` is ours against
tf.io.TFRecordWriter with tf.train.Example. Megabytes a second of the clock, and of all threads' time on processors,
which other work on the machine disturbs less.

Needs TensorFlow: run it with an environment that has it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from hogwild.arrays import Rows
from hogwild.config import FeedConfig
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.storage import cache
from hogwild.feeds.tfrecord.read import TfrecordEncoder
from hogwild.feeds.tfrecord.write import write_tfrecord

FEATURES = 1_000_000
PARTS = {
    "nz_idx": tf.io.VarLenFeature(tf.int64),
    "nz_values": tf.io.VarLenFeature(tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def make_rows(count: int) -> Rows:
    """Rows as the peer makes them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 100, count)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    ids = rng.integers(FEATURES, size=offsets[-1])
    for first, last in itertools.pairwise(offsets):
        ids[first:last].sort()
    values = rng.uniform(0, 10, len(ids)).astype(np.float32)
    targets = rng.integers(10, size=count).astype(np.float32)
    return Rows(offsets, ids.astype(np.int32), values, targets, np.ones(count, np.float32))


def parse(path: Path, threads: int, binary: bool = False) -> int:
    """All entries of a file as arrays, with our parser; returns how many there are."""
    config = FeedConfig(binary=binary)
    encoder = TfrecordEncoder(config, threads=threads)
    return sum(len(chunk.ids) for chunk in encoder.chunks(open_sources(path, config)))


def tensorflow(path: Path, batch: int, calls: int) -> int:
    """The same with TensorFlow."""
    data = tf.data.TFRecordDataset(str(path)).batch(batch)
    data = data.map(lambda records: tf.io.parse_example(records, PARTS), num_parallel_calls=calls)
    return sum(int(parts["nz_idx"].values.shape[0]) for parts in data.prefetch(tf.data.AUTOTUNE))


def open_cold(path: Path) -> int:
    """As on a first run."""
    cache.clear()
    return open_feed(path).nonzeros


def tensorflow_write(path: Path, rows: Rows) -> int:
    """A file by TensorFlow; a tenth of the rows, as it is slow."""
    integers, floats, feature = tf.train.Int64List, tf.train.FloatList, tf.train.Feature
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(rows.targets) // 10):
            part = slice(rows.offsets[row], rows.offsets[row + 1])
            lists = {
                "nz_idx": feature(int64_list=integers(value=rows.ids[part])),
                "nz_values": feature(float_list=floats(value=rows.values[part])),
                "label": feature(int64_list=integers(value=[int(rows.targets[row])])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString())
    return 0


def compare(ways: dict[str, Callable[[], int]], rounds: int, sizes: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Megabytes a second of each way, by the clock and by processor time, the best of so many rounds, in turns."""
    for way in ways.values():
        way()  # compiles, and fills the page cache
    best = {name: (float("inf"), float("inf")) for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begun, worked = time.perf_counter(), time.process_time()
            way()
            found = time.perf_counter() - begun, time.process_time() - worked
            best[name] = min(best[name][0], found[0]), min(best[name][1], found[1])
    return {name: (sizes[name] / seconds, sizes[name] / work) for name, (seconds, work) in best.items()}


def show(title: str, speeds: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Print speeds and their ratios to the best of TensorFlow."""
    peers = [pair for name, pair in speeds.items() if name.startswith("TensorFlow")]
    peer, work = max(pair[0] for pair in peers), max(pair[1] for pair in peers)
    print(f"{title:36}  by the clock            by processor time")
    ratios = {name: (fast / peer, lean / work) for name, (fast, lean) in speeds.items()}
    for name, (fast, lean) in speeds.items():
        print(f"  {name:36} {fast:8,.0f} MB/s {ratios[name][0]:7.1f}x {lean:8,.0f} MB/s {ratios[name][1]:7.1f}x")
    return {"megabytes_per_second": speeds, "ratio": ratios}


def main() -> None:
    """Print tables; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="examples of the file")
    parser.add_argument("--file", help="a file that is there already, instead of a made one")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many is taken")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    found: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "tensorflow": tf.__version__}
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HOGWILD_CACHE"] = directory  # after the import of the kernels: compiled code stays where it is
        rows = make_rows(options.rows)
        path = Path(options.file or Path(directory) / "file.tfrecord")
        if not options.file:
            write_tfrecord(path, rows)
        ways: dict[str, Callable[[], int]] = {
            "TensorFlow, batches of 512": lambda: tensorflow(path, 512, 2),
            "TensorFlow, batches of 512, AUTOTUNE": lambda: tensorflow(path, 512, tf.data.AUTOTUNE),
            "TensorFlow, batches of 4096": lambda: tensorflow(path, 4096, 2),
            "parse, 1 thread": lambda: parse(path, 1),
            "parse, 2 threads": lambda: parse(path, 2),
            "parse, 2 threads, --binary": lambda: parse(path, 2, binary=True),
            "open, cold": lambda: open_cold(path),
            "open, warm": lambda: open_feed(path).nonzeros,
        }
        entries = {name: way() for name, way in ways.items()}
        if len(set(entries.values())) != 1:
            raise SystemExit(f"the readers disagree: {entries}")
        size = path.stat().st_size / 1e6
        found["read"] = show(f"reading {size:.0f} MB:", compare(ways, options.rounds, dict.fromkeys(ways, size)))
        written = Path(directory) / "written.tfrecord"
        write = {"TensorFlow": lambda: tensorflow_write(written, rows), "write": lambda: write_tfrecord(written, rows)}
        write_tfrecord(written, rows)
        size = written.stat().st_size / 1e6
        speeds = compare(write, options.rounds, {"TensorFlow": size / 10, "write": size})
        found["write"] = show(f"writing {size:.0f} MB:", speeds)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
