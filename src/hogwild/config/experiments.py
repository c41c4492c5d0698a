"""Options of experiments, and of searches for options."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from hogwild.config.kinds import File, PieceForm, TaggerModel
from hogwild.config.models import BiLSTMConfig
from hogwild.config.options import Chosen, Config, Shown, Variant, require, require_not_negative
from hogwild.config.training import SaveConfig

_THREADS, _FEW_THREADS = tuple(range(1, 11)), (1, 2, 4)
_EPOCHS, _FEW_EPOCHS = 10, 5
_SEEDS, _FEW_SEEDS = 5, 2
_SIZES = {"pos": 170, "chunking": 280, "noun-phrases": 280, "segmentation": 220}  # of the paper: words, and units
_TEMPLATES = {
    "pos": "words-shapes", "chunking": "words-pos", "noun-phrases": "words-pos", "segmentation": "characters",
}  # fmt: skip
AsynGradTask = Literal["chunking", "noun-phrases", "pos", "segmentation"]


@dataclass(frozen=True)
class ExperimentRuns(Config):
    """Which runs an experiment makes."""

    threads: Annotated[tuple[int, ...], Shown("N", many=True)] = ()
    """Numbers of threads to compare. Default: 1 to 10; with --small 1 2 4."""
    epochs: int | None = None
    """Iterations of each run. Default: 10; with --small 5."""
    seeds: int | None = None
    """Runs of each kind, each with a seed of its own. Default: 5; with --small 2."""
    seed: int = 1
    """The first seed; the others follow it."""
    small: bool = False
    """Few threads, iterations and seeds; data that is made is small too."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: that of the model."""

    def check(self) -> None:
        fits = all(1 <= count <= 4096 for count in self.threads)
        require(self, "threads", fits, "numbers of threads lie between 1 and 4096. Try 1 2 4 10.")
        distinct = len(set(self.threads)) == len(self.threads)
        require(self, "threads", distinct, "a number stands there twice; give each once.")
        if self.epochs is not None:
            require(self, "epochs", 1 <= self.epochs < 2**30, "it must lie between 1 and 1073741823. Try 10.")
        if self.seeds is not None:
            require(self, "seeds", 1 <= self.seeds < 2**30, "it must lie between 1 and 1073741823. Try 5.")
        require(self, "seed", 0 <= self.seed < 2**62, "it must not be negative and fit 62 bits. Try 1.")
        if self.lr is not None:
            require(self, "lr", self.lr > 0, "it must be positive and finite; leave it out for that of the model.")

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of threads."""
        return self.threads or (_FEW_THREADS if self.small else _THREADS)

    @property
    def iterations(self) -> int:
        """Iterations of each run."""
        return self.epochs or (_FEW_EPOCHS if self.small else _EPOCHS)

    @property
    def repeats(self) -> int:
        """Runs of each kind."""
        return self.seeds or (_FEW_SEEDS if self.small else _SEEDS)

    @property
    def seed_list(self) -> list[int]:
        """The seed of each of them."""
        return [self.seed + place for place in range(self.repeats)]


@dataclass(frozen=True)
class AsynGradRuns(ExperimentRuns):
    """Which runs the experiment of AsynGrad makes, of whatever model."""

    model: ClassVar[TaggerModel]
    task: AsynGradTask = "chunking"
    """What is learnt, with feature templates and other options that suit it. noun-phrases: of chunks only those of type
    NP (or of --chunks), the others being O."""
    small: bool = False
    """Few threads, iterations and seeds. So it is where --train is left out: then the text is made up."""

    @property
    def templates(self) -> str:
        """The preset of feature templates."""
        return "chunking" if self.task == "noun-phrases" else self.task

    @property
    def pieces(self) -> int:
        """Pieces of structure regularization; 0: the model has none."""
        return 0


@dataclass(frozen=True)
class AsynGradConfig(AsynGradRuns):
    """What the experiment of AsynGrad trains, with CRFs."""

    model: ClassVar[TaggerModel] = "crf"
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.02, 0.05, 0.1 for the tasks pos, chunking (noun-phrases), segmentation."""
    l2: float | None = None
    """L2 penalty. Default: 0.5 for chunking and noun-phrases, else 1."""
    rich_edges: bool = True
    """Let frequent features weigh pairs of neighbouring tags too, not only single tags."""
    rich_edge_min_count: int = 10
    """Features that occur at least this often have rich edges."""
    structure_regularization: Annotated[int, Shown("ALPHA")] = 4
    """Pieces that AsynGrad with structure regularization cuts each sentence into."""
    structure_regularization_form: PieceForm = "sum"
    """What the pieces are: parts of one sample, whose gradients are summed; or samples of their own, as in the paper
    on structure regularization."""

    def check(self) -> None:
        super().check()
        require_not_negative(self, "l2", remedy="Try 1.")
        fits = self.rich_edge_min_count >= 1
        require(self, "rich_edge_min_count", fits, "it must be at least 1, which takes all features. Try 10.")
        fits = 2 <= self.structure_regularization <= 1000
        require(self, "structure_regularization", fits, "it must lie between 2 and 1000. Try 4.")

    @property
    def pieces(self) -> int:
        """Pieces of structure regularization."""
        return self.structure_regularization


