"""Word vectors: skip-gram and CBOW, with negative sampling or hierarchical softmax, of words or of their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Room, Table, aligned_floats, make_scratch
from hogwild.config import Word2VecConfig, WordTrainConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, ModelError
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.io.parallel import in_parts
from hogwild.kernels.loop.task import total_loss
from hogwild.kernels.simd.rows16 import LANES, layout
from hogwild.kernels.word2vec.cbow import Cbow, plan_cbow
from hogwild.kernels.word2vec.skipgram import SkipGram, plan_skip_gram
from hogwild.kernels.word2vec.subwords import SubwordCbow, SubwordCbowTree, SubwordSkipGram, SubwordSkipGramTree
from hogwild.kernels.word2vec.tree import CbowTree, SkipGramTree, hang_words, plan_cbow_tree, plan_skip_gram_tree
from hogwild.kernels.word2vec.windows import (
    Embeddings,
    SubwordEmbeddings,
    Text,
    WiderText,
    alias_table,
    chances_to_stay,
)
from hogwild.machine import check_memory, cores
from hogwild.programs.program import CompiledProgram, Metrics, RowIds
from hogwild.programs.row_ids import hash_names
from hogwild.programs.saving.cells import left_out
from hogwild.programs.saving.tensors import no_others, required
from hogwild.programs.words.subwords import Grams, Parts, Spelling, grams_of, mean_vectors
from hogwild.programs.words.vectors import Vectors

# Words of a visit, and negatives drawn for it: fewer are faster, and analogies suffer first (docs/performance.md).
SKIP_GRAM_SIZES = (64, 48)
CBOW_SIZES = (48, 22)
_RATES = {False: 0.025, True: 0.15}  # without and with a mean, whose gradient is shared by some six neighbours
_SUBWORD_RATE = 0.05  # of skip-gram, as in fastText: after an epoch of 5 million words far better than half of it
# By CBOW, hierarchical softmax, subwords.
_TASKS = {
    (False, False, False): SkipGram, (True, False, False): Cbow,
    (False, True, False): SkipGramTree, (True, True, False): CbowTree,
    (False, False, True): SubwordSkipGram, (True, False, True): SubwordCbow,
    (False, True, True): SubwordSkipGramTree, (True, True, True): SubwordCbowTree,
}  # fmt: skip
_MOST_MOVED = 1.0  # gradients of one visit to one row times the rate; from about three on vectors run away
_EVALUATION = 0x5EED  # held-out loss draws the same windows and negatives each time
_PIECE = 1024  # visits of which the held-out loss has random numbers of their own: pieces are for threads
_ROWS = 1 << 14  # that are made or copied at a time


def scatter(table: Floats, dim: int, random: np.random.Generator) -> None:
    """Set the first cells of all rows to random numbers between -1 and 1 over dim."""
    for start in range(0, len(table), _ROWS):  # a piece at a time: no second table in memory
        part = table[start : start + _ROWS, :dim]
        part[:] = (2 * random.random(part.shape, np.float32) - 1) / dim


@taking(Word2VecConfig)
class Word2Vec(CompiledProgram):
    """Word vectors by negative sampling.

    Parameters
    ----------
    words : the vocabulary that it is to have; that of the first text by default.

    Examples
    --------
    >>> corpus = hogwild.open_corpus("wiki.txt.xz")                                     # doctest: +SKIP
    >>> program = hogwild.train(hogwild.Word2Vec(dim=100), corpus, lr=0.025)            # doctest: +SKIP
    >>> program.vectors.most_similar("king")                                            # doctest: +SKIP
    """

    name = "word2vec"
    unit = "words"
    tells_units = True
    sharing = "all"
    training = WordTrainConfig
    floats_from: Callable[[int], Floats] | None = None
    """Memory for so many cells of tables, and of copies of them; None: this process's own, which must have the room."""

    def __init__(self, *values: Any, words: Sequence[str] = (), **options: Any) -> None:
        self.config = config = config_of(self, Word2VecConfig, values, options)
        self.words = tuple(words)
        self.counts: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._earlier: npt.NDArray[np.int64] = self.counts  # counts of texts before this one
        self._goes_on = False  # whether `counts` has those of the text that comes next
        self._stretch, self._shared = CBOW_SIZES if config.cbow else SKIP_GRAM_SIZES
        self._lanes, self._blocks = layout(config.dim)
        self._scale = 1.0
        self._depth = 0  # forks of a word at the most, with hierarchical softmax
        self._longest = 0  # n-grams of a word at the most
        self._bare = False  # whether it has no outputs, as a small model has none, because it was not trained since

    @property
    def spelling(self) -> Spelling | None:
        """Which n-grams words have; None where they are one whole."""
        return Spelling(*self.config.letters, self.config.buckets) if self.config.subwords else None

    @property
    def rate(self) -> float:
        """Learning rate where the user gives none."""
        config = self.config
        if config.subwords and not config.cbow:
            return _SUBWORD_RATE
        return _RATES[config.cbow and config.cbow_by == "mean"]

    @property
    def cells(self) -> int:
        """Cells of a row of weights: the numbers of a vector and zeros up to whole cache lines."""
        return LANES * len(self._lanes) * self._blocks

    # -- for the executor -------------------------------------------------------------------------------------------

    @property
    def task(self) -> SkipGram | Cbow:
        """Skip-gram or CBOW."""
        config = self.config
        kind: Any = _TASKS[config.cbow, config.loss == "hs", bool(config.subwords)]
        made: SkipGram | Cbow = kind(
            self._lanes, self._blocks, self.cells, self._stretch, config.window, config.negatives,
            0 if config.pair_negatives else self._shared, self._scale, config.window_form == "fixed",
            config.cbow_by == "sum", self._depth,
        )  # fmt: skip
        return made

    def startup(self, feed: Corpus, seed: int) -> None:
        """Rows for the words of the corpus, in its order; words that have vectors already keep them."""
        if not isinstance(feed, Corpus):
            raise ConfigError(f"{type(feed).__name__} is no text; use hogwild.open_corpus or hogwild.corpus_of.")
        feed.check().check_trainable()
        self._bare = False
        goes_on, before = self._goes_on, self._earlier if self._goes_on else self._known_counts()
        self._goes_on = False
        if self.weights is not None and self.words == feed.words:
            self._earlier, self.counts = before, before + feed.counts
        else:
            self._grow(feed, seed, before)
        if self.config.loss == "hs" and not goes_on:
            self.weights.outputs[:] = 0  # forks of a tree of other counts are other forks
        self.divide_text(feed)

    def _grow(self, feed: Corpus, seed: int, before: npt.NDArray[np.int64]) -> None:
        """Rows for the words of the text, and for those that there were before."""
        old, (inputs, outputs, grams) = self.words, self._unpadded()
        known = {word: row for row, word in enumerate(old)}
        present = set(feed.words)
        kept = [word for word in old if word not in present]  # words of earlier texts that this one has not
        self.words = feed.words + tuple(kept)
        self._allocate(seed)
        if len(grams):
            self.weights.grams[:, : self.config.dim] = grams
        pairs = [(row, known[word]) for row, word in enumerate(self.words) if word in known]
        self._earlier = np.zeros(len(self.words), np.int64)
        if pairs:
            new, past = (np.array(side) for side in zip(*pairs, strict=True))
            self.weights.inputs[new, : self.config.dim] = inputs[past]
            self.weights.outputs[new, : self.config.dim] = outputs[past]
            self._earlier[new] = before[past]
        self.counts = self._earlier.copy()
        self.counts[: len(feed.words)] += feed.counts

    def divide_text(self, feed: Corpus) -> None:
        """Choose how many words a visit has."""
        if self.config.loss == "hs":
            self._depth = int(np.diff(self._tree(feed)[0]).max())
        if self.config.subwords:
            self._longest = int(np.diff(self._grams(feed).starts).max())
        self._stretch = self._stretch_for(feed)
        self._scale = self.visits(feed) / max(1, len(feed))

    def _tree(self, feed: Corpus) -> tuple[Any, ...]:
        """Where the words hang, those of the text first, by how often they occurred in all texts."""
        return hang_words(self.counts if len(self.counts) >= len(feed.words) else feed.counts)

    def _grams(self, feed: Corpus) -> Grams:
        """The n-grams of the words of a text."""
        assert self.spelling is not None
        return grams_of(feed.words, self.spelling)

    def _stretch_for(self, feed: Corpus) -> int:
        """Words of a visit: as many as can be learnt from at once.

        All gradients of a visit are taken at the same weights. Where a few words are most of a text, one row has so
        many of them that their sum would carry it far beyond where they point to.
        """
        most = (CBOW_SIZES if self.config.cbow else SKIP_GRAM_SIZES)[0]
        return max(1, min(most, int(_MOST_MOVED / (self.rate * float(self.hits(feed).max())))))

    def hits(self, feed: Corpus) -> npt.NDArray[np.float64]:
        """Gradients that each row has in a word of the text, in the mean; of words with subwords, their vectors."""
        config = self.config
        stay = feed.counts * (chances_to_stay(feed.counts, config.sample) / 2**32)
        mean = config.cbow and config.cbow_by == "mean"
        pairs = 1 if mean else (2 * config.window if config.window_form == "fixed" else config.window + 1)
        # A word that stays has gradients as the centre of pairs, as their neighbour, and as a negative of any.
        share: npt.NDArray[np.float64] = stay / stay.sum()
        each: npt.NDArray[np.float64]
        kept = stay.sum() / feed.counts.sum()
        if config.loss == "hs":
            starts, forks, _ = self._tree(feed)
            often = np.zeros(int(starts[-1]) and int(forks.max()) + 1)
            np.add.at(often, forks[: starts[len(share)]], np.repeat(share, np.diff(starts)[: len(share)]))
            each = pairs * share * np.diff(starts)[: len(share)]
            each = np.concatenate([self._of_parts(feed, each), pairs * often])
            each *= kept
            return each
        drawn = feed.counts**config.negative_exponent
        each = pairs * (share * (2 + config.negatives) + config.negatives * (drawn / drawn.sum()))
        if config.subwords:
            own = pairs * share * (1 + config.negatives)
            each += np.maximum(0, self._of_parts(feed, own) - own)
        each *= kept
        return each

    def _of_parts(self, feed: Corpus, each: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The same of vectors that are means of parts: what all words with these parts have, in the mean."""
        if not self.config.subwords:
            return each
        starts, ids = self._grams(feed)
        size = np.diff(starts)
        of_gram = np.bincount(ids, np.repeat(each, size), minlength=1)
        totals = np.bincount(np.repeat(np.arange(len(each)), size), of_gram[ids], minlength=len(each))
        return np.asarray((each + totals) / (size + 1), np.float64)

    def narrowed(self, dim: int) -> Word2Vec:
        """One with so many columns, with the words of this one and no vectors: for who has a part of the columns."""
        made = copy(self)
        made.config, made.weights = replace(self.config, dim=dim), None
        made._lanes, made._blocks = layout(dim)
        return made

    def samples(self, feed: Corpus) -> Any:
        """The text, with what is drawn from it; and with the parts of words and the tree that they hang in."""
        config = self.config
        chance, alias = alias_table(feed.counts, config.negative_exponent)
        text = Text(feed.samples.ids, chances_to_stay(feed.counts, config.sample), chance, alias)
        if config.loss == "ns" and not config.subwords:
            return text
        none = np.zeros(0, np.int64)
        grams = self._grams(feed) if config.subwords else Grams(none, none)
        forks, nodes, signs = self._tree(feed) if config.loss == "hs" else (none, none, np.zeros(0, np.float32))
        return WiderText(*text, grams.starts, grams.ids * self.cells, forks, nodes * self.cells, signs)

    @property
    def judged_by(self) -> tuple[str, ...]:
        """Text has nothing else to be measured by."""
        return ("loss",)

    def visits(self, feed: Corpus) -> int:
        """Stretches of text."""
        return -(-len(feed.samples.ids) // self._stretch)

    def units(self, feed: Corpus) -> int:
        """Words of the text, those that are not in the vocabulary included."""
        return feed.total

    def room(self, feed: Corpus) -> Room:
        """For a stretch, its neighbours and its negatives."""
        return self.room_for(self.task)

    def room_for(self, task: SkipGram | Cbow) -> Room:
        """The same for a task of its kind, with another stretch perhaps."""
        skip = isinstance(task, SkipGram)
        if self.config.loss == "hs":
            plan = plan_skip_gram_tree(task) if skip else plan_cbow_tree(task)
            rows = plan.most + task.stretch * task.depth * (2 * task.window if skip else 1)
        else:
            plan = plan_skip_gram(task) if skip else plan_cbow(task)
            each = task.negatives * (2 * task.window if skip else 1)
            rows = task.stretch + plan.most + (task.shared or task.stretch * each)
        rows += self._longest * plan.most
        return Room(rows=rows, width=self.cells, floats=plan.floats, ints=plan.ints)

    def tables(self) -> Mapping[str, Table]:
        """Both tables are ranked: the rows of frequent words come first."""
        return self.tables_of(len(self.words))

    def tables_of(self, rows: int) -> dict[str, Table]:
        """The tables of so many words."""
        dim = self.config.dim
        numbers = (True,) * dim + (False,) * (self.cells - dim)  # zeros that fill a row need not be told to anybody
        table = Table(rows, self.cells, "ranked", numbers)
        if not self.config.subwords:
            return {"inputs": table, "outputs": table}
        return {"inputs": table, "outputs": table, "grams": Table(self.config.buckets, self.cells, "ranked", numbers)}

    def row_ids(self, table: str) -> RowIds:
        """Hashes of the words; of the rows of n-grams and forks, their numbers."""
        if table == "grams" or (table == "outputs" and self.config.loss == "hs"):
            return np.arange(self.tables()[table].rows, dtype=np.int64)
        return hash_names(self.words, "words")

    def finish(self, feed: Corpus) -> None:
        """The most frequent words first, over all texts."""
        order = self._order()
        if not np.array_equal(order, np.arange(len(order))):
            self.words = tuple(self.words[row] for row in order.tolist())
            self.counts = self.counts[order]
            self._earlier = self._earlier[order]
            for name in ("inputs",) if self.config.loss == "hs" else ("inputs", "outputs"):
                array = getattr(self.weights, name)
                array[:] = array[order]

    def evaluate(self, feed: Corpus, threads: int = 1) -> Metrics:
        """The loss a word of a text in the model's vocabulary, on windows and negatives that are always the same."""
        if self._bare:
            raise ConfigError(
                "this model is small and has vectors only, which tell no loss of a text; measure it by tests of words "
                "(hogwild evaluate), or use the model that it was made of."
            )
        if feed.words != self.words[: len(feed.words)]:
            raise ConfigError("this text has another vocabulary; use open_corpus(..., vocabulary=program.words).")
        # Nothing is learnt here, so that stretches of one length serve every text.
        stretch = (CBOW_SIZES if self.config.cbow else SKIP_GRAM_SIZES)[0]
        task = self.task._replace(stretch=stretch, scale=1.0)
        if self.config.subwords:
            self._longest = max(self._longest, int(np.diff(self._grams(feed).starts).max()))
        if self.config.loss == "hs":
            task = task._replace(depth=int(np.diff(self._tree(feed)[0]).max()))
        samples, room = self.samples(feed), self.room_for(task)
        visits = -(-len(feed.samples.ids) // stretch)
        sums = np.zeros(-(-visits // _PIECE))

        def add(first: int, last: int) -> None:
            for piece in range(first, last):
                scratch, start = make_scratch(room, np.uint64(_EVALUATION + piece)), piece * _PIECE
                sums[piece] = total_loss(task, samples, self.weights, scratch, start, min(start + _PIECE, visits))

        in_parts(len(sums), threads, add)
        return {"loss": float(sums.sum()) / max(1, len(feed))}

    def watchable(self) -> Mapping[str, Any]:
        """The vectors, inputs and outputs, without the zeros that fill their rows."""
        return {"vectors": lambda: self._unpadded()[0], "outputs": lambda: self._unpadded()[1]}

    # -- vectors ----------------------------------------------------------------------------------------------------

    @property
    def vectors(self) -> Vectors:
        """What was learnt: a view of the weights; of words with subwords, a copy."""
        if self.weights is None:
            raise ConfigError("this program has no vectors yet; train it, or load one.")
        inputs, outputs, grams = self._unpadded()
        if self.spelling is None:
            return Vectors(self.words, inputs, self._known_counts())
        parts = Parts(self.spelling, inputs, grams, None if self._bare else outputs, vars(self.config))
        return Vectors(self.words, self._means(), self._known_counts(), parts)

    def _means(self) -> Floats:
        """Vectors of words with subwords."""
        assert self.spelling is not None
        inputs, _, grams = self._unpadded()
        return mean_vectors(grams_of(self.words, self.spelling), grams, inputs, cores())

    def begin_with(
        self, words: Sequence[str], vectors: npt.ArrayLike, outputs: npt.ArrayLike | None = None,
        counts: npt.ArrayLike | None = None, grams: npt.ArrayLike | None = None,
    ) -> Word2Vec:  # fmt: skip
        """Start from these vectors; the words of a text that are not among them begin at random. Returns itself.

        With subwords: from rows of words and of `grams`, of which vectors are means.
        """
        tables = {"vectors": vectors, "outputs": outputs, "grams": grams}
        given = {name: np.asarray(table, np.float32) for name, table in tables.items() if table is not None}
        if "grams" in given and self.spelling is None:
            raise ConfigError("rows of n-grams are for words with subwords; make it with subwords, or leave them out.")
        for name, table in given.items():
            rows = self.config.buckets if name == "grams" else len(words)
            if table.shape != (rows, self.config.dim):
                raise ConfigError(f"the {name} to start from are {table.shape}, not ({rows}, {self.config.dim}).")
            if not np.isfinite(table).all():
                raise ConfigError(f"the {name} to start from hold numbers that are not finite; clean them first.")
        times = np.zeros(len(words), np.int64) if counts is None else np.array(counts, np.int64)
        if times.shape != (len(words),) or (times < 0).any():
            raise ConfigError(f"the counts to start from must be {len(words)} numbers, none below 0.")
        if len(set(words)) < len(words):
            raise ConfigError("a word occurs twice among those to start from; give each one vector.")
        self.words = tuple(words)
        self._allocate(seed=0)
        self.weights.inputs[:, : self.config.dim] = given["vectors"]
        if "outputs" in given:
            self.weights.outputs[:, : self.config.dim] = given["outputs"]
        if "grams" in given:
            self.weights.grams[:, : self.config.dim] = given["grams"]
        self.counts = times
        self._earlier, self._goes_on = self.counts, False
        return self

    def _order(self) -> npt.NDArray[np.intp]:
        """Rows by falling count of their words, over all texts."""
        return np.argsort(-self._known_counts(), kind="stable")

    def _known_counts(self) -> npt.NDArray[np.int64]:
        return self.counts if len(self.counts) == len(self.words) else np.zeros(len(self.words), np.int64)

    def _allocate(self, seed: int) -> None:
        """Rows for all words: inputs between -1 and 1 over dim, outputs zero, both filled up with zeros."""
        if self.floats_from is None:
            self.check_memory(len(self.words))
        inputs, outputs = (self._floats(len(self.words), self.cells) for _ in range(2))
        random = np.random.default_rng(np.random.SeedSequence((seed, 104729)))
        scatter(inputs, self.config.dim, random)
        self.weights = Embeddings(inputs, outputs)
        if self.config.subwords:
            grams = self._floats(self.config.buckets, self.cells)
            scatter(grams, self.config.dim, random)
            self.weights = SubwordEmbeddings(inputs, outputs, grams)

    def _floats(self, rows: int, cells: int) -> Floats:
        make = self.floats_from or aligned_floats
        return make(rows * cells).reshape(rows, cells)

    def _in_order(self, table: Floats, order: npt.NDArray[np.intp]) -> Floats:
        """A copy of rows of a table, a piece at a time."""
        copy = self._floats(len(order), table.shape[1])
        for start in range(0, len(order), _ROWS):
            copy[start : start + _ROWS] = table[order[start : start + _ROWS]]
        return copy

    def check_memory(self, words: int) -> int:
        """The bytes of the weights of so many words; raises ConfigError if this machine has not so many."""
        buckets = self.config.buckets if self.config.subwords else 0
        needed = CELL * (2 * words + buckets) * self.cells
        parts = f" and {buckets:,} buckets of n-grams" if buckets else ""
        what = f"{words:,} words{parts} of {self.config.dim} numbers need"
        remedy = "raise --min-count, or lower --max-vocab, --buckets or --dim."
        check_memory(needed, what, remedy if buckets else remedy.replace(", --buckets", ""))
        return needed

    def _unpadded(self) -> tuple[Floats, Floats, Floats]:
        """Rows of words as they are seen from themselves and from their neighbours, and of n-grams."""
        dim = self.config.dim
        empty = np.zeros((0, dim), np.float32)
        if self.weights is None:
            return empty, empty, empty
        grams = self.weights.grams[:, :dim] if self.config.subwords else empty
        return self.weights.inputs[:, :dim], self.weights.outputs[:, :dim], grams

    # -- going on, saving -------------------------------------------------------------------------------------------

    def expect(self, old: Any, feed: Corpus) -> None:
        """The vectors, outputs and counts of an old model; `startup` finds them by their words."""
        arrays = old.arrays()
        self.begin_with(old.options()["words"], arrays["vectors"], arrays.get("outputs"), arrays["counts"])

    def options(self) -> dict[str, Any]:
        """Its parameters, and its words."""
        return {**vars(self.config), "words": [self.words[row] for row in self._order().tolist()]}

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Vectors and outputs without the zeros that fill their rows, and how often each word occurred; a small model
        has no outputs."""
        if self.weights is None:
            raise ConfigError("this program has no weights yet; train it, or load one.")
        order = self._order()
        inputs, outputs, grams = self._unpadded()
        # Of forks nothing is put in order: the tree is the same in any order of words.
        outputs = self._in_order(outputs, np.arange(len(outputs)) if self.config.loss == "hs" else order)
        arrays: dict[str, npt.NDArray[Any]] = {"vectors": self._in_order(inputs, order), "outputs": outputs}
        if self.config.subwords:
            made = self._in_order(self._means(), order)
            arrays = {**arrays, "vectors": made, "inputs": arrays["vectors"], "grams": np.ascontiguousarray(grams)}
        if self._bare:
            del arrays["outputs"]
        arrays["counts"] = self.counts[order]
        # A run that goes on counts its text once.
        return {**arrays, "earlier": self._earlier[order]} if state else arrays

    def compact(self, pruned: float) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Without outputs, which only training needs, and without the rarest words."""
        options, arrays = self.options(), self.arrays()
        arrays.pop("outputs", None)
        if pruned:
            kept = len(self.words) - left_out(len(self.words), pruned, "words")
            options["words"] = options["words"][:kept]
            arrays = {name: array if name == "grams" else array[:kept] for name, array in arrays.items()}
        return options, arrays

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over vectors for the words that it was made with."""
        shape = len(self.words), self.config.dim
        vectors = required(arrays, "vectors", shape)
        outputs = required(arrays, "outputs", shape) if "outputs" in arrays else None
        counts = required(arrays, "counts", shape[:1], np.int64)
        parts = {}
        if self.config.subwords:
            vectors = required(arrays, "inputs", shape)
            parts["grams"] = required(arrays, "grams", (self.config.buckets, self.config.dim))
        known = ("vectors", "outputs", "counts", "earlier", *(("inputs", "grams") if parts else ()))
        no_others(arrays, known, "a model of word vectors")
        if not all(isinstance(word, str) for word in self.words):
            raise ModelError("the options of the model do not say its words.")
        self.begin_with(self.words, vectors, outputs, counts, **parts)
        self._bare = outputs is None
        if "earlier" in arrays:
            earlier = required(arrays, "earlier", shape[:1], np.int64)
            if (earlier < 0).any() or (earlier > counts).any():
                raise ModelError("array earlier counts more than array counts, or less than nothing.")
            self._earlier, self._goes_on = np.array(earlier), True
