"""The flags of `hogwild evaluate` and `hogwild predict`, for all kinds of models.

They stand apart from what the commands do: the files of each kind of model need them, and the commands need those.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from hogwild.cli.flags import Page
from hogwild.cli.outputs import OutputConfig
from hogwild.config import Column, ShowConfig, TagScheme
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError

RECOMMENDERS = ("matrix-factorization",)
"""Names of the programs that recommend."""

Own = Annotated[str, Shown("MODULE:FUNCTION")]


@dataclass(frozen=True)
class ReadConfig:
    """How files are read; all else is as it was in training."""

    format: Literal[
        "same", "auto", "svmlight", "csv", "tsv", "parquet", "arrow", "text", "conll", "conllu", "segmented", "jsonl",
        "tokens", "ratings", "lists", "multislot", "tfrecord", "criteo", "libffm", "libfm", "fasttext",
    ] = "same"
    """Kind of file, if it is not the one of the training files."""
    label: Column = ""
    """Label column, if it is not the one of the training files."""
    weight: Column = ""
    """Column of weights, if it is not the one of the training files; `none`: all rows count the same."""
    bad_lines: Literal["stop", "skip"] = "stop"
    """What a malformed line does; `skip` counts and reports them."""
    bad_share: float = 0.01
    """With `skip`: give up when more than this share is malformed."""
    invalid_utf8: Literal["same", "stop", "replace"] = "same"
    """What invalid UTF-8 does; `replace` counts it. Default: as in training; taggers stop."""
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded data on disk and use it again."""

    def shared(self) -> dict[str, Any]:
        """What readers of tagged text and of ratings take as it is; they know no `same`."""
        return {
            "format": "auto" if self.format == "same" else self.format, "bad_lines": self.bad_lines,
            "bad_share": self.bad_share, "invalid_utf8": "replace" if self.invalid_utf8 == "replace" else "stop",
            "pipe": self.pipe, "cache": self.cache,
        }  # fmt: skip


@dataclass(frozen=True)
class TaggedConfig:
    """Taggers."""

    constrain: bool = False
    """Give only tags that their scheme (IOB, IOBES, BMES) allows where they stand."""
    columns: Annotated[tuple[str, ...], Shown("NAME,NAME")] = ()
    """Names of the columns, or fields, of these files, if they differ from the training files; - leaves one out."""
    tag_column: Annotated[str, Shown("NAME|N")] = ""
    """Column of the tags, if it is not the one of the training files."""


def given(group: Any) -> list[str]:
    """The flags of a group of options that have another value than by default."""
    return ["--" + item.name.replace("_", "-") for item in fields(group) if getattr(group, item.name) != item.default]


def refuse(group: Any, kind: str, why: str) -> None:
    """Raise ConfigError if a flag is given that is for another kind of model."""
    for flag in given(group):
        raise ConfigError(f"{flag} is for {kind}, and {why}; leave it out.")


# -- evaluate ---------------------------------------------------------------------------------------------------------

EVALUATE = Page(
    "hogwild evaluate",
    """Measure a trained model on labelled files; a tagger on tagged text, type by type (chunks as CoNLL counts them);
or word vectors, of a model or a file, on tests of words: pairs with a score (Spearman's rank correlation) and analogies
in `: sections` (accuracy); or a model of documents on documents: the loss of their second halves by vectors that the
first ones give.

Examples:
  hogwild evaluate model test.svm
  hogwild evaluate model test-*.csv --json
  hogwild evaluate topics test.txt --top 5
  hogwild evaluate tagger test.txt --constrain
  hogwild evaluate recommender held-out.txt --top 20 --json
  hogwild evaluate word-model wordsim353.tsv questions-words.txt
  hogwild evaluate vectors.vec simlex.txt --json""",
)


def require_chance(options: Any) -> None:
    """Raise ConfigError for a threshold that is no chance."""
    fits = options.threshold is None or 0 <= options.threshold <= 1
    require(options, "threshold", fits, "it is a chance between 0 and 1. Try 0.5.")


@dataclass(frozen=True)
class WordConfig:
    """Word vectors."""

    restrict_vocab: int = 30_000
    """Analogies are asked of and answered with so many words only, the most frequent; 0: all."""

    def __post_init__(self) -> None:
        require(self, "restrict_vocab", self.restrict_vocab >= 0, "it must be at least 1, or 0 for all words.")


