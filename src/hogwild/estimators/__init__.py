"""Programs as estimators: all programs over rows, texts and ratings for
scikit-learn (extra `sklearn`); a CRF with the face of sklearn-crfsuite."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "CRF": "crf",
    "HogwildClassifier": "linear",
    "HogwildFMClassifier": "fm",
    "HogwildFMRegressor": "fm",
    "HogwildMLPClassifier": "mlp",
    "HogwildMLPRegressor": "mlp",
    "HogwildRecommender": "recommender",
    "HogwildRegressor": "linear",
    "HogwildTextClassifier": "text",
    "HogwildWord2Vec": "text",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild.estimators' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hogwild.estimators.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
