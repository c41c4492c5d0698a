"""A visit that a trace looks at, stage by stage: so that a test can be the other worker, at any moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hogwild.arrays import Step, limited_scratch
from hogwild.executor.trace import Trace
from hogwild.kernels.compiler.jit import fresh
from hogwild.kernels.loop.task import apply, gradient
from hogwild.kernels.loop.trace import begin_writing, count_update, end_reading, end_writing, open_visit, settle

# ruff: noqa: PLW0108  (what is compiled is the lambda, for whatever types come)
_open = fresh(lambda probe, task, samples, visit, weights, scratch: open_visit(
    probe, task, samples, visit, weights, scratch))  # fmt: skip
_gradient = fresh(lambda task, samples, visit, weights, scratch: gradient(task, samples, visit, weights, scratch))
_read = fresh(lambda probe, opened: end_reading(probe, opened))
_begin = fresh(lambda probe, opened, read, scratch: begin_writing(probe, opened, read, scratch))
_apply = fresh(lambda task, weights, scratch, step: apply(task, weights, scratch, step))
_end = fresh(lambda probe, opened, scratch: end_writing(probe, opened, scratch))
_count = fresh(lambda probe: count_update(probe, 1))
_settle = fresh(lambda probe, opened, found, visit, rest: settle(probe, opened, found, False, visit, rest))

STEP = Step(np.float32(0.1), np.float32(0), 0, 0, 2)
MOMENTS = ("before", "reading", "waiting", "writing", "after")


class Staged:
    """The first of two workers, of a task on given weights."""

    def __init__(self, task: Any, samples: Any, weights: Any, tables: Any, room: Any) -> None:
        self.trace = Trace(tables, room, workers=2, every=1)
        self.mine, self.others = (self.trace.add_worker(weights) for _ in range(2))
        self.task, self.samples, self.weights = task, samples, weights
        self.scratch = limited_scratch(room, tables, np.uint64(1))

    def other_updates(self) -> None:
        """The other worker has made an update, wherever."""
        _count(self.others)

    def visit(self, visit: int, moment: str, write: Callable[[], None]) -> dict[str, Any]:
        """Make a visit, and let the other worker write at this moment; what is found of it."""
        def other(now: str) -> None:
            if now == moment:
                write()
                self.other_updates()

        other("before")
        opened = _open(self.mine, self.task, self.samples, visit, self.weights, self.scratch)
        _gradient(self.task, self.samples, visit, self.weights, self.scratch)
        other("reading")
        read = _read(self.mine, opened)
        other("waiting")
        found = _begin(self.mine, opened, read, self.scratch)
        _apply(self.task, self.weights, self.scratch, STEP)
        other("writing")
        _end(self.mine, opened, self.scratch)
        _count(self.mine)
        other("after")
        _settle(self.mine, opened, found, visit, (self.task, self.samples, self.scratch, STEP))
        return self.trace.take()[0]


def kinds(entry: dict[str, Any]) -> tuple[int, ...]:
    """Read-overwrites, write-overwrites, errors, delayed."""
    return tuple(entry[name] for name in ("read_overwrites", "write_overwrites", "errors", "delayed"))


EXPECTED = {
    "before": (0, 0, 0, 0), "reading": (1, 0, 1, 0), "waiting": (0, 0, 0, 1), "writing": (0, 1, 1, 0),
    "after": (0, 0, 0, 0),
}  # fmt: skip
"""What a write of another worker to the same row is, by its moment: the cases of Fig. 1 of the paper."""
