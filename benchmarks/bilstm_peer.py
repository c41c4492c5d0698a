"""PyTorch's Bi-LSTM tagger, as fast as plain PyTorch is: one process, or Hogwild processes that share its parameters.

A child of bilstm.py: reads arrays (bilstm.py makes them), trains, writes the tags of the test text if asked, prints one
line of JSON. Embeddings are sparse and have a sparse Adam, dense weights the fused one. As in ours, words that occur
once are taken for unknown in half of their visits, and the learning rate falls in a straight line to 0.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.multiprocessing as processes
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

BETAS, EPSILON, UNKNOWN_SHARE = (0.95, 0.95), 1e-4, 0.5
WARM = 64  # sentences before the clock runs
NO_TAG = -100  # what CrossEntropyLoss leaves out


class Form(NamedTuple):
    """How it is trained. processes: 0 for one process with so many threads, else that many with one thread each."""

    batch: int
    hidden: int
    epochs: int
    lr: float
    seed: int
    packed: bool
    bfloat16: bool
    threads: int
    processes: int


class Tagger(nn.Module):
    """Words, a layer that reads both ways, tags."""

    def __init__(self, words: int, tags: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, hidden, sparse=True)
        self.lstm = nn.LSTM(hidden, hidden, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * hidden, tags)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor, packed: bool) -> torch.Tensor:
        """(sentences, tokens, tags): scores."""
        inputs = self.words(words)
        if not packed:
            return self.tags(self.lstm(inputs)[0])
        outputs, _ = self.lstm(pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False))
        return self.tags(pad_packed_sequence(outputs, batch_first=True)[0])


class Text(NamedTuple):
    """Sentences as tensors; rare: by word, whether it occurs once."""

    words: list[torch.Tensor]
    tags: list[torch.Tensor]
    rare: torch.Tensor

    def part(self, rank: int, count: int) -> Text:
        """Every count-th sentence."""
        return Text(self.words[rank::count], self.tags[rank::count], self.rare)


def read(place: Path) -> tuple[Text, list[torch.Tensor], int, int]:
    """The training text, the words of the test text, and how many words and tags there are."""
    with np.load(place) as found:
        arrays = {name: torch.from_numpy(found[name].astype(np.int64)) for name in found.files}
    lengths = {part: torch.diff(arrays[f"{part}_offsets"]).tolist() for part in ("train", "test")}
    words, tags = (list(arrays[f"train_{name}"].split(lengths["train"])) for name in ("words", "tags"))
    tests = list(arrays["test_words"].split(lengths["test"]))
    return Text(words, tags, arrays["rare"].bool()), tests, len(arrays["rare"]), int(arrays["tags"])


def batches(text: Text, size: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Sentences of similar length together, in random order."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(text.words))
    if size > 1:
        lengths = np.array([len(text.words[k]) for k in order])
        order = order[np.argsort(lengths, kind="stable")]
    groups = [order[k : k + size].tolist() for k in range(0, len(order), size)]
    for place in random.permutation(len(groups)):
        group = groups[place]
        words = pad_sequence([text.words[k] for k in group], batch_first=True)
        unknown = text.rare[words] & (torch.rand(words.shape) < UNKNOWN_SHARE)
        tags = pad_sequence([text.tags[k] for k in group], batch_first=True, padding_value=NO_TAG)
        yield words.masked_fill(unknown, 0), torch.tensor([len(text.words[k]) for k in group]), tags


def train(model: Tagger, text: Text, form: Form, seed: int) -> None:
    """All epochs."""
    dense = [weights for name, weights in model.named_parameters() if not name.startswith("words")]
    optimizers: list[Any] = [
        torch.optim.Adam(dense, form.lr, BETAS, EPSILON, fused=True),
        torch.optim.SparseAdam([model.words.weight], form.lr, BETAS, EPSILON),
    ]
    loss_of = nn.CrossEntropyLoss()
    visits, made = form.epochs * -(-len(text.words) // form.batch), 0
    for epoch in range(form.epochs):
        for words, lengths, tags in batches(text, form.batch, 1000 * seed + epoch):
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = form.lr * (1 - made / visits)
                optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=form.bfloat16):
                scores = model(words, lengths, form.packed)
            loss_of(scores.float().flatten(0, 1), tags.flatten()).backward()
            for optimizer in optimizers:
                optimizer.step()
            made += 1


def warm(model: Tagger, text: Text, form: Form) -> None:
    """A few steps of a copy: what is made at first use is made then."""
    few = Text(text.words[:WARM], text.tags[:WARM], text.rare)
    train(copy.deepcopy(model), few, form._replace(epochs=1), 0)


def work(model: Tagger, text: Text, form: Form, rank: int, together: tuple[Any, Any]) -> None:
    """One of several processes."""
    barrier, times = together
    torch.set_num_threads(1)
    torch.manual_seed(1000 * form.seed + rank)
    own = text.part(rank, form.processes)
    warm(model, own, form)
    barrier.wait()
    began = time.perf_counter()
    train(model, own, form, form.seed * form.processes + rank)
    times.put((began, time.perf_counter()))


def run(model: Tagger, text: Text, form: Form) -> float:
    """Seconds of training."""
    if not form.processes:
        warm(model, text, form)
        began = time.perf_counter()
        train(model, text, form, form.seed)
        return time.perf_counter() - began
    model.share_memory()
    context = processes.get_context("fork")
    together = context.Barrier(form.processes), context.SimpleQueue()
    crew = [context.Process(target=work, args=(model, text, form, k, together)) for k in range(form.processes)]
    for each in crew:
        each.start()
    for each in crew:
        each.join()
    if any(each.exitcode for each in crew):
        raise SystemExit("a process of PyTorch's failed")
    times = [together[1].get() for _ in crew]
    return max(end for _, end in times) - min(began for began, _ in times)


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arrays", type=Path)
    parser.add_argument("form", type=json.loads, help="the fields of Form, as a JSON object")
    parser.add_argument("--tags", type=Path, help="write the best tags of the test text there")
    asked = parser.parse_args()
    form = Form(**asked.form)
    torch.manual_seed(form.seed)
    torch.set_num_threads(1 if form.processes else form.threads)
    text, tests, words, tags = read(asked.arrays)
    model = Tagger(words, tags, form.hidden)
    seconds = run(model, text, form)
    if asked.tags:
        torch.set_num_threads(form.threads)
        with torch.no_grad():
            best = [model(each[None], torch.tensor([len(each)]), False)[0].argmax(1) for each in tests]
        np.save(asked.tags, torch.cat(best).numpy())
    tokens = form.epochs * sum(map(len, text.words))
    json.dump({"tokens_per_second": tokens / seconds, "torch": torch.__version__}, sys.stdout)


if __name__ == "__main__":
    main()
