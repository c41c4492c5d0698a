"""Modules under the executor: workers are processes here."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import hogwild  # noqa: E402
from hogwild.config import TrainConfig  # noqa: E402
from hogwild.errors import ConfigError, WorkerError  # noqa: E402
from hogwild.executor.readers.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402
from hogwild.pytorch import TorchProgram  # noqa: E402
from pytorch import models  # noqa: E402


def _line(optimizer: str = "adam", **more: Any) -> TorchProgram:
    torch.manual_seed(1)
    return TorchProgram(models.make_line(), nn.MSELoss(), optimizer, batch=10, **more)


def _open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _left_behind(before: set[str]) -> list[str]:
    """Names of shared memory and semaphores that have come since, and that no process has: others run tests too."""
    new = sorted(set(os.listdir("/dev/shm")) - before)
    for _ in range(20 if new else 0):  # somebody's name may be about to go
        held = "".join(_read(path) for path in Path("/proc").glob("[0-9]*/maps"))
        new = [name for name in new if f"/dev/shm/{name}" not in held and Path("/dev/shm", name).exists()]
        time.sleep(0.1)
    return new


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process is over
        return ""


def test_two_workers_divide_an_epoch_and_leave_nothing_behind() -> None:
    train, test, before = models.points(120), models.points(50, seed=3), set(os.listdir("/dev/shm"))
    program, executor = _line(), hogwild.AsyncExecutor(threads=2, trace=True)
    watch = hogwild.Watch(["module.0.weight[0]", "norm(module.0.bias)"], every=60)
    events = list(executor.run(program, train, valid=test, watch=watch, epochs=8, lr=0.05))
    assert events[0].sharing == "all"
    assert events[-1].samples == 8 * 120
    epochs = [event for event in events if event.kind == "epoch"]
    assert epochs[-1].loss < 0.2 * epochs[0].loss
    assert events[-1].metrics["loss"] < 0.5
    assert sum(worker["gradients"] for worker in epochs[0].trace) == 12
    assert [event.samples for event in events if event.kind == "watched"][:2] == [60, 120]
    assert program.arrays(state=True)["optimizer/steps"].tolist() == [96, 96]
    assert multiprocessing.active_children() == []
    assert _left_behind(before) == []
    weight = program.module[0].weight
    assert weight.data_ptr() == program.watchable()["module.0.weight"].ctypes.data


def test_a_module_holds_two_file_descriptors_whatever_its_size() -> None:
    layers = nn.Sequential(*(nn.Linear(3, 3) for _ in range(20)), nn.Linear(3, 1), nn.Flatten(0))
    before = _open_files()
    program = TorchProgram(layers, nn.MSELoss(), batch=10)
    program.startup(models.points(20), 1)
    program.finish(None)
    program._feeds.clear()
    assert _open_files() == before + 2
    del program, layers
    assert _open_files() == before


@pytest.mark.parametrize("how", ["raise", "kill", pytest.param("exit", marks=pytest.mark.full)])
def test_a_worker_that_dies_stops_the_run(how: str) -> None:
    x, y = models.points(60)
    x[33] = 1000.0
    said = {"raise": "ArithmeticError: the sum is off", "kill": "ended by SIGKILL", "exit": "exit code 3"}[how]
    program = TorchProgram(models.Dying(how), nn.MSELoss(), "sgd", batch=10)
    with pytest.raises(WorkerError, match=said) as caught:
        list(hogwild.AsyncExecutor(threads=2).run(program, (x, y), epochs=2, lr=1e-6))
    if how == "raise":
        assert 'raise ArithmeticError("the sum is off")' in str(caught.value.__cause__.__cause__)
    assert multiprocessing.active_children() == []
    assert bool(torch.isfinite(program.module.layer.weight).all())


@pytest.mark.full
def test_a_run_that_is_dropped_ends_its_workers() -> None:
    run = hogwild.AsyncExecutor(threads=2).run(_line(), models.points(8), epochs=2)
    assert "2 workers for 1 batches: some have nothing to do." in next(run).notes
    assert len(multiprocessing.active_children()) == 2
    run.close()
    assert multiprocessing.active_children() == []


@pytest.mark.full
def test_serial_goes_on_from_a_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    def make() -> TorchProgram:
        torch.manual_seed(1)
        return TorchProgram(models.Normed(), nn.MSELoss(), "adam", batch=10)

    data, executor = models.points(60), hogwild.AsyncExecutor(mode="serial")
    whole, part = make(), make()
    events = list(executor.run(whole, data, epochs=3))
    run = executor.run(part, data, epochs=3)
    for event in run:
        if event.kind == "epoch":
            save_checkpoint(tmp_path / "model", part, executor.state(), {"epochs": 3})
            break
    run.close()
    program, start = load_checkpoint(tmp_path / "model", make(), {"epochs": 3})
    again = list(executor.run(program, data, epochs=3, start=start))
    assert again[-1].loss == events[-1].loss
    for name, array in whole.arrays(state=True).items():
        np.testing.assert_array_equal(program.arrays(state=True)[name], array, err_msg=name)


@pytest.mark.full
def test_modes() -> None:
    """Round-robin and minibatch repeat bit for bit; minibatch by whoever makes the visits; locked counts all."""

    def trained(mode: str, threads: int, **more: Any) -> Any:
        program = _line("sgd")
        executor = hogwild.AsyncExecutor(threads=threads, mode=mode, **more)
        *_, finished = executor.run(program, models.points(110), epochs=2, lr=0.05)
        assert finished.samples == 220
        return torch.cat([part.detach().flatten().clone() for part in program.module.parameters()])

    assert torch.equal(trained("round-robin", 2), trained("round-robin", 2))
    assert torch.equal(trained("minibatch", 2, batch=4), trained("minibatch", 1, batch=4))
    serial = trained("serial", 1)
    assert torch.equal(trained("round-robin", 1), serial)
    assert not torch.equal(trained("round-robin", 2), serial)
    assert torch.allclose(trained("locked", 2), serial, atol=0.1)


@pytest.mark.full
def test_stopping_and_pausing() -> None:
    executor = hogwild.AsyncExecutor(threads=2)
    program = _line()
    seen = []
    for event in executor.run(program, models.points(2000), epochs=10_000):
        seen.append(event.kind)
        if event.kind == "progress" and "parked" not in seen:
            executor.park()
        if event.kind == "parked":
            threading.Timer(0.2, executor.stop).start()
    assert event.reason == "stopped"
    assert "parked" in seen
    assert multiprocessing.active_children() == []


@pytest.mark.full
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """SIGKILL of the parent: no worker outlives it."""
    context = multiprocessing.get_context("spawn")
    told, tell = context.Pipe(duplex=False)
    parent = context.Process(target=_train_for_ever, args=(tell,))
    parent.start()
    workers = told.recv()
    assert len(workers) == 2
    assert all(Path(f"/proc/{worker}").exists() for worker in workers)
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    until = time.monotonic() + 30
    while any(_runs(worker) for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_runs(worker) for worker in workers)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _train_for_ever(tell: Any) -> None:
    for event in hogwild.AsyncExecutor(threads=2).run(_line(), models.points(500), epochs=1_000_000):
        if event.kind == "progress":
            tell.send([child.pid for child in multiprocessing.active_children()])
            tell.close()
            break
    for _ in hogwild.AsyncExecutor(threads=1).run(_line(), models.points(500), epochs=1_000_000):
        pass


@pytest.mark.parametrize("mode", ["hogwild", "round-robin", "minibatch", "locked"])
def test_threads_in_the_place_of_processes(mode: str) -> None:
    before = torch.get_num_threads()
    program = _line("sgd", workers="threads")
    events = list(hogwild.AsyncExecutor(threads=2, mode=mode).run(program, models.points(110), epochs=3, lr=0.05))
    assert any("Workers are threads, not processes: they were asked for" in note for note in events[0].notes)
    assert multiprocessing.active_children() == []
    assert events[-1].samples == 330
    epochs = [event.loss for event in events if event.kind == "epoch"]
    assert epochs[-1] < epochs[0]
    assert torch.get_num_threads() == before
    if mode == "hogwild":
        assert program.arrays(state=True)["optimizer/steps"].tolist() == [33, 33]


def test_a_thread_that_fails_stops_the_run_and_serial_is_serial() -> None:
    x, y = models.points(60)
    x[33] = 1000.0
    program = TorchProgram(models.Dying("raise"), nn.MSELoss(), "sgd", batch=10, workers="threads")
    with pytest.raises(WorkerError, match="ArithmeticError: the sum is off"):
        list(hogwild.AsyncExecutor(threads=2).run(program, (x, y), epochs=2, lr=1e-6))
    weights = []
    for workers in ("threads", "processes"):
        torch.manual_seed(1)
        program = TorchProgram(models.Normed(), nn.MSELoss(), "adam", batch=10, workers=workers)
        list(hogwild.AsyncExecutor(mode="serial").run(program, models.points(60), epochs=2))
        weights.append(program.arrays(state=True))
    for name, array in weights[0].items():
        np.testing.assert_array_equal(weights[1][name], array, err_msg=name)


def test_who_the_workers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the GIL they are threads, by themselves."""
    assert _line().backend(TrainConfig()).__name__ == "ProcessWorkers"
    monkeypatch.setattr("sys._is_gil_enabled", lambda: False, raising=False)
    program = _line()
    assert program.backend(TrainConfig()).__name__ == "ThreadWorkers"
    program.startup(models.points(20), 1)
    assert "this Python runs without the GIL" in program.started_notes()[0]
    with pytest.raises(ConfigError, match="auto, processes or threads"):
        _line(workers="fibres")


