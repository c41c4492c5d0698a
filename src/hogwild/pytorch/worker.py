"""A worker of a module, in a process of its own: batches, gradients, and steps on memory that all workers share.

What is imported here is imported by every worker when it starts: PyTorch, and few of our kernels.
"""

from __future__ import annotations

import inspect
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hogwild.errors import ConfigError, DivergedError, HogwildError, shorten
from hogwild.pytorch.bags import use_our_bags
from hogwild.pytorch.data import DataFacts, rows_of, split
from hogwild.pytorch.layout import Buffers, Layout, bind, state_in
from hogwild.pytorch.memory import Parcel, Segment, pack, view_of
from hogwild.pytorch.rules import Rule, sum_rows
from hogwild.pytorch.steps import steps_of

_WORD = (1 << 64) - 1
_LOOK_EVERY = 16  # visits of a worker, of which one is computed again when it is written, to see how wrong it is


class Recipe(NamedTuple):
    """What a module is made from, what its loss is, and how it is stepped; `loss` None: the module returns it."""

    make: Any
    loss: Any
    rule: Rule
    facts: DataFacts

    def module(self) -> nn.Module:
        """The module, made by the factory if it is one."""
        if isinstance(self.make, nn.Module):
            return self.make
        made = self.make(self.facts) if _wants_facts(self.make) else self.make()
        if not isinstance(made, nn.Module):
            raise ConfigError(f"the factory returned {type(made).__name__}; it must return a torch.nn.Module.")
        return made


class Equipment(NamedTuple):
    """All that a worker is given: the recipe and the samples, and the memory in which everything lies."""

    recipe: Parcel
    samples: Parcel
    values: Segment
    state: Segment
    layout: Layout
    batch: int
    seed: int
    workers: int
    traced: bool
    compiled: bool


class Elsewhere(NamedTuple):
    """Copies of both segments on a device, and samples as batches there."""

    values: Tensor
    state: Tensor
    source: Any


