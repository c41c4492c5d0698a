"""What estimators over rows of numbers have in common: classifiers and regressors of any program."""

from __future__ import annotations

import functools
import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import ConfigError
from hogwild.estimators.sklearn import train_for, value_errors
from hogwild.executor.backends.steps import SMALL as FEW
from hogwild.executor.backends.steps import Stepper
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.memory import feed_of
from hogwild.feeds.sparse.matrix import sound
from hogwild.programs.sparse.metrics import chosen_classes, probabilities
from hogwild.programs.sparse.quantities import QUANTITIES, predicted

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
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state, compute_class_weight
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise ImportError("the estimators need scikit-learn 1.6 or newer: pip install 'hogwild[sklearn]'") from error



_VISITS = 100_000  # that small data is visited in all when the user gives no number of epochs
_LEAST, _MOST = 5, 200  # epochs then
_LARGE = float(np.finfo(np.float32).max)


@functools.lru_cache(maxsize=64)
def _first_of(seed: int) -> int:
    return int(check_random_state(seed).randint(2**31 - 1))


def usual_epochs(rows: int) -> int:
    """Passes over so many rows, where the user gives no number."""
    return min(_MOST, max(_LEAST, math.ceil(_VISITS / rows)))


class Trained(BaseEstimator):  # type: ignore[misc]
    """An estimator that is trained by the executor, from scratch or a little further."""

    program_: Any
    _stepper: Stepper | None = None

    def _train(self, feed: Any, program: Any, *, valid: Any = None, **options: Any) -> None:
        """Run the executor and take over what it learnt."""
        threads = effective_n_jobs(self.n_jobs)
        if valid is not None:
            options["patience"] = self.patience
        executor = AsyncExecutor(threads=threads, mode=self.mode, sharing=self.sharing, **options)
        train_for(self, executor, program, feed, valid, quiet=not self.verbose)

    def _seed(self) -> int:
        if not isinstance(self.random_state, int):
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        return _first_of(self.random_state)

    def _train_on(self, feed: Any, program: Any) -> None:
        """One epoch more, at the learning rate of the first one; few rows without the executor, below a millisecond."""
        made = getattr(self, "t_", 0)
        seed = self._seed() + made
        lr = self.lr if self.lr is not None else getattr(self, "lr_", None)
        free = self.n_jobs in (None, 1) and self.mode in ("hogwild", "serial") and self.sharing in ("auto", "all")
        if free and made and lr is not None and len(feed) <= FEW and not self.verbose:
            if self._stepper is None or self._stepper.program is not program:
                self._stepper = Stepper(program)
            self.loss_curve_, self.n_iter_ = [self._stepper(feed, lr, seed)], 1
        else:
            self._train(feed, program, epochs=1, lr=lr, schedule="constant", seed=seed)
        self.t_ = made + 1

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: without machine code."""
        return {name: value for name, value in super().__getstate__().items() if name != "_stepper"}


class RowEstimator(Trained):
    """Rows of numbers, dense or sparse."""

    _whole = 0  # rows that are scored together, where that matters to the last bit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _program(self, loss: str, classes: range, rows: int, **more: Any) -> Any:
        """The program, without weights, for a loss; rows: how many there are to learn from."""
        raise NotImplementedError

    def _expose(self) -> Self:
        """What is learnt has changed."""
        return self

    def _validated(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Array, Array]:
        """X as CSR or dense float32, y as it is, weights as float32; rows of weight 0 are left out.

        reset: this is the first data that the model sees.
        """
        numeric = isinstance(self, RegressorMixin)
        if not reset and sample_weight is None and self._is_plain(X, y):
            return self._formed(np.ascontiguousarray(X, np.float32), reset), y, np.ones(len(y), np.float32)
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
        X = self._formed(X, reset)
        return canonical(X, y, weight) if reset and len(y) <= SMALL else (X, y, weight)

    def _formed(self, X: Any, reset: bool) -> Any:
        """Rows as the program takes them. reset: these are the first."""
        return X

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether there is nothing to check: numbers in arrays, of the right shape and finite. A row is soon looked
        at, and scikit-learn takes most of a millisecond for it."""
        plain = type(X) is np.ndarray and type(y) is np.ndarray and X.dtype.kind == "f" and y.dtype.kind in "fiuU"
        return (
            plain and X.ndim == 2 and y.shape == (len(X),) and 0 < len(X) <= FEW
            and X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X.sum(dtype=np.float64)) and np.abs(X).max() < _LARGE)
            and (y.dtype.kind != "f" or bool(np.isfinite(y).all()))
        )  # fmt: skip

    def _fit(self, X: Any, targets: Array, weight: Array, program: Any, strata: Array | None) -> None:
        seed = self._seed()
        train, valid = np.arange(len(targets)), None
        if self.validation_fraction:
            share = {"test_size": self.validation_fraction, "random_state": seed, "stratify": strata}
            train, held = train_test_split(train, **share)
            valid = feed_of(X[held], targets[held], weight[held])
            X, targets, weight = X[train], targets[train], weight[train]
        epochs = usual_epochs(len(train)) if self.epochs is None else self.epochs
        feed = feed_of(X, targets, weight, rank=effective_n_jobs(self.n_jobs) > 1)
        self._train(feed, program, valid=valid, epochs=epochs, lr=self.lr, schedule=self.schedule, seed=seed)

    def _fit_on(self, X: Any, targets: Array, weight: Array, program: Any) -> None:
        """One epoch more."""
        self._train_on(feed_of(X, targets, weight, rank=effective_n_jobs(self.n_jobs) > 1), program)

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        with value_errors():
            X = sound(X) if hasattr(X, "tocsr") else X
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, order="C", reset=False)
            rows, X = X.shape[0], self._formed(X, reset=False)
            if self._whole and rows % self._whole:  # so that a score does not depend on where its row stands
                X = X[np.minimum(np.arange(rows + -rows % self._whole), rows - 1)]
            scores: Floats = self.program_.scores(feed_of(X, rank=False), threads=effective_n_jobs(self.n_jobs))
            return scores[:rows]


