"""A worker in this process: its rules against those of PyTorch, its layout, what it counts and refuses."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from hogwild.config.training import ModuleTrainConfig  # noqa: E402
from hogwild.errors import ConfigError, DivergedError, InputError, ModelError  # noqa: E402
from hogwild.kernels.loop.order import file_order, locate, row_at, shuffled, visits_at  # noqa: E402
from hogwild.pytorch.data import rows_of, tensor_feed  # noqa: E402
from hogwild.pytorch.layout import lay_out  # noqa: E402
from hogwild.pytorch.memory import pack  # noqa: E402
from hogwild.pytorch.program import TorchProgram  # noqa: E402
from hogwild.pytorch.rules import RULES, Rule, sum_rows  # noqa: E402
from hogwild.pytorch.worker import Visitor  # noqa: E402
from pytorch import models  # noqa: E402


def visitors(program: TorchProgram, feed: Any, workers: int = 1, trace: bool = False) -> list[Visitor]:
    """Workers as the backend would have them, all in this process."""
    program.gather(workers)
    program.startup(feed, 1)
    return [_visitor(program, worker, trace) for worker in range(workers)]


def _visitor(program: TorchProgram, worker: int, trace: bool) -> Visitor:
    make, arguments = program.visitor(worker, ModuleTrainConfig(trace=trace))
    return make(*arguments)


PEERS = {
    "sgd": (torch.optim.SGD, {}, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}, {"momentum": 0.9}),
    "decay": (torch.optim.SGD, {"weight_decay": 0.1}, {"weight_decay": 0.1}),
    "adagrad": (torch.optim.Adagrad, {}, {}),
    "adam": (torch.optim.Adam, {"betas": (0.8, 0.99)}, {"beta1": 0.8, "beta2": 0.99}),
    "adamw": (torch.optim.AdamW, {}, {}),
    "rmsprop": (torch.optim.RMSprop, {}, {}),
}


@pytest.mark.parametrize("name", PEERS)
def test_dense_steps_are_those_of_pytorch(name: str) -> None:
    peer, its, ours = PEERS[name]
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1), nn.Flatten(0))
    twin = copy.deepcopy(module)
    data = models.points(60)
    rule = name if name in RULES else "sgd"
    (visitor,) = visitors(TorchProgram(module, nn.MSELoss(), rule, batch=10, constants=ours), data)
    visitor.run(np.arange(6), 0, [0.02] * 6, np.arange(6), 0.0)
    optimizer = peer(twin.parameters(), lr=0.02, **its)
    for batch in range(6):
        optimizer.zero_grad()
        part = slice(10 * batch, 10 * batch + 10)
        nn.functional.mse_loss(twin(data[0][part]), data[1][part]).backward()
        optimizer.step()
    for mine, other in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_sparse_steps_are_those_of_pytorch_and_touch_their_rows_only(name: str) -> None:
    peer = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}[name]
    torch.manual_seed(3)
    module = models.Bags()
    twin, before = copy.deepcopy(module), module.bag.weight.detach().clone()
    data = tensor_feed(models.bags(5))
    data.source._collate = models.first_of
    program = TorchProgram(module, nn.BCEWithLogitsLoss(), name, batch=1, constants=_same(name))
    (visitor,) = visitors(program, data)
    visitor.run(np.arange(5), 0, [0.1] * 5, np.arange(5), 0.0)
    optimizer = peer([twin.bag.weight], lr=0.1, **_same(name))
    touched = set()
    for ids, offsets, y in models.bags(5):
        optimizer.zero_grad()
        touched |= set(ids.tolist())
        nn.functional.binary_cross_entropy_with_logits(twin(ids, offsets), y).backward()
        optimizer.step()
        _step_dense(twin.output, name, optimizer)
    still = [row for row in range(models.FEATURES) if row not in touched]
    assert still
    assert torch.equal(module.bag.weight[still], before[still])
    torch.testing.assert_close(module.bag.weight, twin.bag.weight, rtol=1e-4, atol=1e-5)
    for slot in program.arrays(state=True).items():
        if slot[0].startswith("optimizer/bag.weight"):
            assert not slot[1][still].any()


def _same(name: str) -> dict[str, float]:
    """SparseAdam adds eps elsewhere than Adam: next to none is the same for both."""
    return {"eps": 1e-14} if name == "adam" else {}


def _step_dense(layer: nn.Module, name: str, known: Any) -> None:
    """The dense layer of the twin, by its own optimizer of PyTorch, kept with the sparse one."""
    if not hasattr(known, "beside"):
        peer = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}[name]
        known.beside = peer(layer.parameters(), lr=0.1, **_same(name))
    known.beside.step()
    known.beside.zero_grad()


def test_steps_of_all_workers_count_and_parameters_without_a_gradient_stand_still() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.used(x).flatten()

    module = Half()
    models.Half = Half  # type: ignore[attr-defined]
    Half.__module__, Half.__qualname__ = "pytorch.models", "Half"
    program = TorchProgram(module, nn.MSELoss(), "adam", batch=10)
    one, two = visitors(program, models.points(60), workers=2)
    before = module.unused.weight.detach().clone()
    for visit in range(3):
        one.run(np.array([visit]), 0, [0.1], np.array([visit]), 0.0)
        two.run(np.array([visit + 3]), 0, [0.1], np.array([visit + 3]), 0.0)
    steps = dict(zip([place.name for place in lay_out(module).trained], program.arrays(state=True)["optimizer/steps"],
                     strict=True))  # fmt: skip
    assert steps == {"used.weight": 6, "used.bias": 6, "unused.weight": 0, "unused.bias": 0}
    assert torch.equal(module.unused.weight, before)
    program.gather(1)  # another number of workers: nothing that was remembered is lost
    remembered = program.arrays(state=True)
    program.startup(models.points(60), 1)
    for name, array in program.arrays(state=True).items():
        np.testing.assert_array_equal(array, remembered[name])


def test_what_is_tied_stays_tied() -> None:
    torch.manual_seed(1)
    module = models.Tied()
    layout = lay_out(module)
    assert {place.name for place in layout.places} == {"first.weight", "row"}
    program = TorchProgram(module, nn.MSELoss(), "sgd", batch=10)
    (visitor,) = visitors(program, models.points(20))
    visitor.run(np.arange(2), 0, [0.1] * 2, np.arange(2), 0.0)
    assert module.second.weight is module.first.weight
    assert torch.equal(module.row, module.first.weight[1])
    theirs = visitor._module
    assert theirs is not module
    assert theirs.second.weight is theirs.first.weight
    assert torch.equal(theirs.first.weight, module.first.weight)
    assert set(program.arrays()) == {"first.weight", "second.weight", "row"}


def test_buffers_are_shared_and_random_numbers_are_those_of_the_visit() -> None:
    def trained(order: list[int]) -> tuple[Any, Any]:
        torch.manual_seed(1)
        module = models.Normed()
        program = TorchProgram(module, nn.MSELoss(), "sgd", batch=10)
        one, two = visitors(program, models.points(40), workers=2)
        for visit in range(4):
            [one, two][order[visit]].run(np.array([visit]), 0, [0.1], np.array([visit]), 0.0)
        assert "norm.running_mean" in program.started_notes()[0]
        return module, one

    (module, worker), (other, _) = trained([0, 1, 0, 1]), trained([0, 0, 0, 0])
    assert module.seen.item() == 4 == module.norm.num_batches_tracked.item()
    assert worker._module.seen.item() == 4
    for mine, its in zip(module.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(mine, its)  # one after the other: it does not matter who


def test_versions_are_counted() -> None:
    program = TorchProgram(models.make_line(), nn.MSELoss(), "sgd", batch=10)
    one, two = visitors(program, models.points(60), workers=2, trace=True)
    one.gradient(0, 0, 0)
    two.run(np.arange(1, 4), 0, [0.1] * 3, np.arange(1, 4), 0.0)
    one.apply(0.1)
    found = one.trace()
    (wrong,) = found.pop("sizes")
    assert found == {"errors": 1, "read_overwrites": 1, "write_overwrites": 0, "delayed": 1, "delays": {3: 1}}
    assert 0.01 < wrong < 10
    found = two.trace()
    assert found["errors"] == 0
    assert found["sizes"] == [0.0]  # nobody wrote meanwhile: the gradient is that of its moment
    assert one.trace()["delays"] == {}


def test_how_wrong_a_gradient_is_leaves_everything_as_it_was() -> None:
    """Weights that were halved between reading and writing; batch norm, dropout and its buffers are not disturbed."""
    torch.manual_seed(1)
    plain, traced = models.Normed(), models.Normed()
    traced.load_state_dict(plain.state_dict())
    workers = [
        visitors(TorchProgram(each, nn.MSELoss(), "sgd", batch=10), models.points(40), trace=each is traced)[0]
        for each in (plain, traced)
    ]
    for worker in workers:
        worker.run(np.arange(3), 0, [0.1] * 3, np.arange(3), 0.0)
    for mine, other in zip(traced.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(mine, other)
    line = nn.Linear(3, 1, bias=False)
    (worker,) = visitors(TorchProgram(line, _Sum(), "sgd", batch=10), models.points(10), trace=True)
    worker.gradient(0, 0, 0)
    with torch.no_grad():
        line.weight.mul_(0.5)  # the gradient of w^2 / 2 is w: it was twice as large
    worker.apply(0.1)
    assert worker.trace()["sizes"] == pytest.approx([1.0])


class _Sum(nn.Module):
    """Half the square of an output over rows that are the identity, for the test above."""

    def forward(self, output: Any, target: Any) -> Any:
        return output.square().sum() / 2


def test_a_sum_of_gradients_is_that_of_the_whole_batch() -> None:
    torch.manual_seed(1)
    whole, parts = models.Bags(), models.Bags()
    parts.load_state_dict(whole.state_dict())
    data = tensor_feed(models.bags(2))
    data.source._collate = models.first_of
    worker, other = (
        visitors(TorchProgram(each, nn.BCEWithLogitsLoss(), "adagrad", batch=1), data)[0] for each in (whole, parts)
    )
    from hogwild.executor.backends.processes import _sum

    grads = []
    for visit in range(2):
        worker.gradient(visit, 0, visit)
        grads.append(pickle.loads(pickle.dumps(worker.take())))
    worker.apply_sum([_sum(*pair) for pair in zip(*grads, strict=True)], 0.1)
    loss = sum(nn.functional.binary_cross_entropy_with_logits(parts(*batch[:2]), batch[2]) for batch in models.bags(2))
    loss.backward()
    for mine, place in zip(other._parameters, lay_out(parts).trained, strict=True):
        mine.grad = parts.get_parameter(place.name).grad
    other.apply(0.1)
    for mine, its in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(mine, its)


@pytest.mark.parametrize("shape", [(50, 4), (50,), (50, 2, 2)])
def test_rows_of_a_gradient_are_summed_as_pytorch_does(shape: tuple[int, ...]) -> None:
    random = torch.Generator().manual_seed(1)
    for count in (0, 1, 200):
        numbers = torch.randint(0, 50, (count,), generator=random)
        cells = torch.randn(count, *shape[1:], generator=random)
        grad = torch.sparse_coo_tensor(numbers[None], cells, shape)
        rows, sums = sum_rows(grad)
        whole = grad.coalesce()
        assert torch.equal(rows, whole.indices()[0])
        torch.testing.assert_close(sums, whole.values())


class Backwards(Rule):
    """A rule of a user's: up the gradient."""

    def move(self, values: Any, grad: Any, memory: Any, rate: float, step: int) -> Any:
        return -rate * grad


