"""`make fuzz`: try targets by hand with any count and seed."""

from __future__ import annotations

import argparse
import sys
import time

from fuzz.harness import run, work
from fuzz.targets import TARGETS


def main() -> int:
    """The number of findings, at most 100."""
    if sys.argv[1:2] == ["--worker"]:
        work(TARGETS, int(sys.argv[2]), sys.argv[3])
        return 0
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", default=[], help=f"of {', '.join(TARGETS)}; all if none is named")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help="number of the first case; else what was kept comes first")
    asked = parser.parse_args()
    total = 0
    for name in asked.target or TARGETS:
        start = time.monotonic()
        findings = run([TARGETS[name]], asked.count, asked.seed, asked.first)
        for finding in findings:
            print(finding, flush=True)
        print(f"{name}: {asked.count} cases, {len(findings)} findings, {time.monotonic() - start:.1f} s", flush=True)
        total += len(findings)
    return min(total, 100)


if __name__ == "__main__":
    sys.exit(main())
