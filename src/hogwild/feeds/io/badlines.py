"""Malformed lines: the first one stops the reading, or all are counted and a share of them is borne."""

from __future__ import annotations

from hogwild.config import FeedConfig, RatingConfig, TaggingConfig
from hogwild.errors import InputError

SHOWN = 3         # places that a note names
PATIENCE = 10_000  # lines to see before the share of bad ones is judged


class BadLines:
    """Counts what cannot be read, as `bad_lines` and `bad_share` of the configuration ask.

    things: what is counted, where a malformed line costs more than itself.

    Examples
    --------
    >>> bad = BadLines(FeedConfig(bad_lines="skip", bad_share=0.5))
    >>> bad.report("a.svm:2:7: `x` is not a number")
    >>> bad.seen(10)
    >>> bad.notes()
    ('1 of 10 lines malformed and skipped: a.svm:2:7: `x` is not a number.',)
    """

    def __init__(self, config: FeedConfig | TaggingConfig | RatingConfig, things: str = "lines") -> None:
        self.things = things
        self.stop = config.bad_lines == "stop"
        self.share = config.bad_share
        self.count = 0
        self.lines = 0
        self.first: list[str] = []

    def report(self, problem: str, remedy: str = "Correct the line, or skip such lines with --bad-lines skip.") -> None:
        """A line is malformed: `problem` is `file:line:column: what`. Raises InputError unless they are skipped."""
        if self.stop:
            raise InputError(f"{problem}. {remedy}")
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(problem)

    def seen(self, lines: int) -> None:
        """That many more lines have been read, bad ones included. Raises InputError when too many were bad."""
        self.lines += lines
        if self.lines >= PATIENCE:
            self._judge()

    def notes(self) -> tuple[str, ...]:
        """What to tell the user when all is read. Raises InputError when too many lines were bad."""
        self._judge()
        if not self.count:
            return ()
        more = "; …" if self.count > len(self.first) else ""
        return (f"{self.count} of {self.lines} {self.things} malformed and skipped: {'; '.join(self.first)}{more}.",)

    def _judge(self) -> None:
        if self.count > self.share * self.lines:
            raise InputError(
                f"{self.count} of {self.lines} {self.things} are malformed, more than the share {self.share:g} that"
                f" may be skipped: {'; '.join(self.first)}. Check --format, or raise --bad-share."
            )
