"""Several labels a row: a set of labels is one target, and which labels it has is told beside the targets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.sparse.labels import Labels
from hogwild.messages import counted, listed, shown

Names = tuple[str, ...]
Sets = tuple[tuple[int, ...], ...]

KIND = "sets"
_MOST = 1 << 24  # sets whose numbers float32 tells apart
_SHOWN = 3


class SetLabels(Labels):
    """Turns the labels of rows, of which each may have several, into numbers of sets; `sets` says what they hold.

    Where at the end every row has had exactly one label, these are labels as any other, unless the user asked for
    several. For a model of one label a row, rows with more are refused.

    Examples
    --------
    >>> labels = SetLabels(FeedConfig())
    >>> labels.targets_of_sets([("b",), ("a", "b")], np.array([1, 0, 1]))
    (array([1., 0., 1.], dtype=float32), [])
    >>> labels.names(), labels.sets()
    (('a', 'b'), ((1,), (0, 1)))
    """

    def __init__(
        self, config: FeedConfig, known: Mapping[str, Any] | None = None, absent: Collection[str] = ()
    ) -> None:
        super().__init__(known, config.unlabelled, absent)
        self._separator = config.label_separator
        self._alone = self.fixed and self.kind != KIND  # of a model of one label a row
        self._empty = config.several_labels or (self.fixed and not self._alone)
        self._asked = config.several_labels
        self._sets: dict[tuple[int, ...], int] = {}
        self._unknown = 0
        if not self.fixed:
            self.kind = "words"

    def split(self, word: str) -> Names:
        """The labels of a field."""
        if not word or word.lower() in self.absent:
            return ()
        if not self._separator:
            return (word,)
        return tuple(part for each in word.split(self._separator) if (part := each.strip()))

    def targets_of(self, words: Sequence[str], codes: npt.NDArray[np.intp]) -> tuple[Floats, list[tuple[int, str]]]:
        """The target of each row whose field is words[codes[row]], and what is wrong with rows that have none."""
        return self.targets_of_sets([self.split(word) for word in words], codes)

    def check_numbers(self, numbers: npt.NDArray[np.float64]) -> tuple[Floats, list[tuple[int, str]]]:
        """The same for labels that are numbers already, of which each row has one."""
        if self._alone:
            return super().check_numbers(numbers)
        known, codes = np.unique(numbers, return_inverse=True)
        words = ["" if number != number else f"{number:.17g}" for number in known.tolist()]
        return self.targets_of_sets([(word,) if word else () for word in words], codes)

    def targets_of_sets(
        self, found: Sequence[Names], codes: npt.NDArray[np.intp], empty: bool = False
    ) -> tuple[Floats, list[tuple[int, str]]]:
        """The same where row r has the labels found[codes[r]]. empty: to have none is a fact, not an omission."""
        times = np.bincount(codes, minlength=len(found))
        targets, problems = np.full(len(found), np.nan, np.float32), dict[int, str]()
        for k, names in enumerate(found):
            one = self._of_names(tuple(dict.fromkeys(names)), int(times[k]), empty)
            if isinstance(one, str):
                problems[k] = one
            else:
                targets[k] = one
        if len(self._sets) > _MOST:
            raise InputError(f"there are more than {_MOST:,} different sets of labels; use fewer labels.")
        if self.optional and not self._alone:
            blank = np.isnan(targets)
            if blank.any():
                self.missing += int(times[blank].sum())
                targets[blank] = self._number(())
            return targets[codes], []
        return self._checked(targets[codes], lambda row: problems[int(codes[row])])

    def _of_names(self, names: Names, times: int, empty: bool) -> float | str:
        if not names and (self._alone or not (empty or self._empty)):
            return "the label is missing"
        if "" in names:
            return "a label has no name"
        if self._alone:
            if len(names) > 1:
                return f"there are {len(names)} labels ({_few(names)}), but the model was trained on one a row"
            return self._target(names[0])
        if not self.fixed:
            return self._number(tuple(sorted(self._places.setdefault(name, len(self._places)) for name in names)))
        known = sorted(self._places[name] for name in names if name in self._places)
        self._unknown += times * (len(names) - len(known))
        return self._number(tuple(known))

    def _number(self, labels: tuple[int, ...]) -> float:
        return float(self._sets.setdefault(labels, len(self._sets)))

    @property
    def several(self) -> bool:
        """Whether rows have other numbers of labels than one, as far as is known."""
        if self.fixed:
            return not self._alone
        return self._asked or any(len(labels) != 1 for labels in self._sets)

    def relabel(self) -> tuple[int, ...]:
        """Of labels as any other: the class of each set."""
        if self._alone or self.several:
            return ()
        final = self._final()
        order = tuple(final[place] for (place,) in self._sets)
        return () if order == tuple(range(len(order))) else order

    def sets(self) -> Sets:
        """The labels of each target, in rising order, as places in `names`; none where rows have one label each."""
        if not self.several:
            return ()
        final = self._final()
        return tuple(tuple(sorted(final[place] for place in labels)) for labels in self._sets) or ((),)

    def _final(self) -> list[int]:
        """The place in `names` of each label."""
        final = {name: place for place, name in enumerate(self.names())}
        return [final[name] for name in self._places]

    def schema(self) -> dict[str, Any]:
        """What `known` must be to give the same labels again."""
        return {"kind": KIND, "names": list(self.names())} if self.several else super().schema()

    def notes(self, files: int) -> Iterator[str]:
        """What to tell of labels."""
        yield from super().notes(files)
        if self._unknown:
            yield f"{counted(self._unknown, 'label')} left out: training never saw them."
        if self.several and not self.fixed:
            most = max(map(len, self._sets), default=0)
            yield f"Rows have up to {counted(most, 'label')} of {len(self._places):,}: each is learnt for itself."


def _few(names: Names) -> str:
    return listed([shown(name) for name in names], _SHOWN)


def labels_for(config: FeedConfig, known: Mapping[str, Any] | None, absent: Collection[str]) -> Labels:
    """What turns a column of words into targets: sets where the model or the user says so."""
    if config.label_separator or config.several_labels or (known or {}).get("kind") == KIND:
        return SetLabels(config, known, absent)
    return Labels(known, config.unlabelled, absent)


def check_sets(sets: Any, labels: int) -> Sets:
    """Sets that stand in a file. Raises ValueError if there can be none such."""
    found = tuple(tuple(each) for each in sets)
    for each in found:
        whole = all(type(label) is int for label in each)
        if not whole or any(a >= b for a, b in pairwise(each)) or (
            each and not 0 <= each[0] <= each[-1] < labels
        ):
            raise ValueError("no such labels")
    return found
