"""What the paper on AsynGrad has measured, for each number beside ours: tables 1 (CRFs) and 2 (Bi-LSTMs).

Xu Sun, Asynchronous Parallel Learning for Neural Networks and Structured Models with Dense Features, 2016. Its other
numbers are curves in figures 2 and 3, without values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_CORES = 12  # "Intel(R) Xeon(R) 3.0GHz CPU of 12 cores, and with 128G memory"
_THREADS = 10


class Here(NamedTuple):
    """What was measured here: the text and its sentences, threads, cores, and which recurrence a Bi-LSTM has."""

    source: str
    train: int
    test: int
    threads: int
    cores: int
    recurrence: str = ""


class Text(NamedTuple):
    """Data of the paper: its name, and sentences to train on and to test with."""

    name: str
    train: int
    test: int


_WSJ = Text("Penn Treebank, WSJ", 38_219, 5_462)
_CHUNKS = Text("CoNLL-2000, most likely base noun phrases", 8_936, 2_012)
_MSR = Text("MSR", 86_918, 3_985)
_WEIBO = Text("Weibo, NLPCC 2016", 12_081, 8_055)
_TEXTS = {
    ("crf", "pos"): _WSJ, ("crf", "chunking"): _CHUNKS, ("crf", "segmentation"): _MSR,
    ("bilstm", "pos"): _WSJ, ("bilstm", "chunking"): _CHUNKS, ("bilstm", "segmentation"): _WEIBO,
}  # fmt: skip

# Score in points of 100, and seconds of an iteration.
_NUMBERS = {
    ("crf", "pos"): {"sgd": (97.18, 466.08), "asyngrad": (97.18, 108.38), "asyngrad+sr": (97.35, 25.99)},
    ("crf", "chunking"): {"sgd": (94.55, 1.92), "asyngrad": (94.59, 0.25), "asyngrad+sr": (94.60, 0.21)},
    ("crf", "segmentation"): {"sgd": (97.13, 64.94), "asyngrad": (97.15, 8.11), "asyngrad+sr": (97.22, 6.59)},
    ("bilstm", "pos"): {"sgd": (96.40, 2972.13), "asyngrad": (96.77, 793.40)},
    ("bilstm", "chunking"): {"sgd": (95.40, 1750.68), "asyngrad": (95.45, 465.95)},
    ("bilstm", "segmentation"): {"sgd": (91.79, 2198.45), "asyngrad": (91.93, 607.22)},
}  # fmt: skip
_BILSTM_ERRORS = "over 0.9"  # "the gradient errors are very common (the rate is over 90%)"


class Published(NamedTuple):
    """One row of a table. speed_up: its seconds against those of one thread, in the same table."""

    text: Text
    task: str
    threads: int
    score: float
    seconds: float
    speed_up: float
    error_rate: str | None

    def beside(self, here: Here) -> dict[str, Any]:
        """As it stands beside a number of ours, with what differs."""
        text, theirs = f"{here.source}, {here.train:,} + {here.test:,} sentences", self.text
        pairs = [("data", text, f"{theirs.name}, {theirs.train:,} + {theirs.test:,}")]
        pairs += [("chunks", "of all types", "as far as known of one")] * (self.task == "chunking")
        if here.cores != _CORES:
            pairs.append(("cores", str(here.cores), str(_CORES)))
        if here.threads != self.threads:
            pairs.append(("threads", str(here.threads), str(self.threads)))
        if here.recurrence == "full":
            pairs.append(("recurrence", "full matrices", "diagonal"))
        return {
            "score": self.score, "seconds": self.seconds, "speed_up": self.speed_up, "error_rate": self.error_rate,
            "threads": self.threads, "differs": "; ".join(f"{what}: {own} (paper: {its})" for what, own, its in pairs),
        }  # fmt: skip


def of(model: str, task: str, method: str) -> Published | None:
    """What the paper has of a method; None where it has no number.

    >>> of("crf", "chunking", "asyngrad").score, of("crf", "chunking", "synchronous")
    (0.9459, None)
    """
    key = (model, "chunking" if task == "noun-phrases" else task)
    rows = _NUMBERS[key]
    if method not in rows:
        return None
    score, seconds = rows[method]
    alone = method == "sgd"
    errors = _BILSTM_ERRORS if model == "bilstm" and not alone else None
    speed_up = round(rows["sgd"][1] / seconds, 2)
    return Published(
        _TEXTS[key], task, 1 if alone else _THREADS, round(score / 100, 4), seconds, speed_up, errors
    )
