"""Ids that one process appends and another reads at the same time."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.cluster.text import textfeed
from hogwild.cluster.text.textfeed import Appender, TextFeed
from hogwild.errors import InputError, SaveError
from places import SOURCE

SIZE = 300_000
PATIENCE = 60.0  # seconds; cores may be busy


def expected(size: int = SIZE) -> Any:
    """No id is 0, as what was not written yet is."""
    return (np.arange(size) * 2654435761 % 1_000_003 + 1).astype(np.int32)


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from hogwild.cluster.text.textfeed import Appender
path, size, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ids = (np.arange(size) * 2654435761 % 1_000_003 + 1).astype(np.int32)
rng = np.random.default_rng(size)
with Appender(path, size) as appender:
    print("made", flush=True)
    sys.stdin.readline()
    while appender.ready < stop:
        start = appender.ready
        appender.write(ids[start : min(stop, start + int(rng.choice([0, 1, 3, 100, 1023, 1024, 5000, 20000])))])
    print("written", flush=True)
    sys.stdin.readline()
"""


def start_writer(path: Path, stop: int) -> subprocess.Popen[str]:
    """A process that has made the file, and writes when it gets a line."""
    command = [sys.executable, "-c", WRITER, str(path), str(SIZE), str(stop)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "made\n"
    return writer


def tell(writer: subprocess.Popen[str]) -> None:
    assert writer.stdin is not None
    writer.stdin.write("\n")
    writer.stdin.flush()


def test_every_id_that_is_ready_is_right(tmp_path: Path) -> None:
    with start_writer(tmp_path / "ids", SIZE) as writer:
        feed = TextFeed.open(tmp_path / "ids")
        assert (len(feed), feed.ready) == (SIZE, 0)
        assert not feed.ids.any()
        assert not feed.wait(1, seconds=0.01)
        tell(writer)
        right, seen = expected(), 0
        while seen < SIZE:
            assert feed.wait(seen + 1, PATIENCE)
            ready = feed.ready
            assert seen < ready <= SIZE
            assert (feed.ids[seen:ready] == right[seen:ready]).all()
            seen = ready
        assert feed.wait(SIZE + 1, seconds=0), "there are no more than all"
        tell(writer)
        assert writer.wait(PATIENCE) == 0
    assert (feed.ids == right).all()


def test_a_writer_that_dies_leaves_what_it_has_written(tmp_path: Path) -> None:
    stop = SIZE // 3
    with start_writer(tmp_path / "ids", stop) as writer:
        feed = TextFeed.open(tmp_path / "ids")
        tell(writer)
        assert feed.wait(stop, PATIENCE)
        writer.send_signal(signal.SIGKILL)
        writer.wait(PATIENCE)
    begin = time.monotonic()
    assert not feed.wait(stop + 1, seconds=0.2)
    assert time.monotonic() - begin >= 0.2
    assert feed.ready == stop
    assert (feed.ids[:stop] == expected()[:stop]).all()
    assert not feed.ids[stop:].any()


def test_arrays_are_as_compiled_code_wants_them(tmp_path: Path) -> None:
    with Appender(tmp_path / "ids", 4) as appender:
        feed = TextFeed.open(appender.path)
        appender.write(np.array([3, 1, 4, 1, 5, 9], np.int64)[::2].astype(np.int32))
        appender.write(np.arange(6, dtype=np.int32)[5:])
    assert feed.ids.tolist() == [3, 4, 5, 5]
    assert feed.ids.dtype == np.int32
    assert feed.ids.flags.writeable
    assert feed.ids.flags.c_contiguous
    assert feed.ids.ctypes.data % 64 == 0


def test_a_text_without_ids(tmp_path: Path) -> None:
    with Appender(tmp_path / "ids", 0) as appender:
        appender.write(np.empty(0, np.int32))
        feed = TextFeed.open(appender.path)
    assert (len(feed), feed.ready, feed.wait(1, seconds=0)) == (0, 0, True)


def test_no_more_ids_than_there_is_room_for(tmp_path: Path) -> None:
    with Appender(tmp_path / "ids", 2) as appender:
        appender.write(np.array([1], np.int32))
        with pytest.raises(ValueError, match="3 ids for a text of 2"):
            appender.write(np.array([2, 3], np.int32))
        assert appender.ready == 1
    assert os.path.getsize(tmp_path / "ids") == 64 + 2 * 4


def test_only_this_user_can_read_it_and_no_link_is_followed(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Appender(tmp_path / "ids", 2).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "ids").st_mode) == 0o600
    for name, target in (("link", "ids"), ("hanging", "elsewhere")):
        (tmp_path / name).symlink_to(tmp_path / target)
        with pytest.raises(SaveError, match=f"{name} cannot be written"):
            Appender(tmp_path / name, 2)
        with pytest.raises(InputError, match=f"{name} cannot be mapped"):
            TextFeed.open(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(SaveError, match="ids cannot be written: File exists"):
        Appender(tmp_path / "ids", 2)
    os.chmod(tmp_path / "ids", 0o622)
    with pytest.raises(InputError, match="others may write to it"):
        TextFeed.open(tmp_path / "ids")


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    Appender(path, 4).close()
    whole = path.read_bytes()
    huge = whole[:8] + (2**62).to_bytes(8, "little") + whole[16:]
    for data in (b"", whole[:40], whole[:64], whole[:-1], whole + b"\0", b"\0" * len(whole), huge):
        path.write_bytes(data)
        with pytest.raises(InputError, match="is not the text of a node; it is damaged, or another file"):
            TextFeed.open(path)
    path.write_bytes(whole)
    assert len(TextFeed.open(path)) == 4
    with pytest.raises(InputError, match="missing cannot be mapped: No such file"):
        TextFeed.open(tmp_path / "missing")


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(textfeed.os, "posix_fallocate", full, raising=False)
        with pytest.raises(SaveError, match=r"ids cannot be written: No space left on device; free space"):
            Appender(tmp_path / "ids", 9)
    assert not (tmp_path / "ids").exists()
    with Appender(tmp_path / "ids", 9) as appender:
        monkeypatch.setattr(textfeed.os, "pwrite", full)
        with pytest.raises(SaveError, match="No space left"):
            appender.write(np.ones(3, np.int32))
        assert appender.ready == 0
