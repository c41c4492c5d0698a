"""Readers of files as targets."""

from __future__ import annotations

from pathlib import Path

from fuzz.harness import Kept, Target
from hogwild.config import FeedConfig
from hogwild.feeds.reader import open_feed

SVMLIGHT = b"1 1:0.5 3:2 # a comment\n-1 2:1e-3 7:-4.25\n\n+1 qid:3 1:1 2:1\n0 10:3.0000000000000001\n"


def read_svmlight(path: Path) -> None:
    open_feed(path, FeedConfig(format="svmlight", cache=False)).check()


READERS = [
    Target("svmlight", lambda: {"a.svm": SVMLIGHT}, read_svmlight, [Kept("a.svm", b"1 1:1e-453#t\n")]),
]
