"""`hogwild train word2vec`: word vectors on running text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import (
    ClusterConfig,
    CorpusConfig,
    Files,
    SaveConfig,
    ShowConfig,
    WatchConfig,
    Word2VecConfig,
    WordTrainConfig,
)
from hogwild.config.options import Shown
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from hogwild.executor.events import Finished
    from hogwild.feeds.corpus.feed import Corpus
    from hogwild.programs.words.word2vec import Word2Vec

PAGE = Page(
    "hogwild train word2vec",
    """Train word vectors: skip-gram, or CBOW with --cbow; by negative sampling, or hierarchical softmax with --loss hs.
With --subwords 3:6 words are made of their parts too, so that words which were never seen have vectors, as in fastText.

Files hold plain text, compressed or not: words between white space, one sentence a line, or no lines at all.

Examples:
  hogwild train word2vec wiki.txt.xz --output vectors
  hogwild train word2vec news-*.txt.gz --lowercase --min-count 10 --dim 300 --phrases 1 --output vectors
  hogwild train word2vec wiki.txt --cbow --epochs 10 --output vectors --checkpoint-every 10m
  hogwild train word2vec wiki.txt --subwords 3:6 --output vectors
  hogwild train word2vec more.txt --start vectors --output vectors-2
  hogwild train word2vec letters.txt --start glove.txt --output vectors
  hogwild train word2vec wiki.txt --cluster local --nodes 3 --output vectors""",
)


@dataclass(frozen=True)
class Options(RunOptions):
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TEXT...", positional=True)] = ()
    """Text files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation text, evaluated after each epoch; the vectors of the best epoch are kept."""
    start: Annotated[str, Shown("MODEL|FILE")] = ""
    """Word vectors to go on from, a trained model or a file: their words are trained on, however rare they are in the
    text, and new words join them. Options of the model are as there (dim, window, lowercase ...) unless given."""
    given: Annotated[tuple[str, ...], Shown(hidden=True)] = ()
    """Options that were given; with --start the others are as in the vectors."""
    word2vec: Word2VecConfig = field(default_factory=Word2VecConfig)
    train: WordTrainConfig = field(default_factory=WordTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


_MUCH = 1 << 30  # bytes of vectors that are told before they are made
_LITTLE = 0.2  # share of the text: where less is left, frequent words are most of it


class WordVectorsJob(Job):
    """Word vectors, from nothing or from vectors that there are."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.known: tuple[str, ...] = ()  # words to start from
        self._start_digest = "none"
        self._taken: list[str] = []  # flags that stand for the options of the vectors to start from

    def inputs(self) -> list[str]:
        """A file of vectors to start from."""
        return [self.options.start]

    def models(self) -> list[str]:
        """A model to start from."""
        return [self.options.start]

    def make_program(self) -> Word2Vec:
        """The program that the flags ask for, with the vectors that it starts from."""
        from hogwild.programs.words.word2vec import Word2Vec

        if self.options.start:
            return self._begun(self.options.start)
        return self._in_place(Word2Vec(**vars(self.options.word2vec)))

    def _in_place(self, program: Word2Vec) -> Word2Vec:
        """With tables in files, where they may be larger than memory."""
        if self.options.cluster.paged:
            from hogwild.feeds.io.workspace import mapped_floats

            program.floats_from = mapped_floats
        return program

    def _begun(self, start: str) -> Word2Vec:
        import hashlib

        from hogwild.feeds.corpus.open import KEPT
        from hogwild.programs.store import load_model
        from hogwild.programs.words.vectors import Vectors
        from hogwild.programs.words.word2vec import Word2Vec

        vectors = Vectors.load(start)
        vectors.norms  # noqa: B018  # numbers that are not finite are said now
        more: dict[str, Any] = {}
        small = ""
        theirs: dict[str, Any] = {"dim": vectors.dim}
        matrix = vectors.matrix
        if vectors.parts is not None:  # a model of words with subwords, or a file of fastText
            parts = vectors.parts
            matrix, more = parts.inputs, {"outputs": parts.outputs, "counts": vectors.counts, "grams": parts.grams}
            theirs |= dict(parts.training)
        if Path(start).is_dir():
            model: Any = load_model(start)
            small = model.program.small
            if vectors.parts is None:
                more = {"outputs": model.program.arrays().get("outputs"), "counts": model.program.counts}
            theirs = vars(model.program.config) | {name: model.schema[name] for name in KEPT if name in model.schema}
        self._take_over(theirs)
        if vectors.dim != self.options.word2vec.dim:
            given = self.options.word2vec.dim
            raise ConfigError(f"{start}: vectors of {vectors.dim} numbers, and --dim is {given}; leave --dim out.")
        program = self._in_place(Word2Vec(**vars(self.options.word2vec)))
        for name in ("subwords", "buckets"):
            given = getattr(self.options.word2vec, name)
            if name in theirs and given != theirs[name]:
                raise ConfigError(f"{start}: words with {name} {theirs[name] or 'none'}; leave --{name} out.")
        if program.spelling is not None and vectors.parts is None:
            raise ConfigError(f"{start}: its words have no subwords to go on from; leave --subwords out.")
        if program.config.loss == "hs":
            more.pop("outputs", None)  # forks of a tree of other counts are other forks
        program.begin_with(vectors.words, matrix, **more)
        program.small = small
        self.known = vectors.words
        digest = hashlib.sha256("\n".join(vectors.words).encode())
        digest.update(vectors.matrix.tobytes())
        self._start_digest = digest.hexdigest()
        return program

    def _take_over(self, theirs: dict[str, Any]) -> None:
        """What was not given is as in the vectors to start from."""
        from hogwild.config.options import flags_of

        options, known = self.options, flags_of(type(self.options))
        taken = {name: value for name, value in theirs.items() if name not in options.given}
        parts = {
            part: replace(config, **{name: value for name, value in taken.items() if hasattr(config, name)})
            for part, config in (("word2vec", options.word2vec), ("corpus", options.corpus))
        }
        self.options = replace(options, **parts)
        others = {known[name].flag: value for name, value in taken.items() if value != known[name].default}
        shown = {flag: value if isinstance(value, str) else f"{value:g}" for flag, value in others.items()}
        self._taken = [flag if others[flag] is True else f"{flag} {value}" for flag, value in shown.items()]

    def open(self, files: tuple[str, ...]) -> Corpus:
        """The text, with the memory that its vectors will take."""
        from hogwild.feeds.corpus.open import open_corpus
        from hogwild.programs.words.word2vec import Word2Vec

        corpus = open_corpus(files, self.options.corpus, keep=self.known).check_trainable()
        different = len({*corpus.words, *self.known})
        needed = Word2Vec(**vars(self.options.word2vec)).check_memory(different)
        if needed < _MUCH:
            return corpus
        words = f"{different:,} words of {self.options.word2vec.dim} numbers"
        return replace(corpus, notes=(*corpus.notes, f"{words} will take {needed / 1e9:.1f} GB of memory."))

    def open_on(self, executor: Any, files: tuple[str, ...]) -> Corpus:
        """The text, read by the nodes themselves, each its part."""
        from hogwild.cluster.text.texts import Texts

        corpus: Corpus = executor.open(Texts(files, self.options.corpus, self.known))
        return corpus.check_trainable()

    def open_valid(self, files: tuple[str, ...], feed: Corpus) -> Corpus:
        """Text in the vocabulary of the training text."""
        from hogwild.feeds.corpus.open import open_corpus

        return open_corpus(files, self.options.corpus, vocabulary=feed.words)

    def identity(self, program: Word2Vec, feed: Corpus, valid: Corpus | None) -> dict[str, Any]:
        """With the vectors to start from, in place of their words."""
        same = super().identity(program, feed, valid)
        return {name: value for name, value in same.items() if name != "words"} | {"start data": self._start_digest}

    def started_notes(self, program: Word2Vec, feed: Corpus) -> list[str]:
        """What became of the vectors to start from; whether too little of the text is left."""
        from hogwild.kernels.word2vec.windows import chances_to_stay

        notes = []
        if self.known:
            old, start = len(self.known), self.options.start
            new, here = len(program.words) - old, len(set(self.known) & set(feed.words))
            notes.append(
                f"{old:,} words have their vectors from {start}; this text has {here:,} of them. {new:,} words are new."
            )
        if self._taken:
            notes.append(f"As in {self.options.start}: {' '.join(self._taken)}.")
        sample = program.config.sample
        stay = float(feed.counts @ chances_to_stay(feed.counts, sample)) / 2**32 / max(1, len(feed))
        if stay < _LITTLE:
            notes.append(
                f"--sample {sample:g} passes over {1 - stay:.0%} of this text, whose words are few; "
                "try --sample 1e-3, or 0 to keep all."
            )
        return notes

    def counts(self, program: Word2Vec, feed: Corpus) -> dict[str, Any]:
        """Words of the text and of the model."""
        return {"words": feed.total, "vocabulary": len(program.words), "dim": program.config.dim}

    def training_metrics(self, program: Word2Vec, feed: Corpus, finished: Finished, threads: int) -> dict[str, float]:
        """The loss of the last epoch, which is known: another pass over the text would say no more."""
        return {"loss": finished.loss} if math.isfinite(finished.loss) else {}


run = training(WordVectorsJob)
