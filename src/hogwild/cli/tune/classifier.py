"""`hogwild tune classifier`: a search for the options of a classifier."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import tuning
from hogwild.cli.flags import Page
from hogwild.cli.train import classifier
from hogwild.config.experiments import TuneConfig

PAGE = Page(
    "hogwild tune classifier",
    """Search for the options of a classifier on held-out data: many runs side by side,
of one thread each, short ones first and whole ones for the best. The first trial has the usual options; what is
given is not searched for. The best model is saved. Ctrl-C ends the search and saves the best so far.

Examples:
  hogwild tune classifier train.svm --valid held-out.svm --seconds 60 --output model
  hogwild tune classifier reviews.tsv --model text --valid test.tsv --trials 40 --output sentiment
  hogwild tune classifier clicks.csv --valid more.csv --search lr=0.01:1:log --search l2=1e-7,1e-5,1e-3""",
)


@dataclass(frozen=True)
class Options(classifier.Options):
    """All flags of the command."""

    tune: TuneConfig = field(default_factory=TuneConfig)


run = tuning(classifier.ClassifierJob)
