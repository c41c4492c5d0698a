"""A real run that is parked, saved, thrown away and gone on with: the same bits as without all that."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from hogwild.arrays import Rows
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.executor.events import EpochEnded, Parked, Progress
from hogwild.executor.readers.checkpoint import Checkpointer, Output, identity_of, load_checkpoint, parse_interval
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.state import Position, RunState
from hogwild.feeds.sparse.feed import Feed
from hogwild.machine import cores
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.store import load_model

EPOCHS = 40  # as many chances to be parked in the middle of one
CONFIG = TrainConfig(mode="serial", epochs=EPOCHS, lr=0.05, seed=3)


@pytest.fixture(scope="module")
def feed() -> Feed:
    """Ids in an order that is not the features' own, so that weights are carried there and back."""
    random = np.random.default_rng(0)
    rows, features, width = 100_000, 300, 5
    ids = np.sort(random.integers(0, features, (rows, width)), axis=1).astype(np.int32)
    values = random.normal(size=(rows, width)).astype(np.float32)
    targets = ((random.normal(size=features)[ids] * values).sum(axis=1) > 0).astype(np.float32)
    offsets = np.arange(0, rows * width + 1, width, dtype=np.int64)
    samples = Rows(offsets, ids.ravel(), values.ravel(), targets, np.ones(rows, np.float32))
    return Feed(samples, features, original=random.permutation(features).astype(np.int32)).check()


@pytest.mark.parametrize("visits", [10**12, 100_001])
def test_a_state_past_the_end_of_an_epoch_is_no_state_of_this_run(feed: Feed, visits: int) -> None:
    start = RunState(Position(3, visits), np.ones(1, np.uint64), 3, "all", 0.05, epoch_visits=len(feed))
    with pytest.raises(ConfigError, match=f"visit {visits} of an epoch, which has 100000"):
        next(iter(AsyncExecutor(mode="serial").run(Linear(), feed, start=start, epochs=EPOCHS)))


def test_serial_gone_on_with_equals_serial_uninterrupted(tmp_path: Path, feed: Feed) -> None:
    asked = Linear(l2=1e-4)
    identity = identity_of(asked, CONFIG, feed)
    whole = Linear(l2=1e-4)
    for _ in AsyncExecutor(mode="serial").run(whole, feed, epochs=EPOCHS, lr=0.05, seed=3):
        pass

    executor = AsyncExecutor(mode="serial")
    saver = Checkpointer(executor, asked, Output(tmp_path / "m"), None, identity)
    executor.park()  # at the start; once more while the first epoch runs
    events = executor.run(asked, feed, epochs=EPOCHS, lr=0.05, seed=3)
    for event in events:
        saver(event)
        if isinstance(event, Progress):
            time.sleep(0.002)  # some of an epoch
            executor.park()
        if isinstance(event, Parked) and executor.state().position.visits:
            break
    events.close()  # type: ignore[attr-defined]

    found = load_checkpoint(tmp_path / "m", Linear(l2=1e-4), identity)
    assert found is not None
    program, start = found
    assert 0 < start.position.visits < len(feed)
    executor = AsyncExecutor(mode="serial")
    saver = Checkpointer(executor, program, Output(tmp_path / "m"), None, identity, start)
    for event in executor.run(program, feed, epochs=EPOCHS, lr=0.05, seed=3, start=start):
        saver(event)
    assert event.samples == EPOCHS * len(feed)

    for name, array in whole.arrays(state=True).items():
        assert program.arrays(state=True)[name].tobytes() == array.tobytes(), name  # type: ignore[attr-defined]
    for name, array in load_model(tmp_path / "m").program.arrays().items():
        assert array.tobytes() == whole.arrays()[name].tobytes(), name


def test_what_is_owed_stays_what_it_is_when_the_clock_moves(feed: Feed) -> None:
    """A run that stood inside an epoch goes on to more of them: at other rates, and so by another clock."""
    executor, program = AsyncExecutor(mode="serial"), Linear(l2=1e-3)
    executor.park()
    events = executor.run(program, feed, epochs=EPOCHS, lr=0.05)
    for event in events:
        if isinstance(event, Progress):
            time.sleep(0.002)
            executor.park()
        if isinstance(event, Parked) and executor.state().position.visits:
            break
    events.close()  # type: ignore[attr-defined]
    plain, owing, state = program.arrays(), program.owing(), executor.state()
    assert owing > 0
    assert state.epochs == EPOCHS
    events = AsyncExecutor(mode="serial").run(program, feed, epochs=2 * EPOCHS, lr=0.05, start=state)
    started = next(events)
    events.close()  # type: ignore[attr-defined]
    assert started.notes[0].startswith(f"{2 * EPOCHS} epochs instead of {EPOCHS}: ")  # type: ignore[attr-defined]
    assert program.owing() > owing
    for name, array in program.arrays().items():
        np.testing.assert_allclose(array, plain[name], rtol=1e-5)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_a_run_with_more_threads_than_cores_goes_on(tmp_path: Path, feed: Feed, sharing: str) -> None:
    """Its workers, and their random states, are no more than the cores, unlike its threads."""
    options = {"threads": cores() + 3, "sharing": sharing, "lr": 0.05, "seed": 3}
    config, program = TrainConfig(epochs=2, **options), Linear()  # type: ignore[arg-type]
    identity = identity_of(program, config, feed)
    executor = AsyncExecutor(**options)  # type: ignore[arg-type]
    saver = Checkpointer(executor, program, Output(tmp_path / "m"), parse_interval("1epoch"), identity)
    events = executor.run(program, feed, epochs=2)
    for event in events:
        saver(event)
        if isinstance(event, EpochEnded):
            break
    events.close()  # type: ignore[attr-defined]
    found = load_checkpoint(tmp_path / "m", Linear(), identity)
    assert found is not None
    assert found[1].position == (1, 0)
    *_, last = AsyncExecutor(**options).run(found[0], feed, epochs=2, start=found[1])  # type: ignore[arg-type]
    assert last.samples == 2 * len(feed)
