"""The learning rate that calibration chooses: by what it does to samples that it was not learnt from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import hogwild
from hogwild.executor.events import Started


def rate_of(program: hogwild.Linear, feed: hogwild.Feed, **options: object) -> float:
    """The rate of a run."""
    events = list(hogwild.AsyncExecutor(threads=1, mode="serial", **options).run(program, feed))  # type: ignore[arg-type]
    started = events[0]
    assert isinstance(started, Started)
    assert any("held-out loss" in note for note in started.notes)
    return started.lr


@pytest.fixture
def by_heart() -> tuple[hogwild.Feed, hogwild.Feed]:
    """Rows of features of their own, and one that is right in seven of ten: the rest can only be learnt by heart."""
    random = np.random.default_rng(5)
    rows, own = 400, 30
    y = random.integers(0, 2, 2 * rows)
    hint = np.where(random.random(2 * rows) < 0.7, y, 1 - y)
    ids = np.column_stack([hint, 2 + random.integers(0, 20_000, (2 * rows, own))])
    matrix = csr_array(
        (np.ones(ids.size, np.float32), ids.ravel(), np.arange(2 * rows + 1) * (own + 1)), shape=(2 * rows, 20_002)
    )
    return hogwild.feed_of(matrix[:rows], y[:rows]), hogwild.feed_of(matrix[rows:], y[rows:])


def test_what_can_be_learnt_by_heart_does_not_mislead(by_heart: tuple[hogwild.Feed, hogwild.Feed]) -> None:
    train, test = by_heart
    program = hogwild.Linear()
    assert rate_of(program, train) < 0.4
    found = program.evaluate(test)
    assert found["logloss"] < 0.72  # 0.61 is the best there is, 0.69 that of knowing nothing
    assert found["accuracy"] > 0.6


def test_serial_runs_choose_the_same_rate_again(by_heart: tuple[hogwild.Feed, hogwild.Feed]) -> None:
    train, _ = by_heart
    first, second = hogwild.Linear(), hogwild.Linear()
    assert rate_of(first, train) == rate_of(second, train)
    for one, other in zip(first.arrays().values(), second.arrays().values(), strict=True):
        assert one.tobytes() == other.tobytes()


def test_few_rows_are_enough() -> None:
    feed = hogwild.feed_of(np.array([[0.0], [1.0], [0.1]], np.float32), [0, 1, 0])
    assert 0 < rate_of(hogwild.Linear(), feed, epochs=3) <= 20
