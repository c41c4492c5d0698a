"""`hogwild train tagger`: a sequence tagger on tagged text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import CRFConfig, Files, SaveConfig, ShowConfig, TaggerTrainConfig, TaggingConfig, WatchConfig
from hogwild.config.options import Shown
from hogwild.errors import ConfigError
from hogwild.messages import counted, shown

if TYPE_CHECKING:
    from hogwild.feeds.tagged.feed import TaggingFeed
    from hogwild.programs.taggers.crf import CRF

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
class Options(RunOptions):
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    model: Literal["crf"] = "crf"
    """Kind of model: a linear-chain conditional random field."""
    crf: CRFConfig = field(default_factory=CRFConfig)
    train: TaggerTrainConfig = field(default_factory=TaggerTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    tagging: TaggingConfig = field(default_factory=TaggingConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


_SHOWN = 5  # tags that a note names


class TaggerJob(Job):
    """A linear-chain CRF."""

    def inputs(self) -> list[str]:
        """A file of templates."""
        from hogwild.feeds.tagged.templates import PRESETS

        return [] if self.options.tagging.features in PRESETS else [self.options.tagging.features]

    def make_program(self) -> CRF:
        """The model that the flags ask for."""
        from hogwild.feeds.tagged.templates import open_templates
        from hogwild.programs.taggers.crf import CRF

        if self.options.crf.best_by != "loss" and not self.options.valid:
            raise ConfigError(f"--best-by {self.options.crf.best_by} needs text to measure it on; add --valid FILE.")
        open_templates(self.options.tagging.features)  # what is wrong with them is said before the text is read
        return CRF(**vars(self.options.crf))

    def open(self, files: tuple[str, ...]) -> TaggingFeed:
        """The tagged text."""
        from hogwild.feeds.tagged.open import open_tagging

        return open_tagging(files, self.options.tagging)

    def open_valid(self, files: tuple[str, ...], feed: TaggingFeed) -> TaggingFeed:
        """Tagged text in the features and tags of the training text."""
        from hogwild.feeds.tagged.open import open_tagging

        config = self.options.tagging
        return open_tagging(files, config, schema=feed.schema, names=feed.names, tags=feed.tags)

    def started_notes(self, program: CRF, feed: TaggingFeed) -> list[str]:
        """How much there is to learn, and of what kind."""
        sizes = (counted(len(feed), "sentence"), counted(feed.tokens, "token"), counted(len(feed.names), "feature"))
        notes = [f"{', '.join(sizes)}, {counted(len(feed.tags), 'tag')}."]
        if pairs := len(program.pairs.pairs):
            notes.append(f"Rich edges: {counted(_rich(program), 'feature')} with {counted(pairs, 'pair')} of tags.")
        return [*notes, *tag_notes(feed)]

    def counts(self, program: CRF, feed: TaggingFeed) -> dict[str, Any]:
        """Sizes of the text and of the model."""
        return {
            "sentences": len(feed), "tokens": feed.tokens, "features": len(program.names), "tags": len(program.tags),
            "rich_features": _rich(program), "rich_pairs": len(program.pairs.pairs), "l2": program.l2,
        }  # fmt: skip


def _rich(program: CRF) -> int:
    """Features that weigh pairs of tags."""
    import numpy as np

    return int(np.count_nonzero(np.diff(program.pairs.starts)))


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
