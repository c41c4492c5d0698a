"""Options of `hogwild train classifier`: those of all its models together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from hogwild.config.options import Shown, check_values, require


@dataclass(frozen=True)
class ClassifierConfig:
    """Which model, and its options; what is not given is left to the model."""

    model: Literal["linear", "fm", "mlp", "text"] = "linear"
    """Kind of model: linear, fm (factorization machine), mlp (embeddings of features, then dense layers), or text
    (averaged embeddings of words and n-grams, then a linear layer)."""
    loss: Literal["auto", "logistic", "hinge", "squared"] = "auto"
    """What is minimised; `auto`: logistic for classes. Text: logistic only; fm and mlp: not hinge."""
    optimizer: Literal["auto", "sgd", "momentum", "adagrad", "adam", "ftrl"] = "auto"
    """Update rule; `auto`: adagrad for linear and fm, adam for mlp, sgd for text."""
    dim: int | None = None
    """Text and mlp: numbers in an embedding. Default: 16. Fm: factors of a feature; 8."""
    hidden: Annotated[str, Shown("N,N,...")] = ""
    """Mlp: outputs of each dense layer before the last; 0: there is no such layer. Default: 128,64."""
    activation: Literal["relu", "tanh"] = "relu"
    """Mlp: what dense layers but the last do to their sums."""
    lookup_activation: Literal["none", "relu", "tanh"] = "none"
    """Mlp: what is done to looked-up embeddings before the first dense layer."""
    combiner: Literal["sum", "mean", "sqrtn"] = "sum"
    """Mlp: how the embeddings of one slot are put together, each times its value."""
    wide: bool = False
    """Mlp: add a linear model of the same features (wide and deep)."""
    batch_size: int | None = None
    """Mlp: samples of a visit, which make one step. Default: 256."""
    init: Annotated[float | None, Shown("X")] = None
    """Mlp: embeddings begin as random numbers between -X and X. Default: by their dim."""
    l2_factors: float = 0.0
    """Fm: L2 penalty on factors."""
    init_scale: Annotated[float | None, Shown("X")] = None
    """Fm: standard deviation of the first factors. Default: 0.01."""
    field_aware: bool = False
    """Fm: features have factors of their own for each field (slot) of the data."""
    row_decay: Annotated[float | None, Shown("X")] = None
    """Text: penalty on the embeddings that a text has, at each visit. Default: 0.002."""
    counts: bool = False
    """Text: n-grams count as often as they occur in a text. Default: once."""
    l1: float = 0.0
    """L1 penalty a visit; drives weights to zero. Linear and mlp."""
    l2: float = 0.0
    """L2 penalty a visit; keeps weights small."""
    bias: bool = True
    """Learn an intercept. Linear and fm; others always do."""
    class_weight: Annotated[dict[str, float], Shown("NAME=WEIGHT")] = field(default_factory=dict)
    """Weight of the samples of a class; classes not named have 1."""
    balanced: bool = False
    """Weigh classes inversely to their frequency."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work; a model checks what is its own."""
        check_values(self)
        for weight in self.class_weight.values():
            require(self, "class_weight", 0 < weight < float("inf"), "weights must be positive numbers.")
        sizes = self.hidden.split(",") if self.hidden else []
        whole = all(size.strip().isdecimal() and len(size) < 20 for size in sizes)
        require(self, "hidden", whole, "write whole numbers with commas between them, such as 128,64.")
        both = bool(self.class_weight) and self.balanced
        require(self, "balanced", not both, "it cannot be joined with class_weight; choose one of the two.")

    def given(self) -> dict[str, Any]:
        """The options of a model, by name, that are not as they are by default."""
        usual = type(self)()
        apart = ("model", "class_weight", "balanced")
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in apart}
        found = {name: value for name, value in values.items() if value != getattr(usual, name)}
        if self.hidden:
            found["hidden"] = tuple(int(size) for size in self.hidden.split(",") if int(size))
        return found

    def weights(self) -> Any:
        """Class weights as programs take them."""
        return "balanced" if self.balanced else self.class_weight or None


@dataclass(frozen=True)
class CtrConfig(ClassifierConfig):
    """Which model of clicks, and its options; what is not given is left to the model."""

    model: Literal["mlp", "wide-deep", "fm", "ffm", "linear"] = "mlp"  # type: ignore[assignment]
    """Kind of model: mlp (embeddings, then dense layers), wide-deep (the same plus a linear model), fm (factorization
    machine), ffm (field-aware), or linear."""
    loss: Annotated[Literal["auto", "logistic"], Shown(hidden=True)] = "auto"
    row_decay: Annotated[float | None, Shown(hidden=True)] = None
    counts: Annotated[bool, Shown(hidden=True)] = False
    field_aware: Annotated[bool, Shown(hidden=True)] = False
    wide: Annotated[bool, Shown(hidden=True)] = False
