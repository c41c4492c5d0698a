"""Small cells: how far they are from what they were, what stays as it was, and what a changed file may not do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hogwild import machine
from hogwild.errors import ConfigError, ModelError, SaveError
from hogwild.programs.saving.cells import left_out, lightest, narrow, widen
from hogwild.programs.saving.tensors import decode, encode


def _arrays(seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(3000, 20)).astype(np.float32) * draw.lognormal(size=(3000, 1)).astype(np.float32)
    table[draw.random(3000) < 0.7] = 0
    weight = draw.normal(size=1000).astype(np.float32)
    weight[5:600] = 0
    return {
        "table": table, "weight": weight, "cube": draw.normal(size=(50, 3, 4)).astype(np.float32),
        "layer_bias": draw.normal(size=500).astype(np.float32), "short": draw.normal(size=(7, 9)).astype(np.float32),
        "counts": draw.integers(0, 9, 500), "nothing": np.zeros((200, 3), np.float32),
        "none": np.zeros((0, 4), np.float32),
    }  # fmt: skip


def _stored(arrays: Any) -> dict[str, Any]:
    """Through the bytes of a file."""
    return decode(b"".join(bytes(part) for part in encode(arrays)), "w")


@pytest.mark.parametrize("cells", ["float32", "float16", "int8"])
def test_there_and_back(cells: str) -> None:
    arrays = _arrays()
    made, done = narrow(arrays, cells)
    back = widen(_stored(made), done, "w")
    assert {name: (array.shape, array.dtype) for name, array in back.items()} == {
        name: (array.shape, array.dtype) for name, array in arrays.items()
    }
    assert not {"layer_bias", "short", "counts", "none"} & set(done)
    for name in ("layer_bias", "short", "counts", "none", *(arrays if cells == "float32" else ())):
        np.testing.assert_array_equal(back[name], arrays[name])
    if cells == "float16":
        for name in ("table", "weight", "cube"):
            np.testing.assert_allclose(back[name], arrays[name], rtol=2**-11, atol=2**-25)
    if cells == "int8":
        step = np.abs(arrays["table"]).max(axis=1) / 127  # a scale a row
        assert (np.abs(back["table"] - arrays["table"]) <= 0.501 * step[:, None]).all()
        for name in ("weight", "cube"):  # narrow rows share one
            assert np.abs(back[name] - arrays[name]).max() <= 0.501 * np.abs(arrays[name]).max() / 127
    bytes_of = {"float32": 4, "float16": 2, "int8": 1}[cells]
    assert made["table"].nbytes == 20 * bytes_of * np.count_nonzero(arrays["table"].any(axis=1))
    assert len(made["nothing"]) == 1  # a row of 1024 at least


def test_what_a_kind_cannot_hold_stays_as_it_is() -> None:
    large = np.full((10, 20), 70_000, np.float32)
    huge = np.full((10, 20), 1e35, np.float32)
    made, done = narrow({"large": large, "huge": huge}, "float16")
    assert not done
    assert made["large"] is large
    made, done = narrow({"large": large, "huge": huge}, "int8")
    assert set(done) == {"large"}
    np.testing.assert_allclose(widen(made, done, "w")["large"], large, rtol=1e-6)


def test_tiny_numbers_and_zeros_need_no_care() -> None:
    tiny = np.zeros((8, 16), np.float32)
    tiny[0, 3], tiny[1, 2] = 1e-45, -1e-38
    with np.errstate(all="raise", under="ignore"):
        made, done = narrow({"a": tiny}, "int8")
    back = widen(made, done, "w")["a"]
    assert np.isfinite(back).all()
    np.testing.assert_allclose(back, tiny, atol=1e-40)


def test_a_name_that_is_taken() -> None:
    arrays = {"a": np.ones((8, 20), np.float32), "a.scale": np.ones(3, np.float32)}
    with pytest.raises(SaveError, match="already"):
        narrow(arrays, "int8")


def test_the_lightest() -> None:
    weights = np.array([0.5, 0.0, 0.1, 0.0, 0.3, 0.2])
    assert lightest(weights, 0.5, "features").tolist() == [2, 5]
    assert lightest(weights, 3, "features").tolist() == [2, 4, 5]
    with pytest.raises(ConfigError, match="the model has 4 features that weigh something; leave out fewer"):
        lightest(weights, 4, "features")
    with pytest.raises(ConfigError, match="leave out fewer"):
        left_out(3, 0.9, "words")


def _changed(**parts: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    made, done = narrow({"table": _arrays()["table"]}, "int8")
    return {**made, **{name: part for name, part in parts.items() if part is not None}}, done


def test_a_changed_array_is_refused() -> None:
    made, done = _changed()
    table, scale, kept = made["table"], made["table.scale"], made["table.kept"]
    flipped = kept.copy()
    flipped[0] ^= 1
    for name, changed in {
        "table": [table[:-1], table.astype(np.int16), table.reshape(-1), table[:0], table[0, 0]],
        "table.scale": [scale[:-1], scale.astype(np.float64), np.full_like(scale, np.nan), np.full_like(scale, 3e38),
                        -scale, scale[:, None]],
        "table.kept": [kept[:-1], flipped, kept.astype(np.int8), np.zeros_like(kept), kept[None]],
    }.items():  # fmt: skip
        for array in changed:
            with pytest.raises(ModelError, match="copy the directory again"):
                widen({**made, name: np.asarray(array)}, done, "w")
    for name in made:
        with pytest.raises(ModelError, match="copy the directory again"):
            widen({other: array for other, array in made.items() if other != name}, done, "w")


@pytest.mark.parametrize("odd", [None, True, 0, -1, 1.0, 2**40, 2**63, "x", [], {}])
@pytest.mark.parametrize("key", ["dtype", "rows", "group"])
def test_what_is_said_of_an_array_must_fit_it(key: str, odd: Any) -> None:
    made, done = _changed()
    with pytest.raises(ModelError, match="copy the directory again"):
        widen(made, {"table": {**done["table"], key: odd}}, "w")
    with pytest.raises(ModelError, match="copy the directory again"):
        widen(made, {"table": odd}, "w")
    with pytest.raises(ModelError, match="copy the directory again"):
        widen(made, {"table": {**done["table"], "colour": odd}}, "w")


def test_halves_that_are_not_finite_are_refused() -> None:
    made, done = narrow({"a": np.ones((8, 16), np.float32)}, "float16")
    made["a"][3, 3] = np.inf
    with pytest.raises(ModelError, match="not finite"):
        widen(made, done, "w")


def test_no_file_asks_for_much_more_than_it_is() -> None:
    """One row of 1024 is there: a file of few bytes cannot have a table of many."""
    rows = 1 << 20
    stored, kept = np.ones((1, 64), np.int8), np.zeros(rows // 8, np.uint8)
    kept[0] = 1
    arrays = {"a": stored, "a.scale": np.ones(1, np.float32), "a.kept": kept}
    with pytest.raises(ModelError, match="do not fit"):
        widen(arrays, {"a": {"dtype": "int8", "group": 64, "rows": rows}}, "w")


def test_memory_is_asked_for_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made, done = narrow(_arrays(), "float16")
    monkeypatch.setattr(machine, "memory", lambda: 1000)
    with pytest.raises(ModelError, match="larger machine"):
        widen(made, done, "w")
