"""Linear models as scikit-learn estimators, trained by lock-free workers."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import ConfigError
from hogwild.estimators.sklearn import keep_arguments, train_for, value_errors
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.memory import feed_of
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.matrix import sound
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.sparse.metrics import chosen_classes, probabilities

# -- The weighted samples of small data in one order, however they were written ---------------------------------------


Array = npt.NDArray[Any]

SMALL = 10_000  # rows up to which data is brought into one order
_REPEATS = 10  # rows that whole weights may make of one, on average


def canonical(X: Any, y: Array, weight: Array) -> tuple[Any, Array, Array]:
    """The same weighted samples in an order of their own: sorted, and with rows of a whole weight repeated.

    So a model of small data depends neither on the order of its rows nor on whether a row is repeated or weighed.
    """
    rows = len(y)
    whole = bool((weight == np.round(weight)).all()) and float(weight.sum()) <= _REPEATS * rows
    order = np.lexsort((weight, np.unique(y, return_inverse=True)[1], _keys(X)))
    if whole:
        order = np.repeat(order, weight[order].astype(np.int64))
    return X[order], y[order], np.ones(len(order), np.float32) if whole else weight[order]


def _keys(X: Any) -> npt.NDArray[np.uint64]:
    """A number for each row: equal for equal rows, dense or sparse, and hardly ever for others. Exact, modulo 2^64."""
    multipliers = np.random.default_rng(0).integers(0, 2**64, X.shape[1], np.uint64)
    if isinstance(X, np.ndarray):
        return np.asarray((X + np.float32(0)).view(np.uint32) @ multipliers)  # plus zero: -0 becomes 0
    terms = (X.data + np.float32(0)).view(np.uint32) * multipliers[X.indices]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


try:
    from joblib import effective_n_jobs  # type: ignore[import-untyped]
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state, compute_class_weight
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("the estimators need scikit-learn 1.6 or newer: pip install 'hogwild[sklearn]'") from error


_VISITS = 100_000  # that small data is visited in all when the user gives no number of epochs
_LEAST, _MOST = 5, 200  # epochs then
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


class _LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor have in common."""

    program_: Linear

    def __init__(
        self, *, optimizer: str = "adagrad", l1: float = 0.0, l2: float = 0.0, fit_intercept: bool = True,
        epochs: int | None = None, lr: float | None = None, schedule: str = "linear", n_jobs: int | None = None,
        mode: str = "hogwild", sharing: str = "auto", validation_fraction: float = 0.0, patience: int = 3,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        keep_arguments(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Array, Array]:
        """X as CSR or dense float32, y as it is, weights as float32; rows of weight 0 are left out.

        reset: this is the first data that the model sees.
        """
        numeric = isinstance(self, RegressorMixin)
        X = sound(X) if hasattr(X, "tocsr") else X
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float32, order="C", y_numeric=numeric, reset=reset
        )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float32, ensure_non_negative=True)
        kept = weight > 0
        if not kept.any():
            raise ValueError("all sample weights are zero; at least one must be positive.")
        if not kept.all():
            X, y, weight = X[kept], y[kept], weight[kept]
        return canonical(X, y, weight) if reset and len(y) <= SMALL else (X, y, weight)

    def _train(self, feed: Feed, program: Linear, *, valid: Feed | None = None, **options: Any) -> None:
        """Run the executor and take over what it learnt."""
        threads = effective_n_jobs(self.n_jobs)
        if valid is not None:
            options["patience"] = self.patience
        executor = AsyncExecutor(threads=threads, mode=self.mode, sharing=self.sharing, **options)
        train_for(self, executor, program, feed, valid)

    def _fit(self, X: Any, targets: Array, weight: Array, program: Linear, strata: Array | None) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        train, valid = np.arange(len(targets)), None
        if self.validation_fraction:
            share = {"test_size": self.validation_fraction, "random_state": seed, "stratify": strata}
            train, held = train_test_split(train, **share)
            valid = feed_of(X[held], targets[held], weight[held])
            X, targets, weight = X[train], targets[train], weight[train]
        epochs = self.epochs
        if epochs is None:
            epochs = min(_MOST, max(_LEAST, math.ceil(_VISITS / len(train))))
        feed = feed_of(X, targets, weight, rank=effective_n_jobs(self.n_jobs) > 1)
        self._train(feed, program, valid=valid, epochs=epochs, lr=self.lr, schedule=self.schedule, seed=seed)

    def _fit_on(self, X: Any, targets: Array, weight: Array, program: Linear) -> None:
        """One epoch more, at the learning rate of the first one."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1)) + getattr(self, "t_", 0)
        feed = feed_of(X, targets, weight, rank=effective_n_jobs(self.n_jobs) > 1)
        lr = self.lr if self.lr is not None else getattr(self, "lr_", None)
        self._train(feed, program, epochs=1, lr=lr, schedule="constant", seed=seed)
        self.t_ = getattr(self, "t_", 0) + 1

    def _program(self, loss: str, classes: range) -> Linear:
        return Linear(
            loss=loss, optimizer=self.optimizer, l1=self.l1, l2=self.l2, bias=self.fit_intercept,
            features=self.n_features_in_, classes=classes,
        )  # fmt: skip

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        with value_errors():
            X = sound(X) if hasattr(X, "tocsr") else X
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, order="C", reset=False)
            return self.program_.scores(feed_of(X, rank=False), threads=effective_n_jobs(self.n_jobs))


class HogwildClassifier(ClassifierMixin, _LinearEstimator):  # type: ignore[misc]
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

    def __init__(
        self, loss: str = "logistic", *, optimizer: str = "adagrad", l1: float = 0.0, l2: float = 0.0,
        fit_intercept: bool = True, class_weight: Any = None, epochs: int | None = None, lr: float | None = None,
        schedule: str = "linear", n_jobs: int | None = None, mode: str = "hogwild", sharing: str = "auto",
        validation_fraction: float = 0.0, patience: int = 3, random_state: Any = None,
    ) -> None:  # fmt: skip
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch."""
        with value_errors():
            X, y, weight = self._validated(X, y, sample_weight, reset=True)
            check_classification_targets(y)
            self.classes_, numbers = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"there is only one class, {self.classes_[0]!r}; a classifier needs samples of at least 2 classes."
                )
            scale = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            weight = weight * scale[numbers].astype(np.float32)
            self._fit(X, numbers, weight, self._classifier(), numbers)
        return self._expose()

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch more on these samples; the first call needs all classes."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be given on the first call to partial_fit: all labels that will ever come.")
        if self.class_weight == "balanced":
            raise ValueError("class_weight 'balanced' cannot be known part by part; give weights by class.")
        with value_errors():
            X, y, weight = self._validated(X, y, sample_weight, reset=first)
            known = np.unique(classes) if first else self.classes_
            if classes is not None and not np.array_equal(np.unique(classes), known):
                raise ValueError(f"classes are {np.unique(classes)}, but on the first call they were {known}.")
            if len(known) < 2:
                raise ValueError(f"there is only one class, {known}; a classifier needs at least 2 classes.")
            numbers = np.searchsorted(known, y)
            if (known[np.minimum(numbers, len(known) - 1)] != y).any():
                raise ValueError(f"y holds labels that are not among the classes {known}.")
            self.classes_ = known
            scale = compute_class_weight(self.class_weight, classes=known, y=known)
            program = self._classifier() if first else self.program_
            self._fit_on(X, numbers, weight * scale[numbers].astype(np.float32), program)
        return self._expose()

    def decision_function(self, X: Any) -> Floats:
        """One score a row (above 0: the second class) or, for more than two classes, one a class."""
        return self._scores(X)

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        scores = self._scores(X)
        return np.asarray(self.classes_[chosen_classes(scores)])

    @available_if(lambda self: self.loss == "logistic")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """(rows, classes): the probability of each class."""
        return probabilities(self._scores(X))

    @available_if(lambda self: self.loss == "logistic")  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def _classifier(self) -> Linear:
        if self.loss not in ("logistic", "hinge"):
            raise ConfigError(f"loss is {self.loss!r}; it must be logistic or hinge.")
        return self._program(self.loss, range(len(self.classes_)))

    def _expose(self) -> Self:
        arrays = self.program_.arrays()
        self.coef_ = arrays["weight"].reshape(self.n_features_in_, -1).T
        self.intercept_ = arrays["bias"]
        return self


class HogwildRegressor(RegressorMixin, _LinearEstimator):  # type: ignore[misc]
    __doc__ = f"""A linear regression: least squares.
{_PARAMETERS.format(own="", shape="(features,)", intercept="(1,)")}
    Examples
    --------
    >>> from hogwild import HogwildRegressor
    >>> model = HogwildRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[3.0]]).round(1).tolist()
    [7.0]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch."""
        with value_errors():
            X, y, weight = self._validated(X, y, sample_weight, reset=True)
            self._fit(X, y, weight, self._program("squared", range(0)), None)
        return self._expose()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch more on these samples."""
        first = not hasattr(self, "program_")
        with value_errors():
            X, y, weight = self._validated(X, y, sample_weight, reset=first)
            self._fit_on(X, y, weight, self._program("squared", range(0)) if first else self.program_)
        return self._expose()

    def predict(self, X: Any) -> Floats:
        """The quantity of each row."""
        return self._scores(X)

    def _expose(self) -> Self:
        arrays = self.program_.arrays()
        self.coef_, self.intercept_ = arrays["weight"], arrays["bias"]
        return self
