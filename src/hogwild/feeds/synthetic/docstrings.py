"""Text that every machine has: the documentation inside the Python installation. Sources are read, none is imported."""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?")
_SENTENCE = re.compile(r"\.\s|\n\s*\n")  # a full stop, or an empty line
_DOCUMENTED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_LEFT_OUT = {"test", "tests", "site-packages", "idlelib", "lib2to3", "__pycache__"}
_LONG = 2000  # letters of a string that is documentation too: the help of the language itself is a dict of them
_PACKAGES = ("numpy", "scipy")  # well documented, and here because this package needs them


def documentation(most_words: int, roots: Iterable[Path] | None = None) -> list[list[str]]:
    """Sentences of lower-case words from docstrings, up to about `most_words` words in all.

    roots: directories of Python sources; by default the standard library, then packages that are installed with this.
    """
    sentences: list[list[str]] = []
    seen: set[str] = set()
    left = most_words
    for path in _sources(_roots() if roots is None else roots):
        for text in _texts(path):
            if text in seen:  # docstrings are handed from class to class
                continue
            seen.add(text)
            for part in _SENTENCE.split(text.lower()):
                words = _WORDS.findall(part)
                if len(words) > 2:
                    sentences.append(words)
                    left -= len(words)
            if left <= 0:
                return sentences
    return sentences


def _roots() -> Iterator[Path]:
    yield Path(sysconfig.get_paths()["stdlib"])
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            yield Path(spec.origin).parent


def _sources(roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if _LEFT_OUT.isdisjoint(path.relative_to(root).parts):
                yield path


def _texts(path: Path) -> Iterator[str]:
    """Docstrings of a file, and long strings that it gives names to; nothing from a file that cannot be read."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of old spellings in sources that are not ours
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    yield ast.get_docstring(tree, clean=False) or ""
    yield from _docstrings(tree.body)
    for item in tree.body:
        if isinstance(item, ast.Assign):
            strings = (node.value for node in ast.walk(item) if isinstance(node, ast.Constant))
            yield from (value for value in strings if isinstance(value, str) and len(value) > _LONG)


def _docstrings(body: list[ast.stmt]) -> Iterator[str]:
    """Those of classes and functions, at any depth; expressions are not looked into, which is most of a file."""
    for item in body:
        if isinstance(item, _DOCUMENTED):
            yield ast.get_docstring(item, clean=False) or ""
            yield from _docstrings(item.body)
