"""`hogwild train tagger`: the flags; tagger.py and training.py do the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from hogwild.cli.flags import Page
from hogwild.config import CRFConfig, Files, SaveConfig, ShowConfig, TaggerTrainConfig, TaggingConfig, WatchConfig
from hogwild.config.options import Shown

PAGE = Page(
    "hogwild train tagger",
    """Train a tagger: chunks, names, parts of speech, or words of text that is written without gaps.

Files hold a token a line in columns, the tag the last of them, and a blank line after each sentence (CoNLL); or
CoNLL-U, JSON lines, or words with spaces between them (--features segmentation); compressed or not.

Examples:
  hogwild train tagger train.txt --features chunking --valid test.txt --output chunker
  hogwild train tagger en-train.conllu --features pos --valid en-dev.conllu --patience 2 --output pos-tagger
  hogwild train tagger words.txt.xz --features segmentation --epochs 20 --output segmenter
  hogwild train tagger ner.tsv --columns w,pos,-,tag --features my-templates.txt --average --output ner
  hogwild train tagger train.txt --mode serial --structure-regularization 4 --trace --json""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    model: Literal["crf"] = "crf"
    """Kind of model: a linear-chain conditional random field."""
    tagging: TaggingConfig = field(default_factory=TaggingConfig)
    train: TaggerTrainConfig = field(default_factory=TaggerTrainConfig)
    crf: CRFConfig = field(default_factory=CRFConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Train; returns the exit code."""
    from hogwild.cli.train.run import run_training
    from hogwild.cli.train.tagger import TaggerJob  # here: they need everything there is

    return run_training(options, TaggerJob(options))
