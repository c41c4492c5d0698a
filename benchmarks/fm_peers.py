"""Other people's factorization machines, all with the same form: train on a split, score another after each epoch."""

from __future__ import annotations

import ctypes
import importlib.util
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 256
MOST_EPOCHS = 6  # where peers are tuned they are scored after each epoch


@dataclass
class Setting:
    """How everybody runs and is measured."""

    threads: int = 2
    clock: Callable[[], float] = time.perf_counter


SETTING = Setting()


@dataclass
class Split:
    """Sparse rows whose values are all 1: entry k is feature ids[k] of field fields[k]."""

    offsets: Any
    ids: Any
    fields: Any
    labels: Any
    features: int
    slots: int

    @classmethod
    def of(cls, rows: Any, fields: Any, labels: Any, features: int, slots: int) -> Split:
        """From lists of features and their fields."""
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return cls(
            offsets, np.concatenate(rows).astype(np.int32), np.concatenate(fields).astype(np.int32),
            np.array(labels, bool), features, slots,
        )  # fmt: skip

    def take(self, chosen: Any) -> Split:
        """The chosen rows."""
        lengths = np.diff(self.offsets)
        entries = np.repeat(chosen, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        return Split(offsets, self.ids[entries], self.fields[entries], self.labels[chosen], self.features, self.slots)

    @staticmethod
    def join(parts: list[Split]) -> Split:
        """One after the other."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        joined = [np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "fields", "labels")]
        return Split(offsets, *joined, parts[0].features, parts[0].slots)


class PyTorch:
    """Embedding bags for weights and factors, Adam on batches; field-aware: an embedding for each pair of fields."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(SETTING.threads)
        self.torch = torch

    def train(self, train: Split, test: Split, choice: Any, dim: int, ffm: bool, seed: int) -> tuple[Any, list[float]]:
        """Scores of the test rows after each epoch, and the seconds of each epoch."""
        torch = self.torch
        torch.manual_seed(seed)
        weight = torch.nn.EmbeddingBag(train.features, 1, mode="sum")
        torch.nn.init.zeros_(weight.weight)
        width = dim * (train.slots if ffm else 1)
        factors = torch.nn.Embedding(train.features, width)
        torch.nn.init.normal_(factors.weight, std=0.01)
        bias = torch.nn.Parameter(torch.zeros(1))
        parts = [{"params": [weight.weight, bias]}, {"params": factors.weight, "weight_decay": choice.l2}]
        optimizer = torch.optim.Adam(parts, lr=choice.lr)

        def score(ids: Any, fields: Any, offsets: Any) -> Any:
            linear = weight(ids, offsets)[:, 0] + bias
            rows = torch.repeat_interleave(
                torch.arange(len(offsets)), torch.diff(offsets, append=torch.tensor([len(ids)]))
            )
            v = factors(ids)
            if not ffm:
                total = torch.zeros(len(offsets), dim).index_add_(0, rows, v)
                alone = torch.zeros(len(offsets)).index_add_(0, rows, (v * v).sum(1))
                return linear + 0.5 * ((total * total).sum(1) - alone)
            v, slots = v.view(-1, train.slots, dim), train.slots
            sums = torch.zeros(len(offsets) * slots, slots, dim).index_add_(0, rows * slots + fields, v)
            sums = sums.view(len(offsets), slots, slots, dim)
            own = v[torch.arange(len(ids)), fields]
            alone = torch.zeros(len(offsets)).index_add_(0, rows, (own * own).sum(1))
            return linear + 0.5 * ((sums * sums.transpose(1, 2)).sum((1, 2, 3)) - alone)

        def batches(split: Split, order: Any) -> Any:
            ids, fields = torch.from_numpy(split.ids).long(), torch.from_numpy(split.fields).long()
            starts = split.offsets
            lengths = np.diff(starts)
            for first in range(0, len(order), BATCH):
                chosen = order[first : first + BATCH]
                count = lengths[chosen]
                offsets = np.concatenate([[0], np.cumsum(count)])
                places = np.repeat(starts[chosen] - offsets[:-1], count) + np.arange(offsets[-1])
                at = torch.from_numpy(places)
                yield chosen, ids[at], fields[at], torch.from_numpy(offsets[:-1])

        random = np.random.default_rng(seed)
        targets = torch.from_numpy(train.labels.astype(np.float32))
        scores, seconds = [], []
        for _ in range(choice.epochs):
            began = SETTING.clock()
            for chosen, *parts in batches(train, random.permutation(len(train.labels))):
                optimizer.zero_grad()
                true = targets[torch.from_numpy(chosen)]
                torch.nn.functional.binary_cross_entropy_with_logits(score(*parts), true).backward()
                optimizer.step()
            seconds.append(SETTING.clock() - began)
            with torch.no_grad():
                scores.append(torch.cat([score(*p) for _, *p in batches(test, np.arange(len(test.labels)))]).numpy())
        return scores, seconds


class XLearn:
    """xLearn with adagrad, lock-free, without its normalisation of samples."""

    def train(self, train: Split, test: Split, choice: Any, dim: int, ffm: bool, seed: int) -> tuple[Any, list[float]]:
        """As PyTorch.train. It shows no epoch from within: runs of one epoch and of all tell the seconds. A run before
        them leaves the data in its binary form, which all later ones read; else the first alone would parse text."""
        import xlearn

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for split, file in ((train, "train"), (test, "test")):
                (folder / file).write_text("".join(_ffm_lines(split, ffm)))
            took, scores = [], []
            counts = sorted({1, choice.epochs}) if choice.epochs < MOST_EPOCHS else range(1, choice.epochs + 1)
            for number, epochs in enumerate([1, *counts]):
                model = xlearn.create_ffm() if ffm else xlearn.create_fm()
                model.setTrain(str(folder / "train"))
                model.setQuiet()
                model.disableNorm()
                model.disableEarlyStop()
                options = {"task": "binary", "lr": choice.lr, "lambda": choice.l2, "k": dim, "epoch": epochs}
                began = SETTING.clock()
                model.fit({**options, "opt": "adagrad", "nthread": SETTING.threads}, str(folder / "model"))
                if not number:
                    continue
                took.append((epochs, SETTING.clock() - began))
                model.setTest(str(folder / "test"))
                model.predict(str(folder / "model"), str(folder / "scores"))
                scores.append(np.loadtxt(folder / "scores"))
            (first, short), (last, long) = took[0], took[-1]
            return scores, [(long - short) / max(1, last - first)]


def _ffm_lines(split: Split, ffm: bool) -> Any:
    for row, label in enumerate(split.labels):
        inside = slice(split.offsets[row], split.offsets[row + 1])
        pairs = zip(split.fields[inside].tolist(), split.ids[inside].tolist(), strict=True)
        words = " ".join(f"{f}:{i}:1" if ffm else f"{i}:1" for f, i in pairs)
        yield f"{int(label)} {words}\n"


class FastFM:
    """fastFM's stochastic gradient descent, one thread."""

    def train(self, train: Split, test: Split, choice: Any, dim: int, ffm: bool, seed: int) -> tuple[Any, list[float]]:
        """As PyTorch.train; the time is that of all epochs in one call."""
        from fastFM import sgd
        from scipy.sparse import csc_matrix, csr_matrix

        def matrix(split: Split) -> Any:
            shape = (len(split.labels), split.features)
            return csc_matrix(csr_matrix((np.ones(len(split.ids)), split.ids, split.offsets), shape=shape))

        rows, labels = matrix(train), np.where(train.labels, 1.0, -1.0)
        scores, seconds = [], []
        for epochs in range(1, choice.epochs + 1) if choice.epochs >= MOST_EPOCHS else [choice.epochs]:
            model = sgd.FMClassification(
                n_iter=epochs * len(labels), rank=dim, step_size=choice.lr, l2_reg_w=choice.l2 / 10,
                l2_reg_V=choice.l2, init_stdev=0.01, random_state=seed,
            )  # fmt: skip
            began = SETTING.clock()
            model.fit(rows, labels)
            seconds.append((SETTING.clock() - began) / epochs)
            chance = np.clip(model.predict_proba(matrix(test)), 1e-7, 1 - 1e-7)
            scores.append(np.log(chance / (1 - chance)))
        return scores, seconds


class LibFFM:
    """libffm (the package pylibffm), without its normalisation of samples; for field-aware machines only."""

    def __init__(self) -> None:
        import pylibffm

        ctypes.CDLL("libgomp.so.1").omp_set_num_threads(SETTING.threads)  # it has no option for them
        self.library = pylibffm

    def train(self, train: Split, test: Split, choice: Any, dim: int, ffm: bool, seed: int) -> tuple[Any, list[float]]:
        """As PyTorch.train. It shows no epoch from within: runs of one epoch and of all tell the seconds."""
        from scipy.sparse import csr_matrix

        def matrix(split: Split) -> Any:
            shape = (len(split.labels), split.features)
            return csr_matrix((np.ones(len(split.ids), np.float32), split.ids, split.offsets), shape=shape)

        fields = np.zeros(train.features, np.int32)
        fields[train.ids] = train.fields
        took, scores = [], []
        with tempfile.TemporaryDirectory() as folder:
            path, _ = self.library.make_bin(folder, matrix(train), train.labels.astype(np.float32), fields)
            counts = sorted({1, choice.epochs}) if choice.epochs < MOST_EPOCHS else range(1, choice.epochs + 1)
            for epochs in counts:
                options = {"eta": choice.lr, "lambda": choice.l2, "nr_iters": epochs, "k": dim, "normalization": False}
                began = SETTING.clock()
                model = self.library.train_with_bin(path, options)
                took.append((epochs, SETTING.clock() - began))
                chance = np.clip(model.predict(matrix(test), fields), 1e-7, 1 - 1e-7)
                scores.append(np.log(chance / (1 - chance)))
        (first, short), (last, long) = took[0], took[-1]
        return scores, [(long - short) / max(1, last - first)]


_MODULES = {
    "PyTorch": ("torch", PyTorch), "xLearn": ("xlearn", XLearn), "libffm": ("pylibffm", LibFFM),
    "fastFM": ("fastFM", FastFM),
}  # fmt: skip
PEERS = {name: peer for name, (module, peer) in _MODULES.items() if importlib.util.find_spec(module)}
