"""The processes of a run on a cluster: nodes, their fetchers, parameter actors; begun, called and replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from hogwild.cluster.columns.node import ColumnsNode
from hogwild.cluster.node import Node, Prepared, Work
from hogwild.cluster.paging.shelf import Shelf
from hogwild.cluster.parameters import Parameters
from hogwild.cluster.parted import Fetcher
from hogwild.cluster.session import Session
from hogwild.cluster.wire.link import fetched
from hogwild.config import CorpusConfig
from hogwild.config.cluster import ClusterConfig
from hogwild.errors import ClusterError
from hogwild.feeds.io.parts import TextPart

STARTING = 180.0  # seconds for a process to begin, import and compile
_READING = 24 * 3600.0  # seconds for the text of a node
_ENDING = 5.0
_MORE = 8  # nodes that may join late
NODE, FETCHER, SERVER = "node", "fetcher", "parameter actor"


class Fleet:
    """All processes of a run, by kind and number. count: of nodes, which may grow up to `most`."""

    def __init__(self, session: Session, config: ClusterConfig, count: int) -> None:
        self._session, self._config, self.count = session, config, count
        self.most = 2 * count + _MORE
        self._actors: dict[tuple[str, int], Any] = {}
        self._fetching: type[Fetcher] = Fetcher
        self._attempts = 0

    @property
    def whole_texts(self) -> bool:
        """Whether every node reads all of a text."""
        return self._config.strategy == "columns"

    @property
    def words_only(self) -> str:
        """The strategy, where it is one for word vectors alone."""
        config = self._config
        return config.strategy if config.strategy in ("columns", "merge") else "paged" if config.paged else ""

    # -- processes --------------------------------------------------------------------------------------------------

    def start_nodes(self) -> None:
        """Begin nodes and parameter actors that are missing, all at once."""
        config = self._config
        kind = ColumnsNode if self.whole_texts else Node
        for rank in range(self.count):
            self._begin(NODE, rank, kind, (rank, config), self.most + 8)  # each other node may wait here
        for shard in range(config.shards if config.strategy == "parameter-actor" else 0):
            self._begin(SERVER, shard, Shelf if config.paged else Parameters, (shard, config), 2 * self.most + 4)

    def start_fetchers(self, kind: type[Fetcher] | None = None) -> list[int]:
        """Begin those that are missing, of this kind, or of that of the others; their ranks."""
        self._fetching = kind or self._fetching
        return [rank for rank in range(self.count) if self._begin(FETCHER, rank, self._fetching, (rank,), 4)]

    def _begin(self, kind: str, number: int, what: type, given: tuple[Any, ...], threads: int) -> bool:
        if (kind, number) in self._actors:
            return False
        places = self._session.places
        options = self._session.place_options(places[number % len(places)])
        self._actors[kind, number] = ray.remote(what).options(max_concurrency=threads, **options).remote(*given)
        return True

    @property
    def nodes(self) -> list[Any]:
        """By rank."""
        return self._all(NODE)

    @property
    def servers(self) -> list[Any]:
        """By shard."""
        return self._all(SERVER)

    def _all(self, kind: str) -> list[Any]:
        return [actor for (which, _), actor in sorted(self._actors.items(), key=lambda item: item[0]) if which == kind]

    def pids(self) -> dict[str, int]:
        """The process of each, by what it is called."""
        asked = {f"{kind} {number}": actor.pid.remote() for (kind, number), actor in self._actors.items()}
        return {name: fetched(reference, name, STARTING) for name, reference in asked.items()}

    def drop_dead(self, why: str) -> list[str]:
        """After a fault: let nobody wait any more, and forget who does not answer; names of those."""
        asked, dead = {}, []
        for name, actor in self._actors.items():
            with suppress(RayError):
                asked[name] = actor.abort.remote(why)
        until = time.monotonic() + _ENDING
        for name in list(self._actors):
            try:
                fetched(asked[name], " ".join(map(str, name)), max(0.1, until - time.monotonic()))
            except (ClusterError, KeyError):
                with suppress(Exception):
                    ray.kill(self._actors[name])
                del self._actors[name]
                dead.append(" ".join(map(str, name)))
        return dead

    def end(self) -> None:
        """End all of them."""
        closing = []
        for fetcher in self._all(FETCHER):
            with suppress(RayError):
                closing.append(fetcher.close.remote())
        if closing:
            with suppress(RayError):
                ray.wait(closing, num_returns=len(closing), timeout=_ENDING)
        for actor in self._actors.values():
            with suppress(Exception):
                ray.kill(actor)
        self._actors.clear()

    # -- calls ------------------------------------------------------------------------------------------------------

    def ask(self, method: str, *given: Any, longest: float = STARTING) -> list[Any]:
        """The same question to all nodes; their answers."""
        references = [getattr(node, method).remote(*given) for node in self.nodes]
        return [fetched(reference, f"node {rank}", longest) for rank, reference in enumerate(references)]

    def prepare(
        self, program: Any, sources: Sequence[Any], work: Callable[[int], Work], weights: Sequence[Any],
        ranks: Sequence[int],
    ) -> list[Prepared]:  # fmt: skip
        """Make nodes ready."""
        nodes = self.nodes
        references = [
            (rank, nodes[rank].prepare.remote(program, sources[rank], work(rank), weights[rank])) for rank in ranks
        ]
        return [fetched(reference, f"node {rank}", STARTING) for rank, reference in references]

    def connect(self, prepared: Sequence[Prepared], weights: Any, visits: Sequence[int]) -> None:
        """Nodes and parameter actors know each other, and begin with the same weights."""
        held = (weights,) if self._config.asynchronous and not self._config.paged else ()
        attempt, self._attempts = self._attempts, self._attempts + 1
        loading = [server.load.remote(prepared[0].tables, self.count, attempt, *held) for server in self.servers]
        for shard, reference in enumerate(loading):
            fetched(reference, f"parameter actor {shard}", STARTING)
        self.ask("connect", self.nodes, self.servers, visits, attempt, self._all(FETCHER))

    # -- text -------------------------------------------------------------------------------------------------------

    def fetcher(self, rank: int) -> Any:
        """The fetcher of a node."""
        return self._actors[FETCHER, rank]

    def ask_fetchers(self, method: str, ranks: Sequence[int], given: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """A question to fetchers, for each its own; their answers."""
        references = [(rank, getattr(self.fetcher(rank), method).remote(*given(rank))) for rank in ranks]
        return [fetched(reference, f"fetcher {rank}", _READING) for rank, reference in references]

    def count_parts(
        self, ranks: Sequence[int], parts: Sequence[Sequence[TextPart]], config: CorpusConfig, threads: int
    ) -> list[Any]:
        """Let fetchers read and count their parts."""
        return self.ask_fetchers("count", ranks, lambda rank: (parts[rank], config, threads))

    def begin_text(self, ranks: Sequence[int], words: Any, counts: Any, whole: dict[str, Any]) -> list[Any]:
        """Let fetchers make ready with the common vocabulary."""
        shared = ray.put(words), ray.put(counts)
        return self.ask_fetchers("begin", ranks, lambda rank: (*shared, whole))
