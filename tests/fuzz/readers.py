"""Readers of files as targets."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from feeds.tagged.files import check
from fuzz import seedfiles
from fuzz.harness import Target
from fuzz.kept import KEPT
from hogwild.config import CorpusConfig, FeedConfig, RatingConfig, TaggingConfig
from hogwild.errors import HogwildError
from hogwild.feeds.corpus.open import open_corpus
from hogwild.feeds.open import open_feed
from hogwild.feeds.ratings.open import open_ratings
from hogwild.feeds.tables import arrowcheck
from hogwild.feeds.tables.arrowchild import read_through
from hogwild.feeds.tagged.open import open_tagging
from hogwild.feeds.tagged.read import read_tagged
from reference.tfrecord import example, record

LENIENT: dict[str, Any] = {"bad_lines": "skip", "bad_share": 1.0, "invalid_utf8": "replace"}
BITS = 10


def feeds(form: str, valid: bytes, beside: bytes = b"", **options: Any) -> Callable[[Path], None]:
    """Read a file of this format for training, leniently, and for a model that was trained on the valid one.

    beside: a description of slots to read it by.
    """
    given = {"format": form, "cache": False, "hash_bits": BITS, **options}

    def config(path: Path, **more: Any) -> FeedConfig:
        if not beside:
            return FeedConfig(**given, **more)
        slots = path.parent / "given.slots.toml"
        slots.write_bytes(beside)
        return FeedConfig(**given, slots=str(slots), **more)

    @cache
    def schema() -> dict[str, Any]:
        with TemporaryDirectory() as directory:
            path = Path(directory) / "valid"
            path.write_bytes(valid)
            return open_feed(path, config(path)).schema

    def read(path: Path) -> None:
        errors = []
        for more in ({}, LENIENT):
            try:
                open_feed(path, config(path, **more)).check()
            except HogwildError as error:
                errors.append(error)
        try:
            open_feed(path, FeedConfig(**given, **LENIENT, unlabelled=True), schema()).check()
        except HogwildError as error:
            errors.append(error)
        if errors:
            raise errors[0]

    return read


def slots(path: Path) -> None:
    """The description of slots is what was changed."""
    data = path.parent / "data.txt"
    data.write_bytes(seedfiles.MULTISLOT)
    open_feed(data, FeedConfig(format="multislot", cache=False, slots=str(path))).check()


def example_slots(path: Path) -> None:
    """The same for TFRecord files."""
    data = path.parent / "data.tfrecord"
    data.write_bytes(seedfiles.examples(seedfiles.WORDS))
    open_feed(data, FeedConfig(format="tfrecord", cache=False, slots=str(path))).check()


def sealed(read: Callable[[Path], None]) -> Callable[[Path], None]:
    """Read a message as the only record of a file, with checksums that fit: else nothing behind them is tried."""

    def read_sealed(path: Path) -> None:
        path.write_bytes(record(path.read_bytes()))
        read(path)

    return read_sealed


def tagged(form: str) -> Callable[[Path], None]:
    """Read tagged text, and make features of it."""

    def read(path: Path) -> None:
        preset = "segmentation" if form == "segmented" else "chunking"
        lenient = TaggingConfig(format=form, cache=False, features=preset, **LENIENT)  # type: ignore[arg-type]
        errors = []
        try:
            check(read_tagged(path, TaggingConfig(format=form, cache=False)))  # type: ignore[arg-type]
        except HogwildError as error:
            errors.append(error)
        for with_tags in (True, False):
            try:
                check(read_tagged(path, lenient, with_tags=with_tags))
                open_tagging(path, lenient, with_tags=with_tags).check()
            except HogwildError as error:
                errors.append(error)
        if len(errors) == 3:
            raise errors[0]

    return read


def ratings(path: Path) -> None:
    """Read ratings, and for a model."""
    errors = []
    for config in (RatingConfig(cache=False), RatingConfig(cache=False, **LENIENT)):
        for names in ({}, {"users": ["1", "ann"], "items": ["31", "tea"], "with_ratings": False}):
            try:
                open_ratings(path, config, **names).check()  # type: ignore[arg-type]
            except HogwildError as error:
                errors.append(error)
    if len(errors) == 4:
        raise errors[0]


def corpus(path: Path) -> None:
    """Read running text, as it is and with phrases."""
    open_corpus(path, CorpusConfig(cache=False, min_count=1)).check()
    config = CorpusConfig(cache=False, min_count=2, phrases=1, phrase_threshold=0.1, phrase_min_count=0, lowercase=True,
                          invalid_utf8="replace", max_token=20)  # fmt: skip
    open_corpus(path, config).check()


def auto(path: Path) -> None:
    """Read a file whose name says nothing."""
    open_feed(path, FeedConfig(cache=False, hash_bits=BITS)).check()


def forked(read: Callable[[Path], None]) -> Callable[[Path], None]:
    """Read an Arrow file with a fork in place of the child that reads it through first: much faster.

    tests/feeds/tables/test_arrowcheck.py has the real one.
    """

    def judged(path: Path, patience: float) -> str:
        pid = os.fork()
        if pid == 0:
            signal.alarm(5)
            try:
                for _ in read_through(str(path)):
                    pass
                os._exit(0)
            except BaseException:
                os._exit(1)
        return "refused" if os.waitpid(pid, 0)[1] else ""

    def read_forked(path: Path) -> None:
        with patch.object(arrowcheck, "_judged", judged):
            read(path)

    return read_forked


def arrow_files() -> dict[str, bytes]:
    """The same table in files and streams."""
    return {
        "pets.arrow": seedfiles.arrow_file(seedfiles.PETS),
        "pets-zstd.arrow": seedfiles.arrow_file(seedfiles.PETS, "zstd"),
        "stream.arrow": seedfiles.arrow_stream(seedfiles.PETS),
        "stream-lz4.arrow": seedfiles.arrow_stream(seedfiles.PETS, "lz4"),
        "pets.feather": seedfiles.feather(seedfiles.PETS),
    }


def _targets() -> list[Target]:
    made = seedfiles

    def one(name: str, file: str, data: bytes, read: Callable[[Path], object]) -> Target:
        return Target(name, lambda: {file: data}, read, KEPT.get(name, ()))

    rows = made.parquet(made.ROWS)
    records = made.examples(made.NONZERO)
    words = made.examples(made.WORDS)
    lists = forked(feeds("arrow", made.arrow_file(made.ROWS)))
    return [
        one("svmlight", "a.svm", made.SVMLIGHT, feeds("svmlight", made.SVMLIGHT)),
        one("libfm", "a.libfm", made.LIBFM, feeds("libfm", made.LIBFM)),
        one("csv", "a.csv", made.CSV, feeds("csv", made.CSV)),
        one("csv-bare", "a.csv", made.SEMICOLONS, feeds("csv", made.SEMICOLONS)),
        one("csv-slots", "a.csv", made.CSV, feeds("csv", made.CSV, layout="slots")),
        one("csv-text", "a.csv", made.CSV, feeds("csv", made.CSV, text="kind", label="label", header="yes")),
        one("tsv", "a.tsv", made.TSV, feeds("tsv", made.TSV, categories="hash")),
        one("text", "a.txt", made.TEXT, feeds("text", made.TEXT)),
        one("fasttext", "a.txt", made.FASTTEXT, feeds("fasttext", made.FASTTEXT)),
        one("objects", "a.jsonl", made.OBJECTS, feeds("jsonl", made.OBJECTS, ignore=("note", "more"))),
        one("object-labels", "a.jsonl", made.OBJECT_LABELS, feeds("jsonl", made.OBJECT_LABELS, text="text")),
        one("multislot", "a.txt", made.MULTISLOT, feeds("multislot", made.MULTISLOT, made.SLOTS)),
        Target("slots", lambda: {"a.toml": made.SLOTS, "b.prototxt": made.DESCRIPTION}, slots, KEPT.get("slots", ())),
        one("example-slots", "a.toml", made.EXAMPLE_SLOTS, example_slots),
        one("criteo", "a.txt", made.CRITEO, feeds("criteo", made.CRITEO)),
        one("libffm", "a.ffm", made.LIBFFM, feeds("libffm", made.LIBFFM)),
        one("tfrecord", "a.tfrecord", records, feeds("tfrecord", records)),
        one("tfrecord-message", "a.tfrecord", example(made.NONZERO[0]), sealed(feeds("tfrecord", records))),
        one("tfrecord-slots", "a.tfrecord", words, feeds("tfrecord", words, made.EXAMPLE_SLOTS)),
        one("tfrecord-slots-message", "a.tfrecord", example(made.WORDS[0]),
            sealed(feeds("tfrecord", words, made.EXAMPLE_SLOTS))),
        one("conll", "a.conll", made.CONLL, tagged("conll")),
        one("conllu", "a.conllu", made.CONLLU, tagged("conllu")),
        one("segmented", "a.seg", made.SEGMENTED, tagged("segmented")),
        one("jsonl", "a.jsonl", made.JSONL, tagged("jsonl")),
        Target("ratings", lambda: {"a.csv": made.RATINGS, "b.dat": made.COLONS, "c.jsonl": made.OBJECT_RATINGS},
               ratings, KEPT.get("ratings", ())),
        one("lists", "a.txt", made.LISTS, ratings),
        one("corpus", "a.txt", made.CORPUS, corpus),
        Target("compressed", lambda: made.compressed(made.SVMLIGHT * 3), auto, KEPT.get("compressed", ())),
        Target(
            "auto",
            lambda: {"a": made.SVMLIGHT, "b": made.CSV, "c": made.TEXT, "d": made.CRITEO, "e": made.LIBFFM,
                     "f": records},
            auto,
            KEPT.get("auto", ()),
        ),
        Target("parquet", lambda: {"a.parquet": made.parquet(made.PETS), "b.parquet": made.parquet(made.PETS, "zstd"),
                                   "c.parquet": made.bare_parquet(made.PETS)},
               feeds("parquet", made.parquet(made.PETS)), KEPT.get("parquet", ())),
        Target("parquet-lists", lambda: {"a.parquet": rows, "c.parquet": made.bare_parquet(made.ROWS)},
               feeds("parquet", rows), KEPT.get("parquet-lists", ())),
        Target("arrow", arrow_files, forked(feeds("arrow", made.arrow_file(made.PETS))), KEPT.get("arrow", ())),
        one("arrow-lists", "a.arrow", made.arrow_file(made.ROWS), lists),
        Target("ratings-arrow", lambda: {"a.arrow": made.arrow_file(made.VOTES), "a.parquet": made.parquet(made.VOTES)},
               forked(ratings), KEPT.get("ratings-arrow", ())),
    ]  # fmt: skip


READERS = _targets()
