"""One line of the comparison of defaults: a data set and a metric, ours beside a peer's; and how it is shown.

A module of the comparison (`defaults_text`, `defaults_recommender`, `defaults_tables`) has a function
`compare(seeds: int) -> Iterator[Row]`, which trains both sides at their defaults, `seeds` times where a seed makes a
difference, and gives the mean of each metric. It raises `Skipped` where data or a peer is not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

HIGHER = {"accuracy": True, "auc": True, "ndcg": True, "f1": True, "r2": True, "recall": True}
_LEVEL = 5e-5  # a difference that four digits do not show is none


class Skipped(Exception):
    """Data or a peer is not there; the message says which."""


class Row(NamedTuple):
    """One metric of one data set."""

    dataset: str
    task: str
    metric: str
    higher_is_better: bool
    ours: float
    peer: float
    peer_name: str

    @property
    def better(self) -> str:
        """Who is: `ours`, `peer` or `same`."""
        if not (math.isfinite(self.ours) and math.isfinite(self.peer)):
            return "?"
        gain = (self.ours - self.peer) * (1 if self.higher_is_better else -1)
        return "same" if abs(gain) < _LEVEL else "ours" if gain > 0 else "peer"


def row_of(dataset: str, task: str, metric: str, figures: tuple[float, float], peer_name: str) -> Row:
    """A row of (ours, peer); whether more is better follows from the metric's name (`ndcg@20` counts as `ndcg`)."""
    higher = HIGHER.get(metric.split("@")[0].split(" ")[0].lower(), False)
    return Row(dataset, task, metric, higher, float(figures[0]), float(figures[1]), peer_name)


def table_of(rows: Iterable[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| data | task | metric | ours | peer | | better |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        ours, peer = (f"{value:.4f}" for value in (row.ours, row.peer))
        mark = {"ours": "**ours**", "peer": "peer"}.get(row.better, row.better)
        arrow = "↑" if row.higher_is_better else "↓"
        lines.append(
            f"| {row.dataset} | {row.task} | {row.metric} {arrow} | {ours} | {peer} | {row.peer_name} | {mark} |"
        )
    return "\n".join(lines)


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as JSON objects."""
    return [{**row._asdict(), "better": row.better} for row in rows]
