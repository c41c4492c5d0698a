"""What a model has learnt: its strongest weights, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids
from hogwild.config.options import nearest
from hogwild.errors import ConfigError
from hogwild.messages import shown
from hogwild.programs.inspecting.names import Named, Names, Places, holding

_LISTED = 12  # tags that a message lists


class Asked(NamedTuple):
    """How many weights of each sign; only those of a tag or class, and of features whose names hold a text."""

    top: int = 20
    tag: str = ""
    feature: str = ""


@dataclass(frozen=True)
class Strongest:
    """The strongest weights of one kind, the strongest first.

    heads: what the names of a weight are. weights, zeros: how many there are of those that were asked for, and how
    many of them are 0. note: what the reader should know of them.
    """

    kind: str
    heads: tuple[str, ...]
    weights: int
    zeros: int
    positive: tuple[tuple[tuple[str, ...], float], ...]
    negative: tuple[tuple[tuple[str, ...], float], ...]
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        rows = {
            sign: [{**dict(zip(self.heads, names, strict=True)), "weight": weight} for names, weight in listed]
            for sign, listed in (("positive", self.positive), ("negative", self.negative))
        }
        return {"weights": self.weights, "zeros": self.zeros, **rows, **({"note": self.note} if self.note else {})}


@dataclass(frozen=True)
class Listing:
    """A table of names and numbers: the first `words` columns are names. of: of how many these are the first."""

    kind: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    words: int = 1
    of: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        rows = [dict(zip(self.heads, row, strict=True)) for row in self.rows]
        return {"of": self.of, "rows": rows, **({"note": self.note} if self.note else {})}


Found = list[Strongest | Listing]


# -- taggers ----------------------------------------------------------------------------------------------------------


def of_crf(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """Features by tag, transitions, rich edges."""
    arrays = program.arrays()
    tags, names = program.tags, program.names
    tag = place_of(asked.tag, tags, "tag")
    rows = holding(names, asked.feature)
    columns = Columns("tag", tags, tag)
    found: Found = [by_column("features", arrays["nodes"][rows], columns, asked.top, lambda at: names[rows[at]])]
    if not asked.feature:
        found.append(transitions(arrays["edges"], tags, tag, asked.top))
    starts, numbers = arrays["rich_starts"], arrays["rich_pairs"]
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    chosen = np.zeros(len(names), np.bool_)
    chosen[rows] = True
    rich = np.flatnonzero(chosen[owners] & _with_tag(numbers, tag, len(tags)))
    found.append(
        strongest("rich edges", ("feature", "former", "tag"), arrays["rich"][rich], asked.top,
                  lambda at: (names[owners[rich[at]]], *_pair(tags, int(numbers[rich[at]]))))
    )  # fmt: skip
    return found


def of_bilstm(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """Transitions, the bias of each tag, and how long the rows of words and of other features are."""
    arrays, tags = program.arrays(), program.tags
    tag = place_of(asked.tag, tags, "tag")
    found: Found = []
    if "pairs" in arrays and not asked.feature:
        found.append(transitions(arrays["pairs"], tags, tag, asked.top))
    if not asked.feature:
        kept = np.arange(len(tags)) if tag is None else np.array([tag])
        found.append(strongest("biases", ("tag",), arrays["output_bias"][kept], asked.top,
                               lambda at: (tags[kept[at]],)))  # fmt: skip
    if asked.tag:
        return found
    axes, named = program.axes(), {}
    for kind, unknown in (("words", 1), ("features", len(program.slots) - 1)):
        named[kind] = [f"{name} unknown" if k < unknown else name for k, name in enumerate(axes[kind][0])]
    holding([*named["words"], *named["features"]], asked.feature)
    for kind, names in named.items():
        rows = np.array([k for k, name in enumerate(names) if asked.feature in name], np.int64)
        if len(rows):
            found.append(lengths(kind, [names[k] for k in rows.tolist()], arrays[kind][rows], asked.top))
    return found


def transitions(edges: Floats, tags: Sequence[str], tag: int | None, top: int) -> Strongest:
    """Pairs of neighbouring tags."""
    pairs = np.arange(len(tags) ** 2)
    kept = pairs[_with_tag(pairs, tag, len(tags))]
    return strongest("transitions", ("former", "tag"), edges.reshape(-1)[kept], top,
                     lambda at: _pair(tags, int(kept[at])))  # fmt: skip


def _with_tag(pairs: npt.NDArray[Any], tag: int | None, tags: int) -> npt.NDArray[np.bool_]:
    """Which pairs of neighbouring tags have the tag as one of theirs."""
    if tag is None:
        return np.ones(len(pairs), np.bool_)
    return np.asarray((pairs // tags == tag) | (pairs % tags == tag))


def _pair(tags: Sequence[str], pair: int) -> tuple[str, str]:
    return tags[pair // len(tags)], tags[pair % len(tags)]


# -- models of rows ---------------------------------------------------------------------------------------------------


def of_linear(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """Features, by class where there are several."""
    return [of_classes(program, schema, asked, "features", program.arrays()["weight"])]


def of_text(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """Words and n-grams by what each adds to the score of a class, in a text of 32 of them.

    Whichever way rows are put together, that is a 32nd of its own score. Of several classes, of which one is right,
    only differences count: the mean over them is taken away.
    """
    arrays = program.arrays()
    pulls = arrays["embedding"] @ arrays["output"].T / np.float32(_TEXT)
    if program.outputs == 1:
        pulls = pulls[:, 0]
    elif not program.several:
        pulls -= pulls.mean(1, keepdims=True)
    return [of_classes(program, schema, asked, "n-grams", pulls)]


_TEXT = 32  # n-grams of a text


def of_classes(program: Any, schema: Mapping[str, Any], asked: Asked, kind: str, weight: Floats) -> Strongest:
    """The strongest of (features,) or (features, classes) weights."""
    classes = [str(label) for label in program.classes or ()]
    names = Names(schema)
    if weight.ndim == 1:  # one score: for the second class, or a quantity
        if asked.tag:
            raise ConfigError("this model has one weight a feature, for all classes together; leave out --tag.")
        rows = names.holding(asked.feature, len(weight))
        note = f"for {classes[1]}, and against {classes[0]} where they are negative" if classes else ""
        found = strongest(kind, ("feature",), weight[rows], asked.top, lambda at: (names[int(rows[at])],))
        return replace(found, note=note)
    columns = Columns("class", classes, place_of(asked.tag, classes, "class"))
    rows = names.holding(asked.feature, len(weight))
    return by_column(kind, weight[rows], columns, asked.top, lambda at: names[int(rows[at])])


def of_fm(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """Features, and pairs of them whose factors say most."""
    arrays = program.arrays()
    found: Found = [of_classes(program, schema, asked, "features", arrays["weight"])]
    if "factors" not in arrays:
        return found
    names, fields = Names(schema), None
    if arrays["factors"].ndim == 3:
        fields = names.slots(len(arrays["weight"]))
        dense = len(schema.get("dense", ()))
        fields[len(fields) - dense :] = len(schema.get("slots", ())) + np.arange(dense, dtype=np.int32)
        if (fields < 0).all():
            return found  # which field a feature has, only rows tell
    found.append(_pairs_of(arrays["factors"], names, fields, asked))
    return found


_PAIRED = 4096  # features whose pairs are looked at


def _pairs_of(factors: Floats, names: Names, fields: Ids | None, asked: Asked) -> Strongest:
    """The strongest pairs, by the product of their factors; fields: of the features of a field-aware machine."""
    sizes = np.sqrt((factors.astype(np.float64) ** 2).sum(-1))
    if fields is not None:
        sizes = np.where(fields >= 0, sizes.max(1), 0.0)
    chosen = largest(sizes, _PAIRED)
    wanted = names.holding(asked.feature, len(factors))
    some = chosen if not asked.feature else wanted[largest(sizes[wanted], _PAIRED)]
    if fields is None:
        products = factors[some] @ factors[chosen].T
    else:  # a feature at a time: all at once would take gigabytes
        each = [(factors[one, fields[chosen]] * factors[chosen, fields[one]]).sum(1) for one in some.tolist()]
        products = np.array(each, np.float32).reshape(len(some), len(chosen))
    columns = names.columns(len(factors))  # two values of one column are never in one row
    keep = (columns[some][:, None] != columns[chosen]) | (columns[some] < 0)[:, None]
    # Of two features that stand on both sides, one order will do.
    keep &= (some[:, None] < chosen) | ~np.isin(chosen, some) | ~np.isin(some, chosen)[:, None]
    keep &= some[:, None] != chosen
    rows, others = np.nonzero(keep)
    found = strongest("pairs", ("feature", "with"), products[rows, others], asked.top,
                      lambda at: (names[int(some[rows[at]])], names[int(chosen[others[at]])]))  # fmt: skip
    cut = len(factors) > _PAIRED
    return replace(found, note=f"of the {_PAIRED:,} features with the largest factors" if cut else "")


# -- recommenders and words -------------------------------------------------------------------------------------------


def of_factorization(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """Biases of items and users, and how long their vectors are."""
    no_tags(asked, "a recommender")
    factors = program.factors()
    found: Found = []
    sides = (("items", program.items, factors.item_biases, factors.item_vectors),
             ("users", program.users, factors.user_biases, factors.user_vectors))  # fmt: skip
    held = {kind: [k for k, name in enumerate(names) if asked.feature in name] for kind, names, _, _ in sides}
    if not any(held.values()):
        raise ConfigError(f"no user and no item of the model has `{shown(asked.feature)}` in its name.")
    for kind, names, biases, vectors in sides:
        rows = np.array(held[kind], np.int64)
        if not len(rows):
            continue
        noun = kind.removesuffix("s")
        called = [names[k] for k in held[kind]]
        if program.biased:
            found.append(_biases(noun, called, biases[rows], asked.top))
        found.append(lengths(kind, called, vectors[rows], asked.top))
    return found


def _biases(noun: str, names: Sequence[str], biases: Floats, top: int) -> Strongest:
    return strongest(f"{noun} biases", (noun,), biases, top, lambda at: (names[at],))


def of_words(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """The most frequent words with how often they occur and how long their vectors are, and the longest vectors."""
    no_tags(asked, "a model of words")
    vectors = program.vectors
    words = vectors.words
    rows = holding(words, asked.feature) if asked.feature else np.arange(len(words))
    counts, sizes = program.counts, vectors.norms
    found: Found = []
    for kind, by in (("frequent words", counts), ("long vectors", sizes)):
        order = rows[np.argsort(-by[rows], kind="stable")]
        told = tuple((words[k], int(counts[k]), float(sizes[k])) for k in order[: asked.top].tolist())
        found.append(Listing(kind, ("word", "count", "length"), told, of=len(rows)))
    return found


def of_documents(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """The longest vectors of documents; and of words, where they have vectors too, as `of_words`."""
    no_tags(asked, "a model of documents")
    documents = program.documents
    rows = holding(documents.words, asked.feature) if asked.feature else np.arange(len(documents.words))
    order = rows[np.argsort(-documents.norms[rows], kind="stable")][: asked.top].tolist()
    told = tuple((documents.words[k], float(documents.norms[k])) for k in order)
    longest = Listing("long vectors of documents", ("document", "length"), told, of=len(rows))
    return [longest, *(of_words(program, schema, asked) if program.has_words else [])]


def of_arrays(arrays: Mapping[str, npt.NDArray[Any]], asked: Asked) -> Found:
    """Of a program whose code is the user's: its parameters, by their names."""
    no_tags(asked, "a module")
    names = list(arrays)
    rows = holding(names, asked.feature).tolist() if asked.feature else range(len(names))
    told = []
    for name in (names[k] for k in rows):
        array = np.asarray(arrays[name], np.float64)
        shape = " x ".join(map(str, array.shape)) or "one number"
        told.append((name, shape, array.size, float(np.sqrt((array**2).sum())), float(np.abs(array).max(initial=0.0))))
    found = tuple(told[: asked.top])
    return [Listing("parameters", ("parameter", "shape", "numbers", "length", "largest"), found, 2, len(told))]


