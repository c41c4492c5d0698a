"""Word vectors on several nodes as one would write them with other tools: for `cluster.py --peers`.

    python cluster_peers.py ray TEXT [--workers 2] [--every 25000]              # Ray's example of a parameter server
    mpiexec -n 2 python cluster_peers.py mpi TEXT [--every 25000]               # gensim, tables averaged by MPI

Skip-gram with negative sampling, with the options of `hogwild train word2vec`. Both print a JSON object: words, seconds
of training without vocabulary and compiler, words a second. Training ends after --seconds, done or not.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

MIN_COUNT, WINDOW, NEGATIVES, SAMPLE = 5, 5, 5, 1e-4
LEFT = 0.17  # of the first learning rate, at the end


def tell(words: int, seconds: float, **more: Any) -> None:
    """What `cluster.py` reads."""
    print(json.dumps({"words": words, "train_seconds": seconds, "words_per_second": words / seconds, **more}))


# -- a parameter server on Ray ----------------------------------------------------------------------------------------


def compile_training() -> Any:
    """Skip-gram, pair by pair, in Numba."""
    import numba

    @numba.njit(fastmath=True)
    def train(ids, stay, noise, inputs, outputs, rate, seed):
        np.random.seed(seed)
        dim = inputs.shape[1]
        kept = np.empty(len(ids), np.int64)
        count = 0
        for word in ids:
            if np.random.random() < stay[word]:
                kept[count] = word
                count += 1
        step = np.empty(dim, np.float32)
        for place in range(count):
            reach = np.random.randint(1, WINDOW + 1)
            for other in range(max(0, place - reach), min(count, place + reach + 1)):
                if other == place:
                    continue
                near = inputs[kept[other]]
                step[:] = 0.0
                for draw in range(NEGATIVES + 1):
                    target = kept[place] if draw == 0 else noise[np.random.randint(len(noise))]
                    if draw > 0 and target == kept[place]:
                        continue
                    row = outputs[target]
                    dot = np.float32(0.0)
                    for k in range(dim):
                        dot += near[k] * row[k]
                    slope = np.float32(((1.0 if draw == 0 else 0.0) - 1.0 / (1.0 + np.exp(-dot))) * rate)
                    for k in range(dim):
                        step[k] += slope * row[k]
                        row[k] += slope * near[k]
                for k in range(dim):
                    near[k] += step[k]

    return train


def read_words(path: Path) -> tuple[Any, list[str], Any, int]:
    """Ids of the text, words by how often they occur, counts, and how many there are with the rare ones."""
    text = path.read_text().split()
    common = [(word, count) for word, count in Counter(text).most_common() if count >= MIN_COUNT]
    ids = {word: number for number, (word, _) in enumerate(common)}
    coded = np.array([ids[word] for word in text if word in ids], np.int32)
    return coded, list(ids), np.array([count for _, count in common]), len(text)


class ParameterServer:
    """Holds the weights; adds what workers bring."""

    def __init__(self, words: int, dim: int) -> None:
        random = np.random.default_rng(1)
        self.inputs = ((random.random((words, dim)) - 0.5) / dim).astype(np.float32)
        self.outputs = np.zeros((words, dim), np.float32)

    def apply(self, change: tuple[Any, Any]) -> tuple[Any, Any]:
        """Take in a change; returns the weights."""
        self.inputs += change[0]
        self.outputs += change[1]
        return self.inputs, self.outputs

    def get(self) -> tuple[Any, Any]:
        """The weights."""
        return self.inputs, self.outputs


class Worker:
    """Trains block after block of its part of the text."""

    def __init__(self, ids: Any, counts: Any, seed: int) -> None:
        self.ids, self.place, self.seed = ids, 0, seed
        share = counts / counts.sum()
        self.stay = np.minimum(1.0, np.sqrt(SAMPLE / share) + SAMPLE / share)
        power = counts**0.75 / (counts**0.75).sum()
        self.noise = np.repeat(np.arange(len(counts)), np.maximum(1, np.round(power * 10_000_000)).astype(np.int64))
        self.train = compile_training()

    def warm(self) -> None:
        """Compile."""
        tables = np.zeros((len(self.stay), 4), np.float32), np.zeros((len(self.stay), 4), np.float32)
        self.train(self.ids[:100], self.stay, self.noise, *tables, 0.01, 1)

    def change(self, weights: tuple[Any, Any], words: int, rate: float) -> tuple[Any, Any]:
        """Train the next words from these weights; what changed."""
        block = self.ids[self.place : self.place + words]
        self.place = (self.place + words) % len(self.ids)
        self.seed += 1
        inputs, outputs = weights[0].copy(), weights[1].copy()
        self.train(block, self.stay, self.noise, inputs, outputs, rate, self.seed)
        return inputs - weights[0], outputs - weights[1]


def run_ray(options: argparse.Namespace) -> None:
    """The asynchronous parameter server of Ray's documentation."""
    os.environ |= {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else Ray writes one to ~/.ray
    }  # fmt: skip
    import ray

    coded, words, counts, whole = read_words(options.text)
    with tempfile.TemporaryDirectory(prefix="peer", dir="/tmp") as folder:
        ray.init(
            num_cpus=options.workers + 1, include_dashboard=False, object_store_memory=1 << 30, log_to_driver=False,
            _node_ip_address="127.0.0.1", _temp_dir=folder,
        )  # fmt: skip
        try:
            server = ray.remote(num_cpus=0)(ParameterServer).remote(len(words), options.dim)
            workers = [
                ray.remote(num_cpus=1)(Worker).remote(part, counts, 1000 * number)
                for number, part in enumerate(np.array_split(coded, options.workers))
            ]
            ray.get([worker.warm.remote() for worker in workers], timeout=options.seconds)
            done, seconds, inputs = drive(options, server, workers, len(coded))
        finally:
            ray.shutdown()
    save(options, words, inputs)
    block = options.every or len(coded) // options.workers
    sent = 2 * 2 * inputs.nbytes * done / block  # both tables, there and back
    part = min(1.0, done / (len(coded) * options.epochs))
    read = round(whole * options.epochs * part)  # rare words count for all that are compared
    tell(read, seconds, sent_a_word=sent / read, done=part)


