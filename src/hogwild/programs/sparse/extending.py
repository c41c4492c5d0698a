"""The features of a model and of more data together: what it knows stays, what the data has besides is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise, zip_longest
from typing import Any

from hogwild.feeds.slots.ids import feature_names
from hogwild.feeds.sparse.spellings import MOST
from hogwild.feeds.tables.categories import column_of

_KEYS_A_TEXT = 256  # of a schema


def extended_schema(known: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a model with the categories, ids and labels that more data has besides, in its own columns.

    Columns, scales and hashes stay those of the model: data of another kind is for its reader to refuse.

    Examples
    --------
    >>> known = {"format": "table", "categorical": ["c"], "numeric": [], "vocabulary": ["c=x"]}
    >>> extended_schema(known, {**known, "vocabulary": ["c=y", "c=x", "d=z"]})["vocabulary"]
    ['c=x', 'c=y']
    """
    both = dict(known)
    if known.get("format") != found.get("format"):
        return both
    if "vocabulary" in known and "vocabulary" in found:
        both["vocabulary"] = _joined(known["vocabulary"], [e for e in found["vocabulary"] if _fits(e, known)])
    if "keys" in known and "keys" in found and len(known["sizes"]) == len(found["sizes"]):
        groups = [_joined(*several) for several in zip(_grouped(known), _grouped(found), strict=True)]
        keys = [key for group in groups for key in group]
        both["sizes"] = [len(group) for group in groups]
        both["keys"] = [" ".join(keys[k : k + _KEYS_A_TEXT]) for k in range(0, len(keys), _KEYS_A_TEXT)]
    if type(known.get("features")) is int and type(found.get("features")) is int:
        # Ids of data that begin at 0 are one less where they begin at 1.
        shift = known.get("zero_based", False) and not found.get("zero_based", True)
        both["features"] = max(known["features"], found["features"] + shift)
    if "labels" in known and found.get("labels", {}).get("kind") == known["labels"]["kind"]:
        both["labels"] = {**known["labels"], "names": _joined(known["labels"]["names"], found["labels"]["names"])}
    if "names" in known or "names" in found:
        both["names"] = _in_turns(known.get("names", ()), found.get("names", ()))[:MOST]
    if known.get("format") == "libffm" and list(known["slots"]) == found["slots"][: len(known["slots"])]:
        both["slots"] = list(found["slots"])
    return both


def row_names(schema: Mapping[str, Any], features: int) -> Sequence[int | str]:
    """A name for each feature by which two models know it: numbers where it has the same in both.

    Examples
    --------
    >>> list(row_names({"format": "table", "numeric": ["a"], "vocabulary": ["c=x"]}, 2)), row_names({}, 3)
    ([0, 'c=x'], range(0, 3))
    """
    table, slots = schema.get("format") == "table", "slots" in schema
    named = list(schema.get("vocabulary", ()) if table else ())
    if slots:
        named += feature_names(schema)
    elif table and schema.get("min_count", 1) > 1:
        named += [f"{column} rare" for column in ([""] if schema.get("shared_ids") else schema["categorical"])]
    if not named:
        return range(features)
    hashes = "hashing" in schema and (schema.get("text") or schema.get("categories") == "hash")
    first = len(schema.get("numeric", ())) if table and not slots else 0
    first += 1 << schema["hashing"]["bits"] if hashes else 0
    names = [*range(first), *named][:features]
    return names + list(range(len(names), features))


def _joined(known: Sequence[str], found: Sequence[str]) -> list[str]:
    """All of both, each once; the known ones first, in their order."""
    return list(dict.fromkeys((*known, *found)))


def _in_turns(known: Sequence[str], found: Sequence[str]) -> list[str]:
    """The same, in turns: both are in the order of how frequent they are."""
    return list(dict.fromkeys(name for pair in zip_longest(known, found) for name in pair if name is not None))


def _fits(entry: str, schema: Mapping[str, Any]) -> bool:
    """Whether an entry is of a column of categories, or says that a number of a column is missing, of which slots that
    have none know nothing."""
    column, value = column_of(entry)
    if value:
        return column in schema["categorical"] or (column == "" and schema.get("shared_ids", False))
    marked = "slots" not in schema or len(schema["slots"]) > len(schema["categorical"]) + bool(schema.get("text"))
    return column in schema["numeric"] and marked


def _grouped(schema: Mapping[str, Any]) -> list[list[str]]:
    """The keys of each slot, or of all where they are shared."""
    keys, ends = " ".join(schema["keys"]).split(), [0, *accumulate(schema["sizes"])]
    return [keys[start:end] for start, end in pairwise(ends)]
