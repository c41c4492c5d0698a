"""The linear program: going on, saving, and what the executor asks of it."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from hogwild.errors import ModelError
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.linear import Linear
from problems.linear_feeds import FEATURES, ROWS, fit, make_feed


@pytest.mark.parametrize(
    ("optimizer", "classes"),
    [("sgd", 2), ("momentum", 2), ("adagrad", 2), ("adam", 2), ("ftrl", 2), ("adagrad", 3), ("adam", 3)],
)
def test_state_comes_back_bit_for_bit(optimizer, classes):
    feed = make_feed(classes, ranked=True)
    program = Linear(optimizer=optimizer, l1=1e-4, l2=1e-3, class_weight={1: 2.0})
    fit(program, feed, epochs=1, lr=0.05)
    options, arrays = program.options(), program.arrays(state=True)
    twin = Linear(**json.loads(json.dumps(options)))
    twin.restore(arrays)
    assert twin.options() == options
    for name, array in twin.arrays(state=True).items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    for model in (program, twin):
        fit(model, feed, epochs=1, lr=0.05, seed=9)
    for name, array in twin.arrays(state=True).items():
        np.testing.assert_array_equal(array, program.arrays(state=True)[name], err_msg=name)


def test_weights_alone_predict_the_same_and_can_be_trained_on():
    feed = make_feed(3)
    program = Linear(l2=0.01)
    fit(program, feed)
    twin = Linear(**program.options())
    twin.restore(program.arrays())
    np.testing.assert_array_equal(twin.scores(feed), program.scores(feed))
    assert program.arrays()["weight"].shape == (FEATURES, 3)
    assert program.arrays()["bias"].shape == (3,)
    fit(twin, feed, epochs=1)


def test_running_again_goes_on():
    feed = make_feed(2)
    once, twice = Linear(), Linear()
    fit(once, feed, epochs=1)
    fit(twice, feed, epochs=1)
    first = twice.evaluate(feed)["loss"]
    fit(twice, feed, epochs=5)
    assert twice.evaluate(feed)["loss"] < first
    squares = [model.arrays(state=True)["weight_squares"] for model in (once, twice)]
    assert (squares[1] >= squares[0]).all()
    assert squares[1].sum() > squares[0].sum()


def test_arrays_that_do_not_fit_are_refused():
    program = Linear()
    fit(program, make_feed(3), epochs=1)
    options, good = program.options(), program.arrays(state=True)
    changes = {
        "a name is missing": {"weight": None},
        "too few rows": {"weight": good["weight"][:-1], "weight_squares": good["weight_squares"][:-1]},
        "other classes": {"weight": good["weight"][:, :2]},
        "flat": {"weight": good["weight"].reshape(-1)},
        "float64": {"weight": good["weight"].astype(np.float64)},
        "nan": {"weight": np.full_like(good["weight"], np.nan)},
        "memory of another rule": {"weight_squares": None, "weight_mean": good["weight_squares"]},
        "memory of another size": {"weight_squares": good["weight_squares"][:, :2]},
        "strange": {"strange": good["bias"]},
        "a number": {"weight": np.float32(1).reshape(())},
    }
    for what, change in changes.items():
        arrays = {name: array for name, array in {**good, **change}.items() if array is not None}
        with pytest.raises(ModelError):
            assert Linear(**options).restore(arrays), what
    with pytest.raises(ModelError, match="classes"):
        Linear().restore(good)


def test_a_run_stopped_in_the_middle_owes_its_penalty_once():
    feed = make_feed(2)
    program = Linear(optimizer="sgd", l1=0.01, l2=0.05)
    fit(program, feed, epochs=1, lr=0.1)
    settled = program.arrays()["weight"]
    cells = program.weights.table.reshape(FEATURES, 2)
    cells[:, 1] = np.linspace(0, 4, FEATURES)  # as a run leaves it that was stopped at time 4
    owing = program.arrays()["weight"]
    held = settled[:-1] != 0
    assert (np.abs(owing)[:-1][held] < np.abs(settled)[:-1][held]).all()
    assert owing[-1] == settled[-1]
    program.renew()
    np.testing.assert_allclose(program.arrays()["weight"], owing, rtol=1e-6)
    assert not program.weights.table[1::2].any()


@pytest.mark.parametrize("sharing", ["hot", "replica"])
def test_private_copies_pay_the_whole_penalty_together(sharing):
    """Features of value 0 are touched and leave nothing but the decay, exp(-l2 * sum of rates), whoever visits what."""
    rows = make_feed(2).samples
    nothing = rows._replace(values=np.zeros_like(rows.values))
    program = Linear(optimizer="sgd", l2=0.05)
    program.startup(Feed(nothing, FEATURES), 1)
    program.weights.table[::2] = 1.0
    for epochs in (1, 3):
        before = program.arrays()["weight"]
        fit(program, Feed(nothing, FEATURES), epochs=epochs, mode="hogwild", sharing=sharing, threads=2, lr=0.01)
        decay = np.exp(-0.05 * 0.01 * ROWS * epochs)
        # Shares are paid side by side and then added: (1 - x / 2) twice is 1 - x, where one after the other is more.
        np.testing.assert_allclose(program.arrays()["weight"], before * decay, rtol=0.012 * epochs)


def test_watchable_weights_are_in_the_features_own_order():
    feed = make_feed(2, ranked=True)
    program = Linear()
    program.startup(feed, 1)
    program.weights.table[::2] = feed.original
    found = program.watchable()
    np.testing.assert_array_equal(found["weights"](), np.arange(FEATURES)[:, None])
    assert found["bias"].shape == (1,)


def test_units_and_room():
    feed = make_feed(3)
    program = Linear()
    program.startup(feed, 1)
    assert program.units(feed) == len(feed.samples.ids)
    assert program.visits(feed) == ROWS
    assert program.room(feed).rows == int(np.diff(feed.samples.offsets).max()) + 1
    tables = program.tables()
    assert tables["table"].rows * tables["table"].cells == len(program.weights.table)
    assert tables["bias"].rows * tables["bias"].cells == len(program.weights.bias)
    assert (tables["table"].kind, tables["bias"].kind) == ("ranked", "scalar")


def test_scoring_leaves_the_interpreter_free():
    feed = make_feed(2, rows=2000)
    program = Linear()
    fit(program, feed, epochs=1)
    ticks = []
    clock = threading.Event()
    thread = threading.Thread(target=lambda: ticks.extend(1 for _ in range(3) if not clock.wait(0.001)))
    thread.start()
    for _ in range(20):
        program.scores(feed, threads=2)
    thread.join()
    assert len(ticks) == 3
