"""`hogwild doctor`: what this machine has, and what speed to expect of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table, print_json, print_tables
from hogwild.config import ShowConfig
from hogwild.messages import say, show

PAGE = Page(
    "hogwild doctor",
    """Look at the machine: cores, caches, speed of memory and of matrix products, libraries, what is kept on disk; and
try each program for a second on made data, to tell what speed to expect here.

The first time the programs are compiled, which takes a minute. Other work on the machine makes all of it slower.

Examples:
  hogwild doctor
  hogwild doctor --no-speeds
  hogwild doctor --json""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    speeds: bool = True
    """Try each program for a second."""
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Look, measure, tell."""
    from hogwild.machine import cores
    from hogwild.observe.doctor import facts, measure, speeds

    found = facts()
    threads = cores()
    counts = sorted({1, threads})
    found["measured"] = {str(count): measure(count) for count in counts}
    told = not (options.show.json or options.show.quiet)
    if told:
        _tell(found)
        if options.speeds:
            say("trying each program (the first time: compiling)")
    tried = [each for count in counts for each in speeds(count)] if options.speeds else []
    found["speeds"] = [vars(each) for each in tried]
    if options.show.json:
        print_json(found)
    elif options.speeds:
        _tell_speeds(tried, counts)
    return 0


def _tell(found: dict[str, Any]) -> None:
    from hogwild.executor.readers.display import count

    show(f"{found['processor']}, {found['cores']} cores, {count(found['memory'])}B of memory, {found['system']}")
    for cache in found["caches"]:
        shared = f" for {cache['cores']} cores" if cache["cores"] > 1 else ""
        show(f"  L{cache['level']} cache ({cache['kind']}): {cache['bytes'] // 1024:,} KiB{shared}")
    if found["load_before"] is not None and found["load_before"] > 0.5:
        busy = f"{found['load_before']:.1f} processes were busy in the last minute"
        show(f"  {busy}: what is measured here is what they leave")
    for threads, speed in found["measured"].items():
        noun = "thread" if threads == "1" else "threads"
        products = f"matrix products {count(speed['products'])} operations/s"
        show(f"{threads} {noun}: memory {count(speed['memory'])}B/s, {products}")
    for library in found["blas"]:
        show(f"linear algebra: {library['name']} {library['version']} ({library['kernels']})")
    names = ", ".join(f"{each['name']} {each['version']}" for each in found["libraries"] if each["version"])
    show(f"Python {found['python']}, {names}")
    for each in found["libraries"]:
        if not each["version"]:
            show(f"  {each['name']} is not installed: pip install 'hogwild[{each['extra']}]'")
    kept = found["kept"]
    show(
        f"kept in {kept['path']}: {kept['feeds']['count']} encoded data sets, {count(kept['feeds']['bytes'])}B; "
        f"compiled code, {count(kept['code']['bytes'])}B; {count(kept['free'])}B free"
    )


def _tell_speeds(tried: list[Any], counts: list[int]) -> None:
    from hogwild.executor.readers.display import count

    heads = [f"{threads} thread{'s' if threads > 1 else ''}" for threads in counts]
    table = make_table(["program", "on", *heads], words=2)
    for name in dict.fromkeys(each.program for each in tried):
        those = [each for each in tried if each.program == name]
        cells = [f"{count(each.units_per_second)} {each.unit}/s" if not each.problem else "–" for each in those]
        add_row(table, name, those[0].data, *cells)
    print_tables([table])
    for problem in dict.fromkeys(f"{each.program}: {each.problem}" for each in tried if each.problem):
        show(problem)
