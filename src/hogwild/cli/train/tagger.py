"""`hogwild train tagger`: a sequence tagger on tagged text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import hogwild
from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import (
    BiLSTMConfig,
    ClusterConfig,
    CRFConfig,
    Files,
    SaveConfig,
    ShowConfig,
    TaggerModel,
    TaggerTrainConfig,
    TaggingConfig,
    WatchConfig,
)
from hogwild.config.classifying import TaggerOptions
from hogwild.config.options import Shown
from hogwild.messages import counted, shown

if TYPE_CHECKING:
    from hogwild.feeds.tagged.feed import TaggingFeed
    from hogwild.programs.taggers.tagger import Tagger

PAGE = Page(
    "hogwild train tagger",
    """Train a tagger: chunks, names, parts of speech, or words of text that is written without gaps. It is a
conditional random field, or a bidirectional LSTM (--model bilstm).

Files hold a token a line in columns, the tag the last of them, and a blank line after each sentence (CoNLL); or
CoNLL-U, JSON lines, or words with spaces between them (--features segmentation); compressed or not.

Examples:
  hogwild train tagger train.txt --features chunking --valid test.txt --output chunker
  hogwild train tagger en-train.conllu --features pos --valid en-dev.conllu --patience 2 --output pos-tagger
  hogwild train tagger words.txt.xz --features segmentation --epochs 20 --output segmenter
  hogwild train tagger ner.tsv --columns w,pos,-,tag --features my-templates.txt --average --output ner
  hogwild train tagger train.txt --model bilstm --output-layer crf --start-vectors vectors --output chunker
  hogwild train tagger train.txt --mode serial --structure-regularization 4 --trace --json""",
)


@dataclass(frozen=True)
class Options(RunOptions):
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    start: Annotated[str, Shown("MODEL")] = ""
    """A trained model to go on from, with more data: what it knows by name keeps its weights, what is new begins fresh.
    Options of the model and of reading are as there unless given."""
    given: Annotated[tuple[str, ...], Shown(hidden=True)] = ()
    """Options that were given; with --start the others are as in the model."""
    model: TaggerModel = "crf"
    """Kind of model: crf (linear-chain conditional random field), or bilstm (embeddings, then a bidirectional LSTM)."""
    own: TaggerOptions = field(default_factory=CRFConfig)
    train: TaggerTrainConfig = field(default_factory=TaggerTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    tagging: TaggingConfig = field(default_factory=TaggingConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


_SHOWN = 5  # tags that a note names


PROGRAMS = {CRFConfig: "CRF", BiLSTMConfig: "BiLSTM"}


class TaggerJob(Job):
    """A tagger. Text has the features that are usual for its model, unless the user names others."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._arguments = self.go_on_from(options.start, "own") if options.start else None
        options = self.options
        self.tagging: TaggingConfig = options.tagging.with_features(options.own.usual_features)
        self._vectors: str = getattr(options.own, "start_vectors", "")

    def inputs(self) -> list[str]:
        """A file of templates, and one of vectors to start from."""
        from hogwild.feeds.tagged.templates import PRESETS

        return [*([] if self.tagging.features in ("", *PRESETS) else [self.tagging.features]), self._vectors]

    def models(self) -> list[str]:
        """A model of vectors to start from, and one to go on from."""
        return [self._vectors, *super().models()]

    def make_program(self) -> Tagger:
        """The model that the flags ask for."""
        from hogwild.feeds.tagged.templates import open_templates
        from hogwild.programs.words.vectors import Vectors

        own = self.options.own
        if self.tagging.features:
            open_templates(self.tagging.features)  # what is wrong with them is said before the text is read
        if self._vectors and not Path(self._vectors).exists():
            Vectors.load(self._vectors)  # says so
        program: Tagger = getattr(hogwild, PROGRAMS[type(own)])(**(self._arguments or vars(own)))
        return program

    def open(self, files: tuple[str, ...]) -> TaggingFeed:
        """The tagged text; the words of vectors to start from are known too."""
        from hogwild.feeds.tagged.open import open_tagging
        from hogwild.programs.taggers.bilstm_reading import with_words
        from hogwild.programs.words.vectors import Vectors

        like = self.old.schema if self.old is not None and "features" not in self.options.given else None
        feed = open_tagging(files, self.tagging, schema=like)
        return with_words(feed, Vectors.load(self._vectors).words) if self._vectors else feed

    def open_valid(self, files: tuple[str, ...], feed: TaggingFeed) -> TaggingFeed:
        """Tagged text in the features and tags of the training text."""
        from hogwild.feeds.tagged.open import open_tagging

        return open_tagging(files, self.tagging, schema=feed.schema, names=feed.names, tags=feed.tags)

    def identity(self, program: Tagger, feed: TaggingFeed, valid: TaggingFeed | None) -> dict[str, Any]:
        """With the vectors to start from, which no model remembers."""
        same = super().identity(program, feed, valid)
        return {**same, "start_vectors": self._vectors} if self._vectors else same

    def started_notes(self, program: Any, feed: TaggingFeed) -> list[str]:
        """How much there is to learn, and of what kind."""
        sizes = (counted(len(feed), "sentence"), counted(feed.tokens, "token"), counted(len(feed.names), "feature"))
        notes = [f"{', '.join(sizes)}, {counted(len(feed.tags), 'tag')}."]
        model = _sizes(program)
        if isinstance(program.config, BiLSTMConfig):
            layers, units = counted(model["layers"], "layer"), counted(model["hidden"], "unit")
            notes.append(f"{layers} of {units} each way, {counted(model['numbers'], 'number')} in all.")
            notes += program.notes
        elif pairs := model["rich_pairs"]:
            with_edges = counted(model["rich_features"], "feature")
            notes.append(f"Rich edges: {with_edges} with {counted(pairs, 'pair')} of tags.")
        return [*notes, *tag_notes(feed)]

    def counts(self, program: Tagger, feed: TaggingFeed) -> dict[str, Any]:
        """Sizes of the text and of the model."""
        text = {"sentences": len(feed), "tokens": feed.tokens}
        return {**text, "features": len(program.names), "tags": len(program.tags), **_sizes(program)}


