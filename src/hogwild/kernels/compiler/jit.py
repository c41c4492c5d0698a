"""One decorator for all kernels, with a cache on disk that cannot go stale, and one way to choose code by type."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CellType, FunctionType, MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, TypeVar, cast

import numba as nb
import numpy as np
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from hogwild.kernels.compiler.codecache import SAFE_MATH, KernelCache, code_cache
from hogwild.kernels.compiler.pipelines import draft_options, loop_options

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": SAFE_MATH, "error_model": "numpy"}
_UNCOUNTED = {**OPTIONS, "_nrt": False}
_DRAFT, _LOOP = draft_options(), loop_options()


def kernel(fn: F) -> F:
    """Compile a module-level function of this package: no GIL, cached on disk, no reference counts.

    Counting references costs two locked instructions an array at every call that is not inlined: half of the time of a
    visit. Without it a kernel cannot make an array, nor return one; see `allocating`.
    Not for functions that take a task, loss, rule or penalty: those may be a user's, see `inner` and `open_kernel`.
    """
    return _compile(fn, _UNCOUNTED)


def loop(fn: F) -> F:
    """As `kernel`, for what Python calls once for many visits, with types of all kinds: sooner compiled, entered later.

    A call takes some microseconds longer: nothing for a span, much for a prediction.
    """
    return _compile(fn, {**_UNCOUNTED, **_LOOP})


def allocating(fn: F) -> F:
    """As `kernel`, for functions that make arrays; not for anything that runs once a visit."""
    return _compile(fn, OPTIONS)


def exact(fn: F) -> F:
    """As `kernel`, with floats rounded as written: for reading numbers, where the last bit counts."""
    return _compile(fn, {**OPTIONS, "fastmath": False})


def _compile(fn: F, options: dict[str, Any]) -> F:
    if nb.config.DISABLE_JIT:
        return fn
    directory = code_cache()
    if directory is None:
        return nb.njit(fn, **options)
    compiled = nb.njit(fn, **{**options, "no_cfunc_wrapper": True})
    compiled._cache = KernelCache(fn, directory)
    return compiled


def fresh(fn: F) -> F:
    """Compile without a cache entry of its own: for code that takes types which may be defined outside the package.

    Inside a cached kernel it becomes part of that kernel; for a user's task it is compiled anew in every process, so
    that the user's edits are never met by old machine code.
    """
    if nb.config.DISABLE_JIT:
        return fn
    return nb.njit(fn, **OPTIONS, **_LOOP)


@functools.lru_cache(maxsize=256)
def checked(fn: Callable[..., Any]) -> Callable[..., Any]:
    """As `fresh`, for a user's function: an index out of bounds is an IndexError, in compiled functions of the user's
    that it calls too."""
    if nb.config.DISABLE_JIT:
        return fn
    return nb.njit(_changed(fn, checked), **OPTIONS, boundscheck=True)


def spelled_out(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function as plain Python, with the compiled functions of the user's that it calls: errors have lines."""
    return _changed(fn, spelled_out)


_LITTLE = 1 << 15  # bytes, entries or cells that the interpreter goes through before a compiler would be ready
_DONE: Counter[Any] = Counter()  # of them, what it has gone through with each kernel


def ready(compiled: Any, work: int) -> Any:
    """A kernel over bytes and whole numbers; for little work, and where no machine code of it is at hand, the Python
    that it is written in, which gives the same: a cold machine answers a few rows before it could have compiled.

    work: how many bytes, entries or cells it goes through.
    """
    _DONE[compiled] += work
    if _DONE[compiled] > _LITTLE or _AHEAD or nb.config.DISABLE_JIT or compiled.overloads or _is_kept(compiled):
        return compiled
    return in_python(compiled)