@dataclass(frozen=True)
class AsynGradBiLSTMConfig(AsynGradRuns, BiLSTMConfig):
    """What the experiment of AsynGrad trains, with Bi-LSTMs."""

    model: ClassVar[TaggerModel] = "bilstm"
    hidden: int = 0
    """Units of a layer, each way; 0: 170, 280, 220 for the tasks pos, chunking, segmentation, as in the paper."""
    word_dim: int = 0
    """Numbers in the embedding of a word; 0: as many as the paper has units."""
    batch_size: int = 1
    """Sentences of a visit, of similar length, which make one step; 1: one at a time, as in the paper."""
    together: int = 1
    """Sentences that a thread reads at once, each with a step of its own; 1: a thread is one worker, as in the
    paper."""

    def check(self) -> None:
        AsynGradRuns.check(self)
        for name in ("hidden", "word_dim"):
            object.__setattr__(self, name, getattr(self, name) or _SIZES[self.task])
        require(self, "together", self.together <= 1, "a thread of this experiment is one worker; leave it out.")
        BiLSTMConfig.check(self)

    @property
    def templates(self) -> str:
        """The preset of feature templates."""
        return _TEMPLATES[self.task]

    def program(self) -> dict[str, Any]:
        """The options of the program."""
        return {item.name: getattr(self, item.name) for item in fields(BiLSTMConfig)}


AsynGradOptions = Annotated[Any, Chosen("model", {
    "crf": Variant(AsynGradConfig), "bilstm": Variant(AsynGradBiLSTMConfig),
})]  # fmt: skip


@dataclass(frozen=True)
class HogwildLinearConfig(ExperimentRuns):
    """What the experiment of Hogwild trains: a linear model of two classes or more."""

    problem: ClassVar[str] = "linear"
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.2 with adagrad, 0.5 with sgd."""
    loss: Literal["logistic", "hinge"] = "logistic"
    """What is minimised; hinge: a support vector machine."""
    optimizer: Literal["sgd", "adagrad"] = "adagrad"
    """Update rule."""
    l2: float = 0.0
    """L2 penalty a visit."""

    def check(self) -> None:
        super().check()
        require_not_negative(self, "l2", remedy="Try 0 or 1e-6.")

    @property
    def rate(self) -> float:
        """The first learning rate of all runs."""
        return self.lr or {"sgd": 0.5, "adagrad": 0.2}[self.optimizer]


@dataclass(frozen=True)
class HogwildFactorsConfig(ExperimentRuns):
    """What the experiment of Hogwild trains: a factorization of ratings."""

    problem: ClassVar[str] = "factorization"
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.1 with adagrad, 0.05 with sgd."""
    dim: int = 16
    """Numbers in the vector of a user and of an item."""
    optimizer: Literal["sgd", "adagrad"] = "adagrad"
    """Update rule."""
    l2: float | None = None
    """L2 penalty of the rows that a visit reads. Default: by the mean number of ratings of a user, and of an item."""

    def check(self) -> None:
        super().check()
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 16.")
        require_not_negative(self, "l2", remedy="Try 0.1.")

    @property
    def rate(self) -> float:
        """The first learning rate of all runs."""
        return self.lr or {"sgd": 0.05, "adagrad": 0.1}[self.optimizer]


