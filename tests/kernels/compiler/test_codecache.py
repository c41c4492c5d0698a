"""Compiled code on disk: nothing of others is executed, nothing of theirs is removed, and damage stops no run."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiling import OFF
from hogwild.kernels.compiler import codecache
from hogwild.ownership import MARKER
from places import SOURCE

pytestmark = pytest.mark.skipif(OFF, reason="there is no code to cache")

NOBODY = 65534
RUN = """
from hogwild.kernels.ids.crc32c import crc32c
print(hex(int(crc32c(0, 0))), sum(crc32c.stats.cache_hits.values()))
"""


def run(preexec: Callable[[], None] | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that needs one kernel: it prints a sum of no bytes, and how often the code was found."""
    clean = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "HOGWILD_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env={**clean, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True, text=True, check=False, preexec_fn=preexec, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def files_of(place: Path, end: str) -> list[Path]:
    return [path for path in place.rglob(f"*{end}") if path.is_file()]


def test_folders_of_the_user_in_a_cache_stay(tmp_path: Path) -> None:
    """Both of NUMBA_CACHE_DIR, which other programs write to, and of our own cache, whatever they are called."""
    places = [tmp_path / "numba", tmp_path / "numba" / "hogwild", tmp_path / "own" / "code"]
    for place in places:
        for k in range(8):
            folder = place / (f"{k:016x}" if k % 2 else f"thesis{k}")
            folder.mkdir(parents=True)
            (folder / "x.nbi").write_text("mine")
            os.utime(folder, (1, 1))
    before = sorted(path for path in tmp_path.rglob("*"))
    run(NUMBA_CACHE_DIR=str(tmp_path / "numba"))
    run(HOGWILD_CACHE=str(tmp_path / "own"))
    assert all(path.exists() for path in before)
    assert sorted(path.name for path in (tmp_path / "numba").iterdir()) == sorted(
        ["hogwild", *(f"{k:016x}" if k % 2 else f"thesis{k}" for k in range(8))]
    )


def test_code_of_old_versions_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecache.nb.config, "CACHE_DIR", str(tmp_path))
    folder = codecache.code_folder()
    assert folder == tmp_path / "hogwild"
    for k in range(7):
        old = folder / f"{k:016x}"
        old.mkdir()
        codecache.mark(old, codecache.KIND)
        (old / "a.nbi").write_bytes(bytes(100))
        os.utime(old, (time.time() - (k if k < 6 else 31 * 86400),) * 2)
    assert [kept.name for kept in codecache.kept()] == [f"{k:016x}" for k in range(7)]
    codecache._prune(folder, folder / f"{0:016x}")
    assert [kept.name for kept in codecache.kept()] == [f"{k:016x}" for k in range(5)]
    assert codecache.clear() == (5, 5 * (100 + len(codecache.KIND)))
    assert codecache.kept() == []


def test_the_name_tells_sources_in_folders_from_each_other(tmp_path: Path) -> None:
    kernels = tmp_path / "hogwild" / "kernels"
    (kernels / "loop").mkdir(parents=True)
    (kernels.parent / "arrays.py").write_text("")
    (kernels / "loop" / "span.py").write_text("a = 1\n")
    names = {codecache.state_of_sources(kernels)}
    (kernels / "loop" / "span.py").write_text("a = 2\n")
    names.add(codecache.state_of_sources(kernels))
    (kernels / "a.py").write_text("b = 1\n")
    names.add(codecache.state_of_sources(kernels))
    assert len(names) == 3


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "gone": lambda path: path.unlink(),
}


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def triple(number: int) -> int:
    return 3 * number


def compile_triple(directory: Path) -> int:
    """Call a function that has its code in this directory; returns how often it was found there."""
    compiled = codecache.nb.njit(triple)
    compiled._cache = codecache.KernelCache(triple, directory)
    assert compiled(5) == 15
    return sum(compiled.stats.cache_hits.values())


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("end", [".nbi", ".nbc"])
def test_damaged_code_is_made_again(tmp_path: Path, damage: str, end: str) -> None:
    assert [compile_triple(tmp_path) for _ in range(2)] == [0, 1]
    (file,) = files_of(tmp_path, end)
    DAMAGES[damage](file)
    assert compile_triple(tmp_path) == 0
    if damage != "a folder":  # onto which nothing can be renamed: then it is done without
        assert compile_triple(tmp_path) == 1


