"""`hogwild evaluate`: how good a trained model is on labelled files, or word vectors are on tests of words."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.apply.ratingfiles import RECOMMENDERS, evaluate_pairs
from hogwild.cli.apply.rows import ReadConfig
from hogwild.cli.apply.taggedfiles import TAGGERS, TaggedConfig, refuse
from hogwild.cli.flags import Page
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError
from hogwild.machine import cores
from hogwild.messages import say

if TYPE_CHECKING:
    from hogwild.programs.store import Model

PAGE = Page(
    "hogwild evaluate",
    """Measure a trained model on labelled files; a tagger on tagged text, type by type (chunks as CoNLL counts them);
or word vectors, of a model or a file, on tests of words: pairs with a score (Spearman's rank correlation) and analogies
in `: sections` (accuracy).

Examples:
  hogwild evaluate model test.svm
  hogwild evaluate model test-*.csv --json
  hogwild evaluate tagger test.txt --constrain
  hogwild evaluate recommender held-out.txt --top 20 --json
  hogwild evaluate word-model wordsim353.tsv questions-words.txt
  hogwild evaluate vectors.vec simlex.txt --json""",
)


@dataclass(frozen=True)
class WordConfig:
    """Word vectors."""

    restrict_vocab: int = 30_000
    """Analogies are asked of and answered with so many words only, the most frequent; 0: all."""

    def __post_init__(self) -> None:
        require(self, "restrict_vocab", self.restrict_vocab >= 0, "it must be at least 1, or 0 for all words.")


@dataclass(frozen=True)
class RankingConfig:
    """Recommenders."""

    top: int = 20
    """Of a recommender: measure so many of the best items of each user."""

    def __post_init__(self) -> None:
        require(self, "top", 1 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 20.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model, or a file of word vectors."""
    files: Annotated[tuple[str, ...], Shown("FILE...", positional=True)] = ()
    """Labelled files, tagged text, or tests of words; globs are expanded, - is standard input."""
    read: ReadConfig = field(default_factory=ReadConfig)
    tagged: TaggedConfig = field(default_factory=TaggedConfig)
    words: WordConfig = field(default_factory=WordConfig)
    recommended: RankingConfig = field(default_factory=RankingConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Print the metrics."""
    from hogwild.programs.words.vectors import holds_words

    if holds_words(Path(options.model)):
        from hogwild.cli.apply.words import evaluate_words

        refuse(options.tagged, "these are word vectors")
        return evaluate_words(options)
    from hogwild.programs.store import load_model

    began = time.perf_counter()
    model = load_model(options.model)
    if options.words != WordConfig():
        raise ConfigError("--restrict-vocab is for word vectors, and this model has none; leave it out.")
    if model.program.name in TAGGERS:
        from hogwild.cli.apply.tagscores import evaluate_tags

        return evaluate_tags(options, model, time.perf_counter() - began)
    refuse(options.tagged, "this model is none")
    if model.program.name in RECOMMENDERS:
        return evaluate_pairs(options, model, began)
    if options.recommended != RankingConfig():
        raise ConfigError("--top is for recommenders, and this model is none; leave it out.")
    return _evaluate_labelled(options, model, began)


def _evaluate_labelled(options: Options, model: Model, began: float) -> int:
    from hogwild.cli.apply.calibration import calibration_of, print_table
    from hogwild.cli.apply.rows import open_for, unknown_note
    from hogwild.cli.summary import metrics_text, print_json

    feed = open_for(model, options.files, options.read)
    loaded = time.perf_counter()
    program: Any = model.program
    metrics = program.evaluate(feed, cores())
    table = calibration_of(program, feed)
    notes = [*feed.notes, *unknown_note(program.ignored)]
    if not options.show.quiet:
        for note in notes:
            say(f"note: {note}")
    if options.show.json:
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "metrics": metrics,
                "calibration": [each._asdict() for each in table],
                "seconds": {"load": loaded - began, "evaluate": time.perf_counter() - loaded},
                "notes": notes,
            }
        )
    else:
        print(metrics_text(metrics))
        if table and not options.show.quiet:
            print_table(table)
    return 0
