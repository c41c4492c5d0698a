"""Recommenders in use: `hogwild recommend`, the best items for users; `hogwild evaluate` and `predict` for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.apply.options import RECOMMENDERS, EvaluateOptions, PredictOptions, ReadConfig
from hogwild.cli.flags import Page
from hogwild.cli.outputs import OutputConfig, check_outputs
from hogwild.cli.summary import metrics_text, print_evaluation, print_json, print_prediction, say_notes
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from hogwild.config import RatingConfig
    from hogwild.feeds.ratings.feed import RatingFeed
    from hogwild.programs.store import Model

PAGE = Page(
    "hogwild recommend",
    """Write the best items for users, a line each: user, item and score, with tabs between. What a user has already is
left out. Users may come from standard input (-), one a line.

Examples:
  hogwild recommend model ann bob
  hogwild recommend model ann --top 5 --json
  hogwild recommend model - --output lists.tsv.gz""",
)

_PAIRS = 1 << 17  # pairs that are predicted together
_USERS = 1 << 13  # users for whom items are looked for together


@dataclass(frozen=True)
class ListConfig(OutputConfig):
    """What is listed, and where."""

    top: int = 10
    """Items for each user."""
    seen: bool = False
    """List also what the user has in training."""

    def __post_init__(self) -> None:
        require(self, "top", 1 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 10.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained recommender."""
    users: Annotated[tuple[str, ...], Shown("USER...", positional=True)] = ()
    """Users as they stand in the training files; - reads them from standard input, one a line."""
    what: ListConfig = field(default_factory=ListConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the lists."""
    from hogwild.feeds.io.outfile import write_file
    from hogwild.programs.store import load_model

    check_outputs([options.what.output], [options.show.config], [options.model])
    program: Any = load_model(options.model).program
    if program.name not in RECOMMENDERS:
        raise ConfigError(f"{options.model}: a {program.name} model recommends nothing; see hogwild predict.")
    users = list(names_given(options.users))
    if not users:
        raise ConfigError("standard input names no user; write one a line.")
    unknown, listed = 0, []
    collect = options.show.json
    if collect and options.what.output != "-":
        raise ConfigError("--json lists the items itself; leave --output out.")
    with write_file("-" if collect else options.what.output) as stream:
        for start in range(0, len(users), _USERS):
            some = users[start : start + _USERS]
            found = program.recommend_all(some, options.what.top, options.what.seen)
            unknown += program.unknown[0]
            for user, (items, scores) in zip(some, found, strict=True):
                if collect:
                    pairs = [{"item": item, "score": score} for item, score in zip(items, scores, strict=True)]
                    listed.append({"user": user, "items": pairs})
                else:
                    lines = (f"{user}\t{item}\t{score:.6g}\n" for item, score in zip(items, scores, strict=True))
                    stream.write("".join(lines).encode("utf-8", "surrogateescape"))  # a user as given
    notes = []
    if unknown:
        how = "by the biases of items" if program.biased else "the most frequent items"
        notes.append(f"{unknown:,} of {len(users):,} users are not in the model; what is listed for them is {how}.")
    say_notes(notes, options.show.quiet)
    if collect:
        print_json({"program": program.name, "model": options.model, "users": listed, "notes": notes})
    return 0


def names_given(given: tuple[str, ...]) -> Iterator[str]:
    """The names, with those of standard input, one a line, where - stands."""
    from hogwild.feeds.io.source import standard_input

    for name in given:
        if name == "-":
            lines = (line.decode("utf-8", "surrogateescape").strip() for line in standard_input())
            yield from filter(None, lines)
        else:
            yield name


# -- evaluate and predict ---------------------------------------------------------------------------------------------


def open_pairs(model: Model, files: tuple[str, ...], read: ReadConfig, with_ratings: bool) -> RatingFeed:
    """The files in the users and items of the model."""
    program: Any = model.program
    feed: RatingFeed = program.open(files, _config_of(read), with_ratings=with_ratings)
    return feed


def _config_of(read: ReadConfig) -> RatingConfig:
    from hogwild.config import RatingConfig

    if read.weight:
        raise ConfigError("--weight is not for recommenders; leave it out.")
    if read.label:
        raise ConfigError("--label is not for recommenders; name the columns user, item and rating in the header.")
    return RatingConfig(**read.shared())


def predict_pairs(options: PredictOptions, model: Model, began: float) -> int:
    """Write a rating, chance or score for each user and item of the files; returns the exit code."""
    from hogwild.arrays import Ratings
    from hogwild.cli.apply.lines import arriving_sources
    from hogwild.feeds.io.outfile import write_file
    from hogwild.feeds.ratings.open import PairReader

    if options.write.proba:
        raise ConfigError("--proba is for classifiers and taggers, and this model is none; leave it out.")
    program: Any = model.program
    feeds: Iterator[RatingFeed]
    reader = None
    if options.files == ("-",) and not options.read.pipe:
        config = _config_of(options.read)
        reader = PairReader(config, (program.users, program.items))
        sources = arriving_sources(config, lines=True, enough=reader.knows_layout)
        feeds = (reader.read(source) for source in sources)
    else:
        feeds = iter([open_pairs(model, options.files, options.read, with_ratings=False)])
    factors, pairs, notes = program.factors(), 0, []
    with write_file(options.write.output) as stream:
        for feed in feeds:
            for start in range(0, len(feed), _PAIRS):
                rows = slice(start, start + _PAIRS)
                users, items, ratings = feed.samples
                part = replace(feed, samples=Ratings(users[rows], items[rows], ratings[rows]))
                values = program.predict(part, factors=factors).tolist()
                stream.write("".join(f"{value:.6g}\n" for value in values).encode())
            stream.flush()
            pairs += len(feed)
            notes = list(feed.notes)
        if reader is not None:
            notes = reader.notes()
    say_notes(notes, options.show.quiet)
    print_prediction(options, program.name, pairs, began, notes=notes)
    return 0


def evaluate_pairs(options: EvaluateOptions, model: Model, began: float) -> int:
    """Print how good a recommender is; returns the exit code. began: when the command did."""
    from hogwild.machine import cores

    program: Any = model.program
    feed = open_pairs(model, options.files, options.read, with_ratings=program.loss == "squared")
    loaded = time.perf_counter()
    metrics = program.evaluate(feed, cores(), options.recommended.top or 20)
    notes = [*feed.notes, *program.evaluation_notes()]
    say_notes(notes, options.show.quiet)
    if options.show.json:
        unknown, times = dict(zip(("users", "items"), program.unknown, strict=True)), (began, loaded)
        print_evaluation(options, program.name, len(feed), metrics, times, unknown=unknown, notes=notes)
    else:
        print(metrics_text(metrics))
    return 0