def test_a_power_cut_that_leaves_all_files_cut_short(tmp_path: Path) -> None:
    run(NUMBA_CACHE_DIR=str(tmp_path))
    assert run(NUMBA_CACHE_DIR=str(tmp_path)).stdout == "0x0 1\n"
    for path in files_of(tmp_path, ""):
        os.truncate(path, path.stat().st_size // 2)
    assert run(NUMBA_CACHE_DIR=str(tmp_path)).stdout == "0x0 0\n"
    assert run(NUMBA_CACHE_DIR=str(tmp_path)).stdout == "0x0 1\n"


def test_processes_that_compile_at_once_never_take_the_code_of_another_form(tmp_path: Path) -> None:
    """Each overwrites the index of the other; what is found by it is what it says."""
    one, other = codecache._Files(tmp_path, "f"), codecache._Files(tmp_path, "f")
    empty = one._entries()
    one.save("int", "code of int")
    other._entries = lambda: empty  # type: ignore[method-assign]  # it looked before
    other.save("float", "code of float")
    assert (one.load("int"), one.load("float")) == (None, "code of float")


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_code_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = run(no_room, NUMBA_CACHE_DIR=str(kept))
    assert (done.stdout, done.stderr) == ("0x0 0\n", "")
    assert files_of(kept, "") == [path for path in files_of(kept, "") if path.stat().st_size == 0]
    assert run(NUMBA_CACHE_DIR=str(kept)).stdout == "0x0 0\n"
    assert run(NUMBA_CACHE_DIR=str(kept)).stdout == "0x0 1\n"


def test_a_relative_cache_home_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(XDG_CACHE_HOME="here", HOME=str(tmp_path / "home"))
    assert not (tmp_path / "here").exists()
    assert files_of(tmp_path / "home" / ".cache" / "hogwild" / "code", ".nbi")


class Evil:
    """What runs a command when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch {self.proof}",))


@pytest.mark.parametrize(
    ("owner", "bits"), [(NOBODY, 0o755), (None, 0o777), (None, 0o775)], ids=["of another", "of all", "of a group"]
)
def test_nothing_is_executed_that_others_could_have_written(tmp_path: Path, owner: int | None, bits: int) -> None:
    """A cache in a place where others may write, with code that would run as us."""
    if owner is not None and os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    home, proof = tmp_path / "home", tmp_path / "executed"
    run(XDG_CACHE_HOME=str(home))
    payload = pickle.dumps(Evil(proof))
    for path in files_of(home, ".nbi"):
        path.write_bytes(hashlib.sha256(payload).digest() + payload)
    assert run(XDG_CACHE_HOME=str(home)).stdout == "0x0 0\n"
    assert proof.exists()  # it would run, were it trusted
    proof.unlink()
    for path in (home / "hogwild", *(home / "hogwild").rglob("*")):
        path.chmod(bits if path.is_dir() else bits & 0o666)
        if owner is not None:
            os.chown(path, owner, owner)
    done = run(XDG_CACHE_HOME=str(home))
    assert done.stdout == "0x0 0\n"
    assert "so that the cache is not used" in done.stderr
    assert not proof.exists()
    shutil.rmtree(home)


def test_one_file_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    kept, proof = tmp_path / "kept", tmp_path / "executed"
    run(NUMBA_CACHE_DIR=str(kept))
    payload = pickle.dumps(Evil(proof))
    for path in files_of(kept, ".nbi"):
        path.write_bytes(hashlib.sha256(payload).digest() + payload)
        path.chmod(0o666)
    assert run(NUMBA_CACHE_DIR=str(kept)).stdout == "0x0 0\n"
    assert not proof.exists()


def plant(directory: Path, names: list[str], payload: bytes) -> None:
    """As another user, who has no scruples and no umask: make the cache of the next one, with code in it."""
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.umask(0)
    os.makedirs(directory)
    for name in names:
        (directory / name).write_bytes(payload)
    (directory / MARKER).write_bytes(codecache.KIND.encode())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("bits", [0o1777, 0o777])
def test_another_user_who_was_there_first(tmp_path: Path, bits: int) -> None:
    proof, honest = tmp_path / "executed", tmp_path / "honest"
    run(XDG_CACHE_HOME=str(honest))
    made = files_of(honest, ".nbi")
    with tempfile.TemporaryDirectory(dir="/tmp") as common:
        os.chmod(common, bits)
        directory = Path(common, made[0].relative_to(honest)).parent
        payload = pickle.dumps(Evil(proof))
        names, content = [path.name for path in made], hashlib.sha256(payload).digest() + payload
        planting = multiprocessing.get_context("fork").Process(target=plant, args=(directory, names, content))
        planting.start()
        planting.join()
        assert planting.exitcode == 0
        done = run(XDG_CACHE_HOME=common)
        assert done.stdout == "0x0 0\n"
        assert done.stderr.count("so that the cache is not used") == 1
        assert not proof.exists()
        assert all((directory / name).read_bytes() == content for name in names)
