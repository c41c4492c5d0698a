"""`hogwild cache`: what has been encoded before, and how to be rid of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.config import ShowConfig
from hogwild.errors import ConfigError, brief
from hogwild.options import Shown, nearest

PAGE = Page(
    "hogwild cache",
    """List or clear what has been encoded before: files are parsed once and found again on the next run.

The place is ~/.cache/hogwild; set HOGWILD_CACHE to have it elsewhere.

Examples:
  hogwild cache list
  hogwild cache clear
  hogwild cache path""",
)

_ACTIONS = ("list", "clear", "path")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    action: Annotated[str, Shown("list|clear|path", positional=True)] = ""
    """What to do."""
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Do it."""
    from hogwild.cli.summary import print_json
    from hogwild.config import cache_home
    from hogwild.executor.progress import count
    from hogwild.feeds import cache

    if options.action not in _ACTIONS:
        close = nearest(options.action, _ACTIONS)
        raise ConfigError(f"cache cannot {brief(options.action)}{close}; choose one of {', '.join(_ACTIONS)}.")
    if options.action == "path":
        if options.show.json:
            print_json({"path": str(cache_home())})
        else:
            print(cache_home())
    elif options.action == "clear":
        entries = len(cache.entries())
        freed = cache.clear()
        if options.show.json:
            print_json({"path": str(cache_home()), "removed": entries, "bytes": freed})
        elif not options.show.quiet:
            print(f"removed {entries} encoded data sets, {count(freed)}B")
    else:
        entries_found = cache.entries()
        if options.show.json:
            print_json({"path": str(cache_home()), "entries": [vars(entry) for entry in entries_found]})
        else:
            for entry in entries_found:
                used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
                print(f"{used}  {count(entry.bytes):>6}B  {entry.rows:>12,} {entry.unit:<6}  {' '.join(entry.sources)}")
    return 0
