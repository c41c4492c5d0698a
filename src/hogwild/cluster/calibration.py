"""What a row of an exchange costs on this machine, measured, for what `scaling` computes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.cluster.scaling import Case, Costs
from hogwild.cluster.wire.combining import combine, split
from hogwild.cluster.wire.packing import pack, unpack
from hogwild.config.cluster import Deltas
from hogwild.executor.delta import Delta


class _Held(NamedTuple):
    inputs: Floats


def calibrate(dim: int = 100, rows: int = 4096, deltas: Deltas = "int8") -> Costs:
    """Measure what a row costs on this machine, with what exchanges really call; the best of six times counts."""
    table = Table(4 * rows, Case(1, rows, dim).cells, "ranked")
    tables, random = {"inputs": table}, np.random.default_rng(0)
    held = _Held(random.random((table.rows, table.cells), np.float32))
    delta = Delta(held, tables, {"inputs": []}, lambda name: None)
    some = np.sort(random.permutation(table.rows)[:rows])
    best = dict.fromkeys(("look", "take", "pack", "unpack", "combine", "settle"), float("inf"))

    def timed(name: str, units: int, act: Callable[..., Any], *given: Any) -> Any:
        began = time.perf_counter()
        result = act(*given)
        best[name] = min(best[name], (time.perf_counter() - began) / units)
        return result

    for _ in range(6):
        timed("look", table.rows, delta.take)
        held.inputs[some] += random.random((rows, table.cells), np.float32)
        mine = timed("take", rows, lambda: split(delta.take(1 << 62), 1)[0])
        packet = timed("pack", rows, pack, mine, tables, deltas)
        theirs = timed("unpack", rows, unpack, packet, tables)
        whole = timed("combine", rows, combine, [mine, theirs], tables, "project")
        timed("settle", rows, delta.settle, whole, mine)
    best["take"] = max(best["take"] - best["look"] * table.rows / rows, 0.0)
    return Costs(**{name: cost * 112 / table.cells for name, cost in best.items()})
