"""Compiled code: the only folder that imports numba."""

from hogwild.kernels.forking import hold_forks

hold_forks()
