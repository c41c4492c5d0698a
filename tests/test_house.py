"""The building: no import cycles, folders that one can take in, files of one idea."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "hogwild"
TESTS = Path(__file__).parent
LONGEST = 600  # lines of a file
MOST = 14      # modules of a folder


def _module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports() -> dict[str, set[str]]:
    """The modules that each module imports: at its head, for types only, or late, inside a function."""
    paths = {_module_of(path): path for path in SOURCE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            graph[name] |= {target for target in _targets(node) if target in paths and target != name}
    return graph


def _targets(node: ast.AST) -> Iterator[str]:
    """What an import may mean: a module, or a module that is a name of a package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def cycles_of(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach one another, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in graph[name]:
            if target not in order:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            group = stack[stack.index(name):]
            del stack[stack.index(name):]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in order:
            visit(name)
    return found


def test_cycles_are_found() -> None:
    assert cycles_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = _imports()
    assert len(graph) > 150
    assert cycles_of(graph) == []


@pytest.mark.parametrize("root", [SOURCE, TESTS], ids=["src", "tests"])
def test_folders_can_be_taken_in(root: Path) -> None:
    folders = {path.parent for path in root.rglob("*.py")}
    sizes = {folder: len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) for folder in folders}
    assert {folder.relative_to(root).as_posix(): size for folder, size in sizes.items() if size > MOST} == {}


@pytest.mark.parametrize("root", [SOURCE, TESTS], ids=["src", "tests"])
def test_no_file_is_too_long(root: Path) -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in root.rglob("*.py")}
    assert {path.relative_to(root).as_posix(): length for path, length in lengths.items() if length > LONGEST} == {}
