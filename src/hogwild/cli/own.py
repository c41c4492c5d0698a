"""A user's own program, by the name of the function that makes it: `package.module:function`."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from hogwild.cli.imports import leave_nothing_out
from hogwild.config.options import nearest
from hogwild.errors import ConfigError, HogwildError, brief, shorten


def program_from(name: str) -> Any:
    """The program that the function makes. Modules in the working directory are found too, as `python -m` does it."""
    leave_nothing_out()  # its code may want it
    from hogwild.programs.program import Program

    place, colon, function = name.partition(":")
    if not colon or not place or not function.isidentifier():
        raise ConfigError(f"{brief(name)} names no function; write package.module:function, as in clicks:make_program.")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise ConfigError(f"{place} needs {error.name}, which is not installed.") from error
        raise ConfigError(
            f"there is no module {brief(place)}; name it as Python imports it, from the directory in which it stands."
        ) from None
    made = getattr(module, function, None)
    if not callable(made):
        known = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        raise ConfigError(f"{place} has no function {brief(function)}{nearest(function, known)}.")
    try:
        program = made()
    except HogwildError:
        raise
    except Exception as error:
        raise ConfigError(f"{name}() failed: {type(error).__name__}: {shorten(error)} (see --debug).") from error
    if not isinstance(program, Program):
        raise ConfigError(f"{name}() returned {type(program).__name__}; it must return a hogwild.pytorch.TorchProgram.")
    return program
