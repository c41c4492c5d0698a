"""A command line into the dataclass of a command. argparse splits it and writes the help; types come from `options`."""

from __future__ import annotations

import argparse
import glob
import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hogwild.config.options import Option, build, chosen_of, convert, flags_of, groups_of, nearest, read_toml, values_of
from hogwild.errors import ConfigError, brief, shorten

Command = TypeVar("Command")
_WIDEST = 120  # columns of help
_WRITTEN = " written"  # of what argparse found: how each flag was written; no option is called so


class HelpShown(Exception):
    """The user asked for help and has it."""


@dataclass(frozen=True)
class Page:
    """What stands at the head of the help of a command."""

    prog: str
    about: str


def parse(command: type[Command], page: Page, argv: list[str]) -> Command:
    """The command's dataclass from flags, then from the TOML file of --config, then from its defaults.

    A command whose defaults come from elsewhere too has a hidden field `given`: the names of the options that were.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    argv, words = argv[:end], argv[end + 1 :]
    asked = "-h" in argv or "--help" in argv
    chosen = chosen_of(command)
    deciding = ("config", chosen.by if chosen else "")  # which options there are, and their defaults
    first, _ = _given([option for option in flags_of(command).values() if option.name in deciding], page, argv)
    toml = convert(flags_of(command)["config"], first["config"], "--config") if "config" in first else ""
    table = read_toml(toml) if toml else {}
    choice = _choice(command, first, table, toml)
    known = flags_of(command, choice)
    _check_choice(command, choice, [] if asked else argv, table, toml)
    values = values_of(table, toml, known)
    if asked:
        print(_help(command, page, choice, values))
        raise HelpShown
    argv = _with_values(argv, known)
    argv = _with_columns(argv, known)
    _check_lists(argv, known)
    given, extra = _given(known.values(), page, argv)
    if flags := [word.partition("=")[0] for word in extra if word.startswith("-") and word != "-"]:
        close = nearest(flags[0], _all_flags(known))
        raise ConfigError(f"unknown flag {shorten(flags[0], 80)}{close}. See: {page.prog} --help")
    for name, value in {**values, **given}.items():
        if value in ("", [""], ("",)) and {"DIR", "FILE"} & set(re.split(r"\W", known[name].metavar)):
            where = known[name].flag if name in given else f"{toml}: {name}"
            raise ConfigError(f"{where} is there without a name; give one, or leave it out.")
    given.update(_placed([*extra, *words], known, page))
    values.update({name: convert(known[name], value, known[name].flag) for name, value in given.items()})
    for option in known.values():
        if option.positional and not values.get(option.name, option.default):
            raise ConfigError(f"{option.metavar.rstrip('.')} is missing. See: {page.prog} --help")
    return build(command, {**values, "given": tuple(values)}, choice)


# -- argparse --------------------------------------------------------------------------------------------------------


def _given(options: Iterable[Option], page: Page, argv: list[str]) -> tuple[dict[str, Any], list[str]]:
    """What was given by name, still text, and the words for which there is no flag."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for option in options:
        if not option.positional:
            _add(parser, option)
            _check_plain(option, argv)
    try:
        found, extra = parser.parse_known_args(argv)
    except argparse.ArgumentError as error:
        flag = str(error.argument_name).partition("/")[0]
        raise ConfigError(f"{flag} is there without a value. See: {page.prog} --help") from None
    return {name: value for name, value in vars(found).items() if name != _WRITTEN}, extra


def _check_plain(option: Option, argv: list[str]) -> None:
    """Refuse --flag=yes."""
    for word in argv:
        flag, equals, value = word.partition("=")
        if equals and option.kind is bool and flag in option.flags:
            yes, no = option.flags
            raise ConfigError(f"{flag} takes no value, got {brief(value)}; write {yes} or {no}.")


class _Once(argparse.Action):
    """Keeps the value of a flag that may be given once, and refuses another one after it."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        self.keep(namespace, values, f"{option_string} {shorten(str(values), 80)}")

    def keep(self, namespace: Any, value: Any, written: str) -> None:
        """The value, as it is written."""
        kept = vars(namespace).setdefault(_WRITTEN, {})
        before = kept.setdefault(self.dest, written)
        if getattr(namespace, self.dest, value) != value:
            raise ConfigError(f"{before} and {written} cannot both hold; leave out one of them.")
        setattr(namespace, self.dest, value)


class _Switch(argparse.BooleanOptionalAction, _Once):
    """The same for --flag and --no-flag."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        flag = str(option_string)
        self.keep(namespace, not flag.startswith("--no-"), flag)


def _add(parser: Any, option: Option, default: Any = None) -> None:
    """Add the flag to a parser or a group of flags; `default` is for the help."""
    about = (option.help + _hint(option, default)).replace("%", "%%")
    dress: dict[str, Any] = {"default": argparse.SUPPRESS, "help": about}
    if option.kind is bool:
        parser.add_argument(option.flag, dest=option.name, action=_Switch, **dress)
        return
    dress["metavar"] = f"[{option.metavar}]" if option.shown.bare else option.metavar
    if option.positional:
        parser.add_argument(option.name, nargs="*", **dress)
    elif option.shown.many:
        parser.add_argument(*option.flags, dest=option.name, nargs="+", action="extend", **dress)
    else:
        action = "append" if option.kind in (tuple, dict) else _Once
        parser.add_argument(*option.flags, dest=option.name, action=action, **dress)


def _hint(option: Option, default: Any) -> str:
    if option.kind is bool:
        return f" (default: {'on' if default else 'off'})"
    chosen = option.shown.least is not None and default is not None and default < option.shown.least
    if option.positional or chosen or default is None or default in ("", (), {}):
        several = option.kind in (tuple, dict) and not option.positional and not option.shown.many
        return " (repeatable)" if several else ""
    return f" (default: {','.join(map(str, default)) if option.kind is tuple else default})"


