"""Bags of embeddings by our kernels: looked up in one pass, and a gradient that has each touched row once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hogwild.kernels.nn.bags import COUNTS, look_up, sort_rows, sum_rows

Numbers = npt.NDArray[np.int64]
_NO_FACTORS = np.zeros(0, np.float32)
_NO_OWNERS = np.zeros(0, np.int32)


class EmbeddingBag(nn.EmbeddingBag):
    """As `nn.EmbeddingBag(…, sparse=True)`, and several times as fast on one thread: sums and means of float32 rows on
    the CPU are made by our kernels. Anything else goes to PyTorch's own.

    Its gradient is sparse and coalesced, for any optimizer of PyTorch that takes one. In workers of the executor every
    `nn.EmbeddingBag` with sparse=True works as this one.

    Examples
    --------
    >>> import torch
    >>> bag = EmbeddingBag(100, 8, mode="sum")
    >>> bag(torch.tensor([3, 5, 5]), torch.tensor([0, 2])).shape
    torch.Size([2, 8])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, **options: Any) -> None:
        super().__init__(num_embeddings, embedding_dim, **{"sparse": True, **options})

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:  # fmt: skip
        """A row a bag."""
        if not self._is_ours(input, offsets, per_sample_weights):
            whole: Tensor = super().forward(input, offsets, per_sample_weights)
            return whole
        ids = input.reshape(-1).long().numpy()
        padding = -1 if self.padding_idx is None else self.padding_idx
        factors = _NO_FACTORS if per_sample_weights is None else per_sample_weights.detach().reshape(-1).numpy()
        found: Tensor = _Bags.apply(
            self.weight, ids, self._starts(input, offsets), factors, padding, self.mode == "mean"
        )
        return found

    def _is_ours(self, ids: Tensor, offsets: Tensor | None, factors: Tensor | None) -> bool:
        weight = self.weight
        plain = self.sparse and self.mode in ("sum", "mean") and self.max_norm is None and not self.scale_grad_by_freq
        near = weight.device.type == "cpu" and weight.dtype is torch.float32 and weight.is_contiguous()
        given = ids.dtype in (torch.int64, torch.int32) and ids.ndim == (2 if offsets is None else 1)
        if factors is not None:
            weighs = self.mode == "sum" and factors.dtype is torch.float32 and factors.is_contiguous()
            given = given and weighs and factors.shape == ids.shape and not factors.requires_grad
        return plain and near and given and not torch.compiler.is_exporting()

    def _starts(self, ids: Tensor, offsets: Tensor | None) -> Numbers:
        """Where each bag begins, and where the last ends."""
        if offsets is None:
            return np.arange(len(ids) + 1, dtype=np.int64) * np.int64(ids.shape[1])
        numbers: Numbers = offsets.long().numpy()
        ends = [] if self.include_last_offset else [len(ids)]
        return np.concatenate([numbers, np.array(ends, np.int64)])


class _Bags(torch.autograd.Function):
    """Sums or means of rows."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, ids: Numbers, starts: Numbers, factors: npt.NDArray[np.float32], padding: int,
        mean: bool,
    ) -> Tensor:  # fmt: skip
        bags = len(starts) - 1
        owners, sizes = np.empty(len(ids), np.int32), np.empty(bags, np.float32)
        out = torch.empty(bags, weight.shape[1])
        wrong = look_up(weight.detach().numpy(), ids, starts, factors, padding, owners, sizes, out.numpy())
        if wrong >= 0 or (bags and (starts[0] != 0 or starts[-1] != len(ids))):
            raise IndexError(
                f"a bag names a row outside of the {len(weight)} rows of the table, or begins outside of the "
                f"{len(ids)} ids (entry {wrong})."
            )
        ctx.given = ids, owners, factors
        ctx.share = torch.from_numpy(sizes).clamp_(min=1).reciprocal_()[:, None] if mean else None
        ctx.shape = weight.shape
        return out if ctx.share is None else out.mul_(ctx.share)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        if ctx.share is not None:
            gradient = gradient * ctx.share
        ids, owners, factors = ctx.given
        rows, sums = rows_and_sums(ids, gradient.contiguous(), owners, factors)
        return sparse_rows(rows, sums, ctx.shape), None, None, None, None, None


def rows_and_sums(
    ids: Numbers, gradient: Tensor, owners: npt.NDArray[np.int32] = _NO_OWNERS,
    factors: npt.NDArray[np.float32] = _NO_FACTORS,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The rows that ids name, each once and in order, with the sums of their gradients (float32, two dimensions).

    owners: which gradient belongs to each id, -1: none; by default each id has its own.
    """
    keys, spare, rows = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64), np.empty(len(ids), np.int64)
    count = sort_rows(ids, keys, spare, np.empty(COUNTS, np.int64), rows)
    sums = torch.empty(count, gradient.shape[1])
    sum_rows(keys, gradient.numpy(), owners, factors, sums.numpy())
    return torch.from_numpy(rows[:count]), sums


def sparse_rows(rows: Tensor, cells: Tensor, shape: Any) -> Tensor:
    """A sparse tensor of some rows, each once and in order."""
    return torch.sparse_coo_tensor(rows[None], cells, tuple(shape), is_coalesced=True, check_invariants=False)


def use_our_bags(module: nn.Module, compiled: bool = False) -> None:
    """Let the bags of a module that have sparse gradients be ours; what they compute stays the same.

    compiled: the module will be compiled by PyTorch, around its bags.
    """
    rows_and_sums(np.zeros(1, np.int64), torch.zeros(1, 1))  # kernels are compiled, or found, before the first visit
    for part in module.modules():
        if type(part) is nn.EmbeddingBag and part.sparse:
            part.__class__ = EmbeddingBag
        if isinstance(part, EmbeddingBag):
            with torch.no_grad():
                part(torch.zeros(1, 1, dtype=torch.int64))
            if compiled:
                part.__dict__["forward"] = torch.compiler.disable(part.forward)
