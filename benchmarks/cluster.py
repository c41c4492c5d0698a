"""Training on several nodes: speed, quality, bytes and start-up, against one machine and against other tools.

    python benchmarks/cluster.py --speed --quality --traffic --peers --start [--megabytes 25] [--json FILE]
    python benchmarks/cluster.py --tables FILE      # markdown tables of what an earlier run wrote; measures nothing

All nodes are processes of this machine, on its loopback. Each run is a process of its own with a time limit, and ends
the Ray that it started; one that fails is a row with an error. Runs that are compared take turns, and what counts is a
ratio of the same turn. Each row has the load average at its beginning: speeds under load say little.

`--speed`: words a second of 2 nodes with one worker each, to one machine with 2 threads (both have 2 cores), while they
train, and from the first word to the last with all standstills. `--quality`: the loss of a held-out text, and word
similarity, after equal epochs. `--traffic`: bytes a word, one switch after the other, at the same interval. `--peers`:
words a second, to those of a parameter server as Ray's documentation has it, and of gensim averaged over MPI
(cluster_peers.py). `--start`: seconds that `hogwild train … --cluster local --nodes 3` takes on a small text.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import lzma
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PEERS = Path(__file__).with_name("cluster_peers.py")
LINE = 1000  # words: gensim cuts longer lines
TESTS = {
    "WS-353": "EN-WS-353-ALL.txt", "SimLex": "EN-SIMLEX-999.txt", "MEN": "EN-MEN-TR-3k.txt",
    "analogies": "questions-words.txt",
}  # fmt: skip
STRATEGIES: dict[str, dict[str, Any]] = {
    "average": {"strategy": "average"},
    "parameter-actor": {"strategy": "parameter-actor"},
    "asynchronous": {"strategy": "parameter-actor", "asynchronous": True},
    "paged": {"strategy": "parameter-actor", "paged": True, "shards": 2},
    "paged, asynchronous": {"strategy": "parameter-actor", "paged": True, "shards": 2, "asynchronous": True},
    "gossip": {"strategy": "gossip"},
    "merge": {"strategy": "merge"},
}
WHOLE = {"touched": False, "tier_rows": 0, "deltas": "float32"}
TOUCHED = {"tier_rows": 0, "deltas": "float32"}
SWITCHES: dict[str, dict[str, Any]] = {
    "whole tables": WHOLE,
    "touched rows": TOUCHED,
    "+ bfloat16": {**TOUCHED, "deltas": "bfloat16"},
    "+ int8": {**TOUCHED, "deltas": "int8"},
    "+ int4": {**TOUCHED, "deltas": "int4"},
    "+ int8, error feedback": {**TOUCHED, "deltas": "int8", "error_feedback": True},
    "+ int4, error feedback": {**TOUCHED, "deltas": "int4", "error_feedback": True},
    "tiers, float32": {"deltas": "float32"},
    "tiers, int8 (default)": {},
    "tiers, int8, error feedback": {"error_feedback": True},
    "tiers, int4": {"deltas": "int4"},
    "+ int8, a pool of 8,192 negatives": {**TOUCHED, "deltas": "int8", "noise_pool": 8192},
    "tiers, int8, a pool of 8,192 negatives": {"noise_pool": 8192},
    "paged, int8": {"strategy": "parameter-actor", "paged": True},
}
Row = dict[str, Any]


# -- one run, in a process of its own -------------------------------------------------------------------------------


def run_job(job: dict[str, Any]) -> Row:
    """Train on one machine or on a cluster, and measure. job: what `Bench.train` writes."""
    from contextlib import nullcontext

    import hogwild
    from hogwild.config import CorpusConfig

    program = hogwild.Word2Vec(dim=job["dim"])
    config = CorpusConfig(min_count=job["min_count"])
    begun = time.perf_counter()
    executor: Any
    if job["cluster"] is None:
        executor, context = hogwild.AsyncExecutor(**job["train"]), nullcontext()
        feed: Any = hogwild.open_corpus(job["text"], config)
    else:
        from hogwild.cluster import Texts
        from hogwild.cluster.driver import ClusterExecutor
        from hogwild.config.cluster import ClusterConfig

        where = dict(job["cluster"])
        words = where.pop("every", 0)
        if words:  # of a node, between two exchanges
            corpus = hogwild.open_corpus(job["text"], config)
            program.startup(corpus, 1)
            where["sync_every"] = max(1, round(words * program.visits(corpus) / corpus.total))
            program = hogwild.Word2Vec(dim=job["dim"])
        begun = time.perf_counter()
        context = executor = ClusterExecutor(ClusterConfig("local", **where), **job["train"])
        feed = Texts((job["text"],), config)
    row: Row = {}
    with context:
        for event in executor.run(program, feed):
            if event.kind == "started":
                at = time.perf_counter()
                row |= {"start_seconds": at - begun, "notes": list(event.notes)}
            elif event.kind == "lost":
                row.setdefault("lost", []).append(f"{event.what}: {event.why}")
            elif event.kind == "nodes":
                row |= count_bytes(event)
            elif event.kind == "finished":
                row |= {
                    "wall_seconds": time.perf_counter() - at, "train_seconds": event.train_seconds,
                    "words": event.units, "words_per_second": event.units_per_second, "train_loss": event.loss,
                }  # fmt: skip
    row |= {"whole_seconds": time.perf_counter() - begun, "vocabulary": len(program.words)}
    row["wall_words_per_second"] = row["words"] / row["wall_seconds"]
    if "sent" in row:
        row["sent_a_word"], row["received_a_word"] = (row[name] / row["words"] for name in ("sent", "received"))
        row["changes_a_word"] = row["changes_sent"] / row["words"]
    if job["held"]:
        row["loss"] = program.evaluate(hogwild.open_corpus(job["held"], vocabulary=program.words), 1)["loss"]
        row["scores"] = score_vectors(program.vectors, Path(job["tests"]))
    return row


def count_bytes(event: Any) -> Row:
    """Of all nodes, since the run began. Node to node: what one sends another receives."""
    kinds = [node["kinds"].get("changes", {}) for node in event.nodes]
    return {
        "sent": sum(node["sent"] for node in event.nodes), "received": sum(node["received"] for node in event.nodes),
        "changes_sent": sum(kind.get("sent", 0) for kind in kinds),
        "messages": sum(node["messages_sent"] for node in event.nodes),
        "exchanges": max(node["exchanges"] for node in event.nodes),
        "exchanging_seconds": max(node["seconds_exchanging"] for node in event.nodes),
        "waited_seconds": max(node["seconds_waited"] for node in event.nodes),
        "visits_between": event.every, "again": event.again,
    }  # fmt: skip


def score_vectors(vectors: Any, tests: Path) -> dict[str, float]:
    """Spearman and analogies, in percent."""
    from hogwild.programs.words.evaluation import evaluate_test, read_tests

    found = {}
    for name, test in zip(TESTS, read_tests([tests / file for file in TESTS.values()]), strict=True):
        score = evaluate_test(vectors, test, 30_000)
        assert score.pairs or score.total
        found[name] = 100 * (score.pairs.spearman if score.pairs else score.total.accuracy)
    return found


# -- all runs -------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """What all measurements share: texts, options, and the rows so far."""

    place: Path
    options: argparse.Namespace
    rows: list[Row]

    @property
    def text(self) -> Path:
        """To train on."""
        return self.place / "text.txt"

    def train(self, cluster: dict[str, Any] | None, measured: bool = False, min_count: int = 5, **train: Any) -> Row:
        """One run; cluster: fields of ClusterConfig, and `every`: words of a node between exchanges."""
        options = self.options
        if cluster is not None and options.every and "every" not in cluster:
            cluster = {**cluster, "every": options.every}
        if cluster is not None:
            cluster = {**cluster, **dict(options.set or ())}
        job = {
            "dim": options.dim, "min_count": min_count, "text": str(self.text), "cluster": cluster,
            "held": str(self.place / "held.txt") if measured else "", "tests": str(self.place),
            "train": {"epochs": options.epochs, "lr": options.lr, "seed": 1, **train},
        }  # fmt: skip
        return self.call([sys.executable, __file__, "--job", json.dumps(job)])

    def call(self, command: list[str]) -> Row:
        """A command that prints a JSON object as its last line; an error where it does not, or not in time."""
        row: Row = {"load": round(os.getloadavg()[0], 1)}
        begun = time.perf_counter()
        code, out, error = bounded(command, self.options.limit)
        row["process_seconds"] = time.perf_counter() - begun
        if code is None:
            return {**row, "error": f"not done in {self.options.limit:.0f} s"}
        try:
            return {**row, **json.loads(out.strip().splitlines()[-1])}
        except (IndexError, ValueError):
            return {**row, "error": f"exit {code}: {(error.strip().splitlines() or ['no word'])[-1][:300]}"}

    def add(self, kind: str, name: str, row: Row, **more: Any) -> Row:
        """Keep and print a row."""
        row = {"kind": kind, "name": name, **more, **row}
        self.rows.append(row)
        print(show(row), flush=True)
        for lost in row.get("lost", ()):
            print(f"    lost: {lost}", flush=True)
        if self.options.json:
            Path(self.options.json).write_text(json.dumps(self.rows, indent=1) + "\n")
        return row


def bounded(command: list[str], seconds: float) -> tuple[int | None, str, str]:
    """Run a command, with all that it starts, for so long at the most: its exit code, or None, and what it said."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, error = process.communicate(timeout=seconds)
            return process.returncode, out, error
        except BaseException as what:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a Ray of ours ends when its owner has
            process.wait()
            if isinstance(what, subprocess.TimeoutExpired):
                return None, "", ""
            raise


