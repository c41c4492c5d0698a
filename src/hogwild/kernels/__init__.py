"""Compiled code: the only folder that imports numba."""

from hogwild.kernels.compiler.forking import hold_forks

hold_forks()
