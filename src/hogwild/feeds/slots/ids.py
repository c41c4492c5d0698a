"""Features of slots: every category of a slot has one, or its hash is one. Slots have features of their own unless
they share them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Keys, Offsets, Slots
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.sparse.encoder import rare_notes
from hogwild.kernels.ids.hashing import hash_bytes
from hogwild.kernels.ids.keys import AHEAD, KeyTable, find_keys, grown, hash_keys, make_table, number_keys, table_of
from hogwild.kernels.ids.ranking import count_ids

_ROOM = 1 << 16         # categories that a new table has room for
_MOST = 2**31 - 2**17   # categories, and one more for each slot, that int32 can number
_PER_LINE = 256         # keys in one text of the schema
_ONE_GROUP = np.zeros(1, np.uint16)


class SlotIds:
    """Gives the categories of slots their ids: numbers as they come while a model is trained, features ever after.

    Features: the categories of the first slot in the order in which they came, then those of the second, and so on;
    with a cut-off one more for each slot, for those that are rare, and for those that were never seen if there were
    rare ones. Hashed: 2^bits for all slots.

    Parameters
    ----------
    names
        Names of the slots.
    config
        `categories`, `hash_bits`, `hash_seed`, `shared_ids` and `min_count`.
    schema
        What `schema` gave when the model was trained: then nothing is added, and `ids` may be called in threads.

    Examples
    --------
    >>> ids = SlotIds(["site", "ad"], FeedConfig())
    >>> keys, slots = np.array([7, 7, 9, 7], np.uint64), np.array([0, 1, 0, 1], np.uint16)
    >>> ids.ids(keys, slots)[0].tolist()
    [0, 1, 2, 1]
    >>> ids.finish().tolist()                # site 7, site 9, ad 7
    [0, 2, 1]
    """

    def __init__(self, names: Sequence[str], config: FeedConfig, schema: Mapping[str, Any] | None = None) -> None:
        schema = schema or {}
        self.names = tuple(names)
        self.shared: bool = schema.get("shared_ids", config.shared_ids)
        self.hashed = schema.get("categories", config.categories) == "hash"
        self.min_count: int = schema.get("min_count", config.cut_off)
        hashing = schema.get("hashing", {"bits": config.hash_bits, "seed": config.hash_seed})
        self.bits, self.seed = int(hashing["bits"]), int(hashing["seed"])
        if not (1 <= self.bits <= 30 and 0 <= self.seed < 2**64):
            raise ValueError("no such hashing")
        self.groups = 1 if self.shared else len(self.names)
        self.fixed = bool(schema)
        self.rare = np.full(self.groups, -1, np.int32)
        self._sizes: list[int] = [0] * self.groups
        self._table: KeyTable = make_table(1)
        self._counts: Offsets = np.zeros(_ROOM, np.int64)
        self._texts: list[str] = []
        self._cut = (0, 0)  # categories that are rare, and how often they occur
        self._with_rare: list[int] | None = schema.get("rare")  # slots that had some in training; None: not told
        if self.hashed:
            self._seeds = np.array([_seed(b"" if self.shared else name.encode(), self.seed)
                                    for name in self.names[: self.groups]], np.uint64)  # fmt: skip
        elif self.fixed:
            self._recall(schema)
        else:
            self._table = make_table(_ROOM)

    @property
    def in_order(self) -> bool:
        """Whether `ids` must be called in the order of the files, by one thread."""
        return not (self.hashed or self.fixed)

    @property
    def features(self) -> int:
        """How many features there are; known when all is read."""
        if self.hashed:
            return 1 << self.bits
        return max(sum(self._sizes) + (self.groups if self.min_count > 1 else 0), 1)

    def ids(self, keys: Keys, slots: Slots) -> tuple[Ids, int]:
        """The id of each category, and how many have none of their own: -1, or the rare one if there is a cut-off."""
        groups = _ONE_GROUP if self.shared else slots
        ids, homes = np.empty(len(keys), np.int32), np.empty(AHEAD, np.int64)
        with np.errstate(over="ignore"):  # hashes wrap around; only the interpreter, with the compiler off, says so
            if self.hashed:
                hash_keys(keys, groups, self._seeds, self.bits, ids)
                return ids, 0
            if self.fixed:
                return ids, int(find_keys(self._table, keys, groups, self.rare, ids, homes))
            done = 0
            while (done := number_keys(self._table, keys, groups, ids, done, homes)) < len(keys):
                if 2 * len(self._table.keys) > _MOST:
                    raise InputError("there are more categories than ids; hash them with --categories hash.")
                self._table = grown(self._table)
        if self.min_count > 1:
            if len(self._counts) < len(self._table.keys):
                self._counts = np.append(self._counts, np.zeros(len(self._table.keys) - len(self._counts), np.int64))
            count_ids(ids, self._counts)
        return ids, 0

    def finish(self) -> Ids | None:
        """When all is read: the feature of each id that was given; None if ids are features."""
        if not self.in_order:
            return None
        size = int(self._table.size[0])
        groups = self._table.groups[:size]
        order = np.argsort(groups, kind="stable")
        if self.min_count > 1:
            often = self._counts[order] >= self.min_count
            order, cut = order[often], order[~often]
            self._cut = (len(cut), int(self._counts[cut].sum()))
        remap = np.empty(size, np.int32)
        remap[order] = np.arange(len(order), dtype=np.int32)
        if self.min_count > 1:
            remap[cut] = groups[cut] + np.int32(len(order))
            self._with_rare = np.unique(groups[cut]).tolist()
        self._sizes = np.bincount(groups[order], minlength=self.groups).tolist()
        self._keys = self._table.keys[order]
        return remap

    def schema(self) -> dict[str, Any]:
        """JSON values from which this is made again. `keys`: those of all features, some in each text."""
        found: dict[str, Any] = {"categories": "hash" if self.hashed else "enumerate", "shared_ids": self.shared,
                                 "min_count": self.min_count,
                                 "hashing": {"bits": self.bits, "seed": self.seed}}  # fmt: skip
        if self._with_rare is not None:
            found["rare"] = self._with_rare
        if not self.hashed:
            if not self.fixed:
                keys = self._keys.tolist()
                self._texts = [" ".join(map(str, keys[k : k + _PER_LINE])) for k in range(0, len(keys), _PER_LINE)]
            found |= {"sizes": self._sizes, "keys": self._texts}
        return found

    def spelt(self, keys: Keys, slots: Slots) -> dict[str, int]:
        """How often each `slot=key` is among these; shared slots have no name."""
        found: dict[str, int] = {}
        for slot in [0] if self.shared else np.unique(slots).tolist():
            own, counts = np.unique(keys if self.shared else keys[slots == slot], return_counts=True)
            prefix = "=" if self.shared else f"{self.names[slot]}="
            found |= {f"{prefix}{key}": count for key, count in zip(own.tolist(), counts.tolist(), strict=True)}
        return found

    def notes(self, unseen: int) -> list[str]:
        """What to tell the user; `unseen` categories were not known."""
        return rare_notes(self._cut, unseen, self.min_count, ("entry", "slot"))

    def _recall(self, schema: Mapping[str, Any]) -> None:
        """The vocabulary of a model. Raises ValueError or TypeError if there can be none such."""
        self._sizes = [int(size) for size in schema["sizes"]]
        self._texts = list(schema["keys"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                self._keys = np.fromstring(" ".join(self._texts), np.uint64, sep=" ")
            except DeprecationWarning as error:
                raise ValueError(str(error)) from None
        if len(self._sizes) != self.groups or min(self._sizes, default=0) < 0 or len(self._keys) != sum(self._sizes):
            raise ValueError("keys do not fit slots")
        groups = np.repeat(np.arange(self.groups, dtype=np.uint16), self._sizes)
        with np.errstate(over="ignore"):
            self._table = table_of(self._keys, groups)
        if self.min_count > 1:
            self.rare = np.arange(self.groups, dtype=np.int32) + np.int32(len(self._keys))
            if self._with_rare is not None:
                self.rare[~np.isin(np.arange(self.groups), self._with_rare)] = -1


class PlainIds:
    """Stands for SlotIds where ids stay as they are. With a schema, those past its features are not known."""

    def __init__(self, config: FeedConfig, schema: Mapping[str, Any]) -> None:
        self.fixed = int(schema["features"]) if schema else 0
        self.wanted = config.features
        self.largest = -1

    @property
    def in_order(self) -> bool:
        """The largest id is kept by one thread."""
        return not self.fixed

    @property
    def features(self) -> int:
        """Those of the model, else those that were asked for, else one more than the largest id."""
        return self.fixed or self.wanted or max(self.largest + 1, 1)

    def ids(self, keys: Keys, slots: Slots) -> tuple[Ids, int]:
        """The id of each key, -1 for none, and how many are not known."""
        ids = keys.astype(np.int32)
        if not self.fixed:
            self.largest = max(self.largest, int(ids.max(initial=-1)))
            return ids, 0
        unknown = ids >= self.fixed
        ids[unknown] = -1
        return ids, int(np.count_nonzero(unknown))

    def finish(self) -> None:
        """Ids are features."""
        if self.wanted and not self.fixed and self.largest >= self.wanted:
            raise InputError(f"id {self.largest} lies past the {self.wanted} features that were asked for; set"
                             f" --features {self.largest + 1} or leave it out.")

    def schema(self) -> dict[str, Any]:
        """JSON values from which this is made again."""
        return {"categories": "enumerate", "features": self.features}

    def notes(self, unseen: int) -> list[str]:
        """What to tell the user."""
        return []


def feature_names(schema: Mapping[str, Any]) -> list[str]:
    """Names of the features that are no hashes: `slot=key`, then those of rare categories, then the dense columns.

    >>> feature_names({"slots": ["site", "ad"], "dense": ["price"], "sizes": [2, 1], "keys": ["7 9", "7"],
    ...                "min_count": 2})
    ['site=7', 'site=9', 'ad=7', 'site rare', 'ad rare', 'price']
    """
    shared = schema.get("shared_ids", False)
    slots = [""] if shared else [*schema.get("categorical", schema["slots"]), *schema.get("multi", ())]
    keys = " ".join(schema.get("keys", ())).split()
    owners = [slot for slot, size in zip(slots, schema.get("sizes", ()), strict=False) for _ in range(size)]
    names = [f"{slot}={key}" for slot, key in zip(owners, keys, strict=True)]
    rare = [f"{slot} rare".strip() for slot in slots] if schema.get("min_count", 1) > 1 else []
    return [*names, *rare, *schema.get("dense", ())]


def _seed(name: bytes, seed: int) -> Any:
    data: npt.NDArray[np.uint8] = np.frombuffer(bytearray(name), np.uint8)
    with np.errstate(over="ignore"):
        return np.uint64(hash_bytes(data, 0, len(data), np.uint64(seed)))
