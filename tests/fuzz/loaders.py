"""Loaders as targets: models, checkpoints, options, vectors, tests of words."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from fuzz.harness import Target
from fuzz.keptloaders import KEPT
from fuzz.models import SEEDS, SLOTS_TOML, SMALL, checkpoint, go_on, model, use
from fuzz.recipes import apply_recipe, make_recipe, seed_of
from hogwild.cli.train.classifier import Options as ClassifierOptions
from hogwild.config.options import build, flags_of, read_toml, values_of
from hogwild.executor.readers.checkpoint import KIND as CHECKPOINT
from hogwild.executor.readers.checkpoint import checkpoint_path
from hogwild.feeds.slots.description import read_slots
from hogwild.programs.saving.sealed import decode_entries, read_sealed, write_sealed
from hogwild.programs.saving.tensors import decode
from hogwild.programs.store import KIND as MODEL
from hogwild.programs.words.evaluation import evaluate_test, read_tests
from hogwild.programs.words.subwords import Parts, Spelling, grams_of, mean_vectors
from hogwild.programs.words.vectors import Vectors

_RESUMED = ("linear", "crf", "ratings", "word2vec")


# -- models and checkpoints, behind the seal --


def _seeds(names: Sequence[str], try_it: Callable[[Path], object]) -> dict[str, bytes]:
    """A recipe without changes for each; tried here, where there is time to compile."""
    seeds = {f"{name}.json": json.dumps([["of", name]]).encode() for name in names}
    for name, recipe in seeds.items():
        with TemporaryDirectory() as home:
            (Path(home) / name).write_bytes(recipe)
            try_it(Path(home) / name)
    return seeds


def _change_model(data: bytes, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    return make_recipe(seed_of(data), model(seed_of(data)), random)


def _change_checkpoint(data: bytes, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    return make_recipe(seed_of(data), checkpoint(seed_of(data)), random)


def load_changed_model(recipe: Path) -> None:
    name, path = seed_of(recipe.read_bytes()), recipe.parent / "model"
    apply_recipe(recipe.read_bytes(), model(name), path, MODEL)
    use(name, path)


def resume_changed(recipe: Path) -> None:
    name, path = seed_of(recipe.read_bytes()), recipe.parent / "model"
    apply_recipe(recipe.read_bytes(), checkpoint(name), checkpoint_path(path), CHECKPOINT)
    go_on(name, path)


# -- the seal itself --


def _sealed() -> dict[str, bytes]:
    with TemporaryDirectory() as home:
        seed = model("linear-classes")
        write_sealed(Path(home) / "m", MODEL, {**seed.config, "words": [f"w{k}" for k in range(20)]}, seed.arrays)
        return {path.name: path.read_bytes() for path in sorted((Path(home) / "m").iterdir())}


def read_changed_file(path: Path) -> None:
    for name, content in _sealed().items():
        if name != path.name:
            (path.parent / name).write_bytes(content)
    if path.name.endswith(".safetensors"):
        decode(path.read_bytes(), str(path))
    elif path.name.endswith(".txt"):
        decode_entries(path.read_bytes(), str(path))
    read_sealed(path.parent, MODEL)


# -- options --

_TOML = b"""# options
epochs = 3
lr = 0.5
class_weight = {spam = 2.5, "ham" = 1}
numeric = ["a", 'b', "c"]
quiet = true
label = "y"
hash-bits = 0x10
output = '''model'''
"""


def read_options(path: Path) -> None:
    values = values_of(read_toml(str(path)), str(path), flags_of(ClassifierOptions))
    build(ClassifierOptions, values)


_DESCRIPTION = b"""name: "MultiSlotDataFeed"
batch_size: 32
multi_slot_desc {
  slots { name: "words" type: "uint64" is_dense: false is_used: true }
  slots { name: "price" type: "float" is_dense: true is_used: true shape: [-1, 2] }
  slots { name: "label" type: "uint64" is_dense: false is_used: true }
}
"""


def describe_slots(path: Path) -> None:
    read_slots(str(path))


# -- vectors and tests of words --

_VECTORS = b"4 3\nthe 0.5 1 -2\nof 1e-3 2 3\nnew york 1 2 3.0000000000000001\nx -1 -2 4\n"


def _vectors() -> dict[str, bytes]:
    words = b"".join(word + b" " + np.arange(3, dtype="<f4").tobytes() + b"\n" for word in (b"a", b"of", b"the"))
    binary = b"3 3\n" + words
    plain = _VECTORS.partition(b"\n")[2]
    packed = gzip.compress(_VECTORS, mtime=0)
    return {"a.vec": _VECTORS, "b.bin": binary, "c.txt": plain, "d.vec.gz": packed, "e": binary}


def _fasttext() -> dict[str, bytes]:
    """A model with subwords, plain and packed, and one without."""
    table = np.arange(60, dtype=np.float32).reshape(20, 3) / 7
    parts = Parts(Spelling(3, 6, 10), table[:4], table[4:14], table[14:18])
    words, found = ("the", "of", "größe", "x"), {}
    with TemporaryDirectory() as home:
        whole = Vectors(words, mean_vectors(grams_of(words, parts.spelling), parts.grams, parts.inputs), None, parts)
        for name, vectors in (("a.bin", whole), ("b.bin", Vectors(words, table[:4])), ("c.bin.gz", whole)):
            vectors.save(Path(home) / name, "fasttext")
            found[name] = (Path(home) / name).read_bytes()
    return found


def load_vectors(path: Path) -> None:
    vectors = Vectors.load(path)
    vectors.most_similar(vectors.words[0])
    vectors.get("unheard")
    vectors.save(path.parent / "out.bin")


def score_words(path: Path) -> None:
    vectors = Vectors(["the", "of", "and", "to", "in"], np.eye(5, 4))
    for test in read_tests((str(path),)):
        evaluate_test(vectors, test)


_PAIRS = b"# pairs\nword1\tword2\tscore\nthe\tof\t3.5\nand\tto\t1\nin\tthe\t0.25\n"
_ANALOGIES = b": one\nthe of and to\nin the of and\n: two\nto in the of\n"

LOADERS = [
    Target("model", lambda: _seeds((*SEEDS, *SMALL), load_changed_model), load_changed_model, change=_change_model),
    Target("checkpoint", lambda: _seeds(_RESUMED, resume_changed), resume_changed, change=_change_checkpoint),
    Target("sealed", _sealed, read_changed_file),
    Target("options", lambda: {"a.toml": _TOML}, read_options),
    Target("slot-description", lambda: {"a.toml": SLOTS_TOML.encode(), "a.txt": _DESCRIPTION}, describe_slots),
    Target("vectors", _vectors, load_vectors),
    Target("fasttext", _fasttext, load_vectors),
    Target("word-test", lambda: {"pairs.tsv": _PAIRS, "analogies.txt": _ANALOGIES}, score_words),
]
LOADERS = [replace(target, kept=KEPT.get(target.name, ())) for target in LOADERS]
