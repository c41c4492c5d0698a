"""Bags and steps by our kernels, against those of PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from hogwild.pytorch import EmbeddingBag  # noqa: E402
from hogwild.pytorch.bags import use_our_bags  # noqa: E402
from hogwild.pytorch.rules import RULES, rule_of  # noqa: E402
from hogwild.pytorch.steps import CompiledSteps, steps_of  # noqa: E402

ROWS, WIDTH = 5000, 7  # more rows than one digit of the sort has


def _bags(random: Any, bags: int = 40) -> tuple[Any, Any]:
    """ids and offsets: empty bags, repeated ids and the last row among them."""
    sizes = torch.randint(0, 6, (bags,), generator=random)
    sizes[0], sizes[-1] = 0, 0
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])[:-1]
    ids = torch.randint(0, ROWS, (int(sizes.sum()),), generator=random)
    ids[::3], ids[1] = ids[0], ROWS - 1
    return ids, offsets


@pytest.mark.parametrize("options", [
    {"mode": "sum"}, {"mode": "mean"}, {"mode": "sum", "padding_idx": 0}, {"mode": "mean", "include_last_offset": True},
    {"mode": "mean", "padding_idx": -1},
    {"mode": "max", "sparse": False}, {"mode": "sum", "max_norm": 1.0}, {"mode": "sum", "sparse": False},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_a_bag_of_ours_is_one_of_pytorch(options: dict[str, Any], weighted: bool) -> None:
    if weighted and options["mode"] != "sum":
        pytest.skip("PyTorch has weights for sums only")
    random = torch.Generator().manual_seed(1)
    theirs = nn.EmbeddingBag(ROWS, WIDTH, **{"sparse": True, **options})
    ours = EmbeddingBag(ROWS, WIDTH, **options)
    ours.load_state_dict(theirs.state_dict())
    for kind in (torch.int64, torch.int32):
        ids, offsets = _bags(random)
        ids[2:4] = 0
        if options.get("include_last_offset"):
            offsets = torch.cat([offsets, torch.tensor([len(ids)])])
        weights = torch.rand(len(ids), generator=random) if weighted else None
        found = [bag(ids.to(kind), offsets.to(kind), weights) for bag in (theirs, ours)]
        torch.testing.assert_close(found[1], found[0])
        pull = torch.randn(found[0].shape, generator=random)
        for bag, out in zip((theirs, ours), found, strict=True):
            bag.weight.grad = None
            (out * pull).sum().backward()
        assert ours.weight.grad.is_sparse == theirs.weight.grad.is_sparse
        dense = [bag.weight.grad.to_dense() for bag in (theirs, ours)]
        torch.testing.assert_close(dense[1], dense[0])
        if ours.weight.grad.is_sparse and ours.max_norm is None:
            rows = ours.weight.grad._indices()[0]
            assert bool((rows[1:] > rows[:-1]).all())  # each once, in order


def test_bags_of_one_size_and_no_bags() -> None:
    ours = EmbeddingBag(10, 3, mode="mean")
    table = torch.tensor([[1, 2], [9, 9]])
    torch.testing.assert_close(ours(table), ours.weight.detach()[table].mean(1))
    assert ours(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)).shape == (0, 3)
    with torch.no_grad():
        assert not ours(table).requires_grad


@pytest.mark.parametrize(("ids", "offsets"), [([1, 10], [0]), ([1, -1], [0]), ([1, 2], [0, 3]), ([1, 2], [0, 2, 1]),
                                              ([1, 2], [1])])  # fmt: skip
def test_rows_and_bags_that_are_none(ids: list[int], offsets: list[int]) -> None:
    bag = EmbeddingBag(10, 3, mode="sum")
    with pytest.raises(IndexError, match="outside of the 10 rows of the table"):
        bag(torch.tensor(ids), torch.tensor(offsets))


def test_an_optimizer_of_pytorch_takes_its_gradient_and_modules_get_it_in_workers() -> None:
    torch.manual_seed(1)
    theirs = nn.EmbeddingBag(50, 4, mode="sum", sparse=True)
    ours = copy.deepcopy(theirs)
    whole = nn.ModuleList([ours, nn.EmbeddingBag(5, 2)])
    use_our_bags(whole)
    assert isinstance(ours, EmbeddingBag)
    assert type(whole[1]) is nn.EmbeddingBag
    ids = torch.tensor([3, 3, 49, 0])
    for bag in (theirs, ours):
        optimizer = torch.optim.Adagrad(bag.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            bag(ids, torch.tensor([0, 2])).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight)


# -- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RULES, "momentum"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_compiled_steps_are_those_of_the_rule(name: str, decay: float) -> None:
    constants = {"weight_decay": decay, **({"momentum": 0.8} if name == "momentum" else {})}
    rule = rule_of("sgd" if name == "momentum" else name, constants)
    steps = steps_of(rule)
    assert isinstance(steps, CompiledSteps)
    random = torch.Generator().manual_seed(2)
    values = torch.randn(30, 5, generator=random)
    rows = torch.tensor([0, 4, 29])
    mine = values.clone(), *(torch.zeros(30, 5) for _ in range(rule.slots))
    other = tuple(part.clone() for part in mine)
    for step in range(1, 5):
        dense, some = torch.randn(150, generator=random), torch.randn(3, 5, generator=random)
        for who, (cells, *memory) in ((steps, mine), (rule, other)):
            who.step(cells.view(-1), dense.clone(), tuple(slot.view(-1) for slot in memory), 0.01, step)
            who.step_rows(cells, rows, some.clone(), tuple(memory), 0.02, step)
    for one, two in zip(mine, other, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(mine[0].numpy(), values.numpy())


def test_a_rule_of_a_users_makes_its_own_steps() -> None:
    class Mine(type(rule_of("adam", None))):  # type: ignore[misc]
        pass

    rule = Mine()
    assert steps_of(rule) is rule
