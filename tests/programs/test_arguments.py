"""Programs take the options of their dataclass as arguments, and say them again for saving."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from typing import Any

import pytest

import hogwild
from hogwild.config import (
    BiLSTMConfig,
    CRFConfig,
    FMConfig,
    LinearConfig,
    RecommenderConfig,
    SparseMLPConfig,
    TextConfig,
    Word2VecConfig,
)

ROWS = {"class_weight", "features", "classes", "constants"}
PROGRAMS: dict[str, tuple[type, set[str]]] = {
    "Linear": (LinearConfig, {*ROWS, "several"}),
    "FactorizationMachine": (FMConfig, {*ROWS, "slots"}),
    "SparseMLP": (SparseMLPConfig, {*ROWS, "slots", "dense"}),
    "TextClassifier": (TextConfig, {*ROWS, "hashing", "several"}),
    "MatrixFactorization": (RecommenderConfig, {"users", "items", "constants"}),
    "BiLSTM": (BiLSTMConfig, {"tags", "names", "slots", "alphabet", "constants", "best_by"}),
    "CRF": (CRFConfig, {"tags", "names", "preset", "constants", "pruned", "best_by"}),
    "Word2Vec": (Word2VecConfig, {"words"}),
}
UNUSUAL = {"several": True, "best_by": "accuracy"}  # saved only where they are not as usual: older models have neither


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_signature_has_the_fields_in_order_and_then_its_own(name: str) -> None:
    config, own = PROGRAMS[name]
    shown = inspect.signature(getattr(hogwild, name)).parameters
    names = [item.name for item in fields(config)]
    assert list(shown)[: len(names)] == names
    assert set(shown) - set(names) == own
    assert {item: shown[item].default for item in names} == vars(config())
    for item in shown:
        assert f"\n{item} : " in getattr(hogwild, name).__doc__ or item in own, item


@pytest.mark.parametrize("name", PROGRAMS)
def test_options_make_an_equal_program(name: str) -> None:
    config, own = PROGRAMS[name]
    program = getattr(hogwild, name)
    assert program().config == config()
    saved = json.loads(json.dumps(program(optimizer="adam").options() if name != "Word2Vec" else program().options()))
    assert set(saved) == {item.name for item in fields(config)} | own - set(UNUSUAL)
    for more in ({}, {item: value for item, value in UNUSUAL.items() if item in own}):
        again = program(**saved, **more)
        assert json.loads(json.dumps(again.options())) == {**saved, **more}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_that_is_no_option(name: str) -> None:
    first = fields(PROGRAMS[name][0])[0].name
    with pytest.raises(hogwild.ConfigError, match=rf"no option '{first}x' \(did you mean {first}\?\); options are "):
        getattr(hogwild, name)(**{f"{first}x": 1})


def test_arguments_by_place() -> None:
    program: Any = hogwild.Linear("hinge", "sgd", 0.5, l2=0.25)
    assert program.config == LinearConfig(loss="hinge", optimizer="sgd", l1=0.5, l2=0.25)
    with pytest.raises(TypeError, match="loss is given twice"):
        hogwild.Linear("hinge", loss="logistic")
    with pytest.raises(TypeError, match="8 arguments without a name; at most: loss, optimizer, l1, l2, bias, hub"):
        hogwild.Linear("hinge", "sgd", 0.0, 0.0, True, None, None, {"a": 1.0})
    with pytest.raises(hogwild.ConfigError, match="did you mean class_weight"):
        hogwild.Linear(class_weights="balanced")
