"""Modes in which workers wait for one another, with workers that are threads of this process."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from hogwild.executor.backends.rounds import Rounds


class Worker:
    """Adds what it read to what there is: the order of all parts shows in the log."""

    def __init__(self, log: list[tuple[str, int]], pause: float = 0.0) -> None:
        self.log, self.pause, self.position = log, pause, -1

    def gradient(self, position: int) -> float:
        time.sleep(self.pause)
        self.log.append(("read", position))
        self.position = position
        return 1.0

    def apply(self, position: int) -> None:
        assert position == self.position
        self.log.append(("write", position))

    def take(self) -> int:
        return self.position

    def add(self, total: Any, gradient: Any) -> Any:
        return [*(total or []), gradient]

    def apply_sum(self, position: int, total: Any) -> None:
        self.log.append(("sum", position))
        self.log.extend(("of", part) for part in total)


def _run(rounds: Rounds, workers: int, visits: int) -> list[tuple[str, int]]:
    log: list[tuple[str, int]] = []

    def work(worker: int) -> None:
        mine = Worker(log, 0.001 * (workers - worker))
        for position in range(worker, visits, workers):
            assert rounds.visit(mine, position) == 1.0

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return log


def test_round_robin_writes_in_order_what_was_read_before_any_write() -> None:
    log = _run(Rounds(3, False, 8), 3, 8)
    for first in (0, 3, 6):
        part, log = log[: 2 * min(3, 8 - first)], log[2 * min(3, 8 - first) :]
        half = len(part) // 2
        assert sorted(part[:half]) == [("read", first + k) for k in range(half)]
        assert part[half:] == [("write", first + k) for k in range(half)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_minibatch_is_summed_in_order_whoever_computes_it(workers: int) -> None:
    log = [entry for entry in _run(Rounds(6, True, 14), workers, 14) if entry[0] != "read"]
    assert log == [
        ("sum", 5), *(("of", k) for k in range(6)), ("sum", 11), *(("of", k) for k in range(6, 12)),
        ("sum", 13), ("of", 12), ("of", 13),
    ]  # fmt: skip


def test_nobody_waits_for_one_who_has_failed() -> None:
    rounds = Rounds(2, False, 4)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(rounds.visit(Worker([]), 0)))
    waiting.start()
    time.sleep(0.05)
    assert waiting.is_alive()
    rounds.stop()
    waiting.join(5)
    assert found == [None]
