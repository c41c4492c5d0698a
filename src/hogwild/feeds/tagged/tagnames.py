"""Tags to numbers: ranked by frequency, or those of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Ids
from hogwild.errors import InputError
from hogwild.feeds.sparse.labels import counted, shown
from hogwild.feeds.tagged.taggedtext import TextColumn

_SHOWN = 5


class EncodedTags(NamedTuple):
    """The tag of each token; names of tags; tags that are not among them, with the number of their tokens."""

    codes: Ids
    names: tuple[str, ...]
    strange: dict[str, int]
    notes: tuple[str, ...] = ()


def encode_tags(column: TextColumn | None, tokens: int, tags: Sequence[str] | None) -> EncodedTags:
    """Encode the tags of so many tokens; all are -1 where there is no column of tags.

    Tags are ranked by falling frequency, those that are equally frequent by their first place. With `tags`, those of a
    model, others become -1.
    """
    if column is None:
        return EncodedTags(np.full(tokens, -1, np.int32), tuple(tags or ()), {})
    counts = np.bincount(column.codes, minlength=len(column.values))
    firsts = np.zeros(len(counts), np.int64)
    firsts[column.codes[::-1]] = np.arange(tokens)[::-1]  # where a code comes twice the last one stays: the first
    final = np.full(len(counts), -1, np.int32)
    if tags is None:
        order = np.lexsort((firsts, -counts))[: int(np.count_nonzero(counts))]
        final[order] = np.arange(len(order), dtype=np.int32)
        return EncodedTags(final[column.codes], tuple(column.values[k] for k in order.tolist()), {})
    places = {tag: place for place, tag in enumerate(tags)}
    if len(places) < len(tags):
        twice = next(tag for tag in tags if tags.count(tag) > 1)
        raise InputError(f"the tags of the model hold `{shown(twice)}` twice; it is damaged.")
    strange: dict[str, int] = {}
    for code in np.argsort(firsts, kind="stable").tolist():
        tag = column.values[code]
        if tag in places:
            final[code] = places[tag]
        elif counts[code]:
            strange[tag] = int(counts[code])
    return EncodedTags(final[column.codes], tuple(tags), strange, _strange_note(strange, tokens))


def _strange_note(strange: dict[str, int], tokens: int) -> tuple[str, ...]:
    if not strange:
        return ()
    named = ", ".join(f"`{shown(tag)}` ({count:,})" for tag, count in list(strange.items())[:_SHOWN])
    more = f" and {len(strange) - _SHOWN} more" if len(strange) > _SHOWN else ""
    total = counted(sum(strange.values()), "token")
    return (
        f"{total} of {tokens:,} with a tag that training has not seen: {named}{more}; they are scored as wrong.",
    )
