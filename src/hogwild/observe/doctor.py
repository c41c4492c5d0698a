"""What this machine has and can do: cores, caches, speed of memory and of products, libraries, what is kept on disk."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.config import cache_home
from hogwild.errors import HogwildError
from hogwild.machine import describe, memory, one_blas_thread

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_COPIED = 128_000_000  # bytes: more than the caches of most machines hold
_SIDE = 1024  # of the matrices that are multiplied
_TURNS = 5  # of which the best counts: other programs disturb some
_LIBRARIES = {
    "numba": "", "llvmlite": "", "numpy": "", "scipy": "", "pyarrow": "", "torch": "torch", "ray": "ray",
    "scikit-learn": "sklearn", "onnx": "onnx", "tensorboard": "tensorboard", "matplotlib": "report",
}  # fmt: skip


def facts() -> dict[str, Any]:
    """What can be had without measuring."""
    return {
        **describe(), "memory": memory(), "caches": caches(), "blas": blas(), "libraries": libraries(),
        "kept": kept(),
    }  # fmt: skip


def caches(place: Path = _CACHES) -> list[dict[str, Any]]:
    """Caches of a core, from the nearest on: level, kind, bytes, and how many cores share it; [] where unknown."""
    found = []
    for entry in sorted(place.glob("index*")):
        try:
            level, kind, size, shared = (
                (entry / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
            )
            about = {"level": int(level), "kind": kind.lower(), "bytes": _bytes(size), "cores": _count(shared)}
            found += [about] if kind != "Instruction" else []
        except (OSError, ValueError):
            continue
    return found


def _bytes(size: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(size[:-1]) * units[size[-1]] if size[-1:] in units else int(size)


def _count(listed: str) -> int:
    """How many numbers a list as 0-3,8 has."""
    ends = [part.split("-") for part in listed.split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ends)


def blas() -> list[dict[str, Any]]:
    """Libraries of linear algebra that this process has loaded."""
    import scipy.linalg.cython_blas  # noqa: F401  # the one that compiled code calls
    from threadpoolctl import threadpool_info

    return [
        {"name": each.get("internal_api", ""), "version": each.get("version"), "kernels": each.get("architecture")}
        for each in threadpool_info() if each.get("user_api") == "blas"
    ]  # fmt: skip


def libraries() -> list[dict[str, str]]:
    """Versions of what is used, and which extra brings what is missing."""
    found = []
    for name, extra in _LIBRARIES.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = ""
        found.append({"name": name, "version": version, "extra": extra})
    return found


def kept() -> dict[str, Any]:
    """What lies in the cache directory, and how much room there is."""
    from hogwild.feeds.storage import cache
    from hogwild.kernels.compiler import codecache

    place = cache_home()
    there = next(parent for parent in (place, *place.parents) if parent.exists())
    states, entries = codecache.kept(), cache.entries()
    return {
        "path": str(place), "free": shutil.disk_usage(there).free,
        "code": {"count": len(states), "bytes": sum(state.bytes for state in states)},
        "feeds": {"count": len(entries), "bytes": sum(entry.bytes for entry in entries)},
    }  # fmt: skip


# -- measured ----------------------------------------------------------------------------------------------------------


def measure(threads: int) -> dict[str, float]:
    """Bytes that so many threads read and write a second, and float32 operations of their matrix products."""
    whole = min(_COPIED, memory() // 16) // 8 // threads
    arrays = [(np.ones(whole), np.empty(whole)) for _ in range(threads)]
    sides = [(np.ones((_SIDE, _SIDE), np.float32), np.empty((_SIDE, _SIDE), np.float32)) for _ in range(threads)]
    with one_blas_thread():
        copying = _best(threads, lambda worker: np.copyto(arrays[worker][1], arrays[worker][0]))
        product = _best(threads, lambda worker: np.matmul(sides[worker][0], sides[worker][0], out=sides[worker][1]))
    return {"memory": 16.0 * whole * threads / copying, "products": 2.0 * _SIDE**3 * threads / product}


def _best(threads: int, work: Callable[[int], Any]) -> float:
    """Seconds of the best turn of all threads at once."""
    times = []
    for _ in range(_TURNS):
        workers = [threading.Thread(target=work, args=(worker,)) for worker in range(threads)]
        began = time.perf_counter()
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        times.append(time.perf_counter() - began)
    return min(times)


@dataclass(frozen=True)
class Speed:
    """How fast a program trains on made data."""

    program: str
    data: str
    unit: str
    units_per_second: float
    threads: int
    problem: str = ""


def speeds(threads: int) -> Iterator[Speed]:
    """A short run of each program on data that is made for it, of its default form."""
    for name, (data, make) in _PROBLEMS.items():
        try:
            program, feed = make()
            yield Speed(name, data, program.unit, _speed(program, feed, threads), threads)
        except (HogwildError, MemoryError, OSError) as error:
            yield Speed(name, data, "", 0.0, threads, str(error))


def _speed(program: Any, feed: Any, threads: int) -> float:
    from hogwild.executor.events import EpochEnded
    from hogwild.executor.run import AsyncExecutor

    found = [0.0]
    began = time.perf_counter()
    for event in AsyncExecutor(threads=threads, epochs=20, lr=0.05, sharing="all").run(program, feed):
        if isinstance(event, EpochEnded) and event.epoch_seconds > 0:
            found.append(program.units(feed) / event.epoch_seconds)
            if time.perf_counter() - began > 1.0:
                break
    return max(found)


def _rows() -> Any:
    """20,000 rows with 30 of 100,000 features each."""
    from scipy.sparse import csr_array

    from hogwild.feeds.memory import feed_of

    random = np.random.default_rng(1)
    ids = (random.random((20_000, 30)) ** 3 * 100_000).astype(np.int64)
    ids.sort(axis=1)
    pointers = np.arange(0, ids.size + 1, 30)
    matrix = csr_array((np.ones(ids.size, np.float32), ids.reshape(-1), pointers), shape=(20_000, 100_000))
    matrix.sum_duplicates()
    return feed_of(matrix, random.random(20_000) < 0.3)


def _linear() -> tuple[Any, Any]:
    from hogwild.programs.sparse.linear import Linear

    return Linear(), _rows()


def _machine() -> tuple[Any, Any]:
    from hogwild.programs.sparse.fm import FactorizationMachine

    return FactorizationMachine(), _rows()


def _perceptron() -> tuple[Any, Any]:
    from hogwild.programs.sparse.sparse_mlp import SparseMLP

    return SparseMLP(), _rows()


def _ratings() -> tuple[Any, Any]:
    from hogwild.feeds.ratings.open import ratings_of
    from hogwild.programs.recommender.program import MatrixFactorization

    random = np.random.default_rng(1)
    users, items = (random.integers(0, size, 100_000).astype(str) for size in (5000, 2000))
    return MatrixFactorization(), ratings_of(list(users), list(items), random.integers(1, 6, 100_000).astype(float))


def _tags() -> tuple[Any, Any]:
    from hogwild.feeds.synthetic.sentences import make_sentences
    from hogwild.feeds.tagged.lists import tagging_of
    from hogwild.programs.taggers.crf import CRF

    sentences = list(make_sentences(2000))
    features = [[[f"w={token.word}", f"pos={token.pos}"] for token in sentence] for sentence in sentences]
    return CRF(), tagging_of(features, [[token.tag for token in sentence] for sentence in sentences])


def _words() -> tuple[Any, Any]:
    from hogwild.feeds.corpus.open import corpus_of
    from hogwild.programs.words.word2vec import Word2Vec

    random = np.random.default_rng(1)
    words = (random.random(500_000) ** 4 * 10_000).astype(int).astype(str)
    return Word2Vec(), corpus_of([list(words[k : k + 20]) for k in range(0, len(words), 20)])


_PROBLEMS: dict[str, tuple[str, Callable[[], tuple[Any, Any]]]] = {
    "linear": ("30 features a row of 100,000", _linear),
    "fm": ("30 features a row of 100,000", _machine),
    "mlp": ("30 features a row of 100,000", _perceptron),
    "recommender": ("100,000 ratings", _ratings),
    "crf": ("2,000 sentences, words and tags", _tags),
    "word2vec": ("500,000 words, skip-gram, 100 numbers", _words),
}
