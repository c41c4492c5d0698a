"""Options of `hogwild train classifier`, `regressor`, `ctr`, `tagger`: which model; its own are its dataclass's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from hogwild.config.models import (
    BiLSTMConfig,
    CRFConfig,
    FMConfig,
    LinearConfig,
    Quantity,
    SparseMLPConfig,
    TextConfig,
)
from hogwild.config.options import Chosen, Config, Shown, Variant, require


@dataclass(frozen=True)
class ClassConfig(Config):
    """How much classes weigh."""

    class_weight: Annotated[dict[str, float], Shown("NAME=WEIGHT")] = field(default_factory=dict)
    """Weight of the samples of a class; classes not named have 1."""
    balanced: bool = False
    """Weigh classes inversely to their frequency."""

    def check(self) -> None:
        for weight in self.class_weight.values():
            require(self, "class_weight", 0 < weight < float("inf"), "weights must be positive numbers.")
        both = bool(self.class_weight) and self.balanced
        require(self, "balanced", not both, "it cannot be joined with class_weight; choose one of the two.")

    def weights(self) -> Any:
        """Class weights as programs take them."""
        return "balanced" if self.balanced else self.class_weight or None


Classifier = Literal["linear", "fm", "mlp", "text"]
_CONFIGS = {"linear": LinearConfig, "fm": FMConfig, "mlp": SparseMLPConfig, "text": TextConfig}
ClassifierOptions = Annotated[Any, Chosen("model", {name: Variant(config) for name, config in _CONFIGS.items()})]

@dataclass(frozen=True)
class LinearRegressorConfig(LinearConfig):
    """Options of linear models."""

    loss: Quantity = "squared"
    """What is minimised, and so what is predicted: `squared` (the mean), `huber` (the mean, where outliers count less),
    `quantile` (the median, or another quantile), `poisson` (the mean of counts; weights act on its logarithm)."""


@dataclass(frozen=True)
class FMRegressorConfig(FMConfig):
    """Options of factorization machines."""

    loss: Quantity = "squared"
    """What is minimised, and so what is predicted: as for linear models."""


@dataclass(frozen=True)
class MLPRegressorConfig(SparseMLPConfig):
    """Options of embeddings with dense layers."""

    loss: Quantity = "squared"
    """What is minimised, and so what is predicted: as for linear models."""


Regressor = Literal["linear", "fm", "mlp"]
RegressorOptions = Annotated[Any, Chosen("model", {
    "linear": Variant(LinearRegressorConfig), "fm": Variant(FMRegressorConfig), "mlp": Variant(MLPRegressorConfig),
})]  # fmt: skip

_CLICKS = {"loss": "auto", "huber_delta": None, "quantile": None}
Ctr = Literal["mlp", "wide-deep", "fm", "ffm", "linear"]
CtrOptions = Annotated[Any, Chosen("model", {
    "mlp": Variant(SparseMLPConfig, {**_CLICKS, "wide": False}),
    "wide-deep": Variant(SparseMLPConfig, {**_CLICKS, "wide": True}),
    "fm": Variant(FMConfig, {**_CLICKS, "field_aware": False}),
    "ffm": Variant(FMConfig, {**_CLICKS, "field_aware": True}),
    "linear": Variant(LinearConfig, _CLICKS),
})]  # fmt: skip

TaggerOptions = Annotated[Any, Chosen("model", {"crf": Variant(CRFConfig), "bilstm": Variant(BiLSTMConfig)})]
