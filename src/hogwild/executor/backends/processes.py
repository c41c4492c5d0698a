"""Visits in processes of their own: a thread of this process for each, which waits on a pipe meanwhile."""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from hogwild import errors
from hogwild.errors import ConfigError, HogwildError, WorkerError, shorten
from hogwild.executor.backends.backend import Stateless
from hogwild.executor.backends.child import Failure, serve
from hogwild.executor.backends.rounds import Rounds
from hogwild.executor.modes import IN_ROUNDS, batch_of
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore
from hogwild.executor.trace import counted_summary
from hogwild.kernels.loop.order import visits_at
from hogwild.kernels.loop.schedule import rate_after
from hogwild.kernels.loop.span import Span

_END_SECONDS = 5.0  # that a worker has to end by itself, and one that has died to be found dead
# What a terminal, or whoever ends a command, sends to the whole group: this process alone decides what it means.
_OURS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


class TracebackOf(Exception):
    """The traceback of a worker in another process, as the cause of the error that is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class ProcessWorkers(Stateless):
    """Workers that are processes (spawn). What each of them is, the program says: `Program.visitor(worker)`, a function
    and its arguments, which makes there what has the methods that `_Remote` asks for."""

    notes: Sequence[str] = ()
    group = 1
    span_seconds = 0.05  # a pipe to a process is slower than a call

    def __init__(self, plan: Plan) -> None:
        self.trace: Any = _Versions(self) if plan.config.trace else None
        self._plan = plan
        self._workers: list[_Worker] = []
        self._alone = threading.Lock()  # mode `locked`
        config = plan.config
        step = batch_of(config) if config.mode == "minibatch" else plan.workers
        self._rounds = Rounds(step, config.mode == "minibatch", plan.visits) if config.mode in IN_ROUNDS else None

    def _worker(self, number: int, make: Any, arguments: tuple[Any, ...]) -> _Worker:
        """A process that is starting."""
        return _Remote(number, make, arguments)

    def open(self, store: WeightStore) -> None:
        """Who there will be."""
        self._count = store.workers

    def prepare(self) -> float:
        """Start all processes at once, then wait for each; returns seconds."""
        began = time.perf_counter()
        program: Any = self._plan.program
        for worker in range(self._count):
            self._workers.append(self._worker(worker, *program.visitor(worker, self._plan.config)))
        for remote in self._workers:
            remote.wait_until_ready()
        return time.perf_counter() - began

    def traces(self) -> list[dict[str, Any]]:
        """What each worker has counted since the last time; all stand still."""
        return [remote.ask("at the end of an epoch", "trace") for remote in self._workers]

    def begin(self, position: int) -> None:
        """Rounds begin at this position."""
        if self._rounds is not None:
            self._rounds.begin(position)

    def run(self, worker: int, span: Span) -> float:
        """Have the visits of a span made; returns the worker's new sum of losses."""
        remote = self._workers[worker]
        if self._rounds is not None:
            return self._run_in_rounds(remote, self._rounds, span)
        if self._plan.config.mode == "locked":
            with self._alone:
                return remote.run(span)
        return remote.run(span)

    def _run_in_rounds(self, remote: _Worker, rounds: Rounds, span: Span) -> float:
        loss = span.loss
        turns = _Turns(remote, span)
        for position in range(span.start + span.worker, span.stop, span.workers):
            found = rounds.visit(turns, position)
            if found is None:
                break
            loss += found
        return loss

    def probe(self, weights: Any, spans: Sequence[Span], most: float = math.inf) -> float:
        """There is no learning rate to be found, nor a sharing: the program says both."""
        raise ConfigError("a program whose workers are processes has no trial of learning rates; give --lr.")

    def fetch(self) -> None:
        """Workers write memory that this process maps."""

    def send(self) -> None:
        """They read it."""

    def stop(self) -> None:
        """Nobody waits for a turn any more."""
        if self._rounds is not None:
            self._rounds.stop()

    def close(self) -> None:
        """End all processes; none is left, whatever it is at."""
        for remote in self._workers:
            remote.say_goodbye()
        until = time.perf_counter() + _END_SECONDS
        for remote in reversed(self._workers):
            remote.end(max(0.0, until - time.perf_counter()))
        self._workers.clear()


class ThreadWorkers(ProcessWorkers):
    """The same workers in threads of this process, for a Python without the GIL."""

    def _worker(self, number: int, make: Any, arguments: tuple[Any, ...]) -> _Worker:
        """Ready at once."""
        return _Here(number, make, arguments)


class _Versions:
    """Gradient errors by versions of parameters, as `executor.trace.Trace` tells those of compiled code."""

    def __init__(self, workers: ProcessWorkers) -> None:
        self._workers = workers

    def take(self) -> tuple[dict[str, Any], ...]:
        """Summarise what was counted since the last call, one entry a worker."""
        return tuple(
            counted_summary(worker, found, found.pop("delays"), found.pop("sizes"))
            for worker, found in enumerate(self._workers.traces())
        )


