"""Hogwild: many workers train one shared set of parameters without locks."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names and the modules that hold them, imported when first used: `import hogwild` is light.
_HOMES = {
    "AsyncExecutor": "executor.run",
    "BiLSTM": "programs.taggers.bilstm",
    "CRF": "programs.taggers.crf",
    "CompiledProgram": "programs.program",
    "ClusterError": "errors",
    "ConfigError": "errors",
    "Corpus": "feeds.corpus.feed",
    "CorpusConfig": "config",
    "CustomProgram": "programs.custom",
    "DenseParameters": "arrays",
    "DivergedError": "errors",
    "Doc2Vec": "programs.words.doc2vec",
    "DocumentConfig": "config",
    "Documents": "feeds.corpus.documents",
    "ExampleNames": "feeds.tfrecord.write",
    "FactorizationMachine": "programs.sparse.fm",
    "Feed": "feeds.sparse.feed",
    "FeedConfig": "config",
    "HogwildClassifier": "estimators.linear",
    "HogwildError": "errors",
    "HogwildRegressor": "estimators.linear",
    "HogwildWarning": "errors",
    "InputError": "errors",
    "JoinError": "errors",
    "Linear": "programs.sparse.linear",
    "MatrixFactorization": "programs.recommender.program",
    "Model": "programs.store",
    "ModelError": "errors",
    "Profile": "observe.profile",
    "Program": "programs.program",
    "RatingConfig": "config",
    "RatingFeed": "feeds.ratings.feed",
    "RescuedError": "errors",
    "Room": "arrays",
    "SaveError": "errors",
    "Scratch": "arrays",
    "SmallConfig": "config",
    "Step": "arrays",
    "Table": "arrays",
    "TagScores": "programs.taggers.scores",
    "TaggedText": "feeds.tagged.text",
    "TaggingConfig": "config",
    "TaggingFeed": "feeds.tagged.feed",
    "TextClassifier": "programs.sparse.text_classifier",
    "TrainConfig": "config",
    "UnknownNameError": "errors",
    "UnknownWordError": "errors",
    "Vectors": "programs.words.vectors",
    "Watch": "executor.readers.watch",
    "SparseMLP": "programs.sparse.sparse_mlp",
    "Word2Vec": "programs.words.word2vec",
    "WorkerError": "errors",
    "apply_of": "kernels.loop.task",
    "async_executor": "executor.train",
    "chunks_of": "feeds.tagged.schemes",
    "convert_tags": "feeds.tagged.schemes",
    "corpus_of": "feeds.corpus.open",
    "documents_of": "feeds.corpus.documents",
    "explain": "programs.inspecting.model",
    "feed_of": "feeds.memory",
    "fused_of": "kernels.loop.task",
    "gradient_of": "kernels.loop.task",
    "inspect": "programs.inspecting.model",
    "load_model": "programs.store",
    "make_dense": "kernels.optim.rules",
    "open_corpus": "feeds.corpus.open",
    "open_documents": "feeds.corpus.documents",
    "open_feed": "feeds.open",
    "open_ratings": "feeds.ratings.open",
    "open_tagging": "feeds.tagged.open",
    "ratings_of": "feeds.ratings.open",
    "read_tagged": "feeds.tagged.read",
    "save_model": "programs.store",
    "score_tags": "programs.taggers.scores",
    "simulate": "executor.virtual.simulate",
    "step_dense": "kernels.optim.rules",
    "tagging_of": "feeds.tagged.lists",
    "train": "executor.train",
    "tune": "executor.search.tune",
    "write_tagged": "feeds.tagged.write",
    "write_tfrecord": "feeds.tfrecord.write",
}

_MODULES = {
    "cluster": "cluster", "estimators": "estimators", "pytorch": "pytorch",
    "theory": "observe.theory",  # by a shorter name
}  # fmt: skip

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
