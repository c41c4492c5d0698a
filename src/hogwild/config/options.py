"""What an option is: a field of a frozen dataclass, with its type, default, and the docstring beneath it as help.

Flags, TOML keys and shell completion are all made from `options_of`, and all values pass through `convert`, so that
a wrong value gets the same sentence wherever it comes from.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import math
import textwrap
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hogwild.config.tomltext import parse_toml, read_start
from hogwild.errors import ConfigError, brief, shorten


@dataclass(frozen=True)
class Shown:
    """How the value of an option is called in help; `positional` ones have no flag, `hidden` ones are for programs.

    many: the flag takes all the words that follow it; other lists have the flag once for each.
    also: another name that is understood, as flag and as TOML key, with underscores.
    bare: what the flag stands for without a value; then a word after it is one only if it ends as the metavar does.
    """

    metavar: str = ""
    positional: bool = False
    hidden: bool = False
    many: bool = False
    also: str = ""
    bare: str = ""


@dataclass(frozen=True)
class Option:
    """One option. `kind` is int, float, str, bool, tuple or dict; `choices` are all there are, or empty."""

    name: str
    kind: type
    optional: bool
    choices: tuple[str, ...]
    default: Any
    help: str
    metavar: str
    positional: bool
    hidden: bool
    many: bool
    also: str = ""
    bare: str = ""

    @property
    def flag(self) -> str:
        """The option as written on a command line."""
        return self.metavar if self.positional else "--" + self.name.replace("_", "-")


_known: dict[type, dict[str, Option]] = {}


def flags_of(config: type) -> dict[str, Option]:
    """The options that a user may give."""
    return {name: option for name, option in options_of(config).items() if not option.hidden}


def options_of(config: type) -> dict[str, Option]:
    """The options of a dataclass by name, in order; those of nested dataclasses are in line."""
    if config in _known:
        return _known[config]
    found: dict[str, Option] = {}
    hints = get_type_hints(config, include_extras=True)
    helps = _help_of(config)
    for item in fields(config):
        hint = hints[item.name]
        if is_dataclass(hint) and isinstance(hint, type):
            found.update(options_of(hint))
            continue
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        found[item.name] = _option(item.name, hint, None if default is MISSING else default, helps.get(item.name, ""))
    _known[config] = found
    return found


def _option(name: str, hint: Any, default: Any, help_text: str) -> Option:
    shown = None
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        shown = next((extra for extra in extras if isinstance(extra, Shown)), None)
    optional = get_origin(hint) in (Union, types.UnionType)
    if optional:
        hint = next(part for part in get_args(hint) if part is not type(None))
    choices = tuple(get_args(hint)) if get_origin(hint) is Literal else ()
    kind = str if choices else (get_origin(hint) or hint)
    metavar = "{" + ",".join(choices) + "}" if choices else {int: "N", float: "X", bool: ""}.get(kind, "TEXT")
    return Option(
        name=name,
        kind=kind,
        optional=optional,
        choices=choices,
        default=default,
        help=help_text,
        metavar=shown.metavar if shown and shown.metavar else metavar,
        positional=bool(shown and shown.positional),
        hidden=bool(shown and shown.hidden),
        many=bool(shown and shown.many),
        also=shown.also if shown else "",
        bare=shown.bare if shown else "",
    )


def _help_of(config: type) -> dict[str, str]:
    """The string beneath each field, as written in the source; of a field that is given anew, the new one."""
    found: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if is_dataclass(base):
            found |= _own_help_of(base)
    return found


def _own_help_of(config: type) -> dict[str, str]:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0]
    except (OSError, TypeError):    # installed without sources: options work, help is bare
        return {}
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for before, node in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found[before.target.id] = " ".join(node.value.value.split())
    return found


# -- values --

_NOUNS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_LEAST, _MOST = -(2**63), 2**64 - 1  # whole numbers that compiled code has types for
_LARGE = 1e30  # float32 ends at 3e38, and numbers are multiplied
_NAMES = ("FILE", "FILE...", "FILE.json", "TRAIN...", "DIR", "MODEL", "MODEL|FILE")


def convert(option: Option, value: Any, where: str) -> Any:
    """A value of the option's type from text or from a TOML value; `where` begins the error message."""
    wrong = ConfigError(f"{where} is {brief(value)}; it must be {_NOUNS.get(option.kind, 'a list of texts')}.")
    if option.kind is bool:
        if not isinstance(value, bool):
            raise wrong
        return value
    if option.kind is tuple:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str | int) for item in items):
            raise wrong
        return tuple(_text(option, item, where) for item in items)
    if option.kind is dict:
        return _convert_pairs(option, value, where)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong
    if option.kind is str:
        if not isinstance(value, str | int) or (option.choices and not isinstance(value, str)):
            raise wrong
        if option.choices and value not in option.choices:
            raise ConfigError(f"{where} is {brief(value)}{nearest(str(value), option.choices)}; choose one of "
                              f"{', '.join(option.choices)}.")
        return _text(option, value, where)
    if option.kind is int and isinstance(value, float):
        raise wrong
    try:
        number = option.kind(value)
    except (ValueError, OverflowError):
        raise wrong from None
    _check_size(option, number, where)
    return number


