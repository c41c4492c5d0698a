"""`hogwild cache`: what has been encoded and compiled before, and how to be rid of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Annotated, Any

from hogwild.cli.flags import Page
from hogwild.cli.summary import print_json
from hogwild.config import ShowConfig, cache_home
from hogwild.config.options import Shown, nearest
from hogwild.errors import ConfigError, brief
from hogwild.messages import show

PAGE = Page(
    "hogwild cache",
    """List or clear what is kept for the next run: encoded data (files are parsed once) and compiled code.

The place is ~/.cache/hogwild; set HOGWILD_CACHE to have it elsewhere. Encoded data takes up to 20 GB (of a small disk,
a tenth): what was used longest ago makes room. HOGWILD_CACHE_SIZE sets another limit, as 50GB.

Examples:
  hogwild cache
  hogwild cache clear
  hogwild cache clear --code
  hogwild cache path""",
)

_ACTIONS = ("list", "clear", "path")
_FEEDS, _CODE = "encoded data set", "state of compiled code"


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    action: Annotated[str, Shown("list|clear|path", positional=True)] = "list"
    """What to do; list is the default."""
    code: bool = False
    """Compiled code only."""
    feeds: bool = False
    """Encoded data only."""
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Do it."""
    if options.action not in _ACTIONS:
        close = nearest(options.action, _ACTIONS)
        raise ConfigError(f"cache cannot {brief(options.action)}{close}; choose one of {', '.join(_ACTIONS)}.")
    found: dict[str, Any] = {}
    lines: list[str] = []
    if options.action == "path":
        if options.code or options.feeds:
            raise ConfigError("cache path shows where both are; leave --code and --feeds out.")
        lines.append(str(cache_home()))
    else:
        both = options.code == options.feeds
        for asked, look in ((options.feeds, _feeds), (options.code, _code)):
            if asked or both:
                more, told = look(options.action == "clear")
                found, lines = {**found, **more}, lines + told
    if options.show.json:
        print_json({"path": str(cache_home()), **found})
    elif not (options.show.quiet and options.action == "clear"):
        for line in lines:
            show(line)
    return 0


def _feeds(clear: bool) -> tuple[dict[str, Any], list[str]]:
    from hogwild.feeds.storage import cache

    entries = cache.entries()
    if clear:
        freed = cache.clear()
        return {"removed": len(entries), "bytes": freed}, [f"removed {_total(_FEEDS, len(entries), freed)}"]
    lines = [_line(entry, f"{entry.rows:>12,} {entry.unit:<6}  {' '.join(entry.sources)}") for entry in entries]
    total = _total(_FEEDS, len(entries), sum(entry.bytes for entry in entries))
    return {"entries": [vars(entry) for entry in entries]}, [*lines, total]


def _code(clear: bool) -> tuple[dict[str, Any], list[str]]:
    from hogwild.kernels.compiler import codecache

    if clear:
        count, freed = codecache.clear()
        return {"removed_code": count, "code_bytes": freed}, [f"removed {_total(_CODE, count, freed)}"]
    states = codecache.kept()
    lines = [_line(state, f"code {state.name}") for state in states]
    total = _total(_CODE, len(states), sum(state.bytes for state in states))
    return {"code": [state._asdict() for state in states]}, [*lines, total]


def _line(kept: Any, what: str) -> str:
    from hogwild.executor.readers.display import count

    return f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(kept.used))}  {count(kept.bytes):>6}B  {what}"


def _total(what: str, number: int, size: int) -> str:
    from hogwild.executor.readers.display import count

    first, *rest = what.split(" of ")
    return f"{number} {' of '.join([first if number == 1 else first + 's', *rest])}, {count(size)}B"
