"""Labels to targets: numbers stay numbers, words become the indices of their sorted names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, fits_float32, number_of
from hogwild.messages import counted, listed, shown

NAMES = ("label", "target", "y", "class", "labels")   # columns that hold the label unless the user says otherwise
TEXT_NAME = "text"                          # and the text
_SHOWN = 10  # names of labels that a message lists


class Labels:
    """Turns the labels of a file into targets, and knows at the end what they were.

    Parameters
    ----------
    known
        What `schema` gave when the model was trained; empty for training.
    optional
        Rows whose label is missing or not among the known ones have target 0 and are counted, not refused.
    absent
        Words that stand for a missing label, in small letters.

    Examples
    --------
    >>> labels = Labels()
    >>> labels.decide(["spam", "ham"])
    >>> labels.encode(["spam", "ham", ""])
    (array([ 0.,  1., nan], dtype=float32), {2: 'the label is missing'})
    >>> labels.names(), labels.relabel()
    (('ham', 'spam'), (1, 0))
    """

    def __init__(
        self, known: Mapping[str, Any] | None = None, optional: bool = False, absent: Collection[str] = ()
    ) -> None:
        known = known or {}
        self.kind: str = known.get("kind", "")
        self.fixed = bool(known)
        self.optional = optional
        self.absent = absent
        self.missing = 0
        self._places = {name: place for place, name in enumerate(known.get("names", ()))}

    def decide(self, sample: Iterable[str]) -> None:
        """Numbers if all of the sample are; words otherwise. The first sample decides."""
        if not self.kind:
            words = [word for word in sample if word]
            self.kind = "numbers" if words and all(number_of(word) is not None for word in words) else "words"

    def encode(self, words: Sequence[str]) -> tuple[Floats, dict[int, str]]:
        """The target of each word, and what is wrong with those that have none (their target is NaN)."""
        self.decide(words)
        targets = np.full(len(words), np.nan, np.float32)
        problems: dict[int, str] = {}
        for k, word in enumerate(words):
            found = self._target(word)
            if isinstance(found, str):
                problems[k] = found
            else:
                targets[k] = found
        return targets, problems

    def targets_of(self, words: Sequence[str], codes: npt.NDArray[np.intp]) -> tuple[Floats, list[tuple[int, str]]]:
        """The target of each row whose label is words[codes[row]], and the rows that have none, with what is wrong."""
        known, problems = self.encode(words)
        return self._checked(known[codes], lambda row: problems[int(codes[row])])

    def check_numbers(self, numbers: npt.NDArray[np.float64]) -> tuple[Floats, list[tuple[int, str]]]:
        """The same for labels that are numbers already; NaN where there is none."""
        with np.errstate(over="ignore"):
            return self._checked(numbers.astype(np.float32), lambda _: "the label is missing")

    def _checked(self, targets: Floats, why: Callable[[int], str]) -> tuple[Floats, list[tuple[int, str]]]:
        rows = np.flatnonzero(~np.isfinite(targets)).tolist()
        if not self.optional:
            return targets, [(row, why(row)) for row in rows]
        targets[rows] = 0
        self.missing += len(rows)
        return targets, []

    def notes(self, files: int) -> Iterator[str]:
        """What to tell of rows without a label, and of so many files that have no column of labels."""
        for count, noun, known in ((self.missing, "row", "a known label"), (files, "file", "labels")):
            if count:
                yield f"{counted(count, noun)} without {known}, which predictions do not need."

    def names(self) -> tuple[str, ...]:
        """The classes in order of their targets; none if the labels are numbers."""
        return tuple(self._places) if self.fixed else tuple(sorted(self._places))

    def relabel(self) -> tuple[int, ...]:
        """The final target of each that `encode` gave; empty if those are final."""
        final = {name: place for place, name in enumerate(self.names())}
        order = tuple(final[name] for name in self._places)
        return () if order == tuple(range(len(order))) else order

    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The labels of each target, where rows may have several."""
        return ()

    def schema(self) -> dict[str, Any]:
        """What `known` must be to give the same targets again."""
        return {"kind": self.kind or "numbers", "names": list(self.names())}

    def _target(self, word: str) -> float | str:
        if not word or word.lower() in self.absent:
            return "the label is missing"
        if self.kind == "words":
            if not self.fixed:
                return float(self._places.setdefault(word, len(self._places)))
            if word in self._places:
                return float(self._places[word])
            return f"the label `{shown(word)}` is none of {listed(list(self._places), _SHOWN)}"
        number = number_of(word)
        if number is None:
            before = "the model was trained on numbers" if self.fixed else "the first labels were numbers"
            return f"the label `{shown(word)}` is not a number, but {before}"
        return number if fits_float32(number) else f"the label `{shown(word)}` is not a finite float32 number"
