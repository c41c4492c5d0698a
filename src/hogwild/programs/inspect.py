"""What a model has learnt: its strongest weights, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.config.options import nearest
from hogwild.errors import ConfigError
from hogwild.feeds.slots.ids import feature_names
from hogwild.messages import shown
from hogwild.programs.sparse.linear import Linear
from hogwild.programs.taggers.crf import CRF

_LISTED = 12  # tags that a message lists

_MARK = re.compile(r"((?:[^=\\]|\\.)*)=")  # an entry without a value: a number is missing

Places = npt.NDArray[np.int64]


class Asked(NamedTuple):
    """How many weights of each sign; only those of a tag or class, and of features whose names hold a text."""

    top: int = 20
    tag: str = ""
    feature: str = ""


@dataclass(frozen=True)
class Strongest:
    """The strongest weights of one kind, the strongest first.

    heads: what the names of a weight are. weights, zeros: how many there are of those that were asked for, and how
    many of them are 0.
    """

    kind: str
    heads: tuple[str, ...]
    weights: int
    zeros: int
    positive: tuple[tuple[tuple[str, ...], float], ...]
    negative: tuple[tuple[tuple[str, ...], float], ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        rows = {
            sign: [{**dict(zip(self.heads, names, strict=True)), "weight": weight} for names, weight in listed]
            for sign, listed in (("positive", self.positive), ("negative", self.negative))
        }
        return {"weights": self.weights, "zeros": self.zeros, **rows}


def strongest_of(program: CRF | Linear, schema: Mapping[str, Any], asked: Asked) -> list[Strongest]:
    """The strongest weights of a model. schema: how its feed was read, which names the features of linear models."""
    if isinstance(program, CRF):
        return _of_crf(program, asked)
    if not isinstance(program, Linear):
        raise ConfigError(f"a {program.name} model has no weights by name; this is for CRFs and linear models.")
    return [_of_linear(program, schema, asked)]


def _of_crf(program: CRF, asked: Asked) -> list[Strongest]:
    arrays = program.arrays()
    tags, names = program.tags, program.names
    tag = _place(asked.tag, tags, "tag")
    rows = _holding(names, asked.feature)
    found = [_by_column("tag", arrays["nodes"][rows], tag, asked.top, lambda at: names[rows[at]], tags)]
    pairs = np.arange(len(tags) ** 2)
    if not asked.feature:
        kept = pairs[_with_tag(pairs, tag, len(tags))]
        found.append(
            _chosen("transitions", ("former", "tag"), arrays["edges"].reshape(-1)[kept], asked.top,
                    lambda at: _pair(tags, int(kept[at])))
        )  # fmt: skip
    starts, numbers = arrays["rich_starts"], arrays["rich_pairs"]
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    chosen = np.zeros(len(names), np.bool_)
    chosen[rows] = True
    rich = np.flatnonzero(chosen[owners] & _with_tag(numbers, tag, len(tags)))
    found.append(
        _chosen("rich edges", ("feature", "former", "tag"), arrays["rich"][rich], asked.top,
                lambda at: (names[owners[rich[at]]], *_pair(tags, int(numbers[rich[at]]))))
    )  # fmt: skip
    return found


def _of_linear(program: Linear, schema: Mapping[str, Any], asked: Asked) -> Strongest:
    weight = program.arrays()["weight"]
    classes = [str(label) for label in program.classes or ()]
    names = Names(schema)
    if len(classes) <= 2 and not getattr(program, "several", False):  # one score: for the second class, or a quantity
        if asked.tag:
            raise ConfigError("this model has one weight a feature, for all classes together; leave out --tag.")
        rows = names.holding(asked.feature, len(weight))
        return _chosen("features", ("feature",), weight[rows], asked.top, lambda at: (names[int(rows[at])],))
    column = _place(asked.tag, classes, "class")
    rows = names.holding(asked.feature, len(weight))
    return _by_column("class", weight[rows], column, asked.top, lambda at: names[int(rows[at])], classes)


def _by_column(
    head: str, weights: Floats, column: int | None, top: int, name: Callable[[int], str], columns: Sequence[str]
) -> Strongest:
    """The strongest of a table of features by tags, or classes; of one column, or of all."""
    chosen = np.arange(len(columns)) if column is None else np.array([column])
    width, values = len(chosen), weights[:, chosen].reshape(-1)
    heads = ("feature", head)
    return _chosen("features", heads, values, top, lambda at: (name(at // width), columns[chosen[at % width]]))


class Names:
    """Names of the features of linear models: ids of svmlight files, columns, categories; hashed ones have numbers.

    >>> Names({"format": "svmlight", "zero_based": False})[2]
    '3'
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        table, slots = schema.get("format") == "table", "slots" in schema
        self.first = 0 if table or schema.get("zero_based", True) else 1
        self.numeric: list[str] = list(schema.get("numeric", ())) if table and not slots else []
        entries = schema.get("vocabulary", ()) if table else ()
        named: list[str] = [
            f"{found[1]} missing" if (found := _MARK.fullmatch(entry)) else entry for entry in entries
        ]
        blocks, pairs = list[str](), list[str]()
        if schema.get("interactions"):
            from hogwild.feeds.tables.crosses import CrossNames  # late: pyarrow is slow to import

            crosses = CrossNames(schema)
            named = [crosses.of(entry) for entry in named]
            self.numeric += crosses.products
            blocks, pairs = crosses.blocks, crosses.columns
        self.entries: list[str] = named
        if slots:
            self.entries += feature_names(schema)
        elif table and schema.get("min_count", 1) > 1:
            words = [*schema["categorical"], *pairs, *schema.get("multi", ())]
            columns = [""] if schema.get("shared_ids") else words
            self.entries += [f"{column} rare".strip() for column in columns]
        hashes = "hashing" in schema and (schema.get("text") or schema.get("categories") == "hash")
        self.bits = schema["hashing"]["bits"] if hashes else 0
        self.blocks = ["", *blocks] if schema.get("categories") == "hash" else [""]  # numbers that hashed pairs go with
        self.hashed = len(self.blocks) << self.bits if hashes else 0

    def __getitem__(self, feature: int) -> str:
        if feature < len(self.numeric):
            return self.numeric[feature]
        rest = feature - len(self.numeric)
        if rest < self.hashed:
            return f"{self.blocks[rest >> self.bits]}hash {rest & ((1 << self.bits) - 1)}"
        rest -= self.hashed
        return self.entries[rest] if rest < len(self.entries) else str(feature + self.first)

    def holding(self, text: str, count: int) -> Places:
        """The features whose names hold a text."""
        if not text:
            return np.arange(count)
        return _holding([self[k] for k in range(count)], text)