def drive(options: argparse.Namespace, server: Any, workers: list[Any], size: int) -> tuple[int, float, Any]:
    """Whoever has finished a block brings its change, and goes on with the weights of that moment.

    Returns words that were trained, seconds, and the vectors.
    """
    import ray

    block = options.every or size // options.workers
    total, begun, given, done = size * options.epochs, time.perf_counter(), 0, 0

    def begin(worker: Any, weights: Any) -> None:
        nonlocal given
        rate = options.lr * (1 - (1 - LEFT) * given / total)
        under_way[worker.change.remote(weights, block, rate)] = worker
        given += block

    under_way: dict[Any, Any] = {}
    weights = server.get.remote()
    for worker in workers:
        begin(worker, weights)
    while under_way and time.perf_counter() - begun < options.seconds:
        ready, _ = ray.wait(list(under_way), timeout=options.seconds)
        for change in ready:
            worker = under_way.pop(change)
            weights = server.apply.remote(change)
            done += block
            if given < total:
                begin(worker, weights)
    inputs, _ = ray.get(weights, timeout=options.seconds)
    return done, time.perf_counter() - begun, np.array(inputs)


# -- gensim on MPI ----------------------------------------------------------------------------------------------------


def run_mpi(options: argparse.Namespace) -> None:
    """Every rank trains its part with gensim's own code, and all average their tables now and then."""
    from gensim.models import Word2Vec
    from mpi4py import MPI

    ranks = MPI.COMM_WORLD
    model = Word2Vec(
        vector_size=options.dim, window=WINDOW, negative=NEGATIVES, sg=1, workers=1, min_count=MIN_COUNT,
        sample=SAMPLE, alpha=options.lr, seed=1,
    )  # fmt: skip
    model.build_vocab(corpus_file=str(options.text))  # all have the same words and the same first weights
    lines = options.text.read_text().splitlines()[ranks.rank :: ranks.size]
    line = max(1, sum(text.count(" ") + 1 for text in lines) // len(lines))
    size = max(1, round(options.every / line)) if options.every else len(lines)
    pieces = [lines[k : k + size] for k in range(0, len(lines), size)]
    sizes = [sum(text.count(" ") + 1 for text in piece) for piece in pieces]
    rounds = ranks.allreduce(len(pieces), MPI.MIN)
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "part")
        part.write_text("\n".join(lines) + "\n")
        if options.every:
            split = [[text.split() for text in piece] for piece in pieces]
        ranks.Barrier()
        begun, averaging, steps, done = time.perf_counter(), 0.0, options.epochs * rounds, 0
        for step in range(steps):
            rates = [options.lr * (1 - (1 - LEFT) * (step + k) / steps) for k in range(2)]
            given: dict[str, Any] = {"corpus_file": str(part)}
            if options.every:
                given = {"corpus_iterable": split[step % rounds]}
            model.train(
                **given, total_examples=len(pieces[step % rounds]), total_words=sizes[step % rounds], epochs=1,
                start_alpha=rates[0], end_alpha=rates[1],
            )  # fmt: skip
            done += sizes[step % rounds]
            at = time.perf_counter()
            for table in (model.wv.vectors, model.syn1neg):
                ranks.Allreduce(MPI.IN_PLACE, table)
                table /= ranks.size
            averaging += time.perf_counter() - at
            if ranks.bcast(time.perf_counter() - begun > options.seconds):
                break
        ranks.Barrier()
        seconds = time.perf_counter() - begun
    whole = ranks.allreduce(done)
    if ranks.rank == 0:
        save(options, model.wv.index_to_key, model.wv.vectors)
        # A ring: every rank sends 2 (n - 1) / n of both tables.
        sent = 2 * (ranks.size - 1) * 2 * model.wv.vectors.nbytes * (step + 1)
        tell(whole, seconds, sent_a_word=sent / whole, averaging_seconds=averaging, done=(step + 1) / steps)


def save(options: argparse.Namespace, words: Any, vectors: Any) -> None:
    """For `cluster.py`, which measures the vectors of all in the same way."""
    if options.output:
        np.savez(options.output, words=np.array(words), vectors=vectors)


def main() -> None:
    """Train one peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["ray", "mpi"])
    parser.add_argument("text", type=Path)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.025)
    parser.add_argument("--workers", type=int, default=2, help="of ray; mpiexec has -n")
    parser.add_argument("--every", type=int, default=0, help="words of a worker between exchanges; 0: an epoch")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--output", help="an npz file for words and vectors")
    options = parser.parse_args()
    (run_ray if options.peer == "ray" else run_mpi)(options)


if __name__ == "__main__":
    main()
