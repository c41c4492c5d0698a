"""Progress on standard error: a bar on a terminal, plain lines elsewhere. A reader of events.

Where nobody can see it any more it falls silent, and the run goes on.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, cast

from hogwild.executor.events import EpochEnded, Event, Finished, Joined, Lost, Nodes, Progress, Started, Watched
from hogwild.messages import Stream, printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

_PATIENCE = 0.8  # seconds of silence before compiling is named: on a warm start there is none
_PLAIN_EVERY = 5.0  # seconds between two plain lines
_NARROWEST_BAR = 8  # columns

_SHOWN = ("loss", "accuracy", "auc", "f1", "rmse")  # metrics that an epoch line has room for

COMPILING = "compiling (first run only)"


class Told(NamedTuple):
    """What visits are told as: units, and how many of them a visit is."""

    unit: str = "samples"
    each: float = 1.0

    def __call__(self, visits: float) -> str:
        """So many visits, in units."""
        return f"{count(visits * self.each)} {self.unit}"

    def speed(self, visits: float) -> str:
        """So many visits a second, in units."""
        return f"{self(visits)}/s"


class Display:
    """Shows nothing; the display of --quiet, and what the others have in common."""

    told = Told()
    epochs = 0
    nodes: Nodes | None = None
    """The last word of a run on several nodes."""

    def __call__(self, event: Event) -> None:
        """Show an event."""

    def lasting(self, event: Event) -> None:
        """The lines that stay of an event."""
        if isinstance(event, Started):
            self.told = Told(event.unit, event.each)
            self.epochs = event.epochs or self.epochs
            self.say(started_text(event))
            for note in event.notes:
                self.say(f"note: {note}")
        elif isinstance(event, EpochEnded):
            self.say(epoch_text(event, self.epochs))
        elif isinstance(event, Watched):
            self.say(f"{self.told(event.samples)}: {values_text(event.values)}")
        elif isinstance(event, Joined):
            refused = f" Not taken in: {event.refused}" if event.refused else ""
            self.say(f"note: {event.nodes} nodes from here on.{refused}")
        elif isinstance(event, Lost):
            lost = f"{event.what} was lost: " if event.what else ""
            self.say(f"note: {lost}{event.why.rstrip('.')}; {self.told(event.again)} are trained on once more.")
        elif isinstance(event, Nodes):
            self.nodes = event
        elif isinstance(event, Finished):
            if self.nodes is not None:
                self.say(nodes_text(self.nodes))
            self.say(finished_text(event, self.told))

    def phase(self, doing: str) -> None:
        """Say what goes on where no events come; "" when it is over."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def close(self) -> None:
        """Leave the terminal as it was."""


@contextmanager
def show_progress(quiet: bool = False, epochs: int = 0, stream: TextIO | None = None) -> Iterator[Display]:
    """A display for the events of one run: call it with each event.

    Parameters
    ----------
    quiet : show nothing.
    epochs : how many there will be, if known.
    stream : where to; standard error by default.
    """
    stream = stream or sys.stderr
    display: Display
    if quiet or stream is None:  # None: closed before Python began
        display = Display()
    else:
        lasting = cast(TextIO, Stream(stream))
        display = BarDisplay(lasting, epochs) if lasting.isatty() else LineDisplay(lasting, epochs)
    display.phase(COMPILING)
    try:
        yield display
    finally:
        display.close()


# -- words --

