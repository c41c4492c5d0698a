"""Small models and checkpoints of every program, and what is done with one that is loaded."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np

from fuzz.recipes import open_seed
from hogwild.cli.apply import evaluate, export, inspect, predict, recommenders, words
from hogwild.cli.apply.options import ReadConfig, WriteConfig
from hogwild.config import CorpusConfig, DocumentConfig, FeedConfig, ShowConfig, SmallConfig, TaggingConfig, TrainConfig
from hogwild.executor.readers.checkpoint import KIND as CHECKPOINT
from hogwild.executor.readers.checkpoint import checkpoint_path, identity_of, load_checkpoint, save_checkpoint
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.corpus.documents import open_documents
from hogwild.feeds.corpus.open import open_corpus
from hogwild.feeds.open import open_feed
from hogwild.feeds.ratings.open import open_ratings
from hogwild.feeds.tagged.open import open_tagging
from hogwild.programs.recommender.program import MatrixFactorization
from hogwild.programs.saving.sealed import Sealed
from hogwild.programs.sparse.fm import FactorizationMachine
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.sparse.sparse_mlp import SparseMLP
from hogwild.programs.sparse.text_classifier import TextClassifier
from hogwild.programs.store import KIND as MODEL
from hogwild.programs.store import load_model, save_model
from hogwild.programs.taggers.crf import CRF
from hogwild.programs.words.doc2vec import Doc2Vec
from hogwild.programs.words.word2vec import Word2Vec

_SVMLIGHT = "".join(f"{k % 2} {1 + k % 5}:1 {7 + k % 3}:0.5\n" for k in range(40))
_TABLE = "label,city,n,m\n" + "".join(f"{'yno'[k % 3]},{'abcd'[k % 4]},{k},{k / 7:.3f}\n" for k in range(40))
_CLICKS = "label,city,ad,n\n" + "".join(f"{k % 2},{'abcd'[k % 4]},ad{k % 7},{k}\n" for k in range(40))
_SLOTS = "".join(f"1 {k % 2} 2 {k % 5} {k % 3} 1 {k % 7} 2 0.5 {k % 9}\n" for k in range(40))
SLOTS_TOML = "".join(
    f'[[slot]]\nname = "{name}"\ntype = "{kind}"\n{more}\n'
    for name, kind, more in (
        ("click", "uint64", "label = true"), ("site", "uint64", ""), ("ad", "uint64", ""),
        ("price", "float", "dense = true\nwidth = 2"),
    )
)  # fmt: skip
_TEXT = "".join(f"{'good' if k % 2 else 'bad'}\tword{k % 5} and word{k % 3}\n" for k in range(20))
_RATINGS = "user,item,rating\n" + "".join(f"u{k % 7},i{k % 5},{k % 5 + 1}\n" for k in range(35))
_PAIRS = "".join(f"u{k % 7} i{k * k % 5}\n" for k in range(35))
_TAGGED = "the DT B-NP\ndog NN I-NP\nruns VB O\n\na DT B-NP\nred JJ I-NP\nbird NN I-NP\n. . O\n\n" * 6
_WORDS = "the quick brown fox jumps over the lazy dog and runs\n" * 12


class Seed(NamedTuple):
    """A program without weights, the file that it learns from, and what opens it: a feed, and how it was read."""

    make: Callable[[], Any]
    file: str
    text: str
    open: Callable[[Path], tuple[Any, FeedConfig | None]]


def _feed(**options: Any) -> Callable[[Path], tuple[Any, FeedConfig | None]]:
    config = FeedConfig(cache=False, **options)
    return lambda path: (open_feed(path, config), config)


def _multislot(path: Path) -> tuple[Any, FeedConfig | None]:
    (path.parent / "slots.toml").write_text(SLOTS_TOML)
    return _feed(format="multislot", slots=str(path.parent / "slots.toml"), min_count=2)(path)


def _tagged(path: Path) -> tuple[Any, FeedConfig | None]:
    return open_tagging(path, TaggingConfig(cache=False)), None


def _words(path: Path) -> tuple[Any, FeedConfig | None]:
    return open_corpus(path, CorpusConfig(min_count=1, cache=False)), None


def _documents(path: Path) -> tuple[Any, FeedConfig | None]:
    return open_documents(path, DocumentConfig(min_count=1, cache=False)), None


SEEDS = {
    "linear": Seed(lambda: Linear(l2=1e-3), "a.svm", _SVMLIGHT, _feed(format="svmlight")),
    "linear-classes": Seed(Linear, "a.csv", _TABLE, _feed(min_count=2)),
    "fm": Seed(lambda: FactorizationMachine(dim=2), "a.csv", _CLICKS, _feed(categories="hash", hash_bits=4)),
    "ffm": Seed(lambda: FactorizationMachine(dim=2, field_aware=True), "a.csv", _CLICKS, _feed(layout="slots")),
    "mlp": Seed(lambda: SparseMLP(dim=2, hidden=(3,), wide=True), "a.txt", _SLOTS, _multislot),
    "text": Seed(lambda: TextClassifier(dim=4), "a.txt", _TEXT, _feed(format="text", hash_bits=6)),
    "ratings": Seed(lambda: MatrixFactorization(dim=2), "a.csv", _RATINGS, lambda path: (open_ratings(path), None)),
    "ranking": Seed(lambda: MatrixFactorization(dim=2), "a.txt", _PAIRS, lambda path: (open_ratings(path), None)),
    "crf": Seed(lambda: CRF(rich_edge_min_count=2, average=True), "a.txt", _TAGGED, _tagged),
    "word2vec": Seed(lambda: Word2Vec(dim=8), "a.txt", _WORDS, _words),
    "doc2vec": Seed(lambda: Doc2Vec(dim=4, dbow=True), "a.txt", _WORDS, _documents),
}
SMALL = {
    "text-small": ("text", SmallConfig(int8=True, pruned=0.5)),
    "fm-small": ("fm", SmallConfig(pruned=0.3)),
    "ratings-small": ("ratings", SmallConfig(int8=True)),
    "crf-small": ("crf", SmallConfig(half=True, pruned=2)),
    "word2vec-small": ("word2vec", SmallConfig(int8=True, pruned=1)),
}
"""Small models: the seed that each is made of, and how."""
RUN = {"epochs": 3, "threads": 2, "lr": 0.05, "sharing": "hot"}


@cache
def _home() -> Path:
    return Path(mkdtemp(prefix="hogwild-fuzz-"))


@cache
def learnt(name: str) -> tuple[Any, FeedConfig | None]:
    """The feed of a seed, and how it was read."""
    path = _home() / name / SEEDS[name].file
    path.parent.mkdir(exist_ok=True)
    path.write_text(SEEDS[name].text)
    return SEEDS[name].open(path)


@cache
def model(name: str) -> Sealed:
    """The first weights of a program, saved; nothing is trained. Those of a small one are drawn at random."""
    seed, small = SMALL.get(name, (name, None))
    feed, config = learnt(seed)
    program = SEEDS[seed].make()
    program.startup(feed, 1)
    program.finish(feed)
    if small is not None:
        draw = np.random.default_rng(7)
        for array in program.weights:
            array[:] = draw.normal(size=array.shape)
    path = _home() / f"{name}.model"
    labels = getattr(feed, "labels", ())
    save_model(path, program, feed_schema=feed.schema, feed_config=config, labels=labels, metrics={"loss": 0.5},
               small=small)  # fmt: skip
    return open_seed(path, MODEL)


@cache
def checkpoint(name: str) -> Sealed:
    """A run of a program that stands in its second epoch."""
    feed, _ = learnt(name)
    program, path = SEEDS[name].make(), _home() / name / "run"
    identity = _identity(name)
    executor = AsyncExecutor(**RUN)
    for event in executor.run(program, feed):
        if event.kind == "epoch":
            state = executor.state()
            save_checkpoint(path, program, state, identity)
            break
    return open_seed(checkpoint_path(path), CHECKPOINT)


@cache
def _identity(name: str) -> dict[str, Any]:
    return identity_of(SEEDS[name].make(), TrainConfig(**RUN), learnt(name)[0])


def go_on(name: str, output: Path) -> None:
    """Resume a run from its checkpoint."""
    feed, _ = learnt(name)
    found = load_checkpoint(output, SEEDS[name].make(), _identity(name))
    assert found is not None
    program, start = found
    executor = AsyncExecutor(**RUN)
    for _ in executor.run(program, feed, start=start):
        pass
    program.arrays()


def use(name: str, path: Path) -> None:
    """Whatever commands do with a model."""
    name = SMALL.get(name, (name,))[0]
    (path.parent / "slots.toml").write_text(SLOTS_TOML)
    data = str(_home() / name / SEEDS[name].file)
    show, read = ShowConfig(quiet=True), ReadConfig(cache=False)
    out, model = path.parent / "out", str(path)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        load_model(path)
        if name == "word2vec":
            words.run(words.Options(model, ("the", "dog"), show=show))
            tests = path.parent / "pairs.tsv"
            tests.write_text("the\tdog\t3\nfox\tdog\t8\n")
            evaluate.run(evaluate.Options(model, (str(tests),), show=show))
            export.run(export.Options(model, f"{out}.vec", show=show))
            export.run(export.Options(model, f"{out}.bin", show=show))
            return
        write = WriteConfig(output=str(out))
        predict.run(predict.Options(model, (data,), write=write, read=read, show=show))
        evaluate.run(evaluate.Options(model, (data,), read=read, show=show))
        export.run(export.Options(model, f"{out}.safetensors", show=show))
        if name in ("linear", "linear-classes", "crf"):
            inspect.run(inspect.Options(model, show=show))
        if name in ("ratings", "ranking"):
            what = recommenders.ListConfig(output=str(out))
            recommenders.run(recommenders.Options(model, ("u1", "nobody"), what, show))