HogwildOptions = Annotated[Any, Chosen("problem", {
    "linear": Variant(HogwildLinearConfig), "factorization": Variant(HogwildFactorsConfig),
})]  # fmt: skip


ALONE = "one machine"
_ACTOR = "parameter-actor"
EMBEDDING_STRATEGIES = (_ACTOR, f"{_ACTOR}, asynchronous", "average", "gossip", "columns", "merge")
_NODES, _FEW_NODES = (1, 2, 4), (1, 2)
_FEW_STRATEGIES = (_ACTOR, "average")


@dataclass(frozen=True)
class EmbeddingsConfig(Config):
    """Which runs the experiment on word vectors makes."""

    nodes: Annotated[tuple[int, ...], Shown("N", many=True)] = ()
    """Numbers of nodes to compare. Default: 1 2 4; with --small 1 2."""
    strategies: Annotated[tuple[str, ...], Shown("NAME", many=True)] = ()
    """Strategies to compare: parameter-actor, parameter-actor-asynchronous, average, gossip, columns, merge. Default:
    all; with --small parameter-actor and average."""
    workers_per_node: int = 1
    """Workers of a node, which share its weights without locks."""
    epochs: int | None = None
    """Times that the text is read. Default: 5; with --small 2."""
    seeds: int | None = None
    """Runs of each kind, each with a seed of its own. Default: 3; with --small 1."""
    seed: int = 1
    """The first seed; the others follow it."""
    small: bool = False
    """Few nodes, strategies and epochs, one seed; without --train little text."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: that of word vectors."""
    dim: int = 100
    """Numbers in a vector."""

    def check(self) -> None:
        fits = all(1 <= count <= 256 for count in self.nodes) and len(set(self.nodes)) == len(self.nodes)
        require(self, "nodes", fits, "numbers of nodes lie between 1 and 256, each once. Try 1 2.")
        known = [name.replace(", ", "-") for name in EMBEDDING_STRATEGIES]
        fits = set(self.strategies) <= set(known) and len(set(self.strategies)) == len(self.strategies)
        require(self, "strategies", fits, f"they are some of {', '.join(known)}, each once.")
        require(self, "workers_per_node", 1 <= self.workers_per_node <= 256, "it lies between 1 and 256. Try 1.")
        for name in ("epochs", "seeds"):
            number = getattr(self, name)
            require(self, name, number is None or 1 <= number < 2**30, "it must lie between 1 and 1073741823. Try 3.")
        require(self, "seed", 0 <= self.seed < 2**62, "it must not be negative and fit 62 bits. Try 1.")
        if self.lr is not None:
            require(self, "lr", self.lr > 0, "it must be positive and finite; leave it out for that of the model.")
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 100.")

    @property
    def node_counts(self) -> tuple[int, ...]:
        """Numbers of nodes."""
        return self.nodes or (_FEW_NODES if self.small else _NODES)

    @property
    def methods(self) -> tuple[str, ...]:
        """Strategies, as they are told."""
        usual = _FEW_STRATEGIES if self.small else EMBEDDING_STRATEGIES
        chosen = [name for name in EMBEDDING_STRATEGIES if name.replace(", ", "-") in self.strategies]
        return tuple(chosen) if self.strategies else usual

    @property
    def iterations(self) -> int:
        """Epochs of each run."""
        return self.epochs or (2 if self.small else 5)

    @property
    def seed_list(self) -> list[int]:
        """The seed of each run of a kind."""
        return [self.seed + place for place in range(self.seeds or (1 if self.small else 3))]


