"""What another user of the machine may try in a folder that both may write to. He is a child with another uid.

What he may try with compiled code is in kernels/compiler/test_codecache.py.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild.errors import HogwildWarning, ModelError, SaveError
from hogwild.feeds.storage import cache
from hogwild.ownership import MARKER
from places import SOURCE
from system import NOBODY, as_another_user, shared_place

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

LONG = 60  # seconds after which something hangs


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder like /tmp, for all users."""
    with shared_place(0o1777) as place:
        yield place


@pytest.fixture(scope="module")
def program() -> hogwild.Linear:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    feed = hogwild.feed_of(X, ["no", "no", "yes", "yes"])
    return hogwild.train(hogwild.Linear(), feed, epochs=2, lr=0.1, mode="serial", quiet=True)


def as_another(attack: Callable[[Path], None], place: Path) -> None:
    """Let another user do it, who has no umask either."""

    def act() -> str:
        os.umask(0)
        attack(place)
        return "done"

    assert as_another_user(act) == "done"


def names_of(target: str) -> list[str]:
    """Names beside a model that saves use or have used."""
    return [f".{target}.hogwild-{'0' * 16}", f".{target}.tmp-1-00000000", f".{target}.old-1-00000000"]


def test_links_beside_an_output_are_not_followed(common: Path, tmp_path: Path, program: hogwild.Linear) -> None:
    other = tmp_path / "other"
    hogwild.save_model(other, program)
    before = {path.name: path.read_bytes() for path in other.iterdir()}

    def attack(place: Path) -> None:
        for name in names_of("m"):
            (place / name).symlink_to(other)
        for name in (f".m.hogwild-{'1' * 16}", ".m.tmp-2-00000000"):
            (place / name).mkdir()
            (place / name / MARKER).write_text("hogwild saving")
            for inner in ("new", "old-0"):
                (place / name / inner).symlink_to(other)
            for file in before:
                (place / name / file).symlink_to(other / file)

    as_another(attack, common)
    planted = sorted(path.name for path in common.iterdir())
    for _ in range(2):
        hogwild.save_model(common / "m", program)
    assert {path.name: path.read_bytes() for path in other.iterdir()} == before
    assert sorted(path.name for path in common.iterdir()) == sorted([*planted, "m"])
    assert hogwild.load_model(common / "m").program.name == "linear"


def test_a_missing_model_is_not_replaced_by_one_of_his(common: Path, tmp_path: Path, program: hogwild.Linear) -> None:
    evil = tmp_path / "evil"
    hogwild.save_model(evil, program)
    files = {path.name: path.read_bytes() for path in evil.iterdir()}

    def attack(place: Path) -> None:
        for name in names_of("m"):
            for inner in (".", "old-0", "new"):
                (place / name / inner).mkdir(exist_ok=True)
                for file, content in files.items():
                    (place / name / inner / file).write_bytes(content)
            (place / name / MARKER).write_text("hogwild saving")

    as_another(attack, common)
    with pytest.raises(ModelError, match="there is no such model"):
        hogwild.load_model(common / "m")
    hogwild.save_model(common / "m", program)
    assert all((common / name / "old-0" / "config.json").exists() for name in names_of("m"))


SAVE = """
import sys, numpy as np, hogwild
feed = hogwild.feed_of(np.array([[0.0], [1.0]]), ["no", "yes"])
program = hogwild.train(hogwild.Linear(), feed, epochs=1, lr=0.1, mode="serial", quiet=True)
hogwild.save_model(sys.argv[1], program)
print(hogwild.load_model(sys.argv[1]).program.name)
"""


def test_a_lock_on_the_folder_hangs_nobody(common: Path) -> None:
    def hold(place: Path, ready: multiprocessing.synchronize.Event, over: multiprocessing.synchronize.Event) -> None:
        os.setuid(NOBODY)
        fcntl.flock(os.open(place, os.O_RDONLY), fcntl.LOCK_EX)
        ready.set()
        over.wait(2 * LONG)

    context = multiprocessing.get_context("fork")
    ready, over = context.Event(), context.Event()
    holder = context.Process(target=hold, args=(common, ready, over))
    holder.start()
    try:
        assert ready.wait(LONG)
        done = subprocess.run(
            [sys.executable, "-c", SAVE, str(common / "m")], env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
    finally:
        over.set()
        holder.join(LONG)
    assert done.stdout == "linear\n", done.stderr


def test_a_pipe_in_the_place_of_a_file_hangs_nobody(common: Path, program: hogwild.Linear) -> None:
    def attack(place: Path) -> None:
        (place / "m").mkdir()
        os.mkfifo(place / "m" / "config.json")
        os.mkfifo(place / "n")

    as_another(attack, common)
    for name in ("m", "n"):
        with pytest.raises(SaveError, match=r"cannot save|is not a model of hogwild"):
            hogwild.save_model(common / name, program)
        with pytest.raises(ModelError):
            hogwild.load_model(common / name)


@pytest.mark.parametrize("whose", ["the home", "the entry"])
def test_a_feed_of_his_is_not_used(common: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str) -> None:
    """He has read the same file and left another one's arrays under its key."""
    (tmp_path / "a.svm").write_text("1 1:0.5 3:2\n0 3:1 7:1\n")
    monkeypatch.setenv("HOGWILD_CACHE", str(common / "cache"))
    key = hogwild.open_feed(tmp_path / "a.svm").fingerprint
    entry = common / "cache" / "feeds" / key
    (entry / "targets").write_bytes(np.zeros(2, np.float32).tobytes())
    top = common / "cache" if whose == "the home" else entry
    for path in (top, *top.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    if whose == "the home":
        with pytest.warns(HogwildWarning, match="belongs to another user, so that the cache is not used"):
            feed = hogwild.open_feed(tmp_path / "a.svm")
    else:
        feed = hogwild.open_feed(tmp_path / "a.svm")
        cache.clear()
        assert entry.exists()
    assert feed.samples.targets.tolist() == [1, 0]
    shutil.rmtree(common / "cache")
