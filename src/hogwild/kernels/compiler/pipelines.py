"""Numba's compiler without what costs time and gains nothing.

Code that is only ever linked into other code is a draft, not made ready for use by itself: Numba optimises every
function and turns it into machine code, with all that it calls, before the function that calls it goes through the
same, and a kernel of six levels is optimised six times. The outermost time is enough: it takes half of the time and
gives the same speed.

The code through which Python enters a loop over samples, which takes bundles of arrays apart, runs once a span and is
as long as many a kernel: it is not optimised. That takes a sixth of the time.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_KNOWN = {(0, 68)}  # versions of Numba whose inner works are as supposed here; with others, nothing is left out
_WRAPPER = "wrapper"  # what Numba calls a module that lets Python call a function
_ENVIRONMENT = "_ZN08NumbaEnv"  # a cell that Numba fills, by its name, with what a function needs to raise an error


class _Draft(JITCodeLibrary):
    """Code for linking."""

    def _optimize_final_module(self) -> None:
        return

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._make_cells()
        self._finalized = True

    def _make_cells(self) -> None:
        """The code that this is linked into finds its cells here, as it would in machine code of this library."""
        module, engine = self._final_module, self._codegen._engine
        names = [cell.name for cell in module.global_variables if cell.name.startswith(_ENVIRONMENT)]
        new = [name for name in names if not engine.is_symbol_defined(name)]
        if new:
            cells = llvm.parse_assembly("".join(f'@"{name}" = common global i64 0\n' for name in new))
            cells.triple, cells.data_layout = module.triple, module.data_layout
            self._codegen._add_module(cells)
            engine.finalize_object()

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        self._ensure_finalized()
        return 0


class _Loop(JITCodeLibrary):
    """Code that Python enters seldom."""

    def add_ir_module(self, module: Any) -> None:
        if module.name == _WRAPPER:
            for function in module.functions:
                if not function.is_declaration:
                    function.attributes.discard("alwaysinline")
                    function.attributes.update(("noinline", "optnone"))
        super().add_ir_module(module)


class _Making(Compiler):
    """Numba's own compiler, with another kind of library."""

    kind: type[JITCodeLibrary]

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        if library is None:
            library = self.kind(targetctx.codegen(), self.kind.__name__)
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *rest)


class _MakingDrafts(_Making):
    kind = _Draft


class _MakingLoops(_Making):
    kind = _Loop


def draft_options() -> dict[str, Any]:
    """What to tell Numba of a function that Python never calls: no code for such calls, and a draft will do."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return {**options, "pipeline_class": _MakingDrafts} if nb.version_info[:2] in _KNOWN else options


def loop_options() -> dict[str, Any]:
    """What to tell Numba of a function that Python calls seldom."""
    return {"pipeline_class": _MakingLoops} if nb.version_info[:2] in _KNOWN else {}


__all__ = ["draft_options", "loop_options"]
