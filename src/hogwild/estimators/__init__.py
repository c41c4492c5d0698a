"""Programs as estimators: linear models for scikit-learn (extra `sklearn`); a CRF with the face of sklearn-crfsuite."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {"CRF": "crf", "HogwildClassifier": "linear", "HogwildRegressor": "linear"}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild.estimators' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hogwild.estimators.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
