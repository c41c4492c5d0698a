"""Defaults side by side: every data set with ours and with a peer, each as it comes, in one run.

    python benchmarks/defaults.py [--only text,recommender,tables] [--seeds 3] [--json FILE] [--peers DIR/bin/python]

Prints one table (docs/quality.md opens with it), and writes the rows as JSON. Nothing is tuned here, neither ours nor
theirs: options are those that a user gets who gives none. Ours were chosen on held-out parts of other data than what
stands here, or of the training part alone (docs/quality.md says which); what is reported on is the test part. A peer
that is not installed, or data that is not there, is said and left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

from defaults_row import Row, Skipped, as_json, table_of

PARTS = ("text", "recommender", "tables")


def rows_of(part: str, seeds: int) -> list[Row]:
    """All rows of one module; what it cannot compare is said."""
    module = importlib.import_module(f"defaults_{part}")
    rows: list[Row] = []
    try:
        for row in module.compare(seeds):
            rows.append(row)
            print(f"{part}: {row.dataset}, {row.metric}: {row.ours:.4f} against {row.peer:.4f} of {row.peer_name}",
                  file=sys.stderr, flush=True)  # fmt: skip
    except Skipped as reason:
        print(f"{part}: left out: {reason}", file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each side, whose mean counts")
    parser.add_argument("--json", default="defaults.json", help="file for the rows")
    parser.add_argument("--peers", default="", help="a Python that has peers which this one has not")
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--only {unknown[0]}: the parts are {', '.join(PARTS)}")
    if options.peers:
        os.environ["HOGWILD_PEERS"] = options.peers
    here = Path(__file__).resolve().parent
    rows = [row for part in parts if (here / f"defaults_{part}.py").exists() for row in rows_of(part, options.seeds)]
    print(table_of(rows))
    Path(options.json).write_text(json.dumps(as_json(rows), indent=1) + "\n")
    return 0 if rows else 1


if __name__ == "__main__":
    raise SystemExit(main())
