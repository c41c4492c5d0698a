"""Bi-LSTM taggers against PyTorch's: tokens a second, and quality after equal epochs.

CoNLL-2000, words only (in lower case), the same sizes, update rule and batches. PyTorch (bilstm_peer.py) is padded and
packed, one process with 2 threads and two Hogwild processes with one thread, in float32 and, where the CPU has products
of it, bfloat16. Systems take turns, each run in a process of its own with a limit of time; medians count. Seconds are
those of training alone, after some steps that are not counted: without compiling, reading and measuring. On a machine
that has other work to do the figures say nothing: two threads of PyTorch's that wait for each other suffer most.

--quality: F after --epochs, three seeds, ours with 2, 10 and 1 thread, and PyTorch in its fastest form.
--tasks: ours against our CRF: parts of speech (UD English-EWT), segmentation (UD Chinese), chunks in several forms,
base noun phrases alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice, pairwise, product
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

import hogwild
from hogwild.executor.events import EpochEnded
from hogwild.programs.taggers.scores import score_tags

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PEER = Path(__file__).with_name("bilstm_peer.py")
SEEDS = (1, 2, 3)
LR = 0.002
QUIET = 0.3  # busy processes before a measurement, at the most
Run = dict[str, Any]


# -- ours: one run, in a process of its own ---------------------------------------------------------------------------


def train_one(asked: Run) -> Run:
    """Tokens a second of training, and the metrics on the test text if there is one."""
    feed = hogwild.open_tagging(asked["train"], hogwild.TaggingConfig(**asked["text"]))
    kind = {"bilstm": hogwild.BiLSTM, "crf": hogwild.CRF}[asked["model"]]
    program = kind(**asked["options"])
    if asked["options"].get("start_vectors"):
        feed = program.with_words(feed)
    executor = hogwild.AsyncExecutor(**asked["run"])
    ends = [event for event in executor.run(program, feed) if isinstance(event, EpochEnded)]
    found: Run = {"tokens_per_second": feed.tokens * len(ends) / sum(event.epoch_seconds for event in ends)}
    if asked["test"]:
        found["metrics"] = program.evaluate(program.open(asked["test"]), 2)
    return found


def ours(files: tuple[Path, Path | None], text: Run, options: Run, run: Run, model: str = "bilstm") -> Run:
    """What `train_one` is asked for."""
    train, test = files
    places = {"train": str(train), "test": str(test) if test else ""}
    return {**places, "text": text, "options": options, "run": {"lr": None, **run}, "model": model}


def plain(batch: int, hidden: int, products: str = "float32") -> Run:
    """The options of a Bi-LSTM of words that is the same as PyTorch's."""
    return {"hidden": hidden, "word_dim": hidden, "batch_size": batch, "products": products}


# -- processes --------------------------------------------------------------------------------------------------------


def last_line(command: list[str], limit: float) -> Run:
    """What a process prints last, as JSON; {} with a word on standard error if it failed or took too long."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            out, _ = process.communicate(timeout=limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own: it and its children
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            print(f"more than {limit:g} s: {' '.join(command)[:200]}", file=sys.stderr)
            return {}
    if process.returncode:
        print(f"exit code {process.returncode}: {' '.join(command)[:200]}", file=sys.stderr)
        return {}
    found: Run = json.loads(out.strip().splitlines()[-1])
    return found


def run_ours(asked: Run, limit: float) -> Run:
    """One run of ours."""
    return last_line([sys.executable, __file__, "--one", json.dumps(asked)], limit)


def run_torch(arrays: Path, form: Run, limit: float, tags: Path | None = None) -> Run:
    """One run of PyTorch's."""
    more = ["--tags", str(tags)] if tags else []
    return last_line([sys.executable, str(PEER), str(arrays), json.dumps(form), *more], limit)


# -- text -------------------------------------------------------------------------------------------------------------


def lines_of(name: str) -> Iterator[str]:
    """The lines of a file of the data."""
    with lzma.open(DATA / f"{name}.xz", "rt", encoding="utf-8") as stream:
        yield from stream


def sentences_of(lines: Iterator[str]) -> Iterator[list[str]]:
    """Lines up to blank ones."""
    found: list[str] = []
    for line in lines:
        if line.strip():
            found.append(line)
        elif found:
            yield found
            found = []
    if found:
        yield found


def write_chunks(place: Path, limit: int = 0, only: str = "") -> tuple[Path, Path]:
    """Both files of CoNLL-2000; limit: sentences to train on; only: the type of chunks that keep their tags."""
    paths = place / f"train{limit}{only}.txt", place / f"test{only}.txt"
    for path, part in zip(paths, ("train", "test"), strict=True):
        found = islice(sentences_of(lines_of(f"conll2000/{part}.txt")), limit if part == "train" and limit else None)
        with path.open("w", encoding="utf-8") as stream:
            for sentence in found:
                stream.writelines(_keep(line, only) for line in sentence)
                stream.write("\n")
    return paths


