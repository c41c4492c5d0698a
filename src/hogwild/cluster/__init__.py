"""Training on several machines: the same programs, on Ray.

`train` is a generator of the events of a run; `Texts` and `Rows` name files that the nodes read themselves, each its
part.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from hogwild.errors import ConfigError

_HOMES = {"ClusterConfig": "config.cluster", "ClusterExecutor": "cluster.driver", "Rows": "cluster.rows.rows",
          "Texts": "cluster.text.texts", "train": "cluster.driver"}  # fmt: skip

__all__ = sorted(_HOMES)  # noqa: PLE0605


def require_ray() -> None:
    """Raise ConfigError where Ray is not installed."""
    if find_spec("ray") is None:
        raise ConfigError('several nodes need Ray, which is not installed: pip install "hogwild[ray]".')


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild.cluster' has no attribute {name!r}")
    require_ray()
    return getattr(importlib.import_module(f"hogwild.{_HOMES[name]}"), name)
