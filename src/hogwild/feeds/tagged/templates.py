"""Feature templates: what is looked at around a token, from text with one template a line.

A template is one or more atoms joined by `|`. An atom is a column, with or without transforms, at an offset:
`w[0]`, `w[-1]|w[0]`, `suffix(lower(w),3)[0]`, `same(w)[0,-2]`; the template `bias` looks at nothing. Lines of CRF++
(`U05:%x[-1,0]/%x[0,0]`, `B`) are templates too, with columns by number: `%0[-1]|%0[0]`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import NamedTuple

from hogwild.config.options import nearest
from hogwild.config.tomltext import read_start
from hogwild.errors import InputError
from hogwild.messages import shown

# -- presets: plain text, as in a file of templates -------------------------------------------------------------------

YES = "1"  # the value of a test that holds; one that does not gives no feature


def _preset(about: str, templates: str, include: str = "") -> str:
    """One template a line, after what they are and the preset that they go on from."""
    return "\n".join((f"# {about}", *([f"@include {include}"] if include else []), *templates.split(), ""))


_WINDOW = "w[-2] w[-1] w[0] w[1] w[2]"
PRESETS = {
    "chunking": _preset(
        "Words and parts of speech in a window of two, pairs of words, pairs and triples of parts of speech.",
        f"""{_WINDOW} pos[-2] pos[-1] pos[0] pos[1] pos[2] w[-1]|w[0] w[0]|w[1]
        pos[-2]|pos[-1] pos[-1]|pos[0] pos[0]|pos[1] pos[1]|pos[2]
        pos[-2]|pos[-1]|pos[0] pos[-1]|pos[0]|pos[1] pos[0]|pos[1]|pos[2]""",
    ),
    "chunking-more": _preset(
        "As chunking; words with parts of speech, words in lower case, beginnings and endings.",
        """w[0]|pos[0] w[-1]|pos[0] w[0]|pos[1] w[0]|pos[-1] w[1]|pos[0] lower(w)[-1] lower(w)[0] lower(w)[1]
        prefix(w,2)[0] prefix(w,3)[0] prefix(w,4)[0] suffix(w,2)[0] suffix(w,3)[0] suffix(w,4)[0]""",
        include="chunking",
    ),
    "pos": _preset(
        "Words in a window of two, pairs of words; beginnings, endings and shape of the word itself.",
        f"""{_WINDOW} w[-1]|w[0] w[0]|w[1] lower(w)[0]
        prefix(lower(w),1)[0] prefix(lower(w),2)[0] prefix(lower(w),3)[0] prefix(lower(w),4)[0]
        suffix(lower(w),1)[0] suffix(lower(w),2)[0] suffix(lower(w),3)[0] suffix(lower(w),4)[0]
        shape(w)[0] hasdigit(w)[0] hashyphen(w)[0] hasupper(w)[0]""",
    ),
    "segmentation": _preset(
        "Characters in a window of two, their pairs and triples, repetition, and classes of characters.",
        f"""{_WINDOW} w[-2]|w[-1] w[-1]|w[0] w[0]|w[1] w[1]|w[2] w[-1]|w[1] w[-1]|w[0]|w[1]
        same(w)[0,-1] same(w)[0,-2] class(w)[0] class(w)[-1]|class(w)[0]|class(w)[1]""",
    ),
    # For models that see the sentence around a token by themselves.
    "words": _preset("The word itself, in lower case.", "lower(w)[0]"),
    "words-shapes": _preset(
        "The word itself, with its shape, beginnings and endings.",
        """lower(w)[0] shape(w)[0] prefix(lower(w),2)[0] prefix(lower(w),3)[0] suffix(lower(w),2)[0]
        suffix(lower(w),3)[0]""",
    ),
    "words-pos": _preset("As words-shapes; the part of speech.", "pos[0]", include="words-shapes"),
    "characters": _preset(
        "For segmentation: the character itself, its pair with the one before, its class.",
        "w[0] w[-1]|w[0] class(w)[0]",
    ),
}


def usual_preset(form: str, columns: Sequence[str]) -> str:
    """The preset for a text of this format and these columns, where nobody says which.

    >>> usual_preset("conll", ("w", "pos", "tag")), usual_preset("conll", ("w", "tag"))
    ('chunking', 'pos')
    """
    if form == "segmented":
        return "segmentation"
    return "chunking" if "pos" in columns else "pos"


# -- transforms of the values of a column -----------------------------------------------------------------------------
# Each is a function of one string, called once for each distinct value. None is no value: the template then gives no
# feature at that token.


class Transform(NamedTuple):
    """A function of a value and a number; those that take none are given 0."""

    make: Callable[[str, int], str | None]
    takes_number: bool
    about: str


def _shape_of(character: str) -> str:
    if character.isdecimal():
        return "d"
    if not character.isalpha():
        return character
    if character.isupper() or character.istitle():
        return "X"
    return "x" if character.islower() else "a"


def _full_shape(value: str) -> str:
    return "".join(map(_shape_of, value))


_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿兆两壹贰叁肆伍陆柒捌玖拾佰仟萬億")
_SCRIPTS = (
    ("CJK", "cjk"), ("HIRAGANA", "hiragana"), ("KATAKANA", "katakana"), ("HALFWIDTH KATAKANA", "katakana"),
    ("HANGUL", "hangul"), ("HALFWIDTH HANGUL", "hangul"),
)  # fmt: skip
_KINDS = {"P": "punctuation", "S": "symbol", "Z": "space", "C": "control", "L": "letter", "M": "mark", "N": "number"}


@cache
def _class_of(character: str) -> str:
    """The class of one character: by its script where that says more than its kind."""
    if character.isdecimal():
        return "digit"
    if character in _NUMERALS:
        return "numeral"
    kind = _KINDS[unicodedata.category(character)[0]]
    if kind in ("letter", "mark", "number"):
        name = unicodedata.name(character, "")
        return next((script for start, script in _SCRIPTS if name.startswith(start)), kind)
    return kind


def _class(value: str) -> str | None:
    """The class that all characters are of, or `mixed`."""
    classes = {_class_of(character) for character in value}
    return "mixed" if len(classes) > 1 else next(iter(classes), None)


def _flag(test: Callable[[str], bool]) -> Callable[[str, int], str | None]:
    return lambda value, _: YES if any(map(test, value)) else None


TRANSFORMS = {
    "lower": Transform(lambda value, _: value.lower(), False, "in lower case"),
    "prefix": Transform(lambda value, size: value[:size] if len(value) >= size else None, True,
                        "the first N characters; nothing if there are fewer"),
    "suffix": Transform(lambda value, size: value[-size:] if len(value) >= size else None, True,
                        "the last N characters; nothing if there are fewer"),
    "shape": Transform(lambda value, _: "".join(sign for sign, _ in groupby(_full_shape(value))), False,
                       "McDonald-90 becomes XxXx-d"),
    "fullshape": Transform(lambda value, _: _full_shape(value), False, "McDonald-90 becomes XxXxxxxx-dd"),
    "digits": Transform(lambda value, _: "".join("0" if sign.isdecimal() else sign for sign in value), False,
                        "every digit becomes 0"),
    "class": Transform(lambda value, _: _class(value), False, "digit, letter, punctuation, cjk, …, or mixed"),
    "hasdigit": Transform(_flag(str.isdecimal), False, "1 if there is a digit, else nothing"),
    "hashyphen": Transform(_flag(lambda sign: unicodedata.category(sign) == "Pd"), False,
                           "1 if there is a hyphen or dash, else nothing"),
    "hasupper": Transform(_flag(str.isupper), False, "1 if there is a capital letter, else nothing"),
}  # fmt: skip
SAME = "same"  # not a function of one value: whether those at two offsets are equal


BIAS = "bias"
FARTHEST = 100  # tokens that an atom may look back or ahead
_LIMIT = 1 << 20  # bytes of a file of templates
_LONGEST = 100  # characters of an affix
_INCLUDE = "@include"
_COMMENT = re.compile(r"(?:^|\s)#")  # a column may have a # in its name
_NAME = re.compile(r"[^\s\[\](),|=]+")
_NUMBER = re.compile(r"[+-]?\d+")
_BLANKS = re.compile(r"[ \t]*")
_NUMBERED = re.compile(r"%(\d+)")  # a column by its number
_MACRO = re.compile(r"%x\[\s*([+-]?\d{1,9})\s*,\s*(\d{1,9})\s*\]")  # of CRF++: row, column
_FOREIGN = re.compile(r"[UB]\w*:?")  # lines of CRF++ that look at nothing


class Step(NamedTuple):
    """A transform with its number, 0 where it takes none."""

    name: str
    number: int


@dataclass(frozen=True)
class Atom:
    """A column, the transforms that its values go through, the innermost first, and the offset.

    other: the second offset of `same`; None for all other atoms.
    """

    column: str
    steps: tuple[Step, ...]
    offset: int
    other: int | None = None

    def __str__(self) -> str:
        text = self.column
        for name, number in self.steps:
            text = f"{name}({text},{number})" if TRANSFORMS[name].takes_number else f"{name}({text})"
        if self.other is None:
            return f"{text}[{self.offset}]"
        return f"{SAME}({text})[{self.offset},{self.other}]"


@dataclass(frozen=True)
class Template:
    """Atoms whose values together are one feature; none for `bias`. place: where it stands, for messages."""

    atoms: tuple[Atom, ...]
    place: str = ""

    def __str__(self) -> str:
        return "|".join(map(str, self.atoms)) or BIAS


@dataclass(frozen=True)
class Templates:
    """All templates of a model, no two of them alike.

    Examples
    --------
    >>> [str(template) for template in parse_templates("w[0]  # the word\\nsuffix( w, 3 )[ 0 ]|pos[+1]\\n").items]
    ['w[0]', 'suffix(w,3)[0]|pos[1]']
    """

    items: tuple[Template, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def named(self, columns: Sequence[str], tag: int) -> Templates:
        """The same with names for columns that are given by number; columns: all of a file, that of the tags too."""
        return replace(self, items=tuple(_named(template, columns, tag) for template in self.items))

    def lines(self) -> list[str]:
        """One string a template, from which `parse_templates` makes the same ones."""
        return [str(template) for template in self.items]

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise InputError if a template names a column that is not there."""
        for template in self.items:
            for atom in template.atoms:
                if atom.column not in columns:
                    there = ", ".join(f"`{shown(name)}`" for name in columns) or "none"
                    raise InputError(f"{template.place or 'templates'}: the template `{template}` looks at the column"
                                     f" `{shown(atom.column)}`{nearest(atom.column, columns)}, but the columns are"
                                     f" {there}; name them with --columns, or choose other --features.")


