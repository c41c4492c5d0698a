"""How far word vectors scale: words a second, bytes a word and time for exchanges of N nodes, computed, not run.

What is assumed:

- Word r of the vocabulary has a share of 1 / (r + 2.7) / (1 + r / 16,000) of the text: Zipf's law, with the steeper end
  that texts have. Its occurrences come 1.8 at a time, as texts have topics; negatives come one by one, and frequent
  words are left out, as the program does. Runs of occurrences are independent: a row that m of them touch in the mean
  is touched at all with the chance 1 - exp(-m). The three numbers were fitted to 25 MB of Wikipedia, whose touched rows
  they give within 5 %, for 25,000 to 800,000 words.
- All cores of a machine train. What is done beside the workers (answers to other nodes, Ray's copies and calls) takes
  its time from them; what is done while they stand still counts as it is. Calls are sent and answered at the rate of
  one core. Links are full duplex, and the switch between them is never the limit.
- A snapshot brings everything together, while nobody trains, and goes to the driver in float32: at the end of an epoch
  and after every 30 seconds of training. Not here: in a run of few exchanges every row has about eight turns.
- The interval that costs no quality: measured for 2, 4 and 8 nodes on texts of 4 and 16 million words, answers on time
  (100,000, 25,000 and 10,000 words of a node). An answer that comes d intervals late counts as an interval d + 1 times
  as long. Between these numbers of nodes it is interpolated; beyond 8 nodes, where nothing was measured, all nodes
  together have 80,000 words between exchanges, as 8 have. It does not grow with the text: two points (the loss that 4
  nodes at 25,000 add was half as large on four times the text) hint that it could, about as its size to the power of
  0.8, which `growth` allows for.

Bytes were within 5 % of most real runs of 2 and 4 nodes, and 11 % too low for one. Speeds were 2 to 8 times too high
for runs on two busy cores whose answers went by way of object stores; since then neither is so, and nothing was
compared anew. They are bounds from above.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, log2
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config.cluster import Deltas

Strategy = Literal["average", "parameter-actor"]
Numbers = npt.NDArray[np.float64]
_TABLES = 2        # of a row a word each: inputs and outputs
_LANES = 16        # cells of a row come in whole cache lines
_HEADS = 80        # bytes of a packet beside its rows
_FLATTENED, _STEEPER = 2.7, 16_000  # ranks up to which shares are less than Zipf's, and from which they fall faster
_NEUTRAL = ((2, 100_000), (4, 25_000), (8, 10_000))
_MEASURED = 16.3e6  # words of the text for which that holds


class Costs(NamedTuple):
    """Seconds of one core for a row of a table at dim 100 (112 cells), a call of Ray's, and a byte that it carries.

    look: to find that a row has not changed; take: to find and round one that has; combine: for each row that a node
    brings, to unpack, combine and pack it again; settle: to unpack a row and take it over.
    """

    look: float = 8e-8
    take: float = 1.2e-7
    combine: float = 1.1e-7
    settle: float = 1.6e-7
    call: float = 1 / 2400
    byte: float = 1 / 300e6

    def at(self, cells: int) -> Costs:
        """For rows of so many cells."""
        rows = {name: cost * cells / 112 for name, cost in self._asdict().items()}
        return Costs(**{**rows, "call": self.call, "byte": self.byte})


@dataclass(frozen=True)
class Machine:
    """What a node runs on. speed: words a second of a worker; link: bits a second; latency: seconds, there and back."""

    speed: float = 2.6e6
    threads: int = 8
    link: float = 10e9
    latency: float = 2e-3
    costs: Costs = field(default_factory=Costs)


@dataclass(frozen=True)
class Case:
    """What is trained, and how its nodes exchange: names as in `ClusterConfig`.

    words: of the text; every: words of a node between exchanges, 0 for as many as cost no quality; drawn: negatives a
    word; clumps: occurrences of a word that come together; snapshots: seconds; growth: see above.
    """

    nodes: int
    vocabulary: int
    dim: int = 100
    words: float = 1e9
    every: float = 0
    strategy: Strategy = "average"
    shards: int = 1
    max_delay: int = 1
    deltas: Deltas = "int8"
    tier_rows: int = 1024
    sample: float = 1e-4
    drawn: float = 48 / 64
    clumps: float = 1.8
    snapshots: float = 30.0
    growth: float = 0.0

    @property
    def interval(self) -> float:
        """Words of a node between exchanges."""
        return self.every or neutral_interval(self.nodes, self.max_delay, self.words, self.growth)

    @property
    def cells(self) -> int:
        """Of a row, with the zeros that fill it up."""
        return -(-self.dim // _LANES) * _LANES

    @cached_property
    def ranks(self) -> Ranks:
        """Rows, by how often words touch them."""
        return Ranks.of(self)


class Prediction(NamedTuple):
    """For one case: sent and received are bytes of a node for each of its words, without weights for snapshots.

    exchanging: share of the time in which no word is learnt; interval: words of a node between exchanges; busiest: as
    sent, of the machine that sends most, with its parameter actor.
    """

    words_per_second: float
    exchanging: float
    sent: float
    received: float
    busiest: float
    interval: float


class Rows(NamedTuple):
    """Rows of both tables from one snapshot to the next: exchanged in turn, those of the snapshot, and looked at."""

    turns: float
    whole: float
    looked: float


@dataclass(frozen=True)
class Ranks:
    """Ranks of words in groups: sizes, the exchanges between two that have the group's rows, and touches a word."""

    sizes: Numbers
    period: Numbers
    touches: tuple[Numbers, Numbers]

    @classmethod
    def of(cls, case: Case) -> Ranks:
        """Groups that grow with the rank, none of them in two tiers."""
        vocabulary, tier_rows = case.vocabulary, case.tier_rows
        edges = {*range(256), vocabulary, *(int(256 * 1.02**k) for k in range(1200))}
        tiers = [tier_rows << k for k in range(64) if tier_rows and tier_rows << k < vocabulary]
        bounds = np.array(sorted(edge for edge in edges | set(tiers) if edge <= vocabulary), np.float64)
        sizes, rank = np.diff(bounds), (bounds[:-1] + bounds[1:] + 1) / 2
        share = 1 / ((rank + _FLATTENED) * (1 + rank / _STEEPER))
        share /= (share * sizes).sum()
        rarity = case.sample / share if case.sample else 1.0
        kept = share * np.minimum(1, np.sqrt(rarity) + rarity)
        noise = share**0.75 / (share**0.75 * sizes).sum()
        period = 2.0 ** np.ceil(np.log2(np.maximum(1, bounds[1:] / (tier_rows or vocabulary))))
        return cls(sizes, period, (kept / case.clumps, kept / case.clumps + case.drawn * noise))

    def rows(self, nodes: int, interval: float, exchanges: float) -> Rows:
        """Rows that this many nodes change together, with so many exchanges up to the next snapshot."""
        times = np.floor(exchanges / self.period)
        left = exchanges - times * self.period
        turns = whole = 0.0
        for touches in self.touches:
            chance = 1 - np.exp(-touches * nodes * interval * self.period)
            turns += float((self.sizes * times * chance).sum())
            whole += float((self.sizes * (1 - np.exp(-touches * nodes * interval * left))).sum())
        return Rows(turns, whole, _TABLES * float((self.sizes * times).sum()))


