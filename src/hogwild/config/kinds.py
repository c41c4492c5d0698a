"""Values that options may have."""

from __future__ import annotations

from typing import Annotated, Literal

from hogwild.config.options import Shown
from hogwild.errors import ConfigError, brief

Mode = Literal["hogwild", "serial", "locked", "round-robin", "minibatch"]
TaggerModel = Literal["crf", "bilstm"]
Sharing = Literal["auto", "all", "hot", "replica"]
Optimizer = Literal["sgd", "momentum", "adagrad", "adam", "ftrl"]
ScheduleName = Literal["constant", "linear", "inverse"]
BestBy = Literal["auto", "loss", "accuracy", "auc", "f1", "ndcg", "rmse"]
PieceForm = Literal["sum", "samples"]
TagScheme = Literal["same", "iob1", "iob2", "bio", "iobes", "bmes", "bilou"]
Format = Literal[
    "auto", "svmlight", "csv", "tsv", "parquet", "arrow", "text", "multislot", "criteo", "libffm", "libfm", "tfrecord",
    "fasttext", "jsonl",
]  # fmt: skip

Column = Annotated[str, Shown("COLUMN")]
Columns = Annotated[tuple[str, ...], Shown("COLUMN")]
File = Annotated[str, Shown("FILE")]
Files = Annotated[tuple[str, ...], Shown("FILE")]
Device = Annotated[str, Shown("cpu|cuda|mps|...")]
Directory = Annotated[str, Shown("DIR")]
Subwords = Annotated[str, Shown("MIN:MAX")]


def letters_of(subwords: str) -> tuple[int, int]:
    """Letters of the shortest and of the longest n-gram that subwords are, written as `3:6`; "" are none: (0, 0).

    >>> letters_of("3:6")
    (3, 6)
    """
    if not subwords:
        return 0, 0
    shortest, _, longest = subwords.partition(":")
    if not (shortest.isascii() and shortest.isdigit() and longest.isascii() and longest.isdigit()):
        raise ConfigError(f"subwords is {brief(subwords)}; write the letters of the shortest and longest part, as 3:6.")
    if not 1 <= int(shortest[:9]) <= int(longest[:9]) <= 64:
        raise ConfigError(f"subwords is {brief(subwords)}; parts have 1 to 64 letters, the shorter first. Try 3:6.")
    return int(shortest), int(longest)
