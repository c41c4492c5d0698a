"""What lies beside a model is not ours by its name, who may read it stays as it is, and nobody can make a save wait."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hogwild.errors import ModelError, SaveError
from hogwild.executor.readers.checkpoint import checkpoint_path, save_checkpoint
from hogwild.executor.state import Position, RunState
from hogwild.feeds.io.outfile import write_file
from hogwild.ownership import MARKER, is_marked, make_marked
from hogwild.programs import store
from hogwild.programs.saving import directory
from hogwild.programs.store import check_model_output, load_model, save_model
from problems.tiny import Tiny, save, value_at
from system import NOBODY, as_another_user, shared_place

RANDOM = "0123456789abcdef"
PLANTED = [".m.tmp-1-abcd", ".m.old-mybackup", f".m.hogwild-{RANDOM}"]


@pytest.fixture(autouse=True)
def known_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(store.PROGRAMS, "tiny", "problems.tiny:Tiny")


@pytest.fixture(params=["exchange", "two renames"])
def replacing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "two renames":
        monkeypatch.setattr(directory, "_exchange", lambda one, other: False)


def soon(act: Callable[[], object]) -> None:
    """Fails where `act` has not ended in ten seconds."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it waits"


# -- only what we made ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("link", [True, False], ids=["link", "directory"])
def test_what_is_called_as_ours_is_neither_removed_nor_read(tmp_path: Path, name: str, link: bool) -> None:
    planted = tmp_path / name
    if link:
        planted.symlink_to(save(tmp_path / "precious", 7.0))
    else:
        save(planted, 7.0)
    with pytest.raises(ModelError, match="no such model"):
        load_model(tmp_path / "m")
    for value in (1.0, 2.0):
        save(tmp_path / "m", value)
    check_model_output(tmp_path / "m")
    assert value_at(planted) == 7.0
    assert planted.is_symlink() == link


def test_a_link_to_what_has_our_marker_is_not_followed(tmp_path: Path) -> None:
    made, lock = make_marked(tmp_path, ".other.hogwild-", directory._KIND)
    save(made / "old-0", 7.0)
    os.close(lock)
    planted = tmp_path / f".m.hogwild-{RANDOM}"
    planted.symlink_to(made)
    with pytest.raises(ModelError, match="no such model"):
        load_model(tmp_path / "m")
    save(tmp_path / "m")
    assert planted.is_symlink()
    assert value_at(made / "old-0") == 7.0


def test_what_another_user_marked_is_neither_removed_nor_read() -> None:
    with shared_place() as place:
        staging = place / f".m.hogwild-{RANDOM}"

        def plant() -> None:
            store.PROGRAMS["tiny"] = "problems.tiny:Tiny"
            staging.mkdir()
            (staging / MARKER).write_text(directory._KIND)
            save(staging / "old-0", 7.0)
            for path in staging.rglob("*"):
                path.chmod(0o777)

        assert as_another_user(plant) == "None"
        with pytest.raises(ModelError, match="no such model"):
            load_model(place / "m")
        save(place / "m")
        assert value_at(staging / "old-0") == 7.0


def test_what_a_killed_save_left_is_removed_but_not_what_the_user_put_there(tmp_path: Path) -> None:
    made, lock = make_marked(tmp_path, ".m.hogwild-", directory._KIND)
    save(made / "new")
    (made / "new" / "thesis.txt").write_text("years of work")
    save(tmp_path / "m")
    assert (made / "new" / "config.json").exists()  # its maker lives
    os.close(lock)
    save(tmp_path / "m")
    assert os.listdir(made / "new") == ["thesis.txt"]
    (made / "new" / "thesis.txt").unlink()
    save(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]