@dataclass(frozen=True)
class TuneConfig(Config):
    """How options are searched for."""

    trials: int = 0
    """Options that are tried, one after another's choice: with the same --seed the same search again. Default: 30,
    without end if --seconds is given."""
    seconds: float = 0.0
    """End the search after so many seconds; what is not finished by then is left. Default: no limit."""
    search: Annotated[tuple[str, ...], Shown("NAME=LOW:HIGH[:log]|NAME=A,B,...")] = ()
    """Try values of this option: between two numbers, on a logarithmic scale if that is said, or one of several.
    May be given several times. Default: learning rate, penalties, sizes and epochs, but for those that are given."""
    side_by_side: Annotated[int | None, Shown("N")] = None
    """Trials that run at once, one thread each. Default: one a core."""
    trials_file: Annotated[str, Shown("FILE.jsonl")] = ""
    """Write every trial there when it ends, one JSON object a line."""

    def check(self) -> None:
        require(self, "trials", 0 <= self.trials <= 1_000_000, "it must lie between 1 and 1000000. Try 30.")
        require(self, "seconds", 0 <= self.seconds < 1e9, "it must not be negative. Try 300.")
        if self.side_by_side is not None:
            require(self, "side_by_side", 1 <= self.side_by_side <= 1024, "it must lie between 1 and 1024.")


@dataclass(frozen=True)
class SimulateConfig(Config):
    """Which machines are simulated."""

    workers: Annotated[str, Shown("N,N,...")] = "1,2,4,16,64,256"
    """Numbers of workers to predict for, from 1 to 256."""
    compare: Annotated[str, Shown("N,N,...")] = ""
    """Numbers of threads of real runs on this machine, each beside the prediction for its cores and load."""
    cores: Annotated[int | None, Shown("N")] = None
    """Cores that the virtual workers share in turns. Default: one for each."""
    delay: Annotated[float | None, Shown("VISITS")] = None
    """Time between reading and writing, in lengths of a visit; 0: nothing comes between. Default: as measured."""
    lost: Annotated[float | None, Shown("CHANCE")] = None
    """Chance that of two writes of a row at the same time one is lost. Default: where both are at that row at once."""
    torn: bool = True
    """Write the halves of an update one after the other, with others between."""
    link: Annotated[float | None, Shown("GBIT")] = None
    """With --cluster virtual: gigabits a second between two nodes. Default: 10."""
    latency: Annotated[float | None, Shown("MS")] = None
    """With --cluster virtual: milliseconds from one node to another and back. Default: 0.2."""

    def check(self) -> None:
        for name in ("link", "latency"):
            number = getattr(self, name)
            require(self, name, number is None or 0 < number < 1e6, "it must be positive. Try 10, or leave it out.")
        for name in ("workers", "compare"):
            numbers = _numbers(getattr(self, name))
            fits = numbers is not None and all(1 <= number <= 256 for number in numbers)
            require(self, name, fits, "it has whole numbers from 1 to 256 with commas between. Try 1,4,64.")
            require(self, name, len(set(numbers or ())) == len(numbers or ()), "a number stands there twice.")
        require(self, "workers", bool(self.counts), "give numbers of workers. Try 1,4,64.")
        if self.cores is not None:
            require(self, "cores", 1 <= self.cores <= 256, "it must lie between 1 and 256; left out, each has one.")
        if self.delay is not None:
            require(self, "delay", 0 <= self.delay <= 1e6, "it must not be negative. Try 1, or leave it out.")
        if self.lost is not None:
            require(self, "lost", 0 <= self.lost <= 1, "it is a chance between 0 and 1. Try 0.")

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of workers."""
        return _numbers(self.workers) or ()

    @property
    def real(self) -> tuple[int, ...]:
        """Numbers of threads of real runs."""
        return _numbers(self.compare) or ()


def _numbers(text: str) -> tuple[int, ...] | None:
    """Whole numbers with commas between; None if something else stands there."""
    parts = [part.strip() for part in text.split(",")] if text else []
    fits = all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts)
    return tuple(map(int, parts)) if fits else None


@dataclass(frozen=True)
class SimulateSaveConfig(SaveConfig):
    """What is written."""

    output: File = ""
    """JSON file of predictions, runs and costs; one that is there is replaced. Default: nothing is saved."""
