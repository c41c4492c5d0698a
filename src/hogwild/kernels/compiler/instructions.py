"""Instructions for kernels: functions that emit code, each with a twin in plain Python for when the compiler is off."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba as nb
from numba.core import cgutils, types
from numba.extending import intrinsic


def instruction(twin: Callable[..., Any], returns: Any = types.void) -> Callable[[Callable[..., Any]], Any]:
    """Make the function below one that kernels call: it emits code that does what `twin` does.

    It gets the builder and the arguments: of an array where its cells begin, of a tuple its parts (in a bundle of the
    same type, if it is one). Integers have 64 bits, floats 32. What it gives is of type `returns`.
    """

    def wrap(emit: Callable[..., Any]) -> Any:
        @functools.wraps(emit)
        def definition(typing: Any, *given: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                found = emit(builder, *map(functools.partial(_inside, context, builder), signature.args, args))
                if isinstance(found, list):
                    return context.make_tuple(builder, returns, found)
                return context.get_dummy_value() if found is None else found

            return returns(*map(_widened, given)), build

        emitted = intrinsic(definition)
        emitted.twin = twin
        return emitted

    return (lambda emit: twin) if nb.config.DISABLE_JIT else wrap


def _widened(kind: Any) -> Any:
    if isinstance(kind, types.Integer):
        return types.int64
    return types.float32 if isinstance(kind, types.Float) else kind


def _inside(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, kind.count)
        return kind.instance_class(*parts) if hasattr(kind, "instance_class") else parts
    return value
