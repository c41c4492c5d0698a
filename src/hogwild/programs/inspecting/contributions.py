"""What makes up one prediction: terms that sum to its score, exactly where the model is a sum, else as near as said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import DenseRows, Floats
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.slots.flatten import flattened
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.inspecting.effects import empty_score, without_each
from hogwild.programs.inspecting.names import Names
from hogwild.programs.inspecting.strongest import place_of

_PAIRS = 2_000  # features of a row whose pairs are told one by one

SUM = "the terms and the base sum to the score"
LEFT_OUT = (
    "each term is what the score loses without that feature, all others left as they are; rest: what they do together"
)


class Term(NamedTuple):
    """A part of a score. value: of the feature in the row, where it has one."""

    name: str
    amount: float
    value: float | None = None


@dataclass(frozen=True)
class Explanation:
    """A score, and the terms that make it up, the strongest first: base + terms + rest is the score.

    Attributes
    ----------
    predicted : what `predict` gives for the row.
    of : the class, tag or quantity whose score this is.
    base : of the row with nothing in it: the bias, or the mean of all ratings.
    rest : what no single term accounts for; 0 where the model is a sum.
    how : what the terms are.
    where : the place of the row in its file.
    """

    predicted: Any
    of: str
    score: float
    base: float
    terms: tuple[Term, ...]
    rest: float = 0.0
    how: str = SUM
    where: str = ""

    def to_json(self, top: int) -> dict[str, Any]:
        """As JSON values; of the terms the strongest, and the sum of the others."""
        told, others = self.terms[:top], self.terms[top:]
        listed = [
            {"feature": term.name, **({} if term.value is None else {"value": term.value}), "contribution": term.amount}
            for term in told
        ]
        return {
            "row": self.where, "predicted": self.predicted, "of": self.of, "score": self.score, "base": self.base,
            "terms": listed, "others": {"terms": len(others), "contribution": sum(term.amount for term in others)},
            "rest": self.rest, "how": self.how,
        }  # fmt: skip


def sorted_terms(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The strongest first."""
    return tuple(sorted(terms, key=lambda term: -abs(term.amount)))


class _Row(NamedTuple):
    """Features of a row by their own numbers, those that the model knows; slots: of a field-aware machine."""

    features: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    slots: npt.NDArray[np.int64]


def _row_of(feed: Feed, known: int, zeros: bool = False) -> _Row:
    """The only row of a feed; zeros: with values of 0 too."""
    samples: Any = feed.samples
    if isinstance(samples, DenseRows):
        features, values = np.arange(samples.matrix.shape[1]), samples.matrix[0].astype(np.float64)
        slots = np.zeros(0, np.int64)
    else:
        ids = np.asarray(samples.ids)
        features = (ids if feed.original is None else feed.original[ids]).astype(np.int64)
        values = np.asarray(getattr(samples, "values", np.ones(len(ids))), np.float64)
        slots = np.asarray(getattr(samples, "slots", np.zeros(0)), np.int64)
    keep = ((values != 0) | zeros) & (features < known)
    return _Row(features[keep], values[keep], slots[keep] if len(slots) else slots)


def _linear(program: Any, feed: Feed, names: Names, output: int) -> tuple[float, list[Term], float]:
    arrays, row = program.arrays(), _row_of(flattened(feed), program.features)
    weight = arrays["weight"].reshape(len(arrays["weight"]), -1)[row.features, output].astype(np.float64)
    return float(arrays["bias"][output]) * program.config.bias, _named(names, row, weight * row.values), 0.0


def _named(names: Names, row: _Row, amounts: npt.NDArray[np.float64]) -> list[Term]:
    each = zip(row.features.tolist(), amounts.tolist(), row.values.tolist(), strict=True)
    return [Term(names[feature], amount, value) for feature, amount, value in each]


def _machine(program: Any, feed: Feed, names: Names, output: int) -> tuple[float, list[Term], float]:
    arrays = program.arrays()
    row = _row_of(program.rows(feed), program.features)
    terms = _named(names, row, arrays["weight"][row.features].astype(np.float64) * row.values)
    base = float(arrays["bias"][0]) * program.config.bias
    if "factors" not in arrays:
        return base, terms, 0.0
    if len(row.features) > _PAIRS:
        raise InputError(f"the row has {len(row.features):,} features, and pairs of at most {_PAIRS:,} can be told.")
    factors = arrays["factors"][row.features].astype(np.float64)
    called = [names[feature] for feature in row.features.tolist()]
    for a, b in combinations(range(len(called)), 2):
        one, other = factors[a], factors[b]
        if factors.ndim == 3:  # field-aware: what each has for the field of the other
            one, other = one[row.slots[b]], other[row.slots[a]]
        amount = float(one @ other) * row.values[a] * row.values[b]
        terms.append(Term(f"{called[a]} * {called[b]}", float(amount)))
    return base, terms, 0.0