def neutral_interval(nodes: int, delay: int = 0, words: float = _MEASURED, growth: float = 0.0) -> float:
    """The most words of a node between exchanges that cost no quality; see the head of this file for where it is from.

    Examples
    --------
    >>> [round(neutral_interval(nodes)) for nodes in (2, 4, 8, 16)], round(neutral_interval(4, delay=1))
    ([100000, 25000, 10000, 5000], 12500)
    """
    budget = 2 ** np.interp(log2(nodes), *np.log2(np.array(_NEUTRAL)).T) / max(1, nodes / _NEUTRAL[-1][0])
    return float(budget * (words / _MEASURED) ** growth / (delay + 1))


def bytes_of_row(cells: int, deltas: Deltas) -> int:
    """Bytes of the cells of a row, with its scale.

    >>> [bytes_of_row(112, form) for form in ("float32", "bfloat16", "int8", "int4")]
    [448, 224, 116, 60]
    """
    return {"float32": 4 * cells, "bfloat16": 2 * cells, "int8": cells + 4, "int4": (cells + 1) // 2 + 4}[deltas]


def _bytes(case: Case, rows: Rows, exchanges: float) -> tuple[float, float]:
    """Bytes of all packets with these rows: of the exchanges in turn, and of the snapshot."""
    owners = case.nodes if case.strategy == "average" else case.shards

    def name(count: float, among: float) -> float:
        """Bytes of the number of a row: a bit for each of its range, or how far on the next is."""
        gap = owners * among / max(count, 1e-9)
        return min(gap / 8, 1 + exp(-128 / gap)) if gap > 0 else 0.0

    each = bytes_of_row(case.dim, case.deltas)  # zeros that fill a row are not sent
    turns = rows.turns * (each + name(rows.turns, rows.looked))
    whole = rows.whole * (each + name(rows.whole, _TABLES * case.vocabulary))
    return turns + exchanges * _HEADS * owners, whole + _HEADS * owners


def predict(case: Case, machine: Machine) -> Prediction:
    """What a case does on such machines.

    >>> predict(Case(1, 100_000), Machine(speed=1e6, threads=2)).words_per_second
    2000000.0
    """
    epoch = case.words / case.nodes
    if case.nodes == 1:
        return Prediction(machine.speed * machine.threads, 0.0, 0.0, 0.0, 0.0, epoch)
    between = epoch
    for _ in range(8):  # words of a node between snapshots: they depend on the speed, which depends on them
        found, pace = _between_snapshots(case, machine, between)
        between = min(epoch, max(case.interval, case.snapshots * pace))
    return found


def _between_snapshots(case: Case, machine: Machine, words: float) -> tuple[Prediction, float]:
    """From one snapshot to the next, so many words of a node later; and how many it trains a second before that."""
    nodes, costs, interval = case.nodes, machine.costs.at(case.cells), min(case.interval, words)
    exchanges = words / interval
    mine, union = (case.ranks.rows(count, interval, exchanges) for count in (1, nodes))
    up, down = _bytes(case, mine, exchanges), _bytes(case, union, exchanges)
    if case.strategy == "average":  # what goes to owners, and answers of this one as an owner; as much comes in
        sent = [(one + all_) * (nodes - 1) / nodes for one, all_ in zip(up, down, strict=True)]
        received, busiest, calls = sent, sent, 2 * (nodes - 1)
    else:  # the busiest machine has a parameter actor, and a node too; its actor answers all other nodes
        sent, received = list(up), list(down)
        busiest = [one + (nodes - 1) * all_ / case.shards for one, all_ in zip(up, down, strict=True)]
        calls = nodes + case.shards
    owned = 1 / (nodes if case.strategy == "average" else case.shards)

    def stand(kind: int) -> float:
        return mine[kind] * costs.take + union[kind] * costs.settle

    def answer(kind: int) -> float:
        return owned * nodes * mine[kind] * costs.combine

    weights = _TABLES * case.vocabulary * case.cells * 4
    computing = words / machine.threads / machine.speed
    beside = answer(0) + exchanges * calls * costs.call + (sent[0] + received[0]) * costs.byte
    training = computing + beside / machine.threads
    standing = stand(0) + (mine.looked + _TABLES * case.vocabulary) * costs.look
    wire = busiest[0] * 8 / machine.link + exchanges * machine.latency
    late = max(0.0, wire - case.max_delay * training)
    snapshot = stand(1) + answer(1) + (busiest[1] + weights) * 8 / machine.link + machine.latency
    seconds = training + standing + late + snapshot + (sent[1] + received[1] + weights) * costs.byte
    out, came, most = (sum(kind) / words for kind in (sent, received, busiest))
    pace = words / (training + standing + late)
    return Prediction(nodes * words / seconds, 1 - computing / seconds, out, came, most, interval), pace


_NODES = 2, 4, 8, 16, 32, 100
_SHAPES = ((10_000, 100), (100_000, 100), (1_000_000, 100), (1_000_000, 300), (10_000_000, 300))


def table(machine: Machine | None = None, words: float = 1e10) -> str:
    """Markdown for 2 to 100 nodes: a selection of vocabularies, dimensions, links. The head has what is assumed."""
    machine = machine or Machine()
    neutral = [neutral_interval(nodes, 1) for nodes in _NODES]
    lines = [
        f"{machine.threads} workers a node, {machine.speed / 1e6:.1f} M words/s each at dim 100, {words:.0e} words,",
        "int8, tiers, an interval late. Cells: bytes that the busiest machine sends for a word of a node; times the",
        "speed of one node; the same with intervals ten times as long, which are not neutral.\n",
        _row("strategy", "vocabulary", "dim", "Gbit/s", *(f"{nodes} nodes" for nodes in _NODES)),
        _row(*["---"] * (4 + len(_NODES))),
        _row("**interval**", "", "", "", *(f"{words:,.0f} words" for words in neutral)),
    ]
    shapes: list[tuple[Strategy, int, int]] = [("average", *shape) for shape in _SHAPES]
    for strategy, vocabulary, dim in [*shapes, ("parameter-actor", *_SHAPES[1])]:
        for link in (1, 10, 100):
            there = replace(machine, link=link * 1e9, speed=machine.speed * 100 / dim)
            cells = []
            for nodes, interval in zip(_NODES, neutral, strict=True):
                shards = nodes if strategy == "parameter-actor" else 1
                case = Case(nodes, vocabulary, dim, words, strategy=strategy, shards=shards)
                short, long = (predict(replace(case, every=times * interval), there) for times in (1, 10))
                gains = [f"{each.words_per_second / there.speed / there.threads:.2g}" for each in (short, long)]
                cells.append(f"{short.busiest:.0f} B; {gains[0]}; {gains[1]}")
            lines.append(_row(strategy, f"{vocabulary:,}", dim, link, *cells))
    return "\n".join(lines)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
