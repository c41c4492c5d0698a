"""What a run reads where its nodes are: files as named, what is known of all of them, and each node's part."""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hogwild.feeds.io.source import Settings, open_sources
from hogwild.feeds.io.workspace import drop_workspace

_LOOKED_AT = 1 << 16  # bytes at the beginning and at the end of a file that tell it from another


class PartSource(ABC):
    """Where a node finds its part."""

    @abstractmethod
    def feed(self) -> Any:
        """The part, as a feed."""

    def wait(self, share: float, longest: float) -> None:
        """Until so much of the part is there."""


class Parted(ABC):
    """A feed of which the nodes have the parts; here is what is known of it as a whole."""

    @abstractmethod
    def visits_of(self, program: Any, sources: Sequence[Any]) -> list[int]:
        """The visits of an epoch, of each part."""

    @abstractmethod
    def read_again(self, fleet: Any, ranks: Sequence[int], threads: int) -> list[Any]:
        """New fetchers in place of dead ones read their parts, which must be what they were."""

    @abstractmethod
    def is_as(self, other: Any) -> bool:
        """Whether a program that began with the other one can go on with this."""


class Files(ABC):
    """Files for `hogwild.cluster.train`, to be read by the nodes themselves."""

    @abstractmethod
    def read(self, fleet: Any, threads: int) -> tuple[Any, list[Any]]:
        """Let the nodes read them; returns what is known of them as a whole, and where each node finds its part."""


class FileLook(NamedTuple):
    """A file as a node sees it."""

    name: str
    path: str
    size: int
    checksum: int


def same_everywhere(looks: Sequence[Sequence[FileLook]]) -> bool:
    """Whether all nodes see the same files."""
    return all([file[1:] for file in look] == [file[1:] for file in looks[0]] for look in looks)


class Fetcher:
    """Reads a part for a node. Runs inside of a process of its own, on the machine of its node."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._place: Path | None = None

    def pid(self) -> int:
        """Of its process."""
        return os.getpid()

    def look(self, paths: Sequence[str], config: Settings) -> list[FileLook]:
        """The files as they are here."""
        found = []
        for source in open_sources(list(paths), config):
            path = Path(os.path.abspath(source.path))
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(_LOOKED_AT)
                file.seek(max(0, size - _LOOKED_AT))
                checksum = zlib.crc32(file.read(_LOOKED_AT), zlib.crc32(head))
            found.append(FileLook(source.name, str(path), size, checksum))
        return found

    def fill(self) -> int:
        """Make the rest of the part ready while the node already trains; returns its size."""
        return 0

    def abort(self, why: str) -> None:
        """Nobody waits here."""

    def close(self) -> None:
        """Nothing of it stays on disk; a node that has mapped its part keeps it."""
        if self._place is not None:
            drop_workspace(self._place)
            self._place = None
