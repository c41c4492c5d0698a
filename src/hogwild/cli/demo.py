"""`hogwild demo`: make data, train in two modes under the progress bar, compare; then word vectors of text at hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.cli.flags import Page
from hogwild.config import ShowConfig
from hogwild.config.options import require
from hogwild.machine import cores

PAGE = Page(
    "hogwild demo",
    """See it work: make a sparse problem, train on it with one worker and with many, and compare; then train word
vectors on the documentation inside the Python installation, and show which words are used alike.

Nothing is kept. Takes about a minute, most of it for making data and compiling.

Examples:
  hogwild demo
  hogwild demo --threads 8 --rows 1000000""",
)


@dataclass(frozen=True)
class DemoConfig:
    """Size of the demonstration."""

    rows: int = 200_000
    """Training samples, with 50 features each of a million."""
    epochs: int = 10
    """Times that every sample is visited."""
    threads: int = max(2, cores())
    """Workers of the mode without locks."""
    words: int = 1_000_000
    """Words of text to learn word vectors from, at the most; 0: leave that part out."""
    dim: int = 100
    """Numbers in a word vector."""
    seed: int = 1
    """Makes data and order."""

    def __post_init__(self) -> None:
        require(self, "rows", 1000 <= self.rows <= 100_000_000, "it must lie between 1000 and 100000000.")
        require(self, "epochs", 1 <= self.epochs < 2**30, "it must lie between 1 and 1073741823.")
        require(self, "threads", 2 <= self.threads <= 4096, "it must be at least 2: one worker races with nobody.")
        fits = 0 <= self.words < 2**31
        require(self, "words", fits, "it must lie between 0, which leaves the word vectors out, and 2147483647.")
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 100.")
        require(self, "seed", 0 <= self.seed < 2**62, "it must not be negative and fit 62 bits.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    demo: DemoConfig = field(default_factory=DemoConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Show it."""
    from hogwild.cli.showing import run_demo  # here: it needs everything there is

    return run_demo(options)
