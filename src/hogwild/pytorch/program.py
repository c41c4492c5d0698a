"""Any `torch.nn.Module` as a program of the executor."""

from __future__ import annotations

import copy
import math
import sys
import threading
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hogwild.arrays import Table
from hogwild.config.training import ModuleTrainConfig, TrainConfig
from hogwild.errors import ConfigError, InputError, ModelError, brief
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.fitting import misfit
from hogwild.machine import check_memory
from hogwild.messages import listed
from hogwild.programs.program import Metrics, Program
from hogwild.pytorch.data import DataFacts, TensorFeed, rows_of, split, tensor_feed
from hogwild.pytorch.devices.device import device_of
from hogwild.pytorch.layout import Layout, State, bind, lay_out, state_in, state_size
from hogwild.pytorch.losses import check_targets, right_of, takes_classes
from hogwild.pytorch.memory import Parcel, Segment
from hogwild.pytorch.rules import RULES, Rule, rule_of
from hogwild.pytorch.worker import Equipment, Recipe, Visitor, loss_of, pack_recipe

_STATE = "optimizer/"  # before the names of arrays that are no parameters; no name in a module has a slash
_SHOWN = 5


class ModuleWeights(NamedTuple):
    """Two segments of memory: all parameters and buffers, and all that the optimiser remembers."""

    parameters: npt.NDArray[np.float32]
    state: npt.NDArray[np.float32]


