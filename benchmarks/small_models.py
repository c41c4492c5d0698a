"""What small models cost: bytes and quality of half, int8 and pruned models of every kind, beside the whole model.

    python benchmarks/small_models.py --work DIR [--only text,crf]

Models are trained by the command line into DIR, once: what stands there is used again. Data: ../shared/data, and clicks
that are made here. `bfloat16` is not offered: its row is the model with all cells rounded to it, beside float16.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.cli.apply.evaluate import measure
from hogwild.cli.main import main as hogwild
from hogwild.config import SmallConfig
from hogwild.programs.store import load_model, save_model

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REVIEWS = ("--text", "text", "--label", "label", "--ignore", "rating,id")
BEST = ("--valid-share", "0.1")  # the best epoch: what was learnt by heart would be better without any rows
WIKI = 60_000_000  # bytes of text for word vectors
TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {  # how trained, on what measured, metrics
    "text": (
        ("classifier", "imdb/train.tsv.xz", "--model", "text", *REVIEWS), ("imdb/test.tsv.xz",), ("accuracy", "loss")
    ),
    "linear": (("classifier", "imdb/train.tsv.xz", *REVIEWS), ("imdb/test.tsv.xz",), ("accuracy", "loss")),
    "ctr": (("ctr", "WORK/clicks.txt", *BEST), ("WORK/clicks-test.txt",), ("auc", "loss")),
    "fm": (("ctr", "WORK/clicks.txt", "--model", "fm", *BEST), ("WORK/clicks-test.txt",), ("auc", "loss")),
    "crf": (("tagger", "conll2000/train.txt.xz", "--features", "chunking"), ("conll2000/test.txt.xz",), ("f1", "loss")),
    "rec": (("recommender", "gowalla/train.txt.xz"), ("gowalla/test.txt.xz",), ("ndcg@20", "recall@20")),
    "words": (
        ("word2vec", "WORK/wiki.txt"),
        ("wordsim/EN-WS-353-ALL.txt", "wordsim/EN-MEN-TR-3k.txt", "wordsim/questions-words.txt.xz"),
        ("spearman", "analogy", "known"),
    ),
}  # fmt: skip
VARIANTS = {
    "half": SmallConfig(half=True), "int8": SmallConfig(int8=True), "pruned 0.5": SmallConfig(pruned=0.5),
    "pruned 0.9": SmallConfig(pruned=0.9), "int8, pruned 0.5": SmallConfig(int8=True, pruned=0.5),
    "int8, pruned 0.9": SmallConfig(int8=True, pruned=0.9),
}  # fmt: skip
WHOLE = ("rec",)  # models that need all their rows


def made(work: Path) -> None:
    """The data that are not there: clicks, and a part of the text."""
    for name, rows, part in (("clicks.txt", 300_000, 0), ("clicks-test.txt", 50_000, 1)):
        if not (work / name).exists():
            what = ("--rows", str(rows), "--part", str(part), "--format", "multislot")
            hogwild(["make-dataset", "clicks", *what, "--output", str(work / name), "--quiet"])
    if not (work / "wiki.txt").exists():
        with lzma.open(DATA / "wiki" / "wiki100m.txt.xz") as text:
            (work / "wiki.txt").write_bytes(text.read(WIKI))


def placed(word: str, work: Path) -> str:
    """A file of the data, or of the place of work."""
    if word.startswith("WORK/"):
        return str(work / word.removeprefix("WORK/"))
    return str(DATA / word) if (DATA / word).is_file() else word


def size_of(model: Path) -> int:
    """Bytes of its files."""
    return sum(file.stat().st_size for file in model.iterdir())


def save_rounded(source: Path, output: Path) -> None:
    """The model with cells of bfloat16, stored as float32: the upper half of the bits, rounded to even."""
    model = load_model(source)
    arrays = dict(model.program.arrays())
    for name, array in arrays.items():
        if array.dtype == np.float32:
            bits = np.ascontiguousarray(array).view(np.uint32)
            arrays[name] = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    model.program.restore(arrays)
    save_model(output, model.program, feed_schema=model.schema, feed_config=model.feed_config, labels=model.labels)


def rows_of(name: str, work: Path) -> list[dict[str, Any]]:
    """The model and its small ones, measured."""
    training, files, metrics = TASKS[name]
    model, tests = work / name, tuple(placed(file, work) for file in files)
    if not model.exists():
        hogwild(["train", *(placed(word, work) for word in training), "--output", str(model), "--quiet"])
    found = []

    def add(variant: str, path: Path, bytes_of: int | None) -> None:
        measured = measure(str(path), tests)
        found.append({"model": name, "as": variant, "bytes": bytes_of, **{key: measured[key] for key in metrics}})
        print(json.dumps(found[-1]), flush=True)

    add("float32", model, size_of(model))
    save_rounded(model, work / "small")
    add("bfloat16", work / "small", None)
    loaded = load_model(model)
    for variant, small in VARIANTS.items():
        if small.pruned and name in WHOLE:
            continue
        save_model(
            work / "small", loaded.program, feed_schema=loaded.schema, feed_config=loaded.feed_config,
            labels=loaded.labels, small=small,
        )  # fmt: skip
        add(variant, work / "small", size_of(work / "small"))
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default=",".join(TASKS))
    given = parser.parse_args()
    given.work.mkdir(exist_ok=True)
    made(given.work)
    for name in given.only.split(","):
        rows = rows_of(name, given.work)
        metrics = TASKS[name][2]
        whole = rows[0]["bytes"]
        print(f"\n| {name} | MB | | {' | '.join(metrics)} |\n|---|---|---|{'---|' * len(metrics)}")
        for row in rows:
            size = "" if row["bytes"] is None else f"{row['bytes'] / 1e6:.2f}"
            times = "" if row["bytes"] is None else f"{whole / row['bytes']:.1f}x"
            print(f"| {row['as']} | {size} | {times} | {' | '.join(f'{row[key]:.4f}' for key in metrics)} |")


if __name__ == "__main__":
    main()
