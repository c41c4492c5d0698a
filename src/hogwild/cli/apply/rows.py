"""Files for a model that is trained already: read as its training files were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from hogwild.config import Column, FeedConfig
from hogwild.config.options import Shown
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from hogwild.feeds.sparse.feed import Feed
    from hogwild.programs.store import Model

_AT_ONCE = 1 << 17  # rows that are predicted together


@dataclass(frozen=True)
class ReadConfig:
    """How files are read; all else is as it was in training."""

    format: Literal[
        "same", "auto", "svmlight", "csv", "tsv", "parquet", "arrow", "text", "conll", "conllu", "segmented", "jsonl",
        "ratings", "lists", "multislot", "tfrecord", "criteo", "libffm", "libfm",
    ] = "same"
    """Kind of file, if it is not the one of the training files."""
    label: Column = ""
    """Label column, if it is not the one of the training files."""
    bad_lines: Literal["stop", "skip"] = "stop"
    """What a malformed line does; `skip` counts and reports them."""
    bad_share: float = 0.01
    """With `skip`: give up when more than this share is malformed."""
    invalid_utf8: Literal["same", "stop", "replace"] = "same"
    """What invalid UTF-8 does; `replace` counts it. Default: as in training; taggers stop."""
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded data on disk and use it again."""


def open_for(model: Model, files: tuple[str, ...], reading: ReadConfig, unlabelled: bool = False) -> Feed:
    """The files as samples with the ids of the model; with `unlabelled` they need no labels."""
    from hogwild.feeds.open import open_feed

    config = model.feed_config or FeedConfig()
    if reading.format != "same":
        config = replace(config, format=reading.format)  # type: ignore[arg-type]  # it checks
    if reading.label:
        config = replace(config, label=reading.label)
    if reading.invalid_utf8 != "same":
        config = replace(config, invalid_utf8=reading.invalid_utf8)
    config = replace(
        config, bad_lines=reading.bad_lines, bad_share=reading.bad_share, pipe=reading.pipe, cache=reading.cache,
        unlabelled=unlabelled,
    )  # fmt: skip
    feed = open_feed(files, config, schema=model.schema)
    if not model.schema and feed.schema.get("format") == "table":
        raise ConfigError(
            "the model does not say which columns its features were, so none can be found here; save it again with "
            "save_model(path, program, feed_schema=feed.schema)."
        )
    return feed


def pieces(feed: Feed) -> Iterator[Feed]:
    """The feed in runs of rows, so that what is made of them fits into memory."""
    from hogwild.arrays import DenseRows

    samples = feed.samples
    for start in range(0, len(feed), _AT_ONCE):
        rows = slice(start, min(start + _AT_ONCE, len(feed)))
        parts = {"targets": samples.targets[rows], "importance": samples.importance[rows]}
        if isinstance(samples, DenseRows):
            parts["matrix"] = samples.matrix[rows]
        else:
            offsets = samples.offsets[rows.start : rows.stop + 1]
            entries = slice(int(offsets[0]), int(offsets[-1]))
            parts["offsets"] = offsets - offsets[0]
            whole = {"ids": entries, "values": entries, "slots": entries, "dense": rows}
            parts |= {name: getattr(samples, name)[part] for name, part in whole.items() if name in samples._fields}
        yield replace(feed, samples=samples._replace(**parts))  # type: ignore[arg-type]


def unknown_note(ignored: int) -> list[str]:
    """What to say about features that the model has not seen."""
    return [f"{ignored:,} entries have features that the model does not know; they count as 0."] if ignored else []
