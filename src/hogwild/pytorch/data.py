"""Whatever there is to train on, as batches of tensors: our feeds, arrays, a user's dataset, a DataLoader."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

from hogwild.arrays import AnyRows, DenseRows
from hogwild.errors import HogwildError, InputError, brief
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.sparse.batches import rows_at, slot_starts, take_entries
from hogwild.machine import memory
from hogwild.pytorch.memory import Parcel, pack

Places = npt.NDArray[np.int64]
_PIECE = 1 << 24  # bytes of each array that tell one data set from another


class DataFacts(NamedTuple):
    """What a factory may want to know of a feed: sizes and names. All empty for data of the user's own."""

    features: int = 0
    slots: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(eq=False)
class TensorFeed:
    """Samples as batches. `source` has a length and `batch(rows)`: inputs of the module and, last, the targets.

    size: samples of a batch, where the data says so (a DataLoader); 0: as the program has it.
    """

    source: Any
    name: str = "data"
    size: int = 0
    facts: DataFacts = field(default_factory=DataFacts)
    schema: dict[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    targets: npt.NDArray[np.float32] | None = None
    known: str = ""
    _parcel: Parcel | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """None of how it was read: what there is to say is said when training starts (`remarks`)."""
        return ()

    def __len__(self) -> int:
        return len(self.source)

    def parcel(self) -> Parcel:
        """The samples for other processes: in memory that they share. Made before the first sample is looked at."""
        if self._parcel is None:
            try:
                self._parcel = pack(self.source)
            except HogwildError:
                raise
            except Exception as error:
                raise InputError(
                    f"the dataset cannot be sent to workers, which are processes of their own ({type(error).__name__}: "
                    f"{error}); keep open files out of it, and put its class and functions into a module, not into "
                    "a notebook or a lambda."
                ) from error
        return self._parcel

    @property
    def fingerprint(self) -> str:
        """Tells one data set from another, for a run that goes on."""
        if not self.known:
            parcel = self.parcel()
            digest = hashlib.sha256(parcel.text)
            for start, size in parcel.places:
                digest.update(f"{size}".encode())
                digest.update(parcel.segment.bytes[start : start + min(size, _PIECE)].data)
            self.known = digest.hexdigest()
        return self.known


# -- sources ----------------------------------------------------------------------------------------------------------


class Rows:
    """Samples of a feed of ours, by the features' own numbers.

    Batches are (matrix, targets) of dense rows; (ids, offsets, targets) or, where entries have values, (ids, offsets,
    values, targets) of sparse ones, as `nn.EmbeddingBag` takes them; (ids, offsets, dense, targets) of slots, with a
    bag for each slot of each sample, one sample after the other.
    """

    def __init__(self, samples: AnyRows, slots: int, original: Any, long: bool) -> None:
        self.samples, self.slots, self.long = samples, slots, long
        self.ids: Any = None
        if not isinstance(samples, DenseRows):
            self.ids = samples.ids if original is None else original[samples.ids]

    def __len__(self) -> int:
        return len(self.samples.targets)

    def batch(self, rows: Places) -> tuple[Tensor, ...]:
        """The samples of these rows."""
        samples: Any = self.samples
        targets = torch.from_numpy(samples.targets[rows])
        targets = targets.long() if self.long else targets
        if self.ids is None:
            return torch.from_numpy(samples.matrix[rows]), targets
        sizes = samples.offsets[rows + 1] - samples.offsets[rows]
        ends = np.cumsum(sizes)
        count = int(ends[-1]) if len(ends) else 0
        ids = torch.empty(count, dtype=torch.int64)
        take_entries(self.ids, samples.offsets, rows, ids.numpy())
        if self.slots:
            starts = torch.empty(len(rows) * self.slots, dtype=torch.int64)
            slot_starts(samples.slots, samples.offsets, rows, self.slots, starts.numpy())
            parts = [ids, starts, torch.from_numpy(samples.dense[rows])]
        else:
            parts = [ids, torch.from_numpy(ends - sizes)]
        if "values" in samples._fields:
            values = torch.empty(count)
            take_entries(samples.values, samples.offsets, rows, values.numpy())
            parts.append(values)
        return (*parts, targets)


class Tensors:
    """Tensors of one length; the last are the targets."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tuple(tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def batch(self, rows: Places) -> tuple[Tensor, ...]:
        """The samples of these rows."""
        index = torch.from_numpy(rows).to(self.tensors[0].device)
        return tuple(tensor.index_select(0, index) for tensor in self.tensors)


class Items:
    """A map-style dataset of the user's, and how its items become a batch; None: an item is a batch."""

    def __init__(self, items: Any, collate: Callable[[list[Any]], Any] | None) -> None:
        self._items, self._collate = items, collate

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, rows: Places) -> Any:
        """The samples of these rows."""
        numbers = rows.tolist()
        if self._collate is None:
            return self._items[numbers[0]]
        several = getattr(self._items, "__getitems__", None)
        return self._collate(several(numbers) if several else [self._items[number] for number in numbers])


