"""Predicted against measured: bytes a word and words a second of 1, 2 and 4 nodes on links of a given speed.

    python benchmarks/cluster_scaling.py [--megabytes 10] [--rounds 2] [--links free 1gbit 100mbit] [--json FILE]
    python benchmarks/cluster_scaling.py --table        # markdown of what is predicted; measures nothing

Each node is a network namespace with a Ray node of its own (root and iproute2 are needed; tests/cluster/namespaces.py),
and its link is throttled by `tc tbf`. All share the cores of this machine: a node has its share of them, and no more.
So bytes say what they say, and speeds depend on what else runs here: each row has the load average at its beginning.
What a row of an exchange costs is measured before, and so is the speed of one worker: by a run on one node.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from cluster.namespaces import Machine as Namespace  # noqa: E402
from cluster.namespaces import network, ray_on, why_not  # noqa: E402
from hogwild.arrays import Floats, Table  # noqa: E402
from hogwild.cluster.forecast.scaling import Case, Costs, Machine, predict, table  # noqa: E402
from hogwild.cluster.wire.combining import combine  # noqa: E402
from hogwild.cluster.wire.ledger import Ledger  # noqa: E402
from hogwild.cluster.wire.packing import pack, unpack  # noqa: E402

WIKI = ROOT.parent / "shared" / "data" / "wiki" / "wiki100m.txt.xz"
LIMIT = 600.0  # seconds of a run
LINKS = {"free": 40e9, "1gbit": 1e9, "100mbit": 1e8}
STRETCH = 64   # words of a visit
Row = dict[str, Any]


class Held(NamedTuple):
    """Weights of one table."""

    inputs: Floats


def calibrate(dim: int = 100, rows: int = 8192) -> Costs:
    """Measure what a row costs on this machine, with what exchanges really call; the best of six times counts."""
    part = Table(4 * rows, Case(1, rows, dim).cells, "ranked")
    tables, random = {"inputs": part}, np.random.default_rng(0)
    held = Held(random.random((part.rows, part.cells), np.float32))
    ledger = Ledger(held, tables)
    some = np.sort(random.permutation(part.rows)[:rows])
    best = dict.fromkeys(("look", "take", "combine", "settle"), float("inf"))

    def timed(name: str, units: int, act: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = act()
        best[name] = min(best[name], (time.perf_counter() - began) / units)
        return result

    for _ in range(6):
        timed("look", part.rows, lambda: ledger.take("int8"))
        held.inputs[some] += random.random((rows, part.cells), np.float32)
        mine = timed("take", rows, lambda: [part.kept() for part in ledger.take("int8")[0]])
        packet = pack(mine, tables, "int8")

        def met(mine: Any = mine, packet: Any = packet) -> Any:  # a node's own, and those of another
            both = [mine, unpack(packet, tables)]
            return pack(combine(both, tables, "project", "int8"), tables, "int8")

        reply = timed("combine", 2 * rows, met)
        timed("settle", rows, lambda reply=reply, mine=mine: ledger.settle(unpack(reply, tables), mine))
    best["take"] = max(best["take"] - best["look"] * part.rows / rows, 0.0)
    return Costs(**{name: cost * 112 / part.cells for name, cost in best.items()})


def train(machines: list[Namespace], address: str, text: Path, options: list[str]) -> Row:
    """The JSON object of one run."""
    log = text.with_name("driver")
    command = [
        sys.executable, "-m", "hogwild", "train", "word2vec", str(text), "--cluster", address, "--nodes",
        str(len(machines)), "--workers-per-node", "1", "--epochs", "2", "--json", *options,
    ]  # fmt: skip
    driver = machines[0].popen(command, log, PYTHONPATH=str(ROOT / "src"))
    until = time.monotonic() + LIMIT
    while driver.poll() is None:
        if time.monotonic() > until:
            raise TimeoutError(log.read_text())
        time.sleep(0.5)
    if driver.returncode:
        raise RuntimeError(log.read_text())
    found: Row = json.loads(Path(f"{log}.out").read_text())
    return found


def measured(run: Row) -> Row:
    """Of a run: changes that a node sent for each of its words, words a second, and the share of exchanges.

    Words are those of the vocabulary. The first answer of another process takes seconds, as it makes connections: the
    time of exchanges is in what is told, and not corrected.
    """
    nodes = run["cluster"]["nodes"]
    words = sum(node["samples"] for node in nodes) * STRETCH
    changes = [node["kinds"].get("changes", {"sent": 0, "received": 0}) for node in nodes]
    seconds = run["seconds"]["train"]
    return {
        "sent": sum(change["sent"] for change in changes) / words, "words": words,
        "received": sum(change["received"] for change in changes) / words,
        "words_per_second": words / seconds, "vocabulary": run["vocabulary"],
        "exchanging": sum(node["seconds_exchanging"] for node in nodes) / len(nodes) / seconds,
    }  # fmt: skip


def measure(arguments: argparse.Namespace, text: Path) -> list[Row]:
    """All runs, and what is predicted for each."""
    costs = calibrate()
    print(f"seconds a row: {costs}", flush=True)
    rows: list[Row] = []
    cores, alone = os.cpu_count() or 1, 0.0
    for nodes in arguments.nodes:
        with network(nodes) as machines, ray_on(machines) as address:
            for turn in range(arguments.rounds):
                for link in arguments.links if nodes > 1 else ["free"]:
                    for strategy in arguments.strategies if nodes > 1 else ["average"]:
                        for machine in machines:
                            machine.unthrottle()
                            if link != "free":
                                machine.throttle(link)
                        load = os.getloadavg()[0]
                        every = str(arguments.every // STRETCH)
                        shards = nodes if strategy == "parameter-actor" else 1
                        options = ["--sync-every", every, "--strategy", strategy, "--shards", str(shards)]
                        found = measured(train(machines, address, text, options))
                        if nodes == 1:  # it exchanges with itself
                            alone = max(alone, found["words_per_second"] / (1 - found["exchanging"]))
                        case = Case(
                            nodes, found["vocabulary"], words=found["words"] / 2, every=arguments.every,
                            strategy=strategy, shards=shards,
                        )  # fmt: skip
                        here = Machine(alone * min(1, cores / nodes), 1, LINKS[link], 2e-3, costs)
                        if nodes > cores:  # exchanges have only a share of the cores, too
                            here = replace(here, costs=costs._make(cost * nodes / cores for cost in costs))
                        wanted = predict(case, here)
                        row = {"nodes": nodes, "link": link, "strategy": strategy, "turn": turn, "load": load, **found}
                        row |= {f"predicted_{name}": value for name, value in wanted._asdict().items()}
                        rows.append(row)
                        tell(row)
    return rows


def tell(row: Row) -> None:
    """One row of the table."""

    def pair(name: str, form: str, scale: float = 1.0) -> str:
        predicted, found = row[f"predicted_{name}"] / scale, row[name] / scale
        error = f" ({predicted / found - 1:+.0%})" if found else ""
        return f"{predicted:{form}} / {found:{form}}{error}"

    print(
        f"| {row['nodes']} | {row['strategy']} | {row['link']} | {pair('sent', '.1f')} | {pair('received', '.1f')} | "
        f"{pair('words_per_second', '.2f', 1e6)} | {row['predicted_exchanging']:.0%} / {row['exchanging']:.0%} | "
        f"{row['load']:.1f} |", flush=True,
    )  # fmt: skip


def main() -> None:
    """Measure, print and, if asked, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--every", type=int, default=25_600, help="words of a node between exchanges")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--links", nargs="+", choices=LINKS, default=list(LINKS))
    parser.add_argument("--strategies", nargs="+", default=["average"], choices=["average", "parameter-actor"])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.table:
        print(table())
        return
    reason = why_not()
    if reason:
        raise SystemExit(f"{parser.prog}: {reason}.")
    print("| nodes | strategy | link | sent a word, predicted / measured | received | M words/s | exchanging | load |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        with lzma.open(WIKI) as packed:
            text.write_bytes(packed.read(arguments.megabytes * 1_000_000))
        rows = measure(arguments, text)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