def _help(command: type, page: Page, choice: str, values: Mapping[str, Any]) -> str:
    """All flags in groups, with the defaults that a file of options leaves."""
    width = max(40, min(_WIDEST, shutil.get_terminal_size().columns) - 2)
    words = [option.metavar for option in flags_of(command).values() if option.positional]
    parser = argparse.ArgumentParser(
        usage=" ".join([page.prog, *words, "[OPTIONS]"]),
        description="\n\n".join(_wrapped(part, width) for part in page.about.split("\n\n")),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=28, width=width),
        add_help=False,
    )
    chosen = chosen_of(command)
    for place, group in enumerate(groups_of(command, choice)):
        about = None
        if chosen and group.config is chosen.of(choice).config:
            others = "|".join(name for name in chosen.variants if name != choice)
            about = f"Of --{chosen.by} {choice}. Others have their own: --{chosen.by} {others} --help"
            about = _wrapped(about, width - 2)
        options = [option for option in group.options.values() if not option.shown.hidden]
        part = parser.add_argument_group(group.title if place else None, about) if options else parser
        for option in options:
            _add(part, option, values.get(option.name, option.default))
    return parser.format_help().rstrip()


def _wrapped(text: str, width: int) -> str:
    """A paragraph in lines of a width; lines that are to be copied stay as they are."""
    return text if "\n  " in text else textwrap.fill(" ".join(text.split()), width)


# -- what to say when it does not fit --------------------------------------------------------------------------------


def _choice(command: type, given: Mapping[str, Any], table: Mapping[str, Any], toml: str) -> str:
    """Which of the dataclasses of the command is meant: by its flag, else by the file of options."""
    chosen = chosen_of(command)
    if chosen is None:
        return ""
    option = flags_of(command)[chosen.by]
    if option.name in given:
        return str(convert(option, given[option.name], option.flag))
    return str(convert(option, table.get(option.name, option.default), f"{toml}: {option.name}"))


def _check_choice(command: type, choice: str, argv: list[str], table: Mapping[str, Any], toml: str) -> None:
    """Refuse flags and keys that are known where another choice is made."""
    chosen = chosen_of(command)
    if chosen is None:
        return
    known = _all_flags(flags_of(command, choice))
    written = {word.partition("=")[0]: word.partition("=")[0] for word in argv}
    written |= {"--" + key.replace("_", "-"): f"{toml}: {key}" for key in table}
    for flag, where in written.items():
        if flag.startswith("--") and flag not in known:
            others = [name for name in chosen.variants if flag in _all_flags(flags_of(command, name))]
            if others:
                raise ConfigError(f"{where} is for --{chosen.by} {' or '.join(others)}, not {choice}; leave it out.")


def _all_flags(options: Mapping[str, Option]) -> list[str]:
    return [flag for option in options.values() if not option.positional for flag in option.flags]


def _with_values(argv: list[str], known: Mapping[str, Option]) -> list[str]:
    """Flags that may stand alone get the value that they then stand for."""
    found = list(argv)
    for option in known.values():
        ending = "." + option.metavar.rpartition(".")[2]
        for k, word in enumerate(found):
            if option.shown.bare and word == option.flag and not (k + 1 < len(found) and found[k + 1].endswith(ending)):
                found[k] = f"{word}={option.shown.bare}"
    return found


def _with_columns(argv: list[str], known: Mapping[str, Option]) -> list[str]:
    """`TRAIN --ignore a b` as `TRAIN --ignore a --ignore b`: words after a column are more of them, unless they are
    files or nothing else could be a file."""
    lists = [option.flag for option in known.values() if option.kind is tuple and option.metavar == "COLUMN"]
    valued = {flag for option in known.values() if option.kind is not bool for flag in option.flags}
    found: list[str] = []
    flag, files = "", 0  # the flag of columns that the word belongs to, and files so far
    words = iter(argv)
    for word in words:
        if word.startswith("-") and word != "-":
            flag = word.partition("=")[0] if word.partition("=")[0] in lists else ""
            found += [word, *([value] if word in valued and (value := next(words, None)) is not None else [])]
        elif flag and files and word != "-" and not os.path.lexists(word) and not glob.has_magic(word):
            found += [flag, word]
        else:
            flag, files = "", files + 1
            found.append(word)
    return found


def _placed(words: list[str], known: Mapping[str, Option], page: Page) -> dict[str, Any]:
    """The words without flags, by the options that have none; they may stand anywhere among the flags."""
    found: dict[str, Any] = {}
    left = list(words)
    for option in known.values():
        if option.positional and left:
            found[option.name] = left if option.kind is tuple else left.pop(0)
            left = [] if option.kind is tuple else left
    if left:
        raise ConfigError(f"{brief(left[0])} is one word too many. See: {page.prog} --help")
    return found


def _check_lists(argv: list[str], known: Mapping[str, Option]) -> None:
    """Refuse `TRAIN --valid a b`, which a shell makes of `--valid *`: b would be trained on."""
    by_flag = {option.flag: option for option in known.values() if option.kind is not bool}
    before, files = "", 0  # the flag whose value came last, and files so far
    words = iter(argv)
    for word in words:
        if word.startswith("-") and word != "-":
            before = word if word in by_flag else ""
            if before:
                next(words, None)  # its value
            continue
        if files and before and by_flag[before].metavar == "FILE" and by_flag[before].kind is tuple:
            raise ConfigError(
                f"{before} takes one file, and {brief(word)} is a second one: give the flag once for each "
                f"({before} {shorten(word, 80)}), or a pattern in quotes ({before} '*.svm')."
            )
        before, files = "", files + 1
