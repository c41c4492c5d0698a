"""Factorization machines as programs: starts, orders of ids, growth, modes, saving, one row at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from compiling import OFF, compiled_in_full
from hogwild.arrays import BinaryRows, DenseRows, Rows, SlotRows, ValuedSlotRows
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.fm import FactorizationMachine
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.store import load_model, save_model
from places import ROOT
from reference import factorization as reference_fm

KINDS = 5  # of a, and of b: their pair says the class, neither does alone
ROWS = 60 if OFF else 600
SOME = {"dim": 4, "l2": 1e-4, "l2_factors": 1e-3, "init_scale": 0.1}


def make_feed(seed=0, rows=ROWS, kinds=KINDS, ranked=False, quantity=False, kind=Rows):
    """A feature of each of two kinds a row and one that says nothing; the class is whether both have even sums."""
    random = np.random.default_rng(seed)
    a, b = random.integers(0, kinds, (2, rows))
    ids = np.column_stack([a, kinds + b, np.full(rows, 2 * kinds)]).astype(np.int32)
    targets = (a + b) * 0.3 + 0.05 if quantity else (a + b) % 2
    features, original = 2 * kinds + 1, None
    if ranked:
        original = random.permutation(features).astype(np.int32)
        back = np.empty_like(original)
        back[original] = np.arange(features, dtype=np.int32)
        ids = back[ids]
    offsets, ends = np.arange(0, 3 * rows + 1, 3), (targets.astype(np.float32), np.ones(rows, np.float32))
    schema = {}
    if kind in (SlotRows, ValuedSlotRows):
        middle = (np.tile(np.arange(3, dtype=np.uint16), rows), np.zeros((rows, 0), np.float32))
        values = (np.ones(3 * rows, np.float32),) if kind is ValuedSlotRows else ()
        samples = kind(offsets, ids.reshape(-1), *middle, *ends, *values)
        schema = {"slots": ["a", "b", "always"], "dense": []}
    elif kind is BinaryRows:
        samples = BinaryRows(offsets, ids.reshape(-1), *ends)
    else:
        samples = Rows(offsets, ids.reshape(-1), np.ones(3 * rows, np.float32), *ends)
    return Feed(samples, features, original=original, source="toy.svm", schema=schema).check()


def fit(program, feed, epochs=2 if OFF else 20, mode="serial", **options):
    options = {"schedule": "constant", "lr": 0.1, "threads": 1, **options}
    return list(AsyncExecutor(mode=mode, **options).run(program, feed, epochs=epochs))


def exact_scores(program, feed):
    arrays = program.arrays()
    factors = arrays["factors"].astype(float)
    factors = factors if factors.ndim == 3 else factors[:, None]
    own = np.arange(feed.features) if feed.original is None else feed.original
    return [
        reference_fm.score(
            arrays["weight"].astype(float), factors, float(arrays["bias"][0]),
            [(int(own[i]), f, x) for i, f, x in reference_fm.entries(feed.samples, row)],
        )
        for row in range(len(feed))
    ]  # fmt: skip


# -- what is compiled: one form of the task, on rows with values ----------------------------------------------------


@pytest.mark.skipif(OFF, reason="too slow without the compiler")
def test_pairs_are_learnt_by_one_worker_and_by_two():
    train, test = make_feed(1), make_feed(2)
    program = FactorizationMachine(**SOME)
    fit(program, train)
    assert program.evaluate(test)["auc"] > 0.95
    weights_alone = FactorizationMachine(**SOME, features=2 * KINDS + 1, classes=[0, 1])
    weights_alone.restore({**program.arrays(), "factors": np.zeros((2 * KINDS + 1, 4), np.float32)})
    assert weights_alone.evaluate(test)["auc"] < 0.75
    for sharing in ("all", "hot"):
        two = FactorizationMachine(**SOME)
        fit(two, train, mode="hogwild", threads=2, sharing=sharing)
        assert two.evaluate(test)["auc"] > 0.95
        assert two.evaluate(train)["loss"] < 2 * program.evaluate(train)["loss"] + 0.1


def test_serial_training_repeats_bit_for_bit():
    feed = make_feed(3, ranked=True)
    one, two = (FactorizationMachine(**SOME) for _ in range(2))
    for program in (one, two):
        fit(program, feed)
    for name, array in one.arrays(state=True).items():
        assert array.tobytes() == two.arrays(state=True)[name].tobytes(), name
    other = FactorizationMachine(**SOME)
    fit(other, feed, seed=2)
    assert other.arrays()["factors"].tobytes() != one.arrays()["factors"].tobytes()


def test_ranked_ids_train_the_same_model():
    models = []
    for feed in (make_feed(4), make_feed(4, ranked=True)):
        program = FactorizationMachine(**SOME)
        fit(program, feed, epochs=1)
        assert program.order is None
        models.append(program.arrays(state=True))
    for name, array in models[0].items():
        np.testing.assert_allclose(array, models[1][name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_scores_predictions_and_single_rows():
    feed = make_feed(5, ranked=True)
    program = FactorizationMachine(**SOME)
    fit(program, feed, epochs=1)
    scores = program.scores(feed)
    np.testing.assert_allclose(scores, exact_scores(program, feed), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(program.scores(feed, threads=3), scores)
    assert program.predict(feed).tolist() == (scores > 0).astype(int).tolist()
    chances = program.predict_proba(feed)[:, 1]
    own = feed.original[feed.samples.ids].reshape(-1, 3)
    assert [program.predict_one(row) for row in own[:20]] == pytest.approx(chances[:20].tolist(), rel=1e-5)
    assert program.predict_one(own[0].tolist(), [1.0, 1.0, 1.0]) == pytest.approx(chances[0], rel=1e-5)
    assert program.predict_one([*own[0], 999]) == pytest.approx(chances[0], rel=1e-5)  # unknown: left out
    many = np.arange(2 * KINDS + 1).repeat(40)
    assert 0 <= program.predict_one(many) <= 1
    for wrong in (([-1], None, None), ([1, 2], [1.0], None), ([1], None, [0])):
        with pytest.raises(InputError):
            program.predict_one(*wrong)


@pytest.mark.skipif(OFF, reason="it is the compiler's speed")
def test_one_row_takes_less_than_100_microseconds():
    program = FactorizationMachine(**SOME)
    fit(program, make_feed(6), epochs=1)
    row = np.arange(9)
    program.predict_one(row)
    best = min(_timed(program.predict_one, row) for _ in range(300))
    assert best < 100e-6


def _timed(call, row):
    began = time.perf_counter()
    call(row)
    return time.perf_counter() - began


def test_saved_and_loaded(tmp_path):
    feed = make_feed(7, ranked=True)
    program = FactorizationMachine(**SOME, class_weight={1: 2.0})
    fit(program, feed, epochs=1)
    save_model(tmp_path / "m", program)
    loaded = load_model(tmp_path / "m").program
    assert loaded.options() == program.options()
    np.testing.assert_allclose(loaded.scores(feed), program.scores(feed), rtol=1e-6)
    twin = FactorizationMachine(**json.loads(json.dumps(program.options())))
    twin.restore(program.arrays(state=True))
    for model in (program, twin):
        fit(model, feed, epochs=1)
    for name, array in program.arrays(state=True).items():
        assert array.tobytes() == twin.arrays(state=True)[name].tobytes(), name


def test_serial_gone_on_with_equals_serial_uninterrupted():
    feed, options = make_feed(13, ranked=True), {"epochs": 4, "lr": 0.1, "seed": 5}
    whole, program = FactorizationMachine(**SOME), FactorizationMachine(**SOME)
    for _ in AsyncExecutor(mode="serial").run(whole, feed, **options):
        pass
    executor = AsyncExecutor(mode="serial")
    for event in executor.run(program, feed, **options):
        if event.kind == "epoch" and executor.state().position.epoch == 2:
            state, arrays, made = executor.state(), program.arrays(state=True), program.options()
            break
    later = FactorizationMachine(**made)
    later.restore(arrays)
    for _ in AsyncExecutor(mode="serial").run(later, feed, **options, start=state):
        pass
    for name, array in whole.arrays(state=True).items():
        assert array.tobytes() == later.arrays(state=True)[name].tobytes(), name


# -- starts and growth ----------------------------------------------------------------------------------------------


def test_a_feature_begins_alike_whatever_the_order_and_the_size():
    starts = []
    for feed in (make_feed(1), make_feed(1, ranked=True), make_feed(1, kinds=KINDS + 3, ranked=True)):
        program = FactorizationMachine(**SOME)
        program.startup(feed, 9)
        starts.append(program.arrays()["factors"])
        assert not program.arrays()["weight"].any()
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(starts[0], starts[2][: len(starts[0])])
    wide = FactorizationMachine(dim=64, init_scale=0.02, features=500)
    wide.startup(make_feed(1), 9)
    assert wide.arrays()["factors"].std() == pytest.approx(0.02, rel=0.02)
    assert abs(wide.arrays()["factors"].mean()) < 0.001


def test_a_model_grows_with_its_feeds():
    narrow, wide = make_feed(1, ranked=True), make_feed(1, kinds=KINDS + 3, ranked=True)
    program = FactorizationMachine(**SOME)
    fit(program, narrow, epochs=1)
    before = program.arrays(state=True)
    assert program.ignored == 0
    program.scores(wide)
    assert program.ignored == np.count_nonzero(wide.original[wide.samples.ids] >= narrow.features)
    program.startup(wide, 9)
    program.finish(wide)
    fresh = FactorizationMachine(**SOME)
    fresh.startup(wide, 9)
    after = program.arrays(state=True)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name][: len(array)], array, err_msg=name)
    np.testing.assert_array_equal(after["factors"][narrow.features :], fresh.arrays()["factors"][narrow.features :])
    fit(program, wide, epochs=1)
    assert program.features == wide.features
    assert program.arrays()["weight"][narrow.features :].any()
    fit(program, narrow, epochs=1)  # a narrower feed again
    assert program.features == wide.features


# -- what cannot work -----------------------------------------------------------------------------------------------


def test_a_table_larger_than_memory_is_refused_before_it_is_made():
    with pytest.raises(ConfigError, match=r"1,000,000,000,000 rows of 19 cells needs 76000\.0 GB.*--dim"):
        FactorizationMachine(dim=8, l2=0.1, features=10**12).startup(make_feed(), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": -1}, "dim"),
        ({"dim": 1000}, "between 0"),
        ({"loss": "hinge"}, "loss"),
        ({"optimizer": "best"}, "optimizer"),
        ({"l2_factors": -1.0}, "l2_factors"),
        ({"init_scale": 0.0}, "never move"),
        ({"optimizer": "adam", "constants": {"beta3": 1.0}}, "no constant 'beta3'"),
        ({"class_weight": "even"}, "balanced"),
        ({"classes": [1]}, "at least two"),
        ({"l2_form": "touched"}, "there is no penalty; add l2 or l2_factors"),
        ({"l2_form": "touched", "l2": 0.1, "optimizer": "ftrl"}, "part of its rule"),
        ({"l2_form": "lazy", "l2": 0.1}, "l2_form"),
    ],
)
def test_options_that_cannot_work(options, message):
    with pytest.raises(ConfigError, match=message):
        FactorizationMachine(**options)


def test_feeds_that_cannot_work():
    with pytest.raises(InputError, match="3 classes, and a factorization machine tells two apart"):
        FactorizationMachine(classes=[1, 2, 3])
    with pytest.raises(InputError, match=r"toy.svm: its features have no fields"):
        FactorizationMachine(field_aware=True).startup(make_feed(), 1)
    other = make_feed(kind=SlotRows)
    program = FactorizationMachine(field_aware=True, slots=["a", "c"])
    with pytest.raises(InputError, match=r"fields are a, b, always, those of the model a, c"):
        program.startup(other, 1)
    with pytest.raises(ConfigError, match="no weights yet"):
        FactorizationMachine(classes=[0, 1]).scores(make_feed())


def test_arrays_that_do_not_fit():
    program = FactorizationMachine(**SOME)
    program.startup(make_feed(), 1)
    good, options = program.arrays(state=True), program.options()
    for name, array in (
        ("factors", good["factors"][:, :2]),
        ("factors", None),
        ("weight", good["weight"][1:]),
        ("weight_squares", good["weight"][1:]),
        ("factors_squares", None),
        ("bias", np.full(1, np.nan, np.float32)),
        ("stranger", good["bias"]),
    ):
        wrong = {key: value for key, value in {**good, name: array}.items() if value is not None}
        with pytest.raises(ModelError):
            FactorizationMachine(**options).restore(wrong)
    with pytest.raises(ModelError, match="classes"):
        FactorizationMachine().restore(good)


# -- without the compiler -------------------------------------------------------------------------------------------


@compiled_in_full
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adagrad", "adam", "ftrl"])
@pytest.mark.parametrize("kind", [Rows, SlotRows])
def test_state_comes_back_bit_for_bit(optimizer, kind):
    feed = make_feed(8, kind=kind, ranked=True)
    program = FactorizationMachine(3, optimizer=optimizer, l2=1e-3, l2_factors=1e-2, field_aware=kind is SlotRows)
    fit(program, feed, epochs=1)
    twin = FactorizationMachine(**json.loads(json.dumps(program.options())))
    arrays = program.arrays(state=True)
    twin.restore(arrays)
    assert arrays["factors"].shape == ((11, 3, 3) if kind is SlotRows else (11, 3))
    for name, array in twin.arrays(state=True).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    np.testing.assert_allclose(twin.scores(feed), exact_scores(program, feed), rtol=1e-4, atol=1e-5)


@compiled_in_full
@pytest.mark.parametrize("aware", [False, True])
def test_a_penalty_when_touched_goes_on_bit_for_bit(aware, tmp_path):
    feed = make_feed(14, kind=ValuedSlotRows, ranked=True)
    options = {"l2": 1e-3, "l2_factors": 1e-2, "l2_form": "touched", "field_aware": aware}
    program = FactorizationMachine(3, **options)
    fit(program, feed, epochs=1)
    assert "weight_stamp" not in program.arrays(state=True)  # nothing is owed, so there is nothing to remember
    save_model(tmp_path / "m", program)
    assert load_model(tmp_path / "m").program.config.l2_form == "touched"
    twin = FactorizationMachine(**json.loads(json.dumps(program.options())))
    twin.restore(program.arrays(state=True))
    for model in (program, twin):
        fit(model, feed, epochs=1)
    for name, array in program.arrays(state=True).items():
        assert array.tobytes() == twin.arrays(state=True)[name].tobytes(), name
    free = FactorizationMachine(3, field_aware=aware)
    fit(free, feed, epochs=2)
    assert np.linalg.norm(program.arrays()["factors"]) < np.linalg.norm(free.arrays()["factors"])


def test_options_of_before_there_were_two_forms_mean_the_one_there_was():
    saved = FactorizationMachine(**SOME, classes=[0, 1]).options()
    del saved["l2_form"]
    assert FactorizationMachine(**FactorizationMachine.earlier(saved)).config.l2_form == "time"


@compiled_in_full
@pytest.mark.parametrize("mode", ["hogwild", "locked", "round-robin", "minibatch"])
@pytest.mark.parametrize("aware", [False, True])
def test_modes(mode, aware):
    feed, form = make_feed(9, kind=ValuedSlotRows), "touched" if mode in ("hogwild", "minibatch") else "time"
    program = FactorizationMachine(2, l2_factors=1e-3, field_aware=aware, l2_form=form)
    events = fit(program, feed, epochs=1, mode=mode, threads=2, trace=mode == "hogwild", sharing="all")
    assert events[-1].samples == ROWS
    assert np.isfinite(program.evaluate(feed)["loss"])
    if mode in ("round-robin", "minibatch"):
        again = FactorizationMachine(2, l2_factors=1e-3, field_aware=aware, l2_form=form)
        fit(again, feed, epochs=1, mode=mode, threads=2)
        assert again.arrays()["factors"].tobytes() == program.arrays()["factors"].tobytes()


@compiled_in_full
def test_without_factors_it_is_a_linear_model():
    feed = make_feed(10)
    machine, linear = FactorizationMachine(0, l2=0.01), Linear(l2=0.01)
    for program in (machine, linear):
        fit(program, feed)
    ours, theirs = machine.arrays(state=True), linear.arrays(state=True)
    assert set(ours) == set(theirs)
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-4, atol=1e-6, err_msg=name)


@compiled_in_full
def test_dense_columns_slots_and_other_bundles():
    feed = make_feed(11, kind=SlotRows)
    numbers = np.random.default_rng(0).normal(size=(ROWS, 2)).astype(np.float32)
    mixed = Feed(feed.samples._replace(dense=numbers), feed.features, schema={**feed.schema, "dense": ["x", "y"]})
    for aware in (False, True):
        program = FactorizationMachine(2, field_aware=aware)
        fit(program, mixed, epochs=1)
        assert program.features == feed.features + 2
        assert program.slots == (("a", "b", "always", "x", "y") if aware else ())
        exact = exact_scores(program, program.rows(mixed))
        np.testing.assert_allclose(program.scores(mixed), exact, rtol=1e-4, atol=1e-5)
    quantity = make_feed(11, quantity=True, kind=BinaryRows)
    program = FactorizationMachine(2, loss="squared")
    fit(program, quantity, epochs=4)
    assert program.evaluate(quantity)["rmse"] < 0.9 * quantity.samples.targets.std()
    assert program.predict_one(quantity.samples.ids[:3]) == pytest.approx(float(program.predict(quantity)[0]), rel=1e-4)
    matrix = np.eye(4, dtype=np.float32)
    full = Feed(DenseRows(matrix, np.array([0, 1, 0, 1], np.float32), np.ones(4, np.float32)), 4)
    program = FactorizationMachine(2)
    fit(program, full, epochs=1)
    np.testing.assert_allclose(program.scores(full), exact_scores(program, full), rtol=1e-4, atol=1e-5)


@compiled_in_full
def test_what_a_stopped_run_owes_is_paid_by_what_predicts_and_not_in_the_weights():
    program, feed = FactorizationMachine(2, l2=0.5, l2_factors=0.25), make_feed(12)
    fit(program, feed, epochs=1)
    table = program.weights.table.reshape(-1, program.layout.cells)
    table[0, -1] = 0.002  # one row has paid up to then, the others have not
    before = table.copy()
    paid, width = program.plain(None, feed.features), program.layout.width
    np.testing.assert_array_equal(paid[0], before[0, :width])
    due = 0.002 / np.sqrt(before[1:, width : 2 * width] + 1e-12) * np.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(paid[1:], before[1:, :width] * np.exp(-due), rtol=1e-4, atol=1e-12)
    np.testing.assert_array_equal(table, before)


@pytest.mark.full
@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_machines_without_the_compiler(tmp_path: Path) -> None:
    root = ROOT
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "HOGWILD_CACHE": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "tests/kernels/sparse/test_fm.py", "tests/kernels/simd/test_rules8.py",
         "tests/programs/sparse/test_fm.py"],
        cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