class _Worker(ABC):
    """A worker, wherever it is: asked by the thread of the executor that stands for it."""

    number: int

    def wait_until_ready(self) -> None:
        """Until it has made what makes visits."""

    @abstractmethod
    def ask(self, where: str, *request: Any) -> Any:
        """Have something done; what comes back."""

    def run(self, span: Span) -> float:
        """The visits of a span, one after the other; the new sum of losses."""
        positions = np.arange(span.start, span.stop)
        loss = self.ask(
            f"at positions {span.start}-{span.stop}", "run", visits_at(span.order, positions), span.order.key,
            [rate_after(span.schedule, span.before + int(position)) for position in positions],
            span.before + positions, span.loss,
        )  # fmt: skip
        return float(loss)

    def say_goodbye(self) -> None:
        """It may end."""

    @abstractmethod
    def end(self, seconds: float) -> None:
        """Wait so long for its end; then it is ended."""


class _Here(_Worker):
    """A worker in this process."""

    def __init__(self, number: int, make: Any, arguments: tuple[Any, ...]) -> None:
        self.number, self._visitor = number, make(*arguments)

    def ask(self, where: str, *request: Any) -> Any:
        name, *given = request
        try:
            return getattr(self._visitor, name)(*given)
        except HogwildError:
            raise
        except Exception as error:
            text = f"worker {self.number} {where}: {type(error).__name__}: {shorten(str(error))}"
            raise WorkerError(text, self.number) from error

    def end(self, seconds: float) -> None:
        self._visitor.end()


class _Remote(_Worker):
    """A worker in another process, and the pipe to it."""

    def __init__(self, number: int, make: Any, arguments: tuple[Any, ...]) -> None:
        self.number = number
        self._loose = True  # it answers, and nobody waits for what it does
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=serve, args=(theirs, make, arguments), name=f"hogwild-{number}", daemon=True
        )
        try:
            with _undisturbed():
                self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()

    def wait_until_ready(self) -> None:
        """Until it has made what makes visits."""
        self._receive("while it started")

    def ask(self, where: str, *request: Any) -> Any:
        """Have something done; what comes back."""
        with suppress(OSError):  # whoever is gone is found out by what comes back
            self._pipe.send(request)
        return self._receive(where)

    def _receive(self, where: str) -> Any:
        self._loose = False
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise WorkerError(f"worker {self.number} {where}: {self._epitaph()}", self.number) from None
        self._loose = True
        if isinstance(answer, Failure):
            raise _raised(answer, f"worker {self.number} {where}")
        return answer

    def _epitaph(self) -> str:
        """How its process ended."""
        self._process.join(_END_SECONDS)
        code = self._process.exitcode
        if code is None:
            return "its process does not answer any more."
        if code >= 0:
            return (
                f"its process ended with exit code {code}. A script that trains needs `if __name__ == '__main__':` "
                "around what it runs; what its process wrote to standard error says more."
            )
        name = signal.Signals(-code).name
        memory = "; was there too little memory?" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{memory}."

    def say_goodbye(self) -> None:
        """It may end."""
        with suppress(OSError):
            if self._loose:
                self._pipe.send(None)
        self._pipe.close()

    def end(self, seconds: float) -> None:
        """Wait so long for its end; then it is ended."""
        self._process.join(seconds if self._loose else 0.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


class _Turns:
    """A worker in the modes that work in rounds: visits in two parts."""

    def __init__(self, remote: _Worker, span: Span) -> None:
        self._remote, self._span = remote, span

    def gradient(self, position: int) -> float:
        span = self._span
        visit = int(visits_at(span.order, np.array([position]))[0])
        return float(self._ask(position, "gradient", visit, span.order.key, span.before + position))

    def apply(self, position: int) -> None:
        self._ask(position, "apply", self._rate(position))

    def take(self) -> Any:
        return self._ask(-1, "take")

    def add(self, total: Any, gradient: Any) -> Any:
        return gradient if total is None else [_sum(one, other) for one, other in zip(total, gradient, strict=True)]

    def apply_sum(self, position: int, total: Any) -> None:
        self._ask(position, "apply_sum", total, self._rate(position))

    def _rate(self, position: int) -> float:
        return rate_after(self._span.schedule, self._span.before + position)

    def _ask(self, position: int, *request: Any) -> Any:
        return self._remote.ask(f"at position {position}", *request)


def _sum(one: Any, other: Any) -> Any:
    """The sum of two gradients of a parameter: an array, or (rows, their gradients), or None where there is none."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, tuple):
        return tuple(np.concatenate(pair) for pair in zip(one, other, strict=True))  # rows twice: who writes adds up
    return one + other


def _raised(failure: Failure, where: str) -> HogwildError:
    """The error of another process; our own errors keep their text, which says what to do."""
    known = getattr(errors, failure.kind, None)
    ours = isinstance(known, type) and issubclass(known, HogwildError)
    text = failure.text if ours else f"{where}: {failure.kind}: {shorten(failure.text)}"
    error: HogwildError = known(text) if ours and known is not None else WorkerError(text)
    error.__cause__ = TracebackOf(failure.traceback)
    return error


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What is started meanwhile never sees the signals by which a user ends this process."""
    resource_tracker.ensure_running()  # of `multiprocessing`: where it is started, it lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


