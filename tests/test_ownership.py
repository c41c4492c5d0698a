"""What is ours: made by us, marked, and out of the reach of others."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hogwild.ownership import (
    MARKER,
    SharedError,
    drop_marked,
    is_marked,
    make_marked,
    mark,
    open_private,
    private_directory,
    private_opener,
    remove_marked,
    why_shared,
)
from places import SOURCE

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
KIND, FILES = "a test", re.compile(r"[a-z]+")


@pytest.fixture
def mask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_what_is_made_is_private_whatever_the_umask(tmp_path: Path, umask: int, mask: None) -> None:
    os.umask(umask)
    made = private_directory(tmp_path / "a" / "b")
    directory, lock = make_marked(made, "c-", KIND)
    with open(directory / "file", "w", opener=private_opener) as file:
        file.write("x")
    os.close(lock)
    assert [mode(path) for path in (made.parent, made, directory)] == [0o700] * 3
    assert not any(mode(directory / name) & 0o077 for name in os.listdir(directory))


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o777, 0o1777, 0o720])
def test_a_directory_that_others_may_write_to_is_shared(tmp_path: Path, bits: int) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    place.chmod(bits)
    with pytest.raises(SharedError, match=r"others may write to .*cache"):
        private_directory(place)
    assert mode(place) == bits


def test_what_lies_where_others_can_exchange_it_is_shared(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    inner = private_directory(parent / "cache")
    parent.chmod(0o777)
    assert "others may write to" in why_shared(inner)
    parent.chmod(0o1777)  # as /tmp: others may add names, but not exchange ours
    assert why_shared(inner) == ""
    parent.chmod(0o755)
    assert why_shared(inner) == ""


@root_only
def test_what_belongs_to_another_is_shared(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    inner = private_directory(parent / "cache")
    os.chown(inner, NOBODY, NOBODY)
    assert why_shared(inner) == f"{inner} belongs to another user"
    os.chown(inner, 0, 0)
    os.chown(parent, NOBODY, NOBODY)
    assert why_shared(inner) == f"{parent} belongs to another user"


def test_a_link_is_resolved_before_it_is_looked_at(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "link").symlink_to(shared)
    with pytest.raises(SharedError):
        private_directory(tmp_path / "link")
    shared.chmod(0o700)
    assert private_directory(tmp_path / "link") == shared


def test_only_plain_files_of_ours_are_opened(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o644)
    os.close(open_private(file))
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing", "."):
        with pytest.raises(OSError):  # noqa: PT011
            open_private(tmp_path / name)
    file.chmod(0o664)
    with pytest.raises(SharedError, match="others may write to it"):
        open_private(file)
    if os.geteuid() == 0:
        file.chmod(0o644)
        os.chown(file, NOBODY, NOBODY)
        with pytest.raises(SharedError, match="not a plain file of this user's"):
            open_private(file)


def test_only_what_is_marked_is_removed_and_only_files_of_ours_in_it(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "a").write_text("mine")
    assert remove_marked(precious, KIND, FILES) == 0                 # no mark
    assert (precious / "a").exists()

    made, lock = make_marked(tmp_path, "made-", KIND)
    (made / "a").write_bytes(bytes(10))
    assert remove_marked(made, KIND, FILES) == 0                     # its maker lives
    os.close(lock)
    assert remove_marked(made, "another kind", FILES) == 0
    link = tmp_path / "link"
    link.symlink_to(made)
    with pytest.raises(OSError):                                     # noqa: PT011  # a link is not followed
        remove_marked(link, KIND, FILES)
    (made / "inside").symlink_to(precious)
    (made / "notes.txt").write_text("mine")
    assert remove_marked(made, KIND, FILES) == 10
    assert sorted(os.listdir(made)) == [MARKER, "inside", "notes.txt"]
    assert (precious / "a").exists()
    (made / "inside").unlink()
    (made / "notes.txt").unlink()
    assert remove_marked(made, KIND, FILES) == len(KIND)
    assert not made.exists()
    assert remove_marked(made, KIND, FILES) == 0                     # gone already


def test_folders_inside_are_emptied_but_no_link_to_one(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "a").write_text("mine")
    for inner in ("folder", "link"):
        made, lock = make_marked(tmp_path, "made-", KIND)
        if inner == "folder":
            (made / "entry").mkdir()
            (made / "entry" / "a").write_text("x")
            mark(made / "entry", KIND)
        else:
            (made / "entry").symlink_to(precious)
        drop_marked(made, lock, FILES, "entry")
        assert made.exists() == (inner == "link")
    assert (precious / "a").exists()


@root_only
def test_the_mark_of_another_is_none(tmp_path: Path) -> None:
    made, lock = make_marked(tmp_path, "made-", KIND)
    os.close(lock)
    assert is_marked(made, KIND)
    os.chown(made / MARKER, NOBODY, NOBODY)
    assert not is_marked(made, KIND)
    os.chown(made / MARKER, 0, 0)
    os.chown(made, NOBODY, NOBODY)
    assert not is_marked(made, KIND)


MAKE = """
import sys, pathlib
from hogwild.ownership import make_marked
made, lock = make_marked(pathlib.Path(sys.argv[1]), "made-", "a test")
print(made, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_leaves_can_be_removed(tmp_path: Path) -> None:
    paths = str(SOURCE)
    child = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert child.stdout is not None
    made = Path(child.stdout.readline().strip())
    assert remove_marked(made, KIND, FILES, orphans=True) == 0
    assert made.exists()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert remove_marked(made, KIND, FILES, orphans=True) == len(KIND)
    assert not made.exists()
