"""A gradient summed up in registers, and the step of the update rule against it at once: it never goes to memory.

Weights are a strip (strips.py), beside which stands what the rule remembers of them. Several steps are made one after
the other, each with the sum over its own tokens, while weights and memory are near.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.optim.rules import SLOTS, moved
from hogwild.kernels.simd.emit import LONG
from hogwild.kernels.simd.rows8 import CODE as EIGHTS
from hogwild.kernels.simd.rows8 import LANES as EIGHT
from hogwild.kernels.simd.rules8 import Fixes, Vector, spread, spread_rule
from hogwild.kernels.simd.strips import CODE, LANES, STRIP

FIXES = 3  # cells of a step: two factors (see `fixes_of`), its number
_NONE = np.float32(0)


def _step_tile(rule: Any, rows: Any, steps: Any, starts: Any, begin: Any, a: Any, at: Any, b: Any, place: Any, values: Any, one: Any, two: Any, to: Any, fixes: Any, rate: Any, shrink: Any) -> None:  # noqa: E501
    wide = spread_rule(rule)
    slots = len(SLOTS[type(rule)])
    cells = slice(to, to + len(rows) * STRIP)
    for step in range(steps):
        first, last = int(starts[begin + step]), int(starts[begin + step + 1])
        left = a[at + first * len(rows) : at + last * len(rows)].reshape(-1, len(rows))
        gradient = (left.T @ b[place + first * STRIP : place + last * STRIP].reshape(-1, STRIP)).reshape(-1)
        arrays = (values, one, two)[: 1 + slots]
        found = [array[cells].copy() for array in arrays] + [_NONE] * (2 - slots)
        gradient += shrink * found[0]
        own = b[fixes + FIXES * step : fixes + FIXES * step + 2]
        for lane in range(0, len(gradient), EIGHT):
            part = slice(lane, lane + EIGHT)
            old = [x[part] if isinstance(x, np.ndarray) else x for x in found]
            new = moved(wide, *old, gradient[part], rate, Fixes(own))
            for array, value in zip(arrays, new, strict=False):
                array[cells][part] = value


@instruction(_step_tile)
def step_tile(b_: Any, rule: Any, rows: Any, steps: Any, starts: Any, begin: Any, a: Any, at: Any, b: Any, place: Any, values: Any, one: Any, two: Any, to: Any, fixes: Any, rate: Any, shrink: Any) -> None:  # noqa: E501
    """So many steps of some rows of a strip of weights, from `to` on, with what the rule remembers in `one` and `two`.

    The gradient of a step in row r is the sum over the tokens k from starts[begin + step] to before
    starts[begin + step + 1] of a[at + k rows + r] times row k of the strip of b at `place`, and `shrink` times the
    weight; the fixes of the steps stand in b too."""
    parts, slots = STRIP // LANES, len(SLOTS[type(rule)])
    sums = [CODE.make_sums(b_, parts) for _ in rows]
    arrays = (values, one, two)[: 1 + slots]
    wide, (pace, decay) = type(rule)(*spread(b_, rule)), spread(b_, [rate, shrink])
    with cgutils.for_range(b_, steps) as loop:
        step = b_.add(begin, loop.index)
        first, last = (b_.load(b_.gep(starts, [b_.add(step, LONG(k))])) for k in range(2))
        for totals in sums:
            CODE.clear(b_, totals)
        with cgutils.for_range_slice(b_, first, last, LONG(1)) as (token, _):
            row = b_.add(place, b_.mul(token, LONG(STRIP)))
            right = [CODE.load(b_, b, row, part) for part in range(parts)]
            left = b_.add(at, b_.mul(token, LONG(len(rows))))
            for r, totals in enumerate(sums):
                factor = CODE.spread_at(b_, a, b_.add(left, LONG(r)))
                for value, total in zip(right, totals, strict=True):
                    CODE.add_product(b_, factor, value, total)
        own = b_.add(fixes, b_.mul(loop.index, LONG(FIXES)))
        factors = Fixes(spread(b_, [b_.load(b_.gep(b, [b_.add(own, LONG(k))])) for k in range(2)]))
        for r, totals in enumerate(sums):
            for lane, value in enumerate(half for total in totals for half in _eights(b_, b_.load(total))):
                cell = b_.add(to, LONG(r * STRIP + lane * EIGHT))
                # RACE(stale read): docs/races.md
                found: list[Any] = [Vector.load(b_, array, cell) for array in arrays]
                gradient = Vector(b_, value) + decay * found[0]
                new = moved(wide, *found, *[_NONE] * (2 - slots), gradient, pace, factors)
                for array, number in zip(reversed(arrays), reversed(new[: 1 + slots]), strict=True):
                    number.store(array, cell)  # RACE(lost update): docs/races.md


def _eights(b_: Any, vector: Any) -> list[Any]:
    """A vector as such of eight numbers."""
    if LANES == EIGHT:
        return [vector]
    return [b_.shuffle_vector(vector, vector, EIGHTS.places(range(k, k + EIGHT))) for k in range(0, LANES, EIGHT)]
