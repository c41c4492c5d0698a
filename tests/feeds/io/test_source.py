"""Sources: what they read, how blocks are cut, and what they say when they cannot."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from hogwild.config import FeedConfig
from hogwild.errors import InputError, SaveError
from hogwild.feeds.io import source, streams, workspace
from hogwild.feeds.io import source as hashes
from hogwild.feeds.io.source import Source, open_sources

TEXT = b"1 1:2\n" + b"0 3:4 5:6\n" * 5000 + b"\n-1 2:1\n"


def zstd(data: bytes) -> bytes:
    return pyarrow.compress(data, codec="zstd", asbytes=True)


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zstd": zstd,
}


def one(path: Path, **options: object) -> Source:
    (found,) = open_sources(path, FeedConfig(**options))  # type: ignore[arg-type]
    return found


def text_of(opened: Source, size: int = source.BLOCK) -> bytes:
    return b"".join(bytes(block) for _, block in opened.blocks(size))


@pytest.mark.parametrize("size", [16, 100, 4096, 1 << 21])
def test_blocks_are_cut_at_line_ends_and_numbered(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    at = 1
    for line, block in one(path).blocks(size):
        assert line == at
        assert bytes(block).endswith(b"\n")
        at += bytes(block).count(b"\n")
    assert text_of(one(path), size) == TEXT


def test_a_line_longer_than_a_block_comes_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x\n" + b"y" * 1000 + b"\nz\n")
    assert [(line, len(block)) for line, block in one(path).blocks(64)] == [(1, 2), (2, 1003)]


def test_a_missing_newline_is_added_and_a_byte_order_mark_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert text_of(one(path)) == b"one\r\ntwo\n"
    assert one(path).head(5) == b"\xef\xbb\xbfon"
    path.write_bytes(b"")
    assert list(one(path).blocks()) == []


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_compressed_files_are_read_by_their_content(tmp_path: Path, name: str) -> None:
    path = tmp_path / "no-telling-name"
    path.write_bytes(COMPRESSIONS[name](TEXT))
    assert text_of(one(path)) == TEXT
    assert one(path).local().read_bytes() == TEXT
    assert not one(path).plain()
    path.write_bytes(COMPRESSIONS[name](TEXT) * 2)  # members one after the other
    assert text_of(one(path)) == TEXT * 2


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_damaged_compressed_files_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "broken"
    whole = COMPRESSIONS[name](os.urandom(100_000))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=f"broken: the {name} data ends too early; copy"):
        text_of(one(path))
    path.write_bytes(whole[:8] + b"\xff" * 8 + whole[16:])
    with pytest.raises(InputError, match=f"broken: the {name} data"):
        text_of(one(path))


def test_a_plain_file_is_its_own_seekable_copy(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    assert one(path).local() == path


def test_globs_are_sorted_and_recursive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.svm", "a.svm", "deep/er/c.svm", "d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(TEXT)
    monkeypatch.chdir(tmp_path)
    assert [s.name for s in open_sources("*.svm")] == ["a.svm", "b.svm"]
    assert [s.name for s in open_sources(["d.txt", "**/*.svm"])] == ["d.txt", "a.svm", "b.svm", "deep/er/c.svm"]
    with pytest.raises(InputError, match=r"no file matches `\*\.csv`; check the pattern"):
        open_sources("*.csv")


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    path = tmp_path / "part[1].svm"
    path.write_bytes(TEXT)
    assert text_of(one(path)) == TEXT


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    (opened,) = open_sources("-")
    assert text_of(opened) == text_of(opened) == TEXT
    assert opened.place(3, 4) == "standard input:3:4"
    assert list(home.rglob("copy"))
    del opened
    assert not list(home.rglob("copy"))
    with pytest.raises(InputError, match="named twice"):
        open_sources(["-", "-"])


def test_a_named_pipe_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(TEXT,)).start()
    opened = one(path)
    assert text_of(opened) == text_of(opened) == TEXT


def test_a_command_reads_each_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    opened = one(path, pipe="head -1 | tr 1 7")
    assert opened.head(3) == b"7 7"
    assert text_of(opened) == b"7 7:2\n"
    assert opened.local().read_bytes() == b"7 7:2\n"
    assert text_of(one(path, pipe="gzip -c")) == TEXT


def test_a_command_is_run_once_for_head_and_blocks(tmp_path: Path) -> None:
    path, log = tmp_path / "a", tmp_path / "log"
    path.write_bytes(TEXT)
    opened = one(path, pipe=f"echo run >> {log}; cat")
    opened.head()
    assert text_of(opened) == TEXT
    assert log.read_text() == "run\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cat; echo so bad >&2; exit 3", r"a: the command `.*` failed with exit code 3: so bad\. Correct --pipe"),
        ("no-such-command-here", r"exit code 127: .*no-such-command-here"),
        ("kill -9 $$", "was ended by signal 9"),
    ],
)
def test_a_command_that_fails_is_an_error(tmp_path: Path, command: str, message: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1 1:1\n")
    with pytest.raises(InputError, match=message):
        text_of(one(path, pipe=command))


def test_a_command_that_is_not_read_to_its_end_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    opened = one(path, pipe="yes")
    begun = time.monotonic()
    blocks = opened.blocks(1 << 12)
    next(blocks)
    blocks.close()
    assert time.monotonic() - begun < 10


def test_missing_directory_and_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nothing\.svm does not exist; check the path"):
        one(tmp_path / "nothing.svm")
    with pytest.raises(InputError, match="is a directory; name a file"):
        one(tmp_path)
    with pytest.raises(InputError, match="no input file is given"):
        open_sources([])

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "a"
    path.write_bytes(TEXT)
    monkeypatch.setattr(streams, "open", refuse, raising=False)
    with pytest.raises(InputError, match="a cannot be read: permission denied"):
        one(path)


@pytest.mark.parametrize(("size", "before"), [(1 << 12, b""), (1 << 12, b"short\n"), (1 << 20, b"short\nshort\n")])
def test_a_line_that_is_too_long_has_its_place(tmp_path: Path, size: int, before: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(before + b"x" * 50_000 + b"\nshort\n")
    line = before.count(b"\n") + 1
    with pytest.raises(InputError, match=f"a:{line}: the line is longer than 40000 bytes"):
        list(one(path, max_line=40_000).blocks(size))
    assert len(list(one(path, max_line=50_000).blocks(size)))


def test_a_line_of_a_gigabyte_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="a:1: the line is longer than 1048576 bytes"):
            list(one(path, max_line=1 << 20).blocks(1 << 16))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_the_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(TEXT)
    second.write_bytes(TEXT)
    before = one(first).fingerprint()
    assert before == one(second).fingerprint()
    first.write_bytes(TEXT[::-1])
    assert before != one(first).fingerprint()


def test_an_unchanged_file_is_not_hashed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    monkeypatch.setattr(hashes, "_SETTLED", -1)
    before = one(path).fingerprint()
    calls: list[object] = []
    remember = hashes._remember  # what was hashed is noted
    monkeypatch.setattr(hashes, "_remember", lambda *args: calls.append(args) or remember(*args))
    assert one(path).fingerprint() == before
    assert not calls
    path.write_bytes(TEXT[:-2] + b"9\n")  # as long as before
    assert one(path).fingerprint() != before
    assert len(calls) == 1


def test_a_file_that_was_just_written_is_not_noted(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    one(path).fingerprint()
    assert not list(home.rglob("*.json"))


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    opened = one(path)
    opened.check_unchanged()
    path.write_bytes(TEXT * 2)
    with pytest.raises(InputError, match="a changed while it was read"):
        opened.check_unchanged()
    with pytest.raises(InputError, match="a changed while it was read"):
        opened.fingerprint()


def test_workspaces_of_ended_processes_are_swept(home: Path) -> None:
    ours = workspace.make_workspace("test")
    dead = workspace.make_workspace("dead")
    (dead / "data").write_bytes(bytes(1000))
    workspace.release(dead)  # as the system does when a process ends
    assert workspace.sweep() == 1000 + len(workspace.KIND)
    assert ours.exists()
    assert not dead.exists()
    workspace.drop_workspace(ours)
    assert not ours.exists()


def test_workspaces_that_others_made_are_not_swept(home: Path, tmp_path: Path) -> None:
    dead = workspace.make_workspace("dead")
    workspace.release(dead)
    named = dead.with_name(f"{workspace.PREFIX}mine-{'0' * 16}")
    named.mkdir()
    (named / "data").write_bytes(bytes(1000))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    (dead / "link").symlink_to(elsewhere)
    dead.with_name(f"{workspace.PREFIX}link-{'1' * 16}").symlink_to(elsewhere)
    assert workspace.sweep() == 0
    assert (named / "data").exists()
    assert (elsewhere / "precious").exists()
    assert dead.exists()  # it holds a link, which is not ours


def test_a_full_disk_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    monkeypatch.setattr(source.shutil, "copyfileobj", full)
    with pytest.raises(SaveError, match=r"cannot be written: No space left on device; free space"):
        open_sources("-")
    assert not list(home.rglob("copy"))
