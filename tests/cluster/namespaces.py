"""Machines of a small network, each a network namespace: with a Ray of their own, and links of a given speed.

Each has one interface, `eth0`, with an address of 10.77.0.x; the other ends are ports of a bridge, which is in a
namespace too, so that nothing of it is seen outside. What runs in a namespace is what was started there: it is known by
`ip netns pids`, and nothing else is ever stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

_PORT = 6385
_COMMAND = 20.0  # seconds that a command of `ip` or `tc` may take
_START = 120.0   # seconds for a node of Ray to be there, on busy cores
_END = 20.0      # seconds for processes to end
_ATTEMPTS = 3    # to start a node: Ray gives up after 30 seconds, which busy cores may need
STORE = 256 << 20
# A token of our own: without one a head asks for that of the user where there is one, and other nodes do not send it.
_RAY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}


class Carried(NamedTuple):
    """Bytes of an interface, as the kernel counts them: with all headers down to those of Ethernet."""

    sent: int
    received: int

    def since(self, before: Carried) -> Carried:
        """What came after another count."""
        return Carried(self.sent - before.sent, self.received - before.received)


def why_not() -> str:
    """The reason for which there can be no namespaces here, or nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root can make network namespaces"
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"{missing[0]} is missing; install iproute2"
    name = f"hw{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, timeout=_COMMAND, check=False)
    if made.returncode:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=_COMMAND, check=False)
    return ""


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=_COMMAND, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Machine:
    """One namespace. number: from 1 on."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name, self.address = number, name, f"10.77.0.{number}"
        self._begun: list[subprocess.Popen[bytes]] = []

    def carried(self) -> Carried:
        """Bytes of its interface so far."""
        counts = json.loads(_ip("-j", "-s", "-n", self.name, "link", "show", "dev", "eth0"))[0]["stats64"]
        return Carried(counts["tx"]["bytes"], counts["rx"]["bytes"])

    def pids(self) -> set[int]:
        """Of all processes in it."""
        return {int(word) for word in _ip("netns", "pids", self.name).split()}

    def titles(self) -> dict[int, str]:
        """What its processes call themselves."""
        found = {}
        for pid in self.pids():
            with contextlib.suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        return found

    def popen(self, command: Sequence[str], log: Path, **environment: str) -> subprocess.Popen[bytes]:
        """Start a command in it, in a session of its own. log: for what it says on standard error, and output."""
        given = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        with open(log, "wb") as errors, open(f"{log}.out", "wb") as output:
            self._begun.append(subprocess.Popen(
                ["ip", "netns", "exec", self.name, *command], env={**given, **_RAY, **environment},
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
            ))  # fmt: skip
        return self._begun[-1]

    def throttle(self, rate: str) -> None:
        """Let it send no faster than this, as `1gbit`."""
        words = f"qdisc replace dev eth0 root tbf rate {rate} burst 1mbit latency 50ms".split()
        subprocess.run(["tc", "-n", self.name, *words], check=True, capture_output=True, timeout=_COMMAND)

    def unthrottle(self) -> None:
        """Let it send as fast as it can."""
        words = ["tc", "-n", self.name, "qdisc", "del", "dev", "eth0", "root"]
        subprocess.run(words, check=False, capture_output=True, timeout=_COMMAND)

    def stop(self) -> None:
        """End all that was started in it."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + _END / 2
            pids = self.pids()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
            while pids and time.monotonic() < until:
                time.sleep(0.1)
                for begun in self._begun:
                    begun.poll()  # else it would stay, ended
                pids = self.pids()
            if not pids:
                return
        raise RuntimeError(f"processes {sorted(pids)} of {self.name} do not end")


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


@contextmanager
def network(count: int) -> Iterator[list[Machine]]:
    """So many machines that reach one another; all that was started in them ends with this, also by SIGTERM."""
    hub = f"hw{os.getpid()}hub"
    machines = [Machine(number, f"hw{os.getpid()}n{number}") for number in range(1, count + 1)]
    with ExitStack() as undo:
        if threading.current_thread() is threading.main_thread():
            undo.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _leave))
        for name in (hub, *(machine.name for machine in machines)):
            _ip("netns", "add", name)
            undo.callback(_ip, "netns", "del", name)
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for machine in machines:
            undo.callback(machine.stop)
            port = f"port{machine.number}"
            _ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
            _ip("-n", hub, "link", "set", port, "master", "bridge", "up")
            _ip("-n", machine.name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
            _ip("-n", machine.name, "link", "set", "eth0", "up")
            _ip("-n", machine.name, "link", "set", "lo", "up")
        yield machines


@contextmanager
def ray_on(machines: Sequence[Machine], cores: int = 1) -> Iterator[str]:
    """A Ray with one node on each machine, the first of them its head; the address."""
    address = f"{machines[0].address}:{_PORT}"
    with ExitStack() as undo:
        made = tempfile.TemporaryDirectory(prefix="hwns-", dir="/tmp", ignore_cleanup_errors=True)
        folder = Path(undo.enter_context(made))
        for machine in machines:
            undo.callback(machine.stop)
            first = machine is machines[0]
            where = ["--head", f"--port={_PORT}", "--include-dashboard=false"] if first else [f"--address={address}"]
            options = [
                *where, f"--node-ip-address={machine.address}", f"--num-cpus={cores}",
                f"--object-store-memory={STORE}", "--disable-usage-stats", "--block",
            ]  # fmt: skip
            for attempt in range(_ATTEMPTS):
                place = folder / f"{machine.number}{attempt}"
                place.mkdir()
                if _starts(machine, [*options, f"--temp-dir={place}"], place / "log", last=attempt == _ATTEMPTS - 1):
                    break
        yield address


def _starts(machine: Machine, options: list[str], log: Path, last: bool) -> bool:
    """Whether a node of Ray starts; the last time it raises where it does not."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options]
    started = machine.popen(command, log)
    output, until = Path(f"{log}.out"), time.monotonic() + _START
    while b"Ray runtime started" not in output.read_bytes():
        if started.poll() is not None or time.monotonic() > until:
            machine.stop()
            if last:
                said = output.read_text(errors="replace") + log.read_text(errors="replace")
                raise RuntimeError(f"a node of Ray did not start: {said[-2000:]}")
            return False
        time.sleep(0.2)
    return True
