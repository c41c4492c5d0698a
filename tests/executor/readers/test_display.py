"""The progress display, fed with events made by hand."""

from __future__ import annotations

import io
import math
import re
import time
from dataclasses import replace

import pytest

from hogwild.executor.events import EpochEnded, Finished, Progress, Started, Watched
from hogwild.executor.readers import display
from hogwild.executor.readers.display import count, draw, duration, epoch_text, show_progress


def at(samples, **changes):
    values = {
        "seconds": 1.0, "epoch": samples // 500, "samples": samples, "total": 1000, "loss": 0.25, "lr": 0.1,
        "samples_per_second": 1.3e6, "units_per_second": 1e8, "seconds_left": 75.0, "balance": (0.52, 0.48),
    }  # fmt: skip
    return Progress(**{**values, **changes})


STARTED = Started(
    0.0, 0, 0, total=1000, threads=2, mode="hogwild", sharing="hot", lr=0.1, compile_seconds=1.0, notes=("chosen.",)
)
EPOCH = EpochEnded(1.0, 1, 500, loss=0.4, lr=0.1, epoch_seconds=1.5, metrics={"accuracy": 0.9}, best=True)
FINISHED = Finished(
    2.0, 2, 1000, reason="done", loss=0.4, units=9, train_seconds=2.0, evaluate_seconds=0.0,
    samples_per_second=500.0, units_per_second=1e4,
)  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(events, stream, **options):
    with show_progress(stream=stream, **options) as show:
        for event in events:
            show(event)
    return stream.getvalue()


def wait_for(stream, pattern):
    """Until a thread has written this, however busy the cores are."""
    deadline = time.monotonic() + 60
    while not re.search(pattern, stream.getvalue(), re.DOTALL):
        assert time.monotonic() < deadline, stream.getvalue()
        time.sleep(0.01)


def test_words():
    assert [count(x) for x in (0, 12.34, 950, 999_600, 1_234_567, 2.5e9)] == [
        "0", "12.3", "950", "1M", "1.23M", "2.5G",
    ]  # fmt: skip
    assert [duration(x) for x in (0.2, 7, 754, 3723, -1)] == ["0:00", "0:07", "12:34", "1:02:03", "0:00"]
    assert count(math.nan) == duration(math.nan) == duration(math.inf) == "?"


def test_plain_lines_tell_the_whole_story():
    text = shown(
        [STARTED, at(100), Watched(1.0, 0, 400, {"norm(w)": 1.23456789, "w[0]": [1.0, -2]}), EPOCH, FINISHED],
        io.StringIO(), epochs=2,
    )  # fmt: skip
    lines = text.splitlines()
    assert lines[0].startswith("hogwild: 2 workers, sharing hot")
    assert lines[1] == "note: chosen."
    assert lines[2] == "400 samples: norm(w) = 1.2346  w[0] = [1, -2]"
    assert lines[3] == "epoch 1/2  loss 0.4000  1.50 s  valid accuracy 0.9000  (best)"
    assert lines[4].startswith("done: 1k samples in 2.00 s, 500 samples/s")
    assert len(lines) == 5      # progress within the first seconds is not worth a line
    assert "\x1b" not in text


def test_an_epoch_shows_the_metrics_that_matter():
    event = replace(EPOCH, metrics={"loss": 0.5, "accuracy": 0.9, "precision": 0.7, "f1": 0.8})
    line = epoch_text(event, 2)
    assert line == "epoch 1/2  loss 0.4000  1.50 s  valid loss 0.5000  accuracy 0.9000  f1 0.8000  (best)"


def test_plain_progress_comes_at_most_every_few_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    with show_progress(stream=stream) as show:
        show(STARTED)
        for _ in range(200):        # 20 seconds of ten events a second
            now[0] += 0.1
            show(at(250))
    lines = [line for line in stream.getvalue().splitlines() if "left" in line]
    assert 3 <= len(lines) <= 4
    assert lines[0] == " 25%  loss 0.2500  1.3M samples/s  lr 0.1  1:15 left  workers 52% 48%"


