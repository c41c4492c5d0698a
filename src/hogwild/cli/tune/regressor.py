"""`hogwild tune regressor`: a search for the options of a regression."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import tuning
from hogwild.cli.flags import Page
from hogwild.cli.train import regressor
from hogwild.config.experiments import TuneConfig

PAGE = Page(
    "hogwild tune regressor",
    """Search for the options of a regression on held-out data: many runs side by side,
of one thread each, short ones first and whole ones for the best. The first trial has the usual options; what is
given is not searched for. The best model is saved. Ctrl-C ends the search and saves the best so far.

Examples:
  hogwild tune regressor train.svm --valid held-out.svm --seconds 60 --output model
  hogwild tune regressor prices.csv --model mlp --valid test.csv --trials 40 --output prices
  hogwild tune regressor clicks.csv --valid more.csv --search lr=0.01:1:log --search l2=1e-7,1e-5,1e-3""",
)


@dataclass(frozen=True)
class Options(regressor.Options):
    """All flags of the command."""

    tune: TuneConfig = field(default_factory=TuneConfig)


run = tuning(regressor.RegressorJob)
