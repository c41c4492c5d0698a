"""When checkpoints and models are saved, told from the events of a pretended run."""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.errors import ConfigError, RescuedError, SaveError
from hogwild.executor.events import EpochEnded, Finished, Parked, Progress
from hogwild.executor.readers.checkpoint import Checkpointer, Interval, Output, load_checkpoint, parse_interval
from hogwild.executor.state import Position, RunState
from hogwild.programs.store import load_model
from problems.tiny import Tiny, value_of


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("10m", Interval(600.0, 0)),
        ("500s", Interval(500.0, 0)),
        ("2h", Interval(7200.0, 0)),
        ("0.5h", Interval(1800.0, 0)),
        ("1epoch", Interval(0.0, 1)),
        ("3epochs", Interval(0.0, 3)),
        (" 3 Epochs ", Interval(0.0, 3)),
    ],
)
def test_intervals(text: str, interval: Interval) -> None:
    assert parse_interval(text) == interval


WRONG = ["", "10", "m", "0s", "0epochs", "-5m", "1.5epochs", "10 minutes", "1e3s", "9" * 99 + "s"]


@pytest.mark.parametrize("text", WRONG)
def test_wrong_intervals(text: str) -> None:
    with pytest.raises(ConfigError, match="10m, 500s, 2h or 1epoch"):
        parse_interval(text)


class Run:
    """An executor that pretends: 100 visits an epoch, weights equal to the visits made."""

    def __init__(self, path: Path, interval: str = "", keep_best: bool = False, start: RunState | None = None) -> None:
        self.path, self.start = path, start
        self.parked = 0
        self.position = start.position if start else Position()
        self.best_loss = start.best_loss if start else float("inf")
        self.seconds = start.train_seconds if start else 0.0
        self.program = Tiny(value=self.visits)
        output = Output(path, {"bits": 20}, None, ("no", "yes"), keep_best)
        every = parse_interval(interval) if interval else None
        self.reader = Checkpointer(self, self.program, output, every, {}, start)

    @property
    def visits(self) -> int:
        return self.position.epoch * 100 + self.position.visits

    def park(self) -> None:
        self.parked += 1

    def state(self) -> RunState:
        return RunState(
            self.position, np.zeros(1, np.uint64), 1, "all", 0.1, best_loss=self.best_loss, train_seconds=self.seconds
        )

    def goes_to(self, epoch: int, visits: int = 0, seconds: float = 1.0) -> dict[str, Any]:
        self.position = Position(epoch, visits)
        self.seconds += seconds
        self.program.fill(self.visits)
        return {"seconds": self.seconds, "epoch": epoch, "samples": self.visits}

    def progress(self, epoch: int, visits: int) -> None:
        self.reader(Progress(**self.goes_to(epoch, visits), total=1, loss=1, lr=1, samples_per_second=1,
                             units_per_second=1, seconds_left=1, balance=()))  # fmt: skip

    def park_now(self, epoch: int, visits: int) -> None:
        self.reader(Parked(**self.goes_to(epoch, visits)))

    def epoch_ends(self, epoch: int, loss: float) -> None:
        when = self.goes_to(epoch)
        best, self.best_loss = loss < self.best_loss, min(loss, self.best_loss)
        self.reader(EpochEnded(**when, loss=1, lr=1, epoch_seconds=1, metrics={"loss": loss}, best=best))

    def finish(self, reason: str = "done") -> None:
        self.reader(Finished(**self.goes_to(*self.position), reason=reason, loss=1, units=1, train_seconds=1,
                             evaluate_seconds=1, samples_per_second=1, units_per_second=1))  # fmt: skip

    @property
    def checkpoint(self) -> Position | None:
        found = load_checkpoint(self.path, Tiny(), {})
        return found[1].position if found else None

    @property
    def model(self) -> float | None:
        return value_of(load_model(self.path, Tiny()).program) if self.path.exists() else None  # type: ignore[arg-type]


