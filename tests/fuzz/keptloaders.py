"""What was a finding in loaders once, by target: recipes for models and checkpoints, files for the rest."""

from __future__ import annotations

import json
from typing import Any

from fuzz.harness import Kept


def _recipe(name: str, *changes: list[Any]) -> Kept:
    return Kept(f"{name}.json", json.dumps([["of", name], *changes]).encode())


def _set(*place: str | int, to: Any) -> list[Any]:
    return ["set", list(place), to]


_LONG = "x" * 100_000
KEPT: dict[str, list[Kept]] = {
    "model": [
        _recipe("linear", _set("options", "classes", 0, to=-(2**63))),
        _recipe("linear", _set("options", "classes", 0, to="1")),
        _recipe("linear", _set("options", "constants", to={"epsilon": 1e308})),
        _recipe("linear", _set("options", "l2", to=10**400)),
        _recipe("linear", _set("schema", "features", to=[9])),
        _recipe("linear", ["drop", ["schema", "features"]]),
        _recipe("linear-classes", _set("schema", "labels", "names", to=[1, 2, 3])),
        _recipe("linear-classes", _set("schema", "min_count", to="2")),
        _recipe("linear-classes", _set("schema", "format", to=_LONG)),
        _recipe("text", _set("schema", "labels", "names", to=[1])),
        _recipe("mlp", _set("schema", "slots", 1, to=_LONG)),
        _recipe("mlp", _set("options", "slots", 1, to=_LONG)),
        _recipe("mlp", _set("schema", "plan", 0, "name", to="\ud800")),
        _recipe("ratings", ["array", "weights.safetensors", "range", "all", 11]),
        _recipe("crf", _set("options", "preset", to={})),
        _recipe("crf", _set("schema", "columns", 1, to="pos" * 2000)),
    ],
    "checkpoint": [
        _recipe("linear", _set("state", "position", to=[3, 10**12])),
        _recipe("linear", _set("state", "position", to=[1, 2**63 - 1]), _set("state", "epoch_visits", to=2**63 - 1)),
        _recipe("linear", _set("state", "position", to=[2**62, 0])),
        _recipe("linear", ["array", "state.safetensors", "lr", "axis", 1]),
        _recipe("linear", ["array", "state.safetensors", "random", "dtype", 3]),
        _recipe("word2vec", _set("options", "cbow", to=-(2**63))),
    ],
    "options": [
        Kept("a.toml", b"epochs = " + b"[" * 200_000),
        Kept("a.toml", b"epochs" + b".a" * 50_000 + b" = 1"),
        Kept("a.toml", b"epochs = " + b"9" * 5000),
        Kept("a.toml", b"epochs = 1" + b"0" * 21),
        Kept("a.toml", b"epochs = '" + _LONG.encode() + b"'"),
        Kept("a.toml", b'output = "a\\u0000b"'),
    ],
    "vectors": [
        Kept("a.vec", b"the 1 2 3\n\x0c\nof 1 2 3\n"),
        Kept("a.vec", b"\x0c\n"),
        Kept("a.vec", b"3 3\nthe 1 2 3\n\x0b \x0c\nof 1 2 3\n"),
    ],
}
