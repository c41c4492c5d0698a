"""`hogwild predict`: one prediction a line; text with its tags."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.apply.ratingfiles import RECOMMENDERS, predict_pairs
from hogwild.cli.apply.rows import ReadConfig
from hogwild.cli.apply.taggedfiles import TAGGERS, TaggedConfig, refuse
from hogwild.cli.flags import Page
from hogwild.cli.outputs import check_outputs
from hogwild.config import File, ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError
from hogwild.feeds.io.outfile import write_file
from hogwild.machine import cores
from hogwild.messages import say

if TYPE_CHECKING:
    from hogwild.feeds.sparse.feed import Feed
    from hogwild.programs.store import Model

PAGE = Page(
    "hogwild predict",
    """Write the predictions of a trained model, one a line, in the order of the rows. Of a tagger: the text again with
the predicted tags as its last column; segmented text with spaces between its words.

Examples:
  hogwild predict model new.svm > labels.txt
  hogwild predict model new.csv --proba --output chances.tsv.gz
  zcat new.svm.gz | hogwild predict model -
  hogwild predict recommender pairs.csv > ratings.txt
  hogwild predict tagger new.txt --constrain > tagged.txt
  hogwild predict tagger new.txt --nbest 5 --output tagged.txt.xz""",
)


@dataclass(frozen=True)
class WriteConfig:
    """What is written, and where."""

    output: File = "-"
    """File to write; - is standard output, and names that end in .gz, .xz or .zst are compressed."""
    proba: bool = False
    """Write the probability of every class, with tabs between, in the order that standard error tells. Of a tagger:
    that of the predicted tag, as a further column."""
    nbest: int = 0
    """Of a tagger: write the N best ways to tag each sentence, each after a line `# rank probability`."""

    def __post_init__(self) -> None:
        require(self, "nbest", 0 <= self.nbest <= 1000, "it must lie between 1 and 1000, or be 0: the best one only.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model."""
    files: Annotated[tuple[str, ...], Shown("FILE...", positional=True)] = ()
    """Files with the same columns as the training files, labels or tags apart; globs are expanded, - is standard
    input."""
    write: WriteConfig = field(default_factory=WriteConfig)
    read: ReadConfig = field(default_factory=ReadConfig)
    tagged: TaggedConfig = field(default_factory=TaggedConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the predictions."""
    from hogwild.feeds.open import description_path
    from hogwild.programs.store import load_model

    if options.show.json and options.write.output == "-":
        raise ConfigError("--json and the predictions cannot both go to standard output; add --output FILE.")
    described = (str(description_path(file)) for file in options.files)
    check_outputs([options.write.output], [*options.files, *described, options.show.config], [options.model])
    began = time.perf_counter()
    model = load_model(options.model)
    program: Any = model.program
    if not hasattr(program, "predict"):
        raise ConfigError(f"{options.model}: a {program.name} model predicts nothing; see hogwild neighbors.")
    if program.name in TAGGERS:
        from hogwild.cli.apply.taggers import predict_tags

        return predict_tags(options, model, began)
    refuse(options.tagged, "this model is none")
    if options.write.nbest:
        raise ConfigError("--nbest is for taggers, and this model is none; leave it out.")
    if program.name in RECOMMENDERS:
        return predict_pairs(options, model, began)
    return _predict_rows(options, model, began)


def _predict_rows(options: Options, model: Model, began: float) -> int:
    from hogwild.cli.apply.rows import open_for, pieces, unknown_note
    from hogwild.cli.summary import print_json

    program: Any = model.program
    feed = open_for(model, options.files, options.read, unlabelled=True)
    notes = list(feed.notes)
    if options.write.proba:
        notes.append(f"columns: {' '.join(str(name) for name in program.classes or ())}")
    ignored = 0
    with write_file(options.write.output) as stream:
        for piece in pieces(feed):
            stream.write("".join(_lines(program, piece, options.write.proba)).encode())
            ignored += program.ignored
    notes += unknown_note(ignored)
    if not options.show.quiet:
        for note in notes:
            say(f"note: {note}")
    if options.show.json:
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "classes": list(program.classes or ()),
                "output": options.write.output,
                "seconds": time.perf_counter() - began,
                "notes": notes,
            }
        )
    return 0


def _lines(program: Any, feed: Feed, proba: bool) -> Iterator[str]:
    threads = cores()
    if proba:
        for row in program.predict_proba(feed, threads).tolist():
            yield "\t".join(f"{value:.6g}" for value in row) + "\n"
    elif program.classes:
        # One line a row, whatever a label holds.
        names = {name: str(name).replace("\n", "\\n") + "\n" for name in program.classes}
        for label in program.predict(feed, threads).tolist():
            yield names[label]
    else:
        for value in program.predict(feed, threads).tolist():
            yield f"{value:.6g}\n"
