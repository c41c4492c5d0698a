"""Embeddings with dense layers as a program: what it learns, in all modes; saving, growing, serving, refusing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse

import hogwild
from compiling import OFF, compiled_in_full
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.executor.readers.watch import Watch
from hogwild.executor.state import Position
from kernels.sparse.test_linear import in_new_process
from problems.mlp import pair_feed

compiled = pytest.mark.skipif(OFF, reason="runs with the compiler on")
OPTIONS: dict[str, Any] = {"dim": 4, "hidden": (16,), "batch_size": 16}


def _trained(feed: Any, epochs: int = 12, lr: float = 0.02, run: dict[str, Any] | None = None, **options: Any) -> Any:
    program = hogwild.SparseMLP(**{**OPTIONS, **options})
    return hogwild.train(program, feed, epochs=epochs, lr=lr, quiet=True, **{"threads": 2, **(run or {})})


@pytest.fixture(scope="module")
def trained() -> Any:
    return _trained(pair_feed()) if not OFF else _trained(pair_feed(rows=64), 2)


@compiled
def test_it_learns_what_no_linear_model_can(trained: Any) -> None:
    test = pair_feed(seed=2)
    assert trained.evaluate(test)["auc"] > 0.99
    flat = hogwild.train(hogwild.Linear(), pair_feed(), epochs=10, lr=0.1, threads=1, quiet=True)
    assert flat.evaluate(test)["auc"] < 0.7


@compiled_in_full
@pytest.mark.parametrize("mode", ["serial", "hogwild", "round-robin", "locked", "minibatch"])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_the_loss_falls_in_every_mode(mode: str, optimizer: str) -> None:
    run = {"mode": mode, "threads": 1 if mode == "serial" else 2, **({"batch": 2} if mode == "minibatch" else {})}
    feed = pair_feed(rows=64)
    losses = [
        _trained(feed, epochs, {"sgd": 0.5, "adagrad": 0.1}[optimizer], run, optimizer=optimizer).evaluate(feed)["loss"]
        for epochs in (1, 20)
    ]
    assert losses[1] < 0.95 * losses[0]


@compiled
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_what_is_saved_can_be_watched_by_its_name_without_what_the_rule_remembers(optimizer: str, wide: bool) -> None:
    program = hogwild.SparseMLP(optimizer=optimizer, wide=wide, **OPTIONS)
    hogwild.train(program, pair_feed(rows=64), epochs=2, lr=0.01, threads=1, quiet=True)
    saved = program.arrays()
    names = [f"norm({name})" for name in saved]
    found = Watch(names).read(program)
    assert found == {f"norm({name})": pytest.approx(np.linalg.norm(array)) for name, array in saved.items()}
    assert ("norm(wide)" in found) == wide
    with pytest.raises(hogwild.ConfigError, match=r"known names: embedding, .*layer_1_weight, layer_1_bias"):
        Watch(["norm(table)"]).read(program)


@compiled
def test_samples_are_told_and_not_batches() -> None:
    """In events and in what is looked at: 100 rows in batches of 16 are 100 samples, on however many workers."""
    for threads in (1, 2):
        feed, program = pair_feed(rows=100), hogwild.SparseMLP(**OPTIONS)
        watch = Watch(["norm(embedding)"], every=50)
        events = list(hogwild.AsyncExecutor(threads=threads).run(program, feed, epochs=3, lr=0.01, watch=watch))
        started, finished = events[0], events[-1]
        assert (started.total, started.unit, started.each) == (300, "samples", 1.0)
        assert [event.samples for event in events if event.kind == "epoch"] == [100, 200, 300]
        assert (finished.samples, finished.units) == (300, 300)
        assert finished.samples_per_second == finished.units_per_second
        seen = [event.samples for event in events if event.kind == "watched"]
        assert len(seen) == 6
        assert all(k <= samples < k + 16 for k, samples in zip(range(50, 301, 50), seen, strict=True))


@compiled
def test_serial_twice_is_the_same_to_the_bit_and_another_seed_is_not() -> None:
    runs = [
        _trained(pair_feed(), 2, run={"mode": "serial", "threads": 1, "seed": seed}).arrays() for seed in (1, 1, 2)
    ]
    for name, array in runs[0].items():
        assert array.tobytes() == runs[1][name].tobytes()
    assert runs[0]["embedding"].tobytes() != runs[2]["embedding"].tobytes()


def _stepped(batch: int, divided: int, epochs: int, lr: float, l2: float, feed: Any) -> Any:
    """Arrays after a serial run in which a visit is that part of a batch which so many workers would take."""
    program = hogwild.SparseMLP(**{**OPTIONS, "batch_size": batch}, optimizer="sgd", l2=l2)
    divide = program.divide
    program.divide = lambda workers: divide(divided)  # type: ignore[method-assign]
    return hogwild.train(program, feed, epochs=epochs, lr=lr, mode="serial", schedule="constant", quiet=True).arrays()


@compiled_in_full
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_workers_that_share_a_batch_step_as_far_for_a_sample_as_one_would(l2: float) -> None:
    feed = pair_feed(rows=256)
    halves, small = _stepped(128, 2, 3, 0.05, l2, feed), _stepped(64, 1, 3, 0.025, l2, feed)
    whole = _stepped(128, 1, 3, 0.05, l2, feed)
    for name, array in halves.items():
        np.testing.assert_allclose(array, small[name], rtol=1e-6)  # a batch of half the size at half the rate
    moved, difference = (np.abs(whole["embedding"] - other["embedding"]).max() for other in (
        _stepped(128, 1, 3, 1e-9, l2, feed), halves))  # fmt: skip
    assert difference < 0.05 * moved


def test_only_plain_steps_are_divided_and_not_into_crumbs() -> None:
    parts = {
        (optimizer, batch, workers): hogwild.SparseMLP(optimizer=optimizer, batch_size=batch).divide(workers)
        for optimizer in ("sgd", "adam") for batch in (16, 512) for workers in (1, 2, 3, 64)
    }  # fmt: skip
    expected = {("sgd", 512, 2): 0.5, ("sgd", 512, 3): 171 / 512, ("sgd", 512, 64): 0.125}
    assert parts == {key: expected.get(key, 1.0) for key in parts}


@compiled_in_full
def test_a_run_that_stood_in_an_epoch_of_other_visits_is_not_resumed() -> None:
    feed = pair_feed(rows=512)
    states = []
    for threads in (2, 1):
        program = hogwild.SparseMLP(**{**OPTIONS, "batch_size": 128}, optimizer="sgd")
        executor = hogwild.AsyncExecutor(threads=threads)
        started = next(run := executor.run(program, feed, epochs=2, lr=0.5))
        assert started.lr == 0.5  # what the user gave, not what is left of it for a part of a batch
        run.close()
        states.append(executor.state())
    assert [state.epoch_visits for state in states] == [8, 4]
    assert [state.lr for state in states] == [0.5, 0.5]
    inside = replace(states[0], position=Position(0, 3))
    with pytest.raises(ConfigError, match="an epoch of 8 visits, and now there would be 4"):
        next(hogwild.AsyncExecutor(threads=1).run(program, feed, epochs=2, start=inside))


def test_the_order_of_ids_does_not_matter_to_where_features_start() -> None:
    programs = []
    for ranked in (True, False):
        program = hogwild.SparseMLP(**OPTIONS)
        program.startup(pair_feed(ranked=ranked), seed=3)
        programs.append(program.arrays())
    np.testing.assert_array_equal(programs[0]["embedding"], programs[1]["embedding"])
    assert len(np.unique(programs[0]["embedding"])) > 40
    assert np.abs(programs[0]["embedding"]).max() <= 0.125


def test_a_saved_model_gives_the_same_scores(trained: Any, tmp_path: Any) -> None:
    hogwild.save_model(tmp_path / "model", trained)
    loaded = hogwild.load_model(tmp_path / "model").program
    test = pair_feed(seed=2)
    np.testing.assert_array_equal(loaded.scores(test), trained.scores(test))
    np.testing.assert_array_equal(loaded.scores(test, threads=2), trained.scores(test))
    assert sorted(loaded.arrays()) == ["embedding", "layer_1_bias", "layer_1_weight", "layer_2_bias", "layer_2_weight"]


def test_state_comes_back_with_the_update_rule(trained: Any) -> None:
    arrays = trained.arrays(state=True)
    again = hogwild.SparseMLP(**trained.options())
    again.restore(arrays)
    for name, array in again.arrays(state=True).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    assert float(arrays["layers_count"][0]) > 4


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("embedding", lambda a: a[:-1]),
        ("layer_1_weight", lambda a: a.T.copy()),
        ("layer_2_bias", lambda a: a * np.nan),
        ("layers_first", lambda a: a[:-1]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(trained: Any, name: str, change: Any) -> None:
    arrays = dict(trained.arrays(state=True))
    arrays[name] = change(arrays[name])
    with pytest.raises(ModelError):
        hogwild.SparseMLP(**trained.options()).restore(arrays)
    arrays = dict(trained.arrays())
    del arrays["layer_1_bias"]
    with pytest.raises(ModelError, match="layer_1_bias"):
        hogwild.SparseMLP(**trained.options()).restore(arrays)


def test_it_grows_with_a_feed_that_has_more_features(trained: Any) -> None:
    program = hogwild.SparseMLP(**trained.options())
    program.restore(trained.arrays(state=True))
    before = program.arrays()["embedding"]
    wider = pair_feed(rows=300, kinds=9)
    program.startup(wider, seed=9)
    after = program.arrays()["embedding"]
    assert after.shape == (18, 4)
    np.testing.assert_array_equal(after[:12], before)
    assert np.abs(after[12:]).min() > 0


def test_features_that_it_does_not_know_are_left_out(trained: Any) -> None:
    known, wider = pair_feed(rows=50, seed=4), pair_feed(rows=50, seed=4)
    strange = wider.samples._replace(
        ids=np.append(wider.samples.ids, np.int32(14)),
        slots=np.append(wider.samples.slots, np.uint16(1)),
        offsets=np.append(wider.samples.offsets[:-1], wider.samples.offsets[-1] + 1),
    )
    order = np.append(wider.original, np.arange(12, 16, dtype=np.int32))
    odd = replace(wider, samples=strange, features=16, original=order)
    expected = trained.scores(known)
    np.testing.assert_allclose(trained.scores(odd), expected, rtol=1e-6)
    assert trained.ignored == 1


@compiled
def test_one_row_is_served_with_the_same_answer(trained: Any) -> None:
    test = pair_feed(seed=5, rows=40)
    chances = trained.predict_proba(test)[:, 1]
    own = test.original[test.samples.ids].reshape(-1, 2)
    found = [trained.predict_one(own[k], slots=[0, 1], dense=test.samples.dense[k]) for k in range(40)]
    np.testing.assert_allclose(found, chances, rtol=1e-4)
    for bad, why in (
        ({"ids": [0], "slots": [2]}, "outside 0 … 1"), ({"ids": [0], "slots": [-1]}, "outside 0 … 1"),
        ({"ids": [0], "slots": [0, 1]}, "here are 1 ids, 1 values, 2 slots"), ({"ids": [-1]}, "feature -1 does not"),
        ({"ids": [0], "dense": []}, "and 0 numbers"), ({"ids": [0, 1], "slots": [1, 0]}, "rising order"),
        ({"ids": [0], "values": [np.nan]}, "not a finite"), ({"ids": [0], "dense": [np.inf]}, "not a finite"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            trained.predict_one(**{"dense": [0.0], **bad})
    every_other = np.stack([own[0], own[0]], axis=1)[:, 0]  # not contiguous
    assert trained.predict_one(every_other, slots=[0, 1], dense=test.samples.dense[0]) == found[0]
    many = list(range(300)) * 2  # more than there was room for; none of them known but the model's own
    assert 0 < trained.predict_one(many, dense=[0.0]) < 1


@pytest.mark.full
@compiled
def test_many_classes_and_plain_sparse_rows() -> None:
    rows = np.arange(300)
    matrix = sparse.csr_matrix((np.ones(300, np.float32), (rows, rows % 9)), shape=(300, 9))
    labels = np.array(["a", "b", "c"])[rows % 9 % 3]
    feed = hogwild.feed_of(matrix, labels)
    program = _trained(feed, 15, hidden=(8,), wide=True, combiner="mean")
    assert program.evaluate(feed)["accuracy"] == 1.0
    assert program.predict(feed)[:3].tolist() == ["a", "b", "c"]
    chances = program.predict_one([1])
    assert len(chances) == 3
    assert chances[1] == max(chances)
    assert sum(chances) == pytest.approx(1)


@compiled_in_full
def test_dense_rows_alone() -> None:
    random = np.random.default_rng(6)
    matrix = random.standard_normal((100, 3)).astype(np.float32)
    feed = hogwild.feed_of(matrix, (matrix[:, 0] * matrix[:, 1] > 0).astype(int))
    assert _trained(feed, 20).evaluate(feed)["auc"] > 0.95


def test_a_table_larger_than_memory_is_refused_with_its_size() -> None:
    program = hogwild.SparseMLP(dim=65536, features=2_000_000_000)
    with pytest.raises(ConfigError, match=r"2,000,000,000 features with 196609 numbers each takes \d+\.\d GB"):
        program.startup(pair_feed(), seed=1)
    assert program.weights is None


def test_other_slots_than_those_of_training_are_refused(trained: Any) -> None:
    feed = pair_feed()
    other = replace(feed, schema={"slots": ["left", "middle"], "dense": ["noise"]})
    with pytest.raises(InputError, match="left, middle"):
        trained.scores(other)


@pytest.mark.parametrize(
    "options", [{"dim": 0}, {"hidden": (-1,)}, {"batch_size": -1}, {"combiner": "max"}, {"l2": -1.0}, {"loss": "hinge"}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        hogwild.SparseMLP(**options)


@pytest.mark.full
@compiled
def test_the_rest_with_the_compiler_off(tmp_path: Any) -> None:
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = in_new_process(arguments, tmp_path, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