_AHEAD: list[bool] = []


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Compile whatever is called meanwhile, however little there is to do: for later."""
    _AHEAD.append(True)
    try:
        yield
    finally:
        _AHEAD.pop()


def _is_kept(compiled: Any) -> bool:
    return isinstance(compiled._cache, KernelCache) and compiled._cache.is_kept


@functools.cache
def in_python(compiled: Any) -> Any:
    """A kernel, or a part of one, as the Python that it is written in: for what is not worth a compiler."""
    if nb.config.DISABLE_JIT:
        return compiled
    return cast(Callable[..., Any], np.errstate(over="ignore")(_written_out(compiled.py_func)))


@functools.cache
def _written_out(source: Any) -> Any:
    if hasattr(source, "twin"):  # an instruction
        return source.twin
    if hasattr(source, "otherwise"):  # code chosen by the type of its first argument
        return lambda first, *rest: _written_out(source.find(type(first)))(first, *rest)
    if isinstance(source, ModuleType):
        members = {name: _written_out(_source_of(value)) for name, value in vars(source).items() if _has_code(value)}
        return SimpleNamespace(**{**vars(source), **members})
    return _changed(source, _written_out, lambda value: _has_code(value) or _is_module(value))


def _has_code(value: Any) -> bool:
    return isinstance(value, CPUDispatcher) or hasattr(value, "otherwise") or hasattr(value, "twin")


def _is_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith("hogwild.kernels.")


_CHANGING: set[Any] = set()


def _is_helper(value: Any) -> bool:
    return isinstance(value, CPUDispatcher) and not _ours(value.py_func)


def _changed(fn: Any, change: Callable[[Any], Any], concerns: Callable[[Any], bool] = _is_helper) -> Any:
    """A copy of a function, with what becomes of them in place of the compiled functions that it concerns: those from
    outside the package."""
    if fn in _CHANGING:  # it calls itself
        return fn
    _CHANGING.add(fn)
    try:
        found = {name: fn.__globals__.get(name) for name in fn.__code__.co_names}
        changed = {name: change(_source_of(value)) for name, value in found.items() if concerns(value)}
        cells = tuple(
            CellType(change(_source_of(cell.cell_contents))) if concerns(cell.cell_contents) else cell
            for cell in fn.__closure__ or ()
        )
        if not changed and cells == (fn.__closure__ or ()):
            return fn
        return FunctionType(fn.__code__, {**fn.__globals__, **changed}, fn.__name__, fn.__defaults__, cells)
    finally:
        _CHANGING.discard(fn)


def _source_of(value: Any) -> Any:
    return getattr(value, "py_func", value)


def inner(fn: F) -> F:
    """As `kernel`, for parts of kernels that take types which may be defined outside the package.

    They have no cache of their own: they are cached with the kernel that calls them, or compiled anew with it.
    """
    if nb.config.DISABLE_JIT:
        return fn
    drafted = nb.njit(fn, **_UNCOUNTED, **_DRAFT)
    drafted.__class__ = _Inner
    return cast(F, drafted)


def inlined(fn: F) -> F:
    """As `inner`, always made part of what calls it: for what would be a call of its own, and not worth one."""
    return fn if nb.config.DISABLE_JIT else nb.njit(fn, **_UNCOUNTED, forceinline=True)


class _Inner(CPUDispatcher):
    """A draft for kernels, which is not code that Python could call: for that, tests have it compiled in full."""

    _whole: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._whole is None:
            self._whole = nb.njit(self.py_func, **_UNCOUNTED, **_LOOP)
        return self._whole(*arguments)


def open_kernel(fn: F) -> F:
    """As `kernel`, for what Python calls with types that may be defined outside the package: with those, `fresh`."""
    cached, anew = kernel(fn), fresh(fn)

    @functools.wraps(fn)
    def call(*arguments: Any) -> Any:
        return (cached if in_package(*arguments) else anew)(*arguments)

    call.cached = cached  # for `entry`

    return cast(F, call)


def entry(compiled: Any, *arguments: Any) -> Any:
    """The machine code of a kernel for the types of these arguments, to be called with no others.

    A plain call looks at the type of every part of every bundle: 15 microseconds, against one of this.
    """
    if nb.config.DISABLE_JIT:
        return np.errstate(over="ignore")(compiled)  # hashes wrap around; only the interpreter would say so
    compiled = getattr(compiled, "cached", compiled)  # of an open kernel, the one for types of the package
    return compiled.compile(tuple(nb.typeof(argument) for argument in arguments))


class Choice:
    """Code chosen by the type of the first argument, at compile time.

    `gradient = Choice("gradient", stub)`; `@gradient.of(MyTask)` registers a plain Python function;
    `gradient(task, ...)` inside a kernel compiles to a direct, inlinable call of it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.table: dict[type, Callable[..., Any]] = {}
        self.default: Callable[..., Any] | None = None

    def find(self, tag: type | None) -> Callable[..., Any] | None:
        """The function registered for a type or, failing that, for a base of it."""
        for base in getattr(tag, "__mro__", ()):
            if base in self.table:
                return self.table[base]
        return self.default

    def of(self, *tags: type) -> Callable[[F], F]:
        """Register the function below for the given types."""

        def keep(fn: F) -> F:
            for tag in tags:
                if self.table.get(tag, fn) is not fn:
                    _TWINS[tag] = type(tag.__name__, (tag,), {"__module__": tag.__module__, "__slots__": ()})
                self.table[tag] = fn
            if not _ours(fn):
                _FOREIGN.update(tags)
            return fn

        return keep

    def otherwise(self, fn: Callable[..., Any]) -> None:
        """Use this function for types that have none of their own."""
        self.default = fn


