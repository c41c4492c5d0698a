"""Starting, joining and stopping Ray, with a real one."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from hogwild.cluster import guardian, session
from hogwild.cluster.session import KIND, PREFIX, Session, check_versions, open_session, own_versions
from hogwild.errors import ClusterError, ConfigError, JoinError
from hogwild.ownership import MARKER, make_marked
from places import SOURCE
from system import mounted

ray = pytest.importorskip("ray")
Start = Callable[..., subprocess.Popen[str]]
LIMIT = 150  # seconds that a child with a session of its own gets, on busy cores


@pytest.fixture(scope="module")
def local() -> Iterator[Session]:
    """Two nodes of our own."""
    with open_session("local", nodes=2, workers_per_node=1, store_bytes=session.STORE) as opened:
        yield opened


def _leader(opened: Session) -> int:
    assert opened._nodes is not None
    return opened._nodes.leader


def _folder(opened: Session) -> Path:
    assert opened._nodes is not None
    return opened._nodes.folder


def _eventually(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)
    return holds()


def _stores(pids: set[int]) -> list[str]:
    """Files of shared memory that processes have open; Ray gives them no names."""
    found = []
    for pid in pids:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        found += [link for link in links if link.startswith("/dev/shm/")]
    return found


@pytest.fixture
def child() -> Iterator[Start]:
    """Starts processes with some code, each in a group of its own; what of them lives at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def start(code: str, **environment: str) -> subprocess.Popen[str]:
        given = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
        begun.append(subprocess.Popen(
            [sys.executable, "-c", code], env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, process_group=0,
        ))
        return begun[-1]

    yield start
    for process in begun:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT)


OPEN = """if True:
    import os, signal, sys, time
    from hogwild.cluster.session import open_session
    opened = open_session("local", nodes={nodes}, workers_per_node=1)
"""
TELL = OPEN + "    print(opened._nodes.leader, opened._nodes.folder, flush=True)\n"


# -- a Ray of our own -------------------------------------------------------------------------------------------------

@ray.remote
class _Settler:
    def home(self) -> str:
        return str(ray.get_runtime_context().get_node_id())


@pytest.mark.full
def test_places_are_the_nodes(local: Session) -> None:
    assert local.local
    assert local.notes == []
    assert [place.name for place in local.places] == ["node-0000", "node-0001"]
    assert len({place.node_id for place in local.places}) == 2
    for place in local.places:
        assert place.address == "127.0.0.1"
        assert place.cores == 1
        assert place.memory > 1 << 28
        assert place.store == session.STORE
    assert local.refresh() == local.places


@pytest.mark.full
def test_actors_live_where_they_are_put(local: Session) -> None:
    wished = [place for place in local.places for _ in range(2)]
    settlers = [_Settler.options(**local.place_options(place)).remote() for place in wished]
    homes = ray.get([settler.home.remote() for settler in settlers], timeout=LIMIT)
    assert homes == [place.node_id for place in wished]


@pytest.mark.full
def test_nodes_listen_to_this_machine_only(local: Session) -> None:
    """Unlike with Ray's own defaults, or with addresses of the loopback other than the first."""
    pids = guardian.members(_leader(local)) | {os.getpid()}
    listening = [
        connection.laddr for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.pid in pids
    ]
    assert len(listening) >= 7  # the control server; a raylet with its object manager and its agent, twice
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


@pytest.mark.full
def test_others_cannot_join(local: Session, child: Start) -> None:
    """Without the token, also another process of this user."""
    code = f"""if True:
        from hogwild.cluster import session
        with session._on_loopback():
            session._join({ray.get_runtime_context().gcs_address!r})
    """
    other = child(code, RAY_AUTH_MODE="disabled")
    said = other.communicate(timeout=LIMIT)[1]
    assert other.returncode == 1
    assert "JoinError: Ray at 127.0.0.1:" in said


@pytest.mark.full
def test_joining_by_the_address(local: Session, child: Start) -> None:
    """From another process, which has the token: its nodes have our versions, and it leaves them as they were."""
    code = f"""if True:
        from hogwild.cluster import session
        with session._on_loopback(), session.open_session({ray.get_runtime_context().gcs_address!r}, 3, 1) as joined:
            print(joined.local, [place.node_id for place in joined.places], joined.notes)
    """
    said, complained = child(code, **session._credentials()).communicate(timeout=LIMIT)
    note = "3 nodes of the run share 2 nodes of the Ray cluster: so many are there."
    assert (said, complained) == (f"False {[place.node_id for place in local.places]} {[note]}\n", "")
    assert local.refresh() == local.places


@pytest.mark.full
def test_the_folder_is_private(local: Session) -> None:
    folder = _folder(local)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.name.startswith(PREFIX)
    assert (folder / MARKER).read_text() == KIND


