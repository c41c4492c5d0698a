"""Which column of a table is what: found by name or number, decided once, and found again in every other file."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.labels import NAMES, TEXT_NAME
from hogwild.feeds.tables.fields import COLUMN, MOSTLY, SEVERAL, FieldRules, doubt_of, is_prose, is_text, mostly_differ
from hogwild.messages import listed, shown

SAMPLE = 1000  # rows from which columns are judged
_SLOT = "missing"
NUMERIC, CATEGORICAL = "numeric", "categorical"
SEVERAL_VALUES = "of several values"
SEPARATOR = "|"  # between the values of a field, where the user names none
NO_WEIGHT = "none"  # stands for no column of weights


@dataclass(frozen=True)
class Plan:
    """Which column is what. `columns` are all of the first file; without a header their names are 0, 1, …

    multi: columns whose fields hold several values; separators: what stands between these in text, for each.
    """

    columns: tuple[str, ...]
    header: bool
    label: str
    text: str = ""
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    multi: tuple[str, ...] = ()
    separators: tuple[str, ...] = ()
    weight: str = ""
    interactions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def known(cls, schema: Mapping[str, Any]) -> Plan:
        """The plan that an earlier feed was read by. Raises ValueError if there can be no such plan."""
        columns, numeric, categorical = (tuple(schema[name]) for name in ("columns", "numeric", "categorical"))
        multi, separators = (tuple(schema.get(name, ())) for name in ("multi", "separators"))
        weight = schema.get("weight", "")
        pairs = tuple((left, right) for left, right in schema.get("interactions", ()))
        plan = cls(columns, schema["header"], schema["label"], schema["text"], numeric, categorical, multi, separators,
                   weight, pairs)  # fmt: skip
        used = (plan.label, *plan.features(), *([weight] if weight else ()))
        known = set(used) <= set(columns) and all(isinstance(name, str) for name in columns)
        if len(used) < 2 or not known or len(multi) != len(separators) or not all(separators):
            raise ValueError("no such columns")
        return plan

    def schema(self) -> dict[str, Any]:
        """JSON values from which `known` makes this plan again."""
        parts = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        parts["interactions"] = [list(pair) for pair in self.interactions]
        return {name: value for name, value in parts.items() if value or name not in ("weight", "interactions")}

    def features(self) -> tuple[str, ...]:
        """The columns that become features."""
        return (*self.numeric, *self.categorical, *self.multi, *((self.text,) if self.text else ()))

    def words(self) -> tuple[str, ...]:
        """The columns of words, each of which is a slot for models that have slots."""
        return (*self.categorical, *self.multi)


def names_of(fields: Sequence[str]) -> tuple[str, ...]:
    """Column names from the fields of a header: without blanks around them, and none empty.

    >>> names_of(["", " age "])
    ('column 0', 'age')
    """
    return tuple(field.strip() or f"column {k}" for k, field in enumerate(fields))


def numbers_of(count: int) -> tuple[str, ...]:
    """Names of the columns of a table without a header."""
    return tuple(str(k) for k in range(count))


def find_column(wanted: str, columns: Sequence[str], option: str, where: str) -> str:
    """The name of the column that a user means by its name or number. Raises ConfigError if there is none."""
    if columns.count(wanted) > 1:
        twice = f"two columns are named `{shown(wanted)}`"
        raise InputError(f"{where}: {twice}; rename one, or give its number with {option}.")
    if wanted in columns:
        return wanted
    try:
        number = int(wanted)
    except ValueError:
        number = len(columns)
    if -len(columns) <= number < len(columns):
        return columns[number]
    close = difflib.get_close_matches(wanted, columns, 1) or [c for c in columns if c.lower() == wanted.lower()]
    hint = f" Did you mean `{shown(close[0])}`?" if close else ""
    raise ConfigError(f"{where}: there is no column `{shown(wanted)}` ({option}); {list_columns(columns)}.{hint}")


def list_columns(columns: Sequence[str]) -> str:
    """The columns as a message lists them."""
    if columns == numbers_of(len(columns)):
        return f"the file has no header and {len(columns)} columns, 0 to {len(columns) - 1}"
    return f"the columns are {listed(columns)}"


def named_by_user(config: FeedConfig) -> set[str]:
    """Columns that the configuration calls by a name that is no number."""
    named = {config.label, config.text, config.weight}
    named |= {name for pair in config.interactions for part in pair.split(",") for name in part.split(":")}
    for names in (config.numeric, config.categorical, config.ignore):
        named |= {*names, *split_names(names, ())}
    named |= {part for text in config.multi for part in (text, text.partition(":")[0], text.rpartition(":")[0])}
    return {name for name in named if name and not name.lstrip("+-").isdigit()}


def split_names(wanted: Sequence[str], columns: Collection[str]) -> list[str]:
    """The names of columns that a user lists; one that has commas and is no column is several.

    >>> split_names(["id", "name,age", "a,b"], ["id", "name", "age", "a,b"])
    ['id', 'name', 'age', 'a,b']
    """
    return [part for name in wanted for part in ([name] if name in columns else name.split(",")) if part]


def split_multi(wanted: Sequence[str], columns: Collection[str]) -> dict[str, str]:
    """The columns of several values that a user lists as COLUMN or COLUMN:SEPARATOR, each with its separator.

    >>> split_multi(["tags", "a:b", "words: ", "c::"], ["tags", "a:b", "words", "c"])
    {'tags': '|', 'a:b': '|', 'words': ' ', 'c': ':'}
    """
    found = {}
    for text in wanted:
        cuts = [k for k, sign in enumerate(text) if sign == ":" and k] if text not in columns else []
        # The longest name that there is; else what stands before the first colon, which will be missed by its name.
        cut = next((k for k in reversed(cuts) if text[:k] in columns), cuts[0] if cuts else len(text))
        name, separator = text[:cut], text[cut + 1 :] if cut < len(text) else SEPARATOR
        if not separator:
            raise ConfigError(f"--multi {shown(text)} names no separator; write --multi {shown(name)}:SEPARATOR.")
        found[name] = separator
    return found


def separators_of(config: FeedConfig, plan: Plan | None) -> set[str]:
    """What stands between the values of a field, which then is nothing that stands between fields."""
    told = {text.partition(":")[2] or text.rpartition(":")[2] if ":" in text else SEPARATOR for text in config.multi}
    return told | set(plan.separators if plan else ())


def found_names(wanted: Sequence[str], columns: Sequence[str], option: str, where: str = "") -> set[str]:
    """The columns that a user lists."""
    known = set(columns)
    return {name if name in known else find_column(name, columns, option, where) for name in split_names(wanted, known)}


def has_header(
    first: Sequence[str], rest: Sequence[Sequence[str]], config: FeedConfig, plan: Plan | None, rules: FieldRules
) -> bool:
    """Whether the first line of a file names its columns; `rest` are the lines after it.

    A known header is recognised by its names. Otherwise: a name that the user gave, or no number in the first line
    but a column of numbers below it, or a column with a usual name, or words that do not occur below, where a column
    has the same ones again and again.
    """
    if config.header != "auto":
        return config.header == "yes"
    names = names_of(first)
    if plan is not None:
        return plan.header and bool({plan.label, *plan.features()} & set(names))
    if named_by_user(config) & set(names):
        return True
    if any(rules.number_of(field) is not None for field in first):
        return False
    below = [[row[k] for row in rest if k < len(row)] for k in range(len(first))]
    if any(rules.all_numbers(fields) for fields in below) or any(name.lower() in (*NAMES, TEXT_NAME) for name in names):
        return True
    new = len(set(names)) == len(names) and all(field not in fields for field, fields in zip(first, below, strict=True))
    return new and len(rest) >= SEVERAL and any(2 * len(set(fields)) <= len(fields) for fields in below)


class Sample(NamedTuple):
    """The first rows of a table: for each column what it is (numeric, categorical, or why it cannot be a feature), and
    of columns of words the fields that are not missing."""

    kinds: Mapping[str, str]
    fields: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]], rules: FieldRules) -> Sample:
        """From fields as they stand in a file."""
        kinds = {name: NUMERIC if rules.all_numbers(fields) else CATEGORICAL for name, fields in columns.items()}
        words = {name: rules.present(fields) for name, fields in columns.items() if kinds[name] == CATEGORICAL}
        return cls(kinds, words)

    def words(self, name: str) -> Sequence[str]:
        """The fields of a column of words."""
        return self.fields.get(name, ())


def check_names(columns: Sequence[str], where: str) -> None:
    """Raise InputError where two columns have one name."""
    repeated, times = Counter(columns).most_common(1)[0]
    if times > 1:
        raise InputError(f"{where}: two columns are named `{shown(repeated)}`; rename one of them.")


def make_plan(config: FeedConfig, columns: tuple[str, ...], header: bool, sample: Sample, where: str) -> Plan:
    """Decide what each column is: as the user says, else by its first fields."""
    kinds = [sample.kinds[name] for name in columns]
    label = _find_label(config, columns, sample, where)
    places = {name: place for place, name in enumerate(columns)}

    def find(wanted: str, option: str) -> str:
        return wanted if wanted in places else find_column(wanted, columns, option, where)

    taken = {label: "--label"}
    unweighed = not config.weight or (config.weight == NO_WEIGHT and NO_WEIGHT not in places)
    weight = "" if unweighed else _take(taken, [config.weight], "--weight", find)[0]
    text = _take(taken, [config.text], "--text", find)[0] if config.text else ""
    numeric = _take(taken, split_names(config.numeric, places), "--numeric", find)
    categorical = _take(taken, split_names(config.categorical, places), "--categorical", find)
    asked = split_multi(config.multi, places)
    separators = dict(zip(_take(taken, list(asked), "--multi", find), asked.values(), strict=True))
    ignored = {find(name, "--ignore") for name in split_names(config.ignore, places)}
    for name in (*([text] if text else ()), *numeric, *categorical, *separators):
        kind = kinds[places[name]]
        if kind == SEVERAL_VALUES and name not in separators:
            remedy = f"leave out {taken[name]}, and it is read as several values"
            raise InputError(f"{where}: column `{shown(name)}` holds lists, not one value a row; {remedy}.")
        if kind not in (NUMERIC, CATEGORICAL, SEVERAL_VALUES):
            raise InputError(f"{where}: column `{shown(name)}` {kind}.")
    if not text:  # with a text column the others count only if they are declared
        left = [name for name in columns if name not in taken and name not in ignored]
        words = [name for name in left if sample.kinds[name] == CATEGORICAL]
        if len(left) == 1 and words and not numeric and not categorical and not separators:
            text = left[0] if left[0].lower() == TEXT_NAME or is_text(sample.words(left[0])) else ""
        _check_prose([] if text else words, sample, where)
        for name, kind in zip(columns, kinds, strict=True):
            if name in taken or name in ignored or name == text:
                continue
            if kind == SEVERAL_VALUES:
                separators[name] = SEPARATOR
                continue
            if kind not in (NUMERIC, CATEGORICAL):
                short = shown(name)
                raise InputError(f"{where}: column `{short}` {kind}, or leave it out with --ignore {short}.")
            (numeric if kind == NUMERIC else categorical).append(name)
    multi = _ordered(list(separators), columns)
    plan = Plan(columns, header, label, text, _ordered(numeric, columns), _ordered(categorical, columns), multi,
                tuple(separators[name] for name in multi), weight)  # fmt: skip
    if not plan.features():
        beside = f"the label `{shown(label)}`"
        raise InputError(f"{where}: no column is left for features beside {beside}; check the delimiter.")
    return plan


def _find_label(config: FeedConfig, columns: tuple[str, ...], sample: Sample, where: str) -> str:
    """The column that the user names, or one with a usual name, or the first that is no text."""
    if config.label:
        return find_column(config.label, columns, "--label", where)
    usual = next((name for usual in NAMES for name in columns if name.lower() == usual), "")
    if usual:
        return usual
    ignored = found_names(config.ignore, columns, "--ignore", where)
    if config.weight and config.weight != NO_WEIGHT:
        ignored.add(find_column(config.weight, columns, "--weight", where))
    texts = {name for name, fields in sample.fields.items() if is_prose(fields)}
    if config.text:
        texts.add(find_column(config.text, columns, "--text", where))
    label = next((name for name in columns if name not in texts and name not in ignored), columns[0])
    fields = sample.words(label)
    if mostly_differ(fields):
        told = f"no column is named as labels are, and `{shown(label)}`, such as `{shown(fields[0])}`"
        raise InputError(f"{where}: {told}, differs in nearly every row; say which one is the label with --label.")
    return label


def _check_prose(words: Sequence[str], sample: Sample, where: str) -> None:
    """Raise InputError for a column of free text that would be read as categories."""
    for name in words:
        fields = sample.words(name)
        if is_prose(fields):
            short = shown(name)
            told = f"column `{short}` holds free text, such as `{shown(fields[0])}`, and each would be one category"
            raise InputError(f"{where}: {told}; read it with --text {short}, or leave it out with --ignore {short}.")


def _take(taken: dict[str, str], wanted: Sequence[str], option: str, find: Callable[[str, str], str]) -> list[str]:
    found = []
    for each in wanted:
        name = find(each, option)
        if name in taken:
            both = f"{taken[name]} and {option}"
            raise ConfigError(f"column `{shown(name)}` is named by both {both}; it can only be one.")
        taken[name] = option
        found.append(name)
    return found


def _ordered(names: Sequence[str], columns: tuple[str, ...]) -> tuple[str, ...]:
    wanted = set(names)
    return tuple(name for name in columns if name in wanted)


def place_columns(
    plan: Plan, names: tuple[str, ...] | None, count: int, config: FeedConfig, where: str
) -> dict[str, int]:
    """Where in another file the columns of a plan stand; the label is left out if the file has none and may.

    names: those of its header, None if it has none; count: its columns. A label column that the configuration names and
    that the header has stands for the plan's.
    """
    if names is None:
        names = plan.columns
        spare = ({plan.label}, {plan.label, plan.weight}) if config.unlabelled else ()
        for left_out in spare:
            if count == len(plan.columns) - len(left_out):
                names = tuple(name for name in plan.columns if name not in left_out)
        if count != len(names):
            expected = list_columns(plan.columns)
            raise InputError(f"{where}: {count} columns found, {len(plan.columns)} expected; {expected}.")
    label = config.label if config.label in names else plan.label
    found = {name: place for place, name in enumerate(names)}
    for name in plan.features():
        if name not in found:
            missing = f"column `{shown(name)}` is missing, which was there before"
            raise InputError(f"{where}: {missing}; {list_columns(names)}.")
    places = {name: found[name] for name in plan.features()}
    if weight := weight_column(plan, names, config, where):
        places[weight] = found[weight]
    if label in found:
        places[plan.label] = found[label]
    elif not config.unlabelled:
        raise InputError(f"{where}: the label column `{shown(label)}` is missing; {list_columns(names)}.")
    return places


def weight_column(plan: Plan, names: Sequence[str], config: FeedConfig, where: str) -> str:
    """The column of a file with the weights of its rows: what the configuration names, else the plan's; none for a
    prediction, which needs none."""
    asked = config.weight or plan.weight
    if config.unlabelled or not asked or (asked == NO_WEIGHT and asked not in names):
        return ""
    by_number = asked.lstrip("+-").isdigit() and asked not in names
    wanted = plan.weight if by_number and plan.weight else asked
    if wanted == plan.weight and wanted not in names:
        remedy = f"give another with --weight, or {NO_WEIGHT} for none"
        raise InputError(f"{where}: the weight column `{shown(wanted)}` is missing; {remedy}; {list_columns(names)}.")
    return find_column(wanted, names, "--weight", where)


def describe(plan: Plan, config: FeedConfig) -> list[str]:
    """What was decided that the user did not say, for notes."""
    notes = []
    if not config.label:
        notes.append(f"The label is column `{shown(plan.label)}` (--label chooses another).")
    if plan.text and not config.text:
        notes.append(f"Column `{shown(plan.text)}` is read as text (--categorical reads whole fields as categories).")
    if plan.text:
        used = {plan.label, plan.weight, *plan.features(), *found_names(config.ignore, plan.columns, "--ignore")}
        groups = {"not read": tuple(name for name in plan.columns if name not in used)}
    elif config.numeric and config.categorical:
        groups = {}
    else:
        groups = {NUMERIC: plan.numeric, CATEGORICAL: plan.categorical, SEVERAL_VALUES: plan.multi}
    parts = [f"{len(names)} {kind} ({listed(names)})" for kind, names in groups.items() if names]
    return [*notes, f"Columns: {'; '.join(parts)}."] if parts else notes


def doubts_of(sample: Sample, plan: Plan, config: FeedConfig, rules: FieldRules) -> dict[str, str]:
    """Columns that are read as words, and what they were perhaps meant to be."""
    doubts, declared = {}, found_names(config.categorical, plan.columns, "--categorical")
    for name in plan.categorical:
        short, fields = shown(name), sample.words(name)
        if name in declared or name not in sample.fields:
            continue
        if doubt := doubt_of(fields, rules):
            doubts[name] = doubt.replace(f"--multi {COLUMN}", f"--multi {short}")
        elif config.categories == "hash" and mostly_differ(fields):
            doubts[name] = f"nearly every one of the first rows has its own (--ignore {short}?)"
    return doubts


def check_differing(counts: Mapping[str, tuple[int, int]], doubts: Mapping[str, str], where: str) -> None:
    """Raise InputError for a column of categories of which nearly every row has its own.

    counts: of each column how many fields there are, and how many different ones. doubts: what they may be.
    """
    for name, (fields, distinct) in counts.items():
        if fields >= SEVERAL and distinct >= MOSTLY * fields:
            short = shown(name)
            why = f"and {doubts[name]}" if name in doubts else "which tell nothing of other rows"
            raise InputError(
                f"{where}: column `{short}` has {distinct:,} different words in {fields:,} rows, {why}; leave it out"
                f" with --ignore {short} (--text {short} reads texts, --multi {short} several values, --categorical"
                f" {short} keeps it)."
            )


def slot_schema(plan: Plan, marked: bool) -> dict[str, Any]:
    """Names of slots and dense columns; marked: whether there are features that say that a number is missing."""
    names = [*plan.words(), *((plan.text,) if plan.text else ())]
    own = _SLOT
    while own in plan.columns:
        own += " number"
    return {"slots": [*names, own] if marked else names, "dense": list(plan.numeric)}
