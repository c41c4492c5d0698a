"""Hogwild: many workers train one shared set of parameters without locks."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names and the modules that hold them, imported when first used: `import hogwild` is light.
_HOMES = {
    "AsyncExecutor": "executor.run",
    "CRF": "programs.crf",
    "ConfigError": "errors",
    "Corpus": "feeds.corpus",
    "CorpusConfig": "config",
    "CustomProgram": "programs.custom",
    "ExampleNames": "feeds.tfrecordout",
    "FactorizationMachine": "programs.fm",
    "Feed": "feeds.feed",
    "FeedConfig": "config",
    "HogwildClassifier": "estimators.linear",
    "HogwildError": "errors",
    "HogwildRegressor": "estimators.linear",
    "InputError": "errors",
    "Linear": "programs.linear",
    "MatrixFactorization": "programs.matrix_factorization",
    "Profile": "observe.profile",
    "RatingConfig": "config",
    "RatingFeed": "feeds.ratings",
    "Room": "arrays",
    "Scratch": "arrays",
    "Step": "arrays",
    "Table": "arrays",
    "TagScores": "programs.scorecard",
    "TaggedText": "feeds.taggedtext",
    "TaggingConfig": "config",
    "TaggingFeed": "feeds.tagging",
    "TextClassifier": "programs.text_classifier",
    "TrainConfig": "config",
    "UnknownWordError": "errors",
    "Vectors": "programs.vectors",
    "Watch": "executor.watch",
    "SparseMLP": "programs.sparse_mlp",
    "Word2Vec": "programs.word2vec",
    "apply_of": "kernels.task",
    "async_executor": "executor.train",
    "chunks_of": "programs.chunks",
    "corpus_of": "feeds.corpusreader",
    "feed_of": "feeds.memory",
    "fused_of": "kernels.task",
    "gradient_of": "kernels.task",
    "load_model": "programs.store",
    "open_corpus": "feeds.corpusreader",
    "open_feed": "feeds.reader",
    "open_ratings": "feeds.ratingreader",
    "open_tagging": "feeds.taggingreader",
    "ratings_of": "feeds.ratingreader",
    "read_tagged": "feeds.taggedreader",
    "save_model": "programs.store",
    "score_tags": "programs.tagscores",
    "tagging_of": "feeds.tagginglists",
    "train": "executor.train",
    "write_tagged": "feeds.taggedwriter",
    "write_tfrecord": "feeds.tfrecordout",
}

_MODULES = {"theory": "observe.theory"}  # public under a shorter name

__all__ = sorted([*_HOMES, *_MODULES, "__version__"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    value: Any
    if name in _HOMES:
        value = getattr(importlib.import_module(f"hogwild.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"hogwild.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'hogwild' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
