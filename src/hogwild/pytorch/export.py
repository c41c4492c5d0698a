"""A trained program as a PyTorch module that gives the same output."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hogwild.errors import ConfigError
from hogwild.messages import listed
from hogwild.programs.sparse.fm import FactorizationMachine
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.sparse.sparse_mlp import SparseMLP
from hogwild.programs.sparse.text_classifier import TextClassifier
from hogwild.programs.taggers.bilstm import BiLSTM
from hogwild.pytorch.tagger import BiLSTMModule

_ACTIVATIONS = {"none": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}


class _Exponential(nn.Module):
    """From the scores of the poisson loss to means."""

    def forward(self, scores: Tensor) -> Tensor:
        """Their exponentials."""
        return scores.exp()


def _link_of(program: Any) -> nn.Module:
    """From scores to what is predicted, where it is not the same."""
    return _Exponential() if program.loss == "poisson" else nn.Identity()


class LinearModule(nn.Module):
    """A linear model, as `hogwild.Linear` has it: `weight` (features, outputs) and `bias` (outputs)."""

    def __init__(self, program: Linear) -> None:
        super().__init__()
        arrays = program.arrays()
        self.weight = nn.Parameter(_tensor(arrays["weight"]).reshape(-1, program.width))
        self.bias = nn.Parameter(_tensor(arrays["bias"] * np.float32(program.config.bias)))
        self.link = _link_of(program)

    def forward(self, ids: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """Scores, (rows, outputs); ids, offsets and values as for SparseMLPModule."""
        value = _values(self.weight, ids, values)
        scores: Tensor = self.link(_sum_rows(value[:, None] * self.weight[ids.long()], ids, offsets) + self.bias)
        return scores


class TextModule(nn.Module):
    """A classifier of texts, as `hogwild.TextClassifier` has it: `embedding` (features, dim) and a layer `output`.

    Values, where they are given, count; a model without `counts` is not to be given any.
    """

    def __init__(self, program: TextClassifier) -> None:
        super().__init__()
        arrays = program.arrays()
        self.unit = program.unit_of_pooling
        self.embedding = nn.Parameter(_tensor(arrays["embedding"]))
        self.output = nn.Linear(*arrays["output"].shape[::-1])
        self.output.weight = nn.Parameter(_tensor(arrays["output"]))
        self.output.bias = nn.Parameter(_tensor(arrays["bias"]))

    def forward(self, ids: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """Scores, (rows, outputs); ids, offsets and values as for SparseMLPModule."""
        value = _values(self.embedding, ids, values)[:, None]
        total = _sum_rows(value.abs(), ids, offsets)
        sums = _sum_rows(value * self.embedding[ids.long()], ids, offsets)
        size = total if self.unit == 0 else (self.unit * total).sqrt()
        scores: Tensor = self.output(sums / torch.where(total > 0, size, 1.0))
        return scores


class FMModule(nn.Module):
    """A factorization machine, as `hogwild.FactorizationMachine` has it: `weight` (features), `bias` (1), `factors`
    (features, dim), of a field-aware one (features, fields, dim)."""

    def __init__(self, program: FactorizationMachine) -> None:
        super().__init__()
        arrays = program.arrays()
        self.weight = nn.Parameter(_tensor(arrays["weight"]))
        self.bias = nn.Parameter(_tensor(arrays["bias"] * np.float32(program.config.bias)))
        self.fields = program.layout.fields
        factors = arrays["factors"] if "factors" in arrays else np.zeros((len(arrays["weight"]), self.fields, 0))
        self.factors = nn.Parameter(_tensor(factors).reshape(len(arrays["weight"]), self.fields, -1))
        self.link = _link_of(program)

    def forward(
        self, ids: Tensor, offsets: Tensor, slots: Tensor | None = None, values: Tensor | None = None
    ) -> Tensor:  # fmt: skip
        """Scores, (rows, 1); ids, offsets, slots (of a field-aware one) and values as for SparseMLPModule."""
        ids = ids.long()
        value = _values(self.weight, ids, values)
        weights = value * self.weight[ids]
        factors = value[:, None, None] * self.factors[ids]  # (entries, fields, dim): of an entry towards each field
        rows, dim = offsets.shape[0] - 1, factors.shape[2]
        field = torch.zeros_like(ids) if slots is None else slots.long()
        place = _rows_of(ids, offsets) * self.fields + field
        sums = factors.new_zeros(rows * self.fields, self.fields * dim).index_add(0, place, factors.flatten(1))
        table = sums.reshape(rows, self.fields, self.fields, dim)  # of all entries of a field towards each field
        both = (table * table.transpose(1, 2)).sum((1, 2, 3))
        own = factors.gather(1, field[:, None, None].expand(-1, 1, dim))[:, 0].square().sum(1)
        pairs = both - _sum_rows(own[:, None], ids, offsets)[:, 0]  # without the pairs of an entry with itself
        scores: Tensor = self.link(_sum_rows(weights[:, None], ids, offsets)[:, 0] + pairs / 2 + self.bias)
        return scores[:, None]


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
        self.link = _link_of(program)

    def forward(
        self, ids: Tensor, offsets: Tensor, slots: Tensor | None = None, values: Tensor | None = None,
        dense: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Scores, (rows, outputs): logits of the second class or of each class, or quantities (poisson: means).

        ids: of all rows, one after the other; offsets: where each row begins, and at the end the number of ids; slots:
        of each id, all in the first by default; values: 1 by default; dense: (rows, columns).
        """
        count = offsets.shape[0] - 1
        row = _rows_of(ids, offsets)
        place = row * self.slots + (torch.zeros_like(row) if slots is None else slots.long())
        looked_up = combined(self.embedding[ids.long()], place, count * self.slots, values, self.combiner)
        given = self.lookup(looked_up.reshape(count, -1))
        if dense is not None:
            given = torch.cat([given, dense], dim=1)
        scores: Tensor = self.layers(given)
        if self.wide is not None:
            wide = self.wide[ids.long()]
            scores = scores.index_add(0, row, wide if values is None else values[:, None] * wide)
        linked: Tensor = self.link(scores)
        return linked


