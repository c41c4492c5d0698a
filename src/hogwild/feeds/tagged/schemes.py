"""Schemes of tags: which one a set of tags follows, which tag may follow which, and where text breaks the rules.

iob1    I is any token of a chunk; B only begins a chunk right after another one of its type
iob2    B begins every chunk, I goes on with it
iobes   B begins, I goes on, E ends; S is a chunk of one token
bmes    as iobes with M for I, and W for S in BMEWO
bilou   as iobes with L for E and U for S
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.errors import ConfigError, InputError
from hogwild.messages import counted, shown

# -- Chunks of tagged sentences, by the rules of the evaluation script of the CoNLL shared tasks ----------------------
# A tag is a letter, a dash and a type, as in `B-NP`, or a letter alone, whose type is empty. The letters of all schemes
# are read at once:
#
#     B               begins a chunk
#     I, M            goes on with one
#     E, L            ends one
#     S, U, W, [, ]   is a chunk of its own
#     O, .            is in none
#
# Every token in a chunk goes on with the chunk of the token before, unless that is in none, is of another type or has
# ended its chunk, or the token itself begins one (B, S). So tags that break a scheme have chunks too: I-NP after O
# begins one, and so does I-VP after B-NP. A tag with another letter is read as I where it has a type, else as O.
#
# For tags of B, I, O and of I, E, O this is what `conlleval` counts. The script knows no letters beyond those, and
# takes two neighbours of one type in IOBES for one chunk; here they are two, as `seqeval` has it.


Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.integer]

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)

ROLES = {
    "O": OUTSIDE, ".": OUTSIDE, "B": BEGIN, "I": INSIDE, "M": INSIDE, "E": END, "L": END,
    "S": SINGLE, "U": SINGLE, "W": SINGLE, "[": SINGLE, "]": SINGLE,
}  # fmt: skip
"""What a letter does, in any scheme."""


class TagParts(NamedTuple):
    """Tags taken apart: roles[k] and names[types[k]] are what the letter of tag k does and its type."""

    roles: npt.NDArray[np.int8]
    types: Ids
    names: tuple[str, ...]


class Spans(NamedTuple):
    """Chunks in the order of the text: tokens starts[j]:ends[j], of the type with number types[j]."""

    starts: Offsets
    ends: Offsets
    types: Ids


def parts_of(tags: Sequence[str]) -> TagParts:
    """Roles and types of tags."""
    roles, types = [], []
    numbers: dict[str, int] = {}
    for tag in tags:
        letter, _, kind = tag.partition("-")
        roles.append(ROLES.get(letter, INSIDE if kind else OUTSIDE))
        types.append(-1 if roles[-1] == OUTSIDE else numbers.setdefault(kind, len(numbers)))
    return TagParts(np.array(roles, np.int8), np.array(types, np.int32), tuple(numbers))


def spans_of(offsets: Offsets, codes: Codes, parts: TagParts) -> Spans:
    """Chunks of sentences, where codes[t] is the number of the tag of token t and sentence s has the tokens
    offsets[s]:offsets[s + 1]. No chunk goes past the end of a sentence."""
    roles, types = parts.roles[codes], parts.types[codes]
    inside = roles != OUTSIDE
    joined = np.zeros(len(codes) + 1, np.bool_)  # whether a token goes on with the chunk of the one before
    joined[1:-1] = inside[:-1] & inside[1:] & (types[:-1] == types[1:])
    joined[1:-1] &= (roles[:-1] != END) & (roles[:-1] != SINGLE) & (roles[1:] != BEGIN) & (roles[1:] != SINGLE)
    joined[offsets] = False
    starts = np.flatnonzero(inside & ~joined[:-1])
    return Spans(starts, np.flatnonzero(inside & ~joined[1:]) + 1, types[starts])


def chunks_of(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Chunks of one sentence as (start, end, type), the end being the first token after the chunk.

    By the CoNLL rules, for IOB1, IOB2, IOE, IOBES, BMES, BMEWO and BILOU, which need not be told apart. Tags that break
    the rules of their scheme have chunks too.

    Examples
    --------
    >>> chunks_of(["B-NP", "I-NP", "O", "B-VP"])
    [(0, 2, 'NP'), (3, 4, 'VP')]
    >>> chunks_of(["O", "I-NP", "I-VP"])
    [(1, 2, 'NP'), (2, 3, 'VP')]
    >>> chunks_of(["B", "M", "E", "S"])
    [(0, 3, ''), (3, 4, '')]
    """
    index: dict[str, int] = {}
    offsets, codes = coded([tags], index)
    parts = parts_of(tuple(index))
    spans = spans_of(offsets, codes, parts)
    names = [parts.names[kind] for kind in spans.types.tolist()]
    return list(zip(spans.starts.tolist(), spans.ends.tolist(), names, strict=True))


