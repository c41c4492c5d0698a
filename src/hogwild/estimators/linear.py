"""Linear models as scikit-learn estimators, trained by lock-free workers."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.estimators.rows import RowClassifier, RowRegressor
from hogwild.estimators.sklearn import keep_arguments
from hogwild.programs.sparse.linear import Linear

_PARAMETERS = """
    Parameters
    ----------{own}
    optimizer : update rule: `sgd`, `momentum`, `adagrad`, `adam` or `ftrl`.
    l1, l2 : penalties a sample; see `hogwild.Linear`.
    fit_intercept : learn an intercept.
    epochs : passes over the data; None: 5, and more for fewer than 20,000 rows (up to 200).
    lr : first learning rate; None: calibrated on a sample of the data.
    schedule : how it falls in `fit`: `constant`, `linear`, `inverse`; `partial_fit` keeps it constant.
    n_jobs : workers; None: 1, -1: one a core. Results repeat with one worker and a `random_state`; more workers
        overwrite each other's weights without locks, and each run differs a little.
    mode, sharing : how workers take turns and which weights they hold in common; see `hogwild.AsyncExecutor`.
    validation_fraction : share of the rows that `fit` keeps apart to measure the loss after each epoch; the weights
        are then those of the best epoch. 0: none.
    patience : with validation_fraction: end when the loss has not fallen for so many epochs; 0: never.
    random_state : makes the order of the visits.
    verbose : show how far training is.

    Attributes
    ----------
    coef_ : {shape} weights; intercept_ : {intercept}.
    n_features_in_, feature_names_in_ : as in scikit-learn.
    n_iter_ : epochs made by the last fit; loss_curve_ : mean training loss of each, taken before each update.
    lr_ : learning rate that was used; program_ : the `hogwild.Linear` behind it.

    Notes
    -----
    `fit` brings up to 10,000 rows into an order of its own and repeats rows whose weight is a whole number: the model
    depends neither on their order nor on whether a row is repeated or weighed. On larger data weights scale steps, and
    that is true on average only. A weight of 0 is the same as no row.
"""


class _Weights:
    """Weights as scikit-learn calls them: taken out of the program when they are asked for."""

    def _program(self: Any, loss: str, classes: range, rows: int, **more: Any) -> Linear:
        return Linear(
            loss=loss, **more, optimizer=self.optimizer, l1=self.l1, l2=self.l2, bias=self.fit_intercept,
            features=self.n_features_in_, classes=classes,
        )  # fmt: skip

    @property
    def intercept_(self: Any) -> Floats:
        """The intercept, or one a class."""
        return _learnt(self)["bias"]


def _learnt(estimator: Any) -> dict[str, npt.NDArray[Any]]:
    program = vars(estimator).get("program_")
    if program is None:
        raise AttributeError(f"{type(estimator).__name__} has not been trained yet")
    found: dict[str, npt.NDArray[Any]] = program.arrays()
    return found


class HogwildClassifier(_Weights, RowClassifier):
    __doc__ = f"""A linear classifier of two or more classes.
{_PARAMETERS.format(
    own='''
    loss : `logistic` (softmax for more than two classes; gives probabilities) or `hinge`.
    class_weight : weight of each class by label, or `balanced`.''',
    shape="(1, features), or (classes, features) for more than two classes,",
    intercept="(1,) or (classes,)",
)}
    Examples
    --------
    >>> from hogwild import HogwildClassifier
    >>> model = HogwildClassifier(random_state=0).fit([[0.0], [1.0], [0.1], [0.9]], ["no", "yes", "no", "yes"])
    >>> model.predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    losses = ("logistic", "hinge")

    def __init__(
        self, loss: str = "logistic", *, optimizer: str = "adagrad", l1: float = 0.0, l2: float = 0.0,
        fit_intercept: bool = True, class_weight: Any = None, epochs: int | None = None, lr: float | None = None,
        schedule: str = "linear", n_jobs: int | None = None, mode: str = "hogwild", sharing: str = "auto",
        validation_fraction: float = 0.0, patience: int = 3, random_state: Any = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        keep_arguments(self, locals())

    @property
    def coef_(self) -> Floats:
        """Weights: (1, features), or (classes, features)."""
        return _learnt(self)["weight"].reshape(self.n_features_in_, -1).T


class HogwildRegressor(_Weights, RowRegressor):
    __doc__ = f"""A linear regression of the mean, a quantile, or the mean of counts.
{_PARAMETERS.format(
    own='''
    loss : `squared` (the mean), `huber` (the mean, outliers count less), `quantile`, or `poisson` (the mean of counts:
        targets are not negative, and weights act on its logarithm).
    huber_delta : with huber: errors up to this count by their squares, larger ones by their size; in the unit of y.
    quantile : with quantile: the share of y that is to lie below what is predicted.''',
    shape="(features,)",
    intercept="(1,)",
)}
    Examples
    --------
    >>> from hogwild import HogwildRegressor
    >>> model = HogwildRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[3.0]]).round(1).tolist()
    [7.0]
    """

    def __init__(
        self, loss: str = "squared", *, huber_delta: float = 1.0, quantile: float = 0.5, optimizer: str = "adagrad",
        l1: float = 0.0, l2: float = 0.0, fit_intercept: bool = True, epochs: int | None = None,
        lr: float | None = None, schedule: str = "linear", n_jobs: int | None = None, mode: str = "hogwild",
        sharing: str = "auto", validation_fraction: float = 0.0, patience: int = 3, random_state: Any = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        keep_arguments(self, locals())

    @property
    def coef_(self) -> Floats:
        """Weights: (features,)."""
        return _learnt(self)["weight"]
