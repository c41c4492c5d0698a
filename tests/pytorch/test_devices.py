"""Runs on a device: the processor stands for one, with copies of weights and samples as any other has them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import hogwild  # noqa: E402
import hogwild.pytorch as package  # noqa: E402
from hogwild.cli.main import main  # noqa: E402
from hogwild.config import Optimizer  # noqa: E402
from hogwild.errors import ConfigError, WorkerError  # noqa: E402
from hogwild.executor.readers.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402
from hogwild.pytorch import TorchProgram  # noqa: E402
from hogwild.pytorch.devices import device as devices  # noqa: E402
from problems import mlp  # noqa: E402
from pytorch import models  # noqa: E402

SERIAL = {"mode": "serial", "quiet": True}


def _texts(rows: int = 90, kinds: int = 2) -> Any:
    """Texts whose label is the topic of most of their words; all words of a text differ."""
    import scipy.sparse

    random = np.random.default_rng(3)
    labels = np.arange(rows) % kinds
    words = [np.unique(random.integers(0, 20, 8) + 20 * label * (random.random(8) < 0.8)) for label in labels]
    ids = np.concatenate(words)
    matrix = scipy.sparse.csr_matrix(
        (np.ones(len(ids)), ids, np.cumsum([0, *map(len, words)])), shape=(rows, 20 * kinds)
    )
    return hogwild.feed_of(matrix, [f"topic {label}" for label in labels])


def _mlp(**more: Any) -> Any:
    return hogwild.SparseMLP(**{"dim": 4, "hidden": (8,), "batch_size": 8, **more})


def _apart(one: Any, other: Any) -> float:
    """The largest difference between two programs, in weights and in what the rule remembers of them."""
    mine, its = one.arrays(state=True), other.arrays(state=True)
    assert list(mine) == list(its)
    return max(float(np.abs(mine[name] - its[name]).max(initial=0)) for name in mine)


# -- the same as compiled code ----------------------------------------------------------------------------------------


def _both(make: Any, feed: Any, here: dict[str, Any], there: dict[str, Any], **options: Any) -> tuple[Any, Any]:
    runs = ({**SERIAL, **here}, {**SERIAL, "device": "cpu", **there})
    one, other = (hogwild.train(make(), feed, **{"epochs": 3, **options, **run}) for run in runs)
    return one, other


@pytest.mark.parametrize("make", [_mlp, lambda: hogwild.TextClassifier(dim=8)], ids=["mlp", "text"])
def test_serial_gives_the_weights_of_compiled_code(make: Any) -> None:
    feed = mlp.pair_feed() if make is _mlp else _texts()
    compiled, there = _both(make, feed, {}, {}, lr=0.02 if make is _mlp else None)
    assert _apart(compiled, there) < 1e-4
    assert there.evaluate(feed)["accuracy"] > 0.9


MANY = {"l1": 1e-4, "l2": 1e-3, "combiner": "mean", "wide": True, "activation": "tanh", "lookup_activation": "relu"}


BARE = {"combiner": "sqrtn", "hidden": ()}


@pytest.mark.full
@pytest.mark.parametrize(("optimizer", "options"), [*((rule, MANY) for rule in get_args(Optimizer)), ("adam", BARE)])
def test_serial_gives_the_weights_of_every_mlp(optimizer: str, options: dict[str, Any]) -> None:
    compiled, there = _both(lambda: _mlp(optimizer=optimizer, **options), mlp.pair_feed(), {}, {}, lr=0.02)
    assert _apart(compiled, there) < 1e-4


COUNTED = {"l2": 1e-3, "counts": True}


@pytest.mark.full
@pytest.mark.parametrize(
    ("optimizer", "kinds", "options"), [*((rule, 2, {}) for rule in get_args(Optimizer)), ("adam", 3, COUNTED)]
)
def test_serial_gives_the_weights_of_every_text_classifier(optimizer: str, kinds: int, options: Any) -> None:
    compiled, there = _both(
        lambda: hogwild.TextClassifier(dim=8, optimizer=optimizer, **options), _texts(kinds=kinds), {}, {}, lr=0.1
    )
    assert _apart(compiled, there) < 1e-4


@pytest.mark.full
def test_texts_of_a_step_are_summed_as_in_mode_minibatch() -> None:
    here = {"mode": "minibatch", "threads": 1}
    compiled, there = _both(lambda: hogwild.TextClassifier(dim=8, optimizer="adagrad"), _texts(), here, {}, batch=7)
    assert _apart(compiled, there) < 1e-4


@pytest.mark.full
def test_quantities_and_matrices_are_learnt_alike() -> None:
    x = np.random.default_rng(0).standard_normal((100, 5)).astype(np.float32)
    feed = hogwild.feed_of(x, 3 * x[:, 0] + 7)
    compiled, there = _both(lambda: _mlp(loss="squared"), feed, {}, {})
    assert _apart(compiled, there) < 1e-4
    assert there.evaluate(feed)["loss"] == pytest.approx(compiled.evaluate(feed)["loss"], abs=1e-4)


# -- a run ------------------------------------------------------------------------------------------------------------


def test_streams_divide_an_epoch_and_learn() -> None:
    program, threads = _mlp(), torch.get_num_threads()
    feed, valid = mlp.pair_feed(400), mlp.pair_feed(100, seed=2)
    watch = hogwild.Watch(["norm(layer_1_weight)"], every=200)
    executor = hogwild.AsyncExecutor(device="cpu", threads=3)
    events = list(executor.run(program, feed, valid=valid, watch=watch, epochs=6, lr=0.02, patience=5))
    assert (events[0].device, events[0].threads, events[0].sharing) == ("cpu", 3, "all")
    assert events[-1].samples == 2400
    epochs = [event for event in events if event.kind == "epoch"]
    assert epochs[-1].metrics["loss"] < 0.5 * epochs[0].metrics["loss"]
    shown = [event.values["norm(layer_1_weight)"] for event in events if event.kind == "watched"]
    assert len(set(shown)) == len(shown) == 12  # weights of the device, not those of the beginning
    assert torch.get_num_threads() == threads


def test_watched_weights_come_from_the_device_while_it_runs() -> None:
    program, watch = _mlp(), hogwild.Watch(["norm(embedding)"], every="0.05s")
    events = hogwild.AsyncExecutor(device="cpu", threads=1).run(program, mlp.pair_feed(600), watch=watch, epochs=1000)
    shown = (event.values["norm(embedding)"] for event in events if event.kind == "watched")
    assert len({next(shown) for _ in range(3)}) == 3
    events.close()


def test_a_run_goes_on_from_its_checkpoint_on_the_device_or_elsewhere(tmp_path: Path) -> None:
    feed, options = mlp.pair_feed(400), {"mode": "serial", "epochs": 3, "lr": 0.02}
    whole = hogwild.train(_mlp(l2=1e-3), feed, device="cpu", quiet=True, **options)
    executor, program = hogwild.AsyncExecutor(device="cpu", **options), _mlp(l2=1e-3)
    for event in executor.run(program, feed):
        if event.kind == "progress" and event.samples > 450:
            executor.park()
        if event.kind == "parked":
            save_checkpoint(tmp_path / "model", program, executor.state(), {})
            executor.stop()
    assert 450 < executor.state().position.visits * 8 + 400 * executor.state().position.epoch < 1200
    for device in ("cpu", ""):
        again, state = load_checkpoint(tmp_path / "model", _mlp(l2=1e-3), {})
        list(hogwild.AsyncExecutor(device=device, **options).run(again, feed, start=state))
        assert _apart(whole, again) < (1e-4 if device == "" else 1e-30)


def test_weights_come_home_from_a_run_that_is_left() -> None:
    program, feed = _mlp(), mlp.pair_feed(600)
    events = hogwild.AsyncExecutor(device="cpu", threads=2).run(program, feed, epochs=1000, lr=0.02)
    first = next(events)
    begun = program.kept()
    for event in events:
        if event.samples > 5000:
            break
    events.close()
    assert first.kind == "started"
    assert float(np.abs(program.weights.table - begun.table).max()) > 0.05
    assert program.evaluate(feed)["loss"] < 0.69


def test_weights_that_are_taken_over_go_to_the_device() -> None:
    program, feed = _mlp(), mlp.pair_feed(100)
    executor = hogwild.AsyncExecutor(device="cpu", mode="serial")
    for event in executor.run(program, feed, epochs=1, lr=1e-30, schedule="constant"):
        if event.kind == "started":
            executor.take_over(type(program.weights)(*(np.full_like(array, 0.5) for array in program.weights)))
    assert float(np.abs(program.arrays()["embedding"] - 0.5).max()) < 1e-6


def test_a_loss_that_is_no_number_stops_the_run_and_says_how_large_weights_are() -> None:
    with pytest.raises(WorkerError, match=r"the loss became (nan|inf).*largest weight (nan|inf|[1-9])"):
        hogwild.train(_mlp(optimizer="sgd"), mlp.pair_feed(200), device="cpu", lr=1e20, epochs=3, quiet=True)


def test_learning_rates_are_found_for_a_device_too() -> None:
    executor = hogwild.AsyncExecutor(device="cpu", mode="serial")
    events = list(executor.run(hogwild.TextClassifier(dim=8, optimizer="ftrl"), _texts(), epochs=1))
    assert "the best of" in events[0].notes[0]
    assert math.isfinite(events[-1].loss)


# -- modules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normed", "sparse bags", "own loss", "dataset"])
def test_a_module_on_a_device_is_stepped_as_by_a_worker_process(kind: str) -> None:
    from pytorch.test_worker import visitors

    data: Any = {"sparse bags": _texts(), "dataset": models.Squares(60)}.get(kind, models.points(60))
    module: Any = {"normed": models.Normed, "sparse bags": models.Bags, "own loss": models.OwnLoss}
    loss = None if kind == "own loss" else nn.MSELoss()
    programs = []
    for _ in range(2):
        torch.manual_seed(4)
        made = models.Bags(40) if kind == "sparse bags" else module.get(kind, models.make_line)()
        programs.append(TorchProgram(made, loss, "adam", batch=10, lr=0.01))
    one, other = programs
    (visitor,) = visitors(one, data)
    count = one.visits(data)
    visitor.run(np.arange(count), 0, [0.01] * count, np.arange(count), 0.0)
    executor = hogwild.AsyncExecutor(device="cpu:0", mode="serial", shuffle=False)
    events = list(executor.run(other, other.feed_from(data), epochs=1))
    assert events[0].device == "cpu:0"
    assert _apart(one, other) < 1e-6
    assert set(one.arrays(state=True)["optimizer/steps"].tolist()) == {count}


def test_streams_of_a_module_share_its_weights_and_count_all_steps() -> None:
    torch.manual_seed(1)
    program = TorchProgram(models.make_line(), nn.MSELoss(), "adam", batch=10, lr=0.05)
    data = models.points(120)
    events = list(hogwild.AsyncExecutor(device="cpu:0", threads=2).run(program, program.feed_from(data), epochs=8))
    epochs = [event for event in events if event.kind == "epoch"]
    assert epochs[-1].loss < 0.3 * epochs[0].loss
    assert program.arrays(state=True)["optimizer/steps"].tolist() == [96, 96]


def test_a_stream_that_fails_stops_the_run_with_its_error() -> None:
    data = torch.cat([torch.zeros(30, 3), torch.full((1, 3), 1000.0)]), torch.zeros(31)
    program = TorchProgram(models.Dying("raise"), nn.MSELoss(), batch=10)
    with pytest.raises(WorkerError, match="the sum is off"):
        hogwild.train(program, data, device="cpu:0", quiet=True)


def test_device_cpu_of_a_module_is_its_worker_processes() -> None:
    program = TorchProgram(models.make_line(), nn.MSELoss())
    config = hogwild.AsyncExecutor(device="cpu").config_for(program)
    assert config.device == ""
    assert program.backend(config).__name__ == "ProcessWorkers"


# -- memory -----------------------------------------------------------------------------------------------------------


def _free(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(devices, "_free", lambda device: size)


def test_weights_that_the_device_cannot_hold_are_refused_with_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    _free(monkeypatch, 4000)
    for program, data, name in (
        (_mlp(), mlp.pair_feed(100), "cpu"),
        (TorchProgram(models.make_line(), nn.MSELoss()), models.points(), "cpu:0"),
    ):
        with pytest.raises(ConfigError, match=r"need 0.00 GB, and cpu(:0)? has 0.00 GB to give; use a smaller"):
            hogwild.train(program, data, device=name, quiet=True)


def test_samples_that_the_device_cannot_hold_are_sent_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = mlp.pair_feed(2000)
    whole = hogwild.train(_mlp(), feed, device="cpu", epochs=1, **SERIAL)
    _free(monkeypatch, 30_000)
    program = _mlp()
    events = list(hogwild.AsyncExecutor(device="cpu", mode="serial").run(program, feed, epochs=1))
    assert "do not fit on cpu beside the weights: they are sent batch by batch" in " ".join(events[0].notes)
    assert _apart(whole, program) == 0
    x, y = models.points(2000)
    module = TorchProgram(models.make_line(), nn.MSELoss(), batch=50)
    _free(monkeypatch, 20_000)
    events = list(hogwild.AsyncExecutor(device="cpu:0").run(module, module.feed_from((x, y)), epochs=1))
    assert "sent batch by batch" in " ".join(events[0].notes)


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of clicks."""
    place = tmp_path_factory.mktemp("clicks")
    made = ("make-dataset", "clicks", "--slots", "3", "--numbers", "2", "--features", "60", "--quiet")
    for part, name in enumerate(("train.txt", "test.txt")):
        assert main([*made, "--rows", "600", "--part", str(part), "--output", str(place / name)]) == 0
    return place


