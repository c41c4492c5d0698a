"""Small models of words, saved as a trained Word2Vec is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hogwild.programs.saving.sealed import write_sealed


def random_vectors(words: int, dim: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Normal vectors of different lengths."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(words, dim)) * rng.uniform(0.1, 5, size=(words, 1))).astype(np.float32)


def save_words(path: Path, words: Sequence[str], matrix: npt.ArrayLike, **changed: Any) -> Path:
    """The directory of a model with these vectors."""
    vectors = np.asarray(matrix, np.float32)
    config = {
        "program": "word2vec",
        "options": {"dim": vectors.shape[1], "words": list(words)},
        "labels": [],
        "metrics": {},
        "feed": None,
        "schema": {},
    }
    arrays = {"vectors": vectors, "outputs": np.zeros_like(vectors), "counts": np.arange(len(vectors), 0, -1)}
    write_sealed(path, "model", {**config, **changed}, {"weights.safetensors": arrays})
    return path


def gensim_vectors() -> Any:
    """gensim's class of word vectors; where there is no gensim, as on Python 3.14, the test is skipped."""
    return pytest.importorskip("gensim.models", reason="gensim is not installed").KeyedVectors
