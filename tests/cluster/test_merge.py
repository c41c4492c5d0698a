"""Sub-models that differ by a rotation, a little noise and missing words are one model again."""

from __future__ import annotations

import numpy as np

from hogwild.cluster.strategies.merge import align, merged


def test_rotated_models_are_brought_together() -> None:
    random = np.random.default_rng(0)
    words, dim = 500, 20
    truth = random.normal(size=(words, dim))
    models, weights = [], []
    for part in range(3):
        turn = np.linalg.qr(random.normal(size=(dim, dim)))[0]
        model = (truth @ turn + 0.05 * random.normal(size=truth.shape)).astype(np.float32)
        often = random.integers(1, 100, words).astype(np.float64)
        missing = np.arange(words) % 10 == part  # a part has not every word: its rows say nothing
        model[missing] = random.normal(size=(missing.sum(), dim))
        often[missing] = 0
        models.append(model)
        weights.append(often)
    turns = align(models, weights)
    whole = merged(models, weights, turns)
    for turn in turns:
        np.testing.assert_allclose(turn @ turn.T, np.eye(dim), atol=1e-8)

    def likeness(matrix: np.ndarray) -> np.ndarray:
        unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return unit @ unit.T

    assert np.abs(likeness(whole) - likeness(truth)).mean() < 0.01
    assert np.abs(likeness(np.mean(models, axis=0)) - likeness(truth)).mean() > 0.1  # without turning


def test_a_word_that_no_part_has_is_as_in_the_first() -> None:
    random = np.random.default_rng(1)
    models = [random.normal(size=(50, 5)).astype(np.float32) for _ in range(2)]
    weights = [np.ones(50), np.ones(50)]
    for weight in weights:
        weight[7] = 0
    whole = merged(models, weights, align(models, weights))
    np.testing.assert_allclose(whole[7], models[0][7])
