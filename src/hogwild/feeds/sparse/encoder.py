"""What an encoder is, and what it yields: runs of rows as arrays, and at the end what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hogwild.arrays import Floats, Ids, Offsets, Slots

if TYPE_CHECKING:
    from hogwild.feeds.io.source import Source


class Chunk(NamedTuple):
    """Rows in the order of one file. `values` is empty when all are 1; lines[i] is the line number of row i.

    file: the place of that file in the sequence of sources.
    slots: the slot of each entry, where samples have several; dense: (rows, columns), the numbers beside them. Either
    all chunks have them or none.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    targets: Floats
    lines: Offsets
    file: int = 0
    slots: Slots | None = None
    dense: Floats | None = None


@dataclass(frozen=True)
class Summary:
    """What an encoder knows when all files are read; see Feed for the meaning of the fields.

    first_id: the id in the chunks that stands for feature 0 (known only at the end for svmlight files); smaller
    ids must not occur.
    relabel: where the order of the labels is known only at the end, the final target of each target in the chunks
    (0, 1, …); empty: the targets are final. Names of slots and of dense columns stand in the schema under `slots` and
    `dense`. scales: factors for the values of the features 0, 1, … that it covers,
    known only at the end; empty: the values are final. dense_scales: the same for the columns of the dense matrix.
    remap: the feature of each id in the chunks, where ids are given before it is known which features there are (then
    first_id is 0). remap_slots: the same for slots, in rising order.
    """

    features: int
    labels: tuple[str, ...] = ()
    schema: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    first_id: int = 0
    relabel: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    dense_scales: tuple[float, ...] = ()
    remap: Ids | None = None
    remap_slots: tuple[int, ...] = ()


class Encoder(Protocol):
    """Turns sources of one format into chunks. Made as `SomeEncoder(config: FeedConfig, schema: dict | None)`.

    The schema is that of an earlier feed (empty or None for a first one): then the same words get the same ids.
    `summary` is called once, after `chunks` is exhausted. Chunks hold one to a few megabytes, so that memory
    stays bounded; a chunk never spans two files. Its arrays belong to the encoder, which may write to them when the
    next chunk is asked for: copy what must last. `options` names the fields of FeedConfig that change the result;
    an encoder that has no such attribute depends on all of them. `described`, if there is one, is what it read
    elsewhere, as JSON values.
    """

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
