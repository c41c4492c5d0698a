"""A search for options: many short runs side by side, whole ones for the best of them, again until the budget is spent.

Trials come in groups. All of a group run for a third of their epochs, the best third of them then from the beginning
for all; the options of every other trial of later groups are near the best so far. Runs have one thread each and depend
on nothing but their options and the seed, and a group is drawn when the one before it has ended: so a search of a given
number of trials can be repeated, whatever the number of cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.config.experiments import TuneConfig
from hogwild.errors import ConfigError
from hogwild.executor.search.space import Space, draw
from hogwild.executor.search.trial import Subject, Trial, run_trial
from hogwild.machine import cores, one_blas_thread

GROUP = 9  # trials of which a third have whole runs
TRIALS = 30  # where neither a number nor a time is given
_TICK = 0.1  # seconds between two looks at the clock


@dataclass
class Search:
    """A search, and what it has found.

    trials: those that have ended, in the order of their numbers. best: the best of those with whole runs; of all, where
    there is none yet.
    """

    subject: Subject
    space: Space
    config: TuneConfig
    tell: Callable[[Trial], None] = lambda trial: None
    asked: Callable[[], bool] = lambda: False
    trials: dict[int, Trial] = field(default_factory=dict)
    best: Trial | None = None
    _began: float = field(default_factory=time.perf_counter)
    _halted: bool = False

    @property
    def most(self) -> float:
        """Trials, at the most."""
        return self.config.trials or (math.inf if self.config.seconds else TRIALS)

    @property
    def seconds_left(self) -> float:
        """Until the end of the search; infinite where only trials are counted."""
        if not self.config.seconds:
            return math.inf
        return max(0.0, self.config.seconds - (time.perf_counter() - self._began))

    def halted(self) -> bool:
        """Whether the search is to end."""
        self._halted = self._halted or self.asked() or (self.seconds_left <= 0 and self.best is not None)
        return self._halted

    def halt(self) -> None:
        """End the search; runs stop at their next span."""
        self._halted = True

    def run(self) -> Trial:
        """Search; returns the best trial, with its program. Raises what the first trial failed of, if all do."""
        workers = self.config.side_by_side or cores()
        with one_blas_thread(), ThreadPoolExecutor(workers, "hogwild-trial") as pool:
            try:
                first = 0
                while first < self.most and not self.halted():
                    end = int(min(first + GROUP, self.most))
                    self._run_group(pool, range(first, end))
                    first = end
            except BaseException:
                self.halt()
                raise
        if self.best is None:
            failed = next((trial for trial in self.trials.values() if trial.status == "failed"), None)
            raise ConfigError(
                f"no trial gave a model; the first: {failed.why if failed else 'there was no time for it.'}"
            )
        return self.best

    def _run_group(self, pool: ThreadPoolExecutor, numbers: range) -> None:
        best = self.best.options if self.best else None
        group = [Trial(k, draw(self.space, k, self.subject.config.seed, best) if k else {}) for k in numbers]
        shorts = {trial.number: trial for trial in self._all(pool, group, short=True)}
        ranked = sorted((t for t in shorts.values() if t.status == "short" and t.usable), key=_rank)
        chosen = ranked[: -(-len(group) // 3)]
        if 0 in shorts and shorts[0] in ranked and shorts[0] not in chosen:
            chosen.append(shorts[0])  # the usual options: what all is compared with
        for trial in shorts.values():
            if trial not in chosen or self.halted():
                self._keep(trial)
        if not self.halted():
            for trial in self._all(pool, chosen, short=False):
                self._keep(trial)

    def _all(self, pool: ThreadPoolExecutor, trials: Sequence[Trial], short: bool) -> Iterator[Trial]:
        """Run trials side by side; they come as they end."""
        todo, running = list(trials), set[Future[Trial]]()
        workers = self.config.side_by_side or cores()
        while todo or running:
            while todo and len(running) < workers and not self.halted():
                trial = todo.pop(0)
                running.add(pool.submit(run_trial, self.subject, trial, short, self.halted))
            if not running:
                return
            done, running = wait(running, _TICK, FIRST_COMPLETED)
            for future in done:
                yield future.result()

    def _keep(self, trial: Trial) -> None:
        """Tell of a trial, and remember its model if it is the best."""
        whole, before = trial.status in ("done", "early"), self.best
        better = trial.usable and (before is None or _rank(trial) < _rank(before))
        if before is not None and trial.usable and whole != (before.status in ("done", "early")):
            better = whole  # a whole run goes before others
        if better:
            if before is not None:
                self.trials[before.number] = replace(before, program=None)
            self.best = trial
        self.trials[trial.number] = trial if better else replace(trial, program=None)
        self.trials = dict(sorted(self.trials.items()))
        self.tell(trial)


def _rank(trial: Trial) -> tuple[float, int]:
    return trial.score, trial.number


def check_space(space: Mapping[str, Any]) -> None:
    """ConfigError where nothing is left to try."""
    if not space:
        raise ConfigError("all options are given, so there is nothing to search for; leave some out, or give search.")
