"""Texts for scikit-learn: a classifier of texts, and word vectors that make vectors of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Rows
from hogwild.config import CorpusConfig, FeedConfig, TextConfig, Word2VecConfig
from hogwild.errors import InputError, brief
from hogwild.estimators.rows import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    Trained,
    TransformerMixin,
    check_classification_targets,
    check_is_fitted,
    column_or_1d,
    usual_epochs,
)
from hogwild.estimators.sklearn import options_for, parameters, value_errors
from hogwild.feeds.corpus.open import corpus_of
from hogwild.feeds.memory import feed_of, importance_of
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.hashing import Hashing, hash_texts
from hogwild.programs.sparse.metrics import chosen_classes, probabilities
from hogwild.programs.sparse.text_classifier import TextClassifier
from hogwild.programs.words.vectors import Vectors
from hogwild.programs.words.word2vec import Word2Vec

_READING: dict[str, tuple[Any, str]] = {
    "ngrams": (2, "longest run of words that is a feature"),
    "lowercase": (True, "capital ASCII letters are small ones"),
    "hash_bits": (20, "features are hashed to 2^hash_bits numbers"),
    "class_weight": (None, "weight of each class by label, or `balanced`"),
}


class _OfTexts(Trained):
    """What takes texts, not rows of numbers: scikit-learn's checks of the latter are none for it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False, True
        return tags


def texts_of(X: Any) -> list[str]:
    """Texts, one a row; ValueError for what is none."""
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise ValueError(f"X is {brief(X)}; give a list of texts.")
    texts = [row[0] if isinstance(row, np.ndarray) and row.shape == (1,) else row for row in X]
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"row {place} of X is {brief(text)}, not a text.")
    if not texts:
        raise ValueError("X has no texts; give at least one.")
    return texts


@functools.lru_cache(maxsize=16)
def _recipe(hashing: tuple[tuple[str, Any], ...]) -> Any:
    return Hashing(**dict(hashing)).recipe()


