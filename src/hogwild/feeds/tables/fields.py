"""Fields of tables: which are missing, and how numbers and dates are written.

CSV and its kin, Parquet, Arrow and frames all pass through here: a field is missing if it is empty, null, NaN, or one
of the words that stand for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hogwild.arrays import number_of
from hogwild.config import MISSING, FeedConfig
from hogwild.messages import shown

ISO = "iso"
COLUMN = "COLUMN"  # stands for the name of a column in what is told of it
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
YEAR = 365.2425 * 86400  # seconds
MOSTLY = 0.9  # share of fields from which on a column is taken for what these are

_SIGN = r"(?:[$€£¥₹%]|[A-Z]{3})?"
_STYLES = {
    style: re.compile(
        rf"([-+]?)\s?{_SIGN}\s?([-+]?)((?:\d{{1,3}}(?:[{apart}'\s]\d{{3}})+|\d+)?(?:{point}\d*)?(?:[eE][-+]?\d+)?)\s?{_SIGN}"
    )
    for style, apart, point in (("point", ",", r"\."), ("comma", r"\.", ","))
}
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DATES = (ISO, *(day + time for day in ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y") for time in _TIMES))


class FieldRules:
    """What the fields of a table mean.

    Parameters
    ----------
    missing
        Words that stand for a missing value, in small or capital letters, with blanks around them or not.
    style
        How numbers are written: `plain`, `point` (1,234.5 and $31) or `comma` (1.234,5 and 31 €).
    dates
        How dates are written, `iso` or as strptime has it; they are numbers of years. Empty: they are words.

    Examples
    --------
    >>> rules = FieldRules(("NA", "?"), "comma", "%d.%m.%Y")
    >>> [rules.is_missing(word) for word in ("", "na", " ? ", "Na+")]
    [True, True, True, False]
    >>> rules.number_of("1.234,5"), rules.number_of("12 €"), rules.number_of("12 apples")
    (1234.5, 12.0, None)
    >>> round(rules.number_of("1.1.2001"), 3)
    1.002
    """

    def __init__(self, missing: Sequence[str] = MISSING, style: str = "plain", dates: str = "") -> None:
        self.missing, self.style, self.dates = tuple(missing), style, dates
        self._known = {"", *(word.strip().lower() for word in missing)}
        self._array = pa.array(sorted(self._known))
        numbers = [number for word in self._known if (number := self.number_of(word)) is not None]
        self.codes = frozenset(number for number in numbers if number == number)  # -999 and the like

    @classmethod
    def of(cls, config: FeedConfig, schema: Mapping[str, Any]) -> FieldRules:
        """As in training, else as the user says."""
        if not schema:
            return cls(config.missing, config.number_style, config.dates)
        return cls(schema.get("missing", MISSING), schema.get("number_style", "plain"), schema.get("dates", ""))

    def schema(self) -> dict[str, Any]:
        """JSON values from which `of` makes them again."""
        return {"missing": list(self.missing), "number_style": self.style, "dates": self.dates}

    def labels(self) -> frozenset[str]:
        """Words that are no label: only those that the user named, as `-` and `None` may well be classes."""
        return frozenset() if self.missing == MISSING else frozenset(self._known)

    def is_missing(self, word: str) -> bool:
        """Whether a field is missing."""
        return word.strip().lower() in self._known

    def missing_among(self, words: Any) -> npt.NDArray[np.bool_]:
        """Which strings of an Arrow array are missing."""
        bare = pc.utf8_lower(pc.utf8_trim_whitespace(words)).fill_null("")
        return np.asarray(pc.is_in(bare, value_set=self._array.cast(bare.type)))

    def without_codes(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Numbers, with NaN for those that stand for a missing one."""
        return np.where(np.isin(numbers, list(self.codes)), np.nan, numbers) if self.codes else numbers

    def number_of(self, word: str) -> float | None:
        """The number that a field is, or None."""
        number = number_of(word) if self.style == "plain" else _styled(word, self.style)
        if number is None and self.dates:
            return _years_of(word.strip(), self.dates)
        return number

    def present(self, fields: Sequence[str]) -> list[str]:
        """The fields that are not missing."""
        known = self._known
        return [field for field in fields if field.strip().lower() not in known]

    def all_numbers(self, fields: Sequence[str]) -> bool:
        """Whether there is a number among the fields, and nothing else but missing ones."""
        present = self.present(fields)
        # Infinite ones count: in a column of numbers they shall be an error, not a category.
        return bool(present) and all(self.number_of(field) is not None for field in present)