def show(row: Row) -> str:
    """A row for people."""
    texts = [f"{row['kind']:8} {row['name']:40}"]
    if "error" in row:
        return f"{texts[0]} {row['error']}  (load {row['load']})"
    forms: dict[str, Callable[[Any], str]] = {
        "ratio": lambda v: f"ratio {v:.3f}", "wall_ratio": lambda v: f"wall ratio {v:.3f}",
        "words_per_second": lambda v: f"{v / 1e6:.3f} M words/s", "sent_a_word": lambda v: f"{v:.1f} bytes/word",
        "changes_a_word": lambda v: f"changes {v:.1f}", "fewer_changes": lambda v: f"{v:.1f}x fewer",
        "loss": lambda v: f"loss {v:.4f}", "loss_ratio": lambda v: f"{v:.4f}x",
        "scores": lambda v: " / ".join(f"{score:.1f}" for score in v.values()),
        "start_seconds": lambda v: f"start {v:.1f} s", "train_seconds": lambda v: f"train {v:.1f} s",
        "seconds": lambda v: f"{v:.1f} s",
    }  # fmt: skip
    texts += [form(row[name]) for name, form in forms.items() if row.get(name) is not None]
    return f"{'  '.join(texts)}  (load {row['load']})"


def ratio(row: Row, base: Row, name: str) -> float | None:
    """Of one number in two rows, where both have it."""
    return row[name] / base[name] if name in row and base.get(name) else None


