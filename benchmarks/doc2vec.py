"""Vectors of documents against gensim: words a second, in turns, and how well a linear classifier tells their labels.

Reviews of IMDB, lower-cased, words and signs apart. Each system trains all epochs in each round, with the same options,
in turns; the best round counts for speed, and the mean over rounds (seeds) for quality. Seconds are those of training,
without vocabulary and compiler. The classifier (logistic regression) learns from the vectors of half of the reviews; it
is tested on those of the other half, which were trained too without their labels (`trained`), and on vectors that are
inferred for reviews that were never seen (`inferred`).
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import re
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hogwild
from hogwild.executor.events import Finished

HOME = Path(__file__).resolve().parents[2] / "shared" / "data" / "imdb"
MODELS: dict[str, dict[str, Any]] = {"dm": {}, "dbow": {"dbow": True}, "dbow + words": {"dbow": True, "words": True}}
GENSIM: dict[str, dict[str, Any]] = {
    "dm": {"dm": 1, "alpha": 0.05},
    "dbow": {"dm": 0, "alpha": 0.025},
    "dbow + words": {"dm": 0, "dbow_words": 1, "alpha": 0.025},
}
DIM, WINDOW, NEGATIVES, LEAST = 100, 5, 5, 5


class Reviews(NamedTuple):
    """Texts to train on, in a file of lines too, with labels; and new ones."""

    path: Path
    texts: list[str]
    labels: Any
    new: list[str]
    new_labels: Any


class Result(NamedTuple):
    """Words a second of training, documents a second of inference, and accuracies."""

    words: float
    documents: float
    trained: float
    inferred: float


def read(name: str, count: int) -> tuple[list[str], Any]:
    """So many reviews in one fixed random order, and their labels."""
    with lzma.open(HOME / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        fields = file.readline().rstrip("\n").split("\t")
        rows = [line.rstrip("\n").split("\t") for line in file]
    text, label = fields.index("text"), fields.index("label")
    chosen = np.random.default_rng(0).permutation(len(rows))[:count].tolist()
    texts = [" ".join(re.findall(r"\w+|[^\w\s]", rows[k][text].lower())) for k in chosen]
    return texts, np.array([int(rows[k][label]) for k in chosen])


def accuracies(vectors: Any, labels: Any, new: Any, new_labels: Any) -> tuple[float, float]:
    """Of a classifier that has learnt from the first half: on the second half, and on new ones."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    half = len(labels) // 2
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(vectors[:half], labels[:half])
    return float(model.score(vectors[half:], labels[half:])), float(model.score(new, new_labels))


def ours(reviews: Reviews, model: str, epochs: int, sample: float, seed: int, threads: int = 2) -> Result:
    """Train and infer with hogwild."""
    feed = hogwild.open_documents(reviews.path, hogwild.DocumentConfig(min_count=LEAST))
    program = hogwild.Doc2Vec(dim=DIM, window=WINDOW, negatives=NEGATIVES, sample=sample, **MODELS[model])
    executor = hogwild.AsyncExecutor(
        threads=threads, epochs=epochs, seed=seed, lr=program.rate, lr_end=0.17, shuffle=False, sharing="all"
    )
    for event in executor.run(program, feed):
        if isinstance(event, Finished):
            seconds = event.train_seconds
    program.infer(reviews.new[0])  # compiles
    begun = time.perf_counter()
    new, _ = program.infer_all(reviews.new, epochs=epochs, threads=threads)
    took = time.perf_counter() - begun
    matrix = program.documents.matrix
    scores = accuracies(matrix, reviews.labels, new, reviews.new_labels)
    return Result(feed.total * epochs / seconds, len(reviews.new) / took, *scores)


def gensim(reviews: Reviews, model: str, epochs: int, sample: float, seed: int) -> Result:
    """Train and infer with gensim; it infers one text at a time, in one thread."""
    from gensim.models.doc2vec import Doc2Vec

    peer = Doc2Vec(
        vector_size=DIM, window=WINDOW, negative=NEGATIVES, min_count=LEAST, sample=sample, epochs=epochs, seed=seed,
        workers=2, hs=0, **GENSIM[model],
    )  # fmt: skip
    peer.build_vocab(corpus_file=str(reviews.path))
    begun = time.perf_counter()
    peer.train(
        corpus_file=str(reviews.path), total_examples=peer.corpus_count, total_words=peer.corpus_total_words,
        epochs=epochs,
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    new = np.array([peer.infer_vector(text.split(), epochs=epochs) for text in reviews.new])
    took = time.perf_counter() - begun
    scores = accuracies(peer.dv.vectors, reviews.labels, new, reviews.new_labels)
    return Result(peer.corpus_total_words * epochs / seconds, len(reviews.new) / took, *scores)


def main() -> None:
    """Print tables; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=25_000, help="reviews to train on")
    parser.add_argument("--new", type=int, default=2_000, help="reviews to infer vectors of")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--sample", type=float, default=1e-4, help="share from which on words are left out, of both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    if not HOME.is_dir():
        raise SystemExit(f"{HOME} is not there: this benchmark needs its reviews.")
    found: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), **vars(options), "models": {}}
    with tempfile.TemporaryDirectory() as directory:
        texts, labels = read("train", options.documents)
        path = Path(directory) / "reviews.txt"
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        reviews = Reviews(path, texts, labels, *read("test", options.new))
        for model in options.models:
            rounds: dict[str, list[Result]] = {"hogwild": [], "gensim": []}
            for seed in range(1, options.rounds + 1):
                rounds["hogwild"].append(ours(reviews, model, options.epochs, options.sample, seed))
                rounds["gensim"].append(gensim(reviews, model, options.epochs, options.sample, seed))
            found["models"][model] = {name: [result._asdict() for result in each] for name, each in rounds.items()}
            show(model, rounds)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


def show(model: str, rounds: dict[str, list[Result]]) -> None:
    """The best speeds, the mean accuracies."""
    print(model, flush=True)
    peer = max(result.words for result in rounds["gensim"])
    for name, each in rounds.items():
        words, documents = max(result.words for result in each), max(result.documents for result in each)
        trained, inferred = (np.mean([getattr(result, kind) for result in each]) for kind in ("trained", "inferred"))
        print(
            f"  {name:8} {words / 1e6:6.2f} million words/s {words / peer:5.2f}x, infers {documents:7.0f} texts/s, "
            f"accuracy {trained:.4f} trained, {inferred:.4f} inferred",
            flush=True,
        )


if __name__ == "__main__":
    main()
