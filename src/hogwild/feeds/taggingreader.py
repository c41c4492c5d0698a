"""Open tagged text as a feed: read it, encode it with feature templates, use the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any

from hogwild.config import TaggingConfig
from hogwild.errors import InputError
from hogwild.feeds import cache
from hogwild.feeds.features import encode
from hogwild.feeds.source import Paths, open_sources
from hogwild.feeds.taggedreader import read_tagged
from hogwild.feeds.tagging import TaggingFeed
from hogwild.feeds.tagginglists import MADE, FeatureFunction, encode_with
from hogwild.feeds.taggingstore import map_tagging, write_tagging
from hogwild.feeds.templates import Templates, open_templates, parse_templates


def open_tagging(
    paths: Paths,
    config: TaggingConfig | None = None,
    *,
    schema: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    with_tags: bool = True,
    features: FeatureFunction | None = None,
) -> TaggingFeed:
    """Open tagged text: encoded once into memory-mapped feature ids, found again on the next run.

    Parameters
    ----------
    paths
        Files, compressed or not, globs, or `-` for standard input.
    config
        How the text is read, and which features it has.
    schema
        `TaggingFeed.schema` of the feed that a model was trained on; it wins over `config`.
    names, tags
        Features and tags of a model. Other features are left out and counted, other tags become -1.
    with_tags
        False for text whose tags are not known, or not wanted. Such a feed is not kept in the cache.
    features
        A function that makes features, instead of templates: features(sentence, i) gives those of token i as a list of
        strings or a dict, where the sentence is a list of dicts from names of columns to strings. Such a feed is not
        kept in the cache either.

    Returns
    -------
    TaggingFeed
        Ids are ranks of frequency; features that are equally frequent are in the order of their first places.

    Examples
    --------
    >>> feed = open_tagging("train.txt", TaggingConfig(features="chunking"))     # doctest: +SKIP
    """
    config = config or TaggingConfig()
    schema = schema or {}
    min_count = int(schema.get("min_count", config.min_count))
    if features is not None:
        text = read_tagged(paths, config, schema=schema or None, with_tags=with_tags)
        feed = encode_with(text, features, min_count=min_count, names=names, tags=tags)
        return replace(feed, schema={**getattr(text, "schema", {}), **feed.schema})
    templates = _templates_of(config, schema)

    def make() -> TaggingFeed:
        text = read_tagged(paths, config, schema=schema or None, with_tags=with_tags)
        feed = encode(text, templates, min_count=min_count, names=names, tags=tags)
        return replace(feed, schema={**getattr(text, "schema", {}), **feed.schema})

    if not (config.cache and with_tags) or "-" in _listed(paths):
        return make()
    sources = open_sources(paths, config)
    content = {
        "tagging": {**asdict(config), "features": templates.lines(), "min_count": min_count, "cache": True},
        "suffixes": [PurePath(source.name).suffixes for source in sources],
        "schema": dict(schema),
        "names": _digest(names),
        "tags": _digest(tags),
    }
    key = cache.key_from(content, sources)
    found = cache.load_entry(key, sources, map_tagging)
    if found is not None:
        return found
    named = [source.name for source in sources]

    def write(directory: Path) -> None:
        write_tagging(directory, make(), named)

    return cache.make_entry(write, sources, key, map_tagging)


def _templates_of(config: TaggingConfig, schema: Mapping[str, Any]) -> Templates:
    if schema.get("features") == MADE:
        raise InputError(
            "this model has features that Python made; give them with tagging_of, or their function as `features`."
        )
    if "templates" in schema:
        return parse_templates(schema["templates"], "the templates of the model")
    return open_templates(config.features)


def _listed(paths: Paths) -> list[str]:
    return [str(paths)] if isinstance(paths, (str, PurePath)) else [str(path) for path in paths]  # type: ignore[union-attr]


def _digest(strings: Sequence[str] | None) -> str | None:
    return None if strings is None else hashlib.sha256(json.dumps(list(strings)).encode()).hexdigest()
