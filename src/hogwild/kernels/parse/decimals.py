"""float32 to decimal text that reads back as the same float32, in few digits: 0.1, not 0.100000001.

Nine significant digits always bring a float32 back. Fewer are tried, one after another, and kept where the number
they stand for surely rounds to the same float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import exact, kernel

WIDEST = 17
"""Bytes that one number takes at the most, as in -0.000012345678 9 without the blank."""
_POWERS = np.array([10.0**k for k in range(56)])
_WHOLE_POWERS = np.array([10**k for k in range(11)], dtype=np.int64)
_DIGITS = 9
_SMALLEST, _LARGEST = -5, 15  # decimal exponents that are written without an e
_SLACK = 2.0**-50             # more than the roundings of float64 here add up to
_MINUS, _PLUS, _POINT, _ZERO, _E = 45, 43, 46, 48, 101


@exact
def write_number(value: Any, out: Any, at: int) -> int:
    """Write a finite float32 from out[at] on; returns the place after it."""
    if value < 0:
        out[at] = _MINUS
        at += 1
    size = abs(np.float64(value))
    if size == 0:
        out[at] = _ZERO
        return at + 1
    exponent: Any = np.int64(np.floor(np.log10(size)))
    whole: Any = np.int64(np.rint(times_power(size, _DIGITS - 1 - exponent)))
    if whole >= _WHOLE_POWERS[_DIGITS]:  # rounded up to the next power of ten, or a logarithm just below it
        exponent += 1
        whole = np.int64(np.rint(times_power(size, _DIGITS - 1 - exponent)))
    elif whole < _WHOLE_POWERS[_DIGITS - 1]:
        exponent -= 1
        whole = np.int64(np.rint(times_power(size, _DIGITS - 1 - exponent)))
    digits = _DIGITS
    while digits > 1:
        fewer = (whole + 5) // 10
        near = times_power(np.float64(fewer), exponent - digits + 2)
        if np.float32(near * (1 - _SLACK)) != np.float32(size) or np.float32(near * (1 + _SLACK)) != np.float32(size):
            break
        whole = fewer
        digits -= 1
    while whole % 10 == 0:
        whole //= 10
        digits -= 1
    if whole >= _WHOLE_POWERS[max(digits, 0)]:  # 99.. became 100..
        digits += 1
        exponent += 1
    return write_digits(whole, digits, exponent, out, at)


@exact
def times_power(value: Any, power: int) -> Any:
    """value * 10^power with one rounding, or two where the power of ten is rounded itself."""
    return value * _POWERS[power] if power >= 0 else value / _POWERS[-power]


@kernel
def write_digits(whole: int, digits: int, exponent: int, out: Any, at: int) -> int:
    """Write d.ddd * 10^exponent, where `whole` is ddddd with that many digits; returns the place after it."""
    if exponent < _SMALLEST or exponent > _LARGEST:
        at = write_fixed(whole, digits, 0, out, at)
        out[at] = _E
        out[at + 1] = _MINUS if exponent < 0 else _PLUS
        power = abs(exponent)
        out[at + 2] = _ZERO + power // 10
        out[at + 3] = _ZERO + power % 10
        return at + 4
    return write_fixed(whole, digits, exponent, out, at)


@kernel
def write_fixed(whole: int, digits: int, exponent: int, out: Any, at: int) -> int:
    """Write the digits with the point where the exponent puts it; returns the place after them."""
    if exponent < 0:
        out[at] = _ZERO
        out[at + 1] = _POINT
        at += 2
        for _ in range(-exponent - 1):
            out[at] = _ZERO
            at += 1
        put(whole, digits, out, at)
        return at + digits
    if digits <= exponent + 1:
        put(whole, digits, out, at)
        at += digits
        for _ in range(exponent + 1 - digits):
            out[at] = _ZERO
            at += 1
        return at
    behind = digits - exponent - 1
    before = whole // _WHOLE_POWERS[behind]
    put(before, exponent + 1, out, at)
    at += exponent + 1
    out[at] = _POINT
    put(whole - before * _WHOLE_POWERS[behind], behind, out, at + 1)
    return at + 1 + behind


@kernel
def put(whole: int, digits: int, out: Any, at: int) -> None:
    """Write exactly that many digits, zeros in front."""
    for k in range(at + digits - 1, at - 1, -1):
        out[k] = _ZERO + whole % 10
        whole //= 10
