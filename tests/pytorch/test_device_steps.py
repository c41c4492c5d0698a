"""Steps on a device, against slow twins; and that nothing of a step is done outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import hogwild  # noqa: E402
from hogwild.arrays import Rows  # noqa: E402
from hogwild.executor.plan import Plan, make_plan  # noqa: E402
from hogwild.executor.sharing import make_store  # noqa: E402
from hogwild.kernels.loop.order import row_at  # noqa: E402
from hogwild.kernels.loop.schedule import Schedule  # noqa: E402
from hogwild.kernels.loop.span import Span  # noqa: E402
from hogwild.kernels.optim.losses import STEEP, Huber, Poisson, Quantile, Squared  # noqa: E402
from hogwild.kernels.optim.penalties import Free, Penalty  # noqa: E402
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, row_cells  # noqa: E402
from hogwild.pytorch import TorchProgram  # noqa: E402
from hogwild.pytorch.data import rows_of  # noqa: E402
from hogwild.pytorch.devices.device import Device  # noqa: E402
from hogwild.pytorch.devices.module import ModuleWork  # noqa: E402
from hogwild.pytorch.devices.rows import distinct, move_dense, move_rows, paid, rule_on  # noqa: E402
from hogwild.pytorch.devices.sparse_mlp import SparseMLPWork  # noqa: E402
from hogwild.pytorch.devices.text import TextWork  # noqa: E402
from hogwild.pytorch.devices.upload import Samples  # noqa: E402
from hogwild.pytorch.devices.work import costs_of  # noqa: E402
from problems import mlp  # noqa: E402
from pytorch import models  # noqa: E402
from reference import linear  # noqa: E402

HERE = Device("cpu")
RULES = [Sgd(), Momentum(), Adagrad(), Adam(), Ftrl(l1=np.float32(0.03), l2=np.float32(0.1))]



# -- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [
    Squared(), Huber(np.float32(linear.DELTA)), Quantile(np.float32(linear.LEVEL)), Poisson(),
], ids=lambda loss: type(loss).__name__)  # fmt: skip
def test_losses_of_quantities_and_their_slopes(loss: Any) -> None:
    name, targets = type(loss).__name__, [0.0, 0.5, 2.0, 7.0]
    scores = torch.tensor([[-3.0], [0.4], [2.1], [9.0]], requires_grad=True)
    costs = costs_of(scores, torch.tensor(targets), loss)
    (slopes,) = torch.autograd.grad(costs.sum(), scores)
    for k, (score, target) in enumerate(zip(scores.detach()[:, 0].tolist(), targets, strict=True)):
        assert costs[k].item() == pytest.approx(linear.loss_of(name, np.array([score]), target), rel=1e-5)
        sides = [linear.loss_of(name, np.array([score + side]), target) for side in (1e-6, -1e-6)]
        assert slopes[k, 0].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-3)


def test_poisson_goes_on_straight_there_too() -> None:
    scores = torch.tensor([[STEEP + 10.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(costs_of(scores, torch.tensor([2.0]), Poisson()).sum(), scores)
    assert slope.item() == pytest.approx(np.exp(STEEP), rel=1e-5)


# -- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_rows_move_as_the_rule_says_and_no_others(rule: Any) -> None:
    random, width = np.random.default_rng(4), 3
    cells = row_cells(rule, Free(), width)
    table = torch.zeros(6, cells)  # the last is nobody's
    twins = [[linear.Weight() for _ in range(width)] for _ in range(5)]
    for step in range(4):
        ids = np.array([[4, 0, 4, 2, 4], [0], [2, 2], [0, 2, 4]][step])  # row 4 is the last that there is
        grads = random.standard_normal((len(ids), width)).astype(np.float32)
        move_rows(rule_on(HERE, rule), Free(), table, torch.from_numpy(ids), torch.from_numpy(grads), 0.1, 0.0)
        for row in set(ids.tolist()):
            for k in range(width):
                linear.move(rule, twins[row][k], float(grads[ids == row, k].sum()), 0.1)
    found = table[:5, :width].numpy()
    np.testing.assert_allclose(found, [[twin.value for twin in row] for row in twins], atol=2e-6)
    assert not table[[1, 3]].any()
    if isinstance(rule, Adam):
        assert table[:5, -1].tolist() == [row[0].count for row in twins]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_dense_weights_move_as_the_rule_says(rule: Any) -> None:
    from hogwild.kernels.optim.rules import make_dense

    arrays = make_dense(rule, np.zeros(4, np.float32))
    weights = type(arrays)(*(torch.from_numpy(array) for array in arrays))
    twins = [linear.Weight() for _ in range(4)]
    for grads in np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32):
        move_dense(rule_on(HERE, rule), weights, torch.from_numpy(grads), 0.1)
        for twin, grad in zip(twins, grads.tolist(), strict=True):
            linear.move(rule, twin, grad, 0.1)
    np.testing.assert_allclose(arrays.values, [twin.value for twin in twins], atol=2e-6)


@pytest.mark.parametrize("rule", RULES[:4], ids=lambda rule: type(rule).__name__)
def test_rows_pay_their_penalty_when_they_are_touched(rule: Any) -> None:
    penalty, width = Penalty(np.float32(0.02), np.float32(0.3)), 2
    table = torch.zeros(3, row_cells(rule, penalty, width))
    plain = rule_on(HERE, rule)
    ids, grads = torch.tensor([1]), torch.tensor([[0.5, -2.0]])
    twins = [linear.Weight(), linear.Weight()]
    move_rows(plain, penalty, table, ids, grads, 0.1, 0.25)
    for twin, grad in zip(twins, grads[0].tolist(), strict=True):
        linear.move(rule, twin, grad, 0.1)
    np.testing.assert_allclose(table[1, :width], [twin.value for twin in twins], atol=1e-6)
    assert float(table[1, -1]) == 0.25
    for twin in twins:
        twin.value = linear.shrink(twin.value, 0.02, 0.3, 0.5 * linear.pace(rule, twin), parts=2000)
    now = paid(plain, penalty, table[1:2], width, 0.75)
    np.testing.assert_allclose(now[0], [twin.value for twin in twins], atol=2e-5)
    assert torch.equal(paid(plain, penalty, table[1:2], width, 0.1), table[1:2, :width])  # never backward


def test_distinct_rows_are_found_with_places_left_over() -> None:
    ids = torch.tensor([7, 3, 7, 7, 0])
    rows, place = distinct(ids, nobody=9)
    assert rows.tolist() == [0, 3, 7, 9, 9]
    assert torch.equal(rows[place], ids)


# -- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "size", "window"), [(1000, 7, 28), (1000, 8, 1 << 62), (31, 8, 16), (5, 8, 16)])
def test_rows_of_a_batch_are_those_of_compiled_code(rows: int, size: int, window: int) -> None:
    key, found = 0x1234_5678_9ABC, []
    for visit in range(-(-rows // size)):
        mine = rows_of(visit, size, rows, key, window).tolist()
        assert mine == [row_at(visit * size + k, rows, window, key) for k in range(len(mine))]
        found += mine
    assert sorted(found) == list(range(rows))


def test_samples_that_do_not_fit_are_the_same_batches() -> None:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 4, 20))])  # some rows are empty
    count = int(offsets[-1])
    rows = Rows(
        offsets, random.integers(0, 9, count).astype(np.int32), random.random(count, np.float32),
        random.random(20, np.float32), np.ones(20, np.float32),
    )  # fmt: skip
    chosen = [np.array([19, 3, 3]), np.array([0]), np.array([5, 6, 7, 8])]
    there, here = Samples(rows, Device("cpu", None), 0), Samples(rows, Device("cpu", 10), 0)
    assert (there.whole, here.whole) == (True, False)
    assert "do not fit on cpu" in here.notes[0]
    for one, other, which in zip(there.batches(chosen), here.batches(chosen), chosen, strict=True):
        for name, part in one._asdict().items():
            twin = getattr(other, name)
            assert torch.equal(part, twin) if isinstance(part, torch.Tensor) else part == twin
        expected = [rows.ids[e] for row in which for e in range(offsets[row], offsets[row + 1])]
        assert one.ids.tolist() == expected
        assert one.targets.tolist() == rows.targets[which].tolist()


# -- a fake device ----------------------------------------------------------------------------------------------------


class OnlyThere(TorchDispatchMode):
    """Fails where an operation reads or makes a tensor elsewhere than on a device, unless it is a copy to there,
    or an array of NumPy becomes one."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place, self.operations = place, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        tensors = [part for part in tree_leaves((args, kwargs or {})) if isinstance(part, torch.Tensor)]
        made = [part for part in tree_leaves(found) if isinstance(part, torch.Tensor)]
        self.operations += 1
        strays = [] if name == "lift_fresh" else [*(() if name in ("_to_copy", "copy_") else tensors), *made]
        for tensor in strays:
            if tensor.ndim and tensor.device.type != self.place:  # a number may come with a call
                raise AssertionError(f"{name} has a tensor {tuple(tensor.shape)} on {tensor.device}")
        return found