def _text(program: Any, feed: Feed, names: Names, output: int) -> tuple[float, list[Term], float]:
    arrays, whole = program.arrays(), _row_of(feed, feed.features, zeros=True)
    whole = whole if program.config.counts else whole._replace(values=np.ones(len(whole.features)))
    known = whole.features < program.features  # others say nothing, and count
    row, values = whole._replace(features=whole.features[known], values=whole.values[known]), whole.values[known]
    total, unit = np.abs(whole.values).sum(), program.unit_of_pooling
    share = 0.0 if not total else 1 / np.sqrt(unit * total) if unit else 1 / total
    pulls = arrays["embedding"][row.features].astype(np.float64) @ arrays["output"][output].astype(np.float64)
    return float(arrays["bias"][output]), _named(names, row, pulls * values * share), 0.0


def _layers(program: Any, feed: Feed, names: Names, output: int) -> tuple[float, list[Term], float]:
    others, entries, columns = without_each(feed)

    def of_output(scores: Floats) -> npt.NDArray[np.float64]:
        wide = np.asarray(scores, np.float64)
        return wide if program.outputs == 1 else wide[..., output]

    score, base = float(of_output(program.scores(feed))[0]), float(of_output(empty_score(program)))
    losses = score - of_output(program.scores(others)) if entries + columns else np.zeros(0)
    ids = np.asarray(getattr(feed.samples, "ids", ()), np.int64)
    features = ids if feed.original is None else feed.original[ids].astype(np.int64)
    dense = feed.samples.matrix if isinstance(feed.samples, DenseRows) else getattr(feed.samples, "dense", ())
    numbers = np.asarray(dense, np.float64).reshape(-1)
    values = np.asarray(getattr(feed.samples, "values", np.ones(len(ids))), np.float64)
    called = [*(names[feature] for feature in features.tolist()), *program.dense]
    each = zip(called, losses.tolist(), (*values.tolist(), *numbers.tolist()), strict=True)
    terms = [Term(name, amount, value) for name, amount, value in each]
    return base, terms, score - base - float(losses.sum())


_OF: dict[str, Callable[[Any, Feed, Names, int], tuple[float, list[Term], float]]] = {
    "linear": _linear,
    "fm": _machine,
    "text_classifier": _text,
    "sparse_mlp": _layers,
}


def explain_row(program: Any, feed: Feed, own: Sequence[str] = (), tag: str = "") -> Explanation:
    """The score of the only row of a feed, and what makes it up. own: names of hashed features of the row; tag: the
    class whose score is asked for, by default the one with the highest."""
    scores = np.asarray(program.scores(feed))[0]
    classes = [str(label) for label in program.classes or ()]
    output, of = 0, classes[1] if classes else "the quantity"
    if program.loss == "poisson":
        of = "the logarithm of the quantity"
    if program.outputs > 1:
        chosen = place_of(tag, classes, "class")
        output = int(np.argmax(scores)) if chosen is None else chosen
        of = classes[output]
    elif tag:
        raise ConfigError("this model has one score, for all classes together; leave out --tag.")
    base, terms, rest = _OF[program.name](program, feed, Names(program.schema or {}, own), output)
    how = LEFT_OUT if program.name == "sparse_mlp" else SUM
    if getattr(program, "several", False):
        predicted: Any = [label for label, _ in program.predict_labels(feed)[0]]
    else:
        predicted = program.predict(feed).tolist()[0]
    score = float(scores if program.outputs == 1 else scores[output])
    return Explanation(predicted, of, score, base, sorted_terms(terms), rest, how)


def explain_pair(program: Any, feed: Any, place: int) -> Explanation:
    """The score of one user and item of a feed of ratings."""
    factors, part = program.factors(), feed.part(np.array([place]), "row")
    user, item = int(part.samples.users[0]), int(part.samples.items[0])
    terms = []
    if user >= 0 and program.biased:
        terms.append(Term(f"bias of user {program.users[user]}", float(factors.user_biases[user])))
    if item >= 0 and program.biased:
        terms.append(Term(f"bias of item {program.items[item]}", float(factors.item_biases[item])))
    if user >= 0 and item >= 0:
        product = float(factors.user_vectors[user].astype(np.float64) @ factors.item_vectors[item].astype(np.float64))
        terms.append(Term(f"{program.users[user]} * {program.items[item]}", product))
    score = float(program.scores(part)[0])
    of = {"squared": "the rating", "logistic": "the chance"}.get(program.loss, "the score")
    return Explanation(program.predict(part).tolist()[0], of, score, float(factors.mean), sorted_terms(terms))
