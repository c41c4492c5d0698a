"""One HTML file for runs: what counts in plain HTML, the figures by a script inside of it, the data as JSON.

Nothing is fetched: a policy in the page forbids it, and names the one script and the one style that may run by their
hashes. What runs say of themselves is escaped wherever it stands.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.outfile import write_file
from hogwild.messages import counted
from hogwild.observe.logs import NAME
from hogwild.observe.report.experiments import read_experiment, speed_ups
from hogwild.observe.report.runs import Run, read_log

OURS = '<!doctype html>\n<meta name="generator" content="hogwild report">\n'
_VERDICTS = 3  # runs that have a card of their own; more are rows of the overview
_PAGE = Template(
    OURS
    + """<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'sha256-$style_hash'; script-src 'sha256-$script_hash'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>$title · Hogwild</title>
<style>$style</style>
</head>
<body>
<header><h1>$title</h1><p class="made">Hogwild $version, $made</p>
<button type="button" id="theme" aria-label="Light or dark">◐</button></header>
<main>
$verdicts$overview<div id="controls"></div>
<div id="figures"></div>
<noscript><p>The figures are drawn by a script of this page; the tables here and below need none.</p></noscript>
$configuration$notes</main>
<script type="application/json" id="data">$data</script>
<script>$script</script>
</body>
</html>
"""
)
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def read_runs(paths: Sequence[str]) -> list[Run]:
    """The runs of all these: directories of `--log-dir`, `events.jsonl` files, files of `hogwild experiment`."""
    found = [run for path in paths for run in _read(path)]
    names: dict[str, int] = {}
    for run in found:
        names[run.name] = names.get(run.name, 0) + 1
        if names[run.name] > 1:
            run.name = f"{run.name} ({names[run.name]})"
    return found


def _read(path: str) -> list[Run]:
    place = Path(path)
    if place.is_dir():
        if not (place / NAME).exists():
            raise InputError(f"{path}: no {NAME} in it; give a directory that --log-dir wrote.")
        return read_log(place)
    return read_experiment(place) if place.suffix == ".json" else read_log(place)


def check_report_path(path: str) -> None:
    """Raise ConfigError rather than replace a file that is no report of ours, perhaps somebody's page."""
    if not Path(path).is_file():
        return
    with open(path, "rb") as file:
        head = file.read(len(OURS))
    if head and head != OURS.encode():
        raise ConfigError(f"{path} is there and no report of hogwild, so it is not replaced; give another name.")


def write_report(runs: Sequence[Run], path: str) -> None:
    """Write the page of these runs; a file that is there is replaced if it is a report of ours."""
    check_report_path(path)
    with write_file(path) as stream:
        stream.write(make_page(runs).encode("utf-8", "backslashreplace"))


def make_page(runs: Sequence[Run]) -> str:
    """The whole page."""
    from hogwild import __version__

    style, script = _asset("report.css"), _asset("report.js")
    data = {"runs": [run.record() for run in runs], "speed_ups": speed_ups(runs), "version": __version__}
    title = runs[0].name if len(runs) == 1 else counted(len(runs), "run")
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return _PAGE.substitute(
        style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), title=html.escape(title),
        version=html.escape(__version__), made=made, data=embed(data), overview=_overview(runs),
        verdicts="".join(map(_verdict, runs)) if len(runs) <= _VERDICTS else "",
        configuration=_configuration(runs), notes=_notes(runs),
    )  # fmt: skip


def embed(values: Any) -> str:
    """JSON that no HTML parser takes for anything else."""
    written = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, escaped in _ESCAPED.items():
        written = written.replace(sign, escaped)
    return written


def _asset(name: str) -> str:
    return files("hogwild.observe.report").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


# -- what counts, in plain HTML ----------------------------------------------------------------------------------------


def _verdict(run: Run) -> str:
    """The first line of a run: how good, how fast, and how to have it again."""
    parts = [f"<b>{_number(value)}</b> {html.escape(name)}" for name, value in _facts(run)]
    command = run.about.get("command", "")
    again = f'<p class="command"><code>{html.escape(command)}</code></p>' if command else ""
    return (
        f'<section class="verdict"><h2>{html.escape(run.name)}</h2><p class="facts">{" · ".join(parts)}</p>'
        f'{again}<p class="about">{html.escape(_about(run))}</p></section>\n'
    )


