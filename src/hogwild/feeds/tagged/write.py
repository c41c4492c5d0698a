"""Write sentences again as they were read, with the tags that a model gives them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from hogwild.errors import InputError
from hogwild.feeds.tagged.segmented import BEGIN, END, SINGLE
from hogwild.feeds.tagged.text import Origin, TaggedText

PREDICTED = "predicted"  # the field of JSON lines


class Path(NamedTuple):
    """Tags of one sentence. chances: the probability of each; chance: that of all of them together; every: those of all
    tags at each token; None: unknown."""

    tags: Sequence[str]
    chances: Sequence[float] | None = None
    chance: float | None = None
    every: Sequence[Mapping[str, float]] | None = None


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
    lists = _by_sentence(text, tags)
    return write_paths(text, ([Path(tags)] for tags in lists), {tag for tags in lists for tag in tags})


def write_paths(text: TaggedText, paths: Iterable[Sequence[Path]], tags: Collection[str]) -> Iterator[str]:
    """As `write_tagged`, for several ways to tag a sentence, one after the other, and with probabilities.

    Parameters
    ----------
    text
        What was read from files.
    paths
        For each sentence its paths, the best first; they are asked for one sentence at a time. Probabilities of tags
        make a further column, or a list `probabilities` of JSON lines; those of all tags a column each, or a list
        `marginals`; segmented text has no place for them. That of
        a path stands in a line `# rank probability` before it, or in fields `rank` and `probability`.
    tags
        All tags that there can be.
    """
    origin = text.origin
    if origin is None:
        raise InputError(f"{text.source} was not read from files; there are no lines to write again.")
    if origin.format in ("conll", "conllu"):
        return _columns(text, origin, paths, tags)
    lines = _objects(origin, paths) if origin.format == "jsonl" else _words(text, origin, paths)
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


def _number(chance: float) -> str:
    return f"{chance:.6g}"


def _head(rank: int, path: Path) -> str:
    return "" if path.chance is None else f"# {rank} {_number(path.chance)}\n"


def _columns(
    text: TaggedText, origin: Origin, paths: Iterable[Sequence[Path]], names: Collection[str]
) -> Iterator[str]:
    separator = origin.separator
    if separator == " " and any(" " in tag for tag in names):
        separator = "\t"
    for (start, end), several in zip(pairwise(text.offsets.tolist()), paths, strict=True):
        columns = [column.strings(start, end) for column in origin.columns]
        blocks = []
        for rank, path in enumerate(several, 1):
            more = [] if path.chances is None else [list(map(_number, path.chances))]
            if path.every is not None:
                named = [[f"{tag}:{_number(chance)}" for tag, chance in each.items()] for each in path.every]
                more.append([separator.join(each) for each in named])
            rows = map(separator.join, zip(*columns, path.tags, *more, strict=True))
            blocks.append(_head(rank, path) + "\n".join(rows) + "\n\n")
        yield "".join(blocks)


def _objects(origin: Origin, paths: Iterable[Sequence[Path]]) -> Iterator[str]:
    for place, several in zip(origin.places.tolist(), paths, strict=True):
        yield "".join(_object(origin.lines[place], _fields(rank, path)) for rank, path in enumerate(several, 1))


def _fields(rank: int, path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = {PREDICTED: list(path.tags)}
    if path.chances is not None:
        fields["probabilities"] = [float(_number(chance)) for chance in path.chances]
    if path.every is not None:
        fields["marginals"] = [{tag: float(_number(chance)) for tag, chance in each.items()} for each in path.every]
    if path.chance is not None:
        fields |= {"rank": rank, "probability": float(_number(path.chance))}
    return fields


def _object(line: str, fields: dict[str, Any]) -> str:
    """The line with further fields; otherwise as it was."""
    if any(f'"{name}"' in line for name in fields):
        return json.dumps({**json.loads(line), **fields}, ensure_ascii=False) + "\n"
    return f"{line[:-1].rstrip()}, {json.dumps(fields, ensure_ascii=False)[1:]}\n"


def _words(text: TaggedText, origin: Origin, paths: Iterable[Sequence[Path]]) -> Iterator[str]:
    for (start, end), several in zip(pairwise(text.offsets.tolist()), paths, strict=True):
        letters = origin.columns[0].strings(start, end)
        yield "".join(_head(rank, path) + _joined(letters, path.tags) for rank, path in enumerate(several, 1))


def _joined(letters: Sequence[str], tags: Sequence[str]) -> str:
    parts = []
    before = ""
    for letter, tag in zip(letters, tags, strict=True):
        if before and (tag in (BEGIN, SINGLE) or before in (END, SINGLE)):
            parts.append(" ")
        parts.append(letter)
        before = tag
    return "".join(parts) + "\n"


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
        yield _object(origin.lines[k], {PREDICTED: []}) if origin.lines else "\n"
