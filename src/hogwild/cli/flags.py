"""A command line into the dataclass of a command. tyro splits it and writes the help; types come from `options`."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

from hogwild.config.options import Option, convert, flags_of, nearest, read_toml
from hogwild.errors import ConfigError, brief, shorten

Command = TypeVar("Command")


class HelpShown(Exception):
    """The user asked for help and has it."""


@dataclass(frozen=True)
class Page:
    """What stands at the head of the help of a command."""

    prog: str
    about: str


def parse(command: type[Command], page: Page, argv: list[str]) -> Command:
    """The command's dataclass from flags, then from the TOML file of --config, then from its defaults."""
    known = flags_of(command)
    argv = _with_values([_own_name(word, known) for word in argv], known)
    _check_lists(argv, known)
    toml = _named_file(argv, known)
    values = read_toml(convert(known["config"], toml, "--config"), command) if toml else {}
    given, extra = _split(command, page, argv, values)
    flags = [word for word in extra if word.startswith("-") and word != "-"]
    if flags:
        raise _unknown_flag(flags[0], known, page)
    for name, value in {**values, **given}.items():
        if value == "" and {"DIR", "FILE"} & set(re.split(r"\W", known[name].metavar)):
            where = known[name].flag if name in given else f"{toml}: {name}"
            raise ConfigError(f"{where} is there without a name; give one, or leave it out.")
    for name, value in given.items():
        if known[name].many:
            value = tuple(word for words in value for word in words)
            if not value:
                raise ConfigError(f"{known[name].flag} is there without a value. See: {page.prog} --help")
        values[name] = convert(known[name], value, known[name].flag)
    _add_words(extra, values, known, page)
    for option in known.values():
        if option.positional and not values.get(option.name, option.default):
            raise ConfigError(f"{option.metavar.rstrip('.')} is missing. See: {page.prog} --help")
    return build(command, values)


def _own_name(word: str, known: dict[str, Option]) -> str:
    """A flag by its own name, where it was given by another that is understood too."""
    flag, equals, value = word.partition("=")
    name = flag[2:].replace("-", "_") if flag.startswith("--") else ""
    meant = next((option.flag for option in known.values() if name and option.also == name), flag)
    return meant + equals + value


def _with_values(argv: list[str], known: dict[str, Option]) -> list[str]:
    """Flags that may stand alone get the value that they then stand for."""
    found = list(argv)
    for option in known.values():
        ending = "." + option.metavar.rpartition(".")[2]
        for k, word in enumerate(found):
            if option.bare and word == option.flag and not (k + 1 < len(found) and found[k + 1].endswith(ending)):
                found[k] = f"{word}={option.bare}"
    return found


def build(command: type[Command], values: dict[str, Any]) -> Command:
    """The command's dataclass from checked values by name."""
    parts: dict[str, Any] = {}
    hints = get_type_hints(command)
    for item in fields(command):  # type: ignore[arg-type]
        if is_dataclass(hints[item.name]):
            parts[item.name] = build(hints[item.name], values)
        elif item.name in values:
            parts[item.name] = values[item.name]
    return command(**parts)


def _named_file(argv: list[str], known: dict[str, Option]) -> str:
    """The value of --config: its file is read before all else is parsed."""
    for k, word in enumerate(argv):
        if "config" in known and word == "--config" and k + 1 < len(argv):
            return argv[k + 1]
        if "config" in known and word.startswith("--config="):
            return word.partition("=")[2]
    return ""


# -- tyro --

