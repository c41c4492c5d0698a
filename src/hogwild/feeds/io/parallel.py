"""Work by several threads: items whose results come in the order of what went in, and parts of rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from hogwild.machine import cores
from hogwild.timeline import timed, timed_items

T = TypeVar("T")
R = TypeVar("R")


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int = 0) -> Iterator[tuple[T, R]]:
    """Each item with work(item), in order. Few items are held at a time, so that endless ones can be worked through.

    Parameters
    ----------
    work
        Called in threads; it should spend its time where the GIL is released.
    items
        Taken one by one, in the caller's thread.
    threads
        0: one a core, and at least 2.

    Examples
    --------
    >>> [square for _, square in in_order(lambda x: x * x, range(4))]
    [0, 1, 4, 9]
    """
    threads = threads or max(2, min(cores(), 8))
    waiting: deque[tuple[T, Future[R]]] = deque()

    def timed_work(item: T) -> R:
        with timed("parse"):
            return work(item)

    with ThreadPoolExecutor(threads, thread_name_prefix="feed") as pool:
        try:
            for item in timed_items("read", items):
                waiting.append((item, pool.submit(timed_work, item)))
                while len(waiting) > 2 * threads:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def in_all(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """work(item) of each, on all cores at once: where items are few, and all of them may be held.

    >>> in_all(len, ["a", "bc"])
    [1, 2]
    """
    if len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(max(2, min(cores(), 8))) as pool:
        return list(pool.map(work, items))


def in_parts(rows: int, threads: int, work: Callable[[int, int], None], step: int = 1) -> None:
    """Do `work(first row, end)` on as many parts of the rows as there are threads, all at once.

    step: parts begin at multiples of it. Where rows are worked on in batches of this size, a row is then in the same
    batch whatever the number of threads: BLAS may round otherwise in a batch of another size.
    """
    ends = (np.linspace(0, -(-rows // step), max(1, threads) + 1).astype(int) * step).clip(max=rows).tolist()
    if threads <= 1:
        work(0, rows)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))