@parameters(TextConfig, _READING)
class HogwildTextClassifier(ClassifierMixin, _OfTexts):  # type: ignore[misc]
    """A classifier of texts: averaged embeddings of words and n-grams under a linear layer.

    X is a list of texts. Of the checks of scikit-learn only those apply that give no rows of numbers.

    Parameters
    ----------

    Attributes
    ----------
    classes_, n_iter_, loss_curve_, lr_ : as in HogwildClassifier.
    program_ : the `hogwild.TextClassifier` behind it.

    Examples
    --------
    >>> from hogwild.estimators import HogwildTextClassifier
    >>> texts = ["a warm film", "warm and clever", "dull", "a dull film"]
    >>> model = HogwildTextClassifier(random_state=0).fit(texts, ["good", "good", "bad", "bad"])
    >>> model.predict(["clever", "dull as ever"]).tolist()
    ['good', 'bad']
    """

    program_: TextClassifier

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch."""
        with value_errors():
            texts, labels = texts_of(X), self._labels(X, y)
            self.classes_ = np.unique(labels)
            feed = self._first_feed(texts, labels, sample_weight)
            epochs = usual_epochs(len(texts)) if self.epochs is None else self.epochs
            options = {"epochs": min(epochs, _MOST) if self.epochs is None else epochs, "lr": self.lr}
            self._train(feed, self._made(), **options, schedule=self.schedule, seed=self._seed())
        self.t_ = 1
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch more on these texts; the first call needs all classes."""
        with value_errors():
            texts = texts_of(X)
            if not hasattr(self, "program_"):
                labels = self._labels(X, y)
                if classes is None:
                    raise ValueError("classes must be given on the first call to partial_fit: all that will ever come.")
                self.classes_ = np.unique(classes)
                self._train_on(self._first_feed(texts, labels, sample_weight), self._made())
            else:
                self._train_on(self._hashed(texts, np.asarray(y), sample_weight), self.program_)
        return self

    def decision_function(self, X: Any) -> Floats:
        """One score a text (above 0: the second class) or, for more than two classes, one a class."""
        check_is_fitted(self)
        with value_errors():
            return self.program_.scores(self._hashed(texts_of(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each text."""
        return np.asarray(self.classes_[chosen_classes(self.decision_function(X))])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """(texts, classes): the probability of each class."""
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def _made(self) -> TextClassifier:
        if len(self.classes_) < 2:
            raise ValueError(f"there is only one class, {self.classes_[0]!r}; a classifier needs at least 2 classes.")
        weight = self.class_weight
        pairs = [(str(label), value) for label, value in weight.items()] if isinstance(weight, Mapping) else weight
        return TextClassifier(**options_for(self), class_weight=pairs, classes=[str(label) for label in self.classes_])

    def _labels(self, X: Any, y: Any) -> npt.NDArray[Any]:
        if y is None:
            raise ValueError("y is None, and a classifier requires y to be passed: one label a text.")
        labels = column_or_1d(y)
        check_classification_targets(labels)
        if len(labels) != len(X):
            raise ValueError(f"X has {len(X)} texts, but y has {len(labels)} labels; give one a text.")
        return np.asarray(labels)

    def _first_feed(self, texts: list[str], labels: npt.NDArray[Any], weight: Any) -> Feed:
        """Texts read as files are, so that a saved model knows how."""
        reading = {name: getattr(self, name) for name in ("ngrams", "lowercase", "hash_bits")}
        return feed_of(texts, [str(label) for label in labels], weight, rank=False, config=FeedConfig(**reading))

    def _hashed(self, texts: list[str], labels: npt.NDArray[Any] | None = None, weight: Any = None) -> Feed:
        """The same features, by the schema of the model and at once."""
        schema = self.program_.schema or {}
        try:
            parts = [text.encode() for text in texts]
        except UnicodeEncodeError:
            raise InputError("a text holds half of a surrogate pair; clean it first.") from None
        ends = np.cumsum([0, *map(len, parts)])
        bounds = np.ascontiguousarray(np.stack([ends[:-1], ends[1:]], axis=1))
        recipe = _recipe(tuple(schema["hashing"].items()))
        lengths, ids, values = hash_texts(recipe, np.frombuffer(bytearray(b"".join(parts)), np.uint8), bounds)
        values = values if len(values) else np.ones(len(ids), np.float32)
        places = np.zeros(len(texts)) if labels is None else self._places(labels, len(texts))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        rows = Rows(offsets, ids, values, places.astype(np.float32), importance_of(weight, len(texts)))
        names = tuple(str(label) for label in self.classes_)
        return Feed(rows, 1 << recipe.bits, labels=names, schema=schema, labelled=labels is not None)

    def _places(self, labels: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
        if labels.shape != (count,):
            raise ValueError(f"y has the shape {labels.shape}; give one label for each of {count} texts.")
        places = np.searchsorted(self.classes_, labels)
        if (self.classes_[np.minimum(places, len(self.classes_) - 1)] != labels).any():
            raise ValueError(f"y holds labels that are not among the classes {self.classes_}.")
        return np.asarray(places)


_MOST = 20  # epochs of texts: more are learnt by heart
_WORDS: dict[str, tuple[Any, str]] = {
    "min_count": (5, "words that occur less often have no vector"),
    "lowercase": (True, "words are in small letters"),
}


@parameters(Word2VecConfig, _WORDS)
class HogwildWord2Vec(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _OfTexts):  # type: ignore[misc]
    """Word vectors as a transformer: learnt from documents, each of which becomes the mean of the vectors of its words.

    X is a list of documents: texts, whose words are separated by white space, or lists of words. A document of which no
    word is known becomes zeros. `hogwild train word2vec` can go on with more text; there is no `partial_fit`.

    Parameters
    ----------

    Attributes
    ----------
    vectors_ : the `hogwild.Vectors`; n_iter_, loss_curve_, lr_ : as in HogwildClassifier.
    program_ : the `hogwild.Word2Vec` behind it.

    Examples
    --------
    >>> from hogwild.estimators import HogwildWord2Vec
    >>> documents = ["tea and jam", "jam and bread", "bread and tea"] * 10
    >>> HogwildWord2Vec(dim=4, min_count=1, epochs=2, random_state=0).fit_transform(documents).shape
    (30, 4)
    """

    program_: Word2Vec
    vectors_: Vectors

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from scratch; y is not looked at."""
        with value_errors():
            corpus = corpus_of(self._sentences(X), CorpusConfig(min_count=self.min_count))
            program = Word2Vec(**options_for(self))
            options = {"epochs": self.epochs, "lr": self.lr, "schedule": self.schedule}
            self._train(corpus, program, seed=self._seed(), **options)
            self.vectors_ = self.program_.vectors
        return self

    def transform(self, X: Any) -> Floats:
        """(documents, dim)."""
        check_is_fitted(self)
        matrix, rows = self.vectors_.matrix, self.vectors_.key_to_index
        found = np.zeros((0, matrix.shape[1]), np.float32)
        means = []
        for words in self._sentences(X):
            places = [rows[word] for word in words if word in rows]
            means.append(matrix[places].mean(0) if places else np.zeros(matrix.shape[1], np.float32))
        return np.asarray(means, np.float32) if means else found

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.dim)

    def _sentences(self, X: Any) -> list[list[str]]:
        if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
            raise ValueError(f"X is {brief(X)}; give a list of documents.")
        found = [document.split() if isinstance(document, str) else [str(word) for word in document] for document in X]
        return [[word.lower() for word in words] for words in found] if self.lowercase else found