def test_the_functional_form_takes_modules() -> None:
    torch.manual_seed(1)
    module, task = models.make_line(), hogwild.pytorch.ModuleTask(nn.MSELoss(), batch=10, workers="threads")
    train = models.points(120)
    before = float(nn.functional.mse_loss(module(train[0]), train[1]).detach())
    options: Any = {"feed": train, "threads": 2, "epochs": 5, "lr": 0.05, "quiet": True}
    found = hogwild.async_executor(startup_program=module, main_program=task, **options)
    assert found is module
    assert float(nn.functional.mse_loss(module(train[0]), train[1]).detach()) < 0.5 * before
    made = hogwild.async_executor(startup_program=models.make_line, main_program=task, **options)
    assert isinstance(made, nn.Module)
    with pytest.raises(ConfigError, match="room is for compiled tasks"):
        hogwild.async_executor(startup_program=module, main_program=task, room=hogwild.Room(1), **options)


def test_patience_ends_a_run_early_and_the_best_is_kept() -> None:
    train, test = models.points(60), models.points(30, seed=3)
    program = _line("sgd", workers="threads")
    executor = hogwild.AsyncExecutor(threads=1)
    events = list(executor.run(program, train, valid=test, epochs=50, patience=2, lr=0.9, schedule="constant"))
    losses = [event.metrics["loss"] for event in events if event.kind == "epoch"]
    assert events[-1].reason == "early"
    assert len(losses) == losses.index(min(losses)) + 3
    program = hogwild.train(
        _line("sgd", workers="threads"), train, valid=test, epochs=50, patience=2, lr=0.9, threads=1, quiet=True
    )
    assert program.evaluate(test)["loss"] == pytest.approx(min(losses))