@pytest.mark.full
def test_another_session_leaves_a_living_one_alone(local: Session) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        dead, lock = make_marked(Path(name), PREFIX, KIND)
        (dead / "session_1").mkdir()
        (dead / "session_1" / "log").write_text("said")
        (dead / "latest").symlink_to(_folder(local))
        guardian.remove_orphan(dead)
        assert dead.exists()
        os.close(lock)
        guardian.remove_orphan(dead)
        assert not dead.exists()
    session._sweep()
    assert (_folder(local) / MARKER).exists()


@pytest.mark.full
def test_a_session_that_is_open_is_used(local: Session) -> None:
    """Whoever is connected already stays so."""
    again = open_session("auto", nodes=3, workers_per_node=1)
    assert not again.local
    assert again.places == local.places
    assert [note.split(":")[0] for note in again.notes] == [
        "This program is connected to Ray already", "3 nodes of the run share 2 nodes of the Ray cluster"]
    with pytest.raises(ValueError, match="only nodes of our own"):
        again.add_place()
    again.close()
    again.close()
    assert ray.is_initialized()


@pytest.mark.full
def test_a_store_that_is_too_small_of_a_joined_cluster(local: Session) -> None:
    with pytest.raises(JoinError, match=r"^Node 127.0.0.1 has an object store of 0.13 GB, and the run needs 1.00 GB; "):
        open_session("auto", nodes=2, workers_per_node=1, store_bytes=10**9)
    assert ray.is_initialized()


@pytest.mark.full
def test_nodes_come_and_go(local: Session) -> None:
    late = local.add_place()
    assert local.places[-1] == late
    assert late.name == "node-0002"
    settler = _Settler.options(**local.place_options(late)).remote()
    assert ray.get(settler.home.remote(), timeout=LIMIT) == late.node_id
    with pytest.raises(ValueError, match="control server"):
        local.remove_place(local.places[0])
    local.remove_place(late)
    assert late not in local.places
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(settler.home.remote(), timeout=LIMIT)
    assert _eventually(lambda: late not in local.refresh(), LIMIT)
    assert len(local.places) == 2


# -- how it ends ------------------------------------------------------------------------------------------------------

@pytest.mark.full
@pytest.mark.parametrize("end", ["closed", "left open", "node lost", "interrupted"])
def test_nothing_is_written_and_nothing_left(child: Start, end: str) -> None:
    """Standard output is for what a command says. An interrupt from a terminal is for the owner, not for its nodes."""
    acts = {
        "closed": "opened.close(); opened.close()",
        "left open": "pass",  # the interpreter closes it
        "node lost": "opened.remove_place(opened.places[1])\n        while len(opened.refresh()) > 1: time.sleep(0.1)",
        "interrupted": "time.sleep(60)",
    }
    code = TELL.format(nodes=2) + f"    try:\n        sys.stdin.readline()\n        {acts[end]}\n"
    owner = child(code + "    except KeyboardInterrupt:\n        time.sleep(1); assert len(opened.refresh()) == 2\n")
    assert owner.stdout is not None
    words = owner.stdout.readline().split()
    leader, folder = int(words[0]), Path(words[1])
    pids = guardian.members(leader)
    assert len(pids) >= 7  # the control server, and two raylets with two agents each
    if end == "interrupted":
        os.killpg(owner.pid, signal.SIGINT)
    said, complained = owner.communicate("\n", timeout=LIMIT)
    assert (said, complained, owner.returncode) == ("", "", 0)
    assert not any(map(_lives, pids | {leader}))
    assert guardian.members(leader) == set()
    assert not folder.exists()


@pytest.mark.full
@pytest.mark.parametrize("victim", ["owner", "owner that forked", "guardian", "guardian stopped"])
def test_a_kill_leaves_nothing(child: Start, victim: str) -> None:
    """However an owner ends, its nodes end: also where a child that it forked lives on."""
    fork = "    if os.fork() == 0: time.sleep(60); os._exit(0)\n" if victim == "owner that forked" else ""
    owner = child(TELL.format(nodes=2) + fork + "    sys.stdin.readline()\n")
    assert owner.stdout is not None
    assert owner.stdin is not None
    words = owner.stdout.readline().split()
    leader, folder = int(words[0]), Path(words[1])
    pids = guardian.members(leader)
    assert len(pids) >= 7
    assert len(_stores(pids)) >= 2
    if victim.startswith("owner"):
        owner.kill()
    else:
        os.kill(leader, signal.SIGKILL if victim == "guardian" else signal.SIGTERM)
        owner.stdin.write("\n")
        owner.stdin.flush()
    assert owner.wait(LIMIT) == (-signal.SIGKILL if victim.startswith("owner") else 0)
    assert _eventually(lambda: not guardian.members(leader) and not folder.exists(), 15)
    assert not any(map(_lives, pids | {leader}))  # nor their object stores, which have no names


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.full
def test_a_killed_start_leaves_nothing(child: Start) -> None:
    """Killed before the nodes are there."""
    owner = child(OPEN.format(nodes=1))
    found: list[psutil.Process] = []

    def started() -> bool:
        found[:] = psutil.Process(owner.pid).children()
        return any(len(guardian.members(process.pid)) > 0 for process in found)

    assert _eventually(started, LIMIT)
    folder = Path(found[0].cmdline()[3])
    assert folder.name.startswith(PREFIX)
    owner.kill()
    assert _eventually(lambda: not guardian.members(found[0].pid) and not folder.exists(), 15)


