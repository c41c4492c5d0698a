"""What is written, shown and printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hogwild.config.kinds import Directory, File
from hogwild.config.options import Shown, require


@dataclass(frozen=True)
class SaveConfig:
    """What is written, and when."""

    output: Directory = ""
    """Directory of the trained model; made, or replaced when it holds a model. Default: nothing is saved."""
    checkpoint_every: Annotated[str, Shown("10m|500s|1epoch")] = ""
    """Write a checkpoint this often, beside the output directory (OUTPUT.checkpoint)."""
    resume: bool = False
    """Go on where the last checkpoint beside the output directory stands; start if there is none."""

    def __post_init__(self) -> None:
        asked = bool(self.checkpoint_every or self.resume)
        name = "checkpoint_every" if self.checkpoint_every else "resume"
        require(self, name, bool(self.output) or not asked, "checkpoints live beside the output directory. Add output.")


@dataclass(frozen=True)
class WatchConfig:
    """Looking at a run while it goes on."""

    watch: Annotated[tuple[str, ...], Shown("NAME")] = ()
    """Show a weight array, a slice or a number of it: weights, weights[3,:5], norm(weights), max(weights)."""
    every: Annotated[str, Shown("N|Ns")] = "2s"
    """Show watched variables every N samples, or every N seconds (5s)."""
    log_dir: Directory = ""
    """Write events.jsonl there, and TensorBoard files if tensorboard is installed."""
    profile: Annotated[str, Shown("FILE.json", bare="auto")] = ""
    """Show where the time went, and write a trace for Chrome's trace viewer or Perfetto. Default name of the file:
    OUTPUT.profile.json, without output hogwild.profile.json."""


@dataclass(frozen=True)
class ShowConfig:
    """What the command prints."""

    json: bool = False
    """Standard output is exactly one JSON object; everything else goes to standard error."""
    quiet: bool = False
    """No progress bar and no notes; errors only."""
    debug: bool = False
    """Show the traceback of an error."""
    config: File = ""
    """TOML file of options: keys are flag names; flags on the command line win."""
