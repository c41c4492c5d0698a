"""Checkpoints: every bit comes back, another run's are refused, and one is always complete, killed or not."""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.arrays import DenseRows
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError, ModelError, SaveError
from hogwild.executor.readers.checkpoint import KIND, checkpoint_path, identity_of, load_checkpoint, save_checkpoint
from hogwild.executor.readers.checkpoint import STATE as STATE_FILE
from hogwild.executor.state import Position, RunState
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.saving.sealed import read_sealed, write_sealed
from hogwild.programs.store import load_model, save_model
from problems.killed import kill_while_saving
from problems.tiny import Tiny, save, value_of

IDENTITY = {"epochs": 5, "mode": "serial", "lr": None, "training data": "abc"}
STATE = RunState(
    position=Position(3, 12345),
    random=np.array([2**64 - 1, 0, 7], np.uint64),
    seed=2**62 + 1,
    sharing="hot",
    lr=0.1,
    loss_sum=math.pi * 1e9,
    last_loss=math.nan,
    best_loss=math.inf,
    best_epoch=-1,
    train_seconds=5e-324,
)


def bits(value: Any) -> Any:
    if isinstance(value, float | np.ndarray):
        return np.asarray(value).dtype, np.asarray(value).shape, np.asarray(value).tobytes()
    return {key: bits(item) for key, item in value.items()} if isinstance(value, dict) else (type(value), value)


def test_every_bit_comes_back(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "m", Tiny(value=1.5), STATE, IDENTITY)
    fresh = Tiny()
    program, found = load_checkpoint(tmp_path / "m", fresh, IDENTITY)  # type: ignore[misc]
    assert program is fresh
    for item in fields(RunState):
        assert bits(getattr(found, item.name)) == bits(getattr(STATE, item.name)), item.name
    assert value_of(program) == 1.5
    assert (program.memory == 1.5).all()  # the update rule's memory too
    assert os.listdir(tmp_path) == ["m.checkpoint"]


def test_the_checkpoint_stands_beside_the_model_and_is_none_itself(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_checkpoint(path, Tiny(value=1.0), STATE, IDENTITY)
    with pytest.raises(ModelError, match="no such model"):
        load_model(path)
    save(path, 2.0)
    with pytest.raises(ModelError, match="a checkpoint, not a model"):
        load_model(checkpoint_path(path))
    with pytest.raises(SaveError, match="not a model"):
        save(checkpoint_path(path))
    assert value_of(load_model(path, Tiny()).program) == 2.0  # type: ignore[arg-type]


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "missing" / "m", Tiny(), IDENTITY) is None


@pytest.mark.parametrize(
    ("program", "identity", "match"),
    [
        (Tiny(), {**IDENTITY, "epochs": 4}, "epochs was 5, is 4"),
        (Tiny(), {**IDENTITY, "lr": 0.5}, "lr was None, is 0.5"),
        (Tiny(), {**IDENTITY, "training data": "xyz"}, "the training data is not the same. Give"),
        (Tiny(), {**IDENTITY, "colour": "red"}, "colour was nothing, is red"),
        (Tiny(), {key: IDENTITY[key] for key in ("epochs", "lr", "training data")}, "mode was serial, is nothing"),
        (type("Other", (Tiny,), {"name": "other"})(), IDENTITY, "program was tiny, is other"),
    ],
)
def test_another_run_is_refused_by_name(tmp_path: Path, program: Tiny, identity: Any, match: str) -> None:
    save_checkpoint(tmp_path / "m", Tiny(value=1.0), STATE, IDENTITY)
    with pytest.raises(ConfigError, match=match) as caught:
        load_checkpoint(tmp_path / "m", program, identity)
    assert "leave --resume out" in str(caught.value)
    assert program.weights is None


def test_options_that_training_settled_come_back_too(tmp_path: Path) -> None:
    asked = Tiny(rows=0)
    save_checkpoint(tmp_path / "m", Tiny(rows=7, value=1.0), STATE, IDENTITY)
    program, _ = load_checkpoint(tmp_path / "m", asked, IDENTITY)  # type: ignore[misc]
    assert type(program) is Tiny
    assert program.rows == 7
    assert value_of(program) == 1.0


