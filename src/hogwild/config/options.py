"""What an option is: a field of a frozen dataclass, with its type, default, and the docstring beneath it as help.

Flags, TOML keys, shell completion and the arguments of programs are all made from `groups_of`, and all values pass
through `convert`, so that a wrong value gets the same sentence wherever it comes from.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import re
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hogwild.config.tomltext import parse_toml, read_start
from hogwild.errors import ConfigError, brief, shorten

Built = TypeVar("Built")
Mark = TypeVar("Mark")


@dataclass(frozen=True)
class Shown:
    """How the value of an option is called in help; `positional` ones have no flag, `hidden` ones are for programs.

    many: the flag takes all the words that follow it; other lists have the flag once for each.
    also: another name that is understood, as flag and as TOML key, with underscores.
    bare: what the flag stands for without a value; then a word after it is one only if it ends as the metavar does.
    left_out: a word that stands for leaving the option out.
    least: the least number that a user may give, where the default is below it and stands for a choice that is made.
    """

    metavar: str = ""
    positional: bool = False
    hidden: bool = False
    many: bool = False
    also: str = ""
    bare: str = ""
    left_out: str = ""
    least: int | None = None


@dataclass(frozen=True)
class Variant:
    """One of the dataclasses that a field may hold; `fixed` values are no options."""

    config: type
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Marks a field that holds another dataclass for each value of the option `by`; the first is the default's."""

    by: str
    variants: Mapping[str, Variant]

    def of(self, choice: str) -> Variant:
        """The variant of a choice; "" stands for the default."""
        return self.variants[choice or next(iter(self.variants))]


