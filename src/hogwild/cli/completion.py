"""`hogwild completion`: scripts that let a shell complete commands, flags and choices."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Annotated, Any

from hogwild.cli.commands import COMMANDS, Entry
from hogwild.cli.flags import Page
from hogwild.config.options import Option, Shown, choices_of, flags_of
from hogwild.errors import ConfigError, brief

SHELLS = ("bash", "zsh", "fish")
PAGE = Page(
    "hogwild completion",
    """Print a completion script for your shell.

Examples:
  source <(hogwild completion bash)             # in ~/.bashrc
  hogwild completion zsh > ~/.zfunc/_hogwild    # a directory of your fpath
  hogwild completion fish > ~/.config/fish/completions/hogwild.fish""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    shell: Annotated[str, Shown("bash|zsh|fish", positional=True)] = ""
    """The shell."""


def run(options: Options) -> int:
    """Print the script."""
    if options.shell not in SHELLS:
        raise ConfigError(f"there is no completion for {brief(options.shell)}; choose one of {', '.join(SHELLS)}.")
    print(script(options.shell), end="")
    return 0


def script(shell: str) -> str:
    """A script for the shell, from a parser of all commands."""
    import shtab  # here: only this command needs it

    whole = argparse.ArgumentParser("hogwild", allow_abbrev=False)
    whole.add_argument("--version", action="version", version="", help="Show the version and exit")
    firsts = whole.add_subparsers()
    groups: dict[str, Any] = {}
    for entry in COMMANDS:
        first, *second = entry.words
        if second and first not in groups:
            kinds = ", ".join(other.words[1] for other in COMMANDS if other.words[0] == first)
            groups[first] = firsts.add_parser(first, help=kinds, allow_abbrev=False).add_subparsers()
        parsers = groups[first] if second else firsts
        parser = parsers.add_parser(entry.words[-1], help=entry.summary, allow_abbrev=False)
        for option in _options(entry):
            _add(parser, option, shtab)
    return str(shtab.complete(whole, shell)).rstrip("\n") + "\n"


def _add(parser: argparse.ArgumentParser, option: Option, shtab: Any) -> None:
    about = option.help.replace("%", "%%")
    names = [option.name] if option.positional else option.flags
    if option.kind is bool:
        parser.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=about)
        return
    several: dict[str, Any] = {"nargs": "*"} if option.positional or option.shown.many else {}
    listed = option.positional and option.metavar.islower()  # choices that stand for the option by themselves
    words = option.choices or (tuple(option.metavar.split("|")) if listed else ())
    made = parser.add_argument(*names, choices=words or None, help=about, **several)
    if not words and "DIR" in option.metavar:
        made.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif not words and (option.positional or "FILE" in option.metavar or "MODEL" in option.metavar):
        made.complete = shtab.FILE  # type: ignore[attr-defined]


def _options(entry: Entry) -> list[Option]:
    """The options of a command, whichever model is chosen; what one model takes for a value, all seem to."""
    found: dict[str, Option] = {}
    command = entry.load().Options
    for choice in choices_of(command):
        for name, option in flags_of(command, choice).items():
            before = found.setdefault(name, option)
            found[name] = replace(before, choices=tuple(dict.fromkeys(before.choices + option.choices)))
    return list(found.values())
