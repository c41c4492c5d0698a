"""PyTorch: any module as a program of the executor, and our programs as modules; needs the extra `torch`."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from hogwild.errors import ConfigError

_HOMES = {
    "BiLSTMModule": "tagger", "DataFacts": "data", "EmbeddingBag": "bags", "ModuleTask": "program",
    "Rule": "rules", "SparseMLPModule": "export", "TorchProgram": "program", "module_of": "export",
}  # fmt: skip

__all__ = sorted(_HOMES)  # noqa: PLE0605


def require_torch() -> None:
    """Raise ConfigError where PyTorch is not installed."""
    if find_spec("torch") is None:
        raise ConfigError('modules and devices need PyTorch, which is not installed: pip install "hogwild[torch]".')


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild.pytorch' has no attribute {name!r}")
    require_torch()
    return getattr(importlib.import_module(f"hogwild.pytorch.{_HOMES[name]}"), name)