class RowClassifier(ClassifierMixin, RowEstimator):  # type: ignore[misc]
    """Two or more classes."""

    losses: tuple[str, ...] = ("logistic",)
    loss = "logistic"

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
            self._fit(X, numbers, weight, self._classifier(len(y)), numbers)
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
            if self.class_weight is not None:
                scale = compute_class_weight(self.class_weight, classes=known, y=known)
                weight = weight * scale[numbers].astype(np.float32)
            self._fit_on(X, numbers, weight, self._classifier(len(y)) if first else self.program_)
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

    def _classifier(self, rows: int) -> Any:
        if self.loss not in self.losses:
            raise ConfigError(f"loss is {self.loss!r}; it must be {' or '.join(self.losses)}.")
        return self._program(self.loss, range(len(self.classes_)), rows)


class RowRegressor(RegressorMixin, RowEstimator):  # type: ignore[misc]
    """A quantity."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch."""
        with value_errors():
            X, y, weight = self._validated(X, y, sample_weight, reset=True)
            self._fit(X, y, weight, self._regression(len(y)), None)
        return self._expose()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch more on these samples."""
        first = not hasattr(self, "program_")
        with value_errors():
            X, y, weight = self._validated(X, y, sample_weight, reset=first)
            self._fit_on(X, y, weight, self._regression(len(y)) if first else self.program_)
        return self._expose()

    def predict(self, X: Any) -> Floats:
        """The quantity of each row."""
        return predicted(self.loss, self._scores(X))

    def _regression(self, rows: int) -> Any:
        if self.loss not in QUANTITIES:
            raise ConfigError(f"loss is {self.loss!r}; it must be one of {', '.join(QUANTITIES)}.")
        own = {"huber": {"huber_delta": self.huber_delta}, "quantile": {"quantile": self.quantile}}
        return self._program(self.loss, range(0), rows, **own.get(self.loss, {}))


__all__ = [
    "ClassNamePrefixFeaturesOutMixin", "ClassifierMixin", "RegressorMixin", "RowClassifier", "RowEstimator",
    "RowRegressor", "Trained", "TransformerMixin", "canonical", "check_classification_targets", "check_is_fitted",
    "column_or_1d", "usual_epochs",
]  # fmt: skip
