"""Code that is only ever linked into other code, and so is not made ready for use by itself.

Numba optimises every function and turns it into machine code, with all that it calls, before the function that calls it
goes through the same: a kernel of six levels is optimised six times. The outermost time is enough: it takes half of the
time and gives the same speed.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_KNOWN = {(0, 68)}  # versions of Numba whose inner works are as supposed here; with others, nothing is left out
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


class _Drafting(Compiler):
    """Numba's own compiler, with another kind of library."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        if library is None:
            library = _Draft(targetctx.codegen(), "draft")
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *rest)


def draft_options() -> dict[str, Any]:
    """What to tell Numba of a function that Python never calls: no code for such calls, and a draft will do."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return {**options, "pipeline_class": _Drafting} if nb.version_info[:2] in _KNOWN else options


__all__ = ["draft_options"]
