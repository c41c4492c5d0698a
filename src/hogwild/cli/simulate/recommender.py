"""`hogwild simulate recommender`: how the training of a recommender goes on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import simulating
from hogwild.cli.simulate.page import page
from hogwild.cli.train import recommender
from hogwild.config.experiments import SimulateConfig, SimulateSaveConfig

PAGE = page(
    "recommender", "a recommender",
    "ratings.csv --workers 1,4,16,64,256 --epochs 3",
    "ratings.csv --dim 32 --workers 2,4 --compare 1,2,4 --output simulation.json",
)  # fmt: skip


@dataclass(frozen=True)
class Options(recommender.Options):
    """All flags of the command."""

    save: SimulateSaveConfig = field(default_factory=SimulateSaveConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)


run = simulating(recommender.RecommenderJob)