def _keep(line: str, only: str) -> str:
    """A line whose tag is O unless it is of the type."""
    before, _, tag = line.rstrip().rpartition(" ")
    return line if not only or tag.endswith(f"-{only}") else f"{before} O\n"


def write_arrays(files: tuple[Path, Path], place: Path) -> tuple[Path, list[list[str]], tuple[str, ...]]:
    """The text as PyTorch's form reads it; and the tags of the test text, and their names.

    Words are numbers from 1 on, 0 is the unknown one.
    """
    config = hogwild.TaggingConfig(features="words")
    train = hogwild.open_tagging(files[0], config)
    test = hogwild.open_tagging(files[1], config, schema=train.schema, names=train.names, tags=train.tags)
    arrays = {"rare": np.append(False, train.counts == 1), "tags": np.array(len(train.tags))}
    for part, feed in (("train", train), ("test", test)):
        words = np.zeros(feed.tokens, np.int32)
        words[np.repeat(np.arange(feed.tokens), np.diff(feed.samples.starts))] = feed.samples.ids + 1
        arrays |= {f"{part}_words": words, f"{part}_tags": feed.samples.tags, f"{part}_offsets": feed.samples.offsets}
    path = place / f"{files[0].stem}.npz"
    np.savez(path, **arrays)
    return path, _tags_of(files[1]), train.tags


def _tags_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as stream:
        return [[line.split()[-1] for line in sentence] for sentence in sentences_of(stream)]


# -- speed ------------------------------------------------------------------------------------------------------------


def has_bfloat16() -> bool:
    """Whether the CPU has products of bfloat16."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def torch_forms(asked: argparse.Namespace, batch: int) -> dict[str, Run]:
    """All forms of PyTorch's at a batch, by name."""
    types = (False, True) if has_bfloat16() else (False,)
    found = {}
    for bfloat16, packed, several in product(types, (False, True), (0, 2)):
        kind = "two processes" if several else "one process, 2 threads"
        name = f"PyTorch, {'packed' if packed else 'padded'}, {kind}, {'bfloat16' if bfloat16 else 'float32'}"
        found[name] = {
            "batch": batch, "hidden": asked.hidden, "epochs": asked.epochs, "lr": LR, "seed": 1, "packed": packed,
            "bfloat16": bfloat16, "threads": 2, "processes": several,
        }  # fmt: skip
    return found


def speed(asked: argparse.Namespace, place: Path) -> dict[str, dict[str, float]]:
    """Median tokens a second of each form, by batch."""
    files = write_chunks(place, asked.limit)
    arrays, _, _ = write_arrays(files, place)
    warm = ours((files[0], None), {"features": "words"}, plain(1, asked.hidden), {"threads": 1, "epochs": 1, "lr": LR})
    run_ours(warm, asked.time)
    kinds = [*product(("float32", "bfloat16") if has_bfloat16() else ("float32",), (2, 1))]
    rates: dict[str, dict[str, list[float]]] = {}
    for _ in range(asked.rounds):
        for batch in asked.batch:
            of_batch = rates.setdefault(str(batch), {})
            for products, threads in kinds:
                run = {"threads": threads, "epochs": asked.epochs, "lr": LR, "sharing": "all"}
                one = ours((files[0], None), {"features": "words"}, plain(batch, asked.hidden, products), run)
                _add(of_batch, f"hogwild, {threads} thread{'s' * (threads > 1)}, {products}", run_ours(one, asked.time))
            for name, form in torch_forms(asked, batch).items():
                if asked.peers in name:
                    _add(of_batch, name, run_torch(arrays, form, asked.time))
    return {batch: {name: median(each) for name, each in forms.items()} for batch, forms in rates.items()}


def _add(rates: dict[str, list[float]], name: str, found: Run) -> None:
    if found:
        rates.setdefault(name, []).append(found["tokens_per_second"])


def best_peer(rates: dict[str, float]) -> str:
    """The fastest form of PyTorch's; "" if none came to its end."""
    peers = [name for name in rates if name.startswith("PyTorch")]
    return max(peers, key=lambda name: rates[name], default="")


def print_speed(found: dict[str, dict[str, float]]) -> None:
    """A table a batch; ratios are those of ours with 2 threads to each form, in the same numbers."""
    for batch, rates in found.items():
        best = best_peer(rates)
        print(f"batch {batch}")
        for name, rate in rates.items():
            mark = "  <- PyTorch's best" if name == best else ""
            mine = rates.get(f"hogwild, 2 threads, {name.rpartition(', ')[2]}", float("nan"))
            print(f"  {name:52} {rate:9,.0f} tokens/s  {mine / rate:6.2f}x{mark}")
    if not has_bfloat16():
        print("bfloat16 is left out: this CPU has no products of it.")


