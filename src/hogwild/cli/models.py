"""The models of `hogwild train classifier`: one entry a model."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hogwild.config import ClassifierConfig
from hogwild.errors import ConfigError


@dataclass(frozen=True)
class ModelKind:
    """Where the program is (it is imported when it is asked for), and which flags are arguments of it."""

    program: str
    flags: tuple[str, ...]


MODELS = {
    "linear": ModelKind("hogwild.programs.linear:Linear", ("loss", "optimizer", "l1", "l2", "bias")),
    "fm": ModelKind(
        "hogwild.programs.fm:FactorizationMachine",
        ("loss", "optimizer", "dim", "l2", "l2_factors", "init_scale", "field_aware", "bias"),
    ),
    "text": ModelKind(
        "hogwild.programs.text_classifier:TextClassifier", ("optimizer", "dim", "row_decay", "counts", "l2")
    ),
}


def make_model(config: ClassifierConfig) -> Any:
    """The program that the flags ask for. Raises ConfigError at a flag that is for other models."""
    kind, given = MODELS[config.model], config.given()
    for name in given:
        if name not in kind.flags:
            others = [model for model, other in MODELS.items() if name in other.flags]
            raise ConfigError(
                f"--{name.replace('_', '-')} is for --model {' or '.join(others)}, not {config.model}; leave it out."
            )
    module, _, program = kind.program.partition(":")
    return getattr(import_module(module), program)(**given, class_weight=config.weights())
