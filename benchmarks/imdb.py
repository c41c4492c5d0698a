"""The IMDB problem of the benchmarks: reviews as hashed words and pairs of words, scaled to length one."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hogwild.config import cache_home

FEATURES = 1 << 20
HOME = Path(__file__).resolve().parents[2] / "shared" / "data" / "imdb"


class Split(NamedTuple):
    """Rows (CSR, float32) and labels (-1 or 1) to train on, and others to test on."""

    rows: Any
    labels: Any
    test_rows: Any
    test_labels: Any


def load_imdb(home: Path = HOME) -> Split | None:
    """Train and test rows, in one fixed random order; None if the data is not there. Hashed once, then kept."""
    if not (home / "train.tsv.xz").exists():
        return None
    return Split(*_part(home, "train"), *_part(home, "test"))


def _part(home: Path, name: str) -> tuple[Any, Any]:
    kept = cache_home() / "benchmarks" / f"imdb-{name}-{FEATURES}.npz"
    if not kept.exists():
        rows, labels = _hash(home / f"{name}.tsv.xz")
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_suffix(f".{os.getpid()}.npz")
        np.savez(beside, data=rows.data, indices=rows.indices, indptr=rows.indptr, labels=labels)
        beside.replace(kept)
    with np.load(kept) as file:
        rows = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=(len(file["labels"]), FEATURES))
        return rows, file["labels"]


def _hash(path: Path) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import HashingVectorizer

    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        names = file.readline().rstrip("\n").split("\t")
        fields = [line.rstrip("\n").split("\t") for line in file]
    label, text = names.index("label"), names.index("text")
    hashing = HashingVectorizer(ngram_range=(1, 2), n_features=FEATURES, alternate_sign=False, dtype=np.float32)
    rows = hashing.transform([row[text] for row in fields])
    labels = np.array([1 if row[label] == "1" else -1 for row in fields], np.float32)
    # The file is sorted by label. Peers that read rows in the order of the file would learn nothing from that.
    order = np.random.default_rng(0).permutation(len(labels))
    return rows[order], labels[order]