def test_a_tuple_in_the_options_is_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "options", lambda self: {"sizes": (1, np.int64(2)), "rate": np.float32(0.1)})
    save_checkpoint(tmp_path / "m", Tiny(value=1.0), STATE, IDENTITY)
    program = Tiny()
    assert load_checkpoint(tmp_path / "m", program, IDENTITY)[0] is program  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.pop("state"),
        lambda c: c.pop("identity"),
        lambda c: c.pop("options"),
        lambda c: c.update(options={"colour": "red"}),
        lambda c: c.update(options=[1]),
        lambda c: c["state"].pop("seed"),
        lambda c: c["state"].update(seed="1"),
        lambda c: c["state"].update(position=[1]),
        lambda c: c["state"].update(position=[-1, 0]),
        lambda c: c["state"].update(position=["1", 0]),
        lambda c: c["state"].update(position=None),
        lambda c: c["state"].update(position=[6, 0]),  # of 5 epochs
        lambda c: c["state"].update(position=[3, 10**30]),
        lambda c: c["state"].update(position=[3, 2**63]),
        lambda c: c["state"].update(epoch_visits=-1),
        lambda c: c["state"].update(seed=-1),
        lambda c: c["state"].update(seed=2**64 - 1),
        lambda c: c["state"].update(sharing="auto"),
        lambda c: c["state"].update(sharing="colour"),
        lambda c: c["state"].update(best_epoch=4),
        lambda c: c["state"].update(best_epoch=-(2**62)),
        lambda c: c["files"].pop("state.safetensors"),
        lambda c: c["files"].pop("weights.safetensors"),
    ],
)
def test_hostile_config(tmp_path: Path, change: Any) -> None:
    save_checkpoint(tmp_path / "m", Tiny(value=1.0), STATE, IDENTITY)
    file = checkpoint_path(tmp_path / "m") / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    change(config)
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json.*leave --resume out"):
        load_checkpoint(tmp_path / "m", Tiny(), IDENTITY)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("random", np.zeros(3, np.int64)),
        ("random", np.zeros((3, 1), np.uint64)),
        ("random", np.zeros(4, np.uint64)),  # of 3 threads
        ("random", np.zeros(0, np.uint64)),
        ("lr", np.zeros(1)),
        ("lr", np.array(math.nan)),
        ("lr", np.array(0.0)),
        ("lr", np.zeros((0, 3))),
        ("loss_sum", np.array(math.inf)),
        ("train_seconds", np.array(-1.0)),
    ],
)
def test_state_that_no_run_leaves_behind(tmp_path: Path, name: str, array: Any) -> None:
    identity = {**IDENTITY, "threads": 3}
    save_checkpoint(tmp_path / "m", Tiny(value=1.0), STATE, identity)
    path = checkpoint_path(tmp_path / "m")
    sealed = read_sealed(path, KIND)
    kept = {key: value for key, value in sealed.config.items() if key not in ("format", "version", "files")}
    state = {**sealed.arrays[STATE_FILE], name: array}
    write_sealed(path, KIND, kept, {**sealed.arrays, STATE_FILE: state})
    with pytest.raises(ModelError, match=rf"{name} is .*leave --resume out"):
        load_checkpoint(tmp_path / "m", Tiny(), identity)


def test_damage_is_seen(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "m", Tiny(value=1.0), STATE, IDENTITY)
    for name in ("weights.safetensors", "state.safetensors"):
        file = checkpoint_path(tmp_path / "m") / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        with pytest.raises(ModelError, match="cut short"):
            load_checkpoint(tmp_path / "m", Tiny(), IDENTITY)
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(ModelError, match="checksum"):
            load_checkpoint(tmp_path / "m", Tiny(), IDENTITY)
        file.write_bytes(whole)


def feed_of(value: float, fingerprint: str = "") -> Feed:
    samples = DenseRows(np.full((3, 2), value, np.float32), np.ones(3, np.float32), np.ones(3, np.float32))
    return Feed(samples, 2, fingerprint=fingerprint)


def test_identity_tells_runs_apart() -> None:
    config = TrainConfig(threads=2, epochs=3)
    same = identity_of(Tiny(), config, feed_of(1))
    assert identity_of(Tiny(), config, feed_of(1)) == same
    assert identity_of(Tiny(), replace(config, patience=2, trace=True), feed_of(1)) == same  # these two may change
    for other in (
        identity_of(Tiny(), config, feed_of(2)),
        identity_of(Tiny(), config, feed_of(1, "fingerprint")),
        identity_of(Tiny(), config, feed_of(1), feed_of(1)),
        identity_of(Tiny(), replace(config, threads=3), feed_of(1)),
        identity_of(Tiny(), replace(config, epochs=4), feed_of(1)),
        identity_of(Tiny(), replace(config, seed=4), feed_of(1)),
        identity_of(Tiny(), replace(config, lr=0.5), feed_of(1)),
        identity_of(Tiny(rows=4), config, feed_of(1)),
    ):
        assert other != same
    json.dumps(same)


def test_sigkill_at_random_moments(tmp_path: Path) -> None:
    path, random, last = tmp_path / "m", np.random.default_rng(11), 0

    def save_both(n: int) -> None:
        program = Tiny(rows=5000, value=n)
        save_model(path, program, metrics={"n": n})
        state = RunState(Position(n, n), np.full(3, n, np.uint64), seed=n, sharing="all", lr=0.1, loss_sum=n / 3)
        save_checkpoint(path, program, state, {})

    for _ in range(10):
        kill_while_saving(save_both, last + 1, random.uniform(0.005, 0.08))
        program = Tiny(rows=5000)
        found = load_checkpoint(path, program, {})
        assert found is not None
        state = found[1]
        n = state.position.epoch
        assert n > last
        assert value_of(program) == n
        assert (program.memory == n).all()
        assert (state.random == n).all()
        assert (state.seed, state.loss_sum) == (n, n / 3)
        model = load_model(path, Tiny(rows=5000))
        assert value_of(model.program) == model.metrics["n"]  # type: ignore[arg-type]
        assert n <= model.metrics["n"] <= n + 1
        last = n
