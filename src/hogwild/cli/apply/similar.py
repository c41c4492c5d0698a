"""`hogwild similar`: the items most like given ones, or the users most like given ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from hogwild.cli.apply.options import RECOMMENDERS
from hogwild.cli.apply.recommenders import names_given
from hogwild.cli.flags import Page
from hogwild.cli.outputs import OutputConfig, check_outputs
from hogwild.cli.summary import print_json
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError

PAGE = Page(
    "hogwild similar",
    """Write the items most like each of some, or with --users the users most like each of some users, a line each:
name, name of the other and the cosine of their vectors, with tabs between. Names may come from standard input (-), one
a line. Unknown names are told at the end.

Examples:
  hogwild similar model tea jam
  hogwild similar model ann --users --top 5 --json
  hogwild similar model - --output alike.tsv.gz""",
)

_NAMES = 1 << 12  # that are looked for together


@dataclass(frozen=True)
class AlikeConfig(OutputConfig):
    """What is looked for, and where it is written."""

    items: bool = False
    """Names are those of items: the default."""
    users: bool = False
    """Names are those of users, and so are the answers."""
    top: int = 10
    """Similar ones of each."""

    def __post_init__(self) -> None:
        require(self, "top", 1 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 10.")
        require(self, "users", not (self.users and self.items), "names are of items or of users; leave --items out.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained recommender."""
    names: Annotated[tuple[str, ...], Shown("NAME...", positional=True)] = ()
    """Items, or users, as they stand in the training files; - reads them from standard input, one a line."""
    what: AlikeConfig = field(default_factory=AlikeConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Search and write."""
    from hogwild.feeds.io.outfile import write_file
    from hogwild.programs.store import load_model

    what, collect = options.what, options.show.json
    check_outputs([what.output], [options.show.config], [options.model])
    if collect and what.output != "-":
        raise ConfigError("--json lists the names itself; leave --output out.")
    program: Any = load_model(options.model).program
    if program.name not in RECOMMENDERS:
        remedy = "see hogwild neighbors" if program.name in ("word2vec", "doc2vec") else "a recommender has"
        raise ConfigError(f"{options.model}: a {program.name} model has no items or users that are alike; {remedy}.")
    names = list(names_given(options.names))
    if not names:
        raise ConfigError("standard input has no name; write one a line.")
    known = set(program.users if what.users else program.items)
    unknown = list(dict.fromkeys(name for name in names if name not in known))
    if len(unknown) == len(set(names)):
        program.similar_all(unknown, 1, what.users)  # raises what names them
    asked, listed = [name for name in names if name in known], []
    with write_file("-" if collect else what.output) as stream:
        for start in range(0, len(asked), _NAMES):
            some = asked[start : start + _NAMES]
            for name, found in zip(some, program.similar_all(some, what.top, what.users), strict=True):
                if collect:
                    pairs = [{"name": other, "similarity": value} for other, value in found]
                    listed.append({"name": name, "similar": pairs})
                else:
                    lines = "".join(f"{name}\t{other}\t{value:.6g}\n" for other, value in found)
                    stream.write(lines.encode("utf-8", "surrogateescape"))
    if collect:
        kind = "users" if what.users else "items"
        print_json({"program": program.name, "model": options.model, "of": kind, "names": listed, "unknown": unknown})
    if unknown:
        program.similar_all(unknown, 1, what.users)
    return 0
