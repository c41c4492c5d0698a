"""An executor whose workers are nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from hogwild.cluster.columns.course import ColumnsCourse
from hogwild.cluster.course import Course
from hogwild.cluster.forecast.nodes import VIRTUAL
from hogwild.cluster.parted import Files, Parted
from hogwild.cluster.site import Site
from hogwild.cluster.text.texts import PartedCorpus
from hogwild.config import TrainConfig
from hogwild.config.cluster import ClusterConfig
from hogwild.config.options import check_names
from hogwild.errors import ConfigError
from hogwild.executor.events import Event
from hogwild.executor.plan import check_best
from hogwild.executor.run import made_config
from hogwild.executor.state import RunState
from hogwild.feeds.held_out import hold_out


class ClusterExecutor:
    """Trains a program on several nodes; as `AsyncExecutor`, of which each node has one.

    Parameters
    ----------
    cluster : where the nodes are, and how they exchange.
    options : fields of `TrainConfig`. `threads` is left out: `cluster.workers_per_node` says it.

    It starts or joins Ray when that is first needed; `close`, or leaving it as a context, ends what it started.
    """

    def __init__(self, cluster: ClusterConfig, **options: Any) -> None:
        check_names(TrainConfig, options)
        if not cluster.cluster:
            raise ConfigError("cluster is ''; it is `local`, or the address of a cluster.")
        if cluster.cluster == VIRTUAL:
            raise ConfigError("virtual nodes train nothing, but for `hogwild simulate`; use local, or an address.")
        self.site = Site(cluster)
        self._given = options
        self._wishes: set[str] = set()
        self._course: Course | None = None

    def __enter__(self) -> ClusterExecutor:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes of the run, and Ray, if it was started here."""
        self.site.close()

    def open(self, files: Files) -> Any:
        """Let the nodes read files, each its part (`Texts`, `Rows`): what is known of them as a whole, for `run`."""
        return self.site.open(files)

    @property
    def threads(self) -> int:
        """Workers of all nodes."""
        return self.site.count * self.site.workers

    def config_for(self, program: Any, **options: Any) -> TrainConfig:
        """How a run of the program goes."""
        check_names(TrainConfig, options)
        return made_config(program.training, {**self._given, **options, "threads": self.threads})

    def stop(self) -> None:
        """Stop at the next exchange; the run ends with `Finished(reason="stopped")`."""
        self._wishes.add("stop")

    def park(self) -> None:
        """Let all stand still at the next exchange and the generator yield `Parked`, for a checkpoint."""
        self._wishes.add("park")

    def state(self) -> RunState:
        """Where the run stands; exact where its nodes stand still. See `Course.state` for what its numbers mean."""
        if self._course is None:
            raise ConfigError("there is no run yet; iterate over `run` first.")
        return self._course.state()

    def run(
        self, program: Any, feed: Any, *, valid: Any = None, watch: Any = None, start: RunState | None = None,
        **options: Any,
    ) -> Iterator[Event]:  # fmt: skip
        """Train, yielding events; the program has the weights of all at `EpochEnded`, `Parked` and `Finished`.

        feed : any feed, of which each node gets a copy and visits its part; or files that the nodes read, each its
            part (`Texts`, `Rows`).
        """
        config = self.config_for(program, **options)
        if isinstance(feed, Files | Parted) and (config.valid_share or config.valid_last):
            raise ConfigError("nodes read such files themselves, and nothing is held out of them; give --valid FILE.")
        feed, valid, _ = hold_out(config, feed, valid)
        check_best(config, program, valid)
        if config.trace:
            raise ConfigError("trace looks at workers of one machine; leave --trace or --cluster out.")
        if isinstance(feed, Files):
            feed = self.open(feed)
        config = program.adapted(config, feed)
        if self.site.config.strategy == "merge" and not isinstance(feed, PartedCorpus):
            raise ConfigError(
                f"strategy merge is for word vectors on texts that nodes read, not for {program.name}; try average."
            )
        self._check_words(program, feed, config)
        course = ColumnsCourse if self.site.config.strategy == "columns" else Course
        self._course = course(self.site, program, feed, config, start)
        try:
            yield from self._course.events(valid, watch, self._wishes)
        finally:
            self._wishes.clear()

    def _check_words(self, program: Any, feed: Any, config: TrainConfig) -> None:
        """Raise ConfigError for what only word vectors can, or not in this way."""
        cluster = self.site.config
        words = isinstance(feed, PartedCorpus)
        options = program.config if program.name == "word2vec" else None
        for name, usual in (("subwords", ""), ("loss", "ns")):
            if options is not None and getattr(options, name) != usual:
                raise ConfigError(f"word vectors with {name} are trained on one machine; leave --cluster or it out.")
        if cluster.paged and options is not None and options.negative_exponent != 0.75:
            raise ConfigError(
                "with paged negatives are drawn by count^0.75; leave --negative-exponent or --paged out."
            )
        if cluster.noise_pool and not words:
            raise ConfigError(f"noise_pool is for word vectors, not for {program.name}; leave it out.")
        if not cluster.paged:
            return
        if not words:
            raise ConfigError(
                f"paged is for word vectors on texts that nodes read, not for {program.name}; leave it out, or make "
                "the model smaller (fewer hash bits, a smaller dim)."
            )
        if config.shuffle or config.sharing != "all":
            raise ConfigError(
                "with paged the text is visited in its order, and the rows at hand are one copy; leave --shuffle and "
                "--sharing out."
            )


def train(
    program: Any, feed: Any, *, valid: Any = None, watch: Any = None, cluster: str = "local", **options: Any
) -> Iterator[Event]:
    """Train a program on several nodes, yielding events; nothing happens before the first is asked for.

    Parameters
    ----------
    feed : any feed, of which each node gets a copy and visits its part; or files that the nodes read, each its part
        (`Texts`, `Rows`).
    valid, watch : as for `hogwild.AsyncExecutor.run`.
    cluster : `local`, or the address of a running Ray.
    options : other fields of `ClusterConfig` (nodes, workers_per_node, strategy …) and of `TrainConfig` (epochs, lr …).

    Examples
    --------
    >>> import hogwild.cluster                                                          # doctest: +SKIP
    >>> program = hogwild.Word2Vec(dim=100)                                             # doctest: +SKIP
    >>> texts = hogwild.cluster.Texts(("wiki.txt",))                                    # doctest: +SKIP
    >>> for event in hogwild.cluster.train(program, texts, nodes=2, epochs=5):          # doctest: +SKIP
    ...     print(event.kind, event.samples)
    """
    names = {item.name for item in fields(ClusterConfig)}
    where = ClusterConfig(cluster, **{name: value for name, value in options.items() if name in names})
    rest = {name: value for name, value in options.items() if name not in names}
    with ClusterExecutor(where, **rest) as executor:
        yield from executor.run(program, feed, valid=valid, watch=watch)
