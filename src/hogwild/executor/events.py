"""What the executor yields. Progress bars, logs, savers and early stopping are readers of these."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar


@dataclass(frozen=True)
class Event:
    """Base of all events: when, and how far."""

    kind: ClassVar[str] = "event"
    seconds: float
    """Since training began, compile and load time excluded."""
    epoch: int
    """Epochs finished."""
    samples: int
    """Visited in all; those of batches, where a visit is a batch of samples."""

    @property
    def is_best(self) -> bool:
        """Whether the weights are the best so far on the validation feed."""
        return False

    def record(self) -> dict[str, Any]:
        """The event as JSON values."""
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Started(Event):
    """Workers are about to begin. `notes`: what was chosen for the user, one sentence each."""

    kind: ClassVar[str] = "started"
    total: int
    """Samples to be visited in all."""
    threads: int
    mode: str
    sharing: str
    lr: float
    compile_seconds: float
    prepare_seconds: float = 0.0
    """For calibrating the learning rate and choosing the sharing."""
    notes: tuple[str, ...] = ()
    unit: str = "samples"
    """What the user counts in: samples, or the program's unit where a visit is nothing that the user knows."""
    each: float = 1.0
    """Such units in a sample."""
    device: str = ""
    """Where the workers are streams; empty where they are on the processor's cores."""
    epochs: int = 0
    """How many there will be at the most, if that is known."""
    predicted: bool = False
    """Whether the workers are virtual ones (`hogwild.simulate`): what follows is a prediction."""

    def noting(self, sentence: str) -> Started:
        """With one more note, before the others."""
        return replace(self, notes=(sentence, *self.notes))


@dataclass(frozen=True)
class Progress(Event):
    """Now and then while workers run."""

    kind: ClassVar[str] = "progress"
    total: int
    loss: float
    """Mean loss a visit in this epoch so far, each taken before its own update; NaN before the first span ends."""
    lr: float
    samples_per_second: float
    units_per_second: float
    seconds_left: float
    balance: tuple[float, ...]
    """Share of the visits of this epoch that each worker made."""


@dataclass(frozen=True)
class Watched(Event):
    """Watched variables, by name: a number or a (nested) list of numbers."""

    kind: ClassVar[str] = "watched"
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EpochEnded(Event):
    """All samples have been visited once more; workers are parked until the generator goes on.

    metrics: on the validation feed, if there is one; trace: one entry a worker, if traced.
    """

    kind: ClassVar[str] = "epoch"
    loss: float
    lr: float
    epoch_seconds: float
    metrics: dict[str, float] = field(default_factory=dict)
    trace: tuple[dict[str, Any], ...] = ()
    best: bool = False

    @property
    def is_best(self) -> bool:
        """Whether the validation loss (without validation: simply this epoch) is the best so far."""
        return self.best


@dataclass(frozen=True)
class Parked(Event):
    """Workers are parked for a checkpoint that was asked for with `executor.park()`; they go on with the generator."""

    kind: ClassVar[str] = "parked"


@dataclass(frozen=True)
class Exchange(Event):
    """Workers are parked at a multiple of `exchange_every` visits, exactly; they go on with the generator."""

    kind: ClassVar[str] = "exchange"


@dataclass(frozen=True)
class Nodes(Event):
    """Now and then, and at the end, of a run on several nodes: what each has sent, received, waited for and taken.

    nodes: one entry a node, in all since the run began (sent and received are bytes); every: visits of a node between
    two exchanges; again: samples that were visited once more after faults, which no count has twice.
    """

    kind: ClassVar[str] = "nodes"
    nodes: tuple[dict[str, Any], ...]
    every: int = 0
    again: int = 0


@dataclass(frozen=True)
class Lost(Event):
    """A process of a run on several nodes is lost. The run goes on from where all last stood still.

    what: who died, "" where it was an error of somebody alive; why: how it was noticed; again: samples that are
    visited once more.
    """

    kind: ClassVar[str] = "lost"
    what: str
    why: str
    again: int


@dataclass(frozen=True)
class Joined(Event):
    """Machines came to a run on several nodes, which has so many nodes from the next epoch on.

    refused: why others that came are not taken in.
    """

    kind: ClassVar[str] = "joined"
    nodes: int
    refused: str = ""


@dataclass(frozen=True)
class Finished(Event):
    """The last event. `reason`: done, stopped, or early."""

    kind: ClassVar[str] = "finished"
    reason: str
    loss: float
    units: int
    train_seconds: float
    evaluate_seconds: float
    samples_per_second: float
    units_per_second: float
    metrics: dict[str, float] = field(default_factory=dict)
