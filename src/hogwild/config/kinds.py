"""Values that options may have."""

from __future__ import annotations

from typing import Annotated, Literal

from hogwild.config.options import Shown

Mode = Literal["hogwild", "serial", "locked", "round-robin", "minibatch"]
TaggerModel = Literal["crf", "bilstm"]
Sharing = Literal["auto", "all", "hot", "replica"]
Optimizer = Literal["sgd", "momentum", "adagrad", "adam", "ftrl"]
ScheduleName = Literal["constant", "linear", "inverse"]
BestBy = Literal["loss", "f1", "accuracy"]
TagScheme = Literal["same", "iob1", "iob2", "bio", "iobes", "bmes", "bilou"]
Format = Literal[
    "auto", "svmlight", "csv", "tsv", "parquet", "arrow", "text", "multislot", "criteo", "libffm", "libfm", "tfrecord",
]  # fmt: skip

Column = Annotated[str, Shown("COLUMN")]
Columns = Annotated[tuple[str, ...], Shown("COLUMN")]
File = Annotated[str, Shown("FILE")]
Files = Annotated[tuple[str, ...], Shown("FILE")]
Device = Annotated[str, Shown("cpu|cuda|mps|...")]
Directory = Annotated[str, Shown("DIR")]
