"""Options of `hogwild train classifier`, `ctr` and `tagger`: which model; its own options are its dataclass's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from hogwild.config.models import BiLSTMConfig, CRFConfig, FMConfig, LinearConfig, SparseMLPConfig, TextConfig
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

Ctr = Literal["mlp", "wide-deep", "fm", "ffm", "linear"]
CtrOptions = Annotated[Any, Chosen("model", {
    "mlp": Variant(SparseMLPConfig, {"loss": "auto", "wide": False}),
    "wide-deep": Variant(SparseMLPConfig, {"loss": "auto", "wide": True}),
    "fm": Variant(FMConfig, {"loss": "auto", "field_aware": False}),
    "ffm": Variant(FMConfig, {"loss": "auto", "field_aware": True}),
    "linear": Variant(LinearConfig, {"loss": "auto"}),
})]  # fmt: skip

TaggerOptions = Annotated[Any, Chosen("model", {"crf": Variant(CRFConfig), "bilstm": Variant(BiLSTMConfig)})]
