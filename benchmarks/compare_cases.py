"""What `compare_commits.py` runs: programs with their options, command lines, and data that is always the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RATES = {"sgd": 0.05, "momentum": 0.01, "adagrad": 0.1, "adam": 0.01, "ftrl": 0.1}
RUNS = (("serial", 1), ("round-robin", 2), ("round-robin", 3))
WITHOUT_RULES = ("word2vec", "own")  # programs that know no update rules
EPOCHS = 10  # of a run that is interrupted


LEVELS = ("core", "kinds", "all")  # how much is compiled


class Kind(NamedTuple):
    """A program with options, and the data that it is trained on.

    rule: the update rule that is compiled at the level `kinds`, empty: none is; core: also at the level `core`.
    """

    name: str
    data: str
    options: dict[str, Any]
    rule: str = ""
    core: bool = False


_MLP = {"dim": 8, "hidden": (8,), "batch_size": 16}
_SQUARED = {"loss": "squared"}
PROGRAMS: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "linear": ("Linear", (
        Kind("logistic", "two.svm", {"loss": "logistic"}, "adagrad", core=True),
        Kind("hinge", "two.svm", {"loss": "hinge"}, "sgd"),
        Kind("classes", "three.svm", {"loss": "logistic"}, "momentum"),
        Kind("hinge, classes", "three.svm", {"loss": "hinge"}, "ftrl"),
        Kind("squared", "number.svm", _SQUARED, "adam", core=True),
        Kind("penalties", "two.svm", {"l1": 1e-3, "l2": 1e-2}),
        Kind("no bias, balanced", "ones.svm", {"bias": False, "class_weight": "balanced"}),
        Kind("dense", "two.csv:dense", {}),
        Kind("table", "three.csv", {}),
    )),
    "fm": ("FactorizationMachine", (
        Kind("plain", "two.svm", {}, "adagrad", core=True),
        Kind("plain, squared", "number.svm", _SQUARED, "adam"),
        Kind("field-aware", "clicks.ffm", {"field_aware": True, "dim": 4}, "sgd", core=True),
        Kind("field-aware, squared", "number.csv:slots", {"field_aware": True, "dim": 4, **_SQUARED}, "ftrl"),
        Kind("penalties", "two.svm", {"l2": 1e-3, "l2_factors": 1e-2}),
        Kind("plain, slots", "two.csv:slots", {"dim": 3, "init_scale": 0.1}),
    )),
    "mlp": ("SparseMLP", (
        Kind("binary", "two.svm", _MLP, "adagrad"),
        Kind("classes", "three.svm", _MLP, "sgd"),
        Kind("squared", "number.svm", {**_MLP, **_SQUARED}),
        Kind("slots, binary", "two.csv:slots", _MLP, "adam", core=True),
        Kind("slots, classes", "three.csv:slots", _MLP),
        Kind("slots, squared", "number.csv:slots", {**_MLP, **_SQUARED}, "momentum"),
        Kind("slots, wide", "slots.txt", {**_MLP, "wide": True, "activation": "tanh", "combiner": "mean"}),
        Kind("slots, penalties", "slots.txt", {
            **_MLP, "lookup_activation": "relu", "l1": 1e-4, "l2": 1e-3, "combiner": "sqrtn",
        }),
    )),
    "mf": ("MatrixFactorization", (
        Kind("ratings", "ratings.csv", {"dim": 16}, "adagrad", core=True),
        Kind("bpr", "lists.txt", {"dim": 16, "loss": "bpr"}, "sgd", core=True),
        Kind("logistic", "lists.txt", {"dim": 16, "loss": "logistic"}, "adam"),
        Kind("no bias, shrink", "ratings.csv", {"dim": 5, "bias": False, "shrink": 1e-3, "l2": 0.0}),
    )),
    "text": ("TextClassifier", (
        Kind("words", "reviews.txt:words", {}, "sgd", core=True),
        Kind("bigrams", "reviews.txt:bigrams", {}, "sgd", core=True),
        Kind("bigrams, classes", "topics.txt:bigrams", {}, "adagrad"),
        Kind("counts, penalty", "topics.txt:words", {"dim": 5, "counts": True, "l2": 1e-3, "row_decay": 0.0}),
    )),
    "crf": ("CRF", (
        Kind("rich edges", "tagged.txt", {"rich_edge_min_count": 3}, "sgd", core=True),
        Kind("plain", "tagged.txt", {"rich_edges": False}, "adagrad"),
        Kind("all pairs, l1", "tagged.txt", {"rich_edge_min_count": 3, "rich_edge_pairs": "all", "l1": 0.1}),
        Kind("pieces, average", "tagged.txt", {"rich_edges": False, "structure_regularization": 2, "average": True}),
    )),
    "word2vec": ("Word2Vec", (
        Kind("skip-gram", "text.txt", {"dim": 16, "sample": 0}, "-", core=True),
        Kind("skip-gram, pairs", "text.txt", {"dim": 16, "sample": 0, "pair_negatives": True}, "-", core=True),
        Kind("cbow", "text.txt", {"dim": 16, "sample": 0, "cbow": True}, "-"),
        Kind("cbow, pairs", "text.txt", {"dim": 16, "sample": 0.01, "cbow": True, "pair_negatives": True}, "-"),
    )),
    "own": ("", (Kind("docs/guide-own.md", "", {}, "-", core=True),)),
}  # fmt: skip

# Models of the command line: program, what `train` gets, what the model is measured on.
TRAINED = {
    "linear": ("linear", "classifier data/two.svm --valid data/two-test.svm --lr 0.1", "data/two-test.svm"),
    "linear3": ("linear", "classifier data/three.svm --lr 0.1 --loss hinge --class-weight 1=2.0", "data/three.svm"),
    "number": ("linear", "classifier data/number.svm --lr 0.1 --loss squared --optimizer sgd", "data/number.svm"),
    "table": ("linear", "classifier data/three.csv --lr 0.1 --config options.toml", "data/three.csv"),
    "clicks": ("linear", "ctr data/slots.txt --lr 0.1 --model linear", "data/slots.txt"),
    "fm": ("fm", "classifier data/two.svm --model fm --lr 0.1", "data/two-test.svm"),
    "ffm": ("fm", "ctr data/clicks.ffm --model ffm --dim 4 --lr 0.1", "data/clicks.ffm"),
    "mlp": ("mlp", "classifier data/three.svm --model mlp --hidden 8 --batch-size 16 --dim 4", "data/three.svm"),
    "ctr": ("mlp", "ctr data/slots.txt --hidden 8 --batch-size 16 --dim 4", "data/slots.txt"),
    "deep": ("mlp", "ctr data/clicks.csv --label click --model wide-deep --hidden 8,4 --dim 4", "data/clicks.csv"),
    "ratings": ("mf", "recommender data/ratings.csv --valid data/ratings.csv --dim 4", "data/ratings.csv"),
    "lists": ("mf", "recommender data/lists.txt --dim 4 --loss bpr", "data/lists.txt"),
    "text": ("text", "classifier data/reviews.txt --model text --hash-bits 10 --dim 4", "data/reviews.txt"),
    "topics": ("text", "classifier data/topics.txt --model text --hash-bits 10 --ngrams 1 --dim 4", "data/topics.txt"),
    "tagger": ("crf", "tagger data/tagged.txt --rich-edge-min-count 3", "data/tagged.txt"),
    "plain": (
        "crf", "tagger data/tagged.txt --no-rich-edges --features pos --optimizer adagrad --lr 0.1", "data/tagged.txt",
    ),
    "words": ("word2vec", "word2vec data/text.txt --dim 4 --sample 0 --min-count 2", "pairs.tsv questions.txt"),
    "cbow": ("word2vec", "word2vec data/text.txt --dim 4 --sample 0 --min-count 2 --cbow", "pairs.tsv"),
}  # fmt: skip
WRONG = (
    "train classifier data/two.svm --epoch 2", "train classifier missing.svm", "train classifier data/two.svm --lr -1",
    "train classifier data/text.txt", "train tagger data/two.svm --features nothing", "train", "nothing", "--nothing",
    "train recommender data/lists.txt --loss squared", "train word2vec data/two.svm --dim 0", "inspect words",
    "evaluate data data/two.svm", "train classifier data/three.svm --model fm", "predict linear data/text.txt",
    "predict linear data/two.svm --json", "neighbors words nobody", "recommend linear 1", "export linear a.vec",
    "cache burn", "train classifier data/two.svm --resume", "make-dataset sparse --rows 0",
    "train ctr data/three.svm --model ffm",
)  # fmt: skip
HELP = (
    "train classifier", "train ctr", "train recommender", "train tagger", "train word2vec", "evaluate", "predict",
    "recommend", "inspect", "neighbors", "export", "make-dataset sparse", "make-dataset clicks", "make-dataset ratings",
    "experiment asyngrad", "cache", "demo", "completion", "",
)  # fmt: skip


class Command(NamedTuple):
    """A command line; `uses`: it reads models, and NEW repeats it with those of OLD; `same`: its values repeat."""

    program: str
    line: str
    uses: bool = False
    same: bool = True


def commands() -> Iterator[Command]:
    """All command lines, in an order in which each finds what it needs."""
    sparse = "make-dataset sparse --rows 40 --features 30 --nonzeros 2:8 --json"
    clicks = "make-dataset clicks --rows 40 --features 60 --slots 4 --numbers 2 --json"
    ratings = "make-dataset ratings --users 20 --items 30 --json"
    for form in ("svmlight", "tfrecord", "multislot", "parquet"):
        yield Command("other", f"{sparse} --format {form} --output sparse.{form}")
    for form in ("multislot", "tfrecord", "parquet", "csv", "libffm"):
        yield Command("other", f"{clicks} --format {form} --output clicks.{form}")
    yield Command("other", f"{clicks} --format criteo --slots 26 --numbers 13 --output clicks.criteo")
    yield Command("other", f"{ratings} --rows 200 --output made.csv")
    yield Command("other", f"{ratings} --rows 60 --format lists --output made.txt")
    for model, (program, words, test) in TRAINED.items():
        yield Command(program, f"train {words} --mode serial --epochs 2 --output {model} --json")
        yield Command(program, f"train {words} --mode serial --epochs {EPOCHS} --output {model}-whole --quiet")
        yield Command(program, f"evaluate {model} {test} --json", uses=True)
        if program != "word2vec":
            yield Command(program, f"predict {model} {test} --output {model}.predicted --json", uses=True)
        if program in ("fm", "text", "crf", "mlp") or model == "linear":
            yield Command(program, f"predict {model} {test} --proba --output {model}.chances --json", uses=True)
        yield Command(program, f"export {model} {model}.safetensors --json", uses=True)
    yield Command("linear", "inspect linear --json --top 5", uses=True)
    yield Command("linear", "inspect table --json", uses=True)
    yield Command("crf", "inspect tagger --json --top 5", uses=True)
    yield Command("crf", "predict tagger data/tagged.txt --nbest 2 --constrain --output best.txt --json", uses=True)
    yield Command("mf", "recommend lists 1 2 nobody --top 3 --json", uses=True)
    yield Command("mf", "recommend ratings 1 --seen --json", uses=True)
    yield Command("word2vec", "neighbors words w1 w2 --topn 3 --json", uses=True)
    yield Command("word2vec", "neighbors words w1 w2 --minus w3 --json", uses=True)
    yield Command("word2vec", "export words words.vec --json", uses=True)
    yield Command("word2vec", "export words words.bin --json", uses=True)
    grow = "train word2vec data/text.txt --dim 4 --sample 0 --min-count 1 --mode serial --epochs 1"
    yield Command("word2vec", f"{grow} --start words --output grown --json", uses=True)
    train = "train classifier data/two.svm --json"
    told = "--trace --profile p.json --log-dir log --watch bias"
    yield Command("linear", f"{train} --mode serial --epochs 2 --output calibrated")
    yield Command("linear", f"{train} --mode round-robin --epochs 2 --threads 2 --trace --lr 0.1 --output turns")
    yield Command("linear", f"{train} --epochs 2 --threads 2 --sharing all --lr 0.1 {told}", same=False)
    tagged = "--train data/tagged.txt --test data/tagged.txt"
    asked = "--threads 1 2 --epochs 1 --seeds 1 --no-rich-edges --output e.json --json"
    yield Command("crf", f"experiment asyngrad {tagged} {asked}", same=False)
    yield Command("other", "demo --rows 1000 --epochs 1 --words 1000 --dim 4 --json", same=False)
    yield Command("other", "cache --json", same=False)
    yield Command("other", "cache path --json", same=False)
    yield Command("other", "cache clear --feeds --json", same=False)


# -- made data ------------------------------------------------------------------------------------------------------


def make_data(folder: Path, rows: int) -> None:
    """Files of all kinds."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(7)
    _make_sparse(folder, rows, draw)
    _make_tables(folder, rows, draw)
    _make_clicks(folder, rows, draw)
    users, items = draw.integers(0, 12, 2 * rows), draw.integers(0, 15, 2 * rows)
    pairs = sorted(set(zip(users.tolist(), items.tolist(), strict=True)))
    write(folder / "ratings.csv", ["user,item,rating", *(f"{u},{i},{1 + (u * i) % 9 / 2}" for u, i in pairs)])
    have = {user: " ".join(f"i{i}" for u, i in pairs if u == user and i % 3) for user in range(12)}
    write(folder / "lists.txt", [f"{user} {items}" for user, items in have.items() if items])
    for name, classes in (("reviews", 2), ("topics", 3), ("text", 0)):
        lines = []
        for _ in range(rows):
            label = int(draw.integers(classes)) if classes else 1
            words = (80 * draw.random(draw.integers(4, 20)) ** (1 + label)).astype(int)
            lines.append((f"class{label}\t" if classes else "") + " ".join(f"w{k}" for k in words))
        write(folder / f"{name}.txt", lines)
    write(folder / "tagged.txt", _tagged(rows // 3, draw))


def _make_sparse(folder: Path, rows: int, draw: np.random.Generator) -> None:
    truth = draw.normal(size=(60, 3))
    for name in ("two", "two-test", "three", "number", "ones"):
        lines = []
        for _ in range(rows):
            ids = np.sort(draw.choice(60, draw.integers(4, 30), replace=False))
            values = np.ones(len(ids)) if name == "ones" else draw.random(len(ids)).round(4)
            scores = values @ truth[ids]
            label = {"three": int(scores.argmax()), "number": round(scores[0], 4)}.get(name, 2 * int(scores[0] > 0) - 1)
            lines.append(f"{label} " + " ".join(f"{i + 1}:{v:g}" for i, v in zip(ids, values, strict=True)))
        write(folder / f"{name}.svm", lines)


def _make_tables(folder: Path, rows: int, draw: np.random.Generator) -> None:
    for name in ("two", "three", "number", "clicks"):
        lines = ["click,a,b,x,y" if name == "clicks" else "label,a,b,x,y"]
        for _ in range(rows):
            a, b, (x, y) = int(draw.integers(12)), int(draw.integers(20)), draw.normal(size=2).round(4)
            score = round(a % 3 + (b % 2) * x + 0.3 * y, 4)
            high = int(score > 1)
            label = {"two": "ny"[high], "three": "pqr"[(a + b) % 3], "number": score, "clicks": high}[name]
            lines.append(f"{label},a{a},b{b},{x},{y}")
        write(folder / f"{name}.csv", lines)


def _make_clicks(folder: Path, rows: int, draw: np.random.Generator) -> None:
    lines, fields = [], []
    for _ in range(rows):
        slots = [sorted(set(draw.integers(0, 20, draw.integers(0, 4)).tolist())) for _ in range(3)]
        label = int(draw.integers(2))
        counted = [" ".join(map(str, (len(ids), *ids))) for ids in slots]
        lines.append(f"{' '.join(counted)} 1 {draw.random():.4f} 1 {label}")
        fields.append(f"{label} 0:0:1 " + " ".join(f"{s + 1}:{20 * s + i + 1}:1" for s in range(3) for i in slots[s]))
    write(folder / "slots.txt", lines)
    write(folder / "clicks.ffm", [line.strip() for line in fields])
    kinds = {"s1": "", "s2": "", "s3": "", "price": "dense = true", "click": "label = true"}
    about = [
        "\n".join(("[[slot]]", f'name = "{name}"', 'type = "float"' if name == "price" else 'type = "uint64"', more))
        for name, more in kinds.items()
    ]
    write(folder / "slots.slots.toml", about)


def _tagged(sentences: int, draw: np.random.Generator) -> Iterator[str]:
    """Lines of word, part of speech and tag of a phrase."""
    parts = {"NP": ("DT", "JJ", "NN"), "VP": ("NN", "MD", "VB"), "O": (".",)}
    for _ in range(sentences):
        for phrase in ("NP", "VP", "NP", "O")[int(draw.integers(2)) :]:
            for place in range(int(draw.integers(1, 4)) if phrase != "O" else 1):
                pos = parts[phrase][int(draw.integers(len(parts[phrase])))]
                tag = phrase if phrase == "O" else f"{'I' if place else 'B'}-{phrase}"
                yield f"{pos.lower()}{int(draw.integers(6))} {pos} {tag}"
        yield ""


def write(path: Path, lines: Iterable[str]) -> None:
    """A file of lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
