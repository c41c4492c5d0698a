"""Options of `hogwild train classifier`: those of all its models together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from hogwild.options import Shown, check_choices, require


@dataclass(frozen=True)
class ClassifierConfig:
    """Which model, and its options; what is not given is left to the model."""

    model: Literal["linear", "fm", "text"] = "linear"
    """Kind of model: linear, fm (factorization machine), or text (averaged embeddings of words and n-grams, then a linear
    layer)."""
    loss: Literal["auto", "logistic", "hinge", "squared"] = "auto"
    """What is minimised; `auto`: logistic for classes. Text: logistic only; fm: not hinge."""
    optimizer: Literal["auto", "sgd", "momentum", "adagrad", "adam", "ftrl"] = "auto"
    """Update rule; `auto`: adagrad for linear and fm, sgd for text."""
    dim: int | None = None
    """Text: numbers in an embedding. Default: 16. Fm: factors of a feature; 8."""
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
    """L1 penalty a visit; drives weights to zero. Linear."""
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
        check_choices(self)
        for weight in self.class_weight.values():
            require(self, "class_weight", 0 < weight < float("inf"), "weights must be positive numbers.")
        both = bool(self.class_weight) and self.balanced
        require(self, "balanced", not both, "it cannot be joined with class_weight; choose one of the two.")

    def given(self) -> dict[str, Any]:
        """The options of a model, by name, that are not as they are by default."""
        usual = type(self)()
        apart = ("model", "class_weight", "balanced")
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in apart}
        return {name: value for name, value in values.items() if value != getattr(usual, name)}

    def weights(self) -> Any:
        """Class weights as programs take them."""
        return "balanced" if self.balanced else self.class_weight or None