def test_a_model_that_was_trained_on_a_device_serves_anywhere(clicks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test, model = (str(clicks / name) for name in ("train.txt", "test.txt", "model"))
    trace = str(clicks / "profile.json")
    options = ["--valid", test, "--epochs", "2", "--device", "cpu", "--profile", trace, "--json"]
    assert main(["train", "ctr", train, *options, "--output", model]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["device"], found["threads"], found["samples"]) == ("cpu", 2, 1200)
    assert found["profile"]["operations"]["aten::addmm"]["calls"] >= 3
    assert any(event["name"] == "aten::addmm" for event in json.loads(Path(trace).read_text())["traceEvents"])
    assert main(["evaluate", model, test, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["loss"] == pytest.approx(found["metrics"]["loss"])
    assert main(["train", "ctr", train, *options[:-3], "--quiet", "--resume", "--output", model]) == 0


REFUSED = [
    (("--device", "cuda"), "there is no device 'cuda' here"),
    (("--device", "meta"), "there is no device 'meta' here"),
    (("--device", "\x1b[31m no"), "there is no device"),
    (("--device", "cpu", "--mode", "locked"), "on a device the modes are hogwild, serial"),
    (("--device", "cpu", "--trace"), "gradient errors are counted on the processor"),
    (("--device", "cpu", "--sharing", "hot"), "a device has one copy of the weights"),
    (("--device", "cpu", "--hot-rows", "3"), "a device has one copy of the weights"),
    (("--device", "cpu", "--batch", "7"), "a visit of this model is a batch already"),
    (("--device", "cpu", "--model", "fm"), "a FactorizationMachine is trained by compiled code"),
    (("--device", "cpu", "--cluster", "local"), "--device is for one machine"),
]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device here")
@pytest.mark.parametrize(("flags", "said"), REFUSED, ids=[" ".join(flags[1:]) for flags, _ in REFUSED])
def test_what_cannot_be_is_said_in_one_line(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "ctr", "nothing.txt", *flags]) == 2  # before the file is looked for
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert said in line
    assert "\x1b" not in line


def test_without_pytorch_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    assert main(["train", "classifier", "nothing.svm", "--model", "text", "--device", "cpu"]) == 2
    assert 'pip install "hogwild[torch]"' in capsys.readouterr().err


def test_a_part_of_several_runs_is_not_made_on_a_device() -> None:
    executor = hogwild.AsyncExecutor(device="cpu")
    with pytest.raises(ConfigError, match="made on the processor"):
        next(executor.run(_mlp(), mlp.pair_feed(100), shard=(0, 2)))
    run = executor.run(_mlp(), mlp.pair_feed(100), epochs=1)
    next(run)
    with pytest.raises(ConfigError, match="on a device, where no other process reads them"):
        executor.open_delta()
    run.close()
