"""Options of sequence taggers: how tagged text is read, what the model is, how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from hogwild.config.kinds import Optimizer
from hogwild.config.options import Shown, check_values, require
from hogwild.config.training import TrainConfig


@dataclass(frozen=True)
class TaggingConfig:
    """How tagged text is read."""

    format: Literal["auto", "conll", "conllu", "segmented", "jsonl"] = "auto"
    """Kind of file: columns, CoNLL-U, words separated by spaces, or JSON lines; `auto` goes by name and content."""
    features: Annotated[str, Shown("chunking|chunking-more|pos|segmentation|FILE")] = "chunking"
    """Feature templates: a preset, or a file of templates."""
    columns: Annotated[tuple[str, ...], Shown("NAME,NAME")] = ()
    """Names of the columns of CoNLL files, or the fields of JSON lines, in order; - leaves one out. Default: all."""
    tag_column: Annotated[str, Shown("NAME|N")] = ""
    """Column of the tags, by name or number (0 is the first, -1 the last). Default: the last; CoNLL-U: upos."""
    min_count: int = 1
    """Features that occur less often are left out."""
    bad_lines: Literal["stop", "skip"] = "stop"
    """What a malformed line does; `skip` drops its sentence, and counts and reports it."""
    bad_share: float = 0.01
    """With `skip`: give up when more than this share of the sentences is malformed."""
    invalid_utf8: Literal["stop", "replace"] = "stop"
    """What invalid UTF-8 does; `replace` counts it."""
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded text on disk and use it again."""

    def __post_init__(self) -> None:
        columns = tuple(name.strip() for names in self.columns for name in names.split(","))
        object.__setattr__(self, "columns", columns)
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "features", bool(self.features), "name a preset (chunking, pos, segmentation) or a file.")
        require(self, "min_count", self.min_count >= 1, "it must be at least 1, which keeps every feature. Try 1.")
        require(self, "bad_share", 0 <= self.bad_share <= 1, "it is a share between 0 and 1. Try 0.01.")


@dataclass(frozen=True)
class CRFConfig:
    """Options of linear-chain CRFs."""

    optimizer: Optimizer = "sgd"
    """Update rule."""
    l2: float | None = None
    """L2 penalty: the objective is the sum of the losses of all sentences + l2 w^2 / 2. Default: 0.5 for the features
    chunking, else 1."""
    l1: float = 0.0
    """L1 penalty: the objective has + l1 |w|; drives weights to zero."""
    rich_edges: bool = True
    """Let frequent features weigh pairs of neighbouring tags too, not only single tags."""
    rich_edge_min_count: int = 10
    """Features that occur at least this often have rich edges."""
    rich_edge_pairs: Literal["seen", "all"] = "seen"
    """Pairs of tags that a rich edge weighs: those seen with its feature in training, or all."""
    structure_regularization: Annotated[int, Shown("ALPHA")] = 0
    """Cut every sentence at random into this many pieces, anew each epoch; 0: leave them whole."""
    average: bool = False
    """Keep a running mean of the weights over epochs, the later ones counting more, and predict with it."""

    rich_edge_templates: Annotated[tuple[str, ...], Shown("TEMPLATE")] = ()
    """Only features of these templates have rich edges, such as w[0] pos[0]. Default: all."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "l1", 0 <= self.l1 < float("inf"), "it must not be negative. Try 0.")
        if self.l2 is not None:
            require(self, "l2", 0 <= self.l2 < float("inf"), "it must not be negative. Try 1.")
        fits = self.rich_edge_min_count >= 1
        require(self, "rich_edge_min_count", fits, "it must be at least 1, which takes all features. Try 10.")
        fits = 0 <= self.structure_regularization <= 1000
        require(self, "structure_regularization", fits, "it must lie between 0 (whole sentences) and 1000. Try 4.")


@dataclass(frozen=True)
class TaggerTrainConfig(TrainConfig):
    """How training of taggers runs: as all training, with other defaults."""

    epochs: int = 10
    """Times that every sentence is visited."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.05 for the features chunking, 0.1 for the other presets; else calibrated."""

    _rates: ClassVar[str] = "Try 0.05 with sgd"