def test_what_is_ours_by_name_only_in_a_model_is_not_removed(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    text = (path / "config.json").read_text().replace('"files": {', '"files": {"thesis.txt": {},')
    (path / "config.json").write_text(text)
    (path / "thesis.txt").write_text("years of work")
    with pytest.raises(SaveError, match=r"thesis\.txt"):
        save(path)
    path = save(tmp_path / "n")
    (path / "weights.safetensors").unlink()
    (path / "weights.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SaveError, match=r"weights\.safetensors"):
        save(path)


# -- who may read it --------------------------------------------------------------------------------------------


def _modes(path: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in (path, *path.iterdir())}


def test_modes_stay(tmp_path: Path, replacing: None) -> None:
    path = save(tmp_path / "m")
    path.chmod(0o700)
    (path / "config.json").chmod(0o600)
    (path / "weights.safetensors").chmod(0o640)
    save(path, 2.0, labels=[str(k) for k in range(50)])  # with a file that was not there
    assert _modes(path) == {
        "m": 0o700, "config.json": 0o600, "weights.safetensors": 0o640, "vocabulary-1.txt": 0o600,
    }  # fmt: skip


def test_modes_of_a_first_one_are_as_usual(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = save(tmp_path / "m")
    finally:
        os.umask(before)
    assert _modes(path) == {"m": 0o750, "config.json": 0o640, "weights.safetensors": 0o640}
    (tmp_path / "empty").mkdir(0o700)
    assert _modes(save(tmp_path / "empty"))["empty"] == 0o700


def test_modes_of_a_checkpoint_stay(tmp_path: Path) -> None:
    import numpy as np

    state = RunState(Position(1, 2), np.zeros(1, np.uint64), 1, "all", 0.1)
    place = checkpoint_path(tmp_path / "m")
    save_checkpoint(tmp_path / "m", Tiny(value=1), state, {})
    place.chmod(0o700)
    save_checkpoint(tmp_path / "m", Tiny(value=2), state, {})
    assert _modes(place)["m.checkpoint"] == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give any group")
def test_the_group_stays(tmp_path: Path, replacing: None) -> None:
    path = save(tmp_path / "m")
    os.chown(path, -1, 4242)
    os.chown(path / "config.json", -1, 4243)
    path.chmod(0o2750)
    save(path, 2.0)
    assert (path.stat().st_gid, (path / "config.json").stat().st_gid) == (4242, 4243)
    assert stat.S_IMODE(path.stat().st_mode) == 0o2750
    save(path / "inner")  # a new one where the group is handed on
    assert ((path / "inner").stat().st_gid, (path / "inner" / "config.json").stat().st_gid) == (4242, 4242)
    assert (path / "inner").stat().st_mode & stat.S_ISGID


def test_another_group_gets_no_rights_that_only_the_old_one_had() -> None:
    with shared_place() as place:
        save(place / "m")
        (place / "f").write_text("x")
        for path in (place / "m", *(place / "m").iterdir(), place / "f"):
            os.chown(path, NOBODY, 4242)
            path.chmod(0o770)

        def again() -> None:
            save_model(place / "m", Tiny(value=2))
            with write_file(str(place / "f")) as stream:
                stream.write(b"y")

        assert as_another_user(again) == "None"
        assert (place / "m").stat().st_gid == NOBODY
        assert _modes(place / "m") == {"m": 0o700, "config.json": 0o700, "weights.safetensors": 0o700}
        assert _modes(place)["f"] == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may replace what others own")
def test_what_another_owned_is_removed_once_it_is_replaced_and_stays_his(tmp_path: Path, replacing: None) -> None:
    path = save(tmp_path / "m")
    for file in (path, *path.iterdir()):
        os.chown(file, NOBODY, NOBODY)
    save(path, 2.0)
    assert os.listdir(tmp_path) == ["m"]
    assert {file.stat().st_uid for file in (path, *path.iterdir())} == {NOBODY}  # who can still read it


def test_one_file_keeps_mode_and_is_private_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(0o600)
    with write_file(str(path)) as stream:
        stream.write(b"new")
        (beside,) = (file for file in tmp_path.iterdir() if file != path)
        assert beside.stat().st_mode & 0o077 == 0
    assert path.read_text() == "new"
    assert _modes(tmp_path)["f"] == 0o600
    assert os.listdir(tmp_path) == ["f"]


# -- nobody can make it wait ------------------------------------------------------------------------------------


def test_a_lock_on_the_parent_holds_nobody_up(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        soon(lambda: save(tmp_path / "m"))
        soon(lambda: check_model_output(tmp_path / "m"))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("place", ["m", "m/config.json"])
def test_a_pipe_holds_nobody_up(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    said: list[Exception] = []

    def attempt() -> None:
        for act in (save, check_model_output):
            try:
                act(tmp_path / "m")
            except SaveError as error:
                said.append(error)

    soon(attempt)
    assert len(said) == 2
    assert all("choose another place" in str(error) for error in said)


# -- found out before -------------------------------------------------------------------------------------------


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (tmp_path / "a", tmp_path / "a" / "m"):
        with pytest.raises(SaveError, match="links") as caught:
            check_model_output(path)
        assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_link_to_nothing_is_filled(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("m")
    save(tmp_path / "link", 3.0)
    assert (tmp_path / "link").is_symlink()
    assert value_at(tmp_path / "m") == 3.0


def test_the_working_directory_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert value_at(save(tmp_path / "m", 3.0)) == 3.0
    assert value_at(save(tmp_path / "m", 4.0)) == 4.0


def test_what_one_may_not_move_is_refused_before_the_work() -> None:
    with shared_place() as place:
        save(place / "m")
        said = as_another_user(lambda: check_model_output(place / "m"))
        assert said.startswith("SaveError: cannot save to")
        (place / "m").chmod(0o777)
        assert as_another_user(lambda: check_model_output(place / "m")) == "None"
        place.chmod(0o1777)  # as /tmp is: only the owner may move it
        assert as_another_user(lambda: check_model_output(place / "m")).startswith("SaveError: cannot save to")
        place.chmod(0o755)
        assert as_another_user(lambda: check_model_output(place / "new")).startswith("SaveError: cannot save to")
        assert sorted(os.listdir(place)) == ["m"]


def test_markers_are_told_by_kind(tmp_path: Path) -> None:
    made, lock = make_marked(tmp_path, ".m.hogwild-", "another kind")
    os.close(lock)
    save(tmp_path / "m")
    assert is_marked(made, "another kind")
