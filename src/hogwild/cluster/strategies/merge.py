"""No exchange at all: each node learns from its part of the text, and the driver merges what they have at the end."""

from __future__ import annotations

from hogwild.cluster.strategies.strategy import Strategy
from hogwild.cluster.wire.rounds import Round


class Merge(Strategy):
    """Alone."""

    in_step = False
    levels = False

    def exchange(self, here: Round, leading: int | None) -> None:
        """Nothing."""
