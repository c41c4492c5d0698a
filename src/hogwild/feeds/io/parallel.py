"""Work by several threads whose results come in the order of what went in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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