def _named(template: Template, columns: Sequence[str], tag: int) -> Template:
    atoms = []
    for atom in template.atoms:
        number = _NUMBERED.fullmatch(atom.column)
        if number:
            place = int(number[1])
            if place >= len(columns) or place == tag or columns[place] == "-":
                there = f"there are {len(columns)}, from 0 on" if place >= len(columns) else "it is not for features"
                what = "holds the tags" if place == tag else there
                raise InputError(f"{template.place}: looks at column {place} of the text, but {what}; see --columns.")
            atom = replace(atom, column=columns[place])
        atoms.append(atom)
    return replace(template, atoms=tuple(atoms))


def open_templates(features: str) -> Templates:
    """The templates of a preset, or of a file."""
    if features in PRESETS:
        return parse_templates(PRESETS[features], features)
    try:
        text = read_start(features, _LIMIT).decode("utf-8-sig")
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise InputError(f"features: `{shown(features)}` is neither a preset ({', '.join(PRESETS)}) nor a file of"
                             f" templates{nearest(features, PRESETS)}.") from None
        raise InputError(f"{features}: {error.strerror}; --features needs a readable file of templates.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{features}: byte {error.start} is not UTF-8; save the templates as UTF-8.") from None
    except ValueError as error:
        raise InputError(f"{shown(features)}: {error}; --features needs a file of templates.") from None
    return parse_templates(text, features)


