"""Crossed columns of a table: pairs whose values count together, as further columns of numbers or of categories.

Of two numbers the product is a number; of two categories the pair is a category; of a number and a category every
category has a feature, whose value is the number. So all that holds for columns holds for pairs: scales, means of what
is missing, rare categories, hashing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hogwild.arrays import Floats, Ids
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.features import Features
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.tables.columns import find_column
from hogwild.feeds.tables.frames import Codes, Numbers
from hogwild.messages import shown

Pair = tuple[str, str]
_OPTION = "--interactions"
_MOST = 2**31 - 1  # features that int32 can number


def find_pairs(wanted: Sequence[str], columns: Sequence[str], where: str) -> tuple[Pair, ...]:
    """The pairs of columns that a user lists as `A:B`; several have commas between them, or are given one by one.

    >>> find_pairs(["age:town,town:kind", "0:0"], ["age", "town", "kind"], "a.csv")
    (('age', 'town'), ('town', 'kind'), ('age', 'age'))
    """
    pairs: list[Pair] = []
    for text in wanted:
        whole = next(_halves(text, columns), None)
        for part in [text] if whole else text.split(","):
            pair = next(_halves(part, columns), None)
            if pair is None:
                left, colon, right = part.partition(":")
                if not colon or not left or not right:
                    raise ConfigError(f"{where}: {_OPTION} {shown(part)} names no two columns; write A:B.")
                pair = left, right
            left, right = (name if name in columns else find_column(name, columns, _OPTION, where) for name in pair)
            if (left, right) in pairs or (right, left) in pairs:
                raise ConfigError(f"{where}: {_OPTION} {shown(f'{left}:{right}')} is given twice; keep one.")
            pairs.append((left, right))
    return tuple(pairs)


def _halves(text: str, columns: Sequence[str]) -> Iterator[Pair]:
    """Two names of columns that a text with colons may stand for."""
    for place, sign in enumerate(text):
        if sign == ":" and text[:place] in columns and text[place + 1 :] in columns:
            yield text[:place], text[place + 1 :]


class Valued(NamedTuple):
    """A number and a category, by their places among the columns of their kind."""

    number: int
    category: int


class Crosses:
    """The pairs of a table with these columns of numbers and of categories.

    products: places of two numbers each; pairs: of two categories, or a `Valued`. product_names, pair_names: what the
    columns are called that they make. Raises ConfigError for a pair that cannot be one.
    """

    def __init__(
        self, pairs: Sequence[Pair], numeric: Sequence[str], categorical: Sequence[str], taken: Sequence[str] = ()
    ) -> None:
        self.products: list[tuple[int, int]] = []
        self.pairs: list[tuple[int, int] | Valued] = []
        self.product_names: list[str] = []
        self.pair_names: list[str] = []
        for left, right in pairs:
            name = f"{left}:{right}"
            for column in (left, right):
                if column not in numeric and column not in categorical:
                    told = "is neither a column of numbers nor of categories that is read"
                    raise ConfigError(f"{_OPTION} {shown(name)}: `{shown(column)}` {told}; name two that are.")
            if name in taken:
                raise ConfigError(f"{_OPTION} {shown(name)}: there is a column of that name already; rename it.")
            if left == right and left in categorical:
                same = f"a category with itself says what `{shown(left)}` says"
                raise ConfigError(f"{_OPTION} {shown(name)}: {same}; leave it out.")
            if left in numeric and right in numeric:
                self.products.append((numeric.index(left), numeric.index(right)))
                self.product_names.append(name)
                continue
            self.pair_names.append(name)
            if left in numeric or right in numeric:
                number, category = (left, right) if left in numeric else (right, left)
                self.pairs.append(Valued(numeric.index(number), categorical.index(category)))
            else:
                self.pairs.append((categorical.index(left), categorical.index(right)))

    @property
    def valued(self) -> list[tuple[int, int]]:
        """Of each pair of a number and a category: its place among `pairs`, and that of the number."""
        return [(place, pair.number) for place, pair in enumerate(self.pairs) if isinstance(pair, Valued)]

    # -- rows of a frame ------------------------------------------------------------------------------------------

    def multiplied(self, numbers: Numbers, wrong: dict[int, str]) -> Numbers:
        """The columns of numbers with the products after them; to `wrong` goes what float32 cannot hold."""
        if not self.products:
            return numbers
        left, right = np.array(self.products).T
        with np.errstate(over="ignore"):
            products = numbers[:, left] * numbers[:, right]
            large = np.isinf(products.astype(np.float32))
        for row, k in zip(*(part.tolist() for part in np.nonzero(large)), strict=True):
            wrong.setdefault(row, f"column `{shown(self.product_names[k])}`: the product is too large for float32")
        return np.concatenate((numbers, products), axis=1)

    def combined(self, categories: Sequence[Codes], numbers: Numbers, with_missing: bool) -> list[Codes]:
        """The columns of pairs as words. with_missing: numbers that are missing count, as their means."""
        if not self.pairs:
            return []
        columns = [(column.codes if column.owners is None else column.codes[:, k], column.words)
                   for column in categories for k in range(column.columns)]  # fmt: skip
        found = []
        for pair in self.pairs:
            if isinstance(pair, Valued):
                number, (codes, words) = numbers[:, pair.number], columns[pair.category]
                there = np.isnan(number) if with_missing else np.zeros(len(number), np.bool_)
                there |= np.nan_to_num(number).astype(np.float32) != 0
                found.append(Codes(np.where(there, codes, np.int32(-1)), words))
            else:
                found.append(_joined(*columns[pair[0]], *columns[pair[1]]))
        return found

    def features(self, ids: Ids, numbers: Numbers, fills: Floats, scales: Floats) -> Features:
        """The features of the pairs: ids (-1: none) by row and pair, numbers with those that are missing filled."""
        there, values = ids >= 0, np.ones(ids.shape, np.float32)
        for place, k in self.valued:
            column = numbers[:, k].astype(np.float32)
            values[:, place] = np.where(np.isnan(column), fills[k], column) * scales[k]
        return Features(there.sum(1).astype(np.int64), ids[there].astype(np.int32), values[there])

    # -- one row ----------------------------------------------------------------------------------------------------

    def words_of(self, place: int, words: Sequence[str]) -> str:
        """The word of a pair in a row whose categories are these words, empty where one is missing."""
        pair = self.pairs[place]
        if isinstance(pair, Valued):
            return words[pair.category]
        left, right = words[pair[0]], words[pair[1]]
        return _joint(left, right) if left and right else ""


def _joined(left: npt.NDArray[np.int32], lefts: Any, right: npt.NDArray[np.int32], rights: Any) -> Codes:
    """Two columns of words as one of pairs."""
    there = (left >= 0) & (right >= 0)
    keys, places = np.unique(left[there] * np.int64(len(rights)) + right[there], return_inverse=True)
    codes = np.full(len(left), -1, np.int32)
    codes[there] = places
    firsts, seconds = (part.tolist() for part in np.divmod(keys, max(1, len(rights))))
    one, other = lefts.to_pylist(), rights.to_pylist()
    pairs = [_joint(one[a], other[b]) for a, b in zip(firsts, seconds, strict=True)]
    return Codes(codes, pa.array(pairs, pa.string()))


def _joint(left: str, right: str) -> str:
    r"""Two words as one; `&` inside them is written `\&`, so that no two pairs are the same."""
    return f"{_escaped(left)} & {_escaped(right)}"


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("&", "\\&") if "&" in word or "\\" in word else word


# -- hashed ids -------------------------------------------------------------------------------------------------------


def block_of(crosses: Crosses, categories: int) -> list[int]:
    """Which run of hashed ids columns of categories have, then pairs: all the first, those with a number one each."""
    blocks = [0] * (categories + len(crosses.pairs))
    for block, (place, _) in enumerate(crosses.valued, 1):
        blocks[categories + place] = block
    return blocks


def hashed_ids(hashing: Hashing, crosses: Crosses | None, used: bool) -> int:
    """How many ids hashing takes; crosses: those that are hashed."""
    runs = 1 + len(crosses.valued) if crosses else int(used)
    if runs << hashing.bits >= _MOST:
        told = f"{runs} times 2^{hashing.bits} ids are too many: one time for each pair with a number, and one more"
        raise ConfigError(f"{_OPTION}: {told}; lower --hash-bits.")
    return runs << hashing.bits


# -- what a model says of them ----------------------------------------------------------------------------------------


def crosses_of(schema: Mapping[str, Any]) -> Crosses:
    """Those of a schema. Raises ValueError if there can be none such."""
    pairs = [(left, right) for left, right in schema.get("interactions", ())]
    try:
        return Crosses(pairs, schema["numeric"], schema["categorical"])
    except (ConfigError, InputError):
        raise ValueError("no such pairs") from None


class CrossNames:
    """What features of crossed columns are called: `A * B` for products, `A=x & B=y` for pairs, `A * B=y` for both.

    >>> names = CrossNames({"interactions": [["a", "b"], ["n", "b"], ["n", "n"]], "numeric": ["n"],
    ...                     "categorical": ["a", "b"]})
    >>> names.products, names.of("a:b=x & y"), names.of("n:b=y"), names.of("a=x")
    (['n * n'], 'a=x & b=y', 'n * b=y', 'a=x')
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        found, numeric, categorical = crosses_of(schema), schema["numeric"], schema["categorical"]
        self.products = [f"{numeric[left]} * {numeric[right]}" for left, right in found.products]
        self.blocks = [f"{numeric[number]} * " for _, number in found.valued]
        self.columns = list(found.pair_names)
        self._heads: dict[str, tuple[str, str]] = {}
        for name, pair in zip(found.pair_names, found.pairs, strict=True):
            if isinstance(pair, Valued):
                both = f"{numeric[pair.number]} * {categorical[pair.category]}", ""
            else:
                both = categorical[pair[0]], categorical[pair[1]]
            self._heads[name.replace("\\", "\\\\").replace("=", "\\=") + "="] = both

    def of(self, entry: str) -> str:
        """The name of an entry of a vocabulary."""
        if not self._heads:
            return entry
        head = next((head for head in self._heads if entry.startswith(head) and len(entry) > len(head)), "")
        if not head:
            return entry
        (left, right), word = self._heads[head], entry[len(head) :]
        if not right:
            return f"{left}={word}"
        place = 0
        while word[place : place + 3] != " & ":
            place += 2 if word[place] == "\\" else 1
        one, other = (part.replace("\\&", "&").replace("\\\\", "\\") for part in (word[:place], word[place + 3 :]))
        return f"{left}={one} & {right}={other}"
