"""Numbers from bytes, eight digits at a time.

A word is eight bytes of text in one integer. Its digits are found and added up by arithmetic on the whole word, with
no branch on their number: in real files that is what a loop over bytes mispredicts.

Text is given by addresses (see kernels/compiler/bytes.py). `end` is the address after the text, whose last byte must
be a newline: it stops every number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.bytes import byte_at, load_word, trailing_zeros
from hogwild.kernels.compiler.jit import exact, kernel

GOOD, MALFORMED, AMBIGUOUS = 0, 1, 2

_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_ZEROS = np.uint64(0x3030303030303030)
_PAST_NINE = np.uint64(0x7676767676767676)  # added to a byte of 10 or more, sets its highest bit
_HIGH = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x000000FF000000FF)
_UPPER = np.uint64(0x000F424000000064)  # 1,000,000 and 100
_LOWER = np.uint64(0x0000271000000001)  # 10,000 and 1
_TEN, _EIGHT, _SIXTEEN, _HALF, _WORD = (np.uint64(n) for n in (10, 8, 16, 32, 64))

_MINUS, _PLUS, _POINT, _E = 45, 43, 46, 101
_MOST = 18            # digits that fit int64 whatever they are
_EXACT = 1 << 53      # integers up to here are float64 without rounding
_POWERS = np.array([10.0**k for k in range(23)])           # exact in float64
_WHOLE_POWERS = np.array([10**k for k in range(19)], dtype=np.int64)
_LARGE = 400          # decimal exponents past this are the same as infinity and zero
_HUGE = 10**9         # an exponent larger than any file has digits
_SLACK = 2.0**-50     # four units in the last place: more than three roundings of float64 add up to


@kernel
def word_at(at: int, end: int) -> Any:
    """Eight bytes of text, the first in the lowest byte; newlines past the end."""
    if at + 8 <= end:
        return load_word(at)
    word = _NEWLINES
    for place in range(end - 1, at - 1, -1):
        word = (word << _EIGHT) | np.uint64(byte_at(place))
    return word


@kernel
def digits_in(word: Any) -> int:
    """How many of the bytes of a word, from the first on, are digits."""
    apart = word ^ _ZEROS
    # A byte past 0x7F carries into its upper neighbour; only the lowest flag is used, and that one is right.
    return trailing_zeros(((apart + _PAST_NINE) | apart) & _HIGH) >> 3


@kernel
def number_in(word: Any, digits: int) -> Any:
    """The first 1 to 8 digits of a word as a number."""
    moved = (word ^ _ZEROS) << (_WORD - np.uint64(8 * digits))
    pairs = moved * _TEN + (moved >> _EIGHT)
    return np.int64(((pairs & _PAIRS) * _UPPER + ((pairs >> _SIXTEEN) & _PAIRS) * _LOWER) >> _HALF)


@exact
def read_number(start: int, end: int) -> Any:
    """Read a decimal number: (address after it, float32 value, status).

    Status: GOOD; MALFORMED; AMBIGUOUS: float64 arithmetic cannot tell which float32 is the nearest, so Python's float
    must.
    """
    sign = byte_at(start)
    at = start + 1 if sign in (_MINUS, _PLUS) else start
    word = word_at(at, end)
    whole = digits_in(word)
    digits = number_in(word, whole) if whole > 0 else 0
    at += whole
    fraction = 0
    stop = byte_at(at)
    if stop == _POINT:
        word = word_at(at + 1, end)
        fraction = digits_in(word)
        if fraction > 0:
            digits = digits * _WHOLE_POWERS[fraction] + number_in(word, fraction)
        at += 1 + fraction
        stop = byte_at(at)
        if fraction == 8:
            word = word_at(at, end)
            more = digits_in(word)
            after = byte_at(at + more)
            if whole + fraction + more > _MOST or more == 0 or after | 32 == _E or (after >= 48 and after <= 57):
                return read_long(start, end)
            size, status = scaled(digits * _WHOLE_POWERS[more] + number_in(word, more), -fraction - more)
            return at + more, -size if sign == _MINUS else size, status
    if whole == 8 or stop | 32 == _E:
        return read_long(start, end)
    if whole + fraction == 0:
        return start, np.float32(0), MALFORMED
    value = np.float64(digits) / _POWERS[fraction]
    return at, np.float32(-value if sign == _MINUS else value), GOOD


@exact
def read_long(start: int, end: int) -> Any:
    """As `read_number`, for any number of digits and for exponents."""
    sign = byte_at(start)
    first = start + 1 if sign in (_MINUS, _PLUS) else start
    at, digits, kept, exponent = read_digits(first, end, 0, 0)
    seen = at - first
    if byte_at(at) == _POINT:
        first = at + 1
        at, digits, kept, dropped = read_digits(first, end, digits, kept)
        seen += at - first
        exponent += dropped - (at - first)
    if seen == 0:
        return start, np.float32(0), MALFORMED
    if byte_at(at) | 32 == _E:
        mark = byte_at(at + 1)
        first = at + 2 if mark in (_MINUS, _PLUS) else at + 1
        at, power, _, dropped = read_digits(first, end, 0, 0)
        if at == first:
            return start, np.float32(0), MALFORMED
        power = _HUGE if dropped > 0 or power > _HUGE else power
        exponent += -power if mark == _MINUS else power
    size, status = scaled(digits, min(max(exponent, -_LARGE), _LARGE))
    return at, -size if sign == _MINUS else size, status


@kernel
def read_digits(at: int, end: int, digits: int, kept: int) -> Any:
    """Read on: (address after the digits, number, significant digits in it, digits dropped at its end)."""
    dropped = 0
    while True:
        word = word_at(at, end)
        count = digits_in(word)
        if count == 8 and digits > 0 and kept + 8 <= _MOST:
            digits = digits * _WHOLE_POWERS[8] + number_in(word, 8)
            kept += 8
            at += 8
            continue
        for _ in range(count):
            if kept < _MOST:
                digits = digits * 10 + (byte_at(at) - 48)
                kept += 1 if digits > 0 else 0
            else:
                dropped += 1
            at += 1
        if count < 8:
            return at, digits, kept, dropped


@exact
def scaled(digits: int, exponent: int) -> Any:
    """digits * 10^exponent as float32 would read it, and AMBIGUOUS if that could be one unit off.

    The float64 here is within four units in the last place, digits that were dropped included. Where float32 rounds
    both ends of that range alike, so does it round the exact number.
    """
    if digits == 0:
        return np.float32(0), GOOD
    value = np.float64(digits)
    rest = exponent
    while rest > 22:
        value *= 1e22
        rest -= 22
    while rest < -22:
        value /= 1e22
        rest += 22
    value = value * _POWERS[rest] if rest >= 0 else value / _POWERS[-rest]
    if digits <= _EXACT and rest == exponent:
        return np.float32(value), GOOD
    if abs(exponent) > 66:  # more roundings than the slack allows for
        return np.float32(value), AMBIGUOUS
    low, high = np.float32(value * (1.0 - _SLACK)), np.float32(value * (1.0 + _SLACK))
    return high, GOOD if low == high else AMBIGUOUS


# -- Steps through lines of text that ends with a newline, by addresses of bytes --------------------------------------


NEWLINE, SPACE, TAB, RETURN = 10, 32, 9, 13


@kernel
def skip_blanks(at: int) -> int:
    """The next byte that is no space, tab or carriage return."""
    if byte_at(at) == SPACE:  # nearly always one of them
        at += 1
    while byte_at(at) == SPACE or byte_at(at) == TAB or byte_at(at) == RETURN:
        at += 1
    return at


@kernel
def next_line(at: int) -> int:
    """The byte after the next newline."""
    while byte_at(at) != NEWLINE:
        at += 1
    return at + 1