def lengths(kind: str, names: Sequence[str] | Named, rows: Floats, top: int) -> Listing:
    """The longest of some vectors, in the Euclidean norm."""
    sizes = np.sqrt((rows.astype(np.float64) ** 2).sum(1))
    listed = tuple((names[k], float(sizes[k])) for k in np.argsort(-sizes, kind="stable")[:top].tolist())
    return Listing(kind, (kind.removesuffix("s"), "length"), listed, of=len(rows))


def no_tags(asked: Asked, what: str) -> None:
    """ConfigError if a tag or class was asked for."""
    if asked.tag:
        raise ConfigError(f"--tag is for taggers and classifiers, and this is {what}; leave it out.")


# -- choosing ---------------------------------------------------------------------------------------------------------


def place_of(name: str, names: Sequence[str], what: str) -> int | None:
    """The place of a tag or class that was asked for; None: all."""
    if not name:
        return None
    if name not in names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        listed = ", ".join(map(shown, names[:_LISTED])) + more
        raise ConfigError(f"the model has no {what} `{shown(name)}`{nearest(name, names)}; it has {listed}.")
    return names.index(name)


class Columns(NamedTuple):
    """Tags or classes; only: the place of the one that was asked for, None for all."""

    head: str
    names: Sequence[str]
    only: int | None