def _place(name: str, names: Sequence[str], what: str) -> int | None:
    if not name:
        return None
    if name not in names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        listed = ", ".join(map(shown, names[:_LISTED])) + more
        raise ConfigError(f"the model has no {what} `{shown(name)}`{nearest(name, names)}; it has {listed}.")
    return names.index(name)


def _holding(names: Sequence[str], text: str) -> Places:
    found = np.array([k for k, name in enumerate(names) if text in name], np.int64)
    if not len(found):
        raise ConfigError(f"no feature of the model has `{shown(text)}` in its name; try a shorter text.")
    return found


def _with_tag(pairs: npt.NDArray[Any], tag: int | None, tags: int) -> npt.NDArray[np.bool_]:
    """Which pairs of neighbouring tags have the tag as one of theirs."""
    if tag is None:
        return np.ones(len(pairs), np.bool_)
    return np.asarray((pairs // tags == tag) | (pairs % tags == tag))


def _pair(tags: Sequence[str], pair: int) -> tuple[str, str]:
    return tags[pair // len(tags)], tags[pair % len(tags)]


def _chosen(
    kind: str, heads: tuple[str, ...], values: Floats, top: int, names: Callable[[int], tuple[str, ...]]
) -> Strongest:
    """The strongest of these weights; `names` gives those of the weight at a place."""
    places = [_largest(sign * values, top).tolist() for sign in (1, -1)]
    listed = [tuple((names(at), float(values[at])) for at in several) for several in places]
    zeros = int(np.count_nonzero(values == 0))
    return Strongest(kind, heads, len(values), zeros, *listed)


def _largest(values: Floats, top: int) -> Places:
    """Places of the largest values above 0, the largest first; of equal ones the first."""
    if len(values) > top:
        least = np.partition(values, len(values) - top)[len(values) - top]
        places = np.flatnonzero(values >= max(least, np.finfo(np.float32).tiny))
    else:
        places = np.flatnonzero(values > 0)
    order = np.argsort(-values[places], kind="stable")
    return places[order][:top]
