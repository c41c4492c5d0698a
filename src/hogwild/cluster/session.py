"""A running Ray that this process is connected to: one of our own on this machine, or one that others started."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import json
import logging
import os
import platform
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import hogwild
from hogwild import machine
from hogwild.cluster import guardian
from hogwild.errors import ClusterError, ConfigError, JoinError, brief, shorten
from hogwild.messages import counted
from hogwild.ownership import is_marked, make_marked, why_shared

KIND = "hogwild ray session"
PREFIX = "hogwild-ray-"
STORE = 128 << 20  # bytes of an object store where nothing says how large; Ray takes no less than 75 MiB
_LARGE_STORE = 2 << 30
_SHARED = Path("/dev/shm")
_LONGEST = 107 - len(f"/{guardian.INNER}/p0000")  # bytes of a folder with sockets in it
_START = 120.0   # seconds that a node may take to start; one of two busy cores took 12
_SILENCE = 10.0  # seconds that an address may say nothing
_ANSWER = 60.0   # seconds that a node may take to tell its versions: it starts a process for it
_INLINE = 16_000_000  # bytes
_STOP = 20.0     # seconds that all processes may take to end
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # what a client of gRPC begins with
_LITTLE = 0.001  # cores: for none at all Ray 2.60 takes any place, whichever was wished for
_FOREIGN = ("RAY_ADDRESS", "RAY_REDIS_ADDRESS", "RAY_TMPDIR", "RAY_AUTH_TOKEN_PATH", "RAY_gcs_storage")
_TOKEN = secrets.token_hex(32)  # of this process: who has it may run code on our nodes


class Place(NamedTuple):
    """Where nodes of a run can live: a node of Ray's, with the bytes of its memory and of its object store."""

    node_id: str
    address: str
    cores: int
    memory: int
    store: int
    name: str = ""


