"""`hogwild simulate ctr`: how the training of a model of clicks goes on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import simulating
from hogwild.cli.simulate.page import page
from hogwild.cli.train import ctr
from hogwild.config.experiments import SimulateConfig, SimulateSaveConfig

PAGE = page(
    "ctr", "a model of clicks",
    "clicks.txt --workers 1,4,16,64,256 --epochs 3",
    "clicks.csv --workers 2,4 --compare 1,2,4 --output simulation.json",
)  # fmt: skip


@dataclass(frozen=True)
class Options(ctr.Options):
    """All flags of the command."""

    save: SimulateSaveConfig = field(default_factory=SimulateSaveConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)


run = simulating(ctr.CtrJob)
