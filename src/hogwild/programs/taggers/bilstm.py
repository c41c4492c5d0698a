"""Bidirectional LSTM taggers: embeddings of words and features, layers that read a sentence both ways, tags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Room, Table, aligned_floats
from hogwild.config import BiLSTMConfig
from hogwild.config.arguments import config_of, taking
from hogwild.config.kinds import BestBy
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.crf.task import ChainTask, PlainEdges, Quick
from hogwild.kernels.loop.task import OneByOne, Together
from hogwild.kernels.nn import lstm_together  # noqa: F401  what a group of sentences does
from hogwild.kernels.nn.letters import KNOWN, Convolution, NoLetters
from hogwild.kernels.nn.lstm import Diagonal, Full
from hogwild.kernels.nn.lstm_batch import AsChain, EachAlone, Sentences, TaggerTask, TaggerWeights, room_for
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import Sgd, dense_tables, make_dense, row_cells, row_table
from hogwild.kernels.simd.pairs import BFloat16, Float32, has_pairs
from hogwild.kernels.simd.rows8 import layout
from hogwild.machine import check_memory
from hogwild.messages import counted, shown
from hogwild.programs.program import RowIds, plain_constants
from hogwild.programs.row_ids import hash_names
from hogwild.programs.rows import RowProgram
from hogwild.programs.saving.tensors import no_others, required
from hogwild.programs.sparse.supervised import rule_and_penalty
from hogwild.programs.taggers import bilstm_weights
from hogwild.programs.taggers.bilstm_decoding import BiLSTMDecoder, OneSentence, RestingNet
from hogwild.programs.taggers.bilstm_reading import Reader, alphabet_of, grouped, slots_of, visits_of, with_words
from hogwild.programs.taggers.bilstm_weights import Shape
from hogwild.programs.taggers.tagger import Tagger, rules_of
from hogwild.programs.words.vectors import Vectors

_PAPER = {"beta1": 0.95, "beta2": 0.95, "epsilon": 1e-4}  # adam's constants on AsynGrad
_RATES = {"sgd": 0.5, "momentum": 0.05, "adagrad": 0.05, "adam": 0.002, "ftrl": 0.1}
_TOGETHER = 4  # sentences of a worker that learn as well as one (docs/performance.md)
_WINDOW = 4  # times as many, of which those of similar length are read at once
_REMEMBERED = ("words_table", "features_table", "layers_first", "layers_second", "steps")


@taking(BiLSTMConfig)
class BiLSTM(RowProgram, Tagger):
    """A bidirectional LSTM over embeddings of what each template of the feed gives.

    Parameters
    ----------
    tags, names : tags and features that it is to have; those of the first feed by default.
    alphabet : letters that it is to know; those of the first feed by default.
    constants : constants of the update rule by name.
    best_by : by what the best epoch is told where the run does not say it: f1 (auto), accuracy or loss.

    Examples
    --------
    >>> feed = hogwild.open_tagging("train.txt", hogwild.TaggingConfig(features="words-pos"))    # doctest: +SKIP
    >>> program = hogwild.train(hogwild.BiLSTM(hidden=280), feed, epochs=10)                    # doctest: +SKIP
    >>> program.tag([("to", "TO"), ("be", "VB")])                                               # doctest: +SKIP
    ['B-VP', 'I-VP']
    """

    name = "bilstm"
    config: BiLSTMConfig
    sharing = "all"

    def __init__(
        self, *values: Any, tags: Sequence[str] = (), names: Sequence[str] = (), slots: Sequence[str] = (),
        alphabet: Sequence[str] = (), constants: Mapping[str, float] | None = None, best_by: BestBy = "auto",
        **options: Any,
    ) -> None:  # fmt: skip
        self.config = config = config_of(self, BiLSTMConfig, values, options)
        self.tags, self.names = tuple(tags), tuple(names)
        self.slots, self.alphabet = tuple(slots), "".join(alphabet)
        self.take_best_by(best_by)
        self.constants = plain_constants(constants)
        paper = {**_PAPER, **self.constants} if config.optimizer == "adam" else self.constants
        self._rule, self._penalty = rule_and_penalty(config.optimizer, paper, 0.0, config.l2)
        self.notes: tuple[str, ...] = ()
        self._pace: Any = OneByOne()
        self._largest = (1, 1, 1)  # tokens, sentences, and tokens of one sentence of a visit, at the most
        self._reader: Reader | None = None
        self._letters = ""  # to know too
        self._one: OneSentence | None = None

    @property
    def rate(self) -> float:
        """Learning rate where the user gives none."""
        return _RATES[self.config.optimizer]

    @property
    def visit_seconds(self) -> float:  # type: ignore[override]
        """About how long a visit takes."""
        return 1e-3 * self.config.batch_size

    # -- shape ------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Sizes of the dense weights."""
        config = self.config
        filters = config.letter_filters if config.letters != "none" else 0
        inputs = config.word_dim + (len(self.slots) - 1) * config.feature_dim + filters
        letters = KNOWN + len(self.alphabet) if filters else 0
        return Shape(
            inputs, config.hidden, config.layers, config.recurrence == "diagonal", len(self.tags),
            config.output_layer == "crf", letters, config.letter_dim, filters,
        )  # fmt: skip

    @property
    def task(self) -> TaggerTask:
        """Selects the compiled code."""
        config, shape = self.config, self.shape
        lanes, blocks = layout(shape.tags)
        tokens = self._largest[0]
        return TaggerTask(
            rule=self._rule, penalty=self._penalty, head=AsChain(shape.pair_width) if shape.chained else EachAlone(),
            recurrence=Diagonal() if shape.diagonal else Full(),
            products=BFloat16() if config.products == "bfloat16" else Float32(),
            spelling=Convolution(shape.letters, shape.letter_dim, shape.filters, shape.letters_at)
            if shape.letters else NoLetters(),
            chain=ChainTask(lanes, blocks, shape.tags, PlainEdges(), Quick(), Sgd(), Free(), np.float32(0), 0),
            word_dim=config.word_dim, feature_dim=config.feature_dim, slots=len(self.slots), inputs=shape.inputs + 1,
            units=shape.units, layers=shape.layers, tags=shape.tags, output_at=shape.output_at,
            pairs_at=shape.pairs_at, filters=shape.filters, letters_at=shape.letters_at,
            cells=shape.cells,
            pace=self._pace,
            places=1 << (2 * tokens * len(self.slots) - 1).bit_length(), dropout=np.float32(config.dropout),
            word_dropout=np.float32(config.word_dropout), unknown_share=np.float32(config.unknown_share),
            clip=np.float32(config.clip), l2=np.float32(config.l2),
        )  # fmt: skip

    def check_mode(self, mode: str) -> None:
        """Several sentences at once are several workers, of which other modes have none."""
        if self.config.together > 1 and mode != "hogwild":
            raise ConfigError(f"together is {self.config.together}; it is for mode hogwild, not {mode}; leave it out.")

    # -- for the executor -------------------------------------------------------------------------------------------

    def startup(self, feed: TaggingFeed, seed: int) -> None:
        """Random weights for the features, tags and letters of the feed, or the ones there are."""
        self.check_trainable(feed)
        if self.config.products == "bfloat16" and not has_pairs():
            raise ConfigError("--products bfloat16 needs a CPU with avx512_bf16, unlike this one; leave it out.")
        self.take_schema(feed)
        config, self._one, self.notes = self.config, None, ()
        if self.weights is None:
            self.tags, self.names, self.slots = feed.tags, feed.names, slots_of(feed)
            if config.letters != "none":
                self.alphabet = alphabet_of([*self.reader.word_column(feed).values, self._letters])
            self.weights = self._drawn(np.random.default_rng(np.random.SeedSequence((seed, 104729))), feed)
        largest = visits_of(feed.samples.offsets, config.batch_size).largest(feed.samples.offsets)
        count = config.together or (_TOGETHER if config.batch_size == 1 and config.clip == 0 else 1)
        self._pace = OneByOne()
        if count > 1:
            largest = grouped(largest, count)
            self._pace = Together(count, count * min(_WINDOW, max(1, len(feed) // (16 * count))), largest[0])
        self._largest = largest

    @property
    def reader(self) -> Reader:
        """How features become rows."""
        alphabet, found = None if self.config.letters == "none" else self.alphabet, self._reader
        if found is None or found.names is not self.names or (found.slots, found.alphabet) != (self.slots, alphabet):
            self._reader = found = Reader(self.names, self.slots, alphabet)
        return found

    def _zeros(self) -> TaggerWeights:
        shape, config, reader = self.shape, self.config, self.reader
        cells = [row_cells(self._rule, self._penalty, dim) for dim in (config.word_dim, config.feature_dim)]
        sizes = [rows * size for rows, size in zip((reader.words, reader.features), cells, strict=True)]
        what = f"{counted(len(self.names), 'feature')} and {config.hidden} units need"
        remedy = "raise --min-count, or lower --word-dim or --hidden."
        check_memory(CELL * (sum(sizes) + 3 * shape.cells), what, remedy)
        words, features = map(aligned_floats, sizes)
        return TaggerWeights(words, features, *make_dense(self._rule, aligned_floats(shape.cells)))

    def _drawn(self, random: np.random.Generator, feed: TaggingFeed) -> TaggerWeights:
        """Weights to begin with."""
        weights, config = self._zeros(), self.config
        tables = []
        for table, dim in self.penalized(weights):
            rows = table.reshape(-1, row_cells(self._rule, self._penalty, dim))[:, :dim]
            rows[...] = random.uniform(-math.sqrt(3 / dim), math.sqrt(3 / dim), rows.shape)
            tables.append(rows)
        bilstm_weights.put_plain(self.shape, bilstm_weights.draw(self.shape, random), weights.values)
        if config.start_vectors:
            self._take_vectors(tables[0], feed.counts[self.reader.slot_of == 0] > 0)
        return weights

    def with_words(self, feed: TaggingFeed) -> TaggingFeed:
        """The feed for a model that is to know all words of the vectors to start from, not only those of the text.

        Open validation text with its names.
        """
        path = self.config.start_vectors
        return with_words(feed, Vectors.load(path).words) if path else feed

    def _take_vectors(self, rows: Floats, in_text: npt.NDArray[np.bool_]) -> None:
        """Begin with the vectors of those words that are among others'."""
        path, dim = self.config.start_vectors, self.config.word_dim
        vectors = Vectors.load(path)
        if vectors.dim != dim:
            raise ConfigError(
                f"{path}: its vectors have {vectors.dim} numbers, embeddings {dim}; give --word-dim {vectors.dim}."
            )
        words, index = self.reader.word_names(), vectors.key_to_index
        found = [(place, index.get(word, index.get(word.lower(), -1))) for place, word in enumerate(words, 1)]
        known = np.array([pair for pair in found if pair[1] >= 0], np.int64).reshape(-1, 2)
        of_text, total = int(in_text[known[:, 0] - 1].sum()), int(in_text.sum())
        if not of_text:
            some = f" (it has such as `{shown(words[0])}`)" if words else ""
            raise InputError(f"{path}: has no word in common with the text{some}; is it of the same language?")
        rows[known[:, 0]] = vectors[[vectors.words[k] for k in known[:, 1].tolist()]]
        others = f", and for {counted(len(known) - of_text, 'other')}" if len(known) > of_text else ""
        share = 100 * of_text / max(1, total)
        self.notes = (f"{path}: vectors for {of_text:,} of {counted(total, 'word')} ({share:.0f} %){others}.",)

    def samples(self, feed: TaggingFeed) -> Sentences:
        """Rows of all tokens, letters of all words, and sentences by visit."""
        return self.reader.sentences(feed, self.config.batch_size)

    def visits(self, feed: TaggingFeed) -> int:
        """Batches of an epoch."""
        return len(visits_of(feed.samples.offsets, self.config.batch_size).first)

    def epoch_samples(self, feed: TaggingFeed) -> int:
        """Sentences of all batches."""
        return len(feed)

    def room(self, feed: TaggingFeed) -> Room:
        """For the visit that has most tokens."""
        tokens, sentences, times = self._largest
        task, config = self.task, self.config
        floats, ints = room_for(task, tokens, sentences, times)
        width = max(config.word_dim, config.feature_dim)
        check_memory(
            CELL * (floats + tokens * len(self.slots) * width) + 8 * ints,
            f"a visit to {counted(tokens, 'token')} with {config.hidden} units needs",
            "divide the longest sentence, or lower --hidden.",
        )
        return Room(tokens * len(self.slots), width, self.shape.cells, floats, ints)

    def tables(self) -> Mapping[str, Table]:
        """A row a word, a row a feature, and the dense weights."""
        wide, narrow = self.config.word_dim, self.config.feature_dim
        return {
            "words": row_table(self._rule, self._penalty, self.reader.words, wide),
            "features": row_table(self._rule, self._penalty, self.reader.features, narrow),
            **dense_tables(self._rule, self.shape.cells),
        }

    def row_ids(self, table: str) -> RowIds | None:
        """Hashes of the features' names, and of the templates whose unknown values have a row."""
        if table not in ("words", "features"):
            return None
        slots = self.reader.slot_of
        own = slots == 0 if table == "words" else slots > 0
        unknown = self.slots[:1] if table == "words" else self.slots[1:]
        return hash_names([*unknown, *(name for name, mine in zip(self.names, own, strict=True) if mine)], "features")

    def penalized(self, weights: TaggerWeights) -> list[tuple[Floats, int]]:
        """Words and features."""
        return [(weights.words, self.config.word_dim), (weights.features, self.config.feature_dim)]

    def finish(self, feed: TaggingFeed) -> None:
        """The weights have changed."""
        self._one = None

    def watchable(self) -> Mapping[str, Any]:
        """What `arrays` has."""
        names = ("words", "features", *bilstm_weights.names_of(self.shape))
        return {name: lambda name=name: self.arrays()[name] for name in names}

    # -- predicting -------------------------------------------------------------------------------------------------

    def decoder(self, feed: TaggingFeed) -> BiLSTMDecoder:
        """The weights as they stand, over a feed."""
        self.check_same(feed)
        return BiLSTMDecoder(self._resting(), feed)

    def scores(self, feed: TaggingFeed, threads: int = 1) -> Floats:
        """(tokens, tags): what the layers make of each token."""
        return self._resting().scores(feed, threads)

    def _resting(self) -> RestingNet:
        tags, weights = len(self.tags), self.paid_weights()
        pairs = np.zeros((tags, tags), np.float32)
        if self.shape.chained:
            pairs = bilstm_weights.plain_of(self.shape, weights.values)["pairs"]
        return RestingNet(self.task, weights, self.reader, pairs)

    def tag(self, sentence: Any, constrain: bool = False) -> list[str]:
        """The best tags of one sentence; the first call takes the weights as they stand after training.

        sentence: a list of tokens, or of rows of columns (see `feed_of`), or a line of tokens; constrain: only such
        tags as their scheme allows.
        """
        if self._one is None:
            self._one = OneSentence(self._resting(), self.tags, self.known_schema())
        return self._one.tag(sentence, rules_of(self.tags, constrain), not constrain)

    # -- going on, saving -------------------------------------------------------------------------------------------

    counted: ClassVar[Mapping[str, str]] = {"words": "words"}

    def expect(self, old: BiLSTM, feed: TaggingFeed) -> None:
        """The letters of an old model."""
        self._letters = old.alphabet

    def axes(self) -> dict[str, Sequence[Any]]:
        """Words, other features, tags and letters; layers are alike."""
        of_words, slots, tags = self.reader.slot_of == 0, self.slots, self.tags
        words = [name for name, mine in zip(self.names, of_words, strict=True) if mine]
        others = [name for name, mine in zip(self.names, of_words, strict=True) if not mine]
        known: dict[str, Sequence[Any]] = {
            "words": ((slots[0], *words), None), "features": ((*slots[1:], *others), None),
            "output_forward": (None, tags), "output_backward": (None, tags), "output_bias": (tags,),
            "pairs": (tags, tags), "letters": ((*range(KNOWN), *self.alphabet), None),
        }  # fmt: skip
        alike = {"filter_bias": (None,)}
        return {name: known.get(name, alike.get(name, (None, None))) for name in ("words", "features",
                *bilstm_weights.names_of(self.shape))}  # fmt: skip

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        more = {"slots": list(self.slots), "alphabet": list(self.alphabet), "constants": self.constants}
        return {**vars(self.config), "start_vectors": "", **super().options(), **more}

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """words, features: a row each, those for unknown ones first; lstm_1_forward_input, …; output_forward, ….

        With `state` also both tables with what the update rule remembers of them, and what it does of dense weights.
        """
        weights = self.trained() if state else self.paid_weights()
        tables = []
        for table, dim in self.penalized(weights):
            tables.append(table.reshape(-1, row_cells(self._rule, self._penalty, dim))[:, :dim].copy())
        found = {"words": tables[0], "features": tables[1], **bilstm_weights.plain_of(self.shape, weights.values)}
        if state:
            remembered = (weights.words, weights.features, weights.first, weights.second, weights.steps)
            found |= {name: array.copy() for name, array in zip(_REMEMBERED, remembered, strict=True) if array.size}
        return found

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        self.check_names()
        if not self.slots or not all(isinstance(slot, str) for slot in self.slots):
            raise ModelError("the options of the model do not say its templates.")
        self._one = None
        words, features = self.reader.words, self.reader.features
        config, shape = self.config, self.shape
        dense = bilstm_weights.names_of(shape)
        no_others(arrays, {"words", "features", *dense, *_REMEMBERED}, "a Bi-LSTM")
        for name, rows, dim in (("words", words, config.word_dim), ("features", features, config.feature_dim)):
            required(arrays, name, (rows, dim))
        self.weights = weights = self._zeros()
        for name, (table, dim) in zip(("words", "features"), self.penalized(weights), strict=True):
            cells = row_cells(self._rule, self._penalty, dim)
            if f"{name}_table" in arrays:
                table[...] = required(arrays, f"{name}_table", table.shape)
            table.reshape(-1, cells)[:, :dim] = arrays[name]
        bilstm_weights.put_plain(shape, arrays, weights.values)
        for name, own in zip(_REMEMBERED[2:], (weights.first, weights.second, weights.steps), strict=True):
            if own.size and name in arrays:
                own[...] = required(arrays, name, own.shape)
