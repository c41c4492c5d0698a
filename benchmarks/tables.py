"""Opening tables for the first time on two threads, against reading alone: pyarrow's and polars' own, in turns.

Two tables, each as CSV and as Parquet: clicks of 26 columns of words and 13 of numbers, and reviews of films (IMDB,
where it is there, else made text) with a label. `open, cold` is all that a first run pays: hash of the content,
parsing, ids of categories or of n-grams, ranking, and writing to the cache with fsync; `open, warm` is what every later
run pays.
Peers read the file into memory, all columns, and do nothing with them: that is the least that anybody does, not the
same work. Words are words for them; pyarrow has a second row with words as dictionaries, which is nearer to ids.

Ratios are medians over rounds of the time of the faster peer's plain reading to ours; above 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

THREADS = 2
os.environ["POLARS_MAX_THREADS"] = str(THREADS)  # before the import

import polars  # noqa: E402

from hogwild.config import FeedConfig  # noqa: E402
from hogwild.feeds.open import open_feed  # noqa: E402
from hogwild.feeds.storage import cache  # noqa: E402

WORDS, NUMBERS = 26, 13
REVIEWS = Path(__file__).resolve().parents[2] / "shared" / "data" / "imdb" / "train.tsv.xz"
OURS = ("open, cold", "open, warm")


def clicks(rows: int) -> Any:
    """Words of a skewed distribution, up to a million of a column, in eight hexadecimal digits; numbers of six digits,
    a tenth of them missing."""
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {"label": pa.array(rng.integers(0, 2, rows))}
    for k in range(NUMBERS):
        numbers = np.round(rng.exponential(10.0, rows), 4)
        columns[f"I{k}"] = pa.array(numbers, mask=rng.random(rows) < 0.1)
    for k, size in enumerate(np.logspace(1, 6, WORDS)):
        ids = (size ** rng.random(rows)).astype(np.uint64) * np.uint64(2654435761) % np.uint64(2**32)
        columns[f"C{k}"] = pa.array([f"{ident:08x}" for ident in ids.tolist()])
    return pa.table(columns)


def reviews(rows: int) -> Any:
    """Film reviews, as many as there are up to that number, or text of made words."""
    if REVIEWS.exists():
        with lzma.open(REVIEWS, "rt", encoding="utf-8", newline="\n") as file:
            names = file.readline().rstrip("\n").split("\t")
            found = [line.rstrip("\n").split("\t") for line in file][:rows]
        label, text = names.index("label"), names.index("text")
        return pa.table({"label": [row[label] for row in found], "text": [row[text] for row in found]})
    rng = np.random.default_rng(2)
    texts = [" ".join(f"w{word}" for word in (60_000 ** rng.random(230)).astype(int).tolist()) for _ in range(rows)]
    return pa.table({"label": rng.integers(0, 2, rows), "text": texts})


def readers(path: Path, config: FeedConfig) -> dict[str, Callable[[], int]]:
    """Ways to read a file; each returns the number of rows."""

    def cold() -> int:
        cache.clear()
        return len(open_feed(path, config))

    def warm() -> int:
        return len(open_feed(path, config))

    if path.suffix == ".parquet":
        return {
            "pyarrow": lambda: int(pyarrow.parquet.read_table(path).num_rows),
            "polars": lambda: len(polars.read_parquet(path)),
            OURS[0]: cold,
            OURS[1]: warm,
        }
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=False)
    return {
        "pyarrow": lambda: int(pyarrow.csv.read_csv(path, parse_options=parsing).num_rows),
        "pyarrow, dictionaries": lambda: int(
            pyarrow.csv.read_csv(
                path,
                parse_options=parsing,
                convert_options=pyarrow.csv.ConvertOptions(auto_dict_encode=True, auto_dict_max_cardinality=1 << 30),
            ).num_rows
        ),
        "polars": lambda: len(polars.read_csv(path)),
        OURS[0]: cold,
        OURS[1]: warm,
    }


def timed(way: Callable[[], int]) -> tuple[float, float, int]:
    """Seconds, seconds of all threads, and rows."""
    begun, worked = time.perf_counter(), time.process_time()
    rows = way()
    return time.perf_counter() - begun, time.process_time() - worked, rows


def compare(path: Path, config: FeedConfig, rounds: int) -> dict[str, Any]:
    """Seconds of every way to read the file."""
    ways = readers(path, config)
    rows = {name: way() for name, way in ways.items()}  # compiles, and fills the page cache
    if len(set(rows.values())) != 1:
        raise SystemExit(f"the readers disagree: {rows}")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    worked: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            wall, cpu, _ = timed(way)
            seconds[name].append(wall)
            worked[name].append(cpu)
    plain = [min(each) for each in zip(seconds["pyarrow"], seconds["polars"], strict=True)]
    return {
        "megabytes": path.stat().st_size / 1e6,
        "rows": rows["open, cold"],
        "seconds": {name: min(each) for name, each in seconds.items()},
        "processor_seconds": {name: min(each) for name, each in worked.items()},
        "ratio": {name: median(np.divide(plain, each).tolist()) for name, each in seconds.items()},
    }


def main() -> None:
    """Print a table each; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of clicks; there are a quarter as many reviews")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, each with all readers in turn")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    pa.set_cpu_count(THREADS)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        os.environ["HOGWILD_CACHE"] = name  # after the import of the kernels: compiled code stays where it is
        tables = {
            "clicks": (clicks(options.rows), FeedConfig(label="label")),
            "reviews": (reviews(options.rows // 4), FeedConfig(label="label", text="text", ngrams=2)),
        }
        for title, (table, config) in tables.items():
            paths = Path(name) / f"{title}.csv", Path(name) / f"{title}.parquet"
            pyarrow.csv.write_csv(table, paths[0])
            pyarrow.parquet.write_table(table, paths[1])
            for path in paths:
                each = found[path.name] = compare(path, config, options.rounds)
                print(f"{path.name}: {each['megabytes']:.0f} MB, {each['rows']:,} rows; best of {options.rounds}")
                for way, seconds in each["seconds"].items():
                    worked, ratio = each["processor_seconds"][way], each["ratio"][way]
                    print(f"  {way:24} {seconds:8.3f} s {worked:8.3f} s of processor {ratio:7.2f}x", flush=True)
    if options.json:
        machine = {"machine": platform.machine(), "cores": os.cpu_count()}
        Path(options.json).write_text(json.dumps(found | machine, indent=2) + "\n")


if __name__ == "__main__":
    main()
