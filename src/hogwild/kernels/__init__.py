"""Compiled code: the only folder that imports numba."""