# -- from what a user has ---------------------------------------------------------------------------------------------


def tensor_feed(data: Any, long: bool = False, features: int = 0) -> TensorFeed:
    """As batches. long: targets of a feed are numbers of classes; features: those that the module knows, 0: all."""
    if isinstance(data, TensorFeed):
        return data
    if isinstance(data, Feed):
        return _feed(data, long, features)
    if isinstance(data, DataLoader):
        return _loader(data)
    if isinstance(data, TensorDataset):
        return TensorFeed(Tensors(data.tensors))
    if isinstance(data, tuple) and data and all(isinstance(part, Tensor | np.ndarray) for part in data):
        return _arrays(data)
    if isinstance(data, IterableDataset) or (hasattr(data, "__iter__") and not hasattr(data, "__getitem__")):
        return _listed(data, default_collate)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return TensorFeed(Items(data, default_collate), name=type(data).__name__)
    raise InputError(
        f"{brief(data)} is nothing to train a module on; give a feed (hogwild.open_feed), a tuple of tensors or arrays "
        "of one length, the targets last, a dataset with __len__ and __getitem__, or a DataLoader."
    )


def _feed(feed: Feed, long: bool, features: int) -> TensorFeed:
    notes = []
    feed.one_label("a module")
    facts = DataFacts(feed.features, feed.slots, feed.dense, feed.labels)
    samples = feed.samples
    if not bool((samples.importance == 1).all()):
        notes.append("Weights of samples are not looked at: every sample counts alike for a module.")
    if features and not isinstance(samples, DenseRows):
        feed, unknown = _known_only(feed, features)
        samples = feed.samples
        if unknown:
            notes.append(f"{unknown:,} entries have features that the module does not know; they are left out.")
    source = Rows(samples, len(feed.slots), feed.original, long)
    return TensorFeed(
        source, feed.source, 0, facts, feed.schema, feed.labels, tuple(notes), samples.targets, feed.fingerprint
    )


def _known_only(feed: Feed, features: int) -> tuple[Feed, int]:
    """The feed without the entries whose feature is none of the first so many."""
    samples: Any = feed.samples
    own = samples.ids if feed.original is None else feed.original[samples.ids]
    known = (own >= 0) & (own < features)
    if known.all():
        return feed, 0
    before = np.concatenate([[0], np.cumsum(known)])
    parts = {name: getattr(samples, name)[known] for name in ("ids", "slots", "values") if name in samples._fields}
    fields = {name: getattr(feed, name) for name in feed.__dataclass_fields__}
    fields |= {"samples": samples._replace(offsets=before[samples.offsets], **parts), "fingerprint": ""}
    return Feed(**fields), int((~known).sum())