class TorchProgram(Program):
    """A module and its loss, trained by workers that are processes over one set of weights, without locks.

    Parameters
    ----------
    module : a `torch.nn.Module`, which is trained in place; or a function at the top of a module that makes one, with
        no parameter, or with one for `DataFacts` (how many features, which slots).
    loss : a function of the module's output and the targets that returns one number, the mean over a batch; a module
        such as `nn.CrossEntropyLoss()`. None: the module is given all of a batch and returns the loss itself.
    optimizer : `sgd`, `adagrad`, `adam`, `adamw`, `rmsprop`, or a `Rule` of your own.
    batch : samples of a visit: of one gradient of one worker.
    lr : learning rate where a run is given none; by default that of the optimizer.
    constants : of the optimizer, by name: momentum, weight_decay, beta1, beta2, alpha, eps.
    metrics : a function of all outputs and targets of a validation set that returns numbers by name.
    read : for the command line: a function of file names that returns the data to train on; by default feeds.
    slots : on the command line, columns of tables become slots and dense numbers, not one list of features.
    workers : `processes` (spawn) or `threads`; auto: threads where Python runs without the GIL, else processes.
    compile : each worker gives the module to `torch.compile`: it starts later, and needs a C++ compiler.

    Examples
    --------
    >>> import torch, hogwild
    >>> from hogwild.pytorch import TorchProgram
    >>> x = torch.randn(200, 2)
    >>> program = TorchProgram(torch.nn.Linear(2, 1), torch.nn.MSELoss(), optimizer="sgd", batch=20)
    >>> program
    <TorchProgram of Linear with sgd: 3 numbers>
    """

    name = "module"
    training = ModuleTrainConfig

    def __init__(
        self, module: nn.Module | Callable[..., nn.Module], loss: Callable[..., Tensor] | None = None,
        optimizer: str | Rule = "adam", batch: int = 64, *, lr: float | None = None,
        constants: Mapping[str, float] | None = None, metrics: Callable[[Tensor, Tensor], Metrics] | None = None,
        read: Callable[[tuple[str, ...]], Any] | None = None, slots: bool = False,
        workers: Literal["auto", "processes", "threads"] = "auto", compile: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(module, nn.Module) and not callable(module):
            raise ConfigError(f"{brief(module)} is no module; give a torch.nn.Module, or a function that makes one.")
        if loss is not None and not callable(loss):
            raise ConfigError(f"loss is {brief(loss)}; give a function of output and targets, such as nn.MSELoss().")
        if type(batch) is not int or batch < 1:
            raise ConfigError(f"batch is {brief(batch)}; it is a whole number of samples, at least 1.")
        if lr is not None and not 0 < lr < math.inf:
            raise ConfigError(f"lr is {brief(lr)}; it must be positive and finite.")
        self.rule = rule_of(optimizer, constants)
        self.loss, self.batch, self.metrics, self.read, self.slots = loss, batch, metrics, read, slots
        if workers not in ("auto", "processes", "threads"):
            raise ConfigError(f"workers is {brief(workers)}; it is auto, processes or threads.")
        self._threaded = not _has_gil() if workers == "auto" else workers == "threads"
        self.compile = compile
        self.facts: DataFacts | None = None
        self._lr, self._given = lr, module
        self._module = module if isinstance(module, nn.Module) else None
        self._workers = 1
        self._layout: Layout | None = None
        self._segments: tuple[Segment, Segment] | None = None
        self._recipe: Parcel | None = None
        self._feed: TensorFeed | None = None
        self._feeds: list[tuple[Any, TensorFeed]] = []
        self._parts = 0

    def __repr__(self) -> str:
        return f"<TorchProgram of {self._called} with {self._rule_name}: {self.described()}>"

    def described(self) -> str:
        """How many numbers are trained."""
        if self._module is None:
            return "not made yet"
        return f"{self.numbers:,} numbers"

    @property
    def numbers(self) -> int:
        """Numbers that are trained."""
        return sum(parameter.numel() for parameter in self.module.parameters() if parameter.requires_grad)

    @property
    def _called(self) -> str:
        given = self._given
        return type(given).__name__ if isinstance(given, nn.Module) else getattr(given, "__qualname__", brief(given))

    @property
    def _rule_name(self) -> str:
        names = {kind: name for name, kind in RULES.items()}
        return names.get(type(self.rule), type(self.rule).__name__)

    @property
    def module(self) -> nn.Module:
        """The module, with the weights that there are now. Between runs it can be trained in plain PyTorch."""
        return self._made()

    @property
    def rate(self) -> float:
        """As given to the program, else as the optimizer likes it: nothing is tried."""
        return self._lr or self.rule.rate

    # -- a run --------------------------------------------------------------------------------------------------

    def check_device(self, config: TrainConfig) -> None:
        """ConfigError where there is no such device."""
        if config.device:
            device_of(config.device)

    def backend(self, config: TrainConfig) -> Any:
        """Workers are processes, threads, or streams of a device."""
        # Both here: a worker needs none of it.
        if config.device:
            from hogwild.pytorch.devices.backend import DeviceStreams

            return DeviceStreams
        from hogwild.executor.backends.processes import ProcessWorkers, ThreadWorkers

        return ThreadWorkers if self._threaded else ProcessWorkers

    def gather(self, workers: int) -> None:
        """Each worker counts its own steps."""
        self._workers = workers

    def startup(self, feed: Any, seed: int) -> None:
        """Make the module, check that it takes the data, and lay it out in memory that workers share."""
        data = self._feed = self._data(feed)
        data.parcel()  # before anything is opened that could not be sent
        if self.facts is None:
            self.facts = data.facts
        if self.schema is None:
            self.schema = dict(data.schema)
        check_targets(self.loss, data)
        module = self._made(seed)
        if self._layout is None:
            self._layout = lay_out(module)  # refuses what cannot be shared
        if len(data):
            self._rehearse(module, data)
        self._allocate()
        assert self._segments is not None
        self._recipe = pack_recipe(Recipe(self._given, self.loss, self.rule, self.facts), self._segments[0])

    def visitor(self, worker: int, config: Any) -> tuple[Any, tuple[Any, ...]]:
        """For the backend: what a worker makes in its process, and from what."""
        return Visitor, (worker, self.equipment(config))

    def equipment(self, config: TrainConfig) -> Equipment:
        """All that a worker is given."""
        assert self._feed is not None
        assert self._recipe is not None
        assert self._segments is not None
        return Equipment(
            self._recipe, self._feed.parcel(), *self._segments, self._laid_out, self._size(self._feed), config.seed,
            self._workers, config.trace, self.compile,
        )  # fmt: skip

    @property
    def source(self) -> Any:
        """The samples of this run."""
        assert self._feed is not None
        return self._feed.source

    def finish(self, feed: Any) -> None:
        """What was for the workers goes; the module and its weights stay."""
        self._recipe = self._feed = None

    def remarks(self, feed: Any) -> list[str]:
        """What the user should know of how a module sees this data."""
        return list(self._data(feed).remarks)

    def started_notes(self) -> list[str]:
        """What to know of the data, and of this module under several workers."""
        changing = [name for name, _ in self.module.named_buffers()]
        found = self.remarks(self._feed)
        if self._threaded:
            why = "they were asked for" if _has_gil() else "this Python runs without the GIL"
            found.append(f"Workers are threads, not processes: {why}. Random numbers (dropout) depend on who is first.")
        if changing and self._workers > 1:
            more = f" and {len(changing) - _SHOWN} more" if len(changing) > _SHOWN else ""
            found.append(
                f"Workers share the buffers of the module and write them without locks: {', '.join(changing[:_SHOWN])}"
                f"{more}."
            )
        return found

    def visits(self, feed: Any) -> int:
        """Batches of an epoch."""
        data = self._data(feed)
        return -(-len(data) // self._size(data))

    def epoch_samples(self, feed: Any) -> int:
        """Samples of an epoch."""
        return len(self._data(feed))

    def units(self, feed: Any) -> int:
        """As samples."""
        return self.epoch_samples(feed)

    def tables(self) -> Mapping[str, Table]:
        """Each segment is as one row: nothing of it is private to a worker."""
        return {name: Table(1, array.size) for name, array in self.weights._asdict().items()}

    # -- data ---------------------------------------------------------------------------------------------------

    def feed_from(self, data: Any, like: Any = None) -> Any:
        """What there is to train on; a path is opened as a feed."""
        if isinstance(data, str | PathLike):
            from hogwild.feeds.open import open_feed

            return open_feed([str(data)], self.feed_config, schema=like.schema if like is not None else self.schema)
        if isinstance(data, tuple) and len(data) == 2 and hasattr(data[0], "tocsr"):
            from hogwild.feeds.memory import feed_of

            return feed_of(*data)
        return data if isinstance(data, Feed) else self._data(data)

    def check_fit(self, feed: Any) -> None:
        """Raise InputError unless a feed has the features of training."""
        if isinstance(feed, Feed) and self.schema is not None:
            why = misfit(feed, self.schema)
            if why:
                raise InputError(f"{feed.source} does not fit the module: {why}; give open_feed its schema.")
        check_targets(self.loss, self._data(feed))

    def _data(self, feed: Any) -> TensorFeed:
        if isinstance(feed, TensorFeed):
            return feed
        for known, data in self._feeds:
            if known is feed:
                return data
        features = self.facts.features if self.facts else 0
        made = tensor_feed(feed, takes_classes(self.loss), features)
        self._feeds = [*self._feeds[-2:], (feed, made)]
        return made

    def _size(self, data: TensorFeed) -> int:
        return data.size or self.batch

    # -- the module and its memory ------------------------------------------------------------------------------

    def _made(self, seed: int | None = None) -> nn.Module:
        if self._module is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1 if seed is None else seed)
                self._module = Recipe(self._given, None, self.rule, self.facts or DataFacts()).module()
        return self._module

    def _rehearse(self, module: nn.Module, data: TensorFeed) -> None:
        """One batch here, without a gradient: what does not fit is said before any worker starts."""
        rows = rows_of(0, self._size(data), len(data), 0)
        batch = data.source.batch(rows)
        self._parts = len(batch) if isinstance(batch, list | tuple) else 0
        with _evaluating(module):
            loss_of(module, self.loss, batch)

    @property
    def _laid_out(self) -> Layout:
        if self._layout is None:
            self._layout = lay_out(self._made())
        return self._layout

    def _allocate(self) -> State:
        """Memory for the module and for what the optimizer remembers, with a row of counts for each worker."""
        layout, slots, workers = self._laid_out, self.rule.slots, self._workers
        size = state_size(layout, slots, workers)
        if self._segments is None:
            check_memory(
                layout.size + size, f"{self._called} with {self._rule_name} needs, in memory that workers share,",
                "use a smaller module, or an optimizer that remembers less (sgd).",
            )  # fmt: skip
            values, state = Segment(layout.size), Segment(size)
            bind(self._made(), layout, values.bytes, copy=True)
            self._segments = values, state
            self._counted = workers
        elif self._counted != workers:
            before, state = self._state(), Segment(size)
            after = state_in(state.bytes, layout, slots, workers)
            after.counts[0] = before.counts.sum(axis=0)
            for new, old in zip(after.slots(layout), before.slots(layout), strict=True):
                for one, other in zip(new[1], old[1], strict=True):
                    one.copy_(other)
            self._segments, self._counted = (self._segments[0], state), workers
        self.weights = ModuleWeights(*(segment.cells for segment in self._segments))
        return self._state()

    def _state(self) -> State:
        assert self._segments is not None
        return state_in(self._segments[1].bytes, self._laid_out, self.rule.slots, self._counted)

    def watchable(self) -> Mapping[str, Any]:
        """Parameters and buffers by their names in the module, and by `module.NAME` (a name may begin with a digit)."""
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        arrays = {name: tensor.detach().numpy() for name, tensor in named.items()}
        plain = {name: array for name, array in arrays.items() if not name[0].isdigit()}
        return {**plain, **{f"module.{name}": array for name, array in arrays.items()}}

    # -- what it says of data -----------------------------------------------------------------------------------

    def evaluate(self, feed: Any, threads: int = 1) -> Metrics:
        """The mean loss, the accuracy where the loss is one of classes, and the user's metrics."""
        data = self._data(feed)
        right = None if self.metrics else right_of(self.loss)

        def look(module: nn.Module, rows: int, batch: Any) -> tuple[float, tuple[int, int], Any]:
            if self.loss is None:
                return rows * float(loss_of(module, None, batch)), (0, 0), None
            inputs, named, target = split(batch)
            output = module(*inputs, **named)
            loss = rows * float(self.loss(output, target))
            return loss, right(output, target) if right else (0, 0), (output, target) if self.metrics else None

        seen = self._over_batches(data, threads, look)
        found = {"loss": sum(loss for loss, _, _ in seen) / len(data) if len(data) else math.nan}
        if counted := sum(count for _, (_, count), _ in seen):
            found["accuracy"] = sum(hits for _, (hits, _), _ in seen) / counted
        if self.metrics and self.loss is not None and seen:
            outputs, targets = (_joined([both[k] for _, _, both in seen], "metrics") for k in (0, 1))
            found |= {name: float(value) for name, value in self.metrics(outputs, targets).items()}
        return found

    def predict(self, feed: Any, threads: int = 1) -> npt.NDArray[Any]:
        """The outputs of the module, a row a sample; data as for training, or (inputs, …) without targets."""

        def look(module: nn.Module, rows: int, batch: Any) -> Any:
            alone = isinstance(batch, list | tuple) and 0 < len(batch) < self._parts
            inputs, named, _ = (tuple(batch), {}, None) if alone else split(batch)
            return module(*inputs, **named)

        found = self._over_batches(self._data(feed), threads, look)
        return _joined(found, "predict").numpy() if found else np.zeros(0, np.float32)

    def _over_batches(self, data: TensorFeed, threads: int, look: Callable[[nn.Module, int, Any], Any]) -> list[Any]:
        """What there is to see in each batch, in order; each thread has a module of its own over the same weights."""
        size, reading = self._size(data), threading.Lock()
        visits = -(-len(data) // size)
        found: list[Any] = [None] * visits
        modules = [self.module, *_twins(self.module, min(threads, visits) - 1)]
        spare = iter(modules)

        def work(first: int, last: int) -> None:
            with reading:
                own = next(spare)
            with _evaluating(own) as module:
                for visit in range(first, last):
                    rows = rows_of(visit, size, len(data), 0)
                    with reading:  # a user's dataset may hold an open file
                        batch = data.source.batch(rows)
                    found[visit] = look(module, len(rows), batch)

        before = torch.get_num_threads()
        torch.set_num_threads(max(1, threads // len(modules)))
        try:
            in_parts(visits, len(modules), work)
        finally:
            torch.set_num_threads(before)
        return found

    # -- saving -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of the weights, as PyTorch names them."""
        return {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def options(self) -> dict[str, Any]:
        """What the optimizer is, and what is known of the data. The module is code, which no model holds."""
        facts = {} if self.facts is None else {"facts": self.facts._asdict()}
        rule = {"optimizer": self._rule_name, "constants": dict(self.rule.constants)}
        return {"made_by": self._called, **rule, "samples": self.batch, **facts}

    def recall(self, options: Mapping[str, Any]) -> None:
        """The sizes by which the module of a model was made."""
        facts = options.get("facts")
        if self.facts is None and isinstance(facts, Mapping) and set(facts) == set(DataFacts._fields):
            names = {name: tuple(map(str, facts[name])) for name in ("slots", "dense", "labels")}
            self.facts = DataFacts(int(facts["features"]), **names)

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """The `state_dict` of the module; with `state` what the optimizer remembers of each parameter too."""
        if self._module is None:
            raise ConfigError("there is no module yet; train it, or load one.")
        found = {name: tensor.detach().contiguous().numpy() for name, tensor in self.module.state_dict().items()}
        if state and self._segments is not None:
            remembered = self._state()
            found[f"{_STATE}steps"] = remembered.counts.sum(axis=0)
            for place, slots in remembered.slots(self._laid_out):
                found |= {f"{_STATE}{place.name}/{k}": slot.numpy() for k, slot in enumerate(slots)}
        return found

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a `state_dict`, and what an optimizer remembered if it is there."""
        module = self._made()
        mine = {name: array for name, array in arrays.items() if not name.startswith(_STATE)}
        known = module.state_dict()
        if unlike := sorted(set(mine) ^ set(known)):
            raise ModelError(f"the module has other parameters than the model: {listed(unlike[:_SHOWN])}.")
        for name, tensor in known.items():
            if tuple(mine[name].shape) != tuple(tensor.shape):
                raise ModelError(f"{name} is {mine[name].shape}, in the module {tuple(tensor.shape)}.")
        module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in mine.items()})
        if f"{_STATE}steps" in arrays:
            self._restore_state(arrays)

    def _restore_state(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        state = self._allocate()
        state.counts[:] = 0
        state.counts[0] = arrays[f"{_STATE}steps"]
        for place, slots in state.slots(self._laid_out):
            for k, slot in enumerate(slots):
                slot.copy_(torch.from_numpy(np.array(arrays[f"{_STATE}{place.name}/{k}"])))

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: no memory that is shared, and no data."""
        found = dict(super().__getstate__())
        found |= {"_segments": None, "_recipe": None, "_feed": None, "_feeds": [], "weights": None, "_layout": None}
        found["_remembered"] = self.arrays(state=True) if self._segments is not None else None
        return found

    def __setstate__(self, state: dict[str, Any]) -> None:
        remembered = state.pop("_remembered")
        self.__dict__.update(state)
        if remembered is not None:
            self.restore(remembered)


class ModuleTask:
    """The main program of `hogwild.async_executor` for a module: its loss, and all else that TorchProgram takes.

    Examples
    --------
    >>> import torch, hogwild
    >>> from hogwild.pytorch import ModuleTask
    >>> task = ModuleTask(torch.nn.MSELoss(), optimizer="sgd", batch=20)
    >>> task.program(torch.nn.Linear(2, 1))
    <TorchProgram of Linear with sgd: 3 numbers>
    """

    def __init__(self, loss: Callable[..., Tensor] | None = None, **options: Any) -> None:
        self._loss, self._options = loss, options

    def program(self, startup_program: nn.Module | Callable[..., nn.Module]) -> TorchProgram:
        """The program that trains this module, or what this function makes."""
        return TorchProgram(startup_program, self._loss, **self._options)

    def result(self, program: TorchProgram) -> nn.Module:
        """The module."""
        return program.module


def _has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def _joined(parts: list[Tensor], wanted: str) -> Tensor:
    if len({part.shape[1:] for part in parts}) > 1:
        raise ConfigError(f"outputs of batches differ in shape, and {wanted} puts them together; fill them up alike.")
    return torch.cat(parts)


def _twins(module: nn.Module, count: int) -> list[nn.Module]:
    """Copies of a module with the same tensors; none where it cannot be copied."""
    known = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    try:
        return [copy.deepcopy(module, dict(known)) for _ in range(count)]
    except Exception:
        return []


class _evaluating:  # noqa: N801
    """A module that predicts, without gradients; afterwards it is as it was."""

    def __init__(self, module: nn.Module) -> None:
        self._module, self._modes = module, [(part, part.training) for part in module.modules()]
        self._quiet = torch.no_grad()

    def __enter__(self) -> nn.Module:
        self._quiet.__enter__()
        return self._module.eval()

    def __exit__(self, *problem: Any) -> None:
        self._quiet.__exit__(*problem)
        for part, mode in self._modes:
            part.training = mode
