"""What feature templates make of the values of a column: lower case, affixes, shapes, classes of characters.

Each is a function of one string, called once for each distinct value. None is no value: the template then gives no
feature at that token.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import NamedTuple

from hogwild.feeds.tagged.presets import YES


class Transform(NamedTuple):
    """A function of a value and a number; those that take none are given 0."""

    make: Callable[[str, int], str | None]
    takes_number: bool
    about: str


def _prefix(value: str, size: int) -> str | None:
    return value[:size] if len(value) >= size else None


def _suffix(value: str, size: int) -> str | None:
    return value[-size:] if len(value) >= size else None


def _shape_of(character: str) -> str:
    if character.isdecimal():
        return "d"
    if not character.isalpha():
        return character
    if character.isupper() or character.istitle():
        return "X"
    return "x" if character.islower() else "a"


def _full_shape(value: str) -> str:
    return "".join(map(_shape_of, value))


def _shape(value: str) -> str:
    return "".join(sign for sign, _ in groupby(_full_shape(value)))


def _digits(value: str) -> str:
    return "".join("0" if character.isdecimal() else character for character in value)


_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿兆两壹贰叁肆伍陆柒捌玖拾佰仟萬億")
_SCRIPTS = (
    ("CJK", "cjk"), ("HIRAGANA", "hiragana"), ("KATAKANA", "katakana"), ("HALFWIDTH KATAKANA", "katakana"),
    ("HANGUL", "hangul"), ("HALFWIDTH HANGUL", "hangul"),
)  # fmt: skip
_KINDS = {"P": "punctuation", "S": "symbol", "Z": "space", "C": "control", "L": "letter", "M": "mark", "N": "number"}


@cache
def _class_of(character: str) -> str:
    """The class of one character: by its script where that says more than its kind."""
    if character.isdecimal():
        return "digit"
    if character in _NUMERALS:
        return "numeral"
    kind = _KINDS[unicodedata.category(character)[0]]
    if kind in ("letter", "mark", "number"):
        name = unicodedata.name(character, "")
        return next((script for start, script in _SCRIPTS if name.startswith(start)), kind)
    return kind


def _class(value: str) -> str | None:
    """The class that all characters are of, or `mixed`."""
    classes = {_class_of(character) for character in value}
    return "mixed" if len(classes) > 1 else next(iter(classes), None)


def _flag(test: Callable[[str], bool]) -> Callable[[str, int], str | None]:
    return lambda value, _: YES if any(map(test, value)) else None


def _hyphen(character: str) -> bool:
    return unicodedata.category(character) == "Pd"


TRANSFORMS = {
    "lower": Transform(lambda value, _: value.lower(), False, "in lower case"),
    "prefix": Transform(_prefix, True, "the first N characters; nothing if there are fewer"),
    "suffix": Transform(_suffix, True, "the last N characters; nothing if there are fewer"),
    "shape": Transform(lambda value, _: _shape(value), False, "McDonald-90 becomes XxXx-d"),
    "fullshape": Transform(lambda value, _: _full_shape(value), False, "McDonald-90 becomes XxXxxxxx-dd"),
    "digits": Transform(lambda value, _: _digits(value), False, "every digit becomes 0"),
    "class": Transform(lambda value, _: _class(value), False, "digit, letter, punctuation, cjk, …, or mixed"),
    "hasdigit": Transform(_flag(str.isdecimal), False, "1 if there is a digit, else nothing"),
    "hashyphen": Transform(_flag(_hyphen), False, "1 if there is a hyphen or dash, else nothing"),
    "hasupper": Transform(_flag(str.isupper), False, "1 if there is a capital letter, else nothing"),
}
SAME = "same"  # not a function of one value: whether those at two offsets are equal
