"""The site: every document and every public name has its place, what it is made of is read right, and it builds without
a warning, with links that lead somewhere and nothing that is loaded from elsewhere."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hogwild.config import TrainConfig
from hogwild.config.options import options_of
from places import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
import docstrings
import pages

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_document_is_in_the_navigation_once() -> None:
    groups = pages.groups_of(README)
    assert [group.caption for group in groups] == ["guides", "coming from", "reference", "why it is so"]
    listed = [name for group in groups for _, name in group.documents]
    documents = [path.stem for path in (ROOT / "docs").glob("*.md")] + ["CHANGELOG", "CONTRIBUTING"]
    missing = sorted(set(documents) - set(listed))
    assert not missing, f"Add a row for each to one of the tables in README.md, section Documentation: {missing}"
    assert sorted(listed) == sorted(documents)


def test_details_come_after_two_screens_of_the_readme() -> None:
    before = README.partition("## Documentation\n")[0]
    assert len(before.splitlines()) <= 100
    assert len(re.findall(r"^\|---", before, re.MULTILINE)) == 1


def test_performance_leads_with_one_table() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").partition("\n## ")[0]
    header, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    assert header == "| what | ours | the peer | ratio | limit |"
    assert len(rows) > 15
    assert all(len(re.split(r"(?<!\\)\|", row)) == 7 for row in rows)


def test_every_public_name_is_in_the_reference_once() -> None:
    hogwild = importlib.import_module("hogwild")
    names = [name.path for name in pages.public_names()]
    assert len(names) == len(set(names))
    parts = {name.part for name in pages.public_names()}
    assert parts <= set(pages.API), f"Add a page to API in docs/site/pages.py for {sorted(parts - set(pages.API))}"
    told = {name.rpartition(".")[2] for name in names}
    assert set(hogwild.__all__) - set(hogwild._MODULES) - {"__version__"} <= told
    for module in hogwild._MODULES.values():
        assert set(importlib.import_module(f"hogwild.{module}").__all__) <= told


def test_every_option_is_explained_in_the_reference(tmp_path: Path) -> None:
    pages.stage(tmp_path)
    text = (tmp_path / "api-options.md").read_text(encoding="utf-8").partition("## TrainConfig")[2]
    told = dict(re.findall(r"^   ``(\w+)``\n       (.*)$", text, re.MULTILINE))
    assert set(told) == set(options_of(TrainConfig))
    assert all(told.values())


def test_groups_are_read_from_tables() -> None:
    table = "| guides | |\n|---|---|\n| [A](docs/a.md), [B](B.md) | c |\n"
    readme = f"# X\n\n| no | |\n|---|---|\n\n## Documentation\n\n{table}\n## L\n"
    assert pages.groups_of(readme) == [("guides", [("A", "a"), ("B", "B")])]


class Base:
    def told(self) -> None:
        """There."""


class Hidden(Base):
    def offered(self) -> None:
        """By a base that nobody sees."""


class Shown(Hidden):
    def told(self) -> None:
        """Again."""

    def own(self) -> None:
        """Its own."""

    def bare(self) -> None: ...


def test_what_a_public_base_has_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (Base, Hidden, Shown):
        monkeypatch.setattr(one, "__module__", "hogwild.x")
    assert pages.members_of(Shown, {Base, Shown}) == ["own", "offered"]
    assert pages.members_of(Base, {Base, Shown}) == ["told"]


def test_commands_of_two_tools_stand_beside_each_other() -> None:
    pair = "```text\ntheirs\n```\n\n```sh\nours\n```\n"
    beside = f"::::{{container}} pair\n\n{pair}\n::::\n"
    assert pages.side_by_side(f"# Coming from X\n\n{pair}") == f"# Coming from X\n\n{beside}"
    assert pages.side_by_side(f"# Guide\n\n{pair}") == f"# Guide\n\n{pair}"
    apart = "# Coming from X\n\n```text\na\n```\n\nOf ours:\n\n```sh\nb\n```\n"
    assert pages.side_by_side(apart) == apart


def test_docstrings_become_restructured_text() -> None:
    lines = ["One `Watch` of `a b` *x_.", "", "Parameters", "----------", "a, b : what `c` is,", "    and more.", "",
             "Examples", "--------", ">>> 1 + 1", "2", ""]  # fmt: skip
    assert [line for line in docstrings.as_rst(lines) if line] == [
        r"One :py:obj:`Watch` of ``a b`` \*x\_.", ".. rubric:: Parameters", "``a, b``", "    what :py:obj:`c` is,",
        "    and more.", ".. rubric:: Examples", ">>> 1 + 1", "2",
    ]  # fmt: skip


# -- the whole ---------------------------------------------------------------------------------------------------------


def _build(place: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("sphinx", reason="make test-full installs it")
    command = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = _build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    built = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= built
    reference = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site").glob("api-*.html"))
    assert all(f'id="{name.path}"' in reference for name in pages.public_names())
    assert (tmp_path / "site" / "searchindex.js").stat().st_size > 100_000


@pytest.mark.full
def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="make test-full installs it")
    build = importlib.import_module("build")
    (tmp_path / "a.html").write_text(
        '<h1 id="x"></h1><a href="#x"></a><a href="b.html"></a><a class="y" href="a.html#z"></a>'
        '<a href="https://x.org"></a><script src="https://x.org/x.js"></script>', encoding="utf-8"
    )  # fmt: skip
    assert build.faults_of(tmp_path) == [
        "a.html: b.html is not there", "a.html: a.html#z has no such heading",
        "a.html: https://x.org/x.js is loaded from elsewhere",
    ]  # fmt: skip