def _arrays(parts: tuple[Any, ...]) -> TensorFeed:
    tensors = [part if isinstance(part, Tensor) else _tensor(part) for part in parts]
    lengths = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
    if len(lengths) > 1:
        told = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise InputError(f"the tensors differ in length ({told}); there is one entry of each for each sample.")
    return TensorFeed(Tensors([tensor.detach().contiguous() for tensor in tensors]))


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    if array.dtype.kind not in "biuf":
        raise InputError(f"an array holds {array.dtype}; tensors are of numbers.")
    return torch.from_numpy(np.array(array, np.float32 if array.dtype == np.float64 else array.dtype))


def _loader(loader: DataLoader[Any]) -> TensorFeed:
    """What a DataLoader loads, by its own collate function and batch size; workers load for themselves."""
    if loader.batch_size is None and loader.batch_sampler is not None:
        raise InputError(
            "the DataLoader has a batch sampler of its own, and here the executor divides each epoch among its "
            "workers; give it batch_size instead."
        )
    collate = loader.collate_fn if loader.batch_size is not None else None
    size = loader.batch_size or 1
    if isinstance(loader.dataset, IterableDataset):
        found = _listed(loader.dataset, collate)
    else:
        if not isinstance(loader.sampler, SequentialSampler | RandomSampler) or getattr(
            loader.sampler, "replacement", False
        ):
            raise InputError(
                f"the DataLoader has the sampler {type(loader.sampler).__name__}, and here every sample is visited "
                "once an epoch; leave the sampler out (and repeat samples in the dataset, if some are to count more)."
            )
        plain = isinstance(loader.dataset, TensorDataset) and collate is default_collate
        source = Tensors(loader.dataset.tensors) if plain else Items(loader.dataset, collate)
        found = TensorFeed(source, name=type(loader.dataset).__name__)
    found.size = size
    if loader.num_workers:
        found.remarks = (*found.remarks, "num_workers of the DataLoader has no effect: each worker loads for itself.")
    return found


def _listed(items: Any, collate: Callable[[list[Any]], Any] | None) -> TensorFeed:
    """An iterable, read once into memory: only what has numbers can be divided among workers, and in a new order."""
    kept, size, most = [], 0, memory() // 4
    for item in items:
        kept.append(item)
        size += _bytes(item)
        if size > most:
            raise InputError(
                f"an iterable dataset is read into memory, and after {len(kept):,} samples it holds {size / 1e9:.1f} "
                "GB; make it a dataset with __len__ and __getitem__, which is read as it is needed."
            )
    note = f"the iterable dataset was read into memory: {len(kept):,} samples."
    return TensorFeed(Items(kept, collate), name=type(items).__name__, remarks=(note,))


def _bytes(item: Any) -> int:
    """About the memory of an item."""
    if isinstance(item, Tensor | np.ndarray):
        return int(item.nbytes)
    if isinstance(item, Mapping):
        return sum(map(_bytes, item.values()))
    return 64 + sum(map(_bytes, item)) if isinstance(item, list | tuple) else 64


# -- batches ----------------------------------------------------------------------------------------------------------


def rows_of(visit: int, size: int, count: int, key: int, window: int = 0) -> Places:
    """The rows of a visit: `size` of `count`, less in the last; scattered by a key, 0: as they stand.

    window: they are scattered over so many rows, a multiple of `size`; 0: over all.
    """
    first = visit * size
    rows = np.empty(max(0, min(size, count - first)), np.int64)
    rows_at(first, count, window or count, key, rows)
    return rows


def split(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Positional and named inputs of the module, and the targets: what stands last, or `target` of a mapping."""
    if isinstance(batch, Mapping):
        named = dict(batch)
        return (), named, named.pop("target", None)
    if isinstance(batch, list | tuple) and len(batch) == 1:
        return tuple(batch), {}, None
    if isinstance(batch, list | tuple) and batch:
        *inputs, target = batch
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            return (), dict(inputs[0]), target
        return tuple(inputs), {}, target
    return (batch,), {}, None
