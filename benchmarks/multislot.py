"""Reading MultiSlot files on two threads: ours against Paddle's InMemoryDataset.load_into_memory, in turns.

Clicks of 26 slots of one id and 13 dense numbers, in eight files. `parse` makes arrays of the text: ids hashed, or
numbered by a vocabulary, which Paddle leaves to its embedding table. `open, cold` is all that a first run pays: hash of
the content, parsing, ranking, and writing to the cache with fsync; `open, warm` is what every later run pays.

Paddle runs in a process of its own, of the Python that --peer names. Ratios are medians over rounds; the last column
divides the seconds that all threads worked, which other loads of the machine change less.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hogwild.config import FeedConfig
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.slots.multislot import MultiSlotEncoder
from hogwild.feeds.storage import cache

SLOTS, COLUMNS, FILES = 26, 13, 8
THEIRS = "Paddle, 2 threads"
DESCRIPTION = f"""
[[slot]]
name = "dense"
type = "float"
dense = true
width = {COLUMNS}
[[slot]]
name = "C"
type = "uint64"
repeat = {SLOTS}
[[slot]]
name = "label"
type = "uint64"
label = true
"""
PEER = """
import os, sys, time
os.environ["FLAGS_enable_pir_api"] = "0"
import paddle
paddle.enable_static()
files, slots, columns = sys.argv[3:], int(sys.argv[1]), int(sys.argv[2])
with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
    variables = [paddle.static.data("dense", [None, columns], "float32")]
    variables += [paddle.static.data(f"C{k}", [None, 1], "int64") for k in range(slots)]
    variables += [paddle.static.data("label", [None, 1], "int64")]
for _ in sys.stdin:
    data = paddle.base.DatasetFactory().create_dataset("InMemoryDataset")
    data.set_use_var(variables)
    data.set_batch_size(512)
    data.set_thread(2)
    data.set_filelist(files)
    data.set_pipe_command("cat")
    begun, worked = time.perf_counter(), time.process_time()
    data.load_into_memory()
    print("seconds", time.perf_counter() - begun, time.process_time() - worked, data.get_memory_data_size(), flush=True)
    data.release_memory()
"""


class Paddle:
    """A process that loads the files when it is asked to."""

    def __init__(self, python: str, files: list[Path]) -> None:
        command = [python, "-c", PEER, str(SLOTS), str(COLUMNS), *map(str, files)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def load(self) -> tuple[float, float, int]:
        """Seconds of one loading, seconds of all its threads, and rows."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("seconds"):
                _, seconds, worked, rows = line.split()
                return float(seconds), float(worked), int(rows)
        raise SystemExit("Paddle ended; does the Python that --peer names have paddlepaddle?")


def write_files(directory: Path, rows: int) -> list[Path]:
    """Ids of a skewed distribution, up to a million a slot; numbers with five digits."""
    rng = np.random.default_rng(1)
    paths = []
    for part in range(FILES):
        count = rows // FILES
        sizes = np.logspace(1, 6, SLOTS)
        ids = (sizes ** rng.random((count, SLOTS))).astype(np.int64) + np.arange(SLOTS) * 1_000_003
        numbers = np.log1p(rng.exponential(1.0, (count, COLUMNS)))
        paths.append(directory / f"part-{part}.txt")
        with open(paths[-1], "w") as file:
            for row, dense in zip(ids.tolist(), numbers.tolist(), strict=True):
                words = [str(COLUMNS), *(f"{x:.5f}" for x in dense), *(f"1 {x}" for x in row), f"1 {row[0] % 2}"]
                file.write(" ".join(words) + "\n")
    return paths


def timed(way: Callable[[], int]) -> tuple[float, float, int]:
    """Seconds of a way to read, seconds of all its threads, and rows."""
    begun, worked = time.perf_counter(), time.process_time()
    rows = way()
    return time.perf_counter() - begun, time.process_time() - worked, rows


def compare(files: list[Path], slots: Path, peer: str, rounds: int) -> dict[str, Any]:
    """Megabytes a second of every way to read the files."""
    hashed = FeedConfig(format="multislot", slots=str(slots), categories="hash")
    numbered = FeedConfig(format="multislot", slots=str(slots))

    def parse(config: FeedConfig, threads: int) -> int:
        encoder = MultiSlotEncoder(config, threads=threads)
        return sum(len(chunk.targets) for chunk in encoder.chunks(open_sources(files, config)))

    def cold() -> int:
        cache.clear()
        return len(open_feed(files, numbered))

    ways: dict[str, Callable[[], tuple[float, float, int]]] = {
        THEIRS: Paddle(peer, files).load,
        "parse, hashed, 1 thread": lambda: timed(lambda: parse(hashed, 1)),
        "parse, hashed, 2 threads": lambda: timed(lambda: parse(hashed, 2)),
        "parse, numbered, 2 threads": lambda: timed(lambda: parse(numbered, 2)),
        "open, cold": lambda: timed(cold),
        "open, warm": lambda: timed(lambda: len(open_feed(files, numbered))),
    }
    rows = {name: way()[2] for name, way in ways.items()}  # compiles, and fills the page cache
    if len(set(rows.values())) != 1:
        raise SystemExit(f"the readers disagree: {rows}")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    worked: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found = way()
            seconds[name].append(found[0])
            worked[name].append(found[1])
    size = sum(path.stat().st_size for path in files) / 1e6
    return {
        "megabytes": size,
        "rows": rows["open, cold"],
        "megabytes_per_second": {name: size / min(each) for name, each in seconds.items()},
        "ratio": {name: median(np.divide(seconds[THEIRS], each).tolist()) for name, each in seconds.items()},
        "processor_ratio": {name: min(worked[THEIRS]) / min(each) for name, each in worked.items()},
    }


def main() -> None:
    """Print a table; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of all files together")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, each with all readers in turn")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has paddlepaddle")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["HOGWILD_CACHE"] = name  # after the import of the kernels: compiled code stays where it is
        directory = Path(name)
        slots = directory / "slots.toml"
        slots.write_text(DESCRIPTION)
        found = compare(write_files(directory, options.rows), slots, options.peer, options.rounds)
    print(f"{found['megabytes']:.0f} MB, {found['rows']:,} rows; best of {options.rounds}")
    for way, speed in found["megabytes_per_second"].items():
        ratio, processor = found["ratio"][way], found["processor_ratio"][way]
        print(f"  {way:28} {speed:8,.0f} MB/s {ratio:7.1f}x {processor:7.1f}x by seconds of the processor")
    if options.json:
        found |= {"machine": platform.machine(), "cores": os.cpu_count()}
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