def _facts(run: Run) -> Iterable[tuple[str, float]]:
    verdict = run.verdict
    if "score" in verdict:
        yield verdict["score"]["name"], verdict["score"]["value"]
    if "held_out" in verdict:
        yield "held-out loss", verdict["held_out"]
    elif "loss" in verdict:
        yield "training loss", verdict["loss"]
    if "speed" in verdict:
        yield f"{verdict['speed']['unit']}/s", verdict["speed"]["value"]
    if "speed_up" in verdict:
        yield "times the speed of one thread", verdict["speed_up"]
    if "seconds" in verdict:
        yield "s of training", verdict["seconds"]


def _about(run: Run) -> str:
    """Who made it, where, how: one line."""
    about = run.about
    threads = about.get("threads")
    parts = [
        about.get("program", ""), counted(threads, "thread") if isinstance(threads, int) else "",
        about.get("mode", ""), f"sharing {about['sharing']}" if about.get("sharing") else "",
        f"on {about['device']}" if about.get("device") else "",
        f"seed {about['seed']}" if "seed" in about else "", counted(about["seeds"], "seed") if "seeds" in about else "",
        {"done": "", "early": "stopped early", "stopped": "interrupted"}.get(about["reason"], about["reason"]),
        f"hogwild {about['version']}" if about.get("version") else "",
        ", ".join(_machine(about.get("machine", {}))),
    ]  # fmt: skip
    return ", ".join(part for part in parts if part)


def _machine(machine: dict[str, str]) -> Iterable[str]:
    for name, value in machine.items():
        if value not in ("", "None"):
            load = f"load {value[:4]}"
            yield {"cores": f"{value} cores", "load_before": load, "python": f"Python {value}"}.get(name, value)


_COLUMNS = {
    "score": "score", "held_out": "held-out loss", "loss": "training loss", "speed": "speed", "seconds": "seconds",
}  # fmt: skip


def _overview(runs: Sequence[Run]) -> str:
    """A row a run, with what its curves look like and whether they are shown."""
    names = [name for name in _COLUMNS if any(name in run.verdict for run in runs)]
    heads = "".join(f'<th scope="col" class="n">{_COLUMNS[name]}</th>' for name in names)
    rows = []
    for k, run in enumerate(runs):
        cells = "".join(f'<td class="n">{_cell(run, name)}</td>' for name in names)
        threads = run.about.get("threads", "")
        rows.append(
            f'<tr><th scope="row"><label><input type="checkbox" data-run="{k}"{" checked" if run.shown else ""}>'
            f'<span class="key k{k % 10}" aria-hidden="true"></span> {html.escape(run.name)}</label></th>'
            f"<td>{html.escape(run.about.get('mode', ''))}</td><td class=\"n\">{threads}</td>{cells}</tr>"
        )
    return (
        '<section class="overview"><h2>Runs</h2><div class="scroll"><table><thead><tr><th scope="col">run</th>'
        f'<th scope="col">mode</th><th scope="col" class="n">threads</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>\n"
    )


def _cell(run: Run, name: str) -> str:
    value = run.verdict.get(name)
    if value is None:
        return "–"
    if name == "score":
        return f"{html.escape(value['name'])} {_number(value['value'])}"
    if name == "speed":
        return f"{_number(value['value'])} {html.escape(value['unit'])}/s"
    return f"{_number(value)}{' s' if name == 'seconds' else ''}"


def _configuration(runs: Sequence[Run]) -> str:
    """All options side by side; those that differ are marked."""
    names = list(dict.fromkeys(name for run in runs for name in run.options))
    if not names:
        return ""
    heads = "".join(f'<th scope="col">{html.escape(run.name)}</th>' for run in runs)
    rows = []
    for name in names:
        values = [run.options.get(name, "–") for run in runs]
        differs = ' class="differs"' if len(set(values)) > 1 else ""
        cells = "".join(f"<td>{html.escape(value)}</td>" for value in values)
        rows.append(f'<tr{differs}><th scope="row">{html.escape(name)}</th>{cells}</tr>')
    return (
        '<section class="configuration"><h2>Configuration</h2><details><summary>All options'
        f'{" (those that differ are marked)" if len(runs) > 1 else ""}</summary><div class="scroll"><table>'
        f'<thead><tr><th scope="col">option</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        "</details></section>\n"
    )


def _notes(runs: Sequence[Run]) -> str:
    lists = [
        f"<h3>{html.escape(run.name)}</h3><ul>{''.join(f'<li>{html.escape(note)}</li>' for note in run.notes)}</ul>"
        for run in runs if run.notes
    ]  # fmt: skip
    return f'<section class="notes"><h2>Notes</h2>{"".join(lists)}</section>\n' if lists else ""


def _number(value: float) -> str:
    """For people: four digits that count."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.4g} M" if abs(value) < 1e9 else f"{value / 1e9:.4g} G"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