@dataclass(frozen=True)
class Option:
    """One option. `kind` is int, float, str, bool, tuple or dict, `item` that of the items of a tuple; `choices` are
    all there are, or empty."""

    name: str
    kind: type
    item: type
    optional: bool
    choices: tuple[str, ...]
    default: Any
    help: str
    metavar: str
    shown: Shown

    @property
    def flag(self) -> str:
        """The option as written on a command line."""
        return self.metavar if self.shown.positional else "--" + self.name.replace("_", "-")

    @property
    def positional(self) -> bool:
        """Whether it has no flag."""
        return self.shown.positional

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags that stand for the option."""
        also = ("--" + self.shown.also.replace("_", "-"),) * bool(self.shown.also)
        return (self.flag, *also, *(("--no-" + self.flag[2:],) * (self.kind is bool)))


@dataclass(frozen=True)
class Group:
    """The options of one dataclass, and what they are about."""

    config: type
    title: str
    options: dict[str, Option]


@functools.cache
def groups_of(config: type, choice: str = "") -> tuple[Group, ...]:
    """The options of a dataclass: its own, then those of each dataclass in it, of which `choice` may choose one."""
    own: dict[str, Option] = {}
    inner: list[Group] = []
    hints, helps = get_type_hints(config, include_extras=True), _help_of(config)
    for item in _own_first(config):
        hint = hints[item.name]
        if isinstance(hint, type) and is_dataclass(hint):
            inner += groups_of(hint)
        elif chosen := _mark(hint, Chosen):
            variant = chosen.of(choice)
            for group in groups_of(variant.config):
                left = {name: option for name, option in group.options.items() if name not in variant.fixed}
                inner.append(replace(group, options=left))
        else:
            default = item.default_factory() if item.default_factory is not MISSING else item.default
            own[item.name] = _option(item.name, hint, None if default is MISSING else default, helps.get(item.name, ""))
    title = re.split("[.;:]", inspect.getdoc(config) or "", maxsplit=1)[0]
    return (Group(config, title, own), *inner)


@functools.cache
def options_of(config: type, choice: str = "") -> dict[str, Option]:
    """The options of a dataclass by name; see `groups_of`."""
    return {name: option for group in groups_of(config, choice) for name, option in group.options.items()}


def flags_of(config: type, choice: str = "") -> dict[str, Option]:
    """The options that a user may give."""
    return {name: option for name, option in options_of(config, choice).items() if not option.shown.hidden}


def chosen_of(config: type) -> Chosen | None:
    """What a dataclass says about the dataclass in it that is chosen; None if there is none."""
    marks = (_mark(hint, Chosen) for hint in get_type_hints(config, include_extras=True).values())
    return next((mark for mark in marks if mark), None)


def choices_of(config: type) -> tuple[str, ...]:
    """All that `choice` may be for the dataclass; the first is the default."""
    chosen = chosen_of(config)
    return tuple(chosen.variants) if chosen else ("",)


def build(config: type[Built], values: Mapping[str, Any], choice: str = "") -> Built:
    """A dataclass from checked values by name."""
    parts: dict[str, Any] = {}
    hints = get_type_hints(config, include_extras=True)
    for item in fields(config):  # type: ignore[arg-type]
        hint = hints[item.name]
        if isinstance(hint, type) and is_dataclass(hint):
            parts[item.name] = build(hint, values)
        elif chosen := _mark(hint, Chosen):
            variant = chosen.of(choice)
            parts[item.name] = build(variant.config, {**values, **variant.fixed})
        elif item.name in values:
            parts[item.name] = values[item.name]
    return config(**parts)


def _own_first(config: type) -> list[Field[Any]]:
    """The fields as help has them: those of a class before those that it inherits."""
    level: dict[str, int] = {}
    for depth, base in enumerate(config.__mro__):
        level.update(dict.fromkeys(vars(base).get("__dataclass_fields__", ()), depth))
    return sorted(fields(config), key=lambda item: level[item.name])


def _mark(hint: Any, kind: type[Mark]) -> Mark | None:
    """What an annotation says of this kind."""
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, kind)), None)


def _option(name: str, hint: Any, default: Any, help_text: str) -> Option:
    shown = _mark(hint, Shown) or Shown()
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    optional = get_origin(hint) in (Union, types.UnionType)
    if optional:
        hint = next(part for part in get_args(hint) if part is not type(None))
    choices = tuple(get_args(hint)) if get_origin(hint) is Literal else ()
    kind = str if choices else (get_origin(hint) or hint)
    item = get_args(hint)[0] if kind is tuple else str
    metavar = "{" + ",".join(choices) + "}" if choices else {int: "N", float: "X", bool: ""}.get(kind, "TEXT")
    return Option(name, kind, item, optional, choices, default, help_text, shown.metavar or metavar, shown)


def _help_of(config: type) -> dict[str, str]:
    """The string beneath each field, as written in the source; of a field that is given anew, the new one."""
    found: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if is_dataclass(base):
            found |= _helps_in(base.__module__).get(base.__name__, {})
    return found


@functools.cache
def _helps_in(module: str) -> dict[str, dict[str, str]]:
    """The strings beneath the fields of all classes of a module."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):  # installed without sources: options work, help is bare
        return {}
    return {node.name: _helps_beneath(node.body) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _helps_beneath(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for before, node in pairwise(body):
        match before, node:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found


# -- values --

_NOUNS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_LEAST, _MOST = -(2**63), 2**64 - 1  # whole numbers that compiled code has types for
_LARGE = 1e30  # float32 ends at 3e38, and numbers are multiplied
_NAMES = ("FILE", "FILE...", "FILE.json", "TRAIN...", "DIR", "MODEL", "MODEL|FILE")


def convert(option: Option, value: Any, where: str) -> Any:
    """A value of the option's type from text or from a TOML value; `where` begins the error message."""
    if option.shown.left_out and value == option.shown.left_out:
        return option.default
    wrong = ConfigError(f"{where} is {brief(value)}; it must be {_NOUNS.get(option.kind, 'a list of texts')}.")
    if option.kind is bool and isinstance(value, bool):
        return value
    if option.kind is tuple:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str | int) for item in items):
            raise wrong
        if option.item is int:
            return _whole_numbers(option, items, where)
        return tuple(_text(option, item, where) for item in items)
    if option.kind is dict:
        return _convert_pairs(option, value, where)
    if option.kind is bool or isinstance(value, bool) or not isinstance(value, str | int | float):
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
    if option.shown.least is not None and number < option.shown.least:
        raise ConfigError(f"{where} is {brief(number)}; it must be at least {option.shown.least}, or be left out.")
    return number