# -- what a column is, by its first fields --------------------------------------------------------------------------

SEVERAL = 30  # fields, from which on it means something that all differ
_TEXT, _PROSE = 3, 4  # words of a field on average, where it may be text, and where it hardly can be anything else


def mostly_differ(fields: Sequence[str], distinct: int = 0) -> bool:
    """Whether nearly every field is another one; distinct: how many there are, if that is known."""
    return len(fields) >= SEVERAL and (distinct or len(set(fields))) >= MOSTLY * len(fields)


def words_of(fields: Sequence[str]) -> float:
    """Words of a field on average."""
    return sum(len(field.split()) for field in fields) / max(1, len(fields))


def is_text(fields: Sequence[str]) -> bool:
    """Whether fields may be text: they have several words."""
    return words_of(fields) >= _TEXT


def is_prose(fields: Sequence[str]) -> bool:
    """Whether fields can hardly be anything but free text: many words, and nearly all differ."""
    return mostly_differ(fields) and words_of(fields) >= _PROSE


def style_of(word: str) -> str:
    """The notation in which a word would be a number, or nothing."""
    return next((style for style in _STYLES if number_of(word) is None and _styled(word, style) is not None), "")


def _styled(word: str, style: str) -> float | None:
    found = _STYLES[style].fullmatch(word.strip())
    if found is None:
        return number_of(word) if style == "point" else None
    before, after, digits = found.groups()
    bare = re.sub(r"[\s'" + (",]" if style == "point" else ".]"), "", digits).replace(",", ".")
    number = number_of(bare)
    return None if number is None or (before and after) else -number if "-" in (before, after) else number


def years(day: date) -> float:
    """Years from the beginning of 2000 to a day or a moment; one without a time zone is one of UTC."""
    moment = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH).total_seconds() / YEAR


def _years_of(word: str, form: str) -> float | None:
    with suppress(ValueError):
        return years(datetime.fromisoformat(word) if form == ISO else datetime.strptime(word, form))
    return None


def doubt_of(present: Sequence[str], rules: FieldRules) -> str:
    """What a column of words was perhaps meant to be, for a note: an example, and the option. Empty: just words.

    present: its first fields, those that are not missing.
    """
    if not present:
        return "none of its first fields is there (see --numeric)"
    few = len(present) * (1 - MOSTLY)

    def are_few(odd: Iterable[str]) -> bool:
        return all(count < few for count, _ in enumerate(odd, 1))  # looks no further than it must

    if are_few(field for field in present if rules.number_of(field) is None):
        odd = {field for field in present if rules.number_of(field) is None}
        words = ", ".join(f"`{shown(word)}`" for word in sorted(odd)[:3])
        return f"among its numbers is {words} (see --missing and --numeric)"
    for style in ("point", "comma"):
        if are_few(field for field in present if _styled(field, style) is None):
            example = next(
                field for field in present if rules.number_of(field) is None and _styled(field, style) is not None
            )
            return f"`{shown(example)}` would be a number with --number-style {style}"
    for form in _DATES:
        if _years_of(present[0].strip(), form) is not None and all(
            _years_of(field.strip(), form) is not None for field in present
        ):
            return f"`{shown(present[0])}` would be a date with --dates '{form}'"
    for separator in ("|", ";"):
        several = [field for field in present if separator in field]
        parts = {part.strip() for field in present for part in field.split(separator)}
        if 2 * len(several) >= len(present) and len(parts) < len(set(present)):
            return f"`{shown(several[0])}` would be several values with --multi {COLUMN}:'{separator}'"
    return ""
