"""The models of `hogwild train classifier` and `hogwild train ctr`: one entry a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, get_args, get_type_hints

from hogwild.config import ClassifierConfig
from hogwild.errors import ConfigError


@dataclass(frozen=True)
class ModelKind:
    """Where the program is (it is imported when it is asked for), and which flags are arguments of it."""

    program: str
    flags: tuple[str, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)


_MLP = (
    "loss", "optimizer", "dim", "hidden", "activation", "lookup_activation", "combiner", "wide", "batch_size", "init",
    "l1", "l2",
)  # fmt: skip
_FM = ("loss", "optimizer", "dim", "l2", "l2_factors", "init_scale", "field_aware", "bias")
MODELS = {
    "linear": ModelKind("hogwild.programs.sparse.linear:Linear", ("loss", "optimizer", "l1", "l2", "bias")),
    "fm": ModelKind("hogwild.programs.sparse.fm:FactorizationMachine", _FM),
    "ffm": ModelKind("hogwild.programs.sparse.fm:FactorizationMachine", _FM, {"field_aware": True}),
    "mlp": ModelKind("hogwild.programs.sparse.sparse_mlp:SparseMLP", _MLP),
    "wide-deep": ModelKind("hogwild.programs.sparse.sparse_mlp:SparseMLP", _MLP, {"wide": True}),
    "text": ModelKind(
        "hogwild.programs.sparse.text_classifier:TextClassifier", ("optimizer", "dim", "row_decay", "counts", "l2")
    ),
}


def make_model(config: ClassifierConfig) -> Any:
    """The program that the flags ask for. Raises ConfigError at a flag that is for other models."""
    kind, given = MODELS[config.model], config.given()
    for name in given:
        if name not in kind.flags:
            offered = get_args(get_type_hints(type(config))["model"])
            others = [model for model, other in MODELS.items() if model in offered and name in other.flags]
            raise ConfigError(
                f"--{name.replace('_', '-')} is for --model {' or '.join(others)}, not {config.model}; leave it out."
            )
    module, _, program = kind.program.partition(":")
    return getattr(import_module(module), program)(**given, **kind.fixed, class_weight=config.weights())


def needs_slots(config: ClassifierConfig) -> bool:
    """Whether the model tells slots apart: then columns of tables are read as slots and dense numbers."""
    return config.model in ("mlp", "wide-deep", "ffm") or config.field_aware
