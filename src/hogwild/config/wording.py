"""Messages name options by their flags. Who calls from Python reads the names of arguments instead."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import is_dataclass
from typing import NamedTuple

from hogwild.config.options import options_of
from hogwild.errors import word_by

_HOMES = ("classifying", "cluster", "datasets", "experiments", "models", "reading", "training")
_FLAG = re.compile(r"(`?)--(no-)?([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:(?: |=)([\w.]*\w))?(`?)")


class _Known(NamedTuple):
    """What an option of some name may be, in whatever dataclass; it may have another name as a flag."""

    name: str
    kinds: set[type]
    words: set[str]


@functools.cache
def _known() -> dict[str, _Known]:
    found = {name: _Known(name, {str}, set()) for name in ("program", "valid")}  # arguments that are no options
    for home in _HOMES:
        for config in vars(sys.modules[f"hogwild.config.{home}"]).values():
            if isinstance(config, type) and is_dataclass(config):
                for option in options_of(config).values():
                    each = found.setdefault(option.name, _Known(option.name, set(), set()))
                    found.setdefault(option.shown.also or option.name, each)
                    each.kinds.add(option.kind)
                    each.words.update(option.choices, filter(str.isupper, re.findall(r"\w+", option.metavar)))
    return found


def as_arguments(text: str) -> str:
    """A message with the arguments that its flags stand for; flags that are none of ours stay.

    >>> as_arguments("skip such lines with --bad-lines skip, or --no-scale; see --label")
    'skip such lines with `bad_lines="skip"`, or `scale=False`; see `label`'
    """
    return _FLAG.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    before, negated, flag, word, after = found.groups()
    option = _known().get(flag.replace("-", "_"))
    if option is None:
        return found[0]
    name = option.name
    if before and not after:
        before = ""
    rest = f" {word}" if word else ""
    if negated or option.kinds == {bool}:
        return f"`{name}={not negated}`{rest}"
    number = word and option.kinds & {int, float} and re.fullmatch(r"[\d.]+", word)
    if word and (word in option.words or number):
        return f"`{name}={word}`" if number else f'`{name}="{word}"`'
    return f"`{name}`{rest}"


word_by(as_arguments)
