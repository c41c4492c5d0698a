"""Replacing a model: what is not ours stays, a failing disk harms nothing, and so does being killed at any moment."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.errors import SaveError
from hogwild.programs import store
from hogwild.programs.saving import directory
from hogwild.programs.store import check_model_output, load_model, save_model
from problems.killed import kill_while_saving
from problems.tiny import Tiny, save, value_at, value_of
from system import mounted


@pytest.fixture(autouse=True)
def known_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(store.PROGRAMS, "tiny", "problems.tiny:Tiny")


@pytest.fixture(params=["exchange", "two renames"])
def replacing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of replacing a directory."""
    if request.param == "two renames":
        monkeypatch.setattr(directory, "_exchange", lambda one, other: False)
    return str(request.param)


# -- replacing --------------------------------------------------------------------------------------------------


def test_replacing_leaves_nothing_beside(tmp_path: Path, replacing: str) -> None:
    for value in range(3):
        save(tmp_path / "m", value)
        assert value_at(tmp_path / "m") == value
        assert os.listdir(tmp_path) == ["m"]


def _foreign(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")


def _own_config(path: Path) -> None:
    path.mkdir()
    (path / "config.json").write_text('{"format": "my app"}')


def _addition(path: Path) -> None:
    save(path)
    (path / "thesis.txt").write_text("years of work")


def _subdirectory(path: Path) -> None:
    save(path)
    (path / "figures").mkdir()


def _file(path: Path) -> None:
    path.write_text("years of work")


def _damaged(path: Path) -> None:
    save(path)
    (path / "config.json").write_text("{")


@pytest.mark.parametrize("make", [_foreign, _own_config, _addition, _subdirectory, _file, _damaged])
def test_what_is_not_ours_stays(tmp_path: Path, make: Any, replacing: str) -> None:
    make(tmp_path / "m")
    before = _listing(tmp_path)
    for attempt in (save, check_model_output):
        with pytest.raises(SaveError, match=r"choose another place|move it") as caught:
            attempt(tmp_path / "m")
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 1
        assert _listing(tmp_path) == before


@pytest.mark.parametrize("come", [_foreign, _own_config, _file])
def test_what_comes_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, come: Any, replacing: str
) -> None:
    path, name = save(tmp_path / "m", 1.0), "_exchange" if replacing == "exchange" else "_set_aside"
    real, came = getattr(directory, name), []

    def late(one: Path, *more: Any) -> Any:
        if not came:
            shutil.rmtree(path)
            came.append(come(path) or _listing(tmp_path / "m"))
        return real(one, *more)

    monkeypatch.setattr(directory, name, late)
    with pytest.raises(SaveError, match=r"choose another place|move it"):
        save(path, 2.0)
    assert [_listing(path)] == came
    assert os.listdir(tmp_path) == ["m"]


def test_the_working_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(SaveError, match="inside it"):
        save(Path("."))


def _listing(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() if file.is_file() else b"" for file in path.rglob("*")}


# -- the disk fails ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    with mounted(tmp_path / "disk", "64k") as place:
        yield place


def test_full_disk(small_disk: Path) -> None:
    path = save(small_disk / "m", 1.0)
    with pytest.raises(SaveError, match=r"No space left.*free some space") as caught:
        save_model(path, Tiny(rows=100_000, value=2.0))
    assert "\n" not in str(caught.value)
    assert value_at(path) == 1.0
    assert os.listdir(small_disk) == ["m"]
    with pytest.raises(SaveError, match="mount point"):
        save(small_disk)


def test_read_only_disk(small_disk: Path) -> None:
    path = save(small_disk / "m", 1.0)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for attempt in (save, check_model_output):
        with pytest.raises(SaveError, match="Read-only file system"):
            attempt(path)
    with pytest.raises(SaveError, match="Read-only file system"):
        check_model_output(small_disk / "new" / "m")
    assert value_at(path) == 1.0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "mkdir", "rename"])
def test_any_failing_call_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str, replacing: str
) -> None:
    path = save(tmp_path / "m", 1.0)

    def fail(*args: Any, **more: Any) -> None:
        raise OSError(number, os.strerror(number))

    if call == "rename" and replacing == "exchange":
        monkeypatch.setattr(directory, "_exchange", fail)
    else:
        monkeypatch.setattr(os, call, fail)
    with pytest.raises(SaveError, match=os.strerror(number)):
        save(path, 2.0)
    monkeypatch.undo()
    monkeypatch.setitem(store.PROGRAMS, "tiny", "problems.tiny:Tiny")
    assert value_at(path) == 1.0
    assert os.listdir(tmp_path) == ["m"]


def test_the_second_of_two_renames_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, calls = save(tmp_path / "m", 1.0), os.rename, []

    def rename(one: Any, other: Any) -> None:
        calls.append(other)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        real(one, other)

    monkeypatch.setattr(directory, "_exchange", lambda one, other: False)
    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(SaveError, match="Input/output"):
        save(path, 2.0)
    assert len(calls) == 3
    assert value_at(path) == 1.0
    assert os.listdir(tmp_path) == ["m"]


