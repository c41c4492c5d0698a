"""Options of models: a dataclass each. Its fields are the flags of the model, its TOML keys, the arguments of its
program in Python, and what is saved with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from hogwild.config.kinds import Optimizer, PieceForm, Subwords, letters_of
from hogwild.config.options import Config, Shown, require, require_not_negative

Rule = Annotated[Optimizer, Shown(left_out="auto")]  # that of the model
Quantity = Literal["squared", "huber", "quantile", "poisson"]


def _check_quantity(config: LinearConfig | FMConfig | SparseMLPConfig) -> None:
    """What losses of quantities are told."""
    for name, loss in (("huber_delta", "huber"), ("quantile", "quantile")):
        used = getattr(config, name) is None or config.loss == loss
        require(config, name, used, f"it is for the {loss} loss, not {config.loss}; leave it out, or ask for {loss}.")
    delta, level = config.huber_delta, config.quantile
    require(config, "huber_delta", delta is None or delta >= 1e-30, "it must be positive. Try 1.")
    require(config, "quantile", level is None or 0 < level < 1, "it is a share above 0 and below 1. Try 0.5.")


@dataclass(frozen=True)
class LinearConfig(Config):
    """Options of linear models."""

    loss: Literal["auto", "logistic", "hinge", "squared", "huber", "quantile", "poisson"] = "auto"
    """What is minimised: `logistic` (two classes: log loss; more: softmax), `hinge` (more than two classes: the sum
    over classes of each against the rest), or of a quantity `squared` (its mean), `huber` (the same, where outliers
    count less), `quantile` (its median, or another quantile), `poisson` (the mean of counts); `auto`: logistic for
    labels that are words or whole numbers of at most a thousand kinds; quantities are asked for."""
    optimizer: Rule = "adagrad"
    """Update rule; momentum and adam act on the weights of the features that a sample has, at these visits only."""
    l1: float = 0.0
    """L1 penalty a visit; drives weights to zero. The objective is the mean loss + l1 |w| + l2 w^2 / 2, without the
    bias; paid by the features that a sample has, and at the end of an epoch. With ftrl once for all visits together."""
    l2: float = 0.0
    """L2 penalty a visit; keeps weights small."""
    bias: bool = True
    """Learn an intercept."""
    huber_delta: float | None = None
    """With the huber loss: errors up to this count by their squares, larger ones by their size; in the unit of the
    targets. Default: 1."""
    quantile: float | None = None
    """With the quantile loss: the share of the targets that is to lie below what is predicted. Default: 0.5, the
    median."""

    def check(self) -> None:
        require_not_negative(self, "l1", "l2", remedy="Try 0 or 1e-6.")
        _check_quantity(self)


@dataclass(frozen=True)
class FMConfig(Config):
    """Options of factorization machines."""

    dim: int = 8
    """Factors of a feature, field-aware for each field; 0: a linear model."""
    loss: Literal["auto", "logistic", "squared", "huber", "quantile", "poisson"] = "auto"
    """What is minimised: `logistic` (two classes), or of a quantity `squared`, `huber`, `quantile`, `poisson`; `auto`:
    logistic for labels that are words or whole numbers of at most a thousand kinds; quantities are asked for."""
    optimizer: Rule = "adagrad"
    """Update rule."""
    l2: float = 0.0
    """L2 penalty on weights, a visit, without the bias; l2_form says of which. With ftrl once for all visits
    together."""
    l2_factors: float = 0.0
    """L2 penalty on factors."""
    field_aware: bool = False
    """Features have factors of their own for each field (slot) of the data that a partner may be of."""
    init_scale: float = 0.01
    """Standard deviation of the first factors, which depend on the seed and the feature alone."""
    bias: bool = True
    """Learn an intercept."""
    huber_delta: float | None = None
    """With the huber loss: errors up to this count by their squares, larger ones by their size; in the unit of the
    targets. Default: 1."""
    quantile: float | None = None
    """With the quantile loss: the share of the targets that is to lie below what is predicted. Default: 0.5, the
    median."""
    l2_form: Literal["time", "touched"] = "time"
    """Whose squares l2 w^2 / 2 + l2_factors v^2 / 2 a visit has in its loss: those of all weights w and factors v
    (`time`: the objective is the mean loss + these; a row pays late, when its feature occurs), or of the sample's
    features only (`touched`, as in xLearn and libffm; faster, and weaker on rare features)."""

    def check(self) -> None:
        most = 256  # compiled code is made for each number of factors
        require(self, "dim", 0 <= self.dim <= most, f"it must lie between 0 (a linear model) and {most}. Try 8.")
        require_not_negative(self, "l2", "l2_factors", remedy="Try 0 or 1e-6.")
        fits = self.init_scale > 0
        require(self, "init_scale", fits, "it must be positive: factors of zero would never move. Try 0.01.")
        idle = self.l2_form == "touched" and not (self.l2 or self.l2_factors)
        require(self, "l2_form", not idle, "there is no penalty; add l2 or l2_factors, or leave it out.")
        idle = self.l2_form == "touched" and self.optimizer == "ftrl"
        require(self, "l2_form", not idle, "the penalties of ftrl are part of its rule; leave it out.")
        _check_quantity(self)


@dataclass(frozen=True)
class SparseMLPConfig(Config):
    """Options of embeddings with dense layers."""

    dim: int = 16
    """Numbers in the embedding of a feature."""
    hidden: Annotated[tuple[int, ...], Shown("N,N,...")] = (128, 64)
    """Outputs of each dense layer before the last; 0: there is no such layer."""
    activation: Literal["relu", "tanh"] = "relu"
    """What dense layers but the last do to their sums."""
    lookup_activation: Literal["none", "relu", "tanh"] = "none"
    """What is done to looked-up embeddings before the first dense layer."""
    combiner: Literal["sum", "mean", "sqrtn"] = "sum"
    """How the embeddings of one slot are put together, each times its value; mean divides by the sum of the values,
    sqrtn by the root of the sum of their squares."""
    wide: bool = False
    """Add a linear model of the same features to the output (wide and deep)."""
    loss: Literal["auto", "logistic", "squared", "huber", "quantile", "poisson"] = "auto"
    """What is minimised: `logistic` (sigmoid or softmax), or of a quantity `squared`, `huber`, `quantile`, `poisson`;
    `auto`: logistic for classes."""
    optimizer: Rule = "adam"
    """Update rule; an embedding moves at the batches in which its feature occurs only."""
    l1: float = 0.0
    """L1 penalty on embeddings, a visit, paid lazily."""
    l2: Annotated[float | None, Shown("X")] = None
    """L2 penalty on embeddings, a visit, and on dense weights at every step. Default: where the number of epochs
    is not given either, of classes 15 by the number of rows, at most 0.01, and 0 for more than 20,000 rows; else 0."""
    batch_size: int = 0
    """Samples of a visit, which make one step; 0: from 32 to 256, by the number of rows. With sgd, workers that do not
    wait for each other share a batch: each computes and steps for a part of it, of at least 64 samples."""
    init: float = 0.0
    """Embeddings begin as random numbers between -X and X; 0: the root of 1 / DIM, divided by 4."""
    huber_delta: float | None = None
    """With the huber loss: errors up to this count by their squares, larger ones by their size; in the unit of the
    targets. Default: 1."""
    quantile: float | None = None
    """With the quantile loss: the share of the targets that is to lie below what is predicted. Default: 0.5, the
    median."""

    def check(self) -> None:
        require(self, "dim", 1 <= self.dim <= 65536, "it must lie between 1 and 65536. Try 16.")
        fits = all(0 <= size <= 1 << 20 for size in self.hidden)
        require(self, "hidden", fits, "layers have between 1 and 1048576 outputs. Try 128,64.")
        object.__setattr__(self, "hidden", tuple(size for size in self.hidden if size))
        require_not_negative(self, "l1", remedy="Try 0 or 1e-6.")
        require(self, "l2", self.l2 is None or self.l2 >= 0, "it must not be negative. Try 0 or 0.01.")
        fits = 0 <= self.batch_size <= 65536
        require(self, "batch_size", fits, "it must lie between 1 and 65536, or be 0: by the number of rows. Try 256.")
        require_not_negative(self, "init", remedy="Try 0.01.")
        _check_quantity(self)


@dataclass(frozen=True)
class TextConfig(Config):
    """Options of text classifiers."""

    dim: int = 16
    """Numbers in the row (embedding) of a word or n-gram; stored in steps of 16, which is one cache line."""
    optimizer: Rule = "sgd"
    """Update rule; all of them act at the rows of a text only."""
    row_decay: float | None = None
    """Penalty on the rows that a text has, at each visit: its loss has their squares in it, times this / 2. What occurs
    often stays small: the strongest remedy against learning texts by heart. Default: of two classes 2 divided by the
    n-grams of a text (mean of all; 0.1 at the most), of more classes 0.005."""
    l2: float = 0.0
    """L2 penalty: the objective has l2 w^2 / 2 for every weight of a row, whether its n-gram occurs or not."""
    counts: bool = False
    """N-grams count as often as they occur in a text. Default: once."""
    pooling: Literal["root", "mean"] = "root"
    """How the rows of a text are put together: their sum divided by the root of 32 times their number, so that longer
    texts say more (those of 32 n-grams as by the mean); or their mean, as fastText has it."""

    def check(self) -> None:
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 16.")
        require_not_negative(self, "row_decay", remedy="Try 0.005.")
        require_not_negative(self, "l2", remedy="Try 0 or 1e-6.")


@dataclass(frozen=True)
class NearbyConfig(Config):
    """What models of words that stand near each other have in common."""

    dim: int = 100
    """Numbers in a vector."""
    window: int = 5
    """Words to either side that count as near, at the most; each word draws its own number from 1 to this."""
    window_form: Literal["shrinking", "fixed"] = "shrinking"
    """`shrinking`: each word draws how far it sees: near words count more; `fixed`: all see the whole window."""
    loss: Literal["ns", "hs"] = "ns"
    """How words are told apart: `ns`, negative sampling, from words drawn at random; `hs`, hierarchical softmax, by the
    way to them in a tree, which has no negatives."""
    negatives: int = 5
    """Random words set against each pair of neighbours."""
    negative_exponent: float = 0.75
    """Words are drawn as negatives by their count to this power; 1: as often as they occur, 0: all alike; below 0 rare
    words more often."""
    sample: float = 1e-4
    """Words more frequent than this share of the text are left out now and then; 0: never."""
    pair_negatives: bool = False
    """Draw new negatives for each pair. Default: draw them once for a run of words, which is faster."""

    def check(self) -> None:
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 100.")
        require(self, "window", 1 <= self.window <= 100, "it must lie between 1 and 100. Try 5.")
        require(self, "negatives", 1 <= self.negatives <= 100, "it must lie between 1 and 100. Try 5.")
        fits = -10 <= self.negative_exponent <= 10
        require(self, "negative_exponent", fits, "it must lie between -10 and 10. Try 0.75.")
        require(self, "sample", 0 <= self.sample <= 1, "it is a share between 0 (keep all words) and 1. Try 1e-4.")
        for name, usual in (("negatives", 5), ("negative_exponent", 0.75), ("pair_negatives", False)):
            idle = self.loss == "hs" and getattr(self, name) != usual
            require(self, name, not idle, "hierarchical softmax (loss hs) has no negatives; leave it out.")


@dataclass(frozen=True)
class Word2VecConfig(NearbyConfig):
    """Options of word vectors."""

    cbow: bool = False
    """Predict a word from the mean of its neighbours (CBOW). Default: predict the neighbours from it (skip-gram)."""
    cbow_by: Literal["mean", "sum"] = "mean"
    """With --cbow: put the neighbours together as their mean or as their sum."""
    subwords: Subwords = ""
    """Make words of their parts too: of n-grams of so many letters, such as 3:6, which gives vectors to words that were
    never seen, as fastText does. Default: words are one whole."""
    buckets: int = 2_000_000
    """With --subwords: rows that n-grams share by their hash."""

    @property
    def letters(self) -> tuple[int, int]:
        """Letters of the shortest and of the longest n-gram; (0, 0): none."""
        return letters_of(self.subwords)

    def check(self) -> None:
        super().check()
        idle = self.cbow_by != "mean" and not self.cbow
        require(self, "cbow_by", not idle, "skip-gram looks from one word at a time; add cbow, or leave it out.")
        letters_of(self.subwords)
        require(self, "buckets", 1 <= self.buckets < 2**31, "it must lie between 1 and 2147483647. Try 2000000.")
        idle = self.buckets != 2_000_000 and not self.subwords
        require(self, "buckets", not idle, "it is for n-grams of letters; add subwords, or leave it out.")


@dataclass(frozen=True)
class Doc2VecConfig(NearbyConfig):
    """Options of paragraph vectors."""

    dbow: bool = False
    """Predict words from their document alone (DBOW). Default: from their document and their neighbours (DM)."""
    dm_by: Literal["mean", "sum"] = "mean"
    """Without --dbow: put document and neighbours together as their mean or as their sum."""
    words: bool = False
    """With --dbow: learn word vectors too, by skip-gram in the same run. Without --dbow there always are some."""

    def check(self) -> None:
        super().check()
        idle = self.dm_by != "mean" and self.dbow
        require(self, "dm_by", not idle, "DBOW puts nothing together; leave out dbow, or dm_by.")
        require(self, "words", self.dbow or not self.words, "DM always learns word vectors; leave it out.")
        for name, usual in (("window", 5), ("window_form", "shrinking")):
            idle = self.dbow and not self.words and getattr(self, name) != usual
            require(self, name, not idle, "DBOW without words has no neighbours; add words, or leave it out.")


@dataclass(frozen=True)
class CRFConfig(Config):
    """Options of linear-chain CRFs."""

    optimizer: Optimizer = "sgd"
    """Update rule."""
    l2: float | None = None
    """L2 penalty: the objective is the sum of -log p(tags | sentence) over all sentences + l2 w^2 / 2. Default: 0.5 for
    the features chunking, else 1."""
    l1: float = 0.0
    """L1 penalty: the objective has + l1 |w|; drives weights to zero."""
    rich_edges: bool = True
    """Let frequent features weigh pairs of neighbouring tags too, not only single tags."""
    rich_edge_min_count: int = 10
    """Features that occur at least this often have rich edges."""
    rich_edge_pairs: Literal["seen", "all"] = "seen"
    """Pairs of tags that a rich edge weighs: those seen with its feature in training, or all."""
    structure_regularization: Annotated[int, Shown("ALPHA")] = 0
    """Cut every sentence at random into this many pieces, anew at each visit, which keeps long chains from being learnt
    by heart; features still see the whole sentence. 0: leave them whole."""
    structure_regularization_form: PieceForm = "sum"
    """What the pieces are: parts of one sample, cut anew at each visit, whose gradients are summed; or samples of their
    own, cut once before training and visited one by one, as in the paper on structure regularization."""
    average: bool = False
    """Predict with a running mean of the weights at the ends of epochs, of which the k-th counts k times."""
    rich_edge_templates: Annotated[tuple[str, ...], Shown("TEMPLATE")] = ()
    """Only features of these templates have rich edges, such as w[0] pos[0]. Default: all."""

    usual_features: ClassVar[str] = ""  # by the columns of the text

    def check(self) -> None:
        require_not_negative(self, "l1", remedy="Try 0.")
        require_not_negative(self, "l2", remedy="Try 1.")
        fits = self.rich_edge_min_count >= 1
        require(self, "rich_edge_min_count", fits, "it must be at least 1, which takes all features. Try 10.")
        fits = 0 <= self.structure_regularization <= 1000
        require(self, "structure_regularization", fits, "it must lie between 0 (whole sentences) and 1000. Try 4.")
        cut = self.structure_regularization_form == "sum" or self.structure_regularization > 0
        require(self, "structure_regularization_form", cut, "nothing is cut without structure_regularization. Add it.")


@dataclass(frozen=True)
class BiLSTMConfig(Config):
    """Options of bidirectional LSTM taggers."""

    hidden: int = 200
    """Units of a layer, each way."""
    layers: int = 1
    """LSTM layers, one on the other."""
    word_dim: int = 100
    """Numbers in the embedding of a word: of what the first template that looks at words gives."""
    feature_dim: int = 25
    """Numbers in the embedding of what any other template gives: further columns, affixes, shapes."""
    letters: Literal["none", "convolution"] = "none"
    """Look into words: a convolution over their letters, and the largest of each filter."""
    letter_dim: int = 25
    """Numbers in the embedding of a letter."""
    letter_filters: int = 50
    """Filters of the convolution: numbers that a word has of its letters."""
    output_layer: Literal["softmax", "crf"] = "softmax"
    """Tags each for itself, or as a chain: with a score for each pair of neighbours."""
    recurrence: Literal["full", "diagonal"] = "full"
    """What a unit reads of the token before: what all units gave there, or only itself, as the paper on AsynGrad has
    it."""
    products: Literal["float32", "bfloat16"] = "float32"
    """In what matrices are multiplied in training: weights are float32 either way; bfloat16 is faster, where the CPU
    multiplies it (avx512_bf16)."""
    batch_size: int = 8
    """Sentences of a visit, of similar length, which make one step; 1: one at a time, as in the paper."""
    together: int = 0
    """Sentences that a worker reads at once where a visit has one, each with a step of its own, as so many workers
    would; in mode hogwild. 0: as many as learn as well (4; 1 with clip); 1: one after the other."""
    dropout: float = 0.0
    """Share of the inputs and outputs of all layers that a sentence does without in training, the same for all its
    tokens."""
    word_dropout: float = 0.0
    """Share of words that are taken for unknown in training."""
    unknown_share: float = 0.5
    """How often a word or feature that occurs once is taken for unknown in training: so that it is known what to do
    with unknown ones."""
    clip: float = 0.0
    """Largest norm of the gradient of a visit; 0: any."""
    optimizer: Optimizer = "adam"
    """Update rule; adam with the constants of the paper: 0.95 for both means, epsilon 1e-4."""
    l2: float = 0.0
    """L2 penalty: the objective is the mean loss of a token + l2 w^2 / 2."""
    start_vectors: Annotated[str, Shown("MODEL|FILE")] = ""
    """Word vectors to start from: a model of word vectors, or a file in the format of word2vec."""

    usual_features: ClassVar[str] = "words-shapes"

    def check(self) -> None:
        for name, most, usual in (
            ("hidden", 4096, 200), ("layers", 8, 1), ("word_dim", 4096, 100), ("feature_dim", 1024, 25),
            ("letter_dim", 256, 25), ("letter_filters", 1024, 50), ("batch_size", 4096, 8),
        ):  # fmt: skip
            fits = 1 <= getattr(self, name) <= most
            require(self, name, fits, f"it must lie between 1 and {most}. Try {usual}.")
        for name in ("dropout", "word_dropout"):
            require(self, name, 0 <= getattr(self, name) < 1, "it is a share from 0 to below 1. Try 0.3.")
        require(self, "unknown_share", 0 <= self.unknown_share <= 1, "it is a share between 0 and 1. Try 0.5.")
        require(self, "together", 0 <= self.together <= 64, "it must lie between 1 and 64, or be 0: chosen.")
        alone = self.together <= 1 or self.batch_size == 1
        require(self, "together", alone, "it is for one sentence a step: batch_size must be 1; leave one of them out.")
        alone = self.together <= 1 or self.clip == 0
        require(self, "together", alone, "a gradient must be known before it is clipped; leave one of them out.")
        require_not_negative(self, "clip", remedy="Try 5, or 0 for none.")
        require_not_negative(self, "l2", remedy="Try 0 or 1e-6.")


@dataclass(frozen=True)
class SmallConfig(Config):
    """Smaller models, for use."""

    half: bool = False
    """Write a model directory with cells of 16 bits (float16)."""
    int8: bool = False
    """Write a model directory with cells of 8 bits, and a scale for each row."""
    pruned: Annotated[float, Shown("SHARE|COUNT")] = 0.0
    """Write a model directory without this share of its rows, or so many of them: the features that weigh least, of
    word vectors the rarest words."""

    @property
    def cells(self) -> str:
        """What cells become."""
        return "float16" if self.half else "int8" if self.int8 else "float32"

    def check(self) -> None:
        require(self, "int8", not (self.half and self.int8), "cells have 16 bits or 8; leave --half or --int8 out.")
        fits = 0 <= self.pruned < 1 or (self.pruned % 1 == 0 and 1 <= self.pruned < 2**40)
        require(self, "pruned", fits, "it is a share below 1, or a whole number of rows. Try 0.5.")


@dataclass(frozen=True)
class RecommenderConfig(Config):
    """Options of recommenders."""

    dim: int = 64
    """Numbers in the vector of a user and of an item."""
    loss: Literal["auto", "squared", "logistic", "bpr", "weighted"] = "auto"
    """`squared` predicts ratings; `logistic` tells items that a user has from others drawn; `bpr` puts the former
    before the latter; `weighted`: squares of all pairs, by als; `auto`: squared for ratings, else bpr; weighted with
    als."""
    solver: Literal["auto", "sgd", "als"] = "auto"
    """`sgd`: visit by visit; `als`: alternating least squares, for what users have; `auto`: as the loss has it."""
    optimizer: Optimizer = "adagrad"
    """Update rule."""
    negatives: int = 0
    """Items drawn for each item that a user has, among those that the user has not; 0: 1 with bpr, 4 with logistic."""
    bias: bool = True
    """Learn a bias for every user (not with bpr, which has no use for it) and every item."""
    alpha: float | None = None
    """With als: a pair that is there counts so many times as much as one that is not. Default: 40."""
    l2: float | None = None
    """L2 penalty of the rows that a visit reads, as usual for factorizations: l2 / 2 times their squares. Default: for
    ratings 5 by their mean number of a user, and of an item, from 0.04 to 1; with als 4 by that of pairs, weighed; 0.04
    with bpr, 0.01 with logistic."""
    shrink: float = 0.0
    """L2 penalty of all rows alike, whether a visit reads them or not, paid lazily: the objective is the mean loss +
    shrink w^2 / 2. With ftrl once for all visits."""
    init: float = 0.1
    """Standard deviation of the random numbers that vectors begin with."""

    def check(self) -> None:
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 64.")
        require(self, "negatives", 0 <= self.negatives <= 1000, "it must lie between 1 and 1000, or be 0: chosen.")
        if self.solver == "als":
            fits = self.loss in ("auto", "weighted")
            require(self, "solver", fits, f"least squares have the loss weighted, not {self.loss}; leave one out.")
        if self.loss == "weighted":
            require(self, "solver", self.solver != "sgd", "the loss weighted is solved by als; leave one of them out.")
        if self.solver == "als" or self.loss == "weighted":
            for name in ("optimizer", "negatives", "shrink"):
                unset = getattr(self, name) == getattr(type(self), name)
                require(self, name, unset, "least squares (als) take no steps and draw nothing; leave it out.")
        if self.alpha is not None:
            able = self.solver != "sgd" and self.loss in ("auto", "weighted")
            require(self, "alpha", able, "it is for least squares; add --solver als, or leave it out.")
            require(self, "alpha", 0 < self.alpha <= 1e9, "it must be positive, at most 1e9. Try 40.")
        needless = self.loss == "squared" and self.negatives > 0
        require(self, "negatives", not needless, "ratings (loss squared) need none; leave it out.")
        require_not_negative(self, "l2", remedy="Try 0.02.")
        require_not_negative(self, "shrink", remedy="Try 0 or 1e-6.")
        require(self, "init", self.init > 0, "it must be positive; equal vectors never part. Try 0.1.")