def measure_speed(bench: Bench) -> None:
    """2 nodes of one worker, and one machine with 2 threads, in turns."""
    for turn in range(bench.options.rounds + 1):
        single = bench.train(None, threads=2)
        if turn:  # the first compiles
            bench.add("speed", "one machine, 2 threads", single, ratio=1.0, wall_ratio=1.0, turn=turn)
        for name in bench.options.strategies if turn else ():
            row = bench.train({"nodes": 2, "workers_per_node": 1, **STRATEGIES[name]})
            found = {"ratio": ratio(row, single, "words_per_second")}
            found["wall_ratio"] = ratio(row, single, "wall_words_per_second")
            bench.add("speed", f"2 nodes, {name}", row, **found, turn=turn)


def measure_quality(bench: Bench) -> None:
    """Serial, 2 threads, then all strategies and ways to combine at each number of nodes; then the next seed."""
    options = bench.options
    for seed in options.seeds:
        serial = bench.train(None, measured=True, seed=seed, mode="serial")
        bench.add("quality", "serial", serial, seed=seed, loss_ratio=1.0, nodes=1)
        row = bench.train(None, measured=True, seed=seed, threads=2)
        bench.add("quality", "2 threads", row, seed=seed, nodes=1, loss_ratio=ratio(row, serial, "loss"))
        for nodes, name, how in wanted(options):
            cluster = {"nodes": nodes, "workers_per_node": 1, "combine": how, **STRATEGIES[name]}
            row = bench.train(cluster, measured=True, seed=seed)
            title = f"{nodes} nodes, {name}" + ("" if name == "merge" else f", {how}")
            bench.add("quality", title, row, seed=seed, nodes=nodes, loss_ratio=ratio(row, serial, "loss"))


def wanted(options: argparse.Namespace) -> Iterator[tuple[int, str, str]]:
    """Nodes, strategies and ways to combine; merging at the end knows no ways."""
    for nodes in options.nodes:
        for name in options.strategies:
            for how in options.combine[: 1 if name == "merge" else None]:
                yield nodes, name, how


def measure_traffic(bench: Bench) -> None:
    """Bytes of 2 nodes and more with one switch after the other, on a text of which every word counts."""
    options = bench.options
    every = options.every or 25_000
    for nodes in options.traffic_nodes:
        whole: Row = {}
        for name, switches in SWITCHES.items():
            if options.switches and name not in options.switches:
                continue
            cluster = {"nodes": nodes, "workers_per_node": 1, "every": every, **switches}
            row = bench.train(cluster, measured=True, min_count=options.rarest)
            whole = row if name == "whole tables" else whole
            fewer = {
                "fewer": ratio(whole, row, "sent_a_word"), "fewer_changes": ratio(whole, row, "changes_a_word"),
                "loss_ratio": ratio(row, whole, "loss"),
            }  # fmt: skip
            bench.add("traffic", f"{nodes} nodes, {name}", row, nodes=nodes, every=every, **fewer)