def count(number: float) -> str:
    """1234567 as 1.23M.

    Examples
    --------
    >>> count(950), count(1234567), count(12_345_678_901)
    ('950', '1.23M', '12.3G')
    """
    if not math.isfinite(number):
        return "?"
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= unit * 0.9995:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def duration(seconds: float) -> str:
    """Seconds as 0:07, 12:34 or 1:02:03."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def values_text(values: dict[str, Any]) -> str:
    """Watched values in one line."""
    return "  ".join(f"{name} = {_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def started_text(event: Started) -> str:
    """What was chosen for the user."""
    sharing = f", sharing {event.sharing}" if event.mode == "hogwild" and event.threads > 1 else ""
    workers = "1 worker" if event.threads == 1 else f"{event.threads} workers"
    total = Told(event.unit, event.each)(event.total)
    where = f" on {event.device}" if event.device else ""
    return f"{event.mode}{where}: {workers}{sharing}, {total} to visit, learning rate {event.lr:.3g}"


def epoch_text(event: EpochEnded, epochs: int) -> str:
    """One finished epoch."""
    of_all = f"/{epochs}" if epochs else ""
    shown = [f"  {name} {value:.4f}" for name, value in event.metrics.items() if name in _SHOWN]
    metrics = "  valid" + "".join(shown)[1:] if shown else ""
    best = "  (best)" if event.best and event.metrics else ""
    errors = ""
    if event.trace:
        looked_at, wrong, late = (sum(w[name] for w in event.trace) for name in ("looked_at", "errors", "delayed"))
        errors = f"  gradient errors {wrong / max(looked_at, 1):.2%}, delayed {late / max(looked_at, 1):.2%}"
    return f"epoch {event.epoch}{of_all}  loss {event.loss:.4f}  {event.epoch_seconds:.2f} s{metrics}{errors}{best}"


def finished_text(event: Finished, told: Told) -> str:
    """How it ended."""
    how = {"done": "done", "early": "stopped early: no more gain", "stopped": "stopped"}.get(event.reason, event.reason)
    speed = told.speed(event.samples_per_second)
    return f"{how}: {told(event.samples)} in {event.train_seconds:.2f} s, {speed}"


def nodes_text(event: Nodes) -> str:
    """What nodes sent to each other, waited for, and took of their machines."""
    sent, messages = (sum(node[name] for node in event.nodes) for name in ("sent", "messages_sent"))
    spent = sum(node["seconds_exchanging"] for node in event.nodes) / len(event.nodes)
    waited = sum(node["seconds_waited"] for node in event.nodes) / len(event.nodes)
    busy = sum(node.get("cores", 0.0) for node in event.nodes)
    memory = max(node.get("memory", 0.0) for node in event.nodes)
    return (
        f"{len(event.nodes)} nodes: {count(sent)}B sent in {count(messages)} messages, {spent:.1f} s of exchanges a "
        f"node ({waited:.1f} s waited), {busy:.1f} cores, {count(memory)}B of memory a node"
    )


# -- plain lines --

class LineDisplay(Display):
    """One line now and then, for logs."""

    def __init__(self, stream: TextIO, epochs: int = 0) -> None:
        self._stream = stream
        self.epochs = epochs
        self._next = 0.0
        self._timer: threading.Timer | None = None

    def __call__(self, event: Event) -> None:
        self.phase("")
        self.lasting(event)
        if isinstance(event, Started):
            self._next = time.monotonic() + _PLAIN_EVERY
        elif isinstance(event, Progress) and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PLAIN_EVERY
            self.say(self._line(event))
            if self.nodes is not None:
                self.say(f"      {nodes_text(self.nodes)}")

    def _line(self, event: Progress) -> str:
        share = event.samples / max(event.total, 1)
        return (
            f"{share:4.0%}  loss {event.loss:.4f}  {self.told.speed(event.samples_per_second)}  lr {event.lr:.3g}  "
            f"{duration(event.seconds_left)} left  workers {_balance(event.balance)}"
        )

    def phase(self, doing: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if doing:
            self._timer = threading.Timer(_PATIENCE, self.say, [doing])
            self._timer.daemon = True
            self._timer.start()

    def say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def close(self) -> None:
        self.phase("")


def _balance(shares: tuple[float, ...]) -> str:
    """The share of each worker; of a crowd, the least and the most."""
    if len(shares) > 8:
        return f"{len(shares)}, {min(shares):.1%} to {max(shares):.1%}"
    return " ".join(f"{share:.0%}" for share in shares)


# -- a bar --

class BarDisplay(Display):
    """A bar that fills, with the lines that stay above it."""

    def __init__(self, stream: TextIO, epochs: int = 0) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream, highlight=False, markup=False, soft_wrap=False)
        self.epochs = epochs
        self._doing = ""
        self._since = time.monotonic()
        self._event: Progress | None = None
        self._live = Live(self, console=self._console, refresh_per_second=8, transient=True)
        self._live.start()

    def __call__(self, event: Event) -> None:
        self._doing = ""
        if isinstance(event, Progress):
            self._event = event
        elif isinstance(event, EpochEnded) and self._event is not None:  # short epochs have no progress of their own
            self._event = replace(self._event, samples=event.samples, epoch=event.epoch, lr=event.lr)
        elif isinstance(event, Finished):
            self._event = None
        self.lasting(event)

    def phase(self, doing: str) -> None:
        self._doing, self._since = doing, time.monotonic()

    def say(self, line: str) -> None:
        self._console.print(printable(line))

    def close(self) -> None:
        self._doing, self._event = "", None
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        waited = time.monotonic() - self._since
        if self._doing and waited >= _PATIENCE:
            doing = f"{printable(self._doing)} {duration(waited)}"
            yield Text(doing[: options.max_width], no_wrap=True)
        elif not self._doing and self._event is not None:
            # Three columns stay free for the ^C that the terminal writes itself: past the edge it would break the bar.
            width = options.max_width - 3
            yield draw(self._event, self.epochs, width, ascii_only=options.ascii_only, told=self.told)
            if self.nodes is not None:
                yield Text(nodes_text(self.nodes)[:width], no_wrap=True)


def draw(event: Progress, epochs: int, width: int, ascii_only: bool = False, told: Told = Display.told) -> Text:
    """One line no wider than `width`: what does not fit is left out, the least important first."""
    from rich.text import Text

    share = min(event.samples / max(event.total, 1), 1.0)
    head = f"{share:4.0%}"
    # In order of importance; shown in the order of `places`.
    parts = [
        (1, f"{duration(event.seconds_left)} left"),
        (3, f"loss {event.loss:.4f}"),
        (2, told.speed(event.samples_per_second).replace(" samples/s", "/s")),
        (4, f"lr {event.lr:.3g}"),
        (0, f"epoch {min(event.epoch + 1, epochs)}/{epochs}" if epochs else f"epoch {event.epoch + 1}"),
        (5, f"workers {_balance(event.balance)}"),
    ]
    room = width - len(head) - 1 - _NARROWEST_BAR
    kept: list[tuple[int, str]] = []
    for place, part in parts:
        if len(part) + 2 <= room:
            kept.append((place, part))
            room -= len(part) + 2
    bar = max(min(_NARROWEST_BAR + room, 40), 1)
    full = round(share * bar)
    signs = ("#", "-") if ascii_only else ("━", "─")
    line = Text(no_wrap=True, overflow="crop")
    line.append(signs[0] * full, style="green").append(signs[1] * (bar - full), style="dim").append(" " + head)
    for _, part in sorted(kept):
        line.append("  " + part)
    return line
