"""Training on several nodes: where they are, how they exchange what they have learnt, and what goes over the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from hogwild.config.options import Config, Shown, require

Strategy = Literal["average", "gossip", "parameter-actor", "columns", "merge"]
Combine = Literal["project", "sum", "mean"]
Deltas = Literal["float32", "bfloat16", "int8", "int4"]
_MOST_NODES = 256
_NO_EFFECT = {
    "paged": ("tier_rows", "touched", "error_feedback"),
    "columns": ("combine", "tier_rows", "noise_pool", "touched", "error_feedback"),
    "gossip": ("touched", "error_feedback"),
    "merge": ("sync_every", "max_delay", "combine", "deltas", "tier_rows", "noise_pool", "touched", "error_feedback"),
}


@dataclass(frozen=True)
class ClusterConfig(Config):
    """Training on several nodes (needs the extra `ray`)."""

    cluster: Annotated[str, Shown("local|ADDRESS")] = ""
    """Train on several nodes: `local` starts and stops a Ray of its own on this machine, an address joins a running
    one; `hogwild simulate` has `virtual` ones. Default: this process alone."""
    nodes: int | None = None
    """Nodes: processes with weights and workers of their own. Default: 2 locally, else one a machine of the cluster."""
    workers_per_node: int | None = None
    """Workers of a node, which share its weights without locks. Default: the cores of its machine, divided by the nodes
    there."""
    strategy: Strategy = "average"
    """How nodes come together: directly with all others, with one random other at a time, at a parameter actor; for
    vectors of words also by scores, where each has some columns of all rows, or not at all until vectors are aligned
    and merged at the end."""
    asynchronous: bool = False
    """With `parameter-actor`: nobody waits for other nodes; each pushes its changes and takes those of others."""
    shards: int = 1
    """With `parameter-actor`: parameter actors, each with a part of the rows."""
    sync_every: Annotated[int, Shown("BATCHES")] = 0
    """Mini-batches (visits) of a node between two exchanges. Default: as quality allows and the link between the nodes
    carries."""
    max_delay: int = 1
    """Exchanges that may be under way while a node goes on; 0: it waits for each."""
    combine: Combine = "project"
    """How changes of a row by several nodes become one: what they have in common counted once, their sum, or mean."""
    deltas: Deltas = "int8"
    """Numbers that are sent: as they are, or rounded, with a scale a row."""
    tier_rows: int = 1024
    """So many most frequent rows are exchanged every time, the next as many every second time, twice as many every
    fourth; 0: all rows every time."""
    paged: bool = False
    """With `parameter-actor`, for word vectors: the parameter actors hold the tables, a node only the rows that its
    next block of text needs. For models larger than a node's memory."""
    noise_pool: Annotated[int, Shown("WORDS")] = 0
    """Word vectors: draw the negatives between two exchanges from so many that are drawn before, so that fewer rows are
    touched and sent. Default: with --paged as many as will be drawn, else any word at any time."""
    touched: bool = True
    """Send only rows that changed; else whole tables."""
    error_feedback: bool = False
    """Add what rounding left out to what is sent next."""

    def check(self) -> None:
        for name in ("nodes", "workers_per_node", "shards"):
            number = getattr(self, name)
            fits = number is None or 1 <= number <= _MOST_NODES
            require(self, name, fits, f"it is a number from 1 to {_MOST_NODES}. Leave it out, or try 2.")
        for name in ("sync_every", "max_delay", "tier_rows", "noise_pool"):
            require(self, name, getattr(self, name) >= 0, "it must not be negative.")
        require(self, "max_delay", self.max_delay <= 8, "changes that come so late do harm. Try 1.")
        fits = self.max_delay <= 1 or self.strategy != "columns"
        require(self, "max_delay", fits, "with strategy columns it is 0 or 1.")
        at_actor = self.strategy == "parameter-actor"
        require(self, "shards", at_actor or self.shards == 1, "only strategy parameter-actor has shards. Leave it out.")
        for name in ("asynchronous", "paged"):
            require(self, name, at_actor or not getattr(self, name), "it goes with strategy parameter-actor.")
        if self.paged:
            require(self, "max_delay", self.max_delay <= 1, "with paged a node is one block ahead at the most. Try 1.")
            self._require_usual(_NO_EFFECT["paged"], "with paged. Leave it out")
        if not self.cluster:
            self._require_usual(tuple(vars(self)), "on one machine. Add cluster")
        if self.strategy in _NO_EFFECT:
            self._require_usual(_NO_EFFECT[self.strategy], f"with strategy {self.strategy}. Leave it out")

    def _require_usual(self, names: tuple[str, ...], where: str) -> None:
        for name in names:
            usual = ClusterConfig.__dataclass_fields__[name].default
            require(self, name, getattr(self, name) == usual, f"it has no effect {where}.")
