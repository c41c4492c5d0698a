"""Logs of a run: JSON lines, TensorBoard, and both together."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hogwild.errors import SaveError
from hogwild.executor.events import EpochEnded, Parked, Progress, Watched
from hogwild.observe import logs as tensorboard
from hogwild.observe.logs import JsonLines, Logs, TensorBoard, plain, scalars

PROGRESS = Progress(
    1.0, 0, 100, total=1000, loss=math.nan, lr=0.1, samples_per_second=5.0, units_per_second=50.0,
    seconds_left=math.inf, balance=(1.0,),
)  # fmt: skip
WATCHED = Watched(2.0, 0, 300, {"norm(w)": 1.5, "w": [[1.0, 2.0], [3.0, 4.0]], "n": 3})
EPOCH = EpochEnded(
    3.0, 1, 500, loss=0.4, lr=0.1, epoch_seconds=1.5, metrics={"accuracy": 0.9},
    trace=({"worker": 0, "error_rate": 0.25, "delayed": 3, "looked_at": 4, "delay": {"mean": 1.5}},),
)  # fmt: skip


def lines_of(directory):
    return [json.loads(line) for line in (Path(directory) / "events.jsonl").read_text().splitlines()]


def test_events_become_lines(tmp_path):
    with JsonLines(tmp_path / "new" / "log") as log:
        for event in (PROGRESS, WATCHED, EPOCH):
            log(event)
            assert lines_of(tmp_path / "new" / "log")[-1]["event"] == event.kind    # flushed at once
    progress, watched, epoch = lines_of(tmp_path / "new" / "log")
    assert progress["loss"] is None             # NaN is not JSON
    assert progress["seconds_left"] is None
    assert watched["values"]["w"] == [[1.0, 2.0], [3.0, 4.0]]
    assert epoch["metrics"] == {"accuracy": 0.9}
    assert epoch["time"] > 1e9


def test_progress_is_thinned_and_runs_are_appended(tmp_path):
    for _ in range(2):
        with JsonLines(tmp_path) as log:
            for _ in range(50):
                log(PROGRESS)
    assert [line["event"] for line in lines_of(tmp_path)] == ["progress"] * 2


def test_a_log_that_cannot_be_opened(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError, match="choose another --log-dir"):
        JsonLines(tmp_path / "file")


def test_a_full_disk_ends_the_log_not_the_run(tmp_path):
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    with JsonLines(tmp_path) as log:
        log(EPOCH)
        log(EPOCH)
        assert "No space left" in log.problem
    with Logs(str(tmp_path)) as logs:
        logs(EPOCH)
        assert any("No space left" in note for note in logs.notes)


def test_plain():
    assert plain({"a": (1.0, math.nan), 2: [math.inf, "x", True]}) == {"a": [1.0, None], "2": [None, "x", True]}


def test_scalars_of_watched_arrays():
    assert dict(scalars(WATCHED)) == {
        "watch/norm(w)": 1.5, "watch/n": 3.0,
        "watch/w/0,0": 1.0, "watch/w/0,1": 2.0, "watch/w/1,0": 3.0, "watch/w/1,1": 4.0,
    }  # fmt: skip
    many = Watched(1.0, 0, 1, {"w": [float(k) for k in range(101)]})
    assert dict(scalars(many)) == {"watch/w/min": 0.0, "watch/w/mean": 50.0, "watch/w/max": 100.0}
    assert list(scalars(Parked(1.0, 0, 1))) == []


@pytest.mark.full
def test_tensorboard_reads_back_what_was_written(tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoard(tmp_path) as board:
        for event in (PROGRESS, WATCHED, EPOCH):
            board(event)
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert "train/loss" not in found.Tags()["scalars"]      # it was NaN
    point = found.Scalars("watch/norm(w)")[0]
    assert (point.step, point.value) == (300, 1.5)
    assert found.Scalars("valid/accuracy")[0].value == pytest.approx(0.9)
    assert found.Scalars("trace/error_rate/worker 0")[0].value == 0.25
    assert found.Scalars("trace/delayed_rate/worker 0")[0].value == 0.75
    assert found.Scalars("train/lr")[0].step == 100


def test_a_full_disk_ends_the_curves_not_the_run(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    monkeypatch.setattr(tensorboard, "open", lambda path, mode: open("/dev/full", mode), raising=False)  # noqa: SIM115
    with TensorBoard(tmp_path) as board:
        board(EPOCH)
        board(EPOCH)
        assert "TensorBoard: No space left" in board.problem


def test_without_the_extra_there_are_json_lines_and_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard, "available", lambda: False)
    with Logs(str(tmp_path)) as logs:
        logs(EPOCH)
    assert "pip install" in logs.notes[0]
    assert [path.name for path in tmp_path.iterdir()] == ["events.jsonl"]


def test_no_directory_no_logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Logs("") as logs:
        logs(EPOCH)
    assert logs.notes == []
    assert list(tmp_path.iterdir()) == []
