"""How good predictions of `hogwild.simulate` are: real runs at 1, 2 and 4 threads beside them, and what they take.

    python benchmarks/simulation.py [--only linear,crf] [--epochs 3] [--json FILE]

Film reviews (IMDB) with a linear model, chunks (CoNLL-2000) with a CRF. Nothing is fitted to the real runs: costs come
from a run of one thread; of a real run only the cores that it got are known, as other programs have the rest of them.
What a simulation takes is its processor time, in times of the real run of one worker.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hogwild
from hogwild.observe.logs import plain

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def reviews() -> tuple[Any, Any]:
    """Hashed word pairs of 25,000 film reviews."""
    config = hogwild.FeedConfig(text="text", label="label", ngrams=2, hash_bits=20)
    return hogwild.Linear(), hogwild.open_feed(str(DATA / "imdb" / "train.tsv.xz"), config)


def chunks() -> tuple[Any, Any]:
    """8,936 sentences with the 19 standard templates."""
    config = hogwild.TaggingConfig(features="chunking")
    return hogwild.CRF(l2=0.5, rich_edges=False), hogwild.open_tagging(str(DATA / "conll2000" / "train.txt.xz"), config)


CASES: dict[str, tuple[Callable[[], tuple[Any, Any]], float]] = {"linear": (reviews, 0.1), "crf": (chunks, 0.05)}


def main() -> None:
    """Run the cases and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--json", default="")
    asked = parser.parse_args()
    found = {}
    for name in asked.only.split(","):
        make, rate = CASES[name]
        program, feed = make()
        made = hogwild.simulate(
            program, feed, workers=(2, 4, 16, 64, 256), compare=(1, 2, 4), epochs=asked.epochs, lr=rate
        )
        found[name] = made.record()
        print(f"\n{name}: a visit {made.pace.visit * 1e6:.3g} us, contention {made.pace.contention:.0%}, "
              f"slice {made.pace.slice * 1e3:.2g} ms; one real worker {made.serial.seconds:.2f} s")  # fmt: skip
        print("\n| threads | cores got | errors: real, predicted | off | delay: real, predicted "
              "| loss: real, predicted | off | speed-up: real, predicted |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|")
        for pair in made.compared:
            real, made_up, off = pair.real, pair.predicted, pair.errors
            rate_off = "–" if off["error_rate"] is None else f"{off['error_rate']:+.0%}"
            print(f"| {real.workers} | {real.busy:.2f} | {real.error_rate:.1%}, {made_up.error_rate:.1%} | {rate_off} "
                  f"| {real.delay:.2f}, {made_up.delay:.2f} | {real.loss:.4f}, {made_up.loss:.4f} | {off['loss']:+.2%} "
                  f"| {real.speed_up:.2f}, {made_up.speed_up:.2f} |")  # fmt: skip
        print("\n| workers | errors | delay | lost rows a visit | loss | speed-up | simulated in |")
        print("|---|---|---|---|---|---|---|")
        one = made.serial.busy * made.serial.taken
        for each in made.predictions:
            print(f"| {each.workers} | {each.error_rate:.1%} | {each.delay:.1f} | {each.lost:.2g} | {each.loss:.4f} "
                  f"| {each.speed_up:.1f} | {each.busy * each.taken / one:.1f}x |", flush=True)  # fmt: skip
    if asked.json:
        Path(asked.json).write_text(json.dumps(plain(found), indent=1) + "\n")


if __name__ == "__main__":
    main()
