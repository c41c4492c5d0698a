"""`hogwild tune word2vec`: a search for the options of word vectors."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.commands import tuning
from hogwild.cli.flags import Page
from hogwild.cli.train import word2vec
from hogwild.config.experiments import TuneConfig

PAGE = Page(
    "hogwild tune word2vec",
    """Search for the options of word vectors on held-out data: many runs side by side,
of one thread each, short ones first and whole ones for the best. The first trial has the usual options; what is
given is not searched for. The best model is saved. Ctrl-C ends the search and saves the best so far.

Examples:
  hogwild tune word2vec text.txt --valid held-out.txt --trials 12 --output vectors""",
)


@dataclass(frozen=True)
class Options(word2vec.Options):
    """All flags of the command."""

    tune: TuneConfig = field(default_factory=TuneConfig)


run = tuning(word2vec.WordVectorsJob)
