"""Text with the tags that a tagger gives it: `hogwild predict` for taggers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from hogwild.cli.apply.predict import Options
from hogwild.cli.apply.taggedfiles import READING, TAGGING, open_tagged, pieces
from hogwild.cli.summary import print_json
from hogwild.errors import ConfigError
from hogwild.executor.readers.display import show_progress
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.write import Path, write_paths
from hogwild.machine import cores
from hogwild.programs.store import Model

_AT_ONCE = 1 << 16  # characters that are written together


def predict_tags(options: Options, model: Model, began: float) -> int:
    """Write the text with its tags; returns the exit code. began: when the command did."""
    program: Any = model.program
    with show_progress(quiet=options.show.quiet) as display:
        display.phase(READING)
        feed = open_tagged(model, options.files, options.read, options.tagged, with_tags=False)
        text = feed.text
        assert text is not None
        assert text.origin is not None
        if options.write.proba and text.origin.format == "segmented":
            raise ConfigError(
                "--proba has no place in segmented text; --nbest 1 writes the probability of each line before it."
            )
        for note in feed.notes:
            display.say(f"note: {note}")
        display.phase(TAGGING)
        paths = _paths(program, feed, options)
        first = next(paths)  # all is compiled then, and the terminal is free for what is written
    with write_file(options.write.output) as stream:
        for lines in _joined(write_paths(text, chain([first], paths), program.tags)):
            stream.write(lines.encode())
    if options.show.json:
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "tokens": feed.tokens,
                "classes": list(program.tags),
                "output": options.write.output,
                "seconds": time.perf_counter() - began,
                "notes": feed.notes,
            }
        )
    return 0


def _paths(program: Any, feed: TaggingFeed, options: Options) -> Iterator[Sequence[Path]]:
    """For each sentence the tags to write, with the probabilities that are asked for."""
    names = np.array(program.tags, object)
    constrain, proba = options.tagged.constrain, options.write.proba
    for piece in pieces(feed):
        chances = program.marginals(piece, cores()) if proba else None
        bounds = list(pairwise(piece.samples.offsets.tolist()))
        if options.write.nbest:
            found = program.nbest(piece, options.write.nbest, constrain)
            codes = {tag: code for code, tag in enumerate(program.tags)}
            for (start, end), several in zip(bounds, found, strict=True):
                yield [
                    Path(tags, _of(chances, start, end, [codes[tag] for tag in tags]), chance)
                    for chance, tags in several
                ]
            continue
        best = program.predict_codes(piece, cores(), constrain)
        for start, end in bounds:
            tags = best[start:end]
            yield [Path(names[tags].tolist(), _of(chances, start, end, tags))]


def _of(chances: Any, start: int, end: int, tags: Any) -> list[float] | None:
    """The probability of each of these tags of a sentence."""
    return None if chances is None else chances[np.arange(start, end), tags].tolist()


def _joined(sentences: Iterator[str]) -> Iterator[str]:
    """Many sentences at a time."""
    kept: list[str] = []
    size = 0
    for sentence in sentences:
        kept.append(sentence)
        size += len(sentence)
        if size >= _AT_ONCE:
            yield "".join(kept)
            kept, size = [], 0
    yield "".join(kept)
