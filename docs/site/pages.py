"""The pages of the site, from what the repository has: documents as they are, navigation from the README's tables, and
an API reference from docstrings.

Nothing is listed here by hand but the titles of groups: a new document is a new row of the README, a new public name
goes where its module belongs.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import docstrings

from hogwild.config.options import Config, options_of

ROOT = Path(__file__).resolve().parents[2]

API = {
    "executor": ("training", "Training", "Training programs, searching for options, watching a run."),
    "programs": ("programs", "Programs", "What is trained, saved and asked for predictions."),
    "feeds": ("feeds", "Feeds", "Files, arrays, frames, texts and ratings become feeds."),
    "config": ("options", "Options", "Every field is a flag of the command line, a key of TOML files and an argument."),
    "kernels": ("own", "Programs of your own", "The parts of a compiled task: see [the guide](guide-own.md)."),
    "arrays": ("own", "Programs of your own", "The parts of a compiled task: see [the guide](guide-own.md)."),
    "observe": ("observing", "Observing", "Where the time of a run went: see [profiling](profiling.md)."),
    "errors": ("errors", "Errors", "All but the warning are a `HogwildError`."),
    "estimators": ("estimators", "Estimators", "For scikit-learn, and a CRF for users of sklearn-crfsuite."),
    "cluster": ("cluster", "Cluster", "The same programs on several nodes: see [the guide](cluster.md)."),
    "pytorch": ("pytorch", "PyTorch", "Modules as programs, programs as modules: see [the guide](guide-pytorch.md)."),
    "theory": ("theory", "Theory", "The convergence theorem, measured: see [the page](theory.md)."),
}
"""Page, title and first sentence for each part of the package that has public names."""


class Group(NamedTuple):
    """Documents that stand under one heading of the navigation: their titles and names without `.md`."""

    caption: str
    documents: list[tuple[str, str]]


class Name(NamedTuple):
    """A public name: where users import it from, and the part of the package that has it."""

    path: str
    part: str


def groups_of(readme: str) -> list[Group]:
    """The tables of the section on documentation: the head of each is a caption, links in first cells are documents."""
    section = readme.partition("## Documentation\n")[2].partition("\n## ")[0]
    found: list[Group] = []
    for line in section.splitlines():
        if not line.startswith("| ") or line.startswith("|---"):
            continue
        cell = line.split("|")[1].strip()
        links = re.findall(r"\[([^]]+)\]\((?:docs/)?([\w-]+)\.md\)", cell)
        if links:
            found[-1].documents.extend(links)
        else:
            found.append(Group(cell, []))
    return found


def public_names() -> list[Name]:
    """All names that users may import, without those of the modules that have pages of their own."""
    hogwild = importlib.import_module("hogwild")
    homes, modules = hogwild._HOMES, hogwild._MODULES
    found = [Name(f"hogwild.{name}", home.partition(".")[0]) for name, home in homes.items()]
    for part in modules:
        module = importlib.import_module(f"hogwild.{modules[part]}")
        known = {name for name, home in homes.items() if home.partition(".")[0] == part}
        found += [Name(f"hogwild.{part}.{name}", part) for name in module.__all__ if name not in known]
    return sorted(found)


def stage(place: Path) -> None:
    """Write the sources of the site."""
    place.mkdir(parents=True, exist_ok=True)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    api = _api_pages()
    written = {"index.md": readme}
    for path in [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        written[path.name] = side_by_side(path.read_text(encoding="utf-8"))
    shown = {file for text in written.values() for file in _FILE.findall(text)}
    written = {name: _linked(text) for name, text in written.items()}
    written |= {_page_of(file): _file_page(file) for file in shown}
    written |= {f"{page}.md": text for page, text in api.items()}
    written["index.md"] += _navigation(groups_of(readme), list(api))
    for old in place.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        if not (place / name).exists() or (place / name).read_text(encoding="utf-8") != text:  # else: not built again
            (place / name).write_text(text, encoding="utf-8")


_FILE = re.compile(r"\]\((?:\.\./)?(LICENSE|[\w/-]+\.py)\)")
"""A link to a file of the repository that is no document."""


def _linked(text: str) -> str:
    """Links of the repository as links of the site, where all pages stand in one folder."""
    text = re.sub(r"\]\((?:docs/|\.\./)([\w-]+\.md)", r"](\1", text)
    text = _FILE.sub(lambda link: f"]({_page_of(link[1])})", text)
    return re.sub(r"\]\(README\.md", "](index.md", text)


def _page_of(file: str) -> str:
    return "file-" + re.sub(r"\W", "-", file.removesuffix(".py")) + ".md"


def _file_page(file: str) -> str:
    """A file of the repository as a page of its own."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return f"---\norphan: true\n---\n\n# {file}\n\n```{'python' if file.endswith('.py') else 'text'}\n{text}```\n"


