"""`hogwild train doc2vec`: vectors of documents."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import (
    ClusterConfig,
    Doc2VecConfig,
    DocumentConfig,
    DocumentTrainConfig,
    Files,
    SaveConfig,
    ShowConfig,
    WatchConfig,
)
from hogwild.config.options import Shown

if TYPE_CHECKING:
    from hogwild.executor.events import Finished
    from hogwild.feeds.corpus.documents import Documents
    from hogwild.programs.words.doc2vec import Doc2Vec

PAGE = Page(
    "hogwild train doc2vec",
    """Train vectors of documents (paragraph vectors): by DM, or by DBOW with --dbow; by negative sampling, or by
hierarchical softmax with --loss hs. `hogwild predict` finds vectors of new texts.

Files hold plain text, a document a line, whose tag is the number of the line, from 0; or they are tables (CSV, Parquet,
Arrow, JSON lines) with a column of texts (--text) and perhaps one of tags (--id). Compressed or not.

Examples:
  hogwild train doc2vec reviews.txt.gz --output documents
  hogwild train doc2vec reviews.csv --text review --id name --dbow --output documents
  hogwild train doc2vec reviews.txt --dbow --words --lowercase --min-count 2 --epochs 20 --output documents""",
)


@dataclass(frozen=True)
class Options(RunOptions):
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("FILE...", positional=True)] = ()
    """Files of documents; globs are expanded, - is standard input."""
    valid: Files = ()
    """Other documents, evaluated after each epoch: the loss of their second halves by vectors that the first ones give;
    the vectors of the best epoch are kept."""
    doc2vec: Doc2VecConfig = field(default_factory=Doc2VecConfig)
    train: DocumentTrainConfig = field(default_factory=DocumentTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    documents: DocumentConfig = field(default_factory=DocumentConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster = ClusterConfig()  # no flags: it runs on one machine
    show: ShowConfig = field(default_factory=ShowConfig)


class DocumentsJob(Job):
    """Vectors of documents."""

    def make_program(self) -> Doc2Vec:
        """The program that the flags ask for."""
        from hogwild.programs.words.doc2vec import Doc2Vec

        return Doc2Vec(**vars(self.options.doc2vec))

    def open(self, files: tuple[str, ...]) -> Documents:
        """The documents."""
        from hogwild.feeds.corpus.documents import open_documents

        feed = open_documents(files, self.options.documents)
        feed.check_trainable()
        self.make_program().check_memory(len(feed.words), feed.parts)
        return feed

    def open_valid(self, files: tuple[str, ...], feed: Documents) -> Documents:
        """Documents in the vocabulary of those to train on."""
        from hogwild.feeds.corpus.documents import open_documents

        return open_documents(files, self.options.documents, vocabulary=feed.words)

    def counts(self, program: Doc2Vec, feed: Documents) -> dict[str, Any]:
        """Documents and words of the feed and of the model."""
        words = {"words": feed.total, "vocabulary": len(program.vocabulary)}
        return {"documents": program.size, **words, "dim": program.config.dim}

    def training_metrics(self, program: Doc2Vec, feed: Documents, finished: Finished, threads: int) -> dict[str, float]:
        """The loss of the last epoch, which is known."""
        return {"loss": finished.loss} if math.isfinite(finished.loss) else {}


run = training(DocumentsJob)