def _split(command: type, page: Page, argv: list[str], toml: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What was given by name (still text), and the words that tyro had no place for."""
    import tyro  # here: completion and dispatch do not need it

    for word in argv:
        flag, equals, value = word.partition("=")
        option = flags_of(command).get(flag[2:].replace("-", "_"))
        if equals and option and option.kind is bool:
            name = flag[2:]
            raise ConfigError(f"{flag} takes no value, got {brief(value)}; write --{name} or --no-{name}.")
    asked = any(word in ("-h", "--help") for word in argv)
    said = io.StringIO()
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
    try:
        with contextlib.nullcontext() if asked else contextlib.redirect_stderr(said):
            split: Any = tyro.cli(
                _twin(command, toml),
                prog=page.prog,
                description=page.about,
                args=argv,
                config=markers,
                return_unknown_args=True,
            )
    except SystemExit as stop:
        if not stop.code:
            raise HelpShown from None
        raise ConfigError(f"{_condense(said.getvalue())} See: {page.prog} --help") from None
    return _given(split[0]), split[1]


def _twin(command: type, toml: dict[str, Any]) -> type:
    """The same dataclass with every value a text, None where not given, dressed for tyro's help."""
    made: list[Any] = []
    hints = get_type_hints(command)
    for item in fields(command):
        if is_dataclass(hints[item.name]):
            group = _twin(hints[item.name], toml)
            made.append((item.name, group, field(default_factory=group)))
        elif item.name in flags_of(command):
            made.append(_twin_field(flags_of(command)[item.name], toml))
    twin = make_dataclass(command.__name__, made, frozen=True, kw_only=True)
    twin.__doc__ = command.__doc__
    return twin


def _twin_field(option: Option, toml: dict[str, Any]) -> tuple[str, Any, Any]:
    from tyro import conf

    default = toml.get(option.name, option.default)
    dress = conf.arg(metavar=option.metavar or None, help=option.help, help_behavior_hint=_hint(option, default))
    if option.kind is bool:
        return option.name, Annotated[bool, dress], field(default=default)
    if option.many:
        return option.name, Annotated[tuple[tuple[str, ...], ...], dress, conf.UseAppendAction], field(default=())
    if option.kind in (tuple, dict):
        many = conf.Positional if option.positional else conf.UseAppendAction
        return option.name, Annotated[tuple[str, ...], dress, many], field(default=())
    if option.positional:
        return option.name, Annotated[str | None, dress, conf.Positional], field(default=None)
    return option.name, Annotated[str | None, dress], field(default=None)


def _hint(option: Option, default: Any) -> str:
    if option.positional or default is None or default in ("", (), {}):
        several = option.kind in (tuple, dict) and not option.positional and not option.many
        return "(repeatable)" if several else ""
    if option.kind is bool:
        return f"(default: {'on' if default else 'off'})"
    return f"(default: {default})"


def _given(twin: Any) -> dict[str, Any]:
    """The values that differ from `not given`."""
    found: dict[str, Any] = {}
    for item in fields(twin):
        value = getattr(twin, item.name)
        if is_dataclass(value):
            found.update(_given(value))
        elif value is not None and value != ():
            found[item.name] = value
    return found


# -- what to say when it does not fit --

def _add_words(extra: list[str], values: dict[str, Any], known: dict[str, Option], page: Page) -> None:
    """Words after flags belong to the list of files, if the command has one."""
    if not extra:
        return
    last = next((option for option in reversed(known.values()) if option.positional), None)
    if last is None or last.kind is not tuple:
        raise ConfigError(f"{brief(extra[0])} is one word too many. See: {page.prog} --help")
    values[last.name] = (*values.get(last.name, ()), *convert(last, extra, last.flag))


def _check_lists(argv: list[str], known: dict[str, Option]) -> None:
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


def _unknown_flag(word: str, known: dict[str, Option], page: Page) -> ConfigError:
    flag = word.partition("=")[0]
    names = [option.flag for option in known.values() if not option.positional]
    names += ["--no-" + option.flag[2:] for option in known.values() if option.kind is bool]
    return ConfigError(f"unknown flag {shorten(flag, 80)}{nearest(flag, names)}. See: {page.prog} --help")


def _condense(box: str) -> str:
    """The first paragraph of tyro's box as one line."""
    lines = [line.strip("│╭╮╰╯ ") for line in re.sub(r"\x1b\[[0-9;]*m", "", box).splitlines()]
    kept: list[str] = []
    for line in lines[1:]:
        if set(line) <= {"─"}:
            break
        kept.append(line)
    text = " ".join(kept).removesuffix("Expected 1 values.").strip()
    return text[:1].lower() + text[1:] if text else "this command line cannot be read."