# -- what cannot work -------------------------------------------------------------------------------------------------

@contextmanager
def _server(says: bytes) -> Iterator[str]:
    """A port that accepts, says this, and then nothing; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                held.append(connection)
                connection.sendall(says)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in held:
            connection.close()


def test_a_closed_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(JoinError, match=rf"^No Ray answers at {address}: Connection refused; check that") as caught:
        session._join(address)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert issubclass(JoinError, ClusterError)


def test_a_port_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session._SILENCE < 30
    monkeypatch.setattr(session, "_SILENCE", 0.5)
    with _server(b"") as address, pytest.raises(JoinError, match=rf"^Ray at {address} did not answer in 0 seconds; "):
        session._join(address)


def test_a_port_of_something_else() -> None:
    with _server(b"SSH-2.0-x\r\n") as address, pytest.raises(JoinError, match=r"^What answers at .* is not Ray; "):
        session._join(address)


@pytest.mark.full
def test_a_port_that_speaks_like_ray(child: Start) -> None:
    """It begins as Ray does, and then says nothing: in a process of its own, as Ray may end it."""
    with _server(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])) as address:
        code = f"from hogwild.cluster.session import open_session; open_session({address!r}, 2, 1)"
        said, complained = child(code).communicate(timeout=LIMIT)
    assert said == ""
    assert f"JoinError: Ray at {address} cannot be joined: " in complained


@pytest.mark.parametrize("address", ["", "here", "here:", ":6379", "here:0", "here:65536", "ray://here:10001", "a/b:1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(JoinError, match="is no address of a Ray cluster; give local, auto, or host:port"):
        session._join(address)


def test_a_host_that_nobody_knows() -> None:
    with pytest.raises(JoinError, match=r"^No Ray answers at nowhere.invalid:6379: "):
        session._join("nowhere.invalid:6379")


def test_ray_is_missing(child: Start) -> None:
    code = """if True:
        import sys
        sys.modules["ray"] = None
        from hogwild.cluster.session import open_session
        open_session("local", 2, 1)
    """
    said = child(code).communicate(timeout=LIMIT)[1]
    assert 'ConfigError: Several nodes need Ray, which is not installed; install it: pip install "hogwild[ray]"' in said


def test_too_little_memory_is_said_before_anything_starts() -> None:
    before = set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
    with pytest.raises(ConfigError, match=r"^3 nodes on this machine need 3000000.00 GB of .*memory for what"):
        session._open_local(3, 1, 10**15)
    assert set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")) <= before


def test_a_small_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mounted(tmp_path / "shm", "64m") as place:
        monkeypatch.setattr(session, "_SHARED", place)
        with pytest.raises(ConfigError, match=f"need 0.27 GB of shared .* and {re.escape(str(place))} has 0.07 GB"):
            session._check_room(2, session.STORE)


def test_a_long_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of sockets have at most 107 bytes."""
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder, lock = session._make_folder()
    try:
        assert len(os.fsencode(folder / guardian.INNER / "p0000")) <= 107
        assert list(long.iterdir()) == []
    finally:
        guardian.remove_folder(folder)
        os.close(lock)
    assert not folder.exists()


def test_a_temporary_folder_that_others_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Path(tempfile.mkdtemp(dir="/tmp"))
    shared.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    try:
        with pytest.raises(ConfigError, match=f"others may write to {shared}; set TMPDIR"):
            session._make_folder()
        assert list(shared.iterdir()) == []
    finally:
        shared.rmdir()


def test_versions() -> None:
    own = own_versions()
    check_versions(own, {"10.0.0.7": dict(own)})
    with pytest.raises(JoinError, match=r"^Node 10.0.0.7 has hogwild 0.0.1, and this machine has hogwild .*; install"):
        check_versions(own, {"10.0.0.8": own, "10.0.0.7": {**own, "hogwild": "0.0.1"}})
    with pytest.raises(JoinError, match=r"^Node 10.0.0.7 has no hogwild, and this machine has"):
        check_versions(own, {"10.0.0.7": {"Ray": own["Ray"], "Python": own["Python"]}})
