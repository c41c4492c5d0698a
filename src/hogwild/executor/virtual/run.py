"""An executor whose workers are virtual: it runs any compiled program as a machine with so many cores would."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hogwild.errors import ConfigError
from hogwild.executor.plan import Plan
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.virtual.backend import VirtualWorkers
from hogwild.executor.virtual.machine import Machine
from hogwild.kernels.loop.task import paced
from hogwild.programs.program import CompiledProgram


class VirtualExecutor(AsyncExecutor):
    """Runs one program as the workers of a machine would that is not there; the same run again, bit for bit.

    Parameters
    ----------
    machine : what is simulated.
    options : any field of `TrainConfig`; threads are the workers of the machine, and the weights are in one copy.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> from hogwild.executor.virtual.machine import Machine
    >>> feed = hogwild.feed_of(np.array([[0.0], [1.0]]), [0, 1])
    >>> events = list(VirtualExecutor(Machine(workers=2)).run(hogwild.Linear(), feed, epochs=2, lr=0.5))
    >>> events[0].threads, events[-1].samples
    (2, 4)
    """

    def __init__(self, machine: Machine, **options: Any) -> None:
        fixed = {"threads": machine.workers, "mode": "hogwild", "sharing": "all", "trace": False}
        check_virtual(options)
        super().__init__(**{**options, **fixed})
        self.machine = machine

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "machine": self.machine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.machine = state["machine"]

    @property
    def backend(self) -> VirtualWorkers:
        """The virtual workers of this run."""
        backend = self._open_course().crew.backend
        assert isinstance(backend, VirtualWorkers)
        return backend

    def _planned(self, plan: Plan) -> Plan:
        if not isinstance(plan.program, CompiledProgram) or plan.program.backend(plan.config) is not None:
            raise ConfigError(f"{plan.program.name} is no compiled code, whose visits alone can be simulated.")
        # Visits are made one by one: what a worker makes together has no moments of its own to read and to write.
        task = paced(plan.task, "serial")
        return replace(plan, task=task, backend=lambda own: VirtualWorkers(own, self.machine))


def check_virtual(options: dict[str, Any]) -> None:
    """ConfigError for options of training that a simulation cannot have."""
    if (mode := options.get("mode") or "hogwild") != "hogwild":
        raise ConfigError(f"mode is {mode}; what is simulated is mode hogwild: leave it out.")
    if (sharing := options.get("sharing") or "auto") not in ("auto", "all"):
        raise ConfigError(f"sharing is {sharing}; virtual workers have one copy of the weights: leave it out.")
    for name in ("device", "threads", "merge_every", "hot_rows"):
        if options.get(name):
            raise ConfigError(f"{name} is {options[name]}; it has no effect on virtual workers: leave it out.")
