"""A trained program as a PyTorch module: the same scores, for every part; and gradients that PyTorch finds itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hogwild  # noqa: E402
from hogwild.arrays import ValuedSlotRows  # noqa: E402
from hogwild.feeds.sparse.feed import Feed  # noqa: E402
from hogwild.pytorch import module_of  # noqa: E402

CASES: list[dict[str, Any]] = [
    {},
    {"combiner": "mean", "wide": True, "activation": "tanh"},
    {"combiner": "sqrtn", "lookup_activation": "relu", "hidden": ()},
]


def _feed(rows: int = 40, slots: int = 3) -> Feed:
    random = np.random.default_rng(2)
    counts = random.integers(0, 4, (rows, slots))
    total = int(counts.sum())
    owners = np.concatenate([np.repeat(np.arange(slots), line) for line in counts]).astype(np.uint16)
    samples = ValuedSlotRows(
        np.concatenate([[0], np.cumsum(counts.sum(axis=1))]), random.integers(0, 20, total).astype(np.int32), owners,
        random.standard_normal((rows, 2)).astype(np.float32), (np.arange(rows) % 3).astype(np.float32),
        np.ones(rows, np.float32), random.uniform(0.5, 2, total).astype(np.float32),
    )  # fmt: skip
    return Feed(samples, 20, schema={"slots": ["a", "b", "c"], "dense": ["x", "y"]}).check()


def _given(feed: Feed) -> dict[str, Any]:
    samples: Any = feed.samples
    names = ("ids", "offsets", "values", "dense")
    found = {name: torch.from_numpy(np.array(getattr(samples, name))) for name in names}
    return {**found, "slots": torch.from_numpy(samples.slots.astype(np.int64))}


@pytest.mark.parametrize("options", CASES, ids=str)
def test_the_module_gives_the_same_scores(options: dict[str, Any]) -> None:
    feed = _feed()
    program = hogwild.SparseMLP(**{"dim": 4, "hidden": (6, 5), **options})
    program.startup(feed, seed=3)
    program.weights.values[:] += 0.1
    if program.config.wide:
        program.weights.table.reshape(20, -1)[:, 4:7] = np.arange(3) - 1.0
    with torch.no_grad():
        scores = module_of(program)(**_given(feed)).numpy()
    np.testing.assert_allclose(scores, program.scores(feed), rtol=1e-4, atol=1e-5)


def test_the_module_can_be_trained_further_and_has_documented_names() -> None:
    feed = _feed()
    program = hogwild.SparseMLP(dim=4, hidden=(6,), wide=True)
    program.startup(feed, seed=3)
    module = module_of(program)
    assert sorted(dict(module.named_parameters())) == [
        "embedding", "layers.0.bias", "layers.0.weight", "layers.2.bias", "layers.2.weight", "wide",
    ]  # fmt: skip
    targets = torch.from_numpy(np.array(feed.samples.targets)).long()
    optimizer = torch.optim.Adam(module.parameters(), 0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(**_given(feed)), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(program.evaluate(feed)["loss"], rel=1e-4)
    assert losses[-1] < 0.5 * losses[0]