def preset_of(templates: Templates) -> str:
    """The name of the preset that these are; empty for templates of the user's own.

    >>> preset_of(open_templates("pos")), preset_of(parse_templates("w[0]"))
    ('pos', '')
    """
    lines = templates.lines()
    return next((name for name, text in PRESETS.items() if parse_templates(text).lines() == lines), "")


def parse_templates(text: str | Iterable[str], name: str = "templates") -> Templates:
    """Templates from text, or from lines; `name` is what messages call it.

    Blank lines and comments, from a `#` on, are passed over; `@include chunking` stands for the lines of a preset.
    Lines of CRF++ are read as they are.

    >>> parse_templates("U01:%x[-1,0]\\nU05:%x[-1,0]/%x[0,1]\\nB").lines()
    ['%0[-1]', '%0[-1]|%1[0]']
    """
    lines = re.split(r"\r\n|\r|\n", text) if isinstance(text, str) else list(text)
    found: dict[str, Template] = {}
    foreign = _Foreign()
    for number, line in enumerate(lines, 1):
        place = f"{name}:{number}"
        content = _COMMENT.split(line, maxsplit=1)[0].strip()
        if _FOREIGN.fullmatch(content) or (content.startswith(("U", "B")) and "%x" in content):
            for template in foreign.read(content, place):
                found.setdefault(str(template), template)  # identifiers apart, the same twice says nothing new
            continue
        for template in _read_line(line, place):
            earlier = found.setdefault(str(template), template)
            if earlier is not template:
                raise InputError(f"{place}: the template `{template}` stands at {earlier.place} too; drop one.")
    if not found:
        raise InputError(f"{name}: no templates; write one a line, such as w[0] or w[-1]|w[0].")
    return Templates(tuple(found.values()), tuple(foreign.notes))