def test_the_parent_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SaveError, match="choose another place"):
        save(tmp_path / "file" / "m")


# -- killed -----------------------------------------------------------------------------------------------------

STEPS = ("mkdir", "open", "fsync", "rename", "unlink", "rmdir")


def _die_at(step: int, replacing: str) -> None:
    """End this process without any clearing up just before (even) or after (odd) a call of the system."""
    calls = [0]

    def wrap(module: Any, name: str) -> None:
        real = getattr(module, name)

        def counted(*args: Any, **more: Any) -> Any:
            calls[0] += 1
            if calls[0] * 2 - 2 == step:
                os._exit(9)
            after = calls[0] * 2 - 1 == step
            try:
                return real(*args, **more)
            finally:
                if after:
                    os._exit(9)

        setattr(module, name, counted)

    for name in STEPS:
        wrap(os, name)
    if replacing == "exchange":
        wrap(directory, "_exchange")


def test_killed_before_and_after_every_call_of_the_system(tmp_path: Path, replacing: str) -> None:
    path = save(tmp_path / "m", 0.0)
    step, value, died, seen = 0, 0.0, True, {False: 0, True: 0}
    while died:
        child = os.fork()
        if child == 0:
            _die_at(step, replacing)
            save(path, value + 1)
            os._exit(0)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        found = value_at(path)
        assert found in (value, value + 1)
        seen[found > value] += 1
        value, step = found, step + 1
    assert value_at(path) == value
    assert step > 20
    assert min(seen.values()) > 3  # died before the new model was in place, and after
    save(path, -1.0)
    assert os.listdir(tmp_path) == ["m"]  # all that was left beside is swept away


def test_killed_between_two_renames_the_old_model_is_read_and_then_put_back(tmp_path: Path) -> None:
    path = save(tmp_path / "m", 1.0)
    child = os.fork()
    if child == 0:
        directory._exchange = lambda one, other: False
        directory._set_aside = lambda target, old, check: (os.rename(target, old), os._exit(9))  # type: ignore
        save(path, 2.0)
    os.waitpid(child, 0)
    assert "m" not in os.listdir(tmp_path)
    assert value_at(path) == 1.0
    check_model_output(path)
    assert os.listdir(tmp_path) == ["m"]
    assert value_at(path) == 1.0


def test_a_half_removed_directory_is_nobodys_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, removed = save(tmp_path / "m", 1.0), os.unlink, []

    def unlink(name: Any, **more: Any) -> None:
        if removed:
            raise OSError(errno.EIO, "Input/output error")
        removed.append(name)
        real(name, **more)

    monkeypatch.setattr(os, "unlink", unlink)
    save(path, 2.0)
    assert removed == ["config.json"]
    monkeypatch.undo()
    monkeypatch.setitem(store.PROGRAMS, "tiny", "problems.tiny:Tiny")
    assert value_at(path) == 2.0
    save(path, 3.0)
    assert os.listdir(tmp_path) == ["m"]


def test_sigkill_at_random_moments(tmp_path: Path, replacing: str) -> None:
    path = tmp_path / "m"
    random, last = np.random.default_rng(5), -1.0

    def save_next(n: int) -> None:
        save_model(path, Tiny(rows=20000, value=n), metrics={"n": n}, labels=[str(n)] * 50)

    for _ in range(10):
        kill_while_saving(save_next, int(last) + 1, random.uniform(0.005, 0.08))
        model = load_model(path)
        found = value_of(model.program)  # type: ignore[arg-type]
        assert found > last
        assert model.metrics["n"] == found
        assert model.labels == (f"{found:.0f}",) * 50
        last = found
    save(path)
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("first", [True, False], ids=["replacing one", "from nothing"])
def test_readers_and_two_writers_at_once(tmp_path: Path, replacing: str, first: bool) -> None:
    path = tmp_path / "m"
    if first:
        save(path, 0.0, metrics={"n": 0.0})
    errors: list[BaseException] = []
    stop, begun = threading.Event(), threading.Event()

    def write(first: int) -> None:
        try:
            for n in range(first, first + 80, 2):
                save_model(path, Tiny(value=n), metrics={"n": n})
                begun.set()
        except BaseException as error:
            errors.append(error)
            begun.set()

    def read() -> None:
        begun.wait()
        try:
            while not stop.is_set():
                model = load_model(path)
                assert model.metrics["n"] == value_of(model.program)  # type: ignore[arg-type]
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(first,)) for first in (1, 2)]
    reader = threading.Thread(target=read)
    for thread in [*writers, reader]:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert errors == []
    assert value_at(path) in (79, 80)
    assert os.listdir(tmp_path) == ["m"]