def test_time_asks_for_a_pause_once_and_saves_when_parked(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", "3s")
    asked = []
    for visits in range(10, 70, 10):
        run.progress(0, visits)
        asked.append(run.parked)
    assert asked == [0, 0, 1, 1, 1, 1]
    run.park_now(0, 70)
    assert run.checkpoint == (0, 70)
    for visits in (80, 85, 90):
        run.progress(0, visits)
    assert run.parked == 2
    run.epoch_ends(1, 0.5)  # the epoch ended before the workers parked: as good
    assert run.checkpoint == (1, 0)
    assert run.model is None


def test_every_second_epoch(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", "2epochs")
    found = []
    for epoch in range(1, 6):
        run.progress(epoch - 1, 50)
        run.epoch_ends(epoch, 1.0)
        found.append(run.checkpoint)
    assert found == [None, (2, 0), (2, 0), (4, 0), (4, 0)]
    assert run.parked == 0
    run.finish()
    assert run.checkpoint == (5, 0)


def test_without_validation_the_model_is_the_last(tmp_path: Path) -> None:
    run = Run(tmp_path / "m")
    run.epoch_ends(1, 0.5)
    run.epoch_ends(2, 0.7)
    assert run.model is None
    run.finish()
    assert run.model == 200
    assert run.checkpoint is None  # nobody asked for one
    model = load_model(tmp_path / "m", Tiny())
    assert (model.schema, model.labels) == ({"bits": 20}, ("no", "yes"))


def test_with_validation_the_model_is_the_best(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", "1epoch", keep_best=True)
    for epoch, loss in enumerate([0.5, 0.3, 0.4, 0.6], start=1):
        run.epoch_ends(epoch, loss)
    run.finish("early")
    assert run.model == 200
    assert load_model(tmp_path / "m", Tiny()).metrics == {"loss": 0.3}
    assert run.checkpoint == (4, 0)


def test_stopped_before_the_first_epoch_the_model_is_what_there_is(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", keep_best=True)
    run.progress(0, 30)
    run.finish("stopped")
    assert run.model == 30
    assert run.checkpoint == (0, 30)  # asked for or not: --resume goes on from here


def test_going_on(tmp_path: Path) -> None:
    first = Run(tmp_path / "m", "1epoch", keep_best=True)
    first.epoch_ends(1, 0.3)
    _, state = load_checkpoint(tmp_path / "m", Tiny(), {})  # type: ignore[misc]
    second = Run(tmp_path / "m", keep_best=True, start=state)
    second.epoch_ends(2, 0.4)
    second.finish()
    assert second.model == 100  # the best is that of the first part
    assert second.checkpoint == (2, 0)


def test_going_on_where_nothing_is_left_changes_nothing(tmp_path: Path) -> None:
    first = Run(tmp_path / "m", "1epoch")
    first.epoch_ends(1, 0.3)
    first.finish()
    before = {file: file.stat().st_ino for file in tmp_path.rglob("*")}
    _, state = load_checkpoint(tmp_path / "m", Tiny(), {})  # type: ignore[misc]
    again = Run(tmp_path / "m", "1epoch", start=state)
    again.finish()
    assert {file: file.stat().st_ino for file in tmp_path.rglob("*")} == before


def test_going_on_after_the_model_was_removed_saves_it(tmp_path: Path) -> None:
    state = replace(Run(tmp_path / "m").state(), best_loss=0.1, position=Position(2, 0))
    run = Run(tmp_path / "m", keep_best=True, start=state)
    run.finish()
    assert run.model == 200


def test_an_output_that_cannot_be_saved_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("x")
    with pytest.raises(SaveError, match="it is a file"):
        Run(tmp_path / "m")
    (tmp_path / "n.checkpoint").mkdir()
    (tmp_path / "n.checkpoint" / "thesis.txt").write_text("x")
    Run(tmp_path / "n")
    with pytest.raises(SaveError, match="not a checkpoint of hogwild"):
        Run(tmp_path / "n", "1epoch")


# -- what cannot be written -------------------------------------------------------------------------------------


def in_the_way(path: Path) -> Path:
    """A file of the user's that came while the run went on."""
    path.mkdir(exist_ok=True)
    (path / "thesis.txt").write_text("years of work")
    return path / "thesis.txt"


def only(tmp_path: Path, pattern: str) -> Path:
    (found,) = tmp_path.glob(pattern)
    return found


def value(path: Path | str) -> float:
    return value_of(load_model(path, Tiny()).program)  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["done", "stopped"])
def test_a_model_that_cannot_be_written_goes_beside(tmp_path: Path, reason: str) -> None:
    run = Run(tmp_path / "m")
    in_the_way(tmp_path / "m")
    run.epoch_ends(1, 0.5)
    with pytest.raises(RescuedError, match=r"not a model of hogwild.* was saved to .*m\.rescued-") as caught:
        run.finish(reason)
    assert "\n" not in str(caught.value)
    assert value(caught.value.place) == 100
    place = only(tmp_path, "m.rescued-*")
    assert str(place) == caught.value.place
    assert place.stat().st_mode & 0o077 == 0
    assert (tmp_path / "m" / "thesis.txt").exists()
    assert run.checkpoint == ((1, 0) if reason == "stopped" else None)


def test_or_to_the_temporary_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("full", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    run = Run(tmp_path / "full" / "m", "1epoch")
    full_disk(monkeypatch, tmp_path / "full")
    run.epoch_ends(1, 0.5)
    with pytest.raises(RescuedError) as caught:
        run.finish("stopped")
    place = Path(caught.value.place)
    assert place == only(tmp_path, "temporary/hogwild-rescued-*/m")
    assert place.parent.stat().st_mode & 0o077 == 0
    assert value(place) == 100
    assert os.listdir(tmp_path / "full") == []
    assert load_checkpoint(place, Tiny(), {})[1].position == (1, 0)  # type: ignore[index]
    assert run.reader.resumes == place


def full_disk(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Nothing is written to any file under this directory."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(place)):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_nowhere_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = Run(tmp_path / "m", keep_best=True)
    full_disk(monkeypatch, tmp_path)
    run.epoch_ends(1, 0.5)
    (note,) = run.reader.notes
    assert "No space left" in note
    with pytest.raises(SaveError, match="No space left"):
        run.finish("stopped")
    assert os.listdir(tmp_path) == []


def test_a_best_model_that_was_lost_is_made_up_for_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = Run(tmp_path / "m", keep_best=True)
    full_disk(monkeypatch, tmp_path)
    run.epoch_ends(1, 0.5)
    monkeypatch.undo()
    run.epoch_ends(2, 0.7)
    run.finish()
    assert run.model == 200


def test_the_next_best_model_is_tried_in_its_place_again(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", "1epoch", keep_best=True)
    foreign = in_the_way(tmp_path / "m")
    run.epoch_ends(1, 0.5)
    run.epoch_ends(2, 0.4)
    place = only(tmp_path, "m.rescued-*")
    assert value(place) == 200
    (note,) = run.reader.notes  # said once
    assert str(place) in note
    # Whoever goes on from here has no best model in its place, and takes the next.
    assert load_checkpoint(tmp_path / "m", Tiny(), {})[1].best_loss == float("inf")  # type: ignore[index]
    foreign.unlink()
    run.epoch_ends(3, 0.3)
    assert run.model == 300
    assert "is gone" in run.reader.notes[-1]
    run.finish()
    assert sorted(os.listdir(tmp_path)) == ["m", "m.checkpoint"]
    assert load_checkpoint(tmp_path / "m", Tiny(), {})[1].best_loss == 0.3  # type: ignore[index]


def test_a_file_that_came_into_the_second_place_stays(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", keep_best=True)
    foreign = in_the_way(tmp_path / "m")
    run.epoch_ends(1, 0.5)
    kept = in_the_way(only(tmp_path, "m.rescued-*"))
    foreign.unlink()
    run.epoch_ends(2, 0.4)
    run.finish()
    assert run.model == 200
    assert kept.read_text() == "years of work"


def test_a_checkpoint_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", "1epoch")
    foreign = in_the_way(tmp_path / "m.checkpoint")
    run.epoch_ends(1, 0.5)
    run.epoch_ends(2, 0.4)
    (note,) = run.reader.notes
    assert "thesis.txt" in note or "not a checkpoint" in note
    assert run.reader.resumes is None
    foreign.unlink()
    run.epoch_ends(3, 0.3)
    assert run.checkpoint == (3, 0)
    assert run.reader.resumes == tmp_path / "m"
    run.finish()
    assert run.model == 300


def test_a_time_that_has_passed_asks_again_after_a_checkpoint_failed(tmp_path: Path) -> None:
    run = Run(tmp_path / "m", "3s")
    foreign = in_the_way(tmp_path / "m.checkpoint")
    for visits in (10, 20, 30):
        run.progress(0, visits)
    run.park_now(0, 30)
    foreign.unlink()
    for visits in (40, 50, 60):
        run.progress(0, visits)
    assert run.parked == 2
    run.park_now(0, 60)
    assert run.checkpoint == (0, 60)