# -- quality ----------------------------------------------------------------------------------------------------------


def quality(asked: argparse.Namespace, place: Path, rates: dict[str, dict[str, float]]) -> dict[str, Any]:
    """F of three seeds by batch and form, after equal epochs over the whole text."""
    files = write_chunks(place)
    arrays, truth, tags = write_arrays(files, place)
    found: dict[str, Any] = {}
    for batch in asked.batch:
        scores: dict[str, list[float]] = found.setdefault(str(batch), {})
        best = best_peer(rates.get(str(batch), {}))
        for seed in SEEDS:
            for threads in (2, 10, 1):
                run = {"threads": threads, "epochs": asked.quality_epochs, "seed": seed, "lr": LR, "sharing": "all"}
                one = run_ours(ours(files, {"features": "words"}, plain(batch, asked.hidden), run), asked.time)
                if one:
                    scores.setdefault(f"hogwild, {threads} threads", []).append(one["metrics"]["f1"])
            if best:
                form = {**torch_forms(asked, batch)[best], "seed": seed, "epochs": asked.quality_epochs}
                guess = place / "tags.npy"
                if run_torch(arrays, form, asked.time, guess):
                    scores.setdefault(best, []).append(f_of(np.load(guess), truth, tags))
        for name, each in scores.items():
            print(f"batch {batch:>2}, {asked.quality_epochs} epochs: {name:52} F {spread(each)}")
    return found


def f_of(codes: Any, truth: list[list[str]], tags: tuple[str, ...]) -> float:
    """F of tags by number, one after the other."""
    named = np.array(tags, object)[codes].tolist()
    ends = np.cumsum([0, *map(len, truth)]).tolist()
    return float(score_tags(truth, [named[a:b] for a, b in pairwise(ends)]).metrics()["f1"])


def spread(shares: list[float]) -> str:
    """The mean of shares in points of 100, and the least and the most."""
    return f"{100 * mean(shares):6.2f}  ({100 * min(shares):.2f} to {100 * max(shares):.2f})"


# -- tasks ------------------------------------------------------------------------------------------------------------

POS = {"tag_column": "1"}
SEGMENTED = {"format": "segmented"}
CHUNKER = {"hidden": 200, "word_dim": 100, "dropout": 0.4, "batch_size": 4}


def settings(place: Path, vectors: str) -> dict[str, tuple[str, tuple[Path, Path], Run, Run, str]]:
    """By name: the metric, the files, how text is read, the options of the model, and its kind."""
    pos = DATA / "ud_ewt" / "train.conll.xz", DATA / "ud_ewt" / "test.conll.xz"
    words = DATA / "segmentation" / "udc_train.txt.xz", DATA / "segmentation" / "udc_test.txt.xz"
    chunks, phrases = write_chunks(place), write_chunks(place, only="NP")
    full = {**CHUNKER, "output_layer": "crf", "letters": "convolution"}
    found: dict[str, tuple[str, tuple[Path, Path], Run, Run, str]] = {
        "pos: CRF": ("accuracy", pos, {**POS, "features": "pos"}, {}, "crf"),
        "pos: Bi-LSTM": (
            "accuracy", pos, {**POS, "features": "words-shapes"}, CHUNKER, "bilstm"
        ),
        "pos: Bi-LSTM, letters": (
            "accuracy", pos, {**POS, "features": "words-shapes"}, full, "bilstm"
        ),
        "segmentation: CRF": ("f1", words, {**SEGMENTED, "features": "segmentation"}, {}, "crf"),
        "segmentation: Bi-LSTM": (
            "f1", words, {**SEGMENTED, "features": "characters"},
            {**CHUNKER, "feature_dim": 100, "output_layer": "crf"}, "bilstm",
        ),
        "chunks: CRF": ("f1", chunks, {"features": "chunking"}, {}, "crf"),
        "chunks: Bi-LSTM, words": ("f1", chunks, {"features": "words"}, CHUNKER, "bilstm"),
        "chunks: Bi-LSTM, words-pos": ("f1", chunks, {"features": "words-pos"}, CHUNKER, "bilstm"),
        "chunks: the same, CRF layer": (
            "f1", chunks, {"features": "words-pos"}, {**CHUNKER, "output_layer": "crf"}, "bilstm"
        ),
        "chunks: the same, letters": ("f1", chunks, {"features": "words-pos"}, full, "bilstm"),
        "noun phrases: CRF": ("f1", phrases, {"features": "chunking"}, {}, "crf"),
        "noun phrases: Bi-LSTM": ("f1", phrases, {"features": "words-pos"}, full, "bilstm"),
    }  # fmt: skip
    if vectors:
        begun = {**CHUNKER, "word_dim": hogwild.Vectors.load(vectors).dim, "start_vectors": vectors}
        both = {**full, **begun}
        found["chunks: words-pos, vectors"] = ("f1", chunks, {"features": "words-pos"}, begun, "bilstm")
        found["chunks: words-pos, vectors, letters, CRF layer"] = (
            "f1", chunks, {"features": "words-pos"}, both, "bilstm"
        )
        found["noun phrases: Bi-LSTM, vectors"] = ("f1", phrases, {"features": "words-pos"}, both, "bilstm")
        found["pos: Bi-LSTM, letters, vectors"] = (
            "accuracy", pos, {**POS, "features": "words-shapes"}, both, "bilstm"
        )
    return found