def _check_size(option: Option, number: float, where: str) -> None:
    """Raise ConfigError for a number that compiled code has no type for."""
    if option.kind is int and not _LEAST <= number <= _MOST:
        raise ConfigError(f"{where} is {brief(number)}; a whole number has at most 64 bits here.")
    if option.kind is float and not abs(number) <= _LARGE:
        raise ConfigError(f"{where} is {brief(number)}; it must be finite: numbers go from -1e30 to 1e30 here.")


def _text(option: Option, value: str | int, where: str) -> str:
    """A text that a system call takes."""
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise ConfigError(f"{where} is {brief(value)}; write a text in quotes.")
    text = str(value)
    if "\0" in text:
        raise ConfigError(f"{where} is {brief(text)}; a text holds no NUL.")
    if option.metavar in _NAMES and _is_long(text):
        raise ConfigError(f"{where} is {brief(text)}; no file has so long a name.")
    return text


def _is_long(name: str) -> bool:
    """Whether no file can have the name, on the systems that there are."""
    return len(name) > 4095 or max(len(part) for part in name.split("/")) > 255


def _convert_pairs(option: Option, value: Any, where: str) -> dict[str, float]:
    """NAME=WEIGHT texts, or a TOML table."""
    if isinstance(value, Mapping):
        pairs = [(str(name), weight) for name, weight in value.items()]
    else:
        texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [brief(value)]
        pairs = [(name, weight) if equals else (text, None)
                 for text in texts for name, equals, weight in [str(text).rpartition("=")]]
    found: dict[str, float] = {}
    for name, weight in pairs:
        try:
            found[name] = float(weight)
            if not abs(found[name]) <= _LARGE:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            given = name if weight is None else f"{name}={brief(weight)}"
            raise ConfigError(f"{where} is {brief(given)}; write {option.metavar}, for example spam=2.5.") from None
    return found


# What other tools call an option of ours.
_ELSEWHERE = {
    "lr": "learning-rate rate alpha eta eta0 step-size initial-lr",
    "threads": "workers jobs n-jobs num-jobs num-threads n-threads num-workers n-workers cores cpus parallel",
    "epochs": "iterations iters num-iterations passes num-passes num-epochs n-epochs max-iter max-epochs",
    "output": "out out-dir output-dir model model-dir save save-to destination",
    "batch": "batch-size minibatch minibatch-size",
    "l2": "regularization regularisation reg lambda weight-decay penalty",
    "valid": "validation validation-file valid-file val dev dev-file test test-file eval",
    "optimizer": "optimiser opt solver update-rule",
    "seed": "random-seed random-state rng-seed",
    "patience": "early-stopping early-stop",
    "quiet": "silent no-verbose no-progress",
    "log-dir": "logdir logs log tensorboard",
    "checkpoint-every": "checkpoint checkpoints save-every save-interval",
    "resume": "continue restart restore",
    "label": "target target-column label-column",
    "files": "train train-file data input inputs",
    "features": "n-features num-features dimensions dim",
    "dim": "size vector-size embedding-size dimension dimensions",
    "negatives": "negative neg negative-samples",
    "sample": "subsample subsampling t",
    "window": "ws window-size context",
    "start": "init pretrained pretrained-vectors initial-vectors",
    "rows": "n-rows num-rows samples n-samples num-samples",
    "nonzeros": "nnz",
    "hash-bits": "bits hash-size",
    "ngrams": "n-grams word-ngrams",
    "proba": "probabilities probs predict-proba",
}