def inlined_choice(stub: Callable[..., Any]) -> Any:
    """As `choice`, for what the compiler would make a call of its own, and then know none of its constants."""
    return choice(stub, {"forceinline": True})


def choice(stub: Callable[..., Any], options: Mapping[str, bool] = MappingProxyType({})) -> Any:
    """Turn a stub into a function chosen by the type of its first argument.

    The stub's body runs only when the JIT is off, and when nothing is registered for the type.
    options: of the compiler.
    """
    chosen = Choice(stub.__name__)

    @functools.wraps(stub)
    def interpreted(first: Any, *rest: Any) -> Any:
        found = chosen.find(type(first))
        if found is None:
            raise TypeError(f"nothing is registered as `{chosen.name}` for {type(first).__name__}")
        return found(first, *rest)

    interpreted.of = chosen.of
    interpreted.find = chosen.find
    interpreted.otherwise = chosen.otherwise

    parameters = stub.__code__.co_varnames[: stub.__code__.co_argcount]
    source = f"lambda {', '.join(parameters)}: _find({parameters[0]})"

    def _find(first: Any) -> Callable[..., Any] | None:
        return chosen.find(getattr(first, "instance_class", None) or getattr(first, "key", None))

    typed = eval(source, {"_find": _find})  # numba wants the very parameter names of the stub
    overload(interpreted, jit_options=cast(Any, {**OPTIONS, **_DRAFT, **options}), strict=False)(typed)
    return interpreted


_FOREIGN: set[type] = set()  # types, of this package or not, with functions from outside of it
_TWINS: dict[type, type] = {}  # types that have had other functions: an equal one that nothing has been compiled for


def renewed(task: Any) -> Any:
    """The task, of a type whose code is what is registered now: for its own type, machine code of what was registered
    before may be there."""
    twin = _TWINS.get(type(task))
    return task if twin is None else tuple.__new__(twin, task)


def _ours(defined: Any) -> bool:
    return str(defined.__module__).startswith("hogwild.")


def in_package(*values: Any) -> bool:
    """Whether all types inside the given (nested) tuples, and their code, are of this package: then it is cached."""
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields") and not (_ours(type(value)) and _FOREIGN.isdisjoint(type(value).__mro__)):
                return False
            if not in_package(*value):
                return False
    return True


_CAUSE = re.compile(
    r"(Unknown attribute .*|Untyped global name .*|Cannot unify .*|Cannot determine Numba type .*|NameError: .*|"
    r"No implementation of function (?!Function\(<function (?:take|free_visit|fused|gradient|apply|deliver)).*|"
    r"Use of unsupported .*|Cannot resolve setitem: .*|missing a required argument.*|[Ll]ocal variable .*)"
)
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def explain(task: Any, error: NumbaError) -> str:
    """One sentence on why a task cannot be compiled, from the innermost cause in Numba's report."""
    text = str(error)
    causes = list(_CAUSE.finditer(text))
    name = type(task).__name__
    if not causes:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"{name} cannot be compiled: {lines[-1] if lines else error}."
    cause = causes[-1]
    place = _PLACE.search(text, cause.end())
    where = f" ({Path(place[1]).name}, line {place[2]})" if place else ""
    return f"{name} cannot be compiled: {cause[1].strip().rstrip('.')}{where}."


__all__ = [
    "OPTIONS", "NumbaError", "allocating", "checked", "choice", "compiling_ahead", "entry", "exact", "explain", "fresh",
    "in_package", "in_python", "inlined", "inlined_choice", "inner", "kernel", "loop", "open_kernel", "ready",
    "renewed", "spelled_out",
]  # fmt: skip
