"""`hogwild simulate tagger`: how the training of a tagger goes on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import simulating
from hogwild.cli.simulate.page import page
from hogwild.cli.train import tagger
from hogwild.config.experiments import SimulateConfig, SimulateSaveConfig

PAGE = page(
    "tagger", "a tagger",
    "train.txt --features chunking --workers 1,4,16,64,256 --epochs 3",
    "train.txt --model bilstm --workers 2,4 --compare 1,2,4 --output simulation.json",
)  # fmt: skip


@dataclass(frozen=True)
class Options(tagger.Options):
    """All flags of the command."""

    save: SimulateSaveConfig = field(default_factory=SimulateSaveConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)


run = simulating(tagger.TaggerJob)
