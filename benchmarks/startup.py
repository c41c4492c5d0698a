"""How long a person waits: help, a tiny run with compiled code at hand, and the first run ever. Wall-clock seconds.

Targets: help below 0.5 s, a tiny warm run below 2 s, compiling for the first time below 10 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5


def timed(arguments: list[str], environment: dict[str, str]) -> tuple[float, str]:
    """Seconds of one command, and what it printed."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "hogwild", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, done.stdout


def main() -> None:
    """Measure, print a line each, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOGWILD_CACHE": f"{folder}/cache"}
        data = f"{folder}/tiny.svm"
        timed(["make-dataset", "sparse", "--rows", "1000", "--features", "500", "--output", data], environment)
        train = ["train", "classifier", data, "--json", "--quiet", "--epochs", "2"]
        figures["first_run"], printed = timed(train, environment)
        figures["first_run_compile"] = json.loads(printed)["seconds"]["compile"]
        figures["warm_run"] = min(timed(train, environment)[0] for _ in range(RUNS))
        figures["help"] = min(timed(["--help"], environment)[0] for _ in range(RUNS))
        code = "import time; t = time.perf_counter(); import hogwild; print(time.perf_counter() - t)"
        timing = [sys.executable, "-c", code]
        figures["import"] = min(float(subprocess.check_output(timing, text=True)) for _ in range(RUNS))
    for name, seconds in figures.items():
        print(f"{name:20} {seconds:7.3f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
