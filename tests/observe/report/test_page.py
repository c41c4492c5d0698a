"""The page of a report: its text without a browser, and its figures in a real one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from hogwild.errors import ConfigError
from hogwild.observe.report.page import make_page, write_report
from hogwild.observe.report.runs import run_of
from observe.report.made import records

HOSTILE = "</script><script>document.title='x'</script><img src=x onerror=\"document.title='y'\">\u2028&amp;$title"


def hostile_run():
    lines = records()
    lines[0] |= {"command": HOSTILE, "options": {HOSTILE: HOSTILE}}
    lines[1]["notes"] = [HOSTILE]
    for line in lines:
        if "metrics" in line:
            line["metrics"] = {HOSTILE: 0.5, **line["metrics"]}
    return run_of(lines, HOSTILE)


def test_what_counts_is_there_without_the_script():
    page = make_page([run_of(records(), "mine")])
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    for part in (
        "<b>0.75</b> auc",
        "<b>0.6</b> held-out loss",
        "<b>1 M</b> nonzeros/s",
        "<b>12</b> s of training",
        "seed 7",
        "hogwild train classifier &#x27;a b.svm&#x27;",
        "3 threads",
        "hogwild 0.1.0",
        "2 cores",
        "load 0.25",
        "train.lr",
        "one more.",
    ):
        assert part in text, part


def test_names_of_runs_are_text_everywhere():
    page = make_page([hostile_run()])
    assert page.count("<script") == 2  # the data, and our own
    assert "<img" not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data[1])["runs"][0]["options"]  # the raw data, whole
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_a_file_that_is_no_report_is_not_replaced(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><p>mine")
    with pytest.raises(ConfigError, match="no report of hogwild"):
        write_report([run_of(records(), "a")], str(path))
    assert path.read_text().endswith("mine")
    path.unlink()
    for name in ("first", "second"):  # but our own is
        write_report([run_of(records(), name)], str(path))
    assert "<h1>second</h1>" in path.read_text()


# -- in a browser ------------------------------------------------------------------------------------------------------


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)


def browse(page, place, *flags):
    """The page as a browser has it after its script, and what the console said."""
    path = place / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={place / 'profile'}", *flags, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.full
@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
def test_figures_in_a_browser(tmp_path):
    page = make_page([run_of(records(), "mine"), run_of(records(1), "other")])
    shown, said = browse(page, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert said == []
    assert 'data-theme="dark"' in shown
    drawn = set(re.findall(r'<figure id="(\w+)"[^>]*><figcaption', shown))
    everything = {
        "loss",
        "scores",
        "speed",
        "rate",
        "balance",
        "errors",
        "wrong",
        "delays",
        "scaling",
        "cluster",
        "watched",
        "profile",
        "workers",
    }
    assert drawn == everything
    assert shown.count("<svg") == len(everything)
    assert shown.count("<summary>Table</summary>") == len(everything)
    light, _ = browse(page, tmp_path, "--blink-settings=preferredColorScheme=1", "--window-size=380,800")
    assert 'data-theme="light"' in light


@pytest.mark.full
@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
def test_hostile_names_in_a_browser(tmp_path):
    shown, said = browse(make_page([hostile_run(), run_of(records(), "b")]), tmp_path)
    assert said == []
    assert re.search(r"<title>([^<]*)</title>", shown)[1] == "2 runs · Hogwild"
    assert "<img" not in shown
    assert shown.count("<svg") == 12