@dataclass(frozen=True)
class RankingConfig:
    """Recommenders and classifiers: how many of the best."""

    top: Annotated[int, Shown("K")] = 0
    """Of a recommender: measure so many of the best items of each user, by default 20. Of a classifier: p@K and r@K of
    the K best labels of each row, by default 1 where rows have several."""
    threshold: Annotated[float | None, Shown("CHANCE")] = None
    """Of a classifier: labels of this chance or more are predicted. Default: 0.5 where rows have several."""

    def __post_init__(self) -> None:
        require(self, "top", 0 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 20.")
        require_chance(self)


@dataclass(frozen=True)
class EvaluateOptions:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model, or a file of word vectors."""
    files: Annotated[tuple[str, ...], Shown("FILE...", positional=True)] = ()
    """Labelled files, tagged text, or tests of words; globs are expanded, - is standard input."""
    program: Own = ""
    """Of a PyTorch module: the function that makes its program, package.module:function."""
    read: ReadConfig = field(default_factory=ReadConfig)
    tagged: TaggedConfig = field(default_factory=TaggedConfig)
    words: WordConfig = field(default_factory=WordConfig)
    recommended: RankingConfig = field(default_factory=RankingConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


# -- predict ----------------------------------------------------------------------------------------------------------

PREDICT = Page(
    "hogwild predict",
    """Write the predictions of a trained model, one a line, in the order of the rows. Of a tagger: the text again with
the predicted tags as its last column; segmented text with spaces between its words. Of a model of documents: vectors of
the texts, in the text format of word2vec, or binary for a name that ends in .bin; gensim and others open both.

Examples:
  hogwild predict model new.svm > labels.txt
  hogwild predict documents new.txt --output new.vec
  hogwild predict model new.csv --proba --output chances.tsv.gz
  zcat new.svm.gz | hogwild predict model -
  hogwild predict model new.txt --top 3 --proba > labels.tsv
  hogwild predict recommender pairs.csv > ratings.txt
  hogwild predict tagger new.txt --constrain > tagged.txt
  hogwild predict tagger new.txt --nbest 5 --output tagged.txt.xz""",
)


@dataclass(frozen=True)
class WriteConfig(OutputConfig):
    """What is written, and where."""

    proba: bool = False
    """Write the probability of every class, with tabs between, in the order that standard error tells. Of a tagger:
    that of the predicted tag, as a further column."""
    top: Annotated[int, Shown("K")] = 0
    """Of a classifier: write the K best labels of each row, with tabs between; with --proba each followed by its
    probability. Of rows that may have several labels the default is all of a chance of at least 0.5."""
    threshold: Annotated[float | None, Shown("CHANCE")] = None
    """Of a classifier: write the labels of this chance or more, the best first, as --top does; a line may be empty."""
    marginals: bool = False
    """Of a tagger: write the probability of every tag, as further columns TAG:PROBABILITY; of JSON lines as objects."""
    scheme: TagScheme = "same"
    """Of a tagger: the scheme that its tags are written in; bio is iob2."""
    nbest: int = 0
    """Of a tagger: write the N best ways to tag each sentence, each after a line `# rank probability`."""

    def __post_init__(self) -> None:
        require(self, "top", 0 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 5.")
        require_chance(self)
        require(self, "nbest", 0 <= self.nbest <= 1000, "it must lie between 1 and 1000, or be 0: the best one only.")


@dataclass(frozen=True)
class InferConfig:
    """Models of documents."""

    epochs: int = 0
    """Times that the words of a text are visited to find its vector; 0: 10."""
    seed: int = 1
    """Makes the random numbers by which a vector is found; the same text and seed give the same vector."""

    def __post_init__(self) -> None:
        require(self, "epochs", 0 <= self.epochs <= 100_000, "it must lie between 1 and 100000. Try 10.")
        require(self, "seed", 0 <= self.seed < 2**63, "it must not be negative and fit 63 bits. Try 1.")


@dataclass(frozen=True)
class PredictOptions:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model."""
    files: Annotated[tuple[str, ...], Shown("FILE...", positional=True)] = ()
    """Files with the same columns as the training files, labels or tags apart; globs are expanded, - is standard
    input."""
    program: Own = ""
    """Of a PyTorch module: the function that makes its program, package.module:function."""
    write: WriteConfig = field(default_factory=WriteConfig)
    read: ReadConfig = field(default_factory=ReadConfig)
    tagged: TaggedConfig = field(default_factory=TaggedConfig)
    inferred: InferConfig = field(default_factory=InferConfig)
    show: ShowConfig = field(default_factory=ShowConfig)
