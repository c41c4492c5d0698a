"""The job of `hogwild train ctr`: a classifier of two classes on logs with slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.cli.train.classifier import ClassifierJob
from hogwild.errors import InputError
from hogwild.feeds.sparse.feed import Feed

_PAIRS = ({0.0, 1.0}, {-1.0, 1.0})


class CtrJob(ClassifierJob):
    """A model of clicks."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.feed = replace(self.feed, layout="slots")

    def open(self, files: tuple[str, ...]) -> Feed:
        """Logs whose labels are clicks."""
        return _with_clicks(super().open(files))

    def started_notes(self, program: Any, feed: Feed) -> list[str]:
        """The share of clicks, which loss and calibration are to be judged by."""
        return [f"{len(feed):,} samples, {100 * float((feed.samples.targets > 0).mean()):.2f} % of them clicks."]


def _with_clicks(feed: Feed) -> Feed:
    if feed.labels:
        if len(feed.labels) != 2:
            raise InputError(f"{feed.source}: there are {len(feed.labels)} labels; clicks have two, 0 and 1.")
        return feed
    targets = feed.samples.targets
    distinct = np.unique(targets)
    if not any(set(distinct.tolist()) <= pair for pair in _PAIRS):
        row = int(np.flatnonzero((targets != 0) & (targets != 1))[0])
        raise InputError(
            f"{feed.place(row)}: the label is {targets[row]:g}; clicks are 0 or 1. Is it the right column (--label)?"
        )
    return feed
