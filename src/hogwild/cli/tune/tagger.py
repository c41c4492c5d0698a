"""`hogwild tune tagger`: a search for the options of a tagger."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import tuning
from hogwild.cli.flags import Page
from hogwild.cli.train import tagger
from hogwild.config.experiments import TuneConfig

PAGE = Page(
    "hogwild tune tagger",
    """Search for the options of a tagger on held-out data: many runs side by side,
of one thread each, short ones first and whole ones for the best. The first trial has the usual options; what is
given is not searched for. The best model is saved. Ctrl-C ends the search and saves the best so far.

Examples:
  hogwild tune tagger train.txt --features chunking --valid dev.txt --seconds 300 --output chunker
  hogwild tune tagger train.txt --valid dev.txt --trials 20 --search l2=0.1:10:log --search epochs=5:30 --output pos""",
)


@dataclass(frozen=True)
class Options(tagger.Options):
    """All flags of the command."""

    tune: TuneConfig = field(default_factory=TuneConfig)


run = tuning(tagger.TaggerJob)
