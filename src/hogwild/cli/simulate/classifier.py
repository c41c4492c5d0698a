"""`hogwild simulate classifier`: how the training of a classifier goes on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import simulating
from hogwild.cli.simulate.page import page
from hogwild.cli.train import classifier
from hogwild.config.experiments import SimulateConfig, SimulateSaveConfig

PAGE = page(
    "classifier", "a classifier",
    "train.svm --workers 1,4,16,64,256 --epochs 3",
    "reviews.tsv --model text --workers 2,4 --compare 1,2,4 --output simulation.json",
)  # fmt: skip


@dataclass(frozen=True)
class Options(classifier.Options):
    """All flags of the command."""

    save: SimulateSaveConfig = field(default_factory=SimulateSaveConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)


run = simulating(classifier.ClassifierJob)
