"""CRFs on disk and as arrays: what comes back is what was there, and what somebody else wrote is not trusted."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.config import TrainConfig
from hogwild.errors import HogwildError, ModelError
from hogwild.executor.readers.checkpoint import identity_of, load_checkpoint, save_checkpoint
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.programs.saving.sealed import write_sealed
from hogwild.programs.store import load_model, save_model
from hogwild.programs.taggers.crf import CRF
from problems.crf import SOME, make_crf, make_feed

KINDS: list[dict[str, Any]] = [{"l2": 1.0}]
if OFF:
    KINDS += [
        {"l1": 0.1},
        {"optimizer": "momentum", "l2": 1.0, "constants": {"beta": 0.5}},
        {"optimizer": "adagrad", "l2": 0.0},
        {"optimizer": "adam", "l1": 0.1, "average": True},
        {"optimizer": "ftrl", "l1": 0.1, "rich_edges": False},
        {"rich_edge_pairs": "all", "structure_regularization": 2},
    ]


def trained(options: dict[str, Any], feed: Any, epochs: int = 2) -> CRF:
    """A CRF after some epochs."""
    program = CRF(**{**SOME, **options})
    list(AsyncExecutor(mode="serial", lr=0.1).run(program, feed, epochs=epochs))
    return program


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """Two bundles of arrays, bit for bit."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array.dtype, array.shape) == (other[name].dtype, other[name].shape), name
        assert array.tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("options", KINDS)
def test_state_comes_back_bit_for_bit(options: dict[str, Any]) -> None:
    feed = make_feed(80)
    program = trained(options, feed)
    twin = CRF(**json.loads(json.dumps(program.options())))
    twin.restore(program.arrays(state=True))
    assert twin.options() == program.options()
    same(twin.arrays(state=True), program.arrays(state=True))
    same(twin.arrays(), program.arrays())
    for model in (program, twin):
        list(AsyncExecutor(mode="serial", lr=0.1).run(model, feed, epochs=1, seed=9))
    same(twin.arrays(state=True), program.arrays(state=True))


@pytest.mark.parametrize("options", [*KINDS, {"average": True}])
def test_a_saved_model_predicts_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    feed = make_feed(81)
    program = trained(options, feed)
    save_model(tmp_path / "model", program)
    loaded = load_model(tmp_path / "model").program
    assert isinstance(loaded, CRF)
    assert (loaded.tags, loaded.names, loaded.config) == (program.tags, program.names, program.config)
    same(loaded.arrays(), program.arrays())
    np.testing.assert_array_equal(loaded.predict_codes(feed), program.predict_codes(feed))
    if loaded.pairs.features:
        np.testing.assert_array_equal(loaded.marginals(feed), program.marginals(feed))
    list(AsyncExecutor(mode="serial", lr=0.1).run(loaded, feed, epochs=1))  # it can be trained on


def test_arrays_have_the_shapes_that_they_say() -> None:
    feed = make_feed(82)
    program = make_crf(feed, 82, **SOME)
    arrays = program.arrays()
    pairs = len(program.pairs.pairs)
    shapes = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    assert shapes == {
        "nodes": ((9, 3), np.float32),
        "edges": ((3, 3), np.float32),
        "rich": ((pairs,), np.float32),
        "rich_starts": ((program.pairs.features + 1,), np.int64),
        "rich_pairs": ((pairs,), np.int32),
    }
    arrays["nodes"][:] = 7  # what is given away is a copy
    assert not (program.arrays()["nodes"] == 7).any()


def test_a_checkpoint_on_disk_goes_on_bit_for_bit(tmp_path: Path) -> None:
    feed = make_feed(83)
    config = TrainConfig(mode="serial", epochs=3, lr=0.1)
    asked = {**SOME, "average": True, "l2": 1.0, "structure_regularization": 2}
    whole, part = CRF(**asked), CRF(**asked)
    list(AsyncExecutor(mode="serial").run(whole, feed, epochs=3, lr=0.1))
    identity = identity_of(CRF(**asked), config, feed)
    executor = AsyncExecutor(mode="serial")
    for event in executor.run(part, feed, epochs=3, lr=0.1):
        if event.kind == "epoch" and event.epoch == 1:
            save_checkpoint(tmp_path / "model", part, executor.state(), identity)
    found = load_checkpoint(tmp_path / "model", CRF(**asked), identity)
    assert found is not None
    resumed, start = found
    list(AsyncExecutor(mode="serial").run(resumed, feed, epochs=3, lr=0.1, start=start))
    same(resumed.arrays(state=True), whole.arrays(state=True))
    same(resumed.arrays(), whole.arrays())


# -- arrays of somebody else ----------------------------------------------------------------------------------------


