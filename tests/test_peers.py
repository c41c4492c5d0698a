"""The peers that `make test-full` installs are there, so that no comparison with them is left out unseen."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

pytestmark = pytest.mark.full


@pytest.mark.parametrize("package", ["tensorflow", "gensim", "pycrfsuite", "sklearn_crfsuite", "sklearn", "torch"])
def test_packages(package: str) -> None:
    assert importlib.util.find_spec(package) is not None, f"make test-full installs {package}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells(shell: str) -> None:
    assert shutil.which(shell), f"install {shell}: make test-full could not"
