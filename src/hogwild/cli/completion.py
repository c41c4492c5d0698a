"""`hogwild completion`: scripts that let a shell complete commands, flags and choices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from hogwild.cli.commands import COMMANDS, Entry
from hogwild.cli.flags import Page
from hogwild.config.options import Option, Shown, choices_of, flags_of
from hogwild.errors import ConfigError, brief

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
    scripts = {"bash": bash, "zsh": zsh, "fish": fish}
    if options.shell not in scripts:
        raise ConfigError(f"there is no completion for {brief(options.shell)}; choose one of {', '.join(scripts)}.")
    print(scripts[options.shell](), end="")
    return 0


def _first_words() -> list[str]:
    return list(dict.fromkeys(entry.words[0] for entry in COMMANDS))


def _second_words(first: str) -> list[str]:
    return [entry.words[1] for entry in COMMANDS if entry.words[0] == first and len(entry.words) > 1]


def _options(entry: Entry) -> list[Option]:
    """The options of a command, whichever model is chosen; what one model takes for a value, all seem to."""
    found: dict[str, Option] = {}
    command = entry.load().Options
    for choice in choices_of(command):
        for name, option in flags_of(command, choice).items():
            before = found.setdefault(name, option)
            found[name] = replace(before, choices=tuple(dict.fromkeys(before.choices + option.choices)))
    return list(found.values())


def _words_for(option: Option) -> tuple[str, ...]:
    """What can stand for the option: its choices, also where they are words of a positional one."""
    return option.choices or (tuple(option.metavar.split("|")) if option.positional and "|" in option.metavar else ())


def _branches(offer: str, at_second: str, second: str) -> dict[str, str]:
    """The branches of the `case`s of a script, which bash and zsh write alike.

    offer: offers {words}; at_second: whether the second word is completed; second: that word.
    """

    def offered(words: Iterable[str]) -> str:
        return offer.format(words=" ".join(words))

    choices, arguments, flags = [], [], []
    groups = [
        f'    {first}) if {at_second}; then {offered(words)}; return; fi; name="$name {second}" ;;'
        for first in _first_words()
        if (words := _second_words(first))
    ]
    for entry in COMMANDS:
        options = _options(entry)
        known = [flag for option in options if not option.positional for flag in option.flags]
        flags.append(f'    "{entry.name}") {offered(["--help", *known])} ;;')
        for option in options:
            if option.positional and _words_for(option):
                arguments.append(f"    {entry.name}) {offered(_words_for(option))}; return ;;")
            elif option.choices:
                choices.append(f'    "{entry.name} {option.flag}") {offered(option.choices)}; return ;;')
    lines = {"groups": groups, "choices": choices, "arguments": arguments, "flags": flags}
    return {"first": " ".join(_first_words()), **{name: "\n".join(part) for name, part in lines.items()}}


_BASH = """\
# Completion of the hogwild command. Use: source <(hogwild completion bash)
_hogwild() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" name="${{COMP_WORDS[1]}}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{first} --help --version" -- "$cur")); return
  fi
  case "$name" in
{groups}
  esac
  case "$name $prev" in
{choices}
  esac
  case "$cur" in
    -*) ;;
    *)
      if [ "$COMP_CWORD" -eq 2 ]; then
        case "$name" in
{arguments}
        esac
      fi
      return ;;  # files, by the default of the shell
  esac
  case "$name" in
{flags}
  esac
}}
complete -o default -o filenames -F _hogwild hogwild
"""


def bash() -> str:
    """The script for bash."""
    offer = 'COMPREPLY=($(compgen -W "{words}" -- "$cur"))'
    return _BASH.format(**_branches(offer, '[ "$COMP_CWORD" -eq 2 ]', "${COMP_WORDS[2]}"))


_ZSH = """\
#compdef hogwild
# Completion of the hogwild command. Use: hogwild completion zsh > a directory of your fpath/_hogwild
_hogwild() {{
  local name="${{words[2]}}" prev="${{words[CURRENT-1]}}"
  if (( CURRENT == 2 )); then
    compadd -- {first} --help --version; return
  fi
  case "$name" in
{groups}
  esac
  case "$name $prev" in
{choices}
  esac
  if [[ "$PREFIX" == -* ]]; then
    case "$name" in
{flags}
    esac
    return
  fi
  if (( CURRENT == 3 )); then
    case "$name" in
{arguments}
    esac
  fi
  _files
}}
compdef _hogwild hogwild
"""


def zsh() -> str:
    """The script for zsh."""
    return _ZSH.format(**_branches("compadd -- {words}", "(( CURRENT == 3 ))", "${words[3]}"))


def fish() -> str:
    """The script for fish."""
    lines = ["# Completion of the hogwild command."]
    for first in _first_words():
        entry = next(entry for entry in COMMANDS if entry.words[0] == first)
        summary = "" if len(entry.words) > 1 else f" -d {_quoted(entry.summary)}"
        lines.append(f"complete -c hogwild -f -n __fish_use_subcommand -a {first}{summary}")
    for entry in COMMANDS:
        seen = f"__fish_seen_subcommand_from {entry.words[0]}"
        if len(entry.words) > 1:
            others = " ".join(_second_words(entry.words[0]))
            lines.append(
                f"complete -c hogwild -f -n '{seen}; and not __fish_seen_subcommand_from {others}' "
                f"-a {entry.words[1]} -d {_quoted(entry.summary)}"
            )
            seen += f"; and __fish_seen_subcommand_from {entry.words[1]}"
        for option in _options(entry):
            lines += _fish_option(f"complete -c hogwild -n '{seen}'", option)
    return "\n".join(lines) + "\n"


def _fish_option(start: str, option: Option) -> list[str]:
    about = f" -d {_quoted(option.help)}"
    words = " ".join(_words_for(option))
    if option.positional:
        return [f"{start} -f -a {_quoted(words)}"] if words else []
    takes = "" if option.kind is bool else f" -x -a {_quoted(words)}" if words else " -r"
    return [f"{start} -l {flag[2:]}{takes}{about}" for flag in option.flags]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
