"""What is known of the losses of PyTorch: which targets they take, and how often their output is right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hogwild.errors import InputError
from hogwild.pytorch.data import TensorFeed

_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)
_CLASS_FUNCTIONS = (functional.cross_entropy, functional.nll_loss, functional.multi_margin_loss)
_TWO = (nn.BCEWithLogitsLoss, nn.BCELoss)
_TWO_FUNCTIONS = (functional.binary_cross_entropy_with_logits, functional.binary_cross_entropy)


def takes_classes(loss: Any) -> bool:
    """Whether targets are numbers of classes (int64)."""
    return isinstance(loss, _CLASSES) or loss in _CLASS_FUNCTIONS


def _takes_chances(loss: Any) -> bool:
    """Whether targets lie between 0 and 1."""
    return isinstance(loss, _TWO) or loss in _TWO_FUNCTIONS


def check_targets(loss: Any, data: TensorFeed) -> None:
    """InputError where the targets of a feed are none that the loss is defined for."""
    targets = data.targets
    if targets is None or not len(targets):
        return
    low, high = float(targets.min()), float(targets.max())
    if _takes_chances(loss) and not 0 <= low <= high <= 1:
        raise InputError(f"{data.name}: targets go from {low:g} to {high:g}, and this loss takes 0 to 1; change them.")
    if takes_classes(loss) and (low < 0 or bool((targets != targets.round()).any())):
        raise InputError(f"{data.name}: targets go from {low:g} to {high:g}, and this loss takes classes 0, 1, 2, ….")


def right_of(loss: Any) -> Callable[[Tensor, Tensor], tuple[int, int]] | None:
    """How many outputs of a batch are right, and of how many, for losses of classes; None for others."""
    if takes_classes(loss):
        return partial(_best_is_right, ignored=getattr(loss, "ignore_index", None))
    return _sign_is_right if isinstance(loss, nn.BCEWithLogitsLoss) or loss is _TWO_FUNCTIONS[0] else None


def _best_is_right(output: Tensor, target: Tensor, ignored: int | None) -> tuple[int, int]:
    best = output.argmax(1)
    if best.shape != target.shape:  # chances of classes, not one class
        return 0, 0
    counts = torch.ones_like(target, dtype=torch.bool) if ignored is None else target != ignored
    return int(((best == target) & counts).sum()), int(counts.sum())


def _sign_is_right(output: Tensor, target: Tensor) -> tuple[int, int]:
    return int(((output > 0) == (target > 0.5)).sum()), target.numel()