def combined(entries: Tensor, bags: Tensor, count: int, values: Tensor | None, combiner: str) -> Tensor:
    """The rows of the entries of each of so many bags, put together: (count, dim). bags: that of each entry."""
    factor = entries.new_ones(len(entries)) if values is None else values
    if combiner != "sum":
        sizes = factor if combiner == "mean" else factor * factor
        total = entries.new_zeros(count).index_add(0, bags, sizes)
        total = total if combiner == "mean" else total.sqrt()
        factor = torch.where(total == 0, 0.0, 1 / total)[bags] * factor
    return entries.new_zeros(count, entries.shape[1]).index_add(0, bags, factor[:, None] * entries)


_MODULES: dict[type, Any] = {
    SparseMLP: SparseMLPModule, FactorizationMachine: FMModule, Linear: LinearModule, TextClassifier: TextModule,
    BiLSTM: BiLSTMModule,
}  # fmt: skip


def module_of(program: Any) -> Any:
    """The PyTorch module of a trained program, with copies of its weights; it can be trained further there."""
    for kind, module in _MODULES.items():
        if isinstance(program, kind):
            return module(program)
    known = listed([kind.__name__ for kind in _MODULES])
    raise ConfigError(f"there is no PyTorch module of a {type(program).__name__}; there is one of {known}.")


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))


def _values(like: Tensor, ids: Tensor, values: Tensor | None) -> Tensor:
    return like.new_ones(ids.shape[0]) if values is None else values


def _rows_of(ids: Tensor, offsets: Tensor) -> Tensor:
    """The row of each id: how many rows have begun, after the first."""
    begun = offsets[1:-1].long()
    marks = torch.zeros(ids.shape[0] + 1, dtype=torch.int64, device=ids.device)
    return marks.index_add(0, begun, torch.ones_like(begun)).cumsum(0)[:-1]


def _sum_rows(cells: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
    """Sums over the ids of each row."""
    return cells.new_zeros(offsets.shape[0] - 1, cells.shape[1]).index_add(0, _rows_of(ids, offsets), cells)
