"""Dense layers over rows of numbers, or embeddings of sparse ones, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array, issparse

from hogwild.config import SparseMLPConfig
from hogwild.estimators.rows import RowClassifier, RowRegressor
from hogwild.estimators.sklearn import QUANTITY, VALIDATION, options_for, parameters
from hogwild.programs.sparse.sparse_mlp import SparseMLP

_STEPS, _LEAST, _MOST = 32, 8, 256  # of an epoch of few rows; samples of a batch where the user gives no number
_OWN: dict[str, tuple[Any, str]] = {
    "batch_size": (None, "samples of a step; None: 8 to 256, so that an epoch of few rows has 32 steps"),
} | VALIDATION
_WEIGHT = {"class_weight": (None, "weight of each class by label, or `balanced`")}
_LEFT_OUT = ("loss", "huber_delta", "quantile")


class _Layers:
    """What both have in common. Sparse rows have embeddings, dense ones are numbers: later rows are as the first."""

    _whole = _MOST

    def _formed(self: Any, X: Any, reset: bool) -> Any:
        if reset:
            self.sparse_input_ = issparse(X)
        if self.sparse_input_ == issparse(X):
            return X
        return csr_array(X) if self.sparse_input_ else X.toarray()

    def _program(self: Any, loss: str, classes: range, rows: int, **more: Any) -> SparseMLP:
        batch = min(_MOST, max(_LEAST, rows // _STEPS)) if self.batch_size is None else self.batch_size
        return SparseMLP(
            **options_for(self), **more, loss=loss, batch_size=batch, features=self.n_features_in_, classes=classes
        )


@parameters(SparseMLPConfig, _OWN | _WEIGHT, _LEFT_OUT)
class HogwildMLPClassifier(_Layers, RowClassifier):
    """Dense layers, under which sparse rows have embeddings: two or more classes.

    Rows of numbers should be of like size: put a StandardScaler before it.

    Parameters
    ----------

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, n_iter_, loss_curve_, lr_ : as in HogwildClassifier.
    program_ : the `hogwild.SparseMLP` behind it.

    Examples
    --------
    >>> from hogwild.estimators import HogwildMLPClassifier
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> HogwildMLPClassifier(hidden=(16,), lr=0.02, random_state=0).fit(X, [0, 1, 1, 0]).predict(X).tolist()
    [0, 1, 1, 0]
    """


@parameters(SparseMLPConfig, QUANTITY | _OWN, _LEFT_OUT)
class HogwildMLPRegressor(_Layers, RowRegressor):
    """Dense layers, under which sparse rows have embeddings: a quantity.

    Rows of numbers should be of like size: put a StandardScaler before it. The quantity may be of any.

    Parameters
    ----------

    Attributes
    ----------
    n_features_in_, feature_names_in_, n_iter_, loss_curve_, lr_, program_ : as in HogwildMLPClassifier.

    Examples
    --------
    >>> from hogwild.estimators import HogwildMLPRegressor
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> model = HogwildMLPRegressor(hidden=(16,), random_state=0).fit(X, [0.0, 10.0, 10.0, 0.0])
    >>> [round(float(value)) for value in model.predict(X)]
    [0, 10, 10, 0]
    """
