"""A recommender as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from hogwild.arrays import Floats, Ratings
from hogwild.config import RecommenderConfig
from hogwild.errors import InputError, brief
from hogwild.estimators.rows import RegressorMixin, Trained, check_is_fitted
from hogwild.estimators.sklearn import options_for, parameters, value_errors
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.feeds.ratings.open import ratings_of
from hogwild.programs.recommender.program import MatrixFactorization

_OWN: dict[str, tuple[Any, str]] = {}


@parameters(RecommenderConfig, _OWN)
class HogwildRecommender(RegressorMixin, Trained):  # type: ignore[misc]
    """Matrix factorization: a vector for every user and every item, from ratings or from what users have.

    X has two columns, users and items, by name or number; y their ratings, or None for what users have (implicit
    feedback). Names are no numbers: of the checks of scikit-learn only those apply that give no rows of numbers.

    Parameters
    ----------

    Attributes
    ----------
    n_iter_, loss_curve_, lr_ : as in HogwildClassifier.
    program_ : the `hogwild.MatrixFactorization` behind it.

    Examples
    --------
    >>> from hogwild.estimators import HogwildRecommender
    >>> X, y = [("ann", "tea"), ("ann", "jam"), ("bob", "tea"), ("bob", "oil")], [5, 1, 4, 2]
    >>> model = HogwildRecommender(dim=4, random_state=0).fit(X, y)
    >>> model.recommend("ann", 1)[0][0]
    'oil'
    """

    program_: MatrixFactorization
    _names: Any = None  # numbers of users and items, by name

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.target_tags.required = True, False, False
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from scratch."""
        with value_errors():
            options = {"epochs": self.epochs, "lr": self.lr, "schedule": self.schedule}
            feed = ratings_of(*_columns(X), y)
            self._train(feed, MatrixFactorization(**options_for(self)), seed=self._seed(), **options)
        self._names, self.t_ = None, 1
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One epoch more on these pairs, of users and items that `fit` has seen."""
        check_is_fitted(self)
        with value_errors():
            self._train_on(self._known(X, y), self.program_)
        return self

    def predict(self, X: Any) -> Floats:
        """The rating of each pair, or its score; who is not known has the mean."""
        check_is_fitted(self)
        with value_errors():
            return self.program_.predict(ratings_of(*_columns(X), names=(self.program_.users, self.program_.items)))

    def recommend(self, user: Any, count: int = 10, seen: bool = False) -> list[tuple[str, float]]:
        """The best items for a user, with their scores, the best first; without what the user has, unless `seen`."""
        check_is_fitted(self)
        return self.program_.recommend(str(user), count, seen)

    def _known(self, X: Any, y: Any) -> RatingFeed:
        program, (users, items) = self.program_, _columns(X)
        if self._names is None:
            self._names = tuple({name: k for k, name in enumerate(side)} for side in (program.users, program.items))
        try:
            ids = [np.array([known[name] for name in column], np.int32)
                   for known, column in zip(self._names, (users, items), strict=True)]  # fmt: skip
        except KeyError as error:
            raise InputError(f"{brief(error.args[0])} was not there in `fit`; fit anew with all data.") from None
        values = np.ones(len(users), np.float32) if y is None else np.asarray(y, np.float32)
        return RatingFeed(Ratings(ids[0], ids[1], values), program.users, program.items, implicit=y is None).check()


def _columns(X: Any) -> tuple[Sequence[str], Sequence[str]]:
    """Users and items, as texts."""
    rows = X.to_numpy() if hasattr(X, "to_numpy") else X
    try:
        pairs = [(str(user), str(item)) for user, item in rows]
    except (TypeError, ValueError):
        raise InputError("X has two columns, users and items; give one pair a row.") from None
    return [user for user, _ in pairs], [item for _, item in pairs]
