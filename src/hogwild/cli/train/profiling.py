"""`--profile`: around all that a training command does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hogwild.cli.train.job import RunOptions
from hogwild.messages import say
from hogwild.observe.profile import Profile

AUTO = "auto"


class Profiling:
    """The profile of a command, if one is asked for. With `--json` it is part of the object, else a table is shown."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.path = trace_path(options)
        self.profile = Profile(self.path) if self.path else None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Keep where the time goes; at the end write the file."""
        if self.profile is None:
            yield
            return
        with self.profile:
            yield

    def summary(self) -> dict[str, Any]:
        """For the JSON object."""
        if self.profile is None:
            return {}
        return {"profile": {"file": self.path, **self.profile.report()}}

    def show(self) -> None:
        """The table, for people; nothing with --quiet, or with --json, where the object has it."""
        if self.profile is None or self.options.show.quiet or self.options.show.json:
            return
        for line in self.profile.table().splitlines():
            say(line)
        say(f"{self.path} has it span by span: open it in chrome://tracing or ui.perfetto.dev")


def trace_path(options: RunOptions) -> str:
    """The file that is written, "" for none."""
    if options.watch.profile != AUTO:
        return options.watch.profile
    output = options.save.output.rstrip("/")
    return f"{output}.profile.json" if output else "hogwild.profile.json"