def side_by_side(text: str) -> str:
    """Another tool's commands and ours, a `text` block and a runnable one right after it, beside each other."""
    pair = re.compile(r"^(```text\n(?:(?!```).*\n)*```\n\n```(?:sh|python)\n(?:(?!```).*\n)*```\n)", re.MULTILINE)
    return pair.sub(r"::::{container} pair\n\n\1\n::::\n", text) if text.startswith("# Coming from") else text


def _navigation(groups: list[Group], api: list[str]) -> str:
    """Trees of contents that show at the side of every page only."""
    text = ""
    for caption, documents in groups:
        lines = "\n".join(f"{title} <{name}>" for title, name in documents)
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {caption.capitalize()}\n\n{lines}\n```\n"
    return text + "\n```{toctree}\n:hidden:\n:caption: API\n\n" + "\n".join(api) + "\n```\n"


def _api_pages() -> dict[str, str]:
    """The text of each page of the API reference by its name."""
    pages: dict[str, str] = {}
    for page, title, about in API.values():
        pages.setdefault(f"api-{page}", f"# {title}\n\n{about}\n")
    names = {name: _value_of(name.path) for name in public_names()}
    public = {value for value in names.values() if isinstance(value, type)}
    for name, value in names.items():
        pages[f"api-{API[name.part][0]}"] += f"\n## {name.path.removeprefix('hogwild.')}\n\n"
        pages[f"api-{API[name.part][0]}"] += _directive(name.path, value, public)
    return pages


def _value_of(path: str) -> Any:
    return functools.reduce(getattr, path.split(".")[1:], importlib.import_module("hogwild"))


def _directive(path: str, value: Any, public: set[type]) -> str:
    lines = [f".. py:currentmodule:: {path.rpartition('.')[0]}"]
    if isinstance(value, type):
        base = next((base for base in value.__mro__[1:] if base in public), None)
        lines += ["", f"A kind of :py:obj:`{base.__name__} <hogwild.{base.__name__}>`.", ""] if base else []
        lines.append(f".. autoexception:: {path}" if issubclass(value, BaseException) else f".. autoclass:: {path}")
        members = members_of(value, public)
        lines += [f"   :members: {', '.join(members)}"] * bool(members)
        for option in options_of(value).values() if issubclass(value, Config) else ():
            lines += ["", f"   ``{option.name}``", *("       " + line for line in docstrings.as_rst([option.help]))]
    else:
        lines.append(f".. autofunction:: {path}")
    return "\n".join(["```{eval-rst}", *lines, "```", ""])


def members_of(value: type, public: set[type]) -> list[str]:
    """What a class and those of its bases that users never see have to offer; what a public base has stands there."""
    bases = [base for base in value.__mro__[1:] if base in public]
    told = {name for base in bases for name in dir(base)}
    ours = [base for base in value.__mro__ if base.__module__.startswith("hogwild.") and base not in bases]
    found = {name: getattr(value, name) for base in ours for name in vars(base) if not name.startswith("_")}
    return [name for name, member in found.items() if name not in told and _explained(member)]


def _explained(member: Any) -> bool:
    """Whether it is a method or a property with a docstring; fields are explained by that of their class."""
    is_code = callable(member) or isinstance(member, (property, functools.cached_property))
    return is_code and not isinstance(member, type) and bool(getattr(member, "__doc__", None))


def links_of(html: str) -> Iterator[tuple[str, str]]:
    """What a page of the site loads or leads to, each with its tag."""
    yield from re.findall(r'<(\w+)[^>]*?\s(?:href|src)="([^"]*)"', html)