def make_vectors(place: Path) -> str:
    """Word vectors of the text of Wikipedia."""
    corpus = hogwild.open_corpus(DATA / "wiki" / next((DATA / "wiki").glob("*.xz")).name)
    path = place / "vectors"
    program = hogwild.Word2Vec(dim=100, window=2, sample=1e-3)
    hogwild.save_model(path, hogwild.train(program, corpus, epochs=5, quiet=True))
    return str(path)


def tasks(asked: argparse.Namespace, place: Path) -> dict[str, Any]:
    """The metric of some seeds for each setting, with some numbers of threads."""
    found: dict[str, Any] = {}
    vectors = asked.vectors or make_vectors(place)
    chosen = {name: each for name, each in settings(place, vectors).items() if asked.only in name}
    for (name, (metric, files, text, options, kind)), threads in product(chosen.items(), asked.threads):
        run = {"threads": threads, "epochs": asked.quality_epochs}
        each = [run_ours(ours(files, text, options, {**run, "seed": seed}, kind), asked.time) for seed in asked.seeds]
        done = [one for one in each if one]
        if done:
            scores, rate = [one["metrics"][metric] for one in done], median(one["tokens_per_second"] for one in done)
            title = f"{name}, {threads} thread{'s' * (threads > 1)}"
            found[title] = {"metric": metric, "scores": scores, "tokens_per_second": rate}
            print(f"{title:58} {metric:8} {spread(scores)}  {rate:9,.0f} tokens/s", flush=True)
    return found


def numbers(text: str) -> list[int]:
    """Whole numbers with commas between them."""
    return [int(word) for word in text.split(",")]


def main() -> None:
    """Print tables; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=numbers, default=[1, 8, 32], metavar="N,N", help="sentences of a step")
    parser.add_argument("--hidden", type=int, default=280, help="units each way, and numbers of a word")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is taken")
    parser.add_argument("--limit", type=int, default=2000, help="sentences to measure the speed on; 0: all")
    parser.add_argument("--peers", default="", metavar="TEXT", help="forms of PyTorch's with this in their names")
    parser.add_argument("--epochs", type=int, default=1, help="of each measurement of speed")
    parser.add_argument("--quality", action="store_true", help="F after equal epochs, three seeds")
    parser.add_argument("--tasks", action="store_true", help="other tasks and forms of ours, against our CRF")
    parser.add_argument("--quality-epochs", type=int, default=10, help="of --quality and --tasks")
    parser.add_argument("--threads", type=numbers, default=[2], metavar="N,N", help="of --tasks")
    parser.add_argument("--seeds", type=numbers, default=list(SEEDS), metavar="N,N", help="of --tasks")
    parser.add_argument("--only", default="", metavar="TEXT", help="of --tasks those with this in their names")
    parser.add_argument("--vectors", default="", metavar="MODEL|FILE", help="for --tasks; else of Wikipedia's text")
    parser.add_argument("--time", type=float, default=3600, help="limit of a run, in seconds")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        json.dump(train_one(asked.one), sys.stdout)
        return
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is not there: this benchmark needs its text.")
    load = os.getloadavg()[0]
    if load > QUIET:
        print(f"note: {load:.1f} processes were busy in the minute before: do not trust these speeds.", file=sys.stderr)
    found: dict[str, Any] = {
        "machine": platform.machine(), "cores": os.cpu_count(), "bfloat16": has_bfloat16(), "load_before": load,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        if asked.rounds:
            found["tokens per second"] = speed(asked, place)
            print_speed(found["tokens per second"])
        if asked.quality:
            found["quality"] = quality(asked, place, found.get("tokens per second", {}))
        if asked.tasks:
            found["tasks"] = tasks(asked, place)
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
