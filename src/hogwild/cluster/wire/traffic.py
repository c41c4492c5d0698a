"""What a node sent, received and waited for: bytes and messages by kind, seconds, and what it takes of its machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Count:
    """Bytes and messages, out and in."""

    sent: int = 0
    received: int = 0
    messages_sent: int = 0
    messages_received: int = 0

    def plus(self, other: Count) -> Count:
        """The sum of two counts."""
        return Count(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass
class Traffic:
    """Counts by kind (changes, weights), seconds waited for others, and seconds spent on exchanges in all."""

    kinds: dict[str, Count] = field(default_factory=dict)
    waited: float = 0.0
    exchanging: float = 0.0
    exchanges: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kinds = {kind: Count(**vars(count)) for kind, count in self.kinds.items()}
            return {**{name: value for name, value in vars(self).items() if name != "_lock"}, "kinds": kinds}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def send(self, kind: str, size: int) -> None:
        """A message of so many bytes goes out."""
        with self._lock:
            count = self.kinds.setdefault(kind, Count())
            count.sent += size
            count.messages_sent += 1

    def receive(self, kind: str, size: int) -> None:
        """A message of so many bytes came in."""
        with self._lock:
            count = self.kinds.setdefault(kind, Count())
            count.received += size
            count.messages_received += 1

    def busiest(self, kind: str) -> int:
        """Bytes of a kind, out or in, whichever are more."""
        count = self.kinds.get(kind, Count())
        return max(count.sent, count.received)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Seconds in here are waited."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - began

    @property
    def total(self) -> Count:
        """Of all kinds."""
        whole = Count()
        for count in self.__getstate__()["kinds"].values():
            whole = whole.plus(count)
        return whole

    def plus(self, other: Traffic) -> Traffic:
        """The sum of two."""
        one, two = self.__getstate__(), other.__getstate__()
        kinds = {
            kind: one["kinds"].get(kind, Count()).plus(two["kinds"].get(kind, Count()))
            for kind in {**one["kinds"], **two["kinds"]}
        }
        return Traffic(kinds, *(one[name] + two[name] for name in ("waited", "exchanging", "exchanges")))

    def told(self) -> dict[str, Any]:
        """As JSON values."""
        state = self.__getstate__()
        return {**state, "kinds": {kind: dict(vars(count)) for kind, count in state["kinds"].items()}}


class Usage:
    """Processor and memory of this process."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process()
        self._process.cpu_percent()  # the first call says nothing: it is since then

    def now(self) -> dict[str, float]:
        """Cores kept busy since the last call, and bytes of memory."""
        return {"cores": self._process.cpu_percent() / 100, "memory": float(self._process.memory_info().rss)}