def coded(sentences: Sequence[Sequence[str]], index: dict[str, int]) -> tuple[Offsets, Ids]:
    """Offsets of sentences, and a number for each tag; tags that `index` has not are added to it."""
    for number, sentence in enumerate(sentences, 1):
        if isinstance(sentence, str):
            raise InputError(f"sentence {number} is the string `{shown(sentence)}`; give a list of tags a sentence.")
        for tag in sentence:
            if not isinstance(tag, str):
                raise InputError(f"sentence {number} has the tag {shown(repr(tag))}; give tags as strings.")
    offsets = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum([len(sentence) for sentence in sentences], out=offsets[1:])
    codes = (index.setdefault(tag, len(index)) for sentence in sentences for tag in sentence)
    return offsets, np.fromiter(codes, np.int32, int(offsets[-1]))


# -- Schemes ----------------------------------------------------------------------------------------------------------


Kind = Literal["chunks", "words", "tags"]
Scheme = Literal["iob1", "iob2", "iobes", "bmes", "bilou", ""]

SCHEMES: tuple[Scheme, ...] = ("iob1", "iob2", "iobes", "bmes", "bilou")
_STRAY = 0.25  # share of tags that may be none of a scheme, misspelt for instance


class Allowed(NamedTuple):
    """What a scheme allows of K tags: at the start of a sentence, in pairs[before, after], at its end.

    Where a tag set has holes a sentence can be without any allowed path: B, M and E without S leave none for a
    sentence of one token.
    """

    first: Flags
    pairs: Flags
    last: Flags


@dataclass(frozen=True)
class SchemeErrors:
    """Tags that break the rules of a scheme. first: the first one in words, empty where there is none."""

    scheme: Scheme
    count: int = 0
    first: str = ""

    def note(self, source: str = "") -> str:
        """One sentence for the user; empty where nothing is broken."""
        if not self.count:
            return ""
        where = f"{source}: " if source else ""
        breaks = "tag breaks" if self.count == 1 else "tags break"
        rules = f"{self.count:,} {breaks} the {self.scheme.upper()} rules (first: {self.first})"
        return f"{where}{rules}: read as the CoNLL rules do."


def kind_of(tags: Sequence[str]) -> Kind:
    """What a set of tags says of a text, and so how it is scored.

    `chunks`: nearly all tags have a letter of a scheme and a type; or letters alone, O among them. `words`: letters
    alone and no O, so that every token is part of a word. `tags`: anything else, such as parts of speech; and
    letters of which there is neither B nor I.

    Examples
    --------
    >>> kind_of(["O", "B-NP", "I-NP"]), kind_of(["B", "M", "E", "S"]), kind_of(["NOUN", "VERB"])
    ('chunks', 'words', 'tags')
    """
    letters = set(tags)
    if letters <= set(ROLES) and letters & {"B", "I"} and len(letters) > 1:
        return "chunks" if "O" in letters else "words"
    typed = sum(_is_typed(tag) for tag in letters)
    strays = len(letters - {"O"}) - typed
    return "chunks" if typed and strays <= _STRAY * (typed + strays) else "tags"


