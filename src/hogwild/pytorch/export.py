"""A trained program as a PyTorch module that gives the same output."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hogwild.errors import ConfigError
from hogwild.programs.sparse.sparse_mlp import SparseMLP
from hogwild.programs.taggers.bilstm import BiLSTM
from hogwild.pytorch.tagger import BiLSTMModule

_ACTIVATIONS = {"none": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}


class SparseMLPModule(nn.Module):
    """Embeddings, dense layers and a wide part, as `hogwild.SparseMLP` has them, over the features' own numbers.

    Parameters have the names `embedding` (features, dim), `wide` (features, outputs; only with a wide part),
    `layers.0.weight` (outputs, inputs), `layers.0.bias`, `layers.2.weight`, … as PyTorch stores linear layers.

    Examples
    --------
    >>> module = hogwild.pytorch.module_of(program)                                         # doctest: +SKIP
    >>> scores = module(ids, offsets, slots=slots, dense=dense)                             # doctest: +SKIP
    """

    def __init__(self, program: SparseMLP) -> None:
        super().__init__()
        arrays, config = program.arrays(), program.config
        self.slots, self.combiner = len(program.slots or ()), config.combiner
        self.embedding = nn.Parameter(_tensor(arrays["embedding"]))
        self.wide = nn.Parameter(_tensor(arrays["wide"])) if config.wide else None
        self.lookup = _ACTIVATIONS[config.lookup_activation]()
        parts: list[nn.Module] = []
        count = len(config.hidden) + 1
        for layer in range(1, count + 1):
            weight, bias = arrays[f"layer_{layer}_weight"], arrays[f"layer_{layer}_bias"]
            linear = nn.Linear(*weight.shape)
            linear.weight, linear.bias = nn.Parameter(_tensor(weight.T)), nn.Parameter(_tensor(bias))
            parts += [linear, _ACTIVATIONS[config.activation]()] if layer < count else [linear]
        self.layers = nn.Sequential(*parts)

    def forward(
        self, ids: Tensor, offsets: Tensor, slots: Tensor | None = None, values: Tensor | None = None,
        dense: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Scores, (rows, outputs): logits of the second class or of each class, or quantities.

        ids: of all rows, one after the other; offsets: where each row begins, and at the end the number of ids; slots:
        of each id, all in the first by default; values: 1 by default; dense: (rows, columns).
        """
        count = len(offsets) - 1
        row = torch.repeat_interleave(torch.arange(count, device=ids.device), offsets.diff())
        place = row * self.slots + (torch.zeros_like(row) if slots is None else slots.long())
        looked_up = combined(self.embedding[ids.long()], place, count * self.slots, values, self.combiner)
        given = self.lookup(looked_up.reshape(count, -1))
        if dense is not None:
            given = torch.cat([given, dense], dim=1)
        scores: Tensor = self.layers(given)
        if self.wide is not None:
            wide = self.wide[ids.long()]
            scores = scores.index_add(0, row, wide if values is None else values[:, None] * wide)
        return scores


def combined(entries: Tensor, bags: Tensor, count: int, values: Tensor | None, combiner: str) -> Tensor:
    """The rows of the entries of each of so many bags, put together: (count, dim). bags: that of each entry."""
    factor = entries.new_ones(len(entries)) if values is None else values
    if combiner != "sum":
        sizes = factor if combiner == "mean" else factor * factor
        total = entries.new_zeros(count).index_add(0, bags, sizes)
        total = total if combiner == "mean" else total.sqrt()
        factor = torch.where(total == 0, 0.0, 1 / total)[bags] * factor
    return entries.new_zeros(count, entries.shape[1]).index_add(0, bags, factor[:, None] * entries)


def module_of(program: Any) -> SparseMLPModule | BiLSTMModule:
    """The PyTorch module of a trained program, with copies of its weights; it can be trained further there."""
    if isinstance(program, BiLSTM):
        return BiLSTMModule(program)
    if not isinstance(program, SparseMLP):
        kind = type(program).__name__
        raise ConfigError(f"there is no PyTorch module of a {kind}; there is one of a SparseMLP and of a BiLSTM.")
    return SparseMLPModule(program)


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))