class Visitor:
    """Makes the visits of one worker; a visit is a batch."""

    def __init__(self, worker: int, given: Equipment, there: Elsewhere | None = None) -> None:
        """there: copies of the memory on a device, for a worker that is a stream of it."""
        self._threads = torch.get_num_threads()
        if there is None:
            torch.set_num_threads(1)
        memory = given.values.bytes if there is None else there.values
        recipe: Recipe = _opened(given.recipe, _Shared(given.values).load)
        self._module, self._loss, rule = recipe.module(), recipe.loss, recipe.rule
        bind(self._module, given.layout, memory)
        if there is None:
            use_our_bags(self._module, given.compiled)
        self._module.train()
        self._called = torch.compile(self._module) if given.compiled else self._module
        self._source = _opened(given.samples) if there is None else there.source
        self._everywhere = there is not None
        self._size, self._seed, self._worker = given.batch, given.seed, worker
        held = None if there is None else there.state
        state = state_in(given.state.bytes, given.layout, rule.slots, given.workers, held)
        self._counts, self._memory = state.counts, [slots for _, slots in state.slots(given.layout)]
        self._joined = given.layout.joined
        self._flat = view_of(memory, 0, (given.layout.flat,), (1,), torch.float32), state.flat
        self._grad = torch.zeros(given.layout.flat, device=self._flat[0].device)
        if isinstance(self._loss, nn.Module):
            self._loss.to(self._grad.device)
        named = dict(self._module.named_parameters())
        self._parameters = [named[place.name] for place in given.layout.trained]
        self._values = [place.view(memory) for place in given.layout.trained]
        plain = [values.is_contiguous() and values.dtype is torch.float32 for values in self._values]
        self._all_at_once = steps_of(rule) if there is None else rule
        self._rules = [self._all_at_once if each else rule for each in plain]
        self._buffers = Buffers(self._module)
        self._seen = Versions(self._counts, worker) if given.traced else None

    # -- what is asked from the other process -------------------------------------------------------------------

    def run(self, visits: Any, key: int, rates: list[float], positions: Any, loss: float) -> float:
        """Some visits, one after the other; the new sum of losses."""
        for visit, rate, position in zip(visits.tolist(), rates, positions.tolist(), strict=True):
            loss += self.gradient(visit, key, position)
            self.apply(rate)
        return loss

    def gradient(self, visit: int, key: int, position: int) -> float:
        """The loss of a batch; its gradient is kept."""
        loss = self.loss(visit, key, position)
        value = float(loss.detach())
        if not math.isfinite(value):
            self._complain(value, visit)
        self.backward(loss)
        return value

    def loss(self, visit: int, key: int, position: int) -> Tensor:
        """The loss of a batch."""
        seed_visit(self._seed, position, self._everywhere)
        batch = self._source.batch(rows_of(visit, self._size, len(self._source), key))
        for parameter in self._parameters:
            parameter.grad = None
        if self._seen is not None:
            self._seen.read(batch, position)
        return loss_of(self._called, self._loss, batch)  # RACE(stale read): docs/races.md

    def backward(self, loss: Tensor) -> None:
        """Keep the gradient of a loss."""
        loss.backward()
        self._buffers.keep()

    def apply(self, rate: float) -> None:
        """Step the parameters by the gradient that was kept."""
        grads = [parameter.grad for parameter in self._parameters]
        there = np.array([grad is not None for grad in grads])
        if self._seen is not None:
            self._seen.write(self._how_wrong)
        self._counts[self._worker][there] += 1
        steps = self._counts.sum(axis=0).tolist()
        first = 0
        if self._joined and self._is_even(grads, steps):
            torch.cat([grad.reshape(-1) for grad in grads[: self._joined]], out=self._grad)
            self._all_at_once.step(self._flat[0], self._grad, self._flat[1], rate, steps[0])
            first = self._joined
        for number in range(first, len(grads)):
            if grads[number] is not None:
                self._step(number, grads[number], rate, steps[number])
        if self._seen is not None:
            self._seen.end()

    def take(self) -> list[Any]:
        """The gradient that was kept: an array a parameter, or rows and their gradients, or None."""
        return [_array(parameter.grad) for parameter in self._parameters]

    def apply_sum(self, total: list[Any], rate: float) -> None:
        """Step the parameters by a sum of gradients."""
        for parameter, part in zip(self._parameters, total, strict=True):
            parameter.grad = _gradient(part, parameter)
        self.apply(rate)

    def trace(self) -> dict[str, Any] | None:
        """What was counted of the gradients since the last time."""
        return self._seen.take() if self._seen is not None else None

    def end(self) -> None:
        """No more visits; for a worker that is a thread, PyTorch has its threads again."""
        torch.set_num_threads(self._threads)

    # -----------------------------------------------------------------------------------------------------------

    def _how_wrong(self, batch: Any, position: int) -> float:
        """|s - g| / |g| of the gradient s that was kept from g, which the same batch has on the weights of now."""
        kept = [parameter.grad for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None
        seed_visit(self._seed, position)
        with self._buffers.aside():
            loss_of(self._module, self._loss, batch).backward()
        apart = norm = 0.0
        for parameter, mine in zip(self._parameters, kept, strict=True):
            if mine is not None and parameter.grad is not None:
                apart += _square(mine - parameter.grad)
                norm += _square(parameter.grad)
            parameter.grad = mine
        if norm > 0:
            return math.sqrt(apart / norm)
        return math.inf if apart else 0.0

    def _is_even(self, grads: list[Tensor | None], steps: list[int]) -> bool:
        """Whether one step goes over all dense parameters: each has a gradient, and was stepped as often."""
        return all(
            grad is not None and not grad.is_sparse and step == steps[0]
            for grad, step in zip(grads[: self._joined], steps, strict=False)
        )

    def _step(self, number: int, grad: Tensor, rate: float, step: int) -> None:
        values, memory, rule = self._values[number], self._memory[number], self._rules[number]
        if not grad.is_sparse:
            flat = values.is_contiguous()
            parts = [values, grad, *memory]
            values, grad, *slots = (part.reshape(-1) for part in parts) if flat else parts
            rule.step(values, grad, tuple(slots), rate, step)
            return
        rows, cells = sum_rows(grad)
        if len(rows):
            rule.step_rows(values, rows, cells, memory, rate, step)

    def _complain(self, value: float, visit: int) -> None:
        largest = max(float(tensor.abs().max()) for tensor in self._values if tensor.numel())
        raise DivergedError(
            f"the loss became {value} in batch {visit} (largest weight {largest:.4g}). Use a smaller --lr, or check "
            "the data, and what the module computes, for logarithms and roots of 0."
        )


class Versions:
    """How often others stepped parameters while this worker read them, computed a gradient and wrote it."""

    def __init__(self, counts: Any, worker: int) -> None:
        self._counts, self._worker = counts, worker
        self._begin()

    def _others(self) -> Any:
        return self._counts.sum(axis=0) - self._counts[self._worker]

    def read(self, batch: Any, position: int) -> None:
        """Before parameters are read for a batch."""
        self._batch = batch, position
        self._before = self._others()

    def write(self, how_wrong: Callable[[Any, int], float]) -> None:
        """Before they are written; how_wrong: what the gradient of a batch is worth now."""
        if self._looked % _LOOK_EVERY == 0:
            self._sizes.append(how_wrong(*self._batch))
        self._looked += 1
        self._between = self._others()

    def end(self) -> None:
        """After they were written."""
        after = self._others()
        late = int((self._between - self._before).max())
        self._delays[late] += 1
        self._late += late > 0
        self._read += bool((self._between > self._before).any())
        self._written += bool((after > self._between).any())
        self._both += bool((after > self._before).any())

    def take(self) -> dict[str, Any]:
        """The counts so far; from now on from zero."""
        found = {
            "errors": self._both, "read_overwrites": self._read, "write_overwrites": self._written,
            "delayed": self._late, "delays": dict(self._delays), "sizes": self._sizes,
        }  # fmt: skip
        self._begin()
        return found

    def _begin(self) -> None:
        self._delays: Counter[int] = Counter()
        self._sizes: list[float] = []
        self._read = self._written = self._both = self._late = self._looked = 0


def loss_of(module: nn.Module, loss: Any, batch: Any) -> Tensor:
    """The loss of a batch, one number; ConfigError for anything else."""
    if loss is None:
        found = module(**batch) if isinstance(batch, dict) else module(*batch)
    else:
        inputs, named, target = split(batch)
        found = loss(module(*inputs, **named), target)
    if not isinstance(found, Tensor) or found.numel() != 1:
        what = f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise ConfigError(f"the loss is {what}; it must be one number: its mean over the batch (reduction='mean').")
    if torch.is_grad_enabled() and not found.requires_grad:
        raise ConfigError("the loss depends on no parameter of the module (is it computed without a gradient?).")
    return found.reshape(())


def seed_visit(seed: int, position: int, everywhere: bool = False) -> None:
    """Random numbers of a visit (dropout, augmentation) depend on the seed and on its position, and on nothing else.

    everywhere: those that devices draw too.
    """
    mixed = ((seed << 32) ^ position) + 0x9E3779B97F4A7C15 & _WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
    mixed ^= mixed >> 31
    (torch.manual_seed if everywhere else torch.default_generator.manual_seed)(mixed >> 1)
    random.seed(mixed)
    np.random.seed(mixed & 0xFFFFFFFF)


def _opened(parcel: Parcel, load: Any = None) -> Any:
    try:
        return parcel.open(load)
    except (AttributeError, ImportError) as error:
        raise ConfigError(
            f"a worker, which is a process of its own, does not find what it was sent ({shorten(error)}); put classes "
            "and functions into a file that can be imported, not into a notebook or a shell."
        ) from error


def _square(grad: Tensor) -> float:
    """The sum of squares."""
    cells = grad.coalesce()._values() if grad.is_sparse else grad
    return float(cells.double().square().sum())


def _array(grad: Tensor | None) -> Any:
    if grad is None:
        return None
    return (grad._indices()[0].numpy(), grad._values().numpy()) if grad.is_sparse else grad.numpy()


def _gradient(part: Any, parameter: Tensor) -> Tensor | None:
    if part is None:
        return None
    if isinstance(part, tuple):
        rows, cells = (torch.from_numpy(array) for array in part)
        return torch.sparse_coo_tensor(rows[None], cells, tuple(parameter.shape), check_invariants=False)
    return torch.from_numpy(part)


# -- modules whose tensors other processes have already ---------------------------------------------------------------


class _Shared:
    """Tensors in the memory that all workers share, by where they lie: a module is sent without its weights."""

    def __init__(self, values: Segment) -> None:
        self._values = values
        self._made: dict[Any, Tensor] = {}

    def name(self, given: Any) -> Any:
        """Where a tensor lies; None for anything else."""
        if not isinstance(given, Tensor) or given.layout is not torch.strided or given.device.type != "cpu":
            return None
        start = given.data_ptr() - self._values.bytes.ctypes.data
        if not given.numel() or not 0 <= start < len(self._values.bytes):
            return None
        kind = isinstance(given, nn.Parameter), given.requires_grad, id(given)
        return start, tuple(given.shape), tuple(given.stride()), given.dtype, kind

    def load(self, name: Any) -> Tensor:
        """The tensor that lies there; the same one each time that it is the same."""
        if name not in self._made:
            start, shape, stride, dtype, (parameter, requires, _) = name
            found = view_of(self._values.bytes, start, shape, stride, dtype)
            self._made[name] = nn.Parameter(found, requires) if parameter else found
        return self._made[name]


def pack_recipe(recipe: Recipe, values: Segment) -> Parcel:
    """A recipe for workers; ConfigError, with what to do, where it cannot be sent to them."""
    try:
        return pack(recipe, _Shared(values).name)
    except HogwildError:
        raise
    except Exception as error:
        whole = isinstance(recipe.make, nn.Module)
        raise ConfigError(
            f"the {'module' if whole else 'factory'} or its loss cannot be sent to workers, which are processes of "
            f"their own ({type(error).__name__}: {shorten(error)}). Give a function at the top of a module that makes "
            "it: TorchProgram(make_model, …), with no lambda and nothing defined inside another function."
        ) from error


def _wants_facts(factory: Any) -> bool:
    """Whether a factory has a parameter without a default: it is given what is known of the data."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(item.kind in kinds and item.default is item.empty for item in parameters)
