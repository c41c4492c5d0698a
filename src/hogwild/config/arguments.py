"""Arguments of a program: the fields of its dataclass of options, which need not be written a second time."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from hogwild.config.options import Built, Option, nearest, options_of
from hogwild.errors import ConfigError, brief

Made = TypeVar("Made")
Called = TypeVar("Called", bound=Callable[..., Any])
_WIDTH = 112  # columns of a docstring


def taking(config: type) -> Callable[[type[Made]], type[Made]]:
    """Give a program the arguments of a dataclass, before those that its `__init__` names itself.

    `__init__` has `*values` and `**options` for them, of which `config_of` makes the dataclass. Signature and docstring
    name them all.
    """

    def dress(program: type[Made]) -> type[Made]:
        construct: Any = program.__init__
        this, *own = inspect.signature(construct).parameters.values()
        own = [item for item in own if item.kind is inspect.Parameter.KEYWORD_ONLY]
        taken = inspect.signature(config).parameters.values()
        construct.__signature__ = inspect.Signature([this, *taken, *own])
        described = "".join(map(_described, options_of(config).values()))
        rule = "Parameters\n----------\n"
        program.__doc__ = inspect.cleandoc(program.__doc__ or "").replace(rule, rule + described)
        return program

    return dress


def offering(config: type) -> Callable[[Called], Called]:
    """Show the fields of a dataclass in the signature of a function that takes them as `**options`."""

    def dress(function: Called) -> Called:
        described = inspect.signature(function)
        own = [item for item in described.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
        named = {item.name for item in own}
        taken = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                 for name, item in inspect.signature(config).parameters.items() if name not in named]  # fmt: skip
        shown: Any = function
        shown.__signature__ = described.replace(parameters=[*own, *taken])
        return function

    return dress


def _described(option: Option) -> str:
    kinds = f"{', '.join(option.choices)}. " if option.choices else ""
    return textwrap.fill(f"{option.name} : {kinds}{option.help}", _WIDTH, subsequent_indent=" " * 4) + "\n"


def config_of(program: object, config: type[Built], values: tuple[Any, ...], options: Mapping[str, Any]) -> Built:
    """The dataclass from what a program was given for it, by place and by name."""
    names = [item.name for item in fields(config)]  # type: ignore[arg-type]
    if len(values) > len(names):
        raise TypeError(f"there are {len(values)} arguments without a name; at most: {', '.join(names)}.")
    given = dict(zip(names, values, strict=False))
    for name in options:
        if name not in names:
            known = list(inspect.signature(type(program)).parameters)
            close = nearest(name, known)
            raise ConfigError(f"there is no option {brief(name)}{close}; options are {', '.join(known)}.")
        if name in given:
            raise TypeError(f"{name} is given twice, by place and by name.")
    return config(**given, **options)