def _whole_numbers(option: Option, items: Iterable[str | int], where: str) -> tuple[int, ...]:
    """Whole numbers, several in one text with commas between them."""
    found: list[int] = []
    for item in items:
        for word in item.split(",") if isinstance(item, str) else [item]:
            try:
                found.append(int(word))
            except ValueError:
                example = ",".join(map(str, option.default or (1, 2, 4)))
                raise ConfigError(
                    f"{where} is {brief(word)}; write whole numbers with commas between them, such as {example}."
                ) from None
            _check_size(option, found[-1], where)
    return tuple(found)


def _check_size(option: Option, number: float, where: str) -> None:
    """Raise ConfigError for a number that compiled code has no type for."""
    if int in (option.kind, option.item) and not _LEAST <= number <= _MOST:
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
    if option.metavar in _NAMES and (len(text) > 4095 or max(map(len, text.split("/"))) > 255):
        raise ConfigError(f"{where} is {brief(text)}; no file has so long a name.")
    return text


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
        if name in found:
            raise ConfigError(f"{where} names {brief(name)} twice; give it one weight.")
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
    "start-vectors": "pretrained pretrained-vectors word-vectors embeddings glove vectors",
    "hidden": "hidden-size hidden-dim units lstm-size",
    "layers": "num-layers n-layers depth",
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
    """Raise ConfigError where a field holds none of its choices, a value of another type, or more than 64 bits.

    Numbers of NumPy's become Python's and lists tuples, so that all values are as JSON has them.
    """
    kind: type = type(config)
    for option in options_of(kind).values():
        value = getattr(config, option.name)
        if value is None and option.optional:
            continue
        if option.choices and not (isinstance(value, str) and value in option.choices):
            convert(option, value, option.name)
        if option.item is int and isinstance(value, list | tuple):
            value = convert(option, [int(item) if isinstance(item, Integral) else item for item in value], option.name)
        if not _is_of(option.kind, value):
            raise ConfigError(f"{option.name} is {brief(value)}; it must be {_NOUNS.get(option.kind, 'a list')}.")
        if option.kind in (int, float):
            _check_size(option, option.kind(value), option.name)
        if option.kind in (int, float, bool, tuple):
            object.__setattr__(config, option.name, option.kind(value))  # frozen, but not finished before this


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


def require_not_negative(config: Any, *names: str, remedy: str = "") -> None:
    """Raise ConfigError about a field of these that is below 0."""
    for name in names:
        value = getattr(config, name)
        require(config, name, value is None or value >= 0, f"it must not be negative. {remedy}".rstrip())


class Config:
    """Base of the dataclasses of options: what they hold is checked when they are made."""

    def __post_init__(self) -> None:
        check_values(self)
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""


# -- TOML --

_TOML_LIMIT = 1 << 20  # bytes


def values_of(table: Mapping[str, Any], path: str, known: Mapping[str, Option]) -> dict[str, Any]:
    """Checked values by option name from the table of a TOML file; its keys are flag names, with dashes or not."""
    values: dict[str, Any] = {}
    keys = {key: name for name, option in known.items() for key in (name, option.shown.also) if key}
    keys.pop("config", None)
    for key, value in table.items():
        name = keys.get(key.replace("-", "_"))
        if name is None:
            close = nearest(key, keys)
            raise ConfigError(f"{path}: unknown key {brief(key)}{close}; keys are the names of flags.")
        if name in values:
            raise ConfigError(f"{path}: {name} is given twice, in two spellings; keep one.")
        values[name] = convert(known[name], value, f"{path}: {key}")
    return values


def read_toml(path: str) -> dict[str, Any]:
    """The table in a TOML file, which may be a pipe; no more is read of it than options can need."""
    try:
        text = read_start(path, _TOML_LIMIT).decode("utf-8-sig")
        return parse_toml(text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; --config needs a readable TOML file.") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {shorten(error)}.") from None
