"""Processes of a run on two nodes are killed at random moments: how many runs finish, with exact counts.

    python benchmarks/cluster_faults.py [--times 20] [--kinds node fetcher "parameter actor" driver] [--seed 1]

Each run counts rows, or words of a text (tests/cluster/killing.py): a change that is lost or counted twice shows. The
driver is the command `hogwild train word2vec`, killed and called again with --resume. Not a measurement of time.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATHS = [str(ROOT / "src"), str(ROOT / "tests")]
sys.path[:0] = PATHS
os.environ["PYTHONPATH"] = os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])
from cluster.killing import CONFIGS, kill_driver, run_and_kill  # noqa: E402
from hogwild.cluster.session import open_session  # noqa: E402

LONGEST = {"driver": 4.0}  # seconds after which it is killed at the latest; others: 1.5


def main() -> None:
    """Kill, and count what finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", choices=[*CONFIGS, "driver"], default=[*CONFIGS, "driver"])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        moments = random.Random(f"{kind} {arguments.seed}")
        good = hit = 0
        began = time.monotonic()
        # One Ray for all runs of a kind, whose processes alone are killed; the driver has one of its own each time.
        with nullcontext() if kind == "driver" else open_session("local", nodes=2, workers_per_node=1):
            for turn in range(arguments.times):
                after = moments.uniform(0.0, LONGEST.get(kind, 1.5))
                try:
                    with tempfile.TemporaryDirectory() as folder:
                        if kind == "driver":
                            hit += kill_driver(after, Path(folder))
                        else:
                            hit += bool(run_and_kill(kind, after, Path(folder))[0])
                    good += 1
                except Exception as error:
                    print(f"{kind}, turn {turn}, after {after:.2f} s: {type(error).__name__}: {error}", flush=True)
        seconds = (time.monotonic() - began) / arguments.times
        print(f"{kind}: {arguments.times} runs, {hit} killed before the end, {good} finished with exact counts, "
              f"{seconds:.0f} s a run", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