def test_evaluation_is_the_same_on_one_core_and_on_two() -> None:
    program, data = _line(), models.points(95)
    assert program.evaluate(data, 2) == program.evaluate(data, 1)
    np.testing.assert_array_equal(program.predict(data, 3), program.predict(data))
    assert program.module.training
    sentences = [(torch.arange(size), torch.full((size,), -100)) for size in (3, 5)]
    sentences[1][1][2] = 1
    odd = TorchProgram(_Spread(), nn.CrossEntropyLoss(), batch=1)
    assert odd.evaluate(sentences)["accuracy"] == 1.0  # what is left out does not count; lengths differ
    with pytest.raises(ConfigError, match="outputs of batches differ in shape"):
        odd.predict(sentences)


class _Spread(nn.Module):
    """Scores of two classes for each word: always the second."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.ones(1))

    def forward(self, words: Any) -> Any:
        return torch.stack([torch.zeros(words.shape), self.score.expand(words.shape)], 1)


@pytest.mark.full
def test_a_worker_compiles_the_module() -> None:
    train = models.bags(40)
    program = TorchProgram(models.Bags(), nn.BCEWithLogitsLoss(), "adagrad", batch=1, lr=0.2, compile=True)
    loader = torch.utils.data.DataLoader(train, batch_size=1, collate_fn=models.first_of)  # type: ignore[arg-type]
    events = list(hogwild.AsyncExecutor(threads=2).run(program, loader, epochs=3))
    epochs = [event.loss for event in events if event.kind == "epoch"]
    assert epochs[-1] < epochs[0]


def test_what_the_executor_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    for options, message in (
        ({"sharing": "replica"}, "one copy"),
        ({"sharing": "auto"}, "one copy"),
        ({"merge_every": 5}, "one copy"),
    ):
        with pytest.raises(ConfigError, match=message):
            list(hogwild.AsyncExecutor(threads=1, **options).run(_line(), models.points(20)))
    monkeypatch.setattr("hogwild.machine.memory", lambda: 1 << 20)
    big = _line()
    big.module.more = nn.Parameter(torch.zeros(500_000))
    with pytest.raises(ConfigError, match=r"Sequential with adam needs, in memory .* remembers less"):
        big.startup(models.points(20), 1)
    with pytest.raises(ConfigError, match="what workers read needs"):
        _line().startup(models.points(200_000), 1)
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="nothing to train on"):
        list(hogwild.AsyncExecutor(threads=1).run(_line(), (torch.zeros(0, 3), torch.zeros(0))))
