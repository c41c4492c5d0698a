"""Tagged text for a tagger that is trained already: read as its training text was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.apply.rows import ReadConfig
from hogwild.config.options import Shown
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from hogwild.feeds.tagged.feed import TaggingFeed
    from hogwild.programs.store import Model

TAGGERS = ("crf",)
"""Names of the programs that tag."""

READING, TAGGING = "reading the text", "tagging (the first run compiles)"
"""What goes on, where that takes long."""

_AT_ONCE = 1 << 17  # tokens that are predicted together


@dataclass(frozen=True)
class TaggedConfig:
    """Taggers."""

    constrain: bool = False
    """Give only tags that their scheme (IOB, IOBES, BMES) allows where they stand."""
    columns: Annotated[tuple[str, ...], Shown("NAME,NAME")] = ()
    """Names of the columns, or fields, of these files, if they differ from the training files; - leaves one out."""
    tag_column: Annotated[str, Shown("NAME|N")] = ""
    """Column of the tags, if it is not the one of the training files."""


def refuse(given: Any, why: str) -> None:
    """Raise ConfigError if an option of a group has another value than by default."""
    for item in fields(given):
        if getattr(given, item.name) != item.default:
            raise ConfigError(f"--{item.name.replace('_', '-')} is for taggers, and {why}; leave it out.")


def open_tagged(
    model: Model, files: tuple[str, ...], read: ReadConfig, tagged: TaggedConfig, with_tags: bool = True
) -> TaggingFeed:
    """The files as sentences with the features and tags of the model; without `with_tags` they need no tags."""
    from hogwild.config import TaggingConfig
    from hogwild.feeds.tagged.open import open_tagging

    if read.label:
        raise ConfigError("--label is not for taggers; --tag-column names the column of the tags.")
    if read.format == "auto":
        raise ConfigError("--format auto is not for taggers; leave it out, or give conll, conllu, segmented or jsonl.")
    if not model.schema:
        raise ConfigError(
            "the model does not say how text becomes its features; save it again with "
            "save_model(path, program, feed_schema=feed.schema)."
        )
    program: Any = model.program
    config = TaggingConfig(
        format="auto" if read.format == "same" else read.format,  # type: ignore[arg-type]  # it checks
        columns=tagged.columns,
        tag_column=tagged.tag_column,
        bad_lines=read.bad_lines,
        bad_share=read.bad_share,
        invalid_utf8="replace" if read.invalid_utf8 == "replace" else "stop",
        pipe=read.pipe,
        cache=read.cache,
    )
    return open_tagging(
        files, config, schema=model.schema, names=program.names, tags=program.tags, with_tags=with_tags
    )


def pieces(feed: TaggingFeed) -> Iterator[TaggingFeed]:
    """The feed in runs of sentences, so that what is made of them fits into memory."""
    import numpy as np  # here: help does without

    offsets = feed.samples.offsets
    first = 0
    while first < len(feed):
        last = int(np.searchsorted(offsets, offsets[first] + _AT_ONCE, "right")) - 1
        last = min(max(last, first + 1), len(feed))
        yield _part(feed, first, last)
        first = last


def _part(feed: TaggingFeed, first: int, last: int) -> TaggingFeed:
    """The sentences from `first` on, up to `last`; features and tags only."""
    samples = feed.samples
    offsets = samples.offsets[first : last + 1]
    starts = samples.starts[offsets[0] : offsets[-1] + 1]
    entries = slice(int(starts[0]), int(starts[-1]))
    parts = {name: getattr(samples, name)[entries] for name in ("ids", "values") if name in samples._fields}
    tags = samples.tags[offsets[0] : offsets[-1]]
    cut = samples._replace(offsets=offsets - offsets[0], starts=starts - starts[0], tags=tags, **parts)
    return replace(feed, samples=cut, text=None)
