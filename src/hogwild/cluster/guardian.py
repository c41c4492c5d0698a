"""The process that holds a Ray of our own: it starts the nodes, and ends them all when its owner is gone.

It runs by itself, in a session of its own: what a terminal sends to the owner (an interrupt) does not reach the nodes,
and whatever they start is found again, whatever name it gave itself. The owner gives commands as lines of JSON by a
pipe, which the system closes however the owner ends. Nothing of this package is imported here: that would take longer.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

LOG = "guardian.log"
INNER = "ray"  # in our folder: Ray gives all users the right to write to its own
LOOPBACK = "127.0.0.1"
_MARKER = ".made-by-hogwild"  # ownership.MARKER
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
_LOOK = 1.0  # seconds between looks at whether the owner lives: a forked child of it keeps the pipe open
_END = 10.0  # seconds that processes get to disappear


# -- ending -----------------------------------------------------------------------------------------------------------

def end_session(leader: int) -> None:
    """Kill all processes of the session of this leader, and what else it started, but not the leader."""
    deadline = time.monotonic() + _END
    while (left := members(leader)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    with contextlib.suppress(ChildProcessError):  # nobody else might: not every container has a process that does
        while leader == os.getpid() and time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.02)


def members(leader: int) -> set[int]:
    """Processes of the session of this leader, and its descendants, without itself and what has ended."""
    import psutil

    found: set[int] = set()
    with contextlib.suppress(psutil.Error):
        found = {child.pid for child in psutil.Process(leader).children(recursive=True)}
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                found.add(pid)
    return {pid for pid in found - {leader} if _lives(pid)}


def _lives(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def remove_folder(folder: Path) -> None:
    """Remove a folder that is known to be ours; what marks it as such goes last."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _MARKER:
                os.unlink(entry.path)
        os.unlink(folder / _MARKER)
        os.rmdir(folder)


def remove_orphan(folder: Path) -> None:
    """Remove a folder with our marker unless an owner or a guardian lives: they hold a lock on it."""
    with contextlib.suppress(OSError):
        marker = os.open(folder / _MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_folder(folder)
        finally:
            os.close(marker)


# -- starting ---------------------------------------------------------------------------------------------------------

class Host:
    """The nodes, as processes of this machine."""

    def __init__(self, folder: Path, answers: int) -> None:
        self.folder = folder
        self._answers = answers
        self._nodes: dict[str, Any] = {}
        self._head: Any = None
        self._count = 0
        self._lock, self._starting = threading.Lock(), threading.Lock()

    def obey(self, command: dict[str, Any]) -> None:
        """Carry out one command, and answer with what came of it. Never returns: see below."""
        try:
            answer = self._end(command["end"]) if "end" in command else self._start(command)
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(self._answers, json.dumps(answer).encode() + b"\n")
        threading.Event().wait()  # the kernel kills the nodes, by PR_SET_PDEATHSIG, when the *thread* ends

    def _start(self, given: dict[str, Any]) -> dict[str, Any]:
        # Not ray.cluster_utils.Cluster, which writes its address to where `ray start` looks for that of the user, and
        # sets handlers of signals, which only one thread may do.
        from ray._private.node import Node
        from ray._private.parameter import RayParams

        with self._lock:
            number = self._count
            self._count += 1
        # One address for all nodes: with any other, also of the loopback, Ray listens on all addresses of the machine.
        inner = self.folder / INNER
        # Sockets by name: nodes that start at the same time choose the same ones, and a path has at most 107 bytes.
        params = RayParams(
            node_ip_address=LOOPBACK, node_name=f"node-{number:04d}", temp_dir=str(inner),
            plasma_store_socket_name=f"{inner}/p{number}", raylet_socket_name=f"{inner}/r{number}",
            node_manager_port=0, min_worker_port=0, max_worker_port=0, num_gpus=0, include_dashboard=False,
            include_log_monitor=False, no_monitor=True, **given,
        )
        if self._head is not None:
            params.update_if_absent(gcs_address=self._head.gcs_address, redis_address=self._head.redis_address)
        # A process that would count for statistics of use, and take two seconds to start.
        Node.start_api_server = lambda *_, **__: None
        with self._starting:  # nodes that start at the same time write to the same files, and die of it
            node = Node(params, head=self._head is None, shutdown_at_exit=False, spawn_reaper=True)
        self._nodes[node.node_id] = node
        self._head = self._head or node
        return {"address": self._head.gcs_address, "node_id": node.node_id}

    def _end(self, node_id: str) -> dict[str, Any]:
        """Kill a node with all that runs on it, as if its machine had lost power."""
        import psutil

        raylet = self._nodes.pop(node_id).all_processes["raylet"][0].process
        doomed = [psutil.Process(raylet.pid), *psutil.Process(raylet.pid).children(recursive=True)]
        for process in doomed:
            with contextlib.suppress(psutil.Error):
                process.kill()
        raylet.wait(_END)
        return {"node_id": node_id}


def _serve(host: Host, owner: int) -> None:
    """Hand on commands until the owner closes the pipe, or is gone."""
    waiting = b""
    while os.getppid() == owner:
        if not select.select([0], [], [], _LOOK)[0]:
            continue
        read = os.read(0, 1 << 16)
        if not read:
            return
        *lines, waiting = (waiting + read).split(b"\n")
        for line in lines:
            threading.Thread(target=host.obey, args=(json.loads(line),), daemon=True).start()


def main(folder: Path, lock: int, owner: int) -> None:
    """Hold the nodes of this owner until it has gone; `lock` is its hold on the folder."""
    os.set_inheritable(lock, False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    answers = os.dup(1)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        _serve(Host(folder, answers), owner)
    finally:
        end_session(os.getpid())
        remove_folder(folder)
        os._exit(0)  # threads wait for ever


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
