"""Taggers in use: tagged text read as their training text was, `hogwild evaluate` and `hogwild predict` for them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, cast

import numpy as np

from hogwild.cli.apply.lines import arriving_sources
from hogwild.cli.apply.options import EvaluateOptions, PredictOptions, ReadConfig, TaggedConfig, WriteConfig, given
from hogwild.cli.summary import print_evaluation, print_prediction
from hogwild.config import TaggingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.executor.readers.display import show_progress
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.open import open_tagging
from hogwild.feeds.tagged.schemes import convert_tags
from hogwild.feeds.tagged.text import TaggedText
from hogwild.feeds.tagged.write import Path, write_paths
from hogwild.machine import cores
from hogwild.messages import for_output
from hogwild.programs.store import Model
from hogwild.programs.taggers.tagger import Tagger

_READING, _TAGGING = "reading the text", "tagging (the first run compiles)"  # what goes on, where that takes long
_AT_ONCE = 1 << 17  # tokens that are predicted together
_WRITTEN = 1 << 16  # characters that are written together
BY_LINES = ("tokens", "segmented", "jsonl")  # formats of which a sentence is a line


def open_tagged(
    model: Model, files: Any, read: ReadConfig, tagged: TaggedConfig, with_tags: bool = True
) -> TaggingFeed:
    """The files as sentences with the features and tags of the model; without `with_tags` they need no tags."""
    if read.weight:
        raise ConfigError("--weight is not for taggers; leave it out.")
    if read.label:
        raise ConfigError("--label is not for taggers; --tag-column names the column of the tags.")
    if read.format == "auto":
        raise ConfigError("--format auto is not for taggers; leave it out, or give conll, conllu, jsonl or such.")
    if not model.schema:
        raise ConfigError(
            "the model does not say how text becomes its features; save it again with "
            "save_model(path, program, feed_schema=feed.schema)."
        )
    program = cast(Tagger, model.program)
    config = TaggingConfig(columns=tagged.columns, tag_column=tagged.tag_column, **read.shared())
    schema = program.marked(model.schema)
    return open_tagging(files, config, schema=schema, names=program.names, tags=program.tags, with_tags=with_tags)


def pieces(feed: TaggingFeed) -> Iterator[TaggingFeed]:
    """The feed in runs of sentences, so that what is made of them fits into memory."""
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


# -- evaluate ---------------------------------------------------------------------------------------------------------


def evaluate_tags(options: EvaluateOptions, model: Model, began: float) -> int:
    """Evaluate a tagger and print its scores; returns the exit code. began: when the command did."""
    program = cast(Tagger, model.program)
    with show_progress(quiet=options.show.quiet) as display:
        display.phase(_READING)
        feed = open_tagged(model, options.files, options.read, options.tagged)
        for note in feed.notes:
            display.say(f"note: {note}")
        loaded = time.perf_counter()
        display.phase(_TAGGING)
        loss, scores = program.compare(feed, cores(), options.tagged.constrain)
    if options.show.json:
        found = scores.to_json()
        print_evaluation(
            options, program.name, len(feed), {"loss": loss, **found["metrics"]}, (began, loaded),
            constrain=options.tagged.constrain, kind=found["kind"], counts=found["counts"], per_type=found["types"],
            unseen=found["unseen"], notes=feed.notes,
        )  # fmt: skip
    else:
        types = tuple(score._replace(name=for_output(score.name)) for score in scores.types)
        print(replace(scores, types=types).text())
        if not math.isnan(loss):
            print(f"\nloss {loss:.4f}: the mean over sentences of -log of the probability of the true tags")
    return 0


# -- predict ----------------------------------------------------------------------------------------------------------


def predict_tags(options: PredictOptions, model: Model, began: float) -> int:
    """Write the text with its tags; returns the exit code. began: when the command did."""
    program = cast(Tagger, model.program)
    sentences = tokens = 0
    notes: dict[str, None] = {}
    with write_file(options.write.output) as stream:
        for feed, text, paths in _read(options, model):
            for lines in _joined(write_paths(text, paths, program.tags)):
                stream.write(lines.encode())
            stream.flush()
            sentences, tokens = sentences + len(feed), tokens + feed.tokens
            notes |= dict.fromkeys(feed.notes)
    known = {"tokens": tokens, "classes": list(program.tags), "notes": list(notes)}
    print_prediction(options, program.name, sentences, began, **known)
    return 0


def _read(
    options: PredictOptions, model: Model
) -> Iterator[tuple[TaggingFeed, TaggedText, Iterator[Sequence[Path]]]]:
    """The text with the ways to tag it: that of files, or what comes on standard input as it comes."""
    read, files = options.read, cast(Iterable[Any], [options.files])
    arriving = options.files == ("-",) and model.schema and not read.pipe
    if arriving:
        form = read.format if read.format != "same" else str((model.schema or {}).get("format"))
        files = arriving_sources(TaggingConfig(**read.shared()), form in BY_LINES)
        read = replace(read, bad_share=1.0)  # a share of few lines says nothing
    seen, nothing = False, None
    for some in files:
        with show_progress(quiet=options.show.quiet or seen) as display:
            display.phase(_READING)
            try:
                feed = open_tagged(model, some, read, options.tagged, with_tags=False)
            except InputError as error:
                if not arriving or "no sentences" not in str(error):
                    raise
                nothing = error  # comments, or lines that are skipped
                continue
            text = feed.text
            assert text is not None
            assert text.origin is not None
            for flag in {"--proba", "--marginals", "--scheme"}.intersection(given(options.write)):
                if text.origin.format == "segmented":
                    raise ConfigError(
                        f"{flag} has no place in segmented text; --nbest 1 writes the probability of each line before "
                        "it."
                    )
            for note in feed.notes:
                display.say(f"note: {note}")
            display.phase(_TAGGING)
            paths = _paths(cast(Tagger, model.program), feed, options)
            first = next(paths)  # all is compiled then, and the terminal is free for what is written
        seen = True
        yield feed, text, chain([first], paths)
    if nothing is not None and not seen:
        raise nothing


def _paths(program: Tagger, feed: TaggingFeed, options: PredictOptions) -> Iterator[Sequence[Path]]:
    """For each sentence the tags to write, with the probabilities that are asked for."""
    write, constrain = options.write, options.tagged.constrain
    codes = {tag: code for code, tag in enumerate(program.tags)}
    for piece in pieces(feed):
        chances = program.marginals(piece, cores()) if write.proba or write.marginals else None
        bounds = list(pairwise(piece.samples.offsets.tolist()))
        if write.nbest:
            found: Any = program.nbest(piece, write.nbest, constrain)
        else:
            found = ([(None, tags)] for tags in program.predict(piece, cores(), constrain))
        for (start, end), several in zip(bounds, found, strict=True):
            yield [
                _path(tags, chance, None if chances is None else chances[start:end], codes, write)
                for chance, tags in several
            ]


def _path(tags: list[str], chance: float | None, each: Any, codes: dict[str, int], write: WriteConfig) -> Path:
    """One way to tag a sentence; each: the probabilities of all tags at each token."""
    shares = each[np.arange(len(tags)), [codes[tag] for tag in tags]].tolist() if write.proba else None
    every = [dict(zip(codes, row, strict=True)) for row in each.tolist()] if write.marginals else None
    named = tags if write.scheme == "same" else convert_tags([tags], write.scheme)[0]
    return Path(named, shares, chance, every)


def _joined(sentences: Iterator[str]) -> Iterator[str]:
    """Many sentences at a time."""
    kept: list[str] = []
    size = 0
    for sentence in sentences:
        kept.append(sentence)
        size += len(sentence)
        if size >= _WRITTEN:
            yield "".join(kept)
            kept, size = [], 0
    yield "".join(kept)