def measure_peers(bench: Bench) -> None:
    """Ours and theirs in turns, one epoch each; ratio: words a second of ours to those of the peer, one node a core."""
    options = bench.options
    python = options.peer_python
    given = [str(bench.text), "--dim", str(options.dim), "--epochs", str(options.epochs), "--lr", str(options.lr)]
    given += ["--seconds", str(options.limit / 2), "--output", str(bench.place / "peer.npz")]
    mpi = [str(Path(python).with_name("mpiexec")), "-launcher", "fork", "-iface", "lo", "-n", "2"]
    every = options.every or 25_000
    commands = {
        f"Ray parameter server, every {every:,} words": [python, str(PEERS), "ray", *given, "--every", str(every)],
        f"gensim over MPI, every {every:,} words": [*mpi, python, str(PEERS), "mpi", *given, "--every", str(every)],
        "gensim over MPI, every epoch": [*mpi, python, str(PEERS), "mpi", *given],
    }
    for turn in range(1, options.rounds + 1):
        ours = bench.train({"nodes": 2, "workers_per_node": 1}, measured=True)
        bench.add("peers", "hogwild, 2 nodes, average", ours, ratio=1.0, turn=turn)
        for name, command in commands.items():
            (bench.place / "peer.npz").unlink(missing_ok=True)
            row = bench.call(command)
            if (bench.place / "peer.npz").is_file():
                row["scores"] = score_peer(bench.place / "peer.npz", bench.place)
            bench.add("peers", name, row, ratio=ratio(ours, row, "words_per_second"), turn=turn)


def score_peer(path: Path, tests: Path) -> dict[str, float]:
    """Of vectors that a peer has written."""
    import numpy as np

    import hogwild

    with np.load(path) as found:
        return score_vectors(hogwild.Vectors(tuple(map(str, found["words"])), found["vectors"]), tests)


def measure_start(bench: Bench) -> None:
    """Seconds from the command to its end, on a small text."""
    text = str(bench.place / "small.txt")
    command = [sys.executable, "-m", "hogwild", "train", "word2vec", text, "--cluster", "local"]
    for turn in range(1, bench.options.rounds + 1):
        row = bench.call([*command, "--nodes", "3", "--epochs", "1", "--json"])
        found = {} if "error" in row else {"seconds": row.pop("process_seconds")}
        kept = {name: row[name] for name in ("load", "error", "seconds") if name in row}
        bench.add("start", "3 nodes, 1 MB of text", {**kept, **found}, turn=turn)