def strays_of(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags with a letter of no scheme. With a type they are read as I, without one as O."""
    return tuple(tag for tag in tags if tag.partition("-")[0] not in ROLES)


def scheme_of(tags: Sequence[str], offsets: Offsets | None = None, codes: Codes | None = None) -> Scheme:
    """The scheme that a set of tags follows; empty where they follow none that is known here.

    Tags alone cannot always tell IOB1 from IOB2: then IOB1 is what has an I without a B of its type. With a text
    (codes[t] is the number of the tag of token t, sentence s has the tokens offsets[s]:offsets[s + 1]) it is the one
    that the text breaks less often, and IOB2 if both fit.

    Examples
    --------
    >>> scheme_of(["O", "B-NP", "I-NP"]), scheme_of(["O", "I-NP"]), scheme_of(["B", "M", "E", "S"])
    ('iob2', 'iob1', 'bmes')
    """
    kind = kind_of(tags)
    if kind == "tags":
        return ""
    parts = parts_of(tags)
    letters, roles = {tag.partition("-")[0] for tag in tags}, set(parts.roles.tolist())
    if roles & {END, SINGLE}:
        if (BEGIN in roles) != (END in roles):  # IOE, or no scheme: nothing can be said about what may follow what
            return ""
        if letters & {"L", "U"}:
            return "bilou"
        return "bmes" if letters & {"M", "W"} or kind == "words" else "iobes"
    if offsets is not None and codes is not None:
        one, two = (errors_of(offsets, codes, tags, scheme).count for scheme in ("iob1", "iob2"))
        return "iob1" if one < two else "iob2"
    begun = set(parts.types[parts.roles == BEGIN].tolist())
    return "iob2" if set(parts.types[parts.roles == INSIDE].tolist()) <= begun else "iob1"


def allowed(tags: Sequence[str], scheme: Scheme) -> Allowed:
    """What the scheme allows of these tags; all of it where the scheme is empty.

    Examples
    --------
    >>> rules = allowed(["O", "B-NP", "I-NP"], "iob2")
    >>> rules.first.tolist(), rules.pairs.tolist()
    ([True, True, False], [[True, True, False], [True, True, True], [True, True, True]])
    """
    if scheme not in (*SCHEMES, ""):
        raise ConfigError(f"there is no scheme `{scheme}`; use one of {', '.join(SCHEMES)}.")
    parts = parts_of(tags)
    free = np.ones(len(tags), np.bool_)
    if scheme == "":
        return Allowed(free, np.ones((len(tags), len(tags)), np.bool_), free.copy())
    same = parts.types[:, None] == parts.types[None, :]
    if scheme in ("iob1", "iob2"):
        _require_letters(tags, parts, scheme)
        bound = parts.roles == (BEGIN if scheme == "iob1" else INSIDE)  # must follow a chunk of its type
        chunk = parts.roles != OUTSIDE
        return Allowed(~bound, ~bound[None, :] | (same & chunk[:, None]), free)
    opening = (parts.roles == BEGIN) | (parts.roles == INSIDE)
    going_on = (parts.roles == INSIDE) | (parts.roles == END)
    pairs = np.where(opening[:, None], same & going_on[None, :], ~going_on[None, :])
    return Allowed(~going_on, pairs, ~opening)


def errors_of(offsets: Offsets, codes: Codes, tags: Sequence[str], scheme: Scheme) -> SchemeErrors:
    """Tokens whose tag the scheme does not allow where it stands; tags[codes[t]] is that of token t.

    Examples
    --------
    >>> import numpy as np
    >>> errors_of(np.array([0, 3]), np.array([0, 1, 1]), ["O", "I-NP"], "iob2").first
    '`I-NP` after `O`, sentence 1, token 2'
    """
    rules = allowed(tags, scheme)
    if not len(codes):
        return SchemeErrors(scheme)
    if not 0 <= int(codes.min()) <= int(codes.max()) < len(tags):
        raise InputError(f"a tag has a number outside 0 … {len(tags) - 1}; the rules of a scheme are for known tags.")
    lengths = np.diff(offsets)
    firsts, lasts = offsets[:-1][lengths > 0], offsets[1:][lengths > 0] - 1
    wrong = np.append(False, ~rules.pairs[codes[:-1], codes[1:]])
    wrong[firsts] = ~rules.first[codes[firsts]]
    cut = np.zeros(len(codes), np.bool_)
    cut[lasts] = ~rules.last[codes[lasts]]
    broken = np.flatnonzero(wrong | cut)
    if not len(broken):
        return SchemeErrors(scheme)
    place = int(broken[0])
    sentence = int(np.searchsorted(offsets, place, "right"))
    token = place - int(offsets[sentence - 1])
    how = "at the end"
    if wrong[place]:
        how = f"after `{shown(tags[codes[place - 1]])}`" if token else "at the start"
    first = f"`{shown(tags[codes[place]])}` {how}, sentence {sentence:,}, token {token + 1:,}"
    return SchemeErrors(scheme, len(broken), first)


# -- from one scheme to another ---------------------------------------------------------------------------------------

ALIASES: dict[str, Scheme] = {"bio": "iob2", "bmewo": "bmes"}
# The letters of the first token of a chunk, of inner ones, of the last, and of one that is alone.
_LETTERS = {"iob1": "BIII", "iob2": "BIIB", "iobes": "BIES", "bmes": "BMES", "bilou": "BILU"}


def convert_tags(sentences: Sequence[Sequence[str]], scheme: str) -> list[list[str]]:
    """The tags of the same chunks in another scheme: iob1, iob2 (or bio), iobes, bmes, bilou.

    Chunks are found by the CoNLL rules, so that the scheme of the sentences need not be told; tags that break its rules
    are put right on the way.

    Examples
    --------
    >>> convert_tags([["B-NP", "I-NP", "O", "B-VP"]], "iobes")
    [['B-NP', 'E-NP', 'O', 'S-VP']]
    >>> convert_tags([["S-NP", "B-NP", "E-NP"]], "iob1")
    [['I-NP', 'B-NP', 'I-NP']]
    """
    index: dict[str, int] = {}
    offsets, codes = coded(sentences, index)
    found, tags = convert_codes(offsets, codes, tuple(index), scheme_named(scheme))
    named = [tags[code] for code in found.tolist()]
    return [named[first:last] for first, last in pairwise(offsets.tolist())]


def scheme_named(name: str) -> Scheme:
    """The scheme of this name; ConfigError if there is none."""
    found: str = ALIASES.get(name.lower(), name.lower())
    for scheme in SCHEMES:
        if found == scheme:
            return scheme
    raise ConfigError(f"there is no scheme `{name}`; use one of {', '.join((*SCHEMES, *ALIASES))}.")


def convert_codes(offsets: Offsets, codes: Codes, tags: Sequence[str], scheme: Scheme) -> tuple[Ids, tuple[str, ...]]:
    """As `convert_tags`, for tags as numbers: tags[codes[t]] is that of token t; new numbers, and their names."""
    if len(codes) and kind_of(tags) == "tags":
        named = ", ".join(shown(tag) for tag in tags[:3])
        raise ConfigError(f"tags such as {named} mark no chunks, so that they have no scheme to be changed.")
    parts = parts_of(tags)
    spans = spans_of(offsets, codes, parts)
    kinds = len(parts.names)
    found = np.zeros(len(codes), np.int32)  # 0: outside; then four roles of each type
    sizes = spans.ends - spans.starts
    owner = np.repeat(np.arange(len(sizes)), sizes)
    tokens = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + spans.starts[owner]
    first, last = tokens == spans.starts[owner], tokens == spans.ends[owner] - 1
    role = np.where(first, np.where(last, 3, 0), np.where(last, 2, 1))
    if scheme == "iob1":
        close = np.append(False, (spans.starts[1:] == spans.ends[:-1]) & (spans.types[1:] == spans.types[:-1]))
        close &= ~np.isin(spans.starts, offsets)  # after another chunk of its type, in the same sentence
        role = np.where(first & close[owner], 0, 1)
    found[tokens] = 1 + spans.types[owner] + kinds * role
    dash = [f"-{name}" if name else "" for name in parts.names]
    names = ["O", *(letter + kind for letter in _LETTERS[scheme] for kind in dash)]
    distinct = list(dict.fromkeys(names))
    final = np.array([distinct.index(name) for name in names], np.int32)
    return final[found], tuple(distinct)


def only_chunks(codes: Codes, tags: Sequence[str], types: Sequence[str]) -> tuple[Ids, tuple[str, ...]]:
    """Tags as numbers with all chunks of other types taken out: their tags are O. New numbers, and their names.

    >>> codes, names = only_chunks(np.array([0, 1, 2]), ("B-NP", "B-VP", "O"), ["NP"])
    >>> [names[code] for code in codes]
    ['B-NP', 'O', 'O']
    """
    parts = parts_of(tags)
    kept = [role != OUTSIDE and parts.names[kind] in types for role, kind in zip(parts.roles, parts.types, strict=True)]
    named = [tag if keep else "O" for tag, keep in zip(tags, kept, strict=True)]
    distinct = list(dict.fromkeys(named))
    return np.array([distinct.index(name) for name in named], np.int32)[codes], tuple(distinct)


def _is_typed(tag: str) -> bool:
    letter, _, kind = tag.partition("-")
    return bool(kind) and ROLES.get(letter, OUTSIDE) != OUTSIDE


def _require_letters(tags: Sequence[str], parts: TagParts, scheme: Scheme) -> None:
    foreign = [tag for tag, role in zip(tags, parts.roles.tolist(), strict=True) if role in (END, SINGLE)]
    if foreign:
        raise InputError(
            f"{counted(len(foreign), 'tag')} ({shown(foreign[0])}) cannot stand in {scheme.upper()}, which has B, I "
            "and O only; take the scheme of these tags."
        )
