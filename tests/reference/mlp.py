"""A slow, obvious twin of embeddings with dense layers: float64, one row at a time; derivatives by differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference.linear import loss_of


class MlpTwin:
    """The mean loss of a batch as a plain function of named arrays, as `SparseMLP.arrays` names them."""

    def __init__(self, program: Any) -> None:
        self.config = program.config
        self.slots = len(program.slots)
        self.loss = "Squared" if program.loss == "squared" else "Logistic"

    def scores(self, arrays: dict[str, np.ndarray], row: dict[str, Any]) -> np.ndarray:
        """Scores of one row: ids, values, slots, dense."""
        config = self.config
        inputs = np.zeros((self.slots, config.dim))
        for slot in range(self.slots):
            chosen = [k for k, owner in enumerate(row["slots"]) if owner == slot]
            values = np.array([row["values"][k] for k in chosen])
            total = sum(
                (value * arrays["embedding"][row["ids"][k]] for value, k in zip(values, chosen, strict=True)), 0.0
            )
            if chosen and config.combiner == "mean":
                total = total / values.sum()
            if chosen and config.combiner == "sqrtn":
                total = total / np.sqrt((values**2).sum())
            inputs[slot] = total
        given = np.concatenate([_activated(config.lookup_activation, inputs.reshape(-1)), row["dense"]])
        layers = len(config.hidden) + 1
        for layer in range(1, layers + 1):
            given = given @ arrays[f"layer_{layer}_weight"] + arrays[f"layer_{layer}_bias"]
            if layer < layers:
                given = _activated(config.activation, given)
        if config.wide:
            for ident, value in zip(row["ids"], row["values"], strict=True):
                given = given + value * arrays["wide"][ident]
        return given

    def batch_loss(self, arrays: dict[str, np.ndarray], rows: list[dict[str, Any]]) -> float:
        """Mean over rows of importance times loss."""
        losses = [row["importance"] * loss_of(self.loss, self.scores(arrays, row), row["target"]) for row in rows]
        return float(np.mean(losses))

    def derivatives(self, arrays: dict[str, np.ndarray], rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Of the loss of a batch in every weight, by central differences."""
        wide = {name: array.astype(np.float64) for name, array in arrays.items()}
        found = {}
        for name, array in wide.items():
            slopes = np.zeros_like(array)
            for place in np.ndindex(array.shape):
                kept = array[place]
                array[place] = kept + 1e-5
                above = self.batch_loss(wide, rows)
                array[place] = kept - 1e-5
                slopes[place] = (above - self.batch_loss(wide, rows)) / 2e-5
                array[place] = kept
            found[name] = slopes
        return found


def _activated(name: str, sums: np.ndarray) -> np.ndarray:
    if name == "relu":
        return np.maximum(sums, 0.0)
    return np.tanh(sums) if name == "tanh" else sums


def rows_of(samples: Any, slots: int) -> list[dict[str, Any]]:
    """The rows of a bundle of slots, one dictionary each; an empty array of slots means the first."""
    rows = []
    for k in range(len(samples.targets)):
        part = slice(samples.offsets[k], samples.offsets[k + 1])
        count = part.stop - part.start
        rows.append({
            "ids": samples.ids[part].tolist(),
            "values": samples.values[part].tolist() if hasattr(samples, "values") else [1.0] * count,
            "slots": samples.slots[part].tolist() if slots > 1 else [0] * count,
            "dense": samples.dense[k].astype(np.float64),
            "target": float(samples.targets[k]),
            "importance": float(samples.importance[k]),
        })  # fmt: skip
    return rows