def test_what_the_user_counts_in(monkeypatch):
    started = replace(STARTED, unit="words", each=32.0)
    watched = Watched(1.0, 0, 400, {"norm(w)": 1.0})
    lines = shown([started, watched, FINISHED], io.StringIO(), epochs=2).splitlines()
    assert lines[0].endswith("32k words to visit, learning rate 0.1")
    assert lines[2] == "12.8k words: norm(w) = 1"
    assert lines[3] == "done: 32k words in 2.00 s, 16k words/s"
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with show_progress(stream=(stream := io.StringIO())) as show:
        show(started)
        now[0] += 60
        show(at(250))
    assert "  41.6M words/s  " in stream.getvalue()
    assert "  41.6M words/s  " in draw(at(437), 2, 100, told=display.Told("words", 32.0)).plain


def test_trace_is_part_of_the_epoch_line():
    entry = {"gradients": 800, "looked_at": 80, "errors": 4, "delayed": 12}
    epoch = EpochEnded(1.0, 1, 500, loss=0.4, lr=0.1, epoch_seconds=1.5, trace=(entry, entry))
    assert "gradient errors 5.00%, delayed 15.00%" in shown([epoch], io.StringIO())


def test_quiet_is_silent():
    assert shown([STARTED, at(100), EPOCH, FINISHED], Terminal(), quiet=True) == ""


def test_compiling_is_named_only_when_it_takes_long(monkeypatch):
    monkeypatch.setattr(display, "_PATIENCE", 0.05)
    stream = io.StringIO()
    with show_progress(stream=stream) as show:
        wait_for(stream, r"\n")
        show(STARTED)
    assert stream.getvalue().startswith("compiling (first run only)\n")
    monkeypatch.setattr(display, "_PATIENCE", 600.0)
    assert "compiling" not in shown([STARTED, FINISHED], io.StringIO())


@pytest.mark.parametrize("width", [1, 5, 12, 20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_bar_never_breaks_a_line(width, ascii_only):
    for event in (at(0, loss=math.nan, seconds_left=math.nan, samples_per_second=0.0), at(437), at(1000)):
        line = draw(event, 2, width, ascii_only).plain
        assert len(line) <= max(width, 6)
        assert not ascii_only or line.isascii()


def test_the_bar_keeps_what_matters_most():
    wide, narrow = draw(at(437), 2, 100).plain, draw(at(437), 2, 40).plain
    for part in ("44%", "epoch 1/2", "1:15 left", "1.3M/s", "loss 0.2500", "lr 0.1", "workers 52% 48%"):
        assert part in wide
    assert "44%" in narrow
    assert "1:15 left" in narrow
    assert "workers" not in narrow


def test_a_crowd_of_workers_is_summed_up():
    assert "workers 64, 1.0% to 2.0%" in draw(at(10, balance=(0.01, *[0.015] * 62, 0.02)), 2, 200).plain


def test_the_bar_moves_with_epochs_too_short_for_progress(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with show_progress(stream=stream, epochs=2) as show:
        show(STARTED)
        show(at(40))
        show(EPOCH)
        wait_for(stream, r" 50%  epoch 2/2 ")
        show(replace(EPOCH, epoch=2, samples=1000))
        wait_for(stream, r" 50%  epoch 2/2 .*100%  epoch 2/2 ")


def test_the_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    with show_progress(stream=stream, epochs=2) as show:
        show(STARTED)
        show(at(437))
        wait_for(stream, r"44%")
        show(EPOCH)
        show(FINISHED)
    text = stream.getvalue()
    assert "━" in text
    assert "44%" in text
    assert "epoch 1/2  loss 0.4000" in text
    assert "done: 1k samples" in text
    assert "━" not in text.split("done: 1k samples")[1]     # the bar is gone at the end
