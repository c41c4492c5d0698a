"""Bidirectional LSTM taggers: embeddings of words and features, layers that read a sentence both ways, tags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Chains, Floats, Ids, Offsets, Room, Table, aligned_floats, make_scratch
from hogwild.config import BiLSTMConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.templates import parse_templates
from hogwild.feeds.tagged.text import TextColumn
from hogwild.kernels.crf.task import ChainTask, PlainEdges, Quick
from hogwild.kernels.nn.letters import KNOWN, LONGEST, STRANGE, Convolution, NoLetters
from hogwild.kernels.nn.lstm import Diagonal, Full
from hogwild.kernels.nn.lstm_tagger import (
    AsChain,
    EachAlone,
    Sentences,
    TaggerTask,
    TaggerWeights,
    room_for,
    score_sentences,
)
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import Sgd, dense_tables, make_dense, row_cells, row_table
from hogwild.kernels.simd.rows8 import layout
from hogwild.machine import check_memory, one_blas_thread
from hogwild.messages import counted
from hogwild.programs.program import RowIds, plain_constants
from hogwild.programs.row_ids import hash_names
from hogwild.programs.rows import RowProgram
from hogwild.programs.saving.tensors import no_others, required
from hogwild.programs.sparse.supervised import rule_and_penalty
from hogwild.programs.taggers import bilstm_weights
from hogwild.programs.taggers.bilstm_weights import Shape
from hogwild.programs.taggers.crf_weights import Plain, no_pairs
from hogwild.programs.taggers.decoding import CRFDecoder, Resting
from hogwild.programs.taggers.tagger import Tagger
from hogwild.programs.words.vectors import Vectors

_PAPER = {"beta1": 0.95, "beta2": 0.95, "epsilon": 1e-4}  # adam's constants on AsynGrad
_RATES = {"sgd": 0.5, "momentum": 0.05, "adagrad": 0.05, "adam": 0.002, "ftrl": 0.1}
_TOGETHER = 16  # sentences that are scored at once
_BLOCK = 32  # batches of similar length, among whose sentences those of a visit are drawn
_TOKENS = 1 << 13  # of a visit to several sentences, at the most
_WORDS = "w"
_REMEMBERED = ("words_table", "features_table", "first", "second", "steps")


@taking(BiLSTMConfig)
class BiLSTM(RowProgram, Tagger):
    """A bidirectional LSTM over embeddings of what each template of the feed gives.

    Parameters
    ----------
    tags, names : tags and features that it is to have; those of the first feed by default.
    alphabet : letters that it is to know; those of the first feed by default.
    constants : constants of the update rule by name.

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
        alphabet: Sequence[str] = (), constants: Mapping[str, float] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.config = config = config_of(self, BiLSTMConfig, values, options)
        self.tags, self.names = tuple(tags), tuple(names)
        self.slots, self.alphabet = tuple(slots), "".join(alphabet)
        self.constants = plain_constants(constants)
        paper = {**_PAPER, **self.constants} if config.optimizer == "adam" else self.constants
        self._rule, self._penalty = rule_and_penalty(config.optimizer, paper, 0.0, config.l2)
        self.notes: tuple[str, ...] = ()
        self._longest = (1, 1, 1)  # tokens, sentences and times of a visit, at the most
        self._one: Any = None

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
        tokens = self._longest[0]
        return TaggerTask(
            rule=self._rule, penalty=self._penalty, head=AsChain(shape.pair_width) if shape.chained else EachAlone(),
            recurrence=Diagonal() if shape.diagonal else Full(),
            spelling=Convolution(shape.letters, shape.letter_dim, shape.filters, shape.letters_at)
            if shape.letters else NoLetters(),
            chain=ChainTask(lanes, blocks, shape.tags, PlainEdges(), Quick(), Sgd(), Free(), np.float32(0), 0),
            word_dim=config.word_dim, feature_dim=config.feature_dim, slots=len(self.slots), inputs=shape.inputs + 1,
            units=shape.units, layers=shape.layers, tags=shape.tags, output_at=shape.output_at,
            pairs_at=shape.pairs_at, filters=shape.filters,
            places=1 << (2 * tokens * len(self.slots) - 1).bit_length(), dropout=np.float32(config.dropout),
            word_dropout=np.float32(config.word_dropout), unknown_share=np.float32(config.unknown_share),
            clip=np.float32(config.clip), l2=np.float32(config.l2),
        )  # fmt: skip

    def _slot_of(self) -> Ids:
        """The slot of each feature."""
        places = {slot: place for place, slot in enumerate(self.slots)}
        found = [places.get(name.partition("=")[0], -1) for name in self.names]
        if -1 in found:
            raise ModelError(f"the feature {self.names[found.index(-1)]!r} is of none of the model's templates.")
        return np.array(found, np.int32).reshape(-1)

    def _rows(self) -> tuple[Ids, int, int]:
        """The row of each feature, numbered over both tables, of which each begins with those for unknown ones; and how
        many rows each has."""
        words = self._slot_of() == 0
        count = int(words.sum()) + 1
        rows = np.empty(len(words), np.int32)
        rows[words] = 1 + np.arange(count - 1)
        others = len(words) - (count - 1)
        rows[~words] = count + len(self.slots) - 1 + np.arange(others)
        return rows, count, others + len(self.slots) - 1

    def _unknown(self) -> Ids:
        """The row for what is not known, of each slot."""
        words = int((self._slot_of() == 0).sum()) + 1
        return np.append(0, words + np.arange(len(self.slots) - 1)).astype(np.int32)

    # -- for the executor -------------------------------------------------------------------------------------------

    def startup(self, feed: TaggingFeed, seed: int) -> None:
        """Random weights for the features, tags and letters of the feed, or the ones there are."""
        self.check_trainable(feed)
        self.take_schema(feed)
        self._one, self.notes = None, ()
        if self.weights is None:
            self.tags, self.names, self.slots = feed.tags, feed.names, _slots_of(feed)
            if self.config.letters != "none":
                self.alphabet = "".join(sorted({letter for word in self._word_column(feed).values for letter in word}))
            self._allocate(np.random.default_rng(np.random.SeedSequence((seed, 104729))))
        self._longest = _longest(feed.samples.offsets, *self._visits_of(feed, self.config.batch_size))

    def _allocate(self, random: np.random.Generator | None) -> None:
        shape, config = self.shape, self.config
        _, words, features = self._rows()
        wide, narrow = (row_cells(self._rule, self._penalty, dim) for dim in (config.word_dim, config.feature_dim))
        needed = CELL * (words * wide + features * narrow + 3 * shape.cells)
        what = f"{counted(len(self.names), 'feature')} and {config.hidden} units need"
        check_memory(needed, what, "raise --min-count, or lower --word-dim or --hidden.")
        tables = aligned_floats(words * wide), aligned_floats(features * narrow)
        self.weights = TaggerWeights(*tables, *make_dense(self._rule, aligned_floats(shape.cells)))
        if random is None:
            return
        for table, cells, dim in zip(tables, (wide, narrow), (config.word_dim, config.feature_dim), strict=True):
            rows = table.reshape(-1, cells)[:, :dim]
            rows[...] = random.uniform(-math.sqrt(3 / dim), math.sqrt(3 / dim), rows.shape)
        bilstm_weights.put_plain(shape, bilstm_weights.draw(shape, random), self.weights.values)
        if config.start_vectors:
            self._take_vectors(tables[0].reshape(-1, wide)[:, : config.word_dim])

    def _take_vectors(self, rows: Floats) -> None:
        """Begin with the vectors of those words that are among others'."""
        path, dim = self.config.start_vectors, self.config.word_dim
        vectors = Vectors.load(path)
        if vectors.dim != dim:
            raise ConfigError(f"{path}: its vectors have {vectors.dim} numbers, but word_dim is {dim}; "
                              f"make it {vectors.dim}.")  # fmt: skip
        words = [name.partition("=")[2] for name, slot in zip(self.names, self._slot_of(), strict=True) if slot == 0]
        index = vectors.key_to_index
        found = [(place, index.get(word, index.get(word.lower(), -1))) for place, word in enumerate(words, 1)]
        known = np.array([pair for pair in found if pair[1] >= 0], np.int64).reshape(-1, 2)
        if not len(known):
            some = f"such as `{words[0]}`" if words else "none"
            raise InputError(f"{path}: has no word in common with the text ({some}); is it of the same language?")
        rows[known[:, 0]] = vectors[[vectors.words[k] for k in known[:, 1].tolist()]]
        share = 100 * len(known) / len(words)
        self.notes = (f"{path}: vectors for {len(known):,} of {counted(len(words), 'word')} ({share:.0f} %).",)

    def _visits_of(self, feed: TaggingFeed, batch: int) -> tuple[Ids, Offsets, Offsets, Offsets, Offsets]:
        """Sentences by length, and for each visit its first place among them, how many it has, and its block."""
        lengths = np.diff(feed.samples.offsets)
        if batch == 1:
            whole = np.arange(len(lengths))
            return whole.astype(np.int32), whole, np.ones_like(whole), whole, np.ones_like(whole)
        order = np.argsort(lengths, kind="stable").astype(np.int32)
        visits = []
        place = 0
        while place < len(order):
            block = min(len(order) - place, _BLOCK * batch)
            longest = int(lengths[order[place + block - 1]])
            size = max(1, min(batch, _TOKENS // longest))
            visits += [(place + k, min(size, block - k), place, block) for k in range(0, block, size)]
            place += block
        first, count, begin, blocks = np.array(visits, np.int64).reshape(-1, 4).T.copy()
        return order, first, count, begin, blocks

    def samples(self, feed: TaggingFeed) -> Sentences:
        """Rows of all tokens, letters of all words, and sentences by visit."""
        return self._samples(feed, self.config.batch_size)

    def _samples(self, feed: TaggingFeed, batch: int) -> Sentences:
        chains = feed.samples
        rows = np.tile(self._unknown(), (feed.tokens, 1))
        tokens = np.repeat(np.arange(feed.tokens), np.diff(chains.starts))
        row_of, words, features = self._rows()
        rows[tokens, self._slot_of()[chains.ids]] = row_of[chains.ids]
        rare = np.zeros(words + features, np.uint8)
        rare[row_of[feed.counts == 1]] = 1
        order, *visits = self._visits_of(feed, batch)
        numbers = np.arange(feed.longest + 1)
        return Sentences(
            np.asarray(chains.offsets), np.asarray(chains.tags), rows.reshape(-1), order, *visits, rare,
            self._unknown(), *self._spelled(feed), numbers, numbers.astype(np.int32),
        )  # fmt: skip

    def _spelled(self, feed: TaggingFeed) -> tuple[Ids, Offsets, Ids]:
        """The word of each token, and the letters of each word."""
        if self.config.letters == "none":
            return np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32)
        column = self._word_column(feed)
        return np.asarray(column.codes), *spelled(column.values, self.alphabet)

    def _word_column(self, feed: TaggingFeed) -> TextColumn:
        wanted = column_of((self.slots or _slots_of(feed))[0])
        for column in feed.text.columns if feed.text else ():
            if column.name == wanted:
                return column
        raise InputError(f"{feed.source}: the letters of its words are not known; open it with open_tagging.")

    def visits(self, feed: TaggingFeed) -> int:
        """Batches of an epoch."""
        return len(self._visits_of(feed, self.config.batch_size)[1])

    def room(self, feed: TaggingFeed) -> Room:
        """For the visit that has most tokens."""
        tokens, sentences, times = self._longest
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
        _, words, features = self._rows()
        wide, narrow = self.config.word_dim, self.config.feature_dim
        return {
            "words": row_table(self._rule, self._penalty, words, wide),
            "features": row_table(self._rule, self._penalty, features, narrow),
            **dense_tables(self._rule, self.shape.cells),
        }

    def row_ids(self, table: str) -> RowIds | None:
        """Hashes of the features' names, and of the templates whose unknown values have a row."""
        if table not in ("words", "features"):
            return None
        slots = self._slot_of()
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

    def decoder(self, feed: TaggingFeed) -> CRFDecoder:
        """The scores of all tokens by the weights as they stand, as a chain that has one feature a token."""
        self.check_same(feed)
        return self.decoder_of(feed, self.scores(feed))

    def decoder_of(self, feed: TaggingFeed, scores: Floats) -> CRFDecoder:
        """What reads tags off scores."""
        tags = len(self.tags)
        pairs = np.zeros((tags, tags), np.float32)
        if self.config.output_layer == "crf":
            pairs = bilstm_weights.plain_of(self.shape, self.trained().values)["pairs"]
        tokens = np.arange(len(scores) + 1)
        chains = Chains(feed.samples.offsets, tokens, tokens[:-1].astype(np.int32), feed.samples.tags)
        none = no_pairs(tags)
        return CRFDecoder(Resting(Plain(scores, pairs, np.zeros(0, np.float32)), none), replace(feed, samples=chains))

    def scores(self, feed: TaggingFeed, threads: int = 1) -> Floats:
        """(tokens, tags): what the layers make of each token."""
        weights = self.paid_weights()
        samples = self._samples(feed, _TOGETHER)
        visits = samples.order, samples.first, samples.count, samples.block, samples.block_size
        longest = _longest(samples.offsets, *visits)
        calm = {"dropout": np.float32(0), "word_dropout": np.float32(0), "unknown_share": np.float32(0)}
        task = self.task._replace(**calm, places=1)
        floats, ints = room_for(task, *longest)
        found = np.zeros((feed.tokens, len(self.tags)), np.float32)

        def score(first: int, last: int) -> None:
            scratch = make_scratch(Room(1, floats=floats, ints=ints), np.uint64(0))
            score_sentences(task, samples, weights, scratch, (first, last), found)

        with one_blas_thread():
            in_parts(len(samples.first), threads, score)
        return found

    # -- saving -----------------------------------------------------------------------------------------------------

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
        _, words, features = self._rows()
        config, shape = self.config, self.shape
        dense = bilstm_weights.names_of(shape)
        no_others(arrays, {"words", "features", *dense, *_REMEMBERED}, "a Bi-LSTM")
        for name, rows, dim in (("words", words, config.word_dim), ("features", features, config.feature_dim)):
            required(arrays, name, (rows, dim))
        self._allocate(None)
        weights = self.weights
        for name, (table, dim) in zip(("words", "features"), self.penalized(weights), strict=True):
            cells = row_cells(self._rule, self._penalty, dim)
            if f"{name}_table" in arrays:
                table[...] = required(arrays, f"{name}_table", table.shape)
            table.reshape(-1, cells)[:, :dim] = arrays[name]
        bilstm_weights.put_plain(shape, arrays, weights.values)
        for name in ("first", "second", "steps"):
            own = getattr(weights, name)
            if own.size and name in arrays:
                own[...] = required(arrays, name, own.shape)


def column_of(slot: str) -> str:
    """The column that a template looks at first, and itself only.

    >>> column_of("lower(w)[0]")
    'w'
    """
    atoms = parse_templates([slot], "templates").items[0].atoms
    return atoms[0].column if atoms else ""


def _slots_of(feed: TaggingFeed) -> tuple[str, ...]:
    """The templates of a feed, the first that looks at the word itself before all others."""
    lines = feed.schema.get("templates")
    if not lines:
        raise InputError(f"{feed.source}: a Bi-LSTM needs text with templates; open it with open_tagging.")
    words = [line for line in lines if column_of(line) == _WORDS and line.endswith("[0]") and "|" not in line]
    first = words[0] if words else lines[0]
    return (first, *(line for line in lines if line != first))


def _longest(offsets: Offsets, order: Ids, first: Offsets, count: Offsets, block: Offsets, size: Offsets) -> Any:
    """Tokens, sentences and times that a visit may have at the most, however its block is shuffled."""
    lengths = np.diff(offsets)
    top = lengths[order[block + size - 1]]  # of each visit's block, sorted by length
    return int((top * count).max()), int(count.max()), int(top.max())


def spelled(words: Sequence[str], alphabet: str) -> tuple[Offsets, Ids]:
    """The letters of words as numbers: where those of each begin, and all of them."""
    numbers = {letter: place for place, letter in enumerate(alphabet, KNOWN)}
    half = LONGEST // 2
    short = [word if len(word) <= LONGEST else word[:half] + word[-half:] for word in words]
    starts = np.cumsum([0, *(max(1, len(word)) for word in short)], dtype=np.int64)
    letters = [numbers.get(letter, STRANGE) for word in short for letter in word or "\0"]
    return starts, np.array(letters, np.int32).reshape(-1)
