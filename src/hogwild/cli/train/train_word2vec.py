"""`hogwild train word2vec`: the flags; wordvectors.py and training.py do the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.config import CorpusConfig, Files, SaveConfig, ShowConfig, WatchConfig, Word2VecConfig, WordTrainConfig
from hogwild.config.options import Shown

PAGE = Page(
    "hogwild train word2vec",
    """Train word vectors by negative sampling: skip-gram, or CBOW with --cbow.

Files hold plain text, compressed or not: words between white space, one sentence a line, or no lines at all.

Examples:
  hogwild train word2vec wiki.txt.xz --output vectors
  hogwild train word2vec news-*.txt.gz --lowercase --min-count 10 --dim 300 --phrases 1 --output vectors
  hogwild train word2vec wiki.txt --cbow --epochs 10 --output vectors --checkpoint-every 10m
  hogwild train word2vec more.txt --start vectors --output vectors-2
  hogwild train word2vec letters.txt --start glove.txt --dim 50 --output vectors""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TEXT...", positional=True)] = ()
    """Text files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation text, evaluated after each epoch; the vectors of the best epoch are kept."""
    start: Annotated[str, Shown("MODEL|FILE")] = ""
    """Word vectors to go on from, a trained model or a file: their words keep them, new words of the text join them."""
    train: WordTrainConfig = field(default_factory=WordTrainConfig)
    word2vec: Word2VecConfig = field(default_factory=Word2VecConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Train; returns the exit code."""
    from hogwild.cli.train.run import run_training  # here: they need everything there is
    from hogwild.cli.train.word2vec import WordVectorsJob

    return run_training(options, WordVectorsJob(options))
