"""`hogwild tune ctr`: a search for the options of a model of clicks."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import tuning
from hogwild.cli.flags import Page
from hogwild.cli.train import ctr
from hogwild.config.experiments import TuneConfig

PAGE = Page(
    "hogwild tune ctr",
    """Search for the options of a model of clicks on held-out data: many runs side by side,
of one thread each, short ones first and whole ones for the best. The first trial has the usual options; what is
given is not searched for. The best model is saved. Ctrl-C ends the search and saves the best so far.

Examples:
  hogwild tune ctr clicks.txt --valid held-out.txt --seconds 600 --output model
  hogwild tune ctr clicks.csv --label click --model fm --valid more.csv --trials 20 --search dim=4,8,16 --json""",
)


@dataclass(frozen=True)
class Options(ctr.Options):
    """All flags of the command."""

    tune: TuneConfig = field(default_factory=TuneConfig)


run = tuning(ctr.CtrJob)
