"""The weights of a CRF by attribute and label, without a Python object for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from hogwild.programs.taggers.crf import CRF

Key = tuple[str, str]


class StateWeights(Mapping[Key, float]):
    """{(attribute, label): weight}, as a dict to read; weights of 0 are left out.

    A model of 300,000 attributes and 22 labels has millions of weights, more than a dict of them is good for.
    """

    def __init__(self, program: CRF) -> None:
        self._weights = program.arrays()["nodes"]
        self._names, self._labels = program.names, program.tags
        self._rows = {name: row for row, name in enumerate(self._names)}
        self._columns = {label: column for column, label in enumerate(self._labels)}

    def __getitem__(self, key: Key) -> float:
        try:
            weight = float(self._weights[self._rows[key[0]], self._columns[key[1]]])
        except (KeyError, IndexError, TypeError):
            raise KeyError(key) from None
        if not weight:
            raise KeyError(key)
        return weight

    def __iter__(self) -> Iterator[Key]:
        for name, row in zip(self._names, self._weights, strict=True):
            for column in np.flatnonzero(row).tolist():
                yield name, self._labels[column]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._weights))

    def __repr__(self) -> str:
        return f"<{len(self):,} weights of {len(self._names):,} attributes and {len(self._labels)} labels>"
