"""A model of others, DeepCTR-Torch's, trained as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import hogwild  # noqa: E402
from hogwild.pytorch import TorchProgram  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.full]
SLOTS, VALUES = 4, 20


def make_deepfm() -> Any:
    """Their model; its output is a chance, its inputs the columns of one matrix."""
    inputs = pytest.importorskip("deepctr_torch.inputs")
    from deepctr_torch.models import DeepFM

    columns = [inputs.SparseFeat(f"s{k}", VALUES, embedding_dim=4) for k in range(SLOTS)]
    columns += [inputs.DenseFeat("x", 1)]
    return DeepFM(columns, columns, dnn_hidden_units=(16,), device="cpu", seed=1)


def chances(output: Any, target: Any) -> Any:
    """Their output has a column of its own."""
    return nn.functional.binary_cross_entropy(output[:, 0], target)


def make_clicks(rows: int, seed: int) -> tuple[Any, Any]:
    """Samples whose labels two slots and a number tell."""
    random, truth = np.random.default_rng(seed), np.random.default_rng(7).normal(size=(SLOTS, VALUES))
    ids, x = random.integers(0, VALUES, (rows, SLOTS)), random.normal(size=(rows, 1))
    scores = truth[0][ids[:, 0]] + truth[1][ids[:, 1]] + x[:, 0]
    labels = (random.random(rows) < 1 / (1 + np.exp(-2 * scores))).astype(np.float32)
    return np.concatenate([ids, x], 1).astype(np.float32), labels


def test_a_model_of_deepctr_torch_trains_unmodified() -> None:
    pytest.importorskip("deepctr_torch")
    program = TorchProgram(make_deepfm, chances, "adam", batch=32, lr=0.01)
    train, test = make_clicks(3000, 1), make_clicks(500, 2)
    events = hogwild.AsyncExecutor(threads=2).run(program, train, valid=test, epochs=4)
    losses = [event.metrics["loss"] for event in events if event.kind == "epoch"]
    # Chance is 0.69, the truth 0.35: the first epoch comes near it already, and chance decides which epoch is best.
    assert max(losses) < 0.5
    plain = make_deepfm()
    plain.load_state_dict(program.state_dict())
    with torch.no_grad():
        np.testing.assert_allclose(plain.eval()(torch.from_numpy(test[0])).numpy(), program.predict(test), rtol=1e-5)
