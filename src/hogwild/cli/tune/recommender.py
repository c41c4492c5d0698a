"""`hogwild tune recommender`: a search for the options of a recommender."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import tuning
from hogwild.cli.flags import Page
from hogwild.cli.train import recommender
from hogwild.config.experiments import TuneConfig

PAGE = Page(
    "hogwild tune recommender",
    """Search for the options of a recommender on held-out data: many runs side by side,
of one thread each, short ones first and whole ones for the best. The first trial has the usual options; what is
given is not searched for. The best model is saved. Ctrl-C ends the search and saves the best so far.

Examples:
  hogwild tune recommender ratings.csv --valid held-out.csv --seconds 120 --output movies
  hogwild tune recommender check-ins.txt --valid held-out.txt --trials 30 --search l2=0.001:0.1:log --output places""",
)


@dataclass(frozen=True)
class Options(recommender.Options):
    """All flags of the command."""

    tune: TuneConfig = field(default_factory=TuneConfig)


run = tuning(recommender.RecommenderJob)
