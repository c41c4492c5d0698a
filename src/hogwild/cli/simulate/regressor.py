"""`hogwild simulate regressor`: how the training of a regression goes on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import simulating
from hogwild.cli.flags import Page
from hogwild.cli.train import regressor
from hogwild.config.experiments import SimulateConfig, SimulateSaveConfig

PAGE = Page(
    "hogwild simulate regressor",
    """Predict how the training of a regression without locks goes on machines with more cores: gradient errors, loss
and speed-up. One real worker trains first, and its visits are timed; then one thread makes the visits of many virtual
workers, with delayed, torn and lost updates, the same again for the same times and seed. No model is saved.

Examples:
  hogwild simulate regressor train.svm --workers 1,4,16,64,256 --epochs 3
  hogwild simulate regressor houses.csv --label price --workers 2,4 --compare 1,2,4 --output simulation.json""",
)


@dataclass(frozen=True)
class Options(regressor.Options):
    """All flags of the command."""

    save: SimulateSaveConfig = field(default_factory=SimulateSaveConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)


run = simulating(regressor.RegressorJob)