def _sizes(program: Any) -> dict[str, Any]:
    """What only a model of this kind has."""
    import numpy as np

    config = program.config
    if isinstance(config, BiLSTMConfig):
        numbers = sum(array.size for array in program.arrays().values())
        return {"hidden": config.hidden, "layers": config.layers, "numbers": numbers, "l2": config.l2}
    rich = int(np.count_nonzero(np.diff(program.pairs.starts)))
    return {"rich_features": rich, "rich_pairs": len(program.pairs.pairs), "l2": program.l2}


def tag_notes(feed: TaggingFeed) -> list[str]:
    """What the tags say of the text: the scheme that they follow, and where they break it."""
    from hogwild.feeds.tagged.schemes import errors_of, kind_of, scheme_of, strays_of

    if len(feed.tags) == 1:
        return [f"Every token has the tag `{shown(feed.tags[0])}`: there is nothing to learn."]
    offsets, codes = feed.samples.offsets, feed.samples.tags
    scheme = scheme_of(feed.tags, offsets, codes)
    if not scheme:
        return []
    what = "words" if kind_of(feed.tags) == "words" else "chunks"
    notes = [f"The tags mark {what}, in {scheme.upper()}.", errors_of(offsets, codes, feed.tags, scheme).note()]
    if strays := strays_of(feed.tags):
        named = ", ".join(f"`{shown(tag)}`" for tag in strays[:_SHOWN])
        more = f" and {len(strays) - _SHOWN} more" if len(strays) > _SHOWN else ""
        notes.append(f"{counted(len(strays), 'tag')} of no scheme ({named}{more}): I with a type, else O.")
    return [note for note in notes if note]


run = training(TaggerJob)
