"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from hogwild.config import FMConfig
from hogwild.estimators.rows import RowClassifier, RowRegressor
from hogwild.estimators.sklearn import QUANTITY, VALIDATION, options_for, parameters
from hogwild.programs.sparse.fm import FactorizationMachine

_WEIGHT = {"class_weight": (None, "weight of each class by label, or `balanced`")}
_LEFT_OUT = ("loss", "huber_delta", "quantile", "field_aware")  # rows of numbers have no fields


class _Machine:
    """What both have in common."""

    def _program(self: Any, loss: str, classes: range, rows: int, **more: Any) -> FactorizationMachine:
        more |= {"loss": loss, "features": self.n_features_in_, "classes": classes}
        return FactorizationMachine(**options_for(self), **more)


@parameters(FMConfig, _WEIGHT | VALIDATION, _LEFT_OUT)
class HogwildFMClassifier(_Machine, RowClassifier):
    """A factorization machine that tells two classes apart.

    Parameters
    ----------

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, n_iter_, loss_curve_, lr_ : as in HogwildClassifier.
    program_ : the `hogwild.FactorizationMachine` behind it.

    Examples
    --------
    >>> from hogwild.estimators import HogwildFMClassifier
    >>> pairs = [[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
    >>> model = HogwildFMClassifier(dim=2, init_scale=0.1, lr=0.2, random_state=0)
    >>> model.fit(pairs, ["same", "same", "other", "other"]).predict(pairs).tolist()
    ['same', 'same', 'other', 'other']
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _classifier(self, rows: int) -> Any:
        if len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is multiclass: there are"
                             f" {len(self.classes_)} classes.")  # fmt: skip
        return super()._classifier(rows)


@parameters(FMConfig, QUANTITY | VALIDATION, _LEFT_OUT)
class HogwildFMRegressor(_Machine, RowRegressor):
    """A factorization machine that learns a quantity.

    Parameters
    ----------

    Attributes
    ----------
    n_features_in_, feature_names_in_, n_iter_, loss_curve_, lr_, program_ : as in HogwildFMClassifier.

    Examples
    --------
    >>> from hogwild.estimators import HogwildFMRegressor
    >>> X = [[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)]
    >>> model = HogwildFMRegressor(init_scale=0.1, lr=0.1, random_state=0).fit(X, [0.0, 0.0, 0.0, 1.0])
    >>> [round(float(value)) for value in model.predict(X)]
    [0, 0, 0, 1]
    """
