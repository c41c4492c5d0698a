"""Features that Python made, as lists and dicts in memory, as a tagging feed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from hogwild.arrays import AnyChains, Chains, Ids, Offsets, ValuedChains, fits_float32
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.tagged.features import rare_note, unknown_note
from hogwild.feeds.tagged.feed import TaggingFeed, check_known
from hogwild.feeds.tagged.text import Coder, TaggedText, TextColumn, check_distinct, encode_tags
from hogwild.kernels.ids.keys import settle_valued
from hogwild.messages import counted, shown

Token = Sequence[str] | set[str] | Mapping[str, Any]
FeatureFunction = Callable[[list[dict[str, str]], int], Token]

MADE = "python"  # in a schema: features are not made of templates
STRANGE = "name features as in training; columns (words, parts of speech) go to program.predict or program.tag."
_LISTS = (list, tuple)
_SETS = (set, frozenset)


def tagging_of(
    X: Iterable[Iterable[Token]],  # noqa: N803
    y: Iterable[Iterable[str]] | None = None,
    *,
    min_count: int = 1,
    names: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
) -> TaggingFeed:
    """Make a tagging feed of features in memory, in the shapes that python-crfsuite and sklearn-crfsuite take.

    Parameters
    ----------
    X
        Sentences of tokens. A token is a list of features, or a dict: `{"w": "the"}` is the feature `w:the`, True and
        False are the values 1 and 0, a number is the value of the feature, and what a list, a set or a dict holds is
        prefixed with its key. A feature with the value 0 says nothing and is left out; one that a token has twice has
        the sum of its values.
    y
        One tag a token. None: tags are not known.
    min_count
        Features that occur less often are left out. Not with `names`.
    names, tags
        Those of a model. Other features are left out and counted; other tags become -1. It is an error if all features
        are others, and if more than half are, a warning says so. What has columns, not features, goes to
        `program.predict`.

    Examples
    --------
    >>> feed = tagging_of([[["bias", "w=a"], {"bias": 1, "w=b": True}]], [["X", "Y"]])
    >>> feed.names, feed.tags, feed.samples.ids.tolist()
    (('bias', 'w=a', 'w=b'), ('X', 'Y'), [0, 1, 0, 2])
    >>> tagging_of([[{"length": 2.5}]]).samples.values.tolist()
    [2.5]
    """
    _check_min_count(min_count)
    collected = _collected(X)
    column = None if y is None else _tag_column(y, collected.offsets)
    feed = _with_tags(collected.feed(min_count, names), column, tags)
    if names is None or feed.unknown <= len(feed.samples.ids):
        return feed
    return check_known(feed, STRANGE, next(name for name in collected.known if name not in names))


def chains_of(X: Iterable[Iterable[Token]], places: Mapping[str, int]) -> tuple[AnyChains, int]:  # noqa: N803
    """As `tagging_of`, by the ids of a model's features: the chains, and how many features the model does not know.

    It takes no longer with many features than with few.
    """
    collected = _collected(X)
    final = np.fromiter((places.get(name, -1) for name in collected.known), np.int32, len(collected.known))
    numbers = collected.checked()
    return collected.chains(numbers, final), int(np.count_nonzero(final[numbers] < 0))


def _collected(X: Iterable[Iterable[Token]]) -> _Collector:  # noqa: N803
    collected = _Collector()
    for place, sentence in enumerate(_sentences(X, "X")):
        collected.add(sentence, f"sentence {place}")
    if not len(collected.sizes):
        raise InputError("X has no sentences; give at least one.")
    return collected


def encode_with(
    text: TaggedText, function: FeatureFunction, *, min_count: int = 1,
    names: Sequence[str] | None = None, tags: Sequence[str] | None = None,
) -> TaggingFeed:  # fmt: skip
    """Encode a text with the features that a Python function gives, called once a token.

    function(sentence, i) gives those of token i, in the forms that `tagging_of` takes; the sentence is a list of dicts
    from names of columns to strings.
    """
    _check_min_count(min_count)
    collected = _Collector()
    for place, sentence in enumerate(_rows(text)):
        where = f"{text.source}: sentence {place}"
        collected.add([_called(function, sentence, i, where) for i in range(len(sentence))], where)
    feed = _with_tags(collected.feed(min_count, names, text.source), text.tags, tags)
    return replace(feed, text=text, notes=(*text.notes, *feed.notes))


def _with_tags(feed: TaggingFeed, column: TextColumn | None, tags: Sequence[str] | None) -> TaggingFeed:
    tagged = encode_tags(column, feed.tokens, tags)
    return replace(feed, samples=feed.samples._replace(tags=tagged.codes), tags=tagged.names, strange=tagged.strange,
                   notes=(*feed.notes, *tagged.notes))  # fmt: skip


def _rows(text: TaggedText) -> Iterator[list[dict[str, str]]]:
    names = [column.name for column in text.columns]
    for first, last in zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist(), strict=True):
        cells = [[column.values[code] for code in column.codes[first:last].tolist()] for column in text.columns]
        yield [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def _called(function: FeatureFunction, sentence: list[dict[str, str]], i: int, where: str) -> Token:
    try:
        return function(sentence, i)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{where}, token {i}: the function of features fails with {what}.") from error


class _Collector:
    """Features of tokens as numbers, sentence after sentence."""

    def __init__(self) -> None:
        self.known = Coder()
        self.numbers = array("i")
        self.places, self.values = array("q"), array("f")  # where in `numbers` a value is not 1, and what it is
        self.widths, self.sizes = array("q"), array("q")

    @property
    def offsets(self) -> Offsets:
        """Where sentences begin."""
        return _cumulated(self.sizes)

    def add(self, sentence: Iterable[Token], where: str) -> None:
        """Take in a sentence."""
        size = 0
        for place, token in enumerate(_listed(sentence, where)):
            count = len(self.numbers)
            if isinstance(token, _LISTS):
                self._extend(token, where, place)
            elif isinstance(token, _SETS):
                self._extend(_in_order(token, where, place), where, place)
            elif isinstance(token, Mapping):
                self._add_dict(token, "", f"{where}, token {place}")
            else:
                raise InputError(
                    f"{where}, token {place} is {_kind(token)}; give a list of features, or a dict of names and values."
                )
            self.widths.append(len(self.numbers) - count)
            size += 1
        if not size:
            raise InputError(f"{where} has no tokens; leave it out.")
        self.sizes.append(size)

    def _extend(self, names: Sequence[str], where: str, place: int) -> None:
        try:
            self.numbers.extend(map(self.known.__getitem__, names))
        except TypeError:  # a list cannot be looked up
            raise InputError(f"{where}, token {place} holds {_odd(names)}; features are strings.") from None

    def _add_dict(self, token: Mapping[str, Any], prefix: str, where: str) -> None:
        for key, value in token.items():
            if not isinstance(key, str):
                raise InputError(f"{where} has the key {_shown(key)}; names of features are strings.")
            name = prefix + key
            if isinstance(value, str):
                self.numbers.append(self.known[f"{name}:{value}"])  # by far the most frequent: no call
            elif isinstance(value, (bool, np.bool_)):
                if value:
                    self.numbers.append(self.known[name])
            elif isinstance(value, (float, int, Real)):
                self._append_number(name, value, where)
            elif isinstance(value, Mapping):
                self._add_dict(value, f"{name}:", where)
            elif isinstance(value, (*_LISTS, *_SETS)):
                for item in _in_order(value, where) if isinstance(value, _SETS) else value:
                    if not isinstance(item, str):
                        raise InputError(f"{where}: `{shown(name)}` holds {_shown(item)}; give strings.")
                    self._append(f"{name}:{item}", 1.0)
            else:
                raise InputError(
                    f"{where}: `{shown(name)}` is {_kind(value)}; give a string, a bool, a number, or a list or dict."
                )

    def _append_number(self, name: str, value: Any, where: str) -> None:
        number = float(value)
        if not fits_float32(number):
            raise InputError(f"{where}: `{shown(name)}` is {number:g}, which is not a finite float32 number.")
        self._append(name, number)

    def _append(self, name: str, value: float) -> None:
        if value not in (0.0, 1.0):
            self.places.append(len(self.numbers))
            self.values.append(value)
        if value:
            self.numbers.append(self.known[name])

    def checked(self, source: str = "sentences") -> Ids:
        """The numbers of all features, each a string."""
        numbers: Ids = np.asarray(self.numbers)
        for number, name in enumerate(self.known):
            if not isinstance(name, str):
                first = int(np.argmax(numbers == number))
                token = int(np.searchsorted(_cumulated(self.widths), first, side="right")) - 1
                sentence = int(np.searchsorted(self.offsets, token, side="right")) - 1
                where = f"{source}: sentence {sentence}, token {token - self.offsets[sentence]}"
                raise InputError(f"{where} has the feature {_shown(name)}; features are strings.")
        return numbers

    def chains(self, numbers: Ids, final: Ids) -> AnyChains:
        """The features by their final ids, where these are not negative; no tags."""
        values = np.ones(len(numbers), np.float32)
        values[np.asarray(self.places)] = np.asarray(self.values)
        return _chains(np.array(numbers), values, final, _cumulated(self.widths), self.offsets)

    def feed(self, min_count: int, names: Sequence[str] | None, source: str = "sentences") -> TaggingFeed:
        """All that was taken in, with no tags."""
        numbers = self.checked(source)
        found = tuple(self.known)
        counts = np.bincount(numbers, minlength=len(found))
        unknown, notes = 0, tuple[str, ...]()
        if names is None:
            final, names, notes = _ranked(found, counts, min_count, source)
        else:
            check_distinct(names, "features")
            places = {name: place for place, name in enumerate(names)}
            final = np.fromiter((places.get(name, -1) for name in found), np.int32, len(found))
            unknown = int(counts[final < 0].sum())
            notes = unknown_note(unknown, len(numbers))
        samples = self.chains(numbers, final)
        kept = np.bincount(samples.ids, minlength=len(names))
        schema = {"features": MADE, "min_count": min_count}
        return TaggingFeed(samples, tuple(names), kept, (), schema, {}, unknown, None, notes, source)


def _ranked(
    found: tuple[str, ...], counts: Offsets, min_count: int, source: str
) -> tuple[Ids, tuple[str, ...], tuple[str, ...]]:
    """The rank of each number, or -1; the names of ranks; what is to be said."""
    order = np.argsort(-counts, kind="stable")
    order = order[: int(np.count_nonzero(counts >= min_count))]
    if not len(order):
        why = f"no feature occurs {counted(min_count, 'time')}" if len(found) else "no token has a feature"
        raise InputError(f"{source}: {why}.")
    final = np.full(len(found), -1, np.int32)
    final[order] = np.arange(len(order), dtype=np.int32)
    rare = counts[counts < min_count]
    return final, tuple(found[k] for k in order.tolist()), rare_note(len(rare), int(rare.sum()), min_count)


def _chains(numbers: Ids, values: Any, final: Ids, begins: Offsets, offsets: Offsets) -> AnyChains:
    starts = np.empty(len(begins), np.int64)
    total = int(settle_valued(numbers, values, final, begins, starts))
    ids, values = numbers[:total].copy(), values[:total]
    tags = np.full(len(starts) - 1, -1, np.int32)
    if bool((values == 1).all()):
        return Chains(offsets, starts, ids, tags)
    if not np.isfinite(values).all():
        raise InputError("the values of a feature that a token has several times add up to more than float32 can hold.")
    return ValuedChains(offsets, starts, ids, tags, values.copy())


def _tag_column(y: Iterable[Iterable[str]], offsets: Offsets) -> TextColumn:
    known, codes = Coder(), array("i")
    sentences = list(_sentences(y, "y"))
    if len(sentences) != len(offsets) - 1:
        raise InputError(f"X has {counted(len(offsets) - 1, 'sentence')}, but y has {len(sentences):,}; give one each.")
    for place, (sentence, size) in enumerate(zip(sentences, np.diff(offsets).tolist(), strict=True)):
        row = list(_listed(sentence, f"y: sentence {place}"))
        if len(row) != size:
            raise InputError(f"sentence {place} has {counted(size, 'token')}, but y has {len(row):,} tags for it.")
        odd = next((tag for tag in row if not isinstance(tag, str)), None)
        if odd is not None or None in row:
            raise InputError(f"y: sentence {place} has the tag {_shown(odd)}; tags are strings.")
        codes.extend(map(known.__getitem__, row))
    return TextColumn("tags", np.asarray(codes), tuple(known))


def _check_min_count(min_count: int) -> None:
    if min_count < 1:
        raise ConfigError(f"min_count is {min_count}; it must be at least 1, which keeps every feature.")


def _sentences(data: Any, what: str) -> Iterable[Any]:
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise InputError(f"{what} is {_kind(data)}; give a list of sentences, each a list with one item a token.")
    return data


def _listed(sentence: Any, where: str) -> Iterable[Any]:
    if isinstance(sentence, (str, bytes, Mapping)):
        raise InputError(f"{where} is {_kind(sentence)}; give a list with one item a token.")
    if isinstance(sentence, Iterable):
        return sentence
    items = getattr(sentence, "items", None)  # an ItemSequence of python-crfsuite
    if not callable(items):
        raise InputError(f"{where} is {_kind(sentence)}; give a list with one item a token.")
    listed: Iterable[Any] = items()
    return listed


def _in_order(names: Any, where: str, place: int | None = None) -> list[str]:
    """A set in an order that does not change from run to run."""
    try:
        return sorted(names)
    except TypeError:
        at = where if place is None else f"{where}, token {place}"
        raise InputError(f"{at} has a set that holds {_odd(list(names))}; features are strings.") from None


def _odd(names: Sequence[Any]) -> str:
    return _shown(next((name for name in names if not isinstance(name, str)), None))


def _shown(value: Any) -> str:
    return f"`{shown(repr(value))}`"


def _kind(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _cumulated(sizes: array[int]) -> Offsets:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.asarray(sizes), out=offsets[1:])
    return offsets