def nearest(word: str, known: Iterable[str]) -> str:
    """' (did you mean …?)' for the known word that is called so elsewhere, or that is closest, or nothing."""
    names = {_bare(name): name for name in known}
    word = _bare(word)
    meant = [name for name, others in _ELSEWHERE.items() if word in others.split() and name in names]
    begun = [name for name in names if len(word) > 1 and name.startswith(word)]
    close = meant or (begun if len(begun) == 1 else difflib.get_close_matches(word, names, n=1, cutoff=0.6))
    return f" (did you mean {shorten(names[close[0]], 80)}?)" if close else ""


def _bare(name: str) -> str:
    """The name without what flags, keys and Python spell differently."""
    return name.lstrip("-").replace("_", "-")


# -- checks of whole dataclasses --

def check_names(config: type, names: Iterable[str]) -> None:
    """Raise ConfigError at a name that is no option."""
    known = options_of(config)
    for name in names:
        if name not in known:
            close = nearest(name, known)
            raise ConfigError(f"there is no option {brief(name)}{close}; options are {', '.join(known)}.")


def check_values(config: Any) -> None:
    """Raise ConfigError where a field holds none of its choices, a value of another type, or more than 64 bits."""
    for option in options_of(type(config)).values():
        value = getattr(config, option.name)
        if value is None and option.optional:
            continue
        if option.choices and not (isinstance(value, str) and value in option.choices):
            convert(option, value, option.name)
        if not _is_of(option.kind, value):
            raise ConfigError(f"{option.name} is {brief(value)}; it must be {_NOUNS.get(option.kind, 'a list')}.")
        if option.kind is int:
            _check_size(option, int(value), option.name)
        elif option.kind is float:
            _check_size(option, float(value), option.name)


def _is_of(kind: type, value: Any) -> bool:
    """Whether a value is of the kind; numbers of NumPy's are, and true and false are none."""
    truth = type(value).__name__ in ("bool", "bool_")
    if kind is bool:
        return truth or (isinstance(value, Integral) and value in (0, 1))
    if kind in (int, float):
        return not truth and isinstance(value, Integral if kind is int else Real)
    if kind is tuple:
        return isinstance(value, list | tuple) and all(isinstance(item, str | Integral) for item in value)
    return isinstance(value, Mapping if kind is dict else kind)


def require(config: Any, name: str, fits: bool, remedy: str) -> None:
    """Raise ConfigError about the field `name` unless it fits."""
    if not fits:
        raise ConfigError(f"{name} is {brief(getattr(config, name))}; {remedy}")


# -- TOML --

_TOML_LIMIT = 1 << 20  # bytes

def read_toml(path: str, config: type) -> dict[str, Any]:
    """Checked values by option name from a TOML file whose keys are flag names, with dashes or underscores."""
    table = _toml_table(path)
    known = {name: option for name, option in flags_of(config).items() if name != "config"}
    values: dict[str, Any] = {}
    others = {option.also: name for name, option in known.items() if option.also}
    for key, value in table.items():
        name = key.replace("-", "_")
        name = others.get(name, name)
        if name not in known:
            raise ConfigError(f"{path}: unknown key {brief(key)}{nearest(name, known)}; keys are the names of flags.")
        if name in values:
            raise ConfigError(f"{path}: {name} is given twice, in two spellings; keep one.")
        values[name] = convert(known[name], value, f"{path}: {key}")
    return values


def _toml_table(path: str) -> dict[str, Any]:
    """The table in a TOML file, which may be a pipe; no more is read of it than options can need."""
    try:
        text = read_start(path, _TOML_LIMIT).decode("utf-8-sig")
        return parse_toml(text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; --config needs a readable TOML file.") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {shorten(error)}.") from None


def to_toml(config: Any) -> str:
    """A dataclass of options as TOML that `read_toml` turns back into the same values. None is left out."""
    values = {name: _find(config, name) for name in flags_of(type(config)) if name != "config"}
    return "".join(f"{name} = {_toml(value)}\n" for name, value in values.items() if value is not None)


def _find(config: Any, name: str) -> Any:
    if hasattr(config, name) and not is_dataclass(getattr(config, name)):
        return getattr(config, name)
    nested = (getattr(config, item.name) for item in fields(config))
    return next(_find(part, name) for part in nested if is_dataclass(part) and name in options_of(type(part)))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return str(value)