class _Foreign:
    """Reads lines of CRF++: `U` and a name, or `B`, and what is looked at as %x[row,column]."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._seen: dict[str, tuple[str, str]] = {}  # the line and its place, by what stands around the macros

    def read(self, line: str, place: str) -> tuple[Template, ...]:
        """None or one template."""
        around = _MACRO.sub("", line)
        if "%" in around:
            raise InputError(f"{place}: expected %x[ROW,COLUMN], such as %x[-1,0]; found `{shown(line)}`.")
        atoms = tuple(Atom(f"%{int(found[2])}", (), int(found[1])) for found in _MACRO.finditer(line))
        for atom in atoms:
            if abs(atom.offset) > FARTHEST:
                raise InputError(f"{place}: expected a row between {-FARTHEST} and {FARTHEST}; found `{shown(line)}`.")
        if line.startswith("B"):
            if not atoms:
                return ()  # pairs of neighbouring tags have weights in any case
            self.notes.append(
                f"{place}: features of `{shown(line)}` weigh pairs of tags where they have rich edges"
                " (--rich-edges, --rich-edge-min-count), and single tags too."
            )
        earlier, where = self._seen.setdefault(_MACRO.sub("%", line), (line, place))
        if earlier != line:
            raise InputError(
                f"{place}: `{shown(line)}` has the name of `{shown(earlier)}` at {where}, which in CRF++ makes one"
                " feature of both; give each a name of its own, such as U01 and U02."
            )
        return (Template(atoms, place),)


def _read_line(line: str, place: str) -> tuple[Template, ...]:
    content = _COMMENT.split(line, maxsplit=1)[0].rstrip()
    start = content.lstrip()
    if not start:
        return ()
    if start.startswith("@"):
        word, *names = start.split()
        if word != _INCLUDE:
            raise InputError(f"{place}: unknown command `{shown(word)}`; there is only {_INCLUDE} PRESET.")
        if len(names) != 1 or names[0] not in PRESETS:
            given = " ".join(names)
            raise InputError(f"{place}: {_INCLUDE} needs one preset, not `{shown(given)}`{nearest(given, PRESETS)};"
                             f" there are {', '.join(PRESETS)}.")
        return parse_templates(PRESETS[names[0]], names[0]).items
    return (_Line(content, place).template(),)


class _Line:
    """Reads one template from left to right."""

    def __init__(self, text: str, place: str) -> None:
        self.text, self.place, self.at = text, place, 0

    def template(self) -> Template:
        """The whole line."""
        self._skip()
        if self.text[self.at :] == BIAS:
            return Template((), self.place)
        atoms = [self._atom()]
        while self._taken("|"):
            atoms.append(self._atom())
        if self.at < len(self.text):
            raise self._wrong("expected `|` or the end of the line")
        return Template(tuple(atoms), self.place)

    def _atom(self) -> Atom:
        self._skip()
        start, same = self.at, False
        if re.match(rf"{SAME}\s*\(", self.text[self.at :]):
            self._name()
            self._expect("(")
            same = True
        column, steps = self._value()
        if same:
            self._expect(")")
        if not same and column == BIAS and not steps and not self._peek("["):
            self.at = start
            raise self._wrong("`bias` stands alone, on a line of its own")
        self._expect("[")
        offset = self._number(-FARTHEST, FARTHEST, "an offset")
        other = None
        if same:
            self._expect(",")
            other = self._number(-FARTHEST, FARTHEST, "an offset")
            if other == offset:
                raise self._wrong("`same` needs two different offsets, such as same(w)[0,-1]")
        self._expect("]")
        return Atom(column, steps, offset, other)

    def _value(self) -> tuple[str, tuple[Step, ...]]:
        self._skip()
        start = self.at
        name = self._name()
        if not self._taken("("):
            return name, ()
        if name not in TRANSFORMS:
            self.at = start
            if name == SAME:
                raise self._wrong("`same` compares two offsets, so that it cannot stand inside a transform")
            known = [*TRANSFORMS, SAME]
            raise self._wrong(f"unknown transform `{shown(name)}`{nearest(name, known)}; there are {', '.join(known)}")
        column, steps = self._value()
        number = 0
        if TRANSFORMS[name].takes_number:
            self._expect(",")
            number = self._number(1, _LONGEST, "a number of characters")
        self._expect(")")
        return column, (*steps, Step(name, number))

    def _name(self) -> str:
        self._skip()
        found = _NAME.match(self.text, self.at)
        if not found:
            raise self._wrong("expected a column, such as w[0], or a transform, such as lower(w)[0]")
        self.at = found.end()
        return found[0]

    def _number(self, least: int, most: int, what: str) -> int:
        self._skip()
        found = _NUMBER.match(self.text, self.at)
        if not found or len(found[0]) > 9 or not least <= int(found[0]) <= most:
            raise self._wrong(f"expected {what} between {least} and {most}")
        self.at = found.end()
        return int(found[0])

    def _skip(self) -> None:
        blanks = _BLANKS.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at

    def _peek(self, sign: str) -> bool:
        self._skip()
        return self.text.startswith(sign, self.at)

    def _taken(self, sign: str) -> bool:
        there = self._peek(sign)
        self.at += there
        return there

    def _expect(self, sign: str) -> None:
        if not self._taken(sign):
            raise self._wrong(f"expected `{sign}`")

    def _wrong(self, what: str) -> InputError:
        rest = self.text[self.at :]
        there = f"found `{shown(rest)}`" if rest else "the line ends"
        return InputError(f"{self.place}:{self.at + 1}: {what}; {there}.")