class _Meanwhile(torch.Tensor):
    """A gradient whose square is no sooner remembered than another worker writes what it knew before: nothing."""

    shared: torch.Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.Tensor.addcmul_:
            cls.shared.zero_()
        return found


@pytest.mark.parametrize("name", ["adagrad", "adam", "adamw", "rmsprop"])
def test_no_move_is_divided_by_what_others_write_meanwhile(name: str) -> None:
    rule = RULES[name]()
    values, memory = torch.zeros(8), tuple(torch.zeros(8) for _ in range(rule.slots))
    _Meanwhile.shared = memory[-1]
    rule.step(values, torch.full((8,), 3.0).as_subclass(_Meanwhile), memory, rate=0.1, step=1)
    assert 0.09 < float(values.abs().max()) < 1.1


def test_a_rule_of_ones_own() -> None:
    program = TorchProgram(models.make_line(), nn.MSELoss(), Backwards(), batch=60)
    (visitor,) = visitors(program, models.points(60))
    losses = [visitor.run(np.array([0]), 0, [0.1], np.array([0]), 0.0) for _ in range(3)]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


# -- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_rows_and_visits_are_those_of_compiled_code(count: int) -> None:
    for key in (0, 12345678901234567):
        rows = np.concatenate([rows_of(visit, 3, count, key) for visit in range(-(-count // 3))])
        assert sorted(rows.tolist()) == list(range(count))
        assert rows.tolist() == [row_at(place, count, count, key) for place in range(count)]
    mixed = shuffled(count, 1, 0)
    for order in (file_order(count), mixed, shuffled(count, 1, 0, 4), mixed.shard(0, 2)):
        positions = np.arange(order.samples)
        assert visits_at(order, positions).tolist() == [locate(order, position) for position in range(order.samples)]


def test_a_parcel_shares_arrays_and_keeps_small_things() -> None:
    big, small = np.arange(1000.0), np.arange(3)
    parcel = pack({"big": big, "tensor": torch.from_numpy(big), "small": small, "turned": np.ones((40, 40)).T[::2]})
    one, two = parcel.open(), parcel.open()
    assert np.shares_memory(one["big"], two["big"])
    assert np.shares_memory(one["tensor"].numpy(), two["tensor"].numpy())
    np.testing.assert_array_equal(one["big"], big)
    assert one["small"].tolist() == [0, 1, 2]
    assert one["turned"].sum() == 800


def test_data_of_all_kinds() -> None:
    from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

    rows = np.array([2, 0])
    tensors = TensorDataset(*(torch.stack(part) for part in zip(*models.Stream(), strict=True)))
    loaders = DataLoader(models.Squares(20), batch_size=5), DataLoader(models.Stream(), batch_size=5)
    for data in (models.Squares(20), models.Stream(), tensors, *loaders):
        feed = tensor_feed(data)
        assert len(feed) == 20
        x, y = feed.source.batch(rows)
        assert x[:, 0].tolist() == pytest.approx([0.1, 0.0])
        assert y.tolist() == pytest.approx([0.01, 0.0])
        assert feed.size == (5 if isinstance(data, DataLoader) else 0)
    assert tensor_feed(models.Squares(9)).fingerprint != tensor_feed(models.Squares(8)).fingerprint
    sampler = WeightedRandomSampler([1.0] * 20, 20)
    for wrong, message in (
        (3, "nothing to train a module on"),
        ((torch.zeros(2), torch.zeros(3)), "differ in length"),
        ((np.array(["a"]),), "tensors are of numbers"),
        (DataLoader(models.Squares(20), sampler=sampler), "visited once an epoch"),
    ):
        with pytest.raises(InputError, match=message):
            tensor_feed(wrong)
    with pytest.raises(InputError, match="cannot be sent to workers"):
        tensor_feed([(torch.zeros(3), lambda: 0)]).parcel()


def test_slots_of_a_batch_are_bags() -> None:
    import hogwild
    from hogwild.arrays import ValuedSlotRows

    random = np.random.default_rng(3)
    counts = random.integers(0, 3, (9, 4))
    total, slots = int(counts.sum()), np.concatenate([np.repeat(np.arange(4), line) for line in counts])
    offsets = np.concatenate([[0], np.cumsum(counts.sum(1))])
    ids, values = random.integers(0, 50, total).astype(np.int32), random.random(total).astype(np.float32)
    samples = ValuedSlotRows(
        offsets, ids, slots.astype(np.uint16), random.random((9, 2)).astype(np.float32), np.zeros(9, np.float32),
        np.ones(9, np.float32), values,
    )  # fmt: skip
    feed = hogwild.Feed(samples, 50, schema={"slots": list("abcd"), "dense": ["x", "y"]})
    rows = np.array([8, 0, 3])
    found, starts, dense, weights, _ = tensor_feed(feed).source.batch(rows)
    ends = [*starts.tolist()[1:], len(found)]
    for bag, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        row, slot = rows[bag // 4], bag % 4
        entries = [e for e in range(offsets[row], offsets[row + 1]) if slots[e] == slot]
        assert found[start:end].tolist() == ids[entries].tolist()
        assert weights[start:end].tolist() == values[entries].tolist()
    assert dense.tolist() == samples.dense[rows].tolist()


def test_feeds_of_ours_have_the_features_own_numbers() -> None:
    from scipy.sparse import csr_matrix

    import hogwild

    matrix = np.array([[0, 0, 3.0, 0], [1, 0, 2, 0], [0, 0, 4, 5]], np.float32)
    feed = hogwild.feed_of(csr_matrix(matrix), [0, 1, 1])
    data = tensor_feed(feed, long=True)
    ids, offsets, values, targets = data.source.batch(np.array([1, 2]))
    back = np.zeros((2, 4))
    bag = np.searchsorted(offsets.numpy(), np.arange(len(ids)), side="right") - 1
    back[bag, ids.numpy()] = values.numpy()
    np.testing.assert_array_equal(back, matrix[1:])
    assert targets.tolist() == [1, 1]
    assert targets.dtype == torch.int64
    known = tensor_feed(feed, features=3)
    assert "1 entries have features" in known.remarks[0]
    assert known.source.batch(np.array([2]))[0].tolist() == [2]
    dense = tensor_feed(hogwild.feed_of(matrix, [0.5, 1.5, 2.5]))
    assert dense.source.batch(np.array([0]))[0].tolist() == [[0, 0, 3, 0]]


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TorchProgram(3), "3 is no module"),
        (lambda: TorchProgram(models.make_line, "mse"), "give a function of output and targets"),
        (lambda: TorchProgram(models.make_line, batch=0), "at least 1"),
        (lambda: TorchProgram(models.make_line, lr=-1.0), "must be positive"),
        (lambda: TorchProgram(models.make_line, optimizer="adamm"), "mean adam.* sgd, adagrad.*pytorch.Rule"),
        (lambda: TorchProgram(models.make_line, optimizer="sgd", constants={"beta1": 1}), "no constant 'beta1'"),
        (lambda: TorchProgram(models.make_line, constants={"eps": -1}), "not negative"),
    ],
)  # fmt: skip
def test_wrong_programs(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_wrong_modules_and_losses_are_found_before_workers_start() -> None:
    data = models.points(20)
    local = nn.Linear(3, 1)
    local.own = lambda: 0
    frozen = nn.Linear(3, 1)
    frozen.requires_grad_(False)
    for module, loss, message in (
        (local, nn.MSELoss(), r"cannot be sent to workers.*TorchProgram\(make_model"),
        (lambda: nn.Linear(3, 1), nn.MSELoss(), "no lambda"),
        (frozen, nn.MSELoss(), "nothing to train"),
        (nn.Linear(3, 1).half(), lambda output, y: output.float().mean(), "is torch.float16; use torch.float32"),
        (nn.LazyLinear(1), nn.MSELoss(), "has no size yet"),
        (models.make_line, nn.MSELoss(reduction="none"), r"shape \(20,\); it must be one number"),
        (models.make_line, lambda output, y: 3.0, "the loss is float"),
        (models.make_nothing, nn.MSELoss(), "the factory returned int"),
        (nn.Linear(3, 1, device="meta"), lambda output, y: torch.zeros(()), "is on meta"),
    ):
        with pytest.raises(ConfigError, match=message):
            TorchProgram(module, loss, batch=20).startup(data, 1)


def test_losses_without_a_gradient_or_a_number_stop_the_worker() -> None:
    class Nothing(nn.MSELoss):
        def forward(self, output: Any, target: Any) -> Any:
            return super().forward(output.detach(), target)

    models.Nothing = Nothing  # type: ignore[attr-defined]
    Nothing.__module__, Nothing.__qualname__ = "pytorch.models", "Nothing"
    (visitor,) = visitors(TorchProgram(models.make_line, Nothing(), batch=10), models.points(20))
    with pytest.raises(ConfigError, match="depends on no parameter"):
        visitor.gradient(0, 0, 0)
    x, y = models.points(20)
    y[3] = torch.nan
    program = TorchProgram(models.make_line, nn.MSELoss(), batch=10)
    (visitor,) = visitors(program, (x, y))
    with pytest.raises(DivergedError, match="the loss became nan in batch 0"):
        visitor.run(np.arange(2), 0, [0.1] * 2, np.arange(2), 0.0)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in program.state_dict().values())


def test_targets_that_a_loss_does_not_take() -> None:
    import hogwild

    feed = hogwild.feed_of(np.eye(3), [-1, 1, 1])
    for loss, message in ((nn.BCEWithLogitsLoss(), "takes 0 to 1"), (nn.CrossEntropyLoss(), "takes classes")):
        with pytest.raises(InputError, match=message):
            TorchProgram(models.make_line, loss).startup(feed, 1)


# -- weights ----------------------------------------------------------------------------------------------------------


def test_a_state_dict_goes_to_pytorch_and_back_and_copies_are_copies() -> None:
    program = TorchProgram(models.make_line, nn.MSELoss(), "adam", batch=10)
    (visitor,) = visitors(program, models.points(40))
    visitor.run(np.arange(4), 0, [0.1] * 4, np.arange(4), 0.0)
    plain = models.make_line()
    plain.load_state_dict(program.state_dict())
    x, y = models.points(30, seed=2)
    assert torch.equal(plain(x), torch.from_numpy(program.predict((x, y))))
    np.testing.assert_array_equal(program.predict((x,)), program.predict((x, y)))
    assert program.evaluate((x, y))["loss"] == pytest.approx(float(nn.functional.mse_loss(plain(x), y).detach()))
    for twin in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        for name, array in program.arrays(state=True).items():
            np.testing.assert_array_equal(twin.arrays(state=True)[name], array)
        with torch.no_grad():
            twin.module[0].weight.zero_()
        assert program.module[0].weight.any()
    with pytest.raises(ModelError, match="other parameters than the model: extra"):
        program.restore({**program.arrays(), "extra": np.zeros(1)})
    with pytest.raises(ModelError, match="in the module"):
        program.restore({**program.arrays(), "0.bias": np.zeros(2)})
