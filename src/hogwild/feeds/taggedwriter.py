"""Write sentences again as they were read, with the tags that a model gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hogwild.errors import InputError
from hogwild.feeds.segmented import BEGIN, END, SINGLE
from hogwild.feeds.taggedtext import Origin, TaggedText

PREDICTED = "predicted"  # the field of JSON lines


def write_tagged(text: TaggedText, tags: Sequence[Sequence[str]] | Sequence[str]) -> Iterator[str]:
    """Sentences as they stood in the file, with other tags added.

    Parameters
    ----------
    text
        What was read from files.
    tags
        A tag for each token: a list for each sentence, or one list for all.

    Yields
    ------
    str
        The lines of one sentence, with line ends: columns with the tag as the last one and a blank line after them;
        of JSON lines the object with a further list `predicted`; of segmented text the words that the tags make.
        One line of the latter two is written for each that was read, also for those with no token.

    Examples
    --------
    >>> file.writelines(write_tagged(text, model.predict(feed)))                            # doctest: +SKIP
    """
    origin = text.origin
    if origin is None:
        raise InputError(f"{text.source} was not read from files; there are no lines to write again.")
    lists = _by_sentence(text, tags)
    if origin.format in ("conll", "conllu"):
        return _columns(text, origin, lists)
    lines = _objects(origin, lists) if origin.format == "jsonl" else _words(text, origin, lists)
    return _with_empty(origin, lines)


def _by_sentence(text: TaggedText, tags: Sequence[Sequence[str]] | Sequence[str]) -> Sequence[Sequence[str]]:
    bounds = text.offsets.tolist()
    lists: list[Any]
    if len(tags) and isinstance(tags[0], str):
        lists = [tags[start:end] for start, end in pairwise(bounds)] if len(tags) == text.tokens else []
    else:
        lists = list(tags)
    lengths = [end - start for start, end in pairwise(bounds)]
    if list(map(len, lists)) != lengths:
        raise InputError(f"{text.source}: there must be one tag for each of its {text.tokens:,} tokens.")
    return lists


def _columns(text: TaggedText, origin: Origin, lists: Sequence[Sequence[str]]) -> Iterator[str]:
    separator = origin.separator
    if separator == " " and any(" " in tag for tag in {tag for tags in lists for tag in tags}):
        separator = "\t"
    for (start, end), tags in zip(pairwise(text.offsets.tolist()), lists, strict=True):
        columns = [column.strings(start, end) for column in origin.columns]
        yield "\n".join(map(separator.join, zip(*columns, tags, strict=True))) + "\n\n"


def _objects(origin: Origin, lists: Sequence[Sequence[str]]) -> Iterator[str]:
    for place, tags in zip(origin.places.tolist(), lists, strict=True):
        yield _object(origin.lines[place], list(tags))


def _object(line: str, tags: list[str]) -> str:
    """The line with a further field; otherwise as it was."""
    if f'"{PREDICTED}"' in line:
        return json.dumps({**json.loads(line), PREDICTED: tags}, ensure_ascii=False) + "\n"
    return f'{line[:-1].rstrip()}, "{PREDICTED}": {json.dumps(tags, ensure_ascii=False)}}}\n'


def _words(text: TaggedText, origin: Origin, lists: Sequence[Sequence[str]]) -> Iterator[str]:
    for (start, end), tags in zip(pairwise(text.offsets.tolist()), lists, strict=True):
        parts = []
        before = ""
        for letter, tag in zip(origin.columns[0].strings(start, end), tags, strict=True):
            if before and (tag in (BEGIN, SINGLE) or before in (END, SINGLE)):
                parts.append(" ")
            parts.append(letter)
            before = tag
        yield "".join(parts) + "\n"


def _with_empty(origin: Origin, lines: Iterator[str]) -> Iterator[str]:
    """The lines, and among them those that had no token."""
    at = 0
    for place, line in zip(origin.places.tolist(), lines, strict=True):
        yield from _empty(origin, at, place)
        yield line
        at = place + 1
    yield from _empty(origin, at, origin.total)


def _empty(origin: Origin, start: int, end: int) -> Iterator[str]:
    for k in range(start, end):
        yield _object(origin.lines[k], []) if origin.lines else "\n"
