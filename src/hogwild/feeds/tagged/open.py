"""Open tagged text as a feed: read it, encode it with feature templates, use the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any

from hogwild.config import TaggingConfig
from hogwild.errors import InputError, ModelError
from hogwild.feeds.io.source import Paths, open_sources
from hogwild.feeds.storage import cache
from hogwild.feeds.tagged.columns import narrowed
from hogwild.feeds.tagged.features import encode
from hogwild.feeds.tagged.feed import TaggingFeed, check_known, map_tagging, write_tagging
from hogwild.feeds.tagged.lists import MADE, FeatureFunction, encode_with
from hogwild.feeds.tagged.read import read_sources
from hogwild.feeds.tagged.templates import Templates, open_templates, parse_templates, usual_preset
from hogwild.feeds.tagged.text import TaggedText
from hogwild.messages import shown

_STRANGE = "is this text in the language and the columns of the training text? --columns names those of the file."


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
        `TaggingFeed.schema` of the feed that a model was trained on. Its templates are used instead of those of
        `config`; what `config` says of the format and the columns of these files goes before it.
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
    min_count = _min_count_of(config, schema or {})
    templates = None if features is not None else _templates(config, schema or {})
    sources = open_sources(paths, config)

    def known(feed: TaggingFeed) -> TaggingFeed:
        return feed if names is None else check_known(feed, _STRANGE, pruned=bool((schema or {}).get("pruned")))

    def make() -> TaggingFeed:
        text = read_sources(sources, config, schema=schema, with_tags=with_tags)
        if features is not None:
            feed = encode_with(text, features, min_count=min_count, names=names, tags=tags)
        else:
            named = (templates or _usual(text)).named(text.schema["columns"], text.schema["tag"])
            feed = encode(text, named, min_count=min_count, names=names, tags=tags)
            used = {atom.column for template in named.items for atom in template.atoms}
            text = replace(text, schema=narrowed(text.schema, used))
        return replace(feed, schema={**text.schema, **feed.schema})

    if features is not None or not with_tags or not config.cache:
        return known(make())
    lines = templates.lines() if templates else ""
    content = {"tagging": {**asdict(config), "features": lines, "min_count": min_count, "cache": True},
               "suffixes": [PurePath(source.name).suffixes for source in sources], "schema": schema,
               "names": cache.digest_of(names), "tags": cache.digest_of(tags)}  # fmt: skip

    def write(directory: Path) -> None:
        write_tagging(directory, make(), [source.name for source in sources])

    return known(cache.open_entry(write, sources, cache.key_from(content, sources), map_tagging))


def _templates(config: TaggingConfig, schema: Mapping[str, Any]) -> Templates | None:
    """Those of a model, or that the user names; None: the usual ones, when the columns are known."""
    if schema.get("features") == MADE:
        raise InputError(
            "this model has features that Python made; give them with tagging_of, or their function as `features`."
        )
    if "templates" in schema:
        return templates_of(schema)
    return open_templates(config.features) if config.features else None


def _usual(text: TaggedText) -> Templates:
    preset = usual_preset(text.schema["format"], text.schema["columns"])
    return replace(open_templates(preset), notes=(f"Features {preset}, by the columns (--features says otherwise).",))


def templates_of(schema: Mapping[str, Any]) -> Templates:
    """The templates of a model. Raises ModelError where they are none."""
    lines = schema.get("templates")
    try:
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise InputError("its templates are no lines of text.")
        return parse_templates(lines, "templates")
    except InputError as error:
        raise ModelError(f"the model is damaged ({str(error).rstrip('.')}); copy it again.") from None


def _min_count_of(config: TaggingConfig, schema: Mapping[str, Any]) -> int:
    least = schema.get("min_count", config.min_count)
    if type(least) is not int or least < 1:
        raise ModelError(f"the model is damaged (min_count is {shown(str(least))}); copy it again.")
    return least
