"""Where a run on several nodes takes place: Ray, the processes there, and the files that they read."""

from __future__ import annotations

from typing import Any

from hogwild.cluster.fleet import Fleet
from hogwild.cluster.parted import Files, PartSource
from hogwild.cluster.session import Session, open_session
from hogwild.config.cluster import ClusterConfig
from hogwild.errors import ClusterError
from hogwild.machine import cores

_TRIES = 3  # to read files, while fetchers die
_LOCALLY = 2  # nodes, where the user does not say how many


class Site:
    """Begins when it is first needed; `close` ends what it began.

    sources: where each node finds its part of the files that were read.
    """

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self.sources: list[PartSource] = []
        self._session: Session | None = None
        self._fleet: Fleet | None = None
        self._files: Files | None = None
        self._count = 0

    @property
    def session(self) -> Session:
        """Ray, started or joined."""
        if self._session is None:
            config = self.config
            nodes = config.nodes or (_LOCALLY if config.cluster == "local" else 0)
            self._session = open_session(config.cluster, nodes, config.workers_per_node or 1)
        return self._session

    @property
    def count(self) -> int:
        """Nodes."""
        if not self._count:
            locally = self.config.cluster == "local"
            self._count = self.config.nodes or (_LOCALLY if locally else len(self.session.places))
        return self._count

    @property
    def workers(self) -> int:
        """Workers of a node."""
        if self.config.workers_per_node is not None:
            return self.config.workers_per_node
        if self.config.cluster == "local":
            return max(1, cores() // self.count)
        places = self.session.places
        return max(1, min(place.cores for place in places) // -(-self.count // len(places)))

    @property
    def fleet(self) -> Fleet:
        """The processes of the run."""
        if self._fleet is None:
            self._fleet = Fleet(self.session, self.config, self.count)
        return self._fleet

    def check_store(self, needed: int) -> None:
        """Raise ClusterError where an object store has no room for so many bytes, before anything is put there."""
        small = min(self.session.places, key=lambda place: place.store)
        if 0 < small.store < needed:
            raise ClusterError(
                f"weights and data of this run need {needed / 1e9:.2f} GB in the object store of each node, and "
                f"{small.name or small.address} has {small.store / 1e9:.2f} GB; give Ray more (its option for the "
                "object store's memory, a larger /dev/shm), or train a smaller model."
            )

    def open(self, files: Files) -> Any:
        """Let the nodes read files; returns what is known of them as a whole."""
        self._files = files
        self.fleet.start_nodes()  # they begin while the files are read
        for left in reversed(range(_TRIES)):
            try:
                whole, self.sources = files.read(self.fleet, self.workers)
                return whole
            except ClusterError as error:
                if not left:
                    raise
                self.fleet.drop_dead(f"the files are read again: {error}")
        raise AssertionError

    def grow(self, most: int) -> str:
        """Where a node a machine is wanted: one more for each that joined Ray since; why others are not taken in.

        most: nodes that have enough to do.
        """
        if self.config.nodes is not None or self.config.cluster == "local":
            return ""
        refused = self.session.look_for_more()
        self._count = max(self._count, min(len(self.session.places), self.fleet.most, most))
        self.fleet.count = self._count
        return refused

    def open_again(self) -> Any:
        """The files that were read, cut anew for the nodes that there are now."""
        assert self._files is not None
        return self.open(self._files)

    def close(self) -> None:
        """End the processes of the run, and Ray, if it was started here."""
        if self._fleet is not None:
            self._fleet.end()
            self._fleet = None
        if self._session is not None:
            self._session.close()
            self._session = None
