"""The core depends on what it imports, and on nothing else."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from places import ROOT, SOURCE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {"scikit-learn": "sklearn"}
"""Packages that are imported by another name than they are installed by."""
BROUGHT = {"polars"}
"""Whoever hands us such an object has the package."""


def _names(requirements: list[str]) -> set[str]:
    """What the packages of a list are imported by."""
    names = {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements}
    return {MODULES.get(name, name) for name in names}


def _imports() -> set[str]:
    """What src imports from outside the standard library: at the head of a file, or late, inside a function."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"hogwild"}


CORE = _names(PROJECT["dependencies"])
_USERS = [name for name in PROJECT["optional-dependencies"] if name not in ("dev", "docs", "peers")]
EXTRAS = {name: _names(PROJECT["optional-dependencies"][name]) for name in _USERS}


def test_every_dependency_is_imported():
    assert CORE - _imports() == set()


def test_every_import_is_a_dependency_or_an_extra():
    assert _imports() - CORE - set().union(*EXTRAS.values()) == BROUGHT


def test_the_core_does_without_the_extras():
    """All of it but what an extra is for."""
    hidden = sorted(set().union(*EXTRAS.values(), {"safetensors"}) - CORE)
    code = f"""if True:
        import importlib, pkgutil, sys
        for name in {hidden!r}:
            sys.modules[name] = None
        import hogwild
        for module in pkgutil.walk_packages(hogwild.__path__, "hogwild."):
            if module.name.split(".")[1] not in ("cluster", "estimators", "pytorch", "__main__"):
                importlib.import_module(module.name)
    """
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- what `make test-full` installs, so that neither a comparison nor the site is left out unseen ----------------------


@pytest.mark.full
@pytest.mark.parametrize(
    "package",
    ["tensorflow", "gensim", "pycrfsuite", "sklearn_crfsuite", "sklearn", "torch", "sphinx", "myst_parser", "furo"],
)
def test_packages_to_compare_with_and_to_build_the_site(package):
    assert importlib.util.find_spec(package) is not None, f"make test-full installs {package}"


@pytest.mark.full
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_to_complete_in(shell):
    if os.geteuid() != 0 and shutil.which(shell) is None:
        pytest.skip(f"only root can install {shell}")
    assert shutil.which(shell), f"make test-full could not install {shell}"