class Session:
    """A running Ray that this process is connected to; see `open_session`.

    Attributes
    ----------
    places
        Alive nodes, by address and name. A run of more nodes than that takes them in turns.
    local
        Whether it is our own.
    notes
        What the user should know.
    """

    def __init__(self, local: _Local | None = None, leave: Callable[[], None] | None = None) -> None:
        self.local = local is not None
        self.notes: list[str] = []
        self._nodes = local
        self._leave = leave
        self._owner = os.getpid()
        self._open = True
        self._refused: set[str] = set()
        self.places = self.refresh()
        atexit.register(self.close)

    def refresh(self) -> list[Place]:
        """Look again which nodes are alive."""
        import ray

        alive = [node for node in ray.nodes() if node["Alive"]]
        working = [node for node in alive if node["Resources"].get("CPU")]  # without cores: one that only controls
        self.places = sorted(map(_place, working or alive), key=_order)
        return self.places

    def look_for_more(self) -> str:
        """Take in nodes that came since; why one is not, which is not asked again."""
        known, refused = list(self.places), ""
        alive = self.refresh()
        for place in alive:
            if place in known or place.node_id in self._refused:
                continue
            try:
                check_versions(own_versions(), _ask_versions(self, [place]))
                known.append(place)
            except JoinError as error:
                self._refused.add(place.node_id)
                refused = str(error)
        self.places = [place for place in known if place in alive]  # who came last is last
        return refused

    def place_options(self, place: Place) -> dict[str, Any]:
        """Options of an actor that is to live at a place, and elsewhere where that is gone.

        It asks for next to no cores: a run may have more workers than a node has cores, and several nodes at one place.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        wish = NodeAffinitySchedulingStrategy(place.node_id, soft=True)
        return {"num_cpus": _LITTLE, "scheduling_strategy": wish}

    def add_place(self) -> Place:
        """One more node, in a Ray of our own."""
        node_id = self._own().add()
        return next(place for place in self.refresh() if place.node_id == node_id)

    def remove_place(self, place: Place) -> None:
        """Kill a node with all that runs on it, in a Ray of our own: as if its machine had lost power.

        Ray takes 10 to 20 seconds to declare it dead.
        """
        if place == self.places[0]:
            raise ValueError("this process and the control server are there")
        self._own().end(place.node_id)
        self.places = [other for other in self.places if other != place]

    def _own(self) -> _Local:
        if self._nodes is None:
            raise ValueError("only nodes of our own can be added or removed")
        return self._nodes

    def close(self) -> None:
        """Leave Ray; a Ray of our own ends, and nothing of it is left. Again, or in a forked child: does nothing."""
        if not self._open or self._owner != os.getpid():
            return
        self._open = False
        atexit.unregister(self.close)
        try:
            if self._leave is not None:
                self._leave()
        finally:
            if self._nodes is not None:
                self._nodes.stop()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(cluster: str, nodes: int, workers_per_node: int, store_bytes: int = 0) -> Session:
    """Start a Ray on this machine, or join one.

    Parameters
    ----------
    cluster
        `local` for one of our own, `auto` for the one that runs on this machine, or its address, host:port.
    nodes
        Nodes of the run. One of our own gets as many.
    workers_per_node
        Workers on each.
    store_bytes
        Bytes that the object store of each place must have room for; 0 where little is enough.

    A program that is connected to Ray already keeps to that one, and stays connected to it.
    """
    if importlib.util.find_spec("ray") is None:
        raise ConfigError('Several nodes need Ray, which is not installed; install it: pip install "hogwild[ray]"')
    started = "ray" in sys.modules and sys.modules["ray"].is_initialized()
    if cluster == "local" and not started:
        return _open_local(nodes, workers_per_node, store_bytes or max(STORE, _roomy_store(nodes)))
    if started:
        session = Session()
        session.notes.append("This program is connected to Ray already: that one is used.")
    else:
        session = Session(leave=_join(cluster))
    try:
        _check_places(session, nodes, store_bytes)
    except BaseException:
        session.close()
        raise
    return session


def _place(node: dict[str, Any]) -> Place:
    has = node["Resources"]
    return Place(
        node["NodeID"], node["NodeManagerAddress"], max(1, int(has.get("CPU", 1))), int(has.get("memory", 0)),
        int(has.get("object_store_memory", 0)), node.get("NodeName", ""),
    )


def _order(place: Place) -> tuple[list[str], str, str]:
    return [part.zfill(3) for part in place.address.split(".")], place.name, place.node_id


# -- a Ray of our own -------------------------------------------------------------------------------------------------

class _Local:
    """Nodes on this machine, held by a guardian; `folder` has all their files."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self.folder, self._lock = _make_folder()
        command = [sys.executable, "-P", guardian.__file__, str(self.folder), str(self._lock), str(os.getpid())]
        self._guardian = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(), pass_fds=(self._lock,),
            start_new_session=True,
        )
        self.leader = self._guardian.pid
        self._answers = b""

    def add(self) -> str:
        """One more node; returns its id."""
        self.send(self._options)
        return str(self.answer()["node_id"])

    def start(self, nodes: int) -> str:
        """All nodes; returns the address as soon as the first is there. `wait` waits for the others."""
        self.send(self._options)
        address = str(self.answer()["address"])
        for _ in range(nodes - 1):
            self.send(self._options)
        return address

    def end(self, node_id: str) -> None:
        self.send({"end": node_id})
        self.answer()

    def send(self, command: dict[str, Any]) -> None:
        assert self._guardian.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # that there is no answer says more
            self._guardian.stdin.write(json.dumps(command).encode() + b"\n")
            self._guardian.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._guardian.stdout is not None
        deadline = time.monotonic() + _START
        while b"\n" not in self._answers:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._guardian.stdout], [], [], left)[0]:
                raise ClusterError(f"Ray did not start a node in {_START:.0f} seconds; try fewer nodes.")
            read = os.read(self._guardian.stdout.fileno(), 1 << 16)
            if not read:
                raise ClusterError(f"Ray cannot be started on this machine: {self._last_words()}")
            self._answers += read
        line, _, self._answers = self._answers.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ClusterError(f"Ray cannot start or end a node on this machine: {shorten(answer['error'])}")
        return answer

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self.folder / guardian.LOG).read_text(errors="replace").strip().splitlines()
            if lines:
                return shorten(lines[-1])
        return "the process that holds its nodes ended."

    def stop(self) -> None:
        """End all processes and remove all files; the guardian does it, and where it cannot we do."""
        assert self._guardian.stdin is not None
        assert self._guardian.stdout is not None
        self._guardian.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guardian.wait(_STOP)
        if self._guardian.poll() is None:
            self._guardian.kill()
            self._guardian.wait()
        self._guardian.stdout.close()
        if self.folder.exists():
            guardian.end_session(self.leader)
            guardian.remove_folder(self.folder)
        os.close(self._lock)