def prepare(directory: Path, megabytes: float) -> None:
    """The text in lines, what follows it as the held-out text, a small one, and the tests unpacked."""
    size = round(megabytes * 1e6)
    with lzma.open(DATA / "wiki" / "wiki100m.txt.xz") as packed:
        words = packed.read(size).split()
        held = packed.read(max(300_000, min(size // 10, 2_500_000))).split()[1:-1]
    for name, some in {"text.txt": words[:-1], "held.txt": held, "small.txt": words[:170_000]}.items():
        with open(directory / name, "wb") as file:
            for start in range(0, len(some), LINE):
                file.write(b" ".join(some[start : start + LINE]) + b"\n")
    for name in TESTS.values():
        if (DATA / "wordsim" / name).is_file():
            (directory / name).write_bytes((DATA / "wordsim" / name).read_bytes())
        else:
            with lzma.open(DATA / "wordsim" / f"{name}.xz") as packed:
                (directory / name).write_bytes(packed.read())


# -- tables ---------------------------------------------------------------------------------------------------------

COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "speed": {
        "of one machine": ("ratio", ".0%"), "with standstills": ("wall_ratio", ".0%"),
        "million words/s": ("words_per_second", "M"), "start, s": ("start_seconds", ".1f"),
    },
    "quality": {"loss": ("loss", ".4f"), "of serial": ("loss_ratio", ".4f"), " / ".join(TESTS): ("scores", "")},
    "traffic": {
        "bytes a word": ("changes_a_word", ".1f"), "fewer than whole tables": ("fewer_changes", ".1fx"),
        "with weights for the driver": ("sent_a_word", ".1f"), "loss": ("loss", ".4f"),
        " / ".join(TESTS): ("scores", ""),
    },
    "peers": {"ours to theirs": ("ratio", ".2fx"), "million words/s": ("words_per_second", "M"),
              " / ".join(TESTS): ("scores", "")},
    "start": {"seconds": ("seconds", ".1f")},
}  # fmt: skip


def print_tables(rows: list[Row]) -> None:
    """Markdown, one table a kind: medians over turns and seeds."""
    for kind, columns in COLUMNS.items():
        some = [row for row in rows if row["kind"] == kind]
        if not some:
            continue
        print(f"\n| {kind} | {' | '.join(columns)} | runs | load |\n|---|{'---|' * (len(columns) + 2)}")
        for name in dict.fromkeys(row["name"] for row in some):
            same = [row for row in some if row["name"] == name]
            good = [row for row in same if "error" not in row]
            cells = [_cell([row.get(key) for row in good], how) for key, how in columns.values()]
            count = str(len(good)) if len(good) == len(same) else f"{len(good)} of {len(same)}"
            loads = sorted(row["load"] for row in same)
            load = f"{loads[0]}" if loads[0] == loads[-1] else f"{loads[0]} to {loads[-1]}"
            print(f"| {name} | {' | '.join(cells)} | {count} | {load} |")


def _cell(values: list[Any], how: str) -> str:
    """The median of numbers, or of the numbers of dicts."""
    values = [value for value in values if value is not None]
    if not values:
        return ""
    if isinstance(values[0], dict):
        return " / ".join(_cell([value[key] for value in values], ".1f") for key in values[0])
    middle = statistics.median(values)
    if how == "M":
        return f"{middle / 1e6:.2f}"
    return f"{middle:{how[:-1]}}x" if how.endswith("x") else f"{middle:{how}}"


MEASURES: dict[str, Callable[[Bench], None]] = {
    "speed": measure_speed, "quality": measure_quality, "traffic": measure_traffic, "peers": measure_peers,
    "start": measure_start,
}  # fmt: skip


def read_setting(text: str) -> tuple[str, Any]:
    """A field of ClusterConfig: max_delay=0, deltas="int4"."""
    name, _, value = text.partition("=")
    return name, json.loads(value)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {"type": lambda text: tuple(int(k) for k in text.split(","))}
    names = {"type": lambda text: tuple(text.split(","))}
    for name in MEASURES:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--megabytes", type=float, default=25, help="of text, from its beginning")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.025)
    parser.add_argument("--rounds", type=int, default=3, help="turns of --speed, --peers and --start")
    parser.add_argument("--seeds", default=(1,), help="of --quality: 1,2,3", **numbers)
    parser.add_argument("--nodes", default=(2, 4, 8), help="of --quality: 2,4,8", **numbers)
    parser.add_argument("--strategies", default=tuple(STRATEGIES)[:-1], help=",".join(STRATEGIES), **names)
    parser.add_argument("--combine", default=("project", "sum", "mean"), help="of --quality: project,sum,mean", **names)
    parser.add_argument("--every", type=int, default=0, help="words of a node between exchanges; 0: as it chooses")
    parser.add_argument("--set", action="append", type=read_setting, metavar="NAME=VALUE", help="for all clusters")
    parser.add_argument("--traffic-nodes", default=(2,), help="of --traffic: 2,4", **numbers)
    parser.add_argument("--switches", action="append", help="of --traffic: a row by its name; all")
    parser.add_argument("--rarest", type=int, default=1, help="--min-count of --traffic: 1 for a large vocabulary")
    parser.add_argument("--peer-python", default=sys.executable, help="where ray, gensim, mpi4py and mpich are")
    parser.add_argument("--limit", type=float, default=900, help="seconds of one run")
    parser.add_argument("--json", metavar="FILE", help="write all rows there")
    parser.add_argument("--tables", metavar="FILE", help="print tables of rows that were written before")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure what is asked for, then print tables."""
    options = read_options()
    if options.job:
        print(json.dumps(run_job(json.loads(options.job))))
        return
    if options.tables:
        print_tables(json.loads(Path(options.tables).read_text()))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the run that is under way, too
    chosen = [measure for name, measure in MEASURES.items() if getattr(options, name)]
    if not chosen:
        raise SystemExit(f"Say what to measure: --{', --'.join(MEASURES)}.")
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is not there: this benchmark needs its text.")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}, {options.megabytes:g} MB of text, dim {options.dim}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place), options.megabytes)
        bench = Bench(Path(place), options, [])
        for measure in chosen:
            measure(bench)
    print_tables(bench.rows)


if __name__ == "__main__":
    main()
