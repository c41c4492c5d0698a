"""A CRF with the face of `sklearn_crfsuite.CRF`: users of that package change the import."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hogwild.config.options import nearest
from hogwild.errors import HogwildWarning, InputError
from hogwild.estimators.crf_model import StateWeights
from hogwild.estimators.sklearn import keep_arguments, train_for, value_errors
from hogwild.executor.readers.display import show_progress
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.machine import cores
from hogwild.programs.store import load_model, save_model
from hogwild.programs.taggers import crf
from hogwild.programs.taggers.batch import Objective
from hogwild.programs.taggers.crf_weights import Plain, pack
from hogwild.programs.taggers.decoding import CRFDecoder, Resting
from hogwild.programs.taggers.owlqn import Limits, minimise
from hogwild.programs.taggers.single import Excerpts

# -- Sentences and labels as users of CRFsuite have them, made ready for a feed ---------------------------------------


def length(sentence: Any) -> int:
    """Tokens, or labels, of a sentence."""
    try:
        return len(sentence)
    except TypeError:
        kind = type(sentence).__name__
        raise InputError(f"a sentence is of type {kind}; give a list with one item a token.") from None


def without_empty(X: Any, y: Any, name: str = "X") -> tuple[list[Any], list[Any]]:
    """Sentences with their labels; those without tokens teach nothing and are left out."""
    sentences, labels = list(X), list(y)
    if len(sentences) != len(labels):
        raise InputError(f"{name} has {len(sentences):,} sentences, but labels are there for {len(labels):,}.")
    kept = [k for k, sentence in enumerate(sentences) if length(sentence) or length(labels[k])]
    return [sentences[k] for k in kept], [labels[k] for k in kept]


def in_order_of_places(feed: TaggingFeed) -> TaggingFeed:
    """The feed with its tags in the order of their first places, as CRFsuite numbers them."""
    codes = feed.samples.tags
    found, firsts = np.unique(codes, return_index=True)
    order = found[np.argsort(firsts)]
    final = np.empty(len(feed.tags), np.int32)
    final[order] = np.arange(len(order), dtype=np.int32)
    tags = tuple(feed.tags[code] for code in order.tolist())
    return replace(feed, samples=feed.samples._replace(tags=final[codes]), tags=tags)


def seed_of(state: Any) -> int:
    """The seed that a `random_state` stands for: None, a whole number, or a generator of NumPy."""
    if state is None:
        return 1
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31 - 1))
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**31 - 1))
    if isinstance(state, (int, np.integer)):
        return int(state)
    raise InputError(f"random_state is {state!r}; give a whole number, a RandomState, or nothing.")


try:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
except ImportError:  # nothing but these two is needed of it
    from hogwild.estimators.sklearn import BaseEstimator, NotFittedError

_SAME = ("lbfgs", "l2sgd")  # they have the optimum that is looked for here
_OTHERS = ("ap", "pa", "arow")
_IDLE = (
    "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "calibration_eta",
    "calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials", "pa_type", "c",
    "error_sensitive", "averaging", "variance", "gamma", "keep_tempfiles", "trainer_cls",
)  # fmt: skip
_VISITS = 200_000  # sentences that small data is visited in all
_LEAST, _MOST = 20, 200  # epochs where the user gives no number, and iterations with c1 at the most
_LOOK = 10  # iterations between two looks at X_dev

Objects = npt.NDArray[np.object_]


class CRF(BaseEstimator):  # type: ignore[misc]
    """A linear-chain CRF with the arguments, methods and attributes of `sklearn_crfsuite.CRF` 0.5.

    Parameters
    ----------
    algorithm : `lbfgs` or `l2sgd`: the objective is theirs, and it is minimised by stochastic gradient descent. With
        `ap`, `pa` and `arow` it is the same, and a warning says so.
    min_freq : features that occur less often are left out.
    c1, c2 : the objective is the sum of -log p(labels | sentence) + c1 |w| + c2 w^2; 0 and 1 by default.
    max_iterations : epochs at the most; None: by the size of the data, from 20 to 200, which is never exceeded.
    all_possible_states, all_possible_transitions : True is what happens; with False a warning says so.
    verbose : show progress on standard error.
    model_filename : directory that `fit` saves the model in, and that a model without `fit` is loaded from.
    epochs : passes over the data; goes before max_iterations.
    lr, optimizer, schedule : learning rate (None: calibrated), update rule, how the rate falls; see `hogwild.CRF`.
    threads, mode, sharing : workers (None: one a core), how they take turns, which weights they share; see
        `hogwild.AsyncExecutor`. With one thread a model repeats bit for bit.
    rich_edges, rich_edge_min_count, structure_regularization, average : see `hogwild.CRF`.
    patience : with X_dev: end when the loss on it has not fallen for so many epochs; 0: never.
    constrain : predict only what the scheme of the labels (IOB2, IOBES, BMES) allows.
    random_state : makes the order of the visits; None: always the same.
    others : what else `sklearn_crfsuite.CRF` takes (epsilon, linesearch, pa_type and so on) is taken by name and has no
        effect; a warning says so at `fit`.

    Attributes
    ----------
    classes_, attributes_, num_attributes_, state_features_, transition_features_, size_ : as in sklearn_crfsuite; None
        before `fit`.
    program_ : the `hogwild.CRF` behind it; n_iter_ : epochs made; loss_curve_ : mean training loss of each; lr_ :
        learning rate that was used.

    Examples
    --------
    >>> from hogwild.estimators import CRF
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "dogs"}, {"word": "bark"}]]
    >>> model = CRF(c2=0.01, threads=1).fit(X, [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]])
    >>> model.predict_single([{"word": "the"}, {"word": "dogs"}, {"word": "bark"}])
    ['DET', 'NOUN', 'VERB']
    """

    epochs: int | None

    def __init__(
        self, algorithm: str | None = None, min_freq: float | None = None, all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None, c1: float | None = None, c2: float | None = None,
        max_iterations: int | None = None, *, verbose: bool = False,
        model_filename: str | os.PathLike[str] | None = None, epochs: int | None = None, lr: float | None = None,
        optimizer: str = "sgd", schedule: str = "linear", threads: int | None = None, mode: str = "hogwild",
        sharing: str = "auto", rich_edges: bool = False, rich_edge_min_count: int = 10,
        structure_regularization: int = 0, average: bool = False, patience: int = 0, constrain: bool = False,
        random_state: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        keep_arguments(self, locals())
        for name in others:
            if name not in _IDLE:
                known = [*inspect.signature(CRF).parameters, *_IDLE]
                raise TypeError(f"CRF has no argument {name!r}{nearest(name, known)}.")
        self._idle = others  # arguments of theirs that have no effect here

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name; of those without effect the ones that were given."""
        return {**super().get_params(deep), **self._idle}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        self._idle.update({name: params.pop(name) for name in _IDLE if name in params})
        super().set_params(**params)
        return self

    # -- training ---------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Train from scratch.

        Parameters
        ----------
        X, y : sentences of feature dicts, or of lists of features; and a label for each token of them.
        X_dev, y_dev : others, on which the loss is measured after each epoch: the weights kept are those of the best.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        with value_errors():
            self._check()
            least = max(1, math.ceil(self.min_freq or 0))
            feed = in_order_of_places(tagging_of(*without_empty(X, y), min_count=least))
            valid = None
            if X_dev is not None:
                valid = tagging_of(*without_empty(X_dev, y_dev, "X_dev"), names=feed.names, tags=feed.tags)
            self._train(self._program(), feed, valid)
            if self.model_filename is not None:
                save_model(self.model_filename, self.program_, feed_schema=feed.schema)
        return self

    def _check(self) -> None:
        if self.algorithm not in (None, *_SAME, *_OTHERS):
            raise ValueError(f"algorithm is {self.algorithm!r}; it must be one of {', '.join(_SAME + _OTHERS)}.")
        for name in ("c1", "c2", "min_freq", "max_iterations"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value!r}; it must be a number that is not negative.")
        idle = [name for name, value in self._idle.items() if value is not None and value is not False]
        idle += [f"algorithm={self.algorithm!r}"] * (self.algorithm in _OTHERS)
        states = () if self._sparse else ("all_possible_states", "all_possible_transitions")
        idle += [f"{name}=False" for name in states if getattr(self, name) is False]
        if idle:
            why = "Training is stochastic gradient descent on the likelihood, with a weight for every pair."
            warnings.warn(f"no effect: {', '.join(idle)}. {why}", HogwildWarning, stacklevel=3)

    def _program(self) -> crf.CRF:
        """The factor 2: here the penalty is l2 w^2 / 2."""
        return crf.CRF(
            optimizer=self.optimizer, l2=2.0 * (1.0 if self.c2 is None else self.c2), l1=self.c1 or 0.0,
            rich_edges=self.rich_edges, rich_edge_min_count=self.rich_edge_min_count,
            structure_regularization=self.structure_regularization, average=self.average,
        )  # fmt: skip

    @property
    def _sparse(self) -> bool:
        """Whether weights are brought to zero over all sentences at once, after the visits."""
        return bool(self.c1) and self.optimizer == "sgd" and not (self.structure_regularization or self.average)

    def _epochs(self, sentences: int) -> int:
        if self.epochs is not None:
            return self.epochs
        usual = min(_LEAST if self._sparse else _MOST, max(_LEAST, math.ceil(_VISITS / sentences)))
        return min(usual, max(1, self.max_iterations)) if self.max_iterations is not None else usual

    def _train(self, program: crf.CRF, feed: TaggingFeed, valid: TaggingFeed | None) -> None:
        executor = AsyncExecutor(
            self.threads, self.mode, self.sharing, epochs=self._epochs(len(feed)), lr=self.lr, schedule=self.schedule,
            seed=seed_of(self.random_state), patience=self.patience if valid is not None else 0,
        )  # fmt: skip
        rough = crf.CRF(**{**vars(program.config), "l1": 0.0}) if self._sparse else program
        train_for(self, executor, rough, feed, valid, quiet=not self.verbose)
        if self._sparse:
            self._bring_to_zero(rough, program, feed, valid)

    def _bring_to_zero(self, rough: crf.CRF, program: crf.CRF, feed: TaggingFeed, valid: TaggingFeed | None) -> None:
        """From the weights of visits without c1 to those with it, most of which are 0."""
        threads = 1 if self.mode == "serial" else self._workers()
        every = {"every_state": bool(self.all_possible_states), "every_pair": bool(self.all_possible_transitions)}
        objective = Objective(feed, rough.pairs, rough.l2, threads=threads, **every)
        best: tuple[float, Any, int] = (math.inf, None, 0)

        def look(x: Any, iteration: int) -> bool:
            nonlocal best
            self.loss_curve_.append(objective.loss / len(feed))
            if valid is None or iteration % _LOOK:
                return False
            loss = CRFDecoder(Resting(objective.plain(x), rough.pairs), valid).loss(threads)
            best = (loss, x, iteration) if loss < best[0] else best
            return bool(self.patience) and iteration - best[2] >= self.patience * _LOOK

        with show_progress(quiet=not self.verbose) as display:
            display.phase("bringing weights to zero")
            start = objective.take(Plain(*(rough.arrays()[name] for name in Plain._fields)))
            found = minimise(objective, start, program.config.l1, Limits(self.max_iterations or _MOST), look)
            found = found if best[1] is None else best[1]
            display.say(f"note: c1 leaves {np.count_nonzero(found):,} of {len(found):,} weights.")
        program.tags, program.names, program.schema = rough.tags, rough.names, rough.schema
        program.restore(pack(objective.plain(found), rough.pairs))
        self.program_, self.n_iter_ = program, len(self.loss_curve_)

    # -- predicting -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Objects:
        """The labels of each sentence, as an array of lists (of two dimensions if all sentences are of one length)."""
        return np.array(self._on_full(X, lambda known, full: known.best(full, self._workers(), self.constrain)), object)

    def predict_single(self, xseq: Any) -> list[str]:
        """The labels of one sentence."""
        found: list[list[str]] = self._on_full([xseq], lambda known, full: known.best(full, 1, self.constrain))
        return found[0]

    def predict_marginals(self, X: Any) -> Objects:
        """The probabilities of the labels at each token of each sentence, as dicts."""
        return np.array(self._on_full(X, lambda known, full: known.marginals(full, self._workers())), object)

    def predict_marginals_single(self, xseq: Any) -> list[dict[str, float]]:
        """The probabilities of the labels at each token of one sentence."""
        found: list[list[dict[str, float]]] = self._on_full([xseq], lambda known, full: known.marginals(full, 1))
        return found[0]

    def score(self, X: Any, y: Any) -> float:
        """The share of tokens whose label is right."""
        wanted, found = ([list(row) for row in rows] for rows in (y, self.predict(X)))
        if [len(row) for row in wanted] != [len(row) for row in found]:
            raise ValueError("y has another number of labels than X has tokens; give one for each.")
        pairs = list(zip(chain.from_iterable(wanted), chain.from_iterable(found), strict=True))
        return sum(one == other for one, other in pairs) / len(pairs) if pairs else 0.0

    def _workers(self) -> int:
        return self.threads or cores()

    def _on_full(self, X: Any, work: Any) -> list[Any]:
        """Call `work` with the sentences that are not empty; the others have nothing."""
        known = self._known()
        with value_errors():
            sentences = list(X)
            places = [place for place, sentence in enumerate(sentences) if length(sentence)]
            found: list[Any] = [[] for _ in sentences]
            if places:
                for place, tokens in zip(places, work(known, [sentences[k] for k in places]), strict=True):
                    found[place] = tokens
        return found

    def _known(self) -> Excerpts:
        program = self._trained()
        if program is None:
            raise NotFittedError("this CRF is not trained yet; call fit first, or give model_filename.")
        return program.excerpts()

    def _trained(self) -> crf.CRF | None:
        """The program; that of model_filename if there was no `fit`; None without either."""
        if not hasattr(self, "program_") and self.model_filename is not None:
            path = Path(self.model_filename)
            if path.is_file():
                raise ValueError(f"{path} is a file, perhaps a model of CRFsuite, which cannot be read; train again.")
            if path.exists():
                loaded = load_model(path).program
                if not isinstance(loaded, crf.CRF):
                    raise ValueError(f"{path} holds a model of the kind {loaded.name!r}, not a CRF.")
                self.program_ = loaded
        return getattr(self, "program_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return self._trained() is not None

    # -- looking inside ---------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[str] | None:
        """The labels, in the order of their first places in the training data."""
        program = self._trained()
        return None if program is None else list(program.tags)

    @property
    def attributes_(self) -> list[str] | None:
        """The features, the most frequent first."""
        program = self._trained()
        return None if program is None else list(program.names)

    @property
    def num_attributes_(self) -> int | None:
        """Number of features."""
        program = self._trained()
        return None if program is None else len(program.names)

    @property
    def state_features_(self) -> StateWeights | None:
        """{(attribute, label): weight}."""
        program = self._trained()
        return None if program is None else StateWeights(program)

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """{(label, next label): weight}; weights of 0 are left out."""
        program = self._trained()
        if program is None:
            return None
        rows = zip(program.tags, program.arrays()["edges"].tolist(), strict=True)
        pairs = ((one, other, weight) for one, row in rows for other, weight in zip(program.tags, row, strict=True))
        return {(one, other): weight for one, other, weight in pairs if weight}

    @property
    def size_(self) -> int | None:
        """Bytes of the weights."""
        program = self._trained()
        return None if program is None else sum(array.nbytes for array in program.arrays().values())