def by_column(
    kind: str, weights: Floats, columns: Columns, top: int, name: Callable[[int], str]
) -> Strongest:
    """The strongest of a table of features by tags, or classes; of one column, or of all."""
    chosen = np.arange(len(columns.names)) if columns.only is None else np.array([columns.only])
    width, values = len(chosen), weights[:, chosen].reshape(-1)
    heads = ("feature", columns.head)
    return strongest(kind, heads, values, top, lambda at: (name(at // width), columns.names[chosen[at % width]]))


def strongest(
    kind: str, heads: tuple[str, ...], values: Floats, top: int, names: Callable[[int], tuple[str, ...]]
) -> Strongest:
    """The strongest of these weights; `names` gives those of the weight at a place."""
    places = [largest(sign * values, top).tolist() for sign in (1, -1)]
    listed = [tuple((names(at), float(values[at])) for at in several) for several in places]
    zeros = int(np.count_nonzero(values == 0))
    return Strongest(kind, heads, len(values), zeros, listed[0], listed[1])


def largest(values: npt.NDArray[Any], top: int) -> Places:
    """Places of the largest values above 0, the largest first; of equal ones the first."""
    if len(values) > top:
        least = np.partition(values, len(values) - top)[len(values) - top]
        places = np.flatnonzero(values >= max(least, np.finfo(np.float32).tiny))
    else:
        places = np.flatnonzero(values > 0)
    order = np.argsort(-values[places], kind="stable")
    return places[order][:top]