def _plan(program: Any, feed: Any, **options: Any) -> Plan:
    config = hogwild.AsyncExecutor(device="cpu:0", mode="serial", **options).config_for(program)
    return make_plan(config, program, feed)


def _pass_on_meta(kind: Any, plan: Plan) -> int:
    """All visits of an epoch on a device without numbers, by which operations are seen; returns how many there are."""
    work = kind(plan, Device("meta"))
    work.open(make_store(plan, plan.weights, "all"))
    work.send()
    with OnlyThere("meta") as seen:
        losses = work.run(0, Span(plan.order(0), Schedule(0.1, 0.0, 0.0), 0, plan.visits, 0, 0, 0, 1))
    assert losses.device.type == "meta"
    return seen.operations


def _texts() -> Any:
    import scipy.sparse

    matrix = scipy.sparse.random(24, 12, 0.3, format="csr", random_state=1, dtype=np.float32)
    return hogwild.feed_of(matrix, [["a", "b", "c"][row % 3] for row in range(24)])


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam", "ftrl"])
def test_no_tensor_of_an_mlp_is_left_on_the_processor(optimizer: str) -> None:
    options = {"wide": True, "combiner": "sqrtn", "l1": 1e-4, "l2": 1e-4}
    program = hogwild.SparseMLP(dim=3, hidden=(4,), batch_size=16, optimizer=optimizer, **options)
    assert _pass_on_meta(SparseMLPWork, _plan(program, mlp.pair_feed(40))) > 100


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "ftrl"])
def test_no_tensor_of_a_text_classifier_is_left_on_the_processor(optimizer: str) -> None:
    program = hogwild.TextClassifier(dim=4, optimizer=optimizer, counts=True)
    assert _pass_on_meta(TextWork, _plan(program, _texts(), batch=5)) > 100


@pytest.mark.parametrize("sparse", [False, True])
def test_no_tensor_of_a_module_is_left_on_the_processor(sparse: bool) -> None:
    program = TorchProgram(models.Bags(12, sparse), models.RowLoss(torch.ones(1)), "adam", batch=8)
    assert _pass_on_meta(ModuleWork, _plan(program, _texts())) > 50


class _Careless(TextWork):
    """Makes a tensor without saying where."""

    def step(self, batch: Any, rate: float, elapsed: float) -> Any:
        return super().step(batch._replace(importance=torch.ones(batch.size)), rate, elapsed)


def test_a_tensor_that_is_left_on_the_processor_is_found() -> None:
    with pytest.raises(AssertionError, match=r"ones has a tensor \(5,\) on cpu"):
        _pass_on_meta(_Careless, _plan(hogwild.TextClassifier(dim=4, counts=True), _texts(), batch=5))