def _roomy_store(nodes: int) -> int:
    """Bytes of an object store that so many nodes on this machine can have without being short of room; 0: little."""
    free = shutil.disk_usage(_SHARED).free if _SHARED.is_dir() else 0
    return min(_LARGE_STORE, min(free, machine.memory()) // (4 * nodes))


def _open_local(nodes: int, workers: int, store: int) -> Session:
    _check_room(nodes, store)
    _sweep()
    memory = max(1 << 28, machine.memory() // nodes - store)
    local = _Local({"num_cpus": workers, "object_store_memory": store, "memory": memory})
    try:
        import ray  # while the guardian does

        address = local.start(nodes)
        leave = _connect(ray, address, local)
        try:
            for _ in range(nodes - 1):
                local.answer()
            return Session(local, leave)
        except BaseException:
            leave()
            raise
    except BaseException:
        local.stop()
        raise


def _check_room(nodes: int, store: int) -> None:
    """Ray ends with SIGBUS, later, where its object stores do not fit."""
    there = machine.memory()
    what, where = "memory", "this machine"
    if _SHARED.is_dir() and shutil.disk_usage(_SHARED).free < there:
        there, what, where = shutil.disk_usage(_SHARED).free, "shared memory", str(_SHARED)
    if nodes * store > there:
        raise ConfigError(
            f"{counted(nodes, 'node')} on this machine need {nodes * store / 1e9:.2f} GB of {what} for what they "
            f"exchange, and {where} has {there / 1e9:.2f} GB; ask for fewer nodes, or enlarge it "
            "(a container: --shm-size)."
        )


def _make_folder() -> tuple[Path, int]:
    """A folder of ours for all files of a session, and the lock on it; sockets are in it, so its name is short."""
    parent = Path(os.path.realpath(tempfile.gettempdir()))
    if len(os.fsencode(parent / PREFIX)) + 16 > _LONGEST:
        parent = Path("/tmp")
    try:
        folder, lock = make_marked(parent, PREFIX, KIND)
    except OSError as error:
        raise ConfigError(f"{parent} cannot be written: {error.strerror}; set TMPDIR to another folder.") from None
    reason = why_shared(folder)
    if reason:
        guardian.remove_folder(folder)
        os.close(lock)
        raise ConfigError(f"Ray needs a folder that only this user can change: {reason}; set TMPDIR to another one.")
    return folder, lock


def _sweep() -> None:
    """Remove folders whose owner and guardian were both killed."""
    for parent in {Path(os.path.realpath(tempfile.gettempdir())), Path("/tmp")}:
        with contextlib.suppress(OSError):
            for folder in parent.glob(f"{PREFIX}*"):
                if is_marked(folder, KIND):
                    guardian.remove_orphan(folder)


def _environment() -> dict[str, str]:
    """For the guardian and all that it starts."""
    ours = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else the address of the loopback becomes that of the network
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_enable_worker_prestart": "0",
        "RAY_prestart_worker_first_driver": "0",
        # Packets of an exchange go with the call, not by way of the object stores: a tenth of the time.
        "RAY_max_direct_call_object_size": str(_INLINE),
        "RAY_task_rpc_inlined_bytes_limit": str(4 * _INLINE),
        "RAY_worker_niceness": "0",  # else nodes train only where nothing else wants the cores
        **_credentials(),
    }
    return {**{name: value for name, value in os.environ.items() if name not in _FOREIGN}, **ours}


def _credentials() -> dict[str, str]:
    """Else other users of this machine could run code as this one. Versions of Ray before 2.52 do not look at it."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _TOKEN}


def _connect(ray: Any, address: str, local: _Local) -> Callable[[], None]:
    """Connect this process with nodes of our own; returns what undoes it."""
    before = {name: os.environ.get(name) for name in _credentials()}

    def restore() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _reread()

    os.environ.update(_credentials())
    _reread()
    try:
        with _on_loopback():
            silence = _init(ray, address=address, _node_ip_address=guardian.LOOPBACK,
                            _temp_dir=str(local.folder / guardian.INNER))
    except Exception as error:
        restore()
        raise ClusterError(f"Ray was started, and cannot be reached: {shorten(error)}") from None
    except BaseException:
        restore()
        raise

    def leave() -> None:
        try:
            silence()
        finally:
            restore()

    return leave


def _reread() -> None:
    """Ray reads its settings when it is imported; again, where they changed."""
    with contextlib.suppress(ImportError, AttributeError):
        raylet = importlib.import_module("ray._raylet")
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Ray leaves an address of the loopback as it is; the variable for this counts only before Ray is imported."""
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _init(ray: Any, **given: Any) -> Callable[[], None]:
    """Connect, and keep Ray from writing to our standard output and error; returns what undoes both."""
    from ray._private import worker

    logger = logging.getLogger("ray")
    level, printing = logger.level, worker.print_to_stdstream
    logger.setLevel(logging.CRITICAL + 1)
    worker.print_to_stdstream = lambda *_, **__: None  # it says on standard output that a node is dead

    def undo() -> None:
        try:
            ray.shutdown()
        finally:
            worker.print_to_stdstream = printing
            logger.setLevel(level)

    try:
        ray.init(log_to_driver=False, configure_logging=False, **given)
    except BaseException:
        undo()
        raise
    return undo


# -- a Ray of others --------------------------------------------------------------------------------------------------

def _join(cluster: str) -> Callable[[], None]:
    """Connect this process with a Ray that runs; returns what undoes it."""
    if cluster != "auto":
        _probe(cluster)
    import ray
    from ray._private import services

    try:
        address = services.canonicalize_bootstrap_address_or_die(cluster)
        if cluster == "auto":
            _probe(address)
        _check_membership(address)
        return _init(ray, address=address)
    except JoinError:
        raise
    except Exception as error:
        remedy = "start one (`ray start --head`) or give its address" if cluster == "auto" else "see `ray status`"
        raise JoinError(f"Ray at {cluster} cannot be joined: {shorten(error)} ({remedy}).") from None


def _probe(address: str) -> None:
    """Raise JoinError unless something at this address speaks as Ray does. Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if "/" in address or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise JoinError(f"{brief(address)} is no address of a Ray cluster; give local, auto, or host:port.")
    remedy = "check that `ray start --head` runs there, and its port (6379 unless told otherwise)"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_SILENCE) as connection:
            connection.sendall(_PREFACE)
            said = connection.recv(9)
    except TimeoutError:
        raise JoinError(f"Ray at {address} did not answer in {_SILENCE:.0f} seconds; {remedy}.") from None
    except OSError as error:
        raise JoinError(f"No Ray answers at {address}: {error.strerror or error}; {remedy}.") from None
    if len(said) < 4 or said[3] != 4:  # the settings, with which each answer of gRPC begins
        raise JoinError(f"What answers at {address} is not Ray; {remedy}.")


def _check_membership(address: str) -> None:
    """Raise JoinError where no node of the cluster runs on this machine: Ray would look for one for a minute."""
    from ray._private import services

    here = getattr(services, "find_node_ids", None)
    if here is None:  # another version of Ray, which says so by itself
        return
    known = importlib.import_module("ray._raylet").GcsClient(address=address).get_all_node_info(timeout=_SILENCE)
    if {node.hex() for node in known}.isdisjoint(here()):
        raise JoinError(
            f"This machine is no node of the Ray cluster at {address}; join it first: ray start --address={address}"
        )


def _check_places(session: Session, nodes: int, store: int) -> None:
    """Raise JoinError unless each place has what a run needs; notes where there are fewer than nodes."""
    for place in session.places:
        if place.store < store:
            raise JoinError(
                f"Node {place.address} has an object store of {place.store / 1e9:.2f} GB, and the run needs "
                f"{store / 1e9:.2f} GB; start it with `ray start --object-store-memory={store} …`."
            )
    check_versions(own_versions(), _ask_versions(session, session.places))
    there = len(session.places)
    if there < nodes:
        session.notes.append(
            f"{counted(nodes, 'node')} of the run share {counted(there, 'node')} of the Ray cluster: "
            "so many are there."
        )


def own_versions() -> dict[str, str]:
    """What has to be the same on all nodes.

    >>> sorted(own_versions())
    ['Python', 'Ray', 'hogwild']
    """
    import ray

    return {"hogwild": hogwild.__version__, "Ray": ray.__version__, "Python": platform.python_version()}


def check_versions(own: dict[str, str], others: dict[str, dict[str, str]]) -> None:
    """Raise JoinError where a node, by its address, has another version of anything.

    >>> check_versions({"hogwild": "2.0"}, {"10.0.0.7": {"hogwild": "2.0"}})
    """
    for address, versions in others.items():
        for name, version in own.items():
            other = versions.get(name, "")
            if other != version:
                found = f"{name} {other}" if other else f"no {name}"
                raise JoinError(f"Node {address} has {found}, and this machine has {name} {version}; install the same.")


def _ask_versions(session: Session, places: Sequence[Place]) -> dict[str, dict[str, str]]:
    import ray

    def versions() -> dict[str, str]:  # inside a function: it is sent as it is, also to nodes that lack this package
        import platform

        import ray

        try:
            import hogwild
        except ImportError:
            return {"Ray": ray.__version__, "Python": platform.python_version()}
        return {"hogwild": hogwild.__version__, "Ray": ray.__version__, "Python": platform.python_version()}

    task = ray.remote(max_retries=0)(versions)
    asked = {place: task.options(**session.place_options(place)).remote() for place in places}
    deadline = time.monotonic() + _ANSWER
    answers = {}
    for place, answer in asked.items():
        try:
            answers[place.address] = ray.get(answer, timeout=max(0.1, deadline - time.monotonic()))
        except Exception as error:
            why = shorten(error, 150) or type(error).__name__
            raise JoinError(
                f"Node {place.address} does not tell its versions: {why}; see `ray status`, and what it is busy with."
            ) from None
    return answers
