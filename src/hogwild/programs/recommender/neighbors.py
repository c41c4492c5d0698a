"""Items that are alike, and users who are: the nearest by the cosine of their vectors, and names that were meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import UnknownNameError, brief
from hogwild.messages import shown
from hogwild.programs.words.similarity import nearest, norms_of, units

Alike = list[tuple[str, float]]

_GUESSED = 5        # unknown names for which close ones are looked for
_COMPARED = 20_000  # names that are compared letter by letter: a tenth of a second or so


def alike(vectors: Floats, names: Sequence[str], rows: Sequence[int], count: int) -> list[Alike]:
    """Of each of `rows`, the `count` others whose vectors point most nearly where its own does, the nearest first."""
    found = nearest(vectors, norms_of(vectors), units(vectors[np.array(rows, np.int64)]), count + 1)
    lists = []
    for row, others, values in zip(rows, found.rows.tolist(), found.similarities.tolist(), strict=True):
        pairs = [(names[k], value) for k, value in zip(others, values, strict=True) if k != row]
        lists.append(pairs[:count])
    return lists


def rows_of(wanted: Sequence[str], known: Mapping[str, int], kind: str, others: Mapping[str, int]) -> list[int]:
    """Rows of names. Raises UnknownNameError, which names all that are not there and what may have been meant.

    kind: what the names are of, `user` or `item`; others: those of the other kind.
    """
    unknown = list(dict.fromkeys(name for name in wanted if name not in known))
    if unknown:
        raise UnknownNameError(_explain(unknown, known, kind, others))
    return [known[name] for name in wanted]


def _explain(unknown: list[str], known: Mapping[str, int], kind: str, others: Mapping[str, int]) -> str:
    named, other = [], "item" if kind == "user" else "user"
    for k, name in enumerate(unknown):
        hint = ""
        if k < _GUESSED:
            close = "" if name in others else suggest(name, known)
            if name in others:
                hint = f" (it is the name of {'an' if other == 'item' else 'a'} {other}: add --{other}s)"
            elif close:
                hint = f" (did you mean {brief(shown(close, 80))}?)"
        named.append(brief(shown(name, 80)) + hint)
    verb = "is" if len(unknown) == 1 else "are"
    return f"{', '.join(named)} {verb} not among the {len(known):,} {kind}s of the model."


def suggest(name: str, known: Mapping[str, int]) -> str:
    """The known name that was probably meant: other capitals, more around it, or other letters; empty if none is.

    Names come by how often they occurred, the most frequent first, and so do those that are compared letter by letter.
    """
    wanted = " ".join(name.casefold().split())
    if not wanted:
        return ""
    longer = ""
    for other in known:
        plain = " ".join(other.casefold().split())
        if plain == wanted:
            return other
        if not longer and len(wanted) > 2 and wanted in plain:
            longer = other
    if longer:
        return longer
    near = [other for other in known if abs(len(other) - len(name)) <= 2][:_COMPARED]
    return next(iter(difflib.get_close_matches(name, near, n=1, cutoff=0.66)), "")