def damage(good: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """What to change, by what is wrong with it."""
    starts, pairs = good["rich_starts"], good["rich_pairs"]
    changes: dict[str, dict[str, Any]] = {
        "a strange array": {"strange": good["nodes"]},
        "starts fall": {"rich_starts": starts[::-1].copy()},
        "starts begin late": {"rich_starts": starts + 1},
        "a negative start": {"rich_starts": np.concatenate([[0, -1], starts[2:]])},
        "starts end early": {"rich_starts": np.minimum(starts, starts[-1] - 1)},
        "no start": {"rich_starts": starts[:0]},
        "more rich features than features": {"rich_starts": np.append(starts, [starts[-1]] * 99)},
        "starts are int32": {"rich_starts": starts.astype(np.int32)},
        "starts are a matrix": {"rich_starts": starts[None]},
        "a pair beyond the tags": {"rich_pairs": np.where(np.arange(len(pairs)) == 2, 9, pairs).astype(np.int32)},
        "a negative pair": {"rich_pairs": np.where(np.arange(len(pairs)) == 2, -1, pairs).astype(np.int32)},
        "pairs are int64": {"rich_pairs": pairs.astype(np.int64)},
        "pairs are a matrix": {"rich_pairs": pairs[None]},
        "fewer weights than pairs": {"rich": good["rich"][1:]},
        "other features": {"nodes": good["nodes"][1:]},
        "other tags": {"nodes": good["nodes"][:, 1:].copy(), "edges": good["edges"][1:, 1:].copy()},
    }
    for name, array in good.items():
        if array.dtype == np.float32:
            wrong = np.nan if array.size % 2 else np.inf
            changes[f"no {name}"] = {name: None}
            changes[f"{name} are float64"] = {name: array.astype(np.float64)}
            changes[f"{name} are no numbers"] = {name: np.where(np.arange(array.size) == 1, wrong, array.ravel())}
            changes[f"{name} are no numbers"][name] = changes[f"{name} are no numbers"][name].reshape(array.shape)
            changes[f"{name} are one more"] = {name: np.append(array, array.ravel()[:1])}
            changes[f"{name} are nothing"] = {name: np.zeros((), np.float32)}
    return changes


def state_damage(good: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """What to change of the state of a run."""
    clocks = {
        "is missing": None,
        "is not finite": np.array([np.nan, 8]),
        "is before the epoch": np.array([-1.0, 8]),
        "counts no sentence": np.array([0.5, 0]),
        "counts a part of a sentence": np.array([0.5, 7.5]),
        "counts less than none": np.array([0.5, -8]),
        "is one number": np.array([0.5]),
        "is float32": np.array([0.5, 8], np.float32),
    }
    changes: dict[str, dict[str, Any]] = {f"the clock {what}": {"clock": clock} for what, clock in clocks.items()}
    for epochs in (np.array([0]), np.array([-3]), np.array([1.5]), np.array([1, 2]), None):
        changes[f"epochs of a mean: {epochs}"] = {"mean_epochs": epochs}
    changes["only one table"] = {"edges_table": None, "rich_table": None}
    changes["tables of another rule"] = {"nodes_table": np.zeros(2 * good["nodes_table"].size, np.float32)}
    return changes


def test_arrays_that_do_not_fit_are_refused() -> None:
    feed = make_feed(84)
    program = trained({"average": True}, feed)
    options = program.options()
    for state in (False, True):
        good = program.arrays(state)
        CRF(**options).restore(good)
        for what, change in {**damage(good), **(state_damage(good) if state else {})}.items():
            arrays = {name: array for name, array in {**good, **change}.items() if array is not None}
            with pytest.raises(ModelError):
                assert CRF(**options).restore(arrays), what


def test_options_that_do_not_fit_are_refused() -> None:
    feed = make_feed(85)
    program = make_crf(feed, 85, **SOME)
    options, arrays = program.options(), program.arrays()
    tags: list[Any] = [[], ["T0", "T1", "T1"], ["T0"], [0, 1, 2], [[], [], []]]
    names: list[Any] = [[], ["f0"] * 9, list(range(9))]
    for change in [*({"tags": each} for each in tags), *({"names": each} for each in names)]:
        with pytest.raises(ModelError):
            CRF(**{**options, **change}).restore(arrays)


# -- weights of zero ------------------------------------------------------------------------------------------------


def sparse_crf(feed: Any, share: float, **options: Any) -> CRF:
    """A CRF of which only a share of the weights is not zero."""
    program = make_crf(feed, 3, **options)
    arrays = program.arrays()
    draw = np.random.default_rng(3)
    for name in ("nodes", "rich"):
        arrays[name] = np.where(draw.random(arrays[name].shape) < share, arrays[name], np.float32(0))
    program.restore(arrays)
    return program


@pytest.mark.parametrize("options", [{"rich_edges": False}, SOME])
def test_zeros_are_not_stored(options: dict[str, Any], tmp_path: Path) -> None:
    feed = make_feed(90, tags=9, lengths=(9,) * 40, features=200)
    dense, sparse = make_crf(feed, 3, **options), sparse_crf(feed, 0.03, **options)
    small = sparse_crf(feed, 0.03, l1=0.1, **options)
    sizes = {}
    for name, program in (("dense", dense), ("sparse", sparse), ("small", small)):
        save_model(tmp_path / name, program)
        sizes[name] = (tmp_path / name / "weights.safetensors").stat().st_size
        loaded = load_model(tmp_path / name).program
        assert isinstance(loaded, CRF)
        known = {feature: place for place, feature in enumerate(loaded.names)}
        arrays, expected = loaded.arrays(), program.arrays()
        for row, feature in enumerate(program.names):
            found = arrays["nodes"][known[feature]] if feature in known else np.zeros(9, np.float32)
            assert found.tobytes() == expected["nodes"][row].tobytes()
        assert arrays["edges"].tobytes() == expected["edges"].tobytes()
    assert sizes["sparse"] < 0.5 * sizes["dense"] or options == SOME
    assert sizes["small"] < sizes["sparse"]
    assert len(load_model(tmp_path / "sparse").program.names) == 200  # without l1 features stay


@pytest.mark.full
def test_features_that_weigh_nothing_are_left_out(tmp_path: Path) -> None:
    feed = make_feed(91, tags=9, lengths=(9,) * 40, features=200)
    program = sparse_crf(feed, 0.02, l1=0.1, **SOME)
    save_model(tmp_path / "m", program, feed_schema={"features": "python", "min_count": 1})
    loaded = load_model(tmp_path / "m").program
    assert isinstance(loaded, CRF)
    assert loaded.pruned == 200 - len(loaded.names) > 50
    X = [[[f"f{k}", f"f{k + 1}"] for k in range(0, 120, 3)], [[f"f{k}"] for k in range(9)]]
    expected = program.predict(tagging_of(X, names=program.names, tags=feed.tags))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [loaded.tag(sentence) for sentence in X] == expected
    save_model(tmp_path / "again", loaded)
    assert load_model(tmp_path / "again").program.options() == loaded.options()
    nothing = sparse_crf(feed, 0.0, l1=0.1, rich_edges=False)
    save_model(tmp_path / "none", nothing)
    assert load_model(tmp_path / "none").program.names == ("f0",)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(nodes_counts=a["nodes_counts"][:-1]),
        lambda a: a.update(nodes_counts=a["nodes_counts"] + np.uint8(1)),
        lambda a: a.update(nodes_counts=a["nodes_counts"].astype(np.int64)),
        lambda a: a.update(nodes_tags=np.full_like(a["nodes_tags"], 9)),
        lambda a: a.update(nodes_tags=a["nodes_tags"].reshape(1, -1)),
        lambda a: a.update(nodes_values=a["nodes_values"] * np.float32(np.nan)),
        lambda a: a.update(nodes_values=a["nodes_values"].astype(np.float64)),
        lambda a: a.update(nodes=np.zeros((200, 9), np.float32)),
        lambda a: a.pop("nodes_tags"),
        lambda a: a.pop("nodes_values"),
    ],
)
def test_damaged_weights_without_zeros(change: Any) -> None:
    feed = make_feed(92, tags=9, lengths=(9,) * 40, features=200)
    program = sparse_crf(feed, 0.02, rich_edges=False)
    options, arrays = program.saved()
    CRF(**options).restore(arrays)
    change(arrays)
    with pytest.raises(ModelError):
        CRF(**options).restore(arrays)


def test_memory_is_checked_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = make_feed(92, tags=9, lengths=(9,) * 40, features=200)
    options, arrays = sparse_crf(feed, 0.02, rich_edges=False).saved()
    monkeypatch.setattr("hogwild.machine.memory", lambda: 4000)
    with pytest.raises(HogwildError, match="200 features of 9 tags need"):
        CRF(**options).restore(arrays)


def test_a_model_of_version_1_opens(tmp_path: Path) -> None:
    """Such models have all weights, and options without what came later."""
    feed = make_feed(93)
    program = trained({"l2": 1.0}, feed)
    options = {name: value for name, value in program.options().items() if name not in ("best_by", "pruned")}
    config = {"program": "crf", "options": options, "labels": [], "metrics": {}, "feed": None, "schema": {}}
    write_sealed(tmp_path / "m", "model", config, {"weights.safetensors": program.arrays()})
    text = (tmp_path / "m" / "config.json").read_text()
    (tmp_path / "m" / "config.json").write_text(text.replace('"version": 2', '"version": 1'))
    same(load_model(tmp_path / "m").program.arrays(), program.arrays())
